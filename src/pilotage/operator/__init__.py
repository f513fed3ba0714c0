"""The operator: the controllers in one process on a cluster, and what has to be installed for it."""
