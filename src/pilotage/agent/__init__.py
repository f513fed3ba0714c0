"""The host agent: runs the servers that are placed on this machine, and lets the cluster know their addresses."""
