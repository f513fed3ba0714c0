"""Objects as bytes: one version counter, a history for watches, and SQLite behind it.

What the bytes mean is not known here.
"""
