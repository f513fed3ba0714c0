"""Helpers of tests: a proxy that breaks connections on purpose, transports without a network, kinds, waiting."""
