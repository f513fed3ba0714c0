"""Handlers of requests to resources: get, list, watch, create, update, patch, delete, and their content types."""
