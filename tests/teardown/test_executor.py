"""The executor with both observers. How it ends under faults is tested in `tests/sim`."""

from __future__ import annotations

import random

from pilotage.kube.wire import format_time
from pilotage.runtime.clock import utc_now
from pilotage.teardown.engine.executor import watching
from pilotage.teardown.planning.ledger import Ledger
from pilotage.teardown.planning.policy import Policy
from pilotage_sim.loop import virtual
from pilotage_sim.world import World
from tests.teardown.onharbor import CONFIG_MAPS, config_map, entry_of, unmake


@virtual
async def test_another_object_of_the_name_is_not_waited_for_and_not_touched():
    async with World() as world:
        client = world.client("me")
        mine = await config_map(client)
        await unmake(client, mine)
        other = await config_map(client)
        ledger = Ledger(
            targets=("configmap/one",), started=format_time(utc_now()), policy=Policy(), entries=(entry_of(mine),)
        )
        outcome = await watching(client, ledger, rng=random.Random(1)).run()
        assert outcome.complete
        assert outcome.asked_at == {}
        assert outcome.proof is not None
        assert outcome.proof.taken == {mine.meta.uid: other.meta.uid}
        assert (await client.get(CONFIG_MAPS, other.key)).meta == other.meta
