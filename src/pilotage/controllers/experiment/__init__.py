"""Experiments: when one ends, and what its status says. Variants and routes are the endpoint's controller's."""
