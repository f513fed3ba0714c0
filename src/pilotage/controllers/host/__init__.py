"""The controllers of Hosts and HostProcesses: liveness of agents, scheduling of processes, cleanup of lost Hosts."""
