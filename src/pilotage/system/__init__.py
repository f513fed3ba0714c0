"""Facts of the operating system that several packages rely on: process identity, ownership of folders.

Nothing here knows of Kubernetes, and nothing of ours is imported.
"""
