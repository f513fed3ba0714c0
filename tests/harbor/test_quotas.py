"""Quotas where no recorded case can show it: many at a time, custom kinds, after a restart."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.builtin.quantity import Amount
from pilotage_harbor.core.admission import AdmissionAttributes, NoAdmission
from pilotage_harbor.core.quotas import Quotas
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import CONFIG_MAPS, DEFINITIONS, PODS, World, definition

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
STATUS = "application/merge-patch+json"


async def limit(world: World, **hard: str) -> None:
    limits = {name.replace("__", "/").replace("_", "."): value for name, value in hard.items()}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": limits}}
    await world.ask("POST", QUOTAS, body)


async def used(world: World) -> Json:
    await world.settle()
    found: Json = (await world.ask("GET", f"{QUOTAS}/q"))["status"]["used"]
    return found


class Slow(NoAdmission):
    """Takes a second for every answer."""

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        await asyncio.sleep(1)
        return []


@virtual
async def test_of_many_that_are_created_at_a_time_only_as_many_pass_as_there_is_room_for():
    async with World() as world:
        await limit(world, count__configmaps="3")
        world.core.admission = Slow()
        made = await asyncio.gather(*(world.create(CONFIG_MAPS) for _ in range(10)), return_exceptions=True)
        refused = [each for each in made if isinstance(each, StatusError)]
        assert len(refused) == 7
        assert all(each.code == 403 and "exceeded quota: q" in each.message for each in refused)
        await world.settle(5)
        assert await used(world) == {"count/configmaps": "3"}


@virtual
async def test_objects_of_custom_kinds_are_counted():
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle(10)
        await world.create("widgets", "a")
        await limit(world, count__widgets_example_com="1")
        with pytest.raises(StatusError, match=r"used: count/widgets.example.com=1"):
            await world.create("widgets", "b")
        await world.delete("widgets", "a")
        await world.create("widgets", "b")
        assert await used(world) == {"count/widgets.example.com": "1"}


@virtual
async def test_usage_is_what_is_stored_whatever_came_and_went_before():
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "300m"}}}]}
    async with World() as world:
        await limit(world, requests_cpu="2", pods="9", count__pods="9")
        for name in "abc":
            await world.create(PODS, name, spec=spec)
        await world.ask("PATCH", "/api/v1/namespaces/default/pods/a/status", {"status": {"phase": "Failed"}}, STATUS)
        await world.ask("DELETE", "/api/v1/namespaces/default/pods/b", {"gracePeriodSeconds": 0})
        want = {"count/pods": "2", "pods": "1", "requests.cpu": "300m"}
        assert await used(world) == want
        again = Quotas(world.core.store, world.core.registry).status("default", "q")
        assert again is not None
        assert again["used"] == want  # as after a restart


@virtual
async def test_a_quota_that_goes_limits_nothing_and_one_of_another_namespace_never_did():
    async with World() as world:
        await limit(world, count__configmaps="0")
        await world.create("namespaces", "other")
        await world.create(CONFIG_MAPS, "a", "other")
        with pytest.raises(StatusError, match="exceeded quota"):
            await world.create(CONFIG_MAPS, "a")
        await world.ask("DELETE", f"{QUOTAS}/q")
        await world.create(CONFIG_MAPS, "a")


@virtual
async def test_what_somebody_writes_into_the_status_does_not_last_and_does_not_count():
    async with World() as world:
        await limit(world, count__configmaps="1")
        await world.create(CONFIG_MAPS, "a")
        lie = {"status": {"hard": {"count/configmaps": "9"}, "used": {"count/configmaps": "0"}}}
        await world.ask("PATCH", f"{QUOTAS}/q/status", lie, STATUS)
        with pytest.raises(StatusError, match="exceeded quota"):
            await world.create(CONFIG_MAPS, "b")
        assert await used(world) == {"count/configmaps": "1"}


@virtual
@pytest.mark.parametrize("huge", ["1e999", "9" * 1000, "9" * 990 + "Ei", "0." + "1" * 900])
async def test_numbers_of_any_size_are_counted(huge: str):
    resources = {"requests": {"cpu": huge}, "limits": {"cpu": huge}}
    spec = {"containers": [{"name": "main", "image": "i", "resources": resources}]}
    async with World() as world:
        await limit(world, requests_cpu=huge, pods="1e999")
        await world.create(PODS, "a", spec=spec)
        with pytest.raises(StatusError, match=r"exceeded quota: q, requested: requests.cpu="):
            await world.create(PODS, "b", spec=spec)
        await world.ask("DELETE", "/api/v1/namespaces/default/pods/a")
        assert await used(world) == {"pods": "0", "requests.cpu": "0"}


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        ("100m", "900m", "1"),
        ("1Gi", "512Mi", "1536Mi"),
        ("0", "1Gi", "1Gi"),
        ("1G", "1Ki", "1000001024"),
        ("1", "0", "1"),
    ],
)
def test_sums_are_written_in_the_style_of_their_first_part(one, other, total):
    assert str(Amount.of(one).plus(Amount.of(other))) == total
    assert str(Amount.of(total).minus(Amount.of(other)).plus(Amount.of("0"))) == str(Amount.of(one))
