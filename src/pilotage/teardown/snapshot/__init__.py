"""The observed state of a cluster, live or from a dump: objects by uid and name, and which kinds could not be read.

Nothing here decides what is deleted.
"""
