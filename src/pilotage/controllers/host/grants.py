"""The Services that the agent of each Host may give addresses to: those of the processes placed on it.

It is written down in one object, which agents cannot write, before a process is placed. An admission policy reads it
when an agent writes an EndpointSlice (`operator.policies`): so the key of one agent redirects no Service but those that
its Host serves anyway. A grant goes when the last process of its Service on that Host is gone.
"""

from collections.abc import Iterable

from pilotage.api.names import GRANTED, HOST_SERVICES
from pilotage.kube import Absent, Client, Object, ObjectKey, merge_patch
from pilotage.runtime.store import Store

KEY = ObjectKey("", GRANTED)

Granted = dict[str, frozenset[str]]
"""Services of each Host as NAMESPACE/NAME, by Host."""


def service_of(process: Object) -> str:
    """The Service of a process, as it is granted."""
    return f"{process.meta.namespace}/{process.get('spec', 'service', default='')}"


def needed(processes: Iterable[Object], hosts: Store) -> Granted:
    """The grants that placed processes need, on Hosts that exist: other names may be invented by anybody."""
    found: dict[str, set[str]] = {}
    for each in processes:
        host = each.get("spec", "host", default=None)
        if host and hosts.get(ObjectKey("", host)) is not None:
            found.setdefault(host, set()).add(service_of(each))
    return {host: frozenset(services) for host, services in found.items()}


class Grants:
    """The object, as it was last read or written. One task at a time may use it."""

    def __init__(self, client: Client, watched: str = "") -> None:
        """`watched`: the only namespace of this operator; grants for other namespaces are left alone."""
        self._client = client
        self._watched = watched
        self._known: Granted | None = None

    @property
    def are_known(self) -> bool:
        """Whether they were read or written."""
        return self._known is not None

    async def add(self, host: str, service: str) -> None:
        """Let an agent serve a Service. Raises ApiError."""
        if self._known is None or service not in self._known.get(host, ()):
            await self._change({host: frozenset({service})}, None)

    async def settle(self, wanted: Granted) -> None:
        """Grant exactly this."""
        known = self._known
        if known is None or self._of_ours(known) != wanted:
            await self._change(wanted, wanted)

    def _of_ours(self, granted: Granted) -> Granted:
        """The grants of the watched namespaces."""
        found = {host: frozenset(filter(self._is_ours, services)) for host, services in granted.items()}
        return {host: services for host, services in found.items() if services}

    def _is_ours(self, service: str) -> bool:
        return not self._watched or service.startswith(f"{self._watched}/")

    async def _change(self, more: Granted, only: Granted | None) -> None:
        """Read, add `more`, remove what is not in `only` (None: nothing), write. Conflict if somebody else wrote."""
        try:
            found = await self._client.get(HOST_SERVICES, KEY)
        except Absent:
            found = None
        before = _read(found)
        after = {
            host: frozenset(
                {each for each in before.get(host, ()) if only is None or not self._is_ours(each)}
                | more.get(host, set())
            )
            for host in {*before, *more}
        }
        changes = {host: sorted(each) or None for host, each in after.items() if each != before.get(host)}
        if changes and found is not None:
            patch = merge_patch({"spec": {"hosts": changes}}, resource_version=found.meta.resource_version)
            await self._client.patch(HOST_SERVICES, KEY, patch)
        elif changes:
            await self._client.create(HOST_SERVICES, {"metadata": {"name": GRANTED}, "spec": {"hosts": changes}})
        self._known = {host: services for host, services in after.items() if services}


def _read(found: Object | None) -> Granted:
    hosts = (found.get("spec", "hosts", default=None) or {}) if found is not None else {}
    return {host: frozenset(services) for host, services in hosts.items()}
