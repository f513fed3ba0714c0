"""Admission of writes: policies of an administrator, and webhooks. Also the webhooks that convert custom resources."""
