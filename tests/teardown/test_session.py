"""Any front end plans, executes and resumes teardowns through `pilotage.teardown.session`, without the command line."""

import asyncio
import datetime as dt
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from pilotage.kube import Absent, Client, Discovery, ObjectKey, Propagation, Resource, load_config, merge_patch
from pilotage.kube.http import HttpTransport
from pilotage.kube.transport import Request, Response, Transport
from pilotage.teardown.engine.decision import Decision
from pilotage.teardown.engine.progress import Step
from pilotage.teardown.engine.receipt import load
from pilotage.teardown.planning.arguments import TargetError
from pilotage.teardown.session import Session
from pilotage.teardown.session.execution import Execution
from pilotage.teardown.session.preparation import plan
from pilotage.teardown.session.reading import read_named
from pilotage.teardown.session.request import RequestError, TeardownRequest
from pilotage.teardown.session.resumption import resume
from tests.contract.server import Place, harbor
from tests.support.kinds import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, config_map, deployment
from tests.support.transports import answer

HOLD = "acme.example/hold"
SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[Place]:
    with harbor() as place:
        yield place


@pytest.fixture
async def session(server: Place) -> AsyncIterator[Session]:
    config = load_config(kubeconfig=str(server.kubeconfig))
    async with Client.connect(config) as client:
        yield Session(client, Discovery(client), config.server)


async def make(session: Session, name: str, **metadata: Any) -> None:
    await session.client.create(CONFIG_MAPS, config_map(name, **metadata), namespace="default")
    await session.client.create(DEPLOYMENTS, deployment(name), namespace="default")


async def is_there(session: Session, resource: Resource, name: str) -> bool:
    try:
        await session.client.get(resource, ObjectKey("default", name))
    except Absent:
        return False
    return True


async def let_go(session: Session, name: str) -> None:
    patch = merge_patch({"metadata": {"finalizers": None}})
    await session.client.patch(CONFIG_MAPS, ObjectKey("default", name), patch)


async def front_end(place: Place, receipt: Path, *words: str) -> dict[str, Any]:
    """The front end of another program, as a process of its own."""
    program = [sys.executable, "-m", "tests.teardown.front_end", str(place.kubeconfig), str(receipt), *words]
    ran = await asyncio.to_thread(subprocess.run, program, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


async def test_a_second_front_end_executes_and_resumes_without_the_command_line(
    server: Place, session: Session, tmp_path: Path
) -> None:
    await make(session, "web", finalizers=[HOLD])
    receipt = tmp_path / "r.json"
    told = await front_end(server, receipt, "deployment/web", "configmap/web")
    assert told == {
        "planned": ["deployment/web -n default", "configmap/web -n default"],
        "result": "incomplete",
        "complete": False,
        "gone": 1,
        "blockers": ["configmap/web -n default: finalizer"],
        "heard": ["asked", "gone"],
        "decisions": True,
        "command_line": [],
    }
    await let_go(session, "web")
    told = await front_end(server, receipt)
    assert (told["result"], told["complete"], told["blockers"]) == ("complete", True, [])
    assert told["command_line"] == []
    assert load(receipt).result == "complete"
    assert not await is_there(session, CONFIG_MAPS, "web")


async def test_a_plan_changes_nothing_and_says_what_is_absent(session: Session) -> None:
    await make(session, "planned")
    request = TeardownRequest(("deploy/planned", "cm/missing"), namespace="default")
    prepared = await plan(session, request)
    assert [str(entry) for entry in prepared.ledger.going] == ["deployment/planned -n default"]
    assert [str(name) for name in prepared.absent] == ["configmap/missing -n default"]
    assert await is_there(session, DEPLOYMENTS, "planned")


async def test_a_target_without_a_namespace_is_planned_with_its_parts_in_all_of_them(session: Session) -> None:
    await make(session, "here")
    await session.client.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    role = await session.client.create(CLUSTER_ROLES, {"metadata": {"name": "owner"}})
    owner = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "owner", "uid": role.meta.uid}
    owned = config_map("owned", ownerReferences=[owner])
    await session.client.create(CONFIG_MAPS, owned, namespace="elsewhere")
    request = TeardownRequest(("cm/here", "clusterrole/owner"), namespace="default")
    going = {str(entry) for entry in (await plan(session, request)).ledger.going}
    assert going == {"configmap/here -n default", "clusterrole/owner", "configmap/owned -n elsewhere"}


@pytest.mark.parametrize(
    "request_",
    [
        TeardownRequest(),
        TeardownRequest(everything=True),
        TeardownRequest(("cm/a",), namespace="default", everything=True),
        TeardownRequest(("cm/a",), selector="app=web"),
        TeardownRequest(("cm/a",), namespace="default", keep=("everything",)),
    ],
)
async def test_a_request_that_could_mean_too_much_is_refused(session: Session, request_: TeardownRequest) -> None:
    with pytest.raises(RequestError):
        await plan(session, request_)


async def test_nothing_is_done_where_no_receipt_can_be_written(session: Session, tmp_path: Path) -> None:
    await make(session, "unwritten")
    prepared = await plan(session, TeardownRequest(("cm/unwritten",), namespace="default"))
    execution = Execution(session, prepared, receipt=tmp_path / "no" / "folder.json")
    with pytest.raises(TargetError, match="Nothing was done"):
        await execution.run()
    assert await is_there(session, CONFIG_MAPS, "unwritten")


async def test_one_that_is_stopped_says_so_and_can_be_resumed(session: Session, tmp_path: Path) -> None:
    await make(session, "stopped")
    request = TeardownRequest(("deploy/stopped", "cm/stopped"), namespace="default")
    execution = Execution(session, await plan(session, request), receipt=tmp_path / "r.json")
    execution.stop()
    result = await execution.run()
    assert (result.stopped, result.complete, result.gone) == (True, False, 0)
    assert await is_there(session, DEPLOYMENTS, "stopped")
    resumed = await resume(session, tmp_path / "r.json", 60)
    assert (resumed.added, resumed.gone) == ((), ())
    result = await Execution(session, resumed.prepared, receipt=tmp_path / "r.json").run()
    assert (result.stopped, result.receipt.result) == (False, "complete")


async def test_what_is_gone_by_now_is_not_in_the_plan_that_is_shown(session: Session, tmp_path: Path) -> None:
    await make(session, "half")
    request = TeardownRequest(("deploy/half", "cm/half"), namespace="default")
    execution = Execution(session, await plan(session, request), receipt=tmp_path / "r.json")
    execution.stop()
    await execution.run()
    found = await session.client.get(CONFIG_MAPS, ObjectKey("default", "half"))
    await session.client.delete(CONFIG_MAPS, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
    resumed = await resume(session, tmp_path / "r.json", 60)
    assert [str(entry) for entry in resumed.gone] == ["configmap/half -n default"]
    assert [str(entry) for entry in resumed.left.ledger.going] == ["deployment/half -n default"]
    assert len(resumed.prepared.ledger.going) == 2


async def test_what_was_found_on_the_way_is_in_the_receipt_before_it_ends(session: Session, tmp_path: Path) -> None:
    """So a teardown that is cut off can be resumed with all of it."""
    await session.client.create(CONFIG_MAPS, config_map("held", finalizers=[HOLD]), namespace="default")
    request = TeardownRequest(("cm/held",), namespace="default")
    prepared = await plan(session, request)
    heard = Steps()
    running = asyncio.create_task(Execution(session, prepared, receipt=tmp_path / "r.json").run(heard))
    await heard.until("asked")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "held", "uid": prepared.ledger.going[0].uid}
    newcomer = config_map("newcomer", ownerReferences=[owner], finalizers=[HOLD])
    await session.client.create(CONFIG_MAPS, newcomer, namespace="default")
    await heard.until("found")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    for name in ("held", "newcomer"):
        await let_go(session, name)
    assert {entry.name for entry in load(tmp_path / "r.json").ledger.going} == {"held", "newcomer"}


class Steps:
    """An observer that can be waited for."""

    def __init__(self) -> None:
        self._heard: set[str] = set()
        self._news = asyncio.Event()

    def step(self, step: Step) -> None:
        self._heard.add(step.what)
        self._news.set()

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        pass

    async def until(self, what: str) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while what not in self._heard:
                self._news.clear()
                await self._news.wait()


class OneNamespace:
    """A transport of a user who may list objects in a namespace, and not in all of them."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        everywhere = re.match(r"/(api/v1|apis/[^/]+/[^/]+)/(?!namespaces\b)\w+(\?|$)", request.target)
        if everywhere and request.method == "GET":
            body = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}
            return answer(body, status=403)
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


async def test_who_may_not_read_all_namespaces_reads_that_of_the_object(server: Place) -> None:
    config = load_config(kubeconfig=str(server.kubeconfig))
    async with Client(OneNamespace(HttpTransport(config))) as client:
        session = Session(client, Discovery(client), config.server)
        await make(session, "narrow")
        found = await read_named(session, ["cm/narrow"], "default")
        assert [str(item) for item in found.items] == ["configmap/narrow -n default"]
        assert found.world.find("apps", "Deployment", "default", "narrow") is not None
