"""The controllers of our kinds: models, endpoints, hosts, and the teardowns of their parts.

Each controller is a pure decision over what was observed, and a thin part that observes and acts.
"""
