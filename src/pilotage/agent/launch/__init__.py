"""Processes of the host: how a server is started, told from all others, and ended for good.

Nothing here knows the Kubernetes API. Everything is plain system calls, which are quick; only waiting is asynchronous.
"""
