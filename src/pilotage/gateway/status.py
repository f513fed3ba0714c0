"""Status of GatewayRoutes: written only when it changes.

"Programmed" is written when Envoy has acknowledged the version that carries this generation, with the counts of the
Services that have no share: these are read after the acknowledgement, so they only fall, and a number that is out of
date is too high; but where copies, or requests to one revision, still come. The version is that of the moment; other
routes make new ones, which are no news here.
"""

import contextlib
import datetime as dt
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pilotage.api.names import CONFLICTED, GATEWAY_ROUTES
from pilotage.gateway.admin import AdminUnavailable
from pilotage.gateway.claims import ClaimConflict, ClaimedName, ClaimRecord
from pilotage.gateway.counts import Counts
from pilotage.gateway.division import RouteDivision, written_slots
from pilotage.gateway.inputs import ProxiedRoute, read_route
from pilotage.gateway.measuring import Measuring
from pilotage.gateway.program import Program
from pilotage.gateway.records import read_records, written_records
from pilotage.kube import Absent, Client, Json, Object, ObjectKey, merge_patch
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.conditions import find_condition, set_condition
from pilotage.runtime.controller import Context
from pilotage.runtime.types import Result

PENDING_SECONDS = 1.0
"""A change that takes longer is reported as pending."""
POLL_SECONDS = 0.2
"""Interval between two readings of the requests in flight."""
COUNT_SECONDS = 1.0
"""Interval between two writes of counts that are not down to zero."""


class RouteProgress(NamedTuple):
    """The state of a route in Envoy."""

    state: str
    version: str | None = None
    message: str | None = None
    counts: dict[str, int] | None = None
    """Counts by Service. None: not known, the last ones stay."""
    division: RouteDivision | None = None
    """None: not known, what was said of shares stays."""
    measured: list[Json] | None = None
    """None: nothing new, the last ones stay."""
    copies: list[Json] | None = None
    """Numbers of copies by Service. None: as above."""
    conflicts: tuple[ClaimConflict, ...] = ()
    claims: Mapping[ClaimedName, ClaimRecord] | None = None
    """None: not known yet, the last ones stay."""


def status_of(old: Json, route: ProxiedRoute, state: RouteProgress, now: dt.datetime) -> Json:
    """The whole status, from the one before and the state."""
    same = old.get("observedGeneration") == route.generation and old.get("state") == state.state
    status: Json = {"observedGeneration": route.generation, "state": state.state}
    version = old.get("version") if same and old.get("version") else state.version
    if version:
        status["version"] = version
    if state.message:
        status["message"] = state.message
    counts = old.get("counts") if state.counts is None else _written(state.counts)
    if counts:
        status["counts"] = counts
    for name, value in _shares(old, route, state.division).items():
        if value:
            status[name] = value
    for name, value in (("measured", state.measured), ("copies", state.copies)):
        if route.measure and (value or old.get(name)):
            status[name] = value or old[name]
    claims = old.get("claims") if state.claims is None else written_records(state.claims)
    if claims:
        status["claims"] = claims
    conditions = old.get("conditions") or []
    if state.conflicts or find_condition(conditions, CONFLICTED):
        found = set_condition(
            conditions,
            CONFLICTED,
            status=bool(state.conflicts),
            reason=_reason(state.conflicts),
            message="; ".join(each.text for each in state.conflicts),
            generation=route.generation,
            now=now,
        )
        conditions = conditions if found is None else found
    if conditions:
        status["conditions"] = conditions
    return status


def _shares(old: Json, route: ProxiedRoute, division: RouteDivision | None) -> Json:
    if division is None:
        return {name: old.get(name) for name in ("effective", "slots")}
    percents = division.percents()
    services = dict.fromkeys(each.service for each in route.backends)
    effective = [{"service": each, "percent": round(percents.get(each, 0.0), 3)} for each in services]
    return {"effective": effective, "slots": written_slots(route)}


def _reason(conflicts: tuple[ClaimConflict, ...]) -> str:
    if not conflicts:
        return "NoConflict"
    return "HostRefused" if all(each.refused for each in conflicts) else "HeldByAnother"


def _written(counts: dict[str, int]) -> list[Json]:
    return [{"service": service, "inFlight": counts[service]} for service in sorted(counts)]


class RouteStatusController:
    """The reconcile of GatewayRoutes. It writes their status and nothing else."""

    def __init__(
        self,
        context: Context,
        program: Program,
        counts: Counts,
        connected: Callable[[], bool],
        measuring: Measuring,
    ) -> None:
        self._client: Client = context.client
        self._store = context.store
        self._program = program
        self._counts = counts
        self._connected = connected
        self._measuring = measuring
        self._since: dict[tuple[str, int], float] = {}
        self._counted_at: dict[str, float] = {}

    async def __call__(self, key: ObjectKey) -> Result | None:
        """Write the status of one route if it has changed."""
        obj = self._store.get(key)
        if obj is None:
            return None
        route = self._program.wanted.get(obj.meta.uid) or read_route(obj)
        old: Json = obj.get("status", default={}) or {}
        rejection = self._program.rejected.get(route.uid)
        if rejection is not None and rejection.route == route:
            return await self._write(obj, route, old, RouteProgress("Rejected", message=rejection.text))
        if self._program.accepted.get(route.uid) != route:
            return await self._pending(obj, route, old)
        self._since.pop((route.uid, route.generation), None)
        return await self._programmed(obj, route, old)

    async def _pending(self, obj: Object, route: ProxiedRoute, old: Json) -> Result | None:
        since = self._since.setdefault((route.uid, route.generation), monotonic())
        left = since + PENDING_SECONDS - monotonic()
        if left > 0:
            return Result(requeue_after=left)
        why = self._program.problem or (
            "Envoy has not acknowledged it yet" if self._connected() else "there is no Envoy that could take it"
        )
        return await self._write(obj, route, old, RouteProgress("Pending", message=why))

    async def _programmed(self, obj: Object, route: ProxiedRoute, old: Json) -> Result | None:
        snapshot = self._program.snapshot
        assert snapshot is not None
        told = {each["service"]: each["inFlight"] for each in old.get("counts") or ()}
        clusters = self._counted(route, told)
        live = route.live() & {name for names in clusters.values() for name in names}
        current = old.get("observedGeneration") == route.generation and old.get("state") == "Programmed"
        if current:  # by this process, or by the one before it: nothing was left, and nothing has come since
            zeros = [each for each, number in told.items() if number == 0]
            self._counts.settle(name for each in zeros for name in clusters.get(each, ()))
        if live or any(self._counts.of(name) != 0 for names in clusters.values() for name in names):
            try:
                await self._counts.refresh()
            except AdminUnavailable:
                if not current:
                    await self._write(obj, route, old, self._progress(route, None))
                return Result(requeue_after=POLL_SECONDS)
        counts: dict[str, int] = {}
        unknown = False
        for service, names in clusters.items():
            known = [number for name in names if (number := self._counts.of(name)) is not None]
            unknown = unknown or len(known) < len(names)
            counts[service] = sum(known)
        if unknown or self._program.accepted.get(route.uid) != route:
            return Result(requeue_after=POLL_SECONDS)  # it changed while it was counted
        open_ones = any(counts.values())
        zero_is_news = any(number == 0 and told.get(service) != 0 for service, number in counts.items())
        due = monotonic() - self._counted_at.get(route.uid, float("-inf")) >= COUNT_SECONDS
        again = None
        if not current or not open_ones or zero_is_news or due:
            again = await self._write(obj, route, old, self._progress(route, counts))
            self._counted_at[route.uid] = monotonic()
        if open_ones:
            return Result(requeue_after=POLL_SECONDS)
        self._counted_at.pop(route.uid, None)
        return again or (Result(requeue_after=COUNT_SECONDS) if live else None)

    def _progress(self, route: ProxiedRoute, counts: dict[str, int] | None) -> RouteProgress:
        snapshot = self._program.snapshot
        assert snapshot is not None
        return RouteProgress("Programmed", snapshot.version, counts=counts, division=snapshot.divisions.get(route.uid))

    def _counted(self, route: ProxiedRoute, told: dict[str, int]) -> dict[str, list[str]]:
        """The clusters of the Services of a route that have no share of the requests, by Service.

        Copies, and requests to one revision, can still come to some of them: their count can rise again.
        """
        namespace = route.key.namespace
        given = {each.service for backends in route.shared_out() for each in backends if each.weight}
        found: dict[str, list[str]] = {}
        for name, needed in route.clusters().items():
            if needed.name not in given:
                found.setdefault(needed.name, []).append(name)
        named = {each.name for each in route.clusters().values()}
        left = self._program.left(route.uid)
        for name in left:
            found.setdefault(name.split("_")[1], []).append(name)
        for service in told.keys() - named - found.keys():
            if kept := self._program.kept(namespace, service):
                found[service] = kept
        return found

    async def _write(self, obj: Object, route: ProxiedRoute, old: Json, state: RouteProgress) -> Result | None:
        """Say it, with the names that the route has and those that it waits for; again soon where that is not all."""
        snapshot = self._program.snapshot
        claim = snapshot.claims.get(route.uid) if snapshot is not None else None
        waits_for = {each.name: each.holder for each in claim.conflicts} if claim is not None else {}
        records = self._program.records.get(route.uid, {})
        # After that of the holder: see `claims`.
        claims = {name: each for name, each in records.items() if each.held or self._recorded(waits_for.get(name))}
        status = status_of(
            old,
            route,
            state._replace(
                conflicts=claim.conflicts if claim is not None else (),
                claims=None if snapshot is None else claims,
                measured=self._measuring.report(route.uid) or None,
                copies=self._measuring.copied(route),
            ),
            utc_now(),
        )
        if status != old:
            changes = {name: None for name in old if name not in status} | status
            patch = merge_patch({"metadata": {"uid": obj.meta.uid}, "status": changes})
            with contextlib.suppress(Absent):
                await self._client.patch(GATEWAY_ROUTES, obj.key, patch, subresource="status")
        return Result(requeue_after=POLL_SECONDS) if snapshot is not None and len(claims) < len(records) else None

    def _recorded(self, uid: str | None) -> bool:
        """Whether the status of a holder says what it holds. Empty: there is none; None: it is not known who it is."""
        if not uid:
            return uid is not None
        route = self._program.wanted.get(uid)
        obj = None if route is None else self._store.get(route.key)
        if obj is None or obj.meta.uid != uid:
            return False
        said = read_records(obj)
        return all(said.get(name) == each for name, each in self._program.records.get(uid, {}).items() if each.held)
