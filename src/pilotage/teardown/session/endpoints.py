"""A request for endpoints: their operator takes them down where one runs, or may run; else this process does."""

from collections.abc import Iterable
from typing import Protocol

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import (
    ENDPOINT_FINALIZER,
    ENDPOINTS,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    TEARDOWN_DONE,
    TEARDOWNS,
)
from pilotage.api.teardown import StoredTeardown
from pilotage.kube import Absent, ApiError, Client, KindNotServed, Object, ObjectKey, UnknownKind
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.remedies import strip_command
from pilotage.teardown.planning.arguments import parse
from pilotage.teardown.planning.ledger import Entry
from pilotage.teardown.session import Session
from pilotage.teardown.session.operator_lease import OperatorPresence, find_operator
from pilotage.teardown.session.operator_teardown import OperatorTeardown
from pilotage.teardown.session.request import RequestProblem, RequestRefused, TeardownRequest, is_endpoint_kind
from pilotage.teardown.session.teardown_record import is_of_deletion, left_by, planned
from pilotage.teardown.snapshot.fields import text
from pilotage.teardown.snapshot.world import Name


class Notify(Protocol):
    """A front end that tells the person who asked."""

    def __call__(self, said: str, command: str = "", /) -> None:
        """A sentence, or a RequestProblem; and the command that the sentence ends in, if it does."""


async def plan_endpoints(
    session: Session, request: TeardownRequest, notify: Notify
) -> OperatorTeardown | TeardownRequest:
    """An `OperatorTeardown` if endpoints alone are meant and their operator runs, or may run; else the request that is
    left to `plan`. Changes nothing. `notify` gets sentences for the person who asked, or a RequestProblem.
    Raises TargetError, ApiError.
    """
    names = await _endpoints_named(session, request)
    if not names:
        return request
    client = session.client
    here = request.namespace or client.namespace
    found, absent = [], []
    for name in dict.fromkeys(names):
        try:
            found.append(await client.get(ENDPOINTS, ObjectKey(here, name)))
        except Absent:
            absent.append(Name(ENDPOINTS.group, ENDPOINTS.kind, here, name))
    operator = await find_operator(client)
    places = dict.fromkeys((here, operator.namespace or here))
    gone = [left_by(each) for name in absent for each in await _unfinished(client, name, places, notify)]
    if operator.alive is False:
        return await _by_this_process(client, request, found, gone, operator, notify)
    if request.keep or request.drain:
        raise RequestRefused(RequestProblem.KEEPS_BY_SPEC)
    if operator.alive is None:
        notify(f"It is left to the operator; {operator.text}.")
    absent = [name for name in absent if name.name not in {obj.meta.name for obj in gone}]
    return OperatorTeardown(session, operator, found, absent, request.timeout, gone=gone)


async def _unfinished(client: Client, name: Name, places: Iterable[str], notify: Notify) -> list[Object]:
    """The records of an endpoint that is not there any more, and whose parts still go."""
    found = []
    for place in places:
        try:
            records = (await client.list(TEARDOWNS, place, labels=f"{LABEL_ENDPOINT}={name.name}")).items
        except ApiError as error:
            notify(f"Whether something is left of {name} could not be read: {error.message}")
            continue
        for record in records:
            seen = StoredTeardown.of(record)
            namespace, called, uid = (text(seen.spec, "target", field) for field in ("namespace", "name", "uid"))
            mine = (namespace, called) == (name.namespace, name.name)
            if mine and is_of_deletion(seen, uid) and seen.status.phase != TEARDOWN_DONE:
                notify(f"{name} is gone, but what was made for it is not: teardown/{record.meta.name} -n {place}.")
                found.append(record)
    return found


async def _endpoints_named(session: Session, request: TeardownRequest) -> list[str]:
    """The names of the endpoints that are meant, if nothing else is."""
    if not request.words or request.selector or request.everything or request.files:
        return []
    named = parse(request.words).named
    if not named or not all(is_endpoint_kind(kind) for kind, _ in named):
        return []
    for kind, _ in named:
        try:
            resource = (await session.discovery.find(kind)).resource
        except UnknownKind:
            return []
        if (resource.group, resource.kind) != (ENDPOINTS.group, ENDPOINTS.kind):
            return []
    return [name for _, name in named]


async def _by_this_process(
    client: Client,
    request: TeardownRequest,
    found: list[Object],
    gone: list[Object],
    operator: OperatorPresence,
    notify: Notify,
) -> TeardownRequest:
    """The request with the parts of the endpoints, because no operator removes them; with ``adopt`` only."""
    notify(f"No operator runs: {operator.text}. So this is done from here.")
    if not request.adopt:
        notify(RequestProblem.NOT_ADOPTED)
        return request
    for obj in found:
        command = strip_command(f"servingendpoint/{obj.meta.name} -n {obj.meta.namespace}", ENDPOINT_FINALIZER)
        notify(
            f"{obj.ref} itself is held for the operator. Once its parts are gone, let go of it without one:", command
        )
    words = [f"{kind}/{name}" for kind, name in parse(request.words).named]
    keep, drain = list(request.keep), request.drain
    for obj in (*found, *gone):
        ledger = planned(StoredEndpoint.of(obj), utc_now())
        for entry in ledger.entries:
            if entry.uid != obj.meta.uid and await _is_part(client, entry, obj.meta.uid, notify):
                words.append(_word(entry))
                keep += [_word(entry)] if entry in ledger.kept else []
        drain = max(drain, ledger.policy.drain_seconds)
    return request._replace(words=tuple(words), keep=tuple(keep), drain=drain)


def _word(entry: Entry) -> str:
    """Argument that names an entry unambiguously."""
    kind, version, group = entry.resource.kind, entry.resource.version, entry.resource.group
    return f"{kind}.{version}.{group}/{entry.name}" if group else f"{kind}/{entry.name}"


async def _is_part(client: Client, entry: Entry, uid: str, notify: Notify) -> bool:
    """Whether an object was made for an endpoint: another one of that name is somebody else's."""
    try:
        found = await client.get(entry.resource, entry.key, metadata_only=True)
    except Absent:
        return False
    except KindNotServed:
        notify(f"{entry} is left out: its kind is not served, so whether it is there is unknown.")
        return False
    return found.meta.labels.get(LABEL_ENDPOINT_UID) == uid
