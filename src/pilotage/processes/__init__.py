"""Processes of this machine: how one is identified, found, started, kept running and ended for good.

`identity` tells one process from another with the same pid, `census` finds those that belong together, `terminate` ends
them and proves it, `child` keeps a program running, `run_as` starts it as another user; `logfiles` and `ports` are what
a process leaves behind and listens on. Plain system calls; only waiting is asynchronous. Nothing here knows the
Kubernetes API or the programs that are run.
"""
