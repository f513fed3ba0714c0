"""RBAC rules, each with its use; and those of the agent and the gateway, which are installed with the operator's.

Nothing is allowed that has no use.

Each agent has a service account of its own, called like its Host. The rules are the same for all agents, and RBAC
cannot narrow them to one Host: admission policies do (`operator.policies`). So an agent writes its own Host (not its
spec), its own Lease, the status and the finalizer of processes on its Host, and slices with its Host's label for
Services that the operator has granted to its Host. It cannot change what is to run, make or delete Services, or read
any Secret, unless somebody binds `AGENT_READ_SECRETS` in a namespace. It can read all Hosts, HostProcesses and
Services, and write Events.
"""

from typing import NamedTuple

from pilotage.kube import Json

READ = ("get", "list", "watch")
FOLLOW = ("list", "watch")
MAKE = (*READ, "create", "patch", "delete")


class RbacRule(NamedTuple):
    """Verbs on resources of one API group, and their use."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    use: str
    names: tuple[str, ...] = ()
    """The only objects that it is about; empty: all."""

    def written(self) -> Json:
        """Entry of `rules`."""
        made: Json = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return made | {"resourceNames": list(self.names)} if self.names else made


AGENT = (
    RbacRule("pilotage.dev", ("hosts",), ("list", "watch", "create", "patch"), "its own Host, and that Host's labels"),
    RbacRule("pilotage.dev", ("hostprocesses",), (*READ, "patch"), "what it runs; their finalizer"),
    RbacRule("pilotage.dev", ("hosts/status", "hostprocesses/status"), ("patch",), "to say how they are"),
    RbacRule("", ("services",), ("get",), "the owner of an address, and whether it is the endpoint's"),
    RbacRule("discovery.k8s.io", ("endpointslices",), MAKE, "the addresses of its servers"),
    RbacRule("events.k8s.io", ("events",), ("create", "patch"), "to tell people what happens"),
)
"""Rules in all namespaces."""
AGENT_LEASES = (RbacRule("coordination.k8s.io", ("leases",), ("get", "create", "update"), "to say that it lives"),)
"""Rules in the namespace of the Leases of agents."""
AGENT_READ_SECRETS = (RbacRule("", ("secrets",), ("get",), "the credentials of Models"),)
"""Bound by an administrator, in chosen namespaces."""

GATEWAY = (
    RbacRule("pilotage.dev", ("gatewayroutes",), FOLLOW, "which requests go where"),
    RbacRule("pilotage.dev", ("gatewayroutes/status",), ("patch",), "to say what Envoy has made of it"),
    RbacRule("discovery.k8s.io", ("endpointslices",), FOLLOW, "the addresses of Services"),
)
"""Rules in all namespaces."""
