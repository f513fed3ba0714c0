"""Kubernetes's own conformance specs, run against the real API server and against harbor, side by side."""
