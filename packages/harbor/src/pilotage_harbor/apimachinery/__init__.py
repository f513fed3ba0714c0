"""The ground of the API, as in Kubernetes' apimachinery: Status errors, rules for names and metadata, requests, users.

Everything else in harbor may import it; it imports nothing of harbor.
"""
