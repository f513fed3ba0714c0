"""Routes on a real Contour and a real Envoy, under load: what is proven holds, and what is only said does not."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilotage.traffic.contract import (
    WHOLE,
    Backend,
    Branch,
    Copies,
    Header,
    Mix,
    Programming,
    RouteStatus,
    Stickiness,
)
from pilotage.traffic.shift import Done, ShiftTimeouts
from tests.support.edge import Place
from tests.traffic.moving import PORT, SLICES, ContourRoutes, Moving, until

KINDS = ("HTTPProxy", "HTTPRoute")
PACE = ShiftTimeouts(settle_seconds=0.1, drain_seconds=20.0, grace_seconds=0.3)


@pytest.fixture
async def contour(edge: Place) -> AsyncIterator[ContourRoutes]:
    async with ContourRoutes.at(edge) as contour:
        yield contour


async def serving(contour: ContourRoutes, kind: str, *, streams: int = 3) -> tuple[Moving, Backend, Backend]:
    """A route whose old service has all of the load, and a new service beside it."""
    old, new = await contour.service(f"old-{kind.lower()}"), await contour.service(f"new-{kind.lower()}")
    moving = contour.moving(kind)
    assert await moving.move(old, timeouts=PACE) == Done(verified=True)
    contour.edge.load(moving.host, streams=streams)
    await answered(contour, moving, old)
    return moving, old, new


async def answered(contour: ContourRoutes, moving: Moving, by: Backend, times: int = 10) -> None:
    """Wait for this many answers of one of them."""
    first = contour.edge.report(moving.host)["answers"].get(by.service, 0)

    async def look() -> RouteStatus:
        enough = contour.edge.report(moving.host)["answers"].get(by.service, 0) >= first + times
        return RouteStatus(Programming.PROGRAMMED if enough else Programming.PENDING)

    await until(look, Programming.PROGRAMMED)


@pytest.mark.parametrize("held_seconds", [0.0, 2.0], ids=["at once", "with the feed held for 2 s"])
async def test_no_request_fails_and_no_stream_is_cut_when_an_endpoint_moves(
    contour: ContourRoutes, held_seconds: float
):
    ready = [await serving(contour, kind) for kind in KINDS]
    loop = asyncio.get_running_loop()
    start = loop.time()
    if held_seconds:
        contour.edge.hold()
        loop.call_later(held_seconds, contour.edge.release)

    async def moved(moving: Moving, old: Backend, new: Backend) -> dict[str, Any]:
        assert await moving.move(new, old, timeouts=PACE) == Done(verified=True)
        assert loop.time() >= start + held_seconds
        contour.edge.mark(moving.host)
        await contour.take_down(old)
        await answered(contour, moving, new)
        report = contour.edge.stop_load(moving.host)
        assert report["streams"].keys() == {old.service, new.service}
        assert report["after"].keys() == {new.service}
        return report

    for report in await asyncio.gather(*(moved(*each) for each in ready)):
        assert (report["failed"], report["cut"], report["errors"]) == (0, 0, [])


async def test_no_request_fails_when_a_mix_comes_and_goes(contour: ContourRoutes):
    """Into a split with a header rule and copies, and out of it while the feed is held for a second."""
    ready = [await serving(contour, kind, streams=2) for kind in KINDS]
    loop = asyncio.get_running_loop()

    async def mixed(moving: Moving, old: Backend, new: Backend) -> Mix:
        third, shadow = [await contour.service(f"{each}-{moving.name[:12]}") for each in ("third", "shadow")]
        split = (old._replace(weight=60), new._replace(weight=30), third._replace(weight=10))
        branch = Branch((Header("x-team", "research"),), (third,))
        mix = Mix(split, (branch,), (Copies(shadow.service, PORT),))
        assert await moving.move_to(mix, timeouts=PACE) == Done(verified=True)
        for each in split:
            await answered(contour, moving, each, times=3)
        return mix

    async def ended(moving: Moving, mix: Mix, new: Backend) -> dict[str, Any]:
        others = mix.services - {new.service}
        assert await moving.move_to(Mix((new,)), others, timeouts=PACE) == Done(verified=True)
        contour.edge.mark(moving.host)
        for each in others:
            await contour.take_down(Backend(each, PORT))
        await answered(contour, moving, new)
        return contour.edge.stop_load(moving.host)

    mixes = await asyncio.gather(*(mixed(*each) for each in ready))
    contour.edge.hold()
    loop.call_later(1.0, contour.edge.release)
    moves = zip(ready, mixes, strict=True)
    for report in await asyncio.gather(*(ended(moving, mix, new) for (moving, _, new), mix in moves)):
        assert (report["failed"], report["cut"], report["errors"]) == (0, 0, [])
        assert len(report["after"]) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_by_the_routers_word_alone_the_same_move_loses_requests(contour: ContourRoutes, kind: str):
    moving, old, new = await serving(contour, kind)
    contour.edge.hold()
    assert await moving.move(new, timeouts=ShiftTimeouts(0.1, 0.0, 0.0), proven=False) == Done(verified=False)
    contour.edge.mark(moving.host)
    await answered(contour, moving, old)  # it is said to have no route any more
    await contour.take_down(old)

    async def look() -> RouteStatus:
        report = contour.edge.report(moving.host)
        return RouteStatus(Programming.PROGRAMMED if report["failed"] >= 10 else Programming.PENDING)

    await until(look, Programming.PROGRAMMED)
    contour.edge.release()
    report = contour.edge.stop_load(moving.host)
    assert report["after"][old.service] >= 1
    assert report["cut"] >= 1
    assert any(each in ("503", "stream: 503") for each in report["errors"]), report["errors"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_is_pending_until_envoy_has_it_whatever_the_router_says(contour: ContourRoutes, kind: str):
    moving, old, new = await serving(contour, kind, streams=0)
    contour.edge.stop_load(moving.host)
    contour.edge.hold()
    weights = (old, new._replace(weight=0))
    await moving.write(*weights)
    said = await moving.said(Programming.ACCEPTED)
    seen = await moving.seen(moving.expect(*weights))
    assert seen.programming is Programming.PENDING
    assert f"sends {moving.host}/ to {contour.namespace}/{old.service}:8080" in seen.text
    assert said.in_flight == {}
    contour.edge.release()
    assert await moving.until(moving.expect(*weights)) == RouteStatus(
        Programming.PROGRAMMED,
        {},
        "programmed in 1 of 1 Envoys",
        effective={old.service: 100.0, new.service: 0.0},
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deleted_route_is_gone_when_envoy_has_let_go_and_its_streams_are_counted_on(
    contour: ContourRoutes, kind: str
):
    service = await contour.service(f"only-{kind.lower()}")
    moving = contour.moving(kind)
    await moving.move(service, timeouts=PACE)
    contour.edge.load(moving.host, clients=0, streams=1, seconds=1.5)
    gone = moving.expect(counted=frozenset({service.service}))

    async def streaming() -> RouteStatus:
        seen = await moving.seen(gone)
        return seen if seen.in_flight_to(gone.counted) else RouteStatus(Programming.REJECTED)

    seen = await until(streaming, Programming.PENDING)
    assert seen.in_flight == {service.service: 1}
    assert f"still has a route from {moving.host}/ to {contour.namespace}/{service.service}:8080" in seen.text
    await contour.remove(moving.resource, moving.name)
    assert (await moving.until(gone)).in_flight == {service.service: 1}
    assert (await moving.seen(moving.expect())).programming is Programming.PROGRAMMED  # no route at all

    async def drained() -> RouteStatus:
        seen = await moving.seen(gone)
        return seen if seen.in_flight == {service.service: 0} else RouteStatus(Programming.PENDING)

    await until(drained, Programming.PROGRAMMED)
    assert contour.edge.stop_load(moving.host)["cut"] == 0


async def test_a_service_without_an_address_does_not_count_as_reachable(contour: ContourRoutes):
    empty = await contour.service("a-service-whose-name-is-so-long-that-contour-cuts-it", empty=True)
    moving = contour.moving("HTTPProxy", path="/v1")
    await moving.write(empty)
    await moving.until(moving.expect(empty))
    wanted = moving.expect(empty, reachable=frozenset({empty.service}))
    seen = await moving.seen(wanted)
    assert seen.programming is Programming.PENDING
    assert seen.text.endswith(f"knows no address of {contour.namespace}/{empty.service}")
    await contour.open(empty.service)
    await moving.until(wanted)
    await contour.remove(SLICES, empty.service)
    await moving.until(wanted, Programming.PENDING)


async def test_routers_say_why_they_refuse(contour: ContourRoutes):
    absent = Backend("not-there", 8080, WHOLE)
    proxy, route = contour.moving("HTTPProxy"), contour.moving("HTTPRoute")
    await proxy.write(absent)
    await route.write(absent)
    said = await proxy.said(Programming.REJECTED)
    assert "not-there" in said.text
    assert "not found" in said.text
    said = await route.said(Programming.REJECTED)
    assert said.text.startswith("projectcontour.io/gateway-controller: BackendNotFound: ")
    # Envoy answers by itself, or knows nothing of it: both are no proof.
    assert (await proxy.seen(proxy.expect(absent))).programming is Programming.PENDING
    assert (await route.seen(route.expect(absent))).programming is Programming.PENDING


@pytest.mark.parametrize("kind", KINDS)
async def test_a_header_rule_a_mirror_and_three_weights_are_proven_and_each_difference_is_named(
    contour: ContourRoutes, kind: str
):
    """Real dumps of everything that a mix can have on this kind of route."""
    names = ("main", "second", "third", "shadow")
    main, second, third, shadow = [await contour.service(f"{each}-{kind.lower()}") for each in names]
    moving = contour.moving(kind)
    percent = 25 if kind == "HTTPProxy" else WHOLE
    split = (main._replace(weight=70), second._replace(weight=20), third._replace(weight=10))
    research = (Header("x-team", "research"), Header("x-tier", "a b"))
    mix = Mix(split, (Branch(research, (third,)),), (Copies(shadow.service, PORT, percent),))
    await moving.write_mix(mix)
    seen = await moving.until(moving.expect_mix(mix, reachable=mix.services))
    assert seen.effective == {main.service: 70.0, second.service: 20.0, third.service: 10.0}
    body = await moving.read()
    assert body
    assert moving.router.mix(body) == mix

    where, ns = f"{moving.host}/", contour.namespace
    header = "with x-team: research and x-tier: a b"
    other_team = (Branch((Header("x-team", "sales"),), (third,)),)
    for wanted, what in (
        (mix._replace(backends=(main,)), f"sends {where} to "),
        (mix._replace(branches=(Branch(research, (main,)),)), f"sends {where} {header} to {ns}/{third.service}:8080 1"),
        (mix._replace(branches=()), f"has another rule for {where} {header}"),
        (mix._replace(branches=(*mix.branches, *other_team)), f"has no route for {where} with x-team: sales"),
        (mix._replace(copies=()), f"copies {where} {header} to {ns}/{shadow.service}:8080 {percent} %"),
        (mix._replace(copies=(Copies(main.service, PORT),)), f"copies {where} {header} to {ns}/{shadow.service}:8080"),
        (mix._replace(copies=(Copies(shadow.service, PORT, 7),)), f"copies {where} {header} to {ns}/{shadow.service}"),
        (mix._replace(sticky=Stickiness((("header", "x-user"),))), f"does not assign requests for {where} {header} by"),
        (Mix(), f"still has a route from {where}"),
    ):
        asked = moving.expect_mix(wanted, counted=mix.services)
        status = await moving.seen(asked)
        assert status.programming is Programming.PENDING
        assert f" {what}" in status.text
    only_copies = await moving.seen(moving.expect(counted=frozenset({shadow.service})))
    assert f"still copies requests for {where} {header} to {ns}/{shadow.service}:8080" in only_copies.text


async def test_an_ingress_of_contours_is_proven_too(contour: ContourRoutes):
    first, second = await contour.service("first"), await contour.service("second")
    moving = contour.moving("Ingress", path="/v1")
    await moving.write(first)
    await moving.until(moving.expect(first))
    await moving.write(second)
    await moving.until(moving.expect(second))
    assert (
        await moving.said(Programming.ACCEPTED)
    ).text == "an Ingress has no status that tells whether proxies have it"
