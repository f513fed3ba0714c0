"""Asking others: admission webhooks about writes, conversion webhooks about versions."""
