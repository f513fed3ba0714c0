"""What the product decides: models, endpoints, and the teardowns of what they made.

Each controller is a pure decision over what was observed, and a thin part that observes and acts.
"""
