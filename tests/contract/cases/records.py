"""Events, in both of their APIs, and Leases, as leader election uses them."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import LEASES, lease, obj

theme = Theme("record")
NEW = "events.k8s.io/v1/events"


def event(kit: Kit, **fields: Any) -> Any:
    """A core/v1 Event."""
    about = {"kind": "Pod", "apiVersion": "v1", "name": "p", "namespace": kit.ns, "uid": "u"}
    return obj("v1", "Event", "e", involvedObject=about, reason="Tested", message="words", type="Normal", **fields)


def newer(kit: Kit, **fields: Any) -> Any:
    """An events.k8s.io/v1 Event."""
    body = {
        "eventTime": "2001-02-03T04:05:06.000001Z",
        "reportingController": "example.com/contract",
        "reportingInstance": "me",
        "action": "Testing",
        "reason": "Tested",
        "regarding": {"kind": "Pod", "name": "p", "namespace": kit.ns},
        "note": "words",
        "type": "Normal",
    }
    return obj("events.k8s.io/v1", "Event", "e", **(body | fields))


@theme.case()
async def event_of_the_old_api(kit: Kit) -> None:
    times = {"firstTimestamp": "2001-02-03T04:05:06Z", "lastTimestamp": "2001-02-03T04:05:07Z", "count": 2}
    await kit.create("events", event(kit, source={"component": "c", "host": "h"}, **times))
    await kit.get(NEW, "e")


@theme.case()
async def event_of_the_new_api(kit: Kit) -> None:
    await kit.create(NEW, newer(kit))
    await kit.get("events", "e")


@theme.case()
async def event_series(kit: Kit) -> None:
    await kit.quiet.create(NEW, newer(kit))
    series = {"count": 2, "lastObservedTime": "2001-02-03T04:05:07.000001Z"}
    await kit.patch(NEW, "e", {"series": series})
    await kit.get("events", "e")


@theme.case()
async def event_without_object(kit: Kit) -> None:
    await kit.create("events", obj("v1", "Event", "e", reason="r"))


@theme.case()
async def event_of_another_namespace(kit: Kit) -> None:
    await kit.create("events", event(kit) | {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "other"}})
    await kit.create("events", event(kit) | {"involvedObject": {"kind": "Node", "name": "n"}})


@theme.case()
async def event_of_the_new_api_incomplete(kit: Kit) -> None:
    await kit.create(NEW, newer(kit, reportingController=""))
    await kit.create(NEW, newer(kit, eventTime=None))
    await kit.create(NEW, newer(kit, type="Loud"))
    await kit.create(NEW, newer(kit, note="x" * 1100))
    await kit.create(NEW, newer(kit, action=""))
    await kit.create(NEW, newer(kit, deprecatedCount=3))


@theme.case()
async def event_of_the_new_api_is_immutable(kit: Kit) -> None:
    await kit.quiet.create(NEW, newer(kit))
    await kit.patch(NEW, "e", {"note": "other"})
    await kit.patch(NEW, "e", {"reason": "Other", "metadata": {"labels": {"a": "b"}}})


@theme.case()
async def event_counted_up(kit: Kit) -> None:
    await kit.quiet.create("events", event(kit, count=1))
    await kit.patch("events", "e", {"count": 2, "lastTimestamp": "2001-02-03T04:05:07Z"})


@theme.case()
async def event_watched_in_both_apis(kit: Kit) -> None:
    version = (await kit.quiet.list("events")).rv
    async with kit.watch(NEW, resourceVersion=version) as watch:
        await kit.quiet.create("events", event(kit))
        await watch.take(1)


@theme.case()
async def event_listed_in_both_apis(kit: Kit) -> None:
    await kit.quiet.create("events", event(kit))
    brief = kit.picking(lambda b: [b["kind"], b["apiVersion"], [sorted(i) for i in b["items"]]])
    await brief.list("events")
    await brief.list(NEW)
    await brief.list(NEW, fieldSelector="reason=Tested,regarding.name=p")
    await kit.list(NEW, fieldSelector="involvedObject.name=p")


@theme.case()
async def lease_taken_over(kit: Kit) -> None:
    made = await kit.create(LEASES, lease("a", holderIdentity="one", leaseDurationSeconds=15, leaseTransitions=0))
    body = made.body
    body["spec"] |= {"holderIdentity": "two", "leaseTransitions": 1, "renewTime": "2001-02-03T04:05:06.123456Z"}
    await kit.put(LEASES, "a", body)
    body["spec"]["holderIdentity"] = "three"
    await kit.put(LEASES, "a", body)


@theme.case()
async def lease_validation(kit: Kit) -> None:
    await kit.create(LEASES, lease("a", leaseDurationSeconds=-1))
    await kit.create(LEASES, lease("b", holderIdentity=""))
    await kit.create(LEASES, lease("c", strategy="OldestEmulationVersion"))


@theme.case()
async def lease_time_keeps_microseconds(kit: Kit) -> None:
    await kit.create(
        LEASES, lease("a", renewTime="2001-02-03T04:05:06.1234567Z", acquireTime="2001-02-03T06:05:06.5+02:00")
    )
