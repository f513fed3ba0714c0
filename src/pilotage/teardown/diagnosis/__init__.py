"""Explanations: why an object is stuck, what would block a teardown, what was left behind, what an object consists of.

Only `fix` writes, and only what a person asked for.
"""
