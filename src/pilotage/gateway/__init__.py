"""The embedded gateway: a real Envoy, and the control plane that tells it where requests go, and can prove it."""
