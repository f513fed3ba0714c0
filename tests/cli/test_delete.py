"""``pilotage delete``, as a person meets it: what it asks, refuses and says, and what Ctrl-C and ``--resume`` do.

In which order trees go is tested in `tests/teardown/test_delete_trees.py`.
"""

import contextlib
import json
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from controlplane import Access, Cluster
from controlplane.access import wait_for
from pilotage.kube import (
    Absent,
    Client,
    Discovery,
    KindNotServed,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    merge_patch,
)
from pilotage.teardown.snapshot.gather import gather
from tests.cli.running import NO_SERVER, Ran, ask, run, run_on_terminal
from tests.contract.server import harbor
from tests.support import kinds
from tests.support.waiting import eventually

T = TypeVar("T")
Json = dict[str, Any]

FINALIZER = "acme.example.com/cleanup"
SECONDS_MAX = 30.0
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = Resource("", "v1", "pods", "Pod")
SECRETS = Resource("", "v1", "secrets", "Secret")


class Place(NamedTuple):
    """A namespace of one's own, and who may do all in it."""

    kubeconfig: Path
    namespace: str

    def ask(self, what: Callable[[Client], Awaitable[T]]) -> T:
        """One thing that a client does there."""
        return ask(self.kubeconfig, what)

    def make(self, name: str, *finalizers: str, **labels: str) -> Object:
        """A ConfigMap."""
        body = kinds.config_map(name, finalizers=list(finalizers), labels=labels)
        return self.ask(lambda client: client.create(kinds.CONFIG_MAPS, body, namespace=self.namespace))

    def find(self, name: str) -> Object | None:
        """A ConfigMap, if it is there."""

        async def read(client: Client) -> Object | None:
            with contextlib.suppress(Absent):
                return await client.get(kinds.CONFIG_MAPS, ObjectKey(self.namespace, name))
            return None

        return self.ask(read)

    def let_go(self, name: str) -> None:
        """Take all finalizers off a ConfigMap."""
        patch = merge_patch({"metadata": {"finalizers": None}})
        self.ask(lambda client: client.patch(kinds.CONFIG_MAPS, ObjectKey(self.namespace, name), patch))

    def is_asked_to_go(self, name: str) -> bool:
        """Whether a ConfigMap is Terminating."""
        found = self.find(name)
        return found is not None and bool(found.meta.deletion_timestamp)

    def delete(self, *args: str | Path) -> Ran:
        """Run the command in this process, without a terminal."""
        return run("delete", *args, "-n", self.namespace, kubeconfig=self.kubeconfig)

    def resume(self, *args: str | Path) -> Ran:
        """Run the command in this process, without a terminal; the receipt knows the namespace."""
        return run("delete", "--resume", *args, kubeconfig=self.kubeconfig)


@pytest.fixture(scope="module")
def widgets(server: Path) -> Resource:
    """A kind of one's own, served there."""
    resource = kinds.widgets()

    async def serve(client: Client) -> None:
        await client.create(kinds.CRDS, kinds.definition(resource))
        await eventually(lambda: _is_served(client, resource))

    Place(server, "").ask(serve)
    return resource


async def _is_served(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource)
    except KindNotServed:
        return False
    return True


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Working directory of its own: a receipt without a given path is written into it."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.fixture
def place(server: Path, request: pytest.FixtureRequest) -> Place:
    return _place(server, re.sub(r"[^a-z0-9]+", "-", request.node.name).strip("-")[-60:].strip("-"))


def _place(kubeconfig: Path, namespace: str) -> Place:
    made = Place(kubeconfig, namespace)
    made.ask(lambda client: client.create(kinds.NAMESPACES, {"metadata": {"name": namespace}}))
    return made


def is_as_it_was(place: Place, made: Object) -> bool:
    """Whether an object is unchanged."""
    found = place.find(made.meta.name)
    return found is not None and found.meta.resource_version == made.meta.resource_version


def in_one_sentence(ran: Ran) -> bool:
    return ran.err.startswith("Error: ") and len(ran.err.splitlines()) == 1


# Looking, and being asked


def test_the_receipt_says_which_cluster_it_was(place: Place, tmp_path: Path):
    place.make("a")
    assert place.delete("configmap/a", "--yes", "--receipt", tmp_path / "r.json").code == 0
    system = place.ask(lambda client: client.get(kinds.NAMESPACES, ObjectKey("", "kube-system")))
    assert json.loads((tmp_path / "r.json").read_text())["cluster"] == system.meta.uid


def test_a_dry_run_shows_the_plan_and_changes_nothing(place: Place, tmp_path: Path):
    made = place.make("a")
    ran = place.delete("cm/a", "--dry-run", "--receipt", tmp_path / "r.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Plan: 1 object in 1 step. Predicted blockers: none.")
    assert f"configmap/a -n {place.namespace}" in ran.out
    assert is_as_it_was(place, made)
    assert not list(tmp_path.iterdir())


def test_a_dry_run_for_scripts_is_one_event(place: Place):
    made = place.make("a")
    ran = place.delete("cm/a", "--dry-run", "-o", "json")
    [event] = map(json.loads, ran.out.splitlines())
    assert (ran.code, event["event"]) == (0, "plan")
    assert [each["uid"] for each in event["objects"]] == [made.meta.uid]
    assert is_as_it_was(place, made)


def test_a_dry_run_ends_with_1_where_something_probably_stands_in_the_way(place: Place):
    pod = kinds.pod("user")
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    claim = {
        "metadata": {"name": "data", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }

    async def create(client: Client) -> None:
        await client.create(CLAIMS, claim, namespace=place.namespace)
        await client.create(PODS, pod, namespace=place.namespace)

    place.ask(create)
    ran = place.delete("pvc/data", "--dry-run")
    assert ran.code == 1
    assert "Predicted blockers: 1." in ran.out
    assert f"pod/user -n {place.namespace}" in ran.out


@pytest.mark.parametrize(
    ("keep", "stay"), [("caches", ["chat-cache"]), ("volumes", ["chat-cache", "data"]), ("secrets", [])]
)
def test_what_is_to_be_kept_stays_and_stands_in_the_receipt(place: Place, tmp_path: Path, keep: str, stay: list[str]):
    async def create(client: Client) -> None:
        for name in ("chat-cache", "data"):
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            made = await client.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace=place.namespace)
            # No controller is here that would see that no pod uses it.
            await client.patch(CLAIMS, made.key, merge_patch({"metadata": {"finalizers": None}}))

    place.ask(create)
    place.make("chat-cache")
    receipt = tmp_path / "r.json"
    ran = place.delete("--all", "--keep", keep, "--yes", "--receipt", receipt)
    assert (ran.code, ran.err) == (0, "")
    left = place.ask(lambda client: client.list(CLAIMS, place.namespace)).items
    assert sorted(each.meta.name for each in left) == stay
    told = json.loads(receipt.read_text())["objects"]
    assert sorted(each["name"] for each in told if each["state"] == "kept") == stay
    assert place.find("chat-cache") is None, "a ConfigMap of such a name is no cache"


def test_without_a_terminal_nobody_is_asked_and_nothing_done(place: Place, tmp_path: Path):
    made = place.make("a")
    ran = place.delete("cm/a", "--receipt", tmp_path / "r.json")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert is_as_it_was(place, made)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("typed", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_on_a_terminal_the_plan_is_shown_and_the_answer_counts(place: Place, tmp_path: Path, typed: str, code: int):
    made = place.make("a")
    receipt = tmp_path / "r.json"
    args = ("cm/a", "-n", place.namespace, "--receipt", receipt, "--kubeconfig", place.kubeconfig)
    ran = run_on_terminal("delete", *args, typed=typed)
    assert ran.code == code, ran.out
    shown, asked, _ = ran.out.partition("[y/N]")
    assert asked
    assert f"configmap/a -n {place.namespace}" in shown
    if code:
        assert "Nothing was done." in ran.out
        assert is_as_it_was(place, made)
        assert not receipt.exists()
    else:
        assert place.find("a") is None
        assert json.loads(receipt.read_text())["result"] == "complete"


# Output for scripts


def test_every_line_for_scripts_is_an_event(place: Place, tmp_path: Path):
    made = place.make("a")
    receipt = tmp_path / "r.json"
    ran = place.delete("cm/a", "--yes", "-o", "json", "--receipt", receipt)
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0
    names = [event["event"] for event in events]
    assert (names[0], names[-1]) == ("plan", "end")
    assert names.index("asked") < names.index("gone") < names.index("end")
    assert {event["object"]["uid"] for event in events if event["event"] in ("asked", "gone")} == {made.meta.uid}
    assert (events[-1]["result"], events[-1]["receipt"]) == ("complete", str(receipt))
    assert (events[-1]["gone"], events[-1]["blockers"]) == (1, [])


# Names


def test_what_is_not_there_is_said_and_is_no_failure(place: Place, tmp_path: Path):
    place.make("a")
    ran = place.delete("cm/a", "cm/typo", "--yes", "--receipt", tmp_path / "r.json")
    assert ran.code == 0
    assert f"configmap/typo -n {place.namespace} is not there" in ran.out
    assert place.find("a") is None


def manifest(folder: Path, **metadata: str) -> Path:
    path = folder / "m.yaml"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    return path


def written(path: Path, *bodies: Json) -> Path:
    """Manifests, all in one file."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\n".join(f"{json.dumps(body)}\n" for body in bodies))
    return path


def test_manifests_say_what_goes_and_nothing_else_does(place: Place, tmp_path: Path):
    """Manifests from a file with several, and from a folder with folders in it; other files there are ignored."""
    base = {"apiVersion": "v1", "kind": "ConfigMap"}
    named = {name: base | kinds.config_map(name) for name in ("one", "two", "three", "four")}
    for name in named:
        place.make(name)
    other = place.make("other")
    elsewhere = _place(place.kubeconfig, "not-in-the-manifests")
    namesake = elsewhere.make("one")
    file = written(tmp_path / "file.yaml", named["one"], named["two"])
    folder = written(tmp_path / "manifests" / "a.yml", named["three"]).parent
    written(folder / "deeper" / "b.json", named["four"])
    written(folder / "notes.txt", base | kinds.config_map("other"))
    receipt = tmp_path / "r.json"
    ran = place.delete("-f", file, "-f", folder, "--yes", "--receipt", receipt)
    assert (ran.code, ran.err) == (0, ""), ran
    assert [name for name in named if place.find(name)] == []
    assert is_as_it_was(place, other)
    assert is_as_it_was(elsewhere, namesake)
    told = json.loads(receipt.read_text())
    assert told["result"] == "complete"
    assert {each["name"]: each["state"] for each in told["objects"]} == dict.fromkeys(named, "gone")


def test_what_a_manifest_names_is_found_in_its_own_namespace(place: Place, tmp_path: Path):
    place.make("a")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": place.namespace}}
    file = written(tmp_path / "m.yaml", body)
    ran = run("delete", "-f", file, "--yes", "--receipt", tmp_path / "r.json", kubeconfig=place.kubeconfig)
    assert ran.code == 0, ran
    assert place.find("a") is None


def test_a_kind_without_a_name_means_nothing(place: Place):
    made = place.make("a")
    ran = place.delete("cm", "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert in_one_sentence(ran)
    assert "KIND/NAME" in ran.err
    assert is_as_it_was(place, made)


def test_a_manifest_without_a_name_names_nothing(place: Place, tmp_path: Path):
    ran = place.delete("-f", manifest(tmp_path, generateName="a-"), "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert in_one_sentence(ran)
    assert "generateName" in ran.err


def test_a_namespace_that_is_not_there_is_a_mistake(server: Path):
    ran = run("delete", "-n", "typo", "--all", "--yes", kubeconfig=server)
    assert (ran.code, ran.out) == (2, "")
    assert in_one_sentence(ran)
    assert "namespace" in ran.err
    assert "typo" in ran.err


def test_a_manifest_of_another_namespace_contradicts_the_option(place: Place, tmp_path: Path):
    made = place.make("a")
    elsewhere = _place(place.kubeconfig, "elsewhere")
    other = elsewhere.make("a")
    ran = place.delete("-f", manifest(tmp_path, name="a", namespace="elsewhere"), "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert in_one_sentence(ran)
    assert "elsewhere" in ran.err
    assert place.namespace in ran.err
    assert is_as_it_was(place, made)
    assert is_as_it_was(elsewhere, other)


def test_a_receipt_that_cannot_be_written_is_told_before_anything_is_done(place: Place, tmp_path: Path):
    made = place.make("a")
    ran = place.delete("cm/a", "--yes", "--receipt", tmp_path / "nowhere" / "r.json")
    assert ran.code == 2
    assert in_one_sentence(ran)
    assert "nowhere" in ran.err
    assert is_as_it_was(place, made)


# A whole namespace


def test_a_namespace_is_emptied_but_for_what_kubernetes_puts_there(
    cluster: Access, namespace_for_pods: str, tmp_path: Path
):
    """A real cluster has pods for the Deployment, and puts two objects of its own into each namespace."""
    namespace, receipt = namespace_for_pods, tmp_path / "r.json"
    place = Place(cluster.kubeconfig, namespace)
    web = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}

    async def fill(client: Client) -> None:
        await client.create(kinds.DEPLOYMENTS, kinds.deployment("web"), namespace=namespace)
        await client.create(kinds.SERVICES, web, namespace=namespace)
        await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "mine"}}, namespace=namespace)
        await client.create(SECRETS, {"metadata": {"name": "mine"}}, namespace=namespace)
        await eventually(lambda: _pods_are_there(client, namespace))

    def found() -> dict[tuple[str, str], tuple[str, bool]]:
        """Objects that exist, with their uid and whether they are Terminating; without Events."""
        world = place.ask(lambda client: gather(client, Discovery(client), namespaces=[namespace]))
        here = [
            item
            for item in world
            if namespace in (item.meta.namespace, item.meta.name) and item.resource.kind != "Event"
        ]
        return {(item.resource.kind, item.meta.name): (item.uid, item.terminating) for item in here}

    place.make("mine")
    place.ask(fill)
    before = found()
    ran = place.delete("--all", "--yes", "--receipt", receipt)
    assert (ran.code, ran.err) == (0, ""), ran
    kept = {("Namespace", namespace), ("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
    assert found() == {each: before[each] for each in kept}
    told = json.loads(receipt.read_text())
    assert told["result"] == "complete"
    assert {"Deployment", "ReplicaSet", "Pod", "Service", "Secret", "ConfigMap", "ServiceAccount"} <= {
        each["kind"] for each in told["objects"] if each["state"] == "gone"
    }


async def _pods_are_there(client: Client, namespace: str) -> bool:
    return bool((await client.list(PODS, namespace)).items)


# Teardowns that do not end by themselves


class TimedOut(NamedTuple):
    """A teardown that timed out: no controller removes a finalizer."""

    ran: Ran
    place: Place
    receipt: Path


@pytest.fixture(scope="module")
def timed_out(server: Path, tmp_path_factory: pytest.TempPathFactory) -> TimedOut:
    """One teardown for all tests that only read it."""
    place = _place(server, "timed-out")
    place.make("a", FINALIZER)
    receipt = tmp_path_factory.mktemp("timed-out") / "r.json"
    return TimedOut(place.delete("cm/a", "--yes", "--timeout", "1", "--receipt", receipt), place, receipt)


def test_when_the_time_is_over_it_says_on_whom_it_waits(timed_out: TimedOut):
    ran, place, receipt = timed_out
    assert ran.code == 1
    assert "Not finished. 0 of 1 are gone" in ran.err
    [blocker] = [line for line in ran.err.splitlines() if line.startswith(f"  configmap/a -n {place.namespace}")]
    assert f"finalizer {FINALIZER}" in blocker
    assert re.search(r"\(finalizer: \S.+, for \d+ s, ", blocker), blocker
    assert f"Resume with: pilotage delete --resume {receipt}" in ran.err
    told = json.loads(receipt.read_text())
    assert told["result"] == "incomplete"
    [left] = told["objects"]
    assert (left["name"], left["state"]) == ("a", "left")
    assert FINALIZER in left["waits"]


@pytest.mark.parametrize(
    "more", [("--keep", "volumes"), ("--adopt",), ("-n", "shop"), ("cm/a",), ("--all",), ("-l", "a=b"), ("-f", "x")]
)
def test_resuming_stands_alone(timed_out: TimedOut, more: tuple[str, ...]):
    before = timed_out.receipt.read_bytes()
    ran = timed_out.place.resume(timed_out.receipt, "--yes", "--timeout", "1", *more)
    assert (ran.code, ran.out) == (2, "")
    assert "--resume stands alone" in ran.err
    assert timed_out.receipt.read_bytes() == before


def test_resuming_dry_says_what_is_left_and_changes_nothing(timed_out: TimedOut):
    place, before, made = timed_out.place, timed_out.receipt.read_bytes(), timed_out.place.find("a")
    ran = place.resume(timed_out.receipt, "--dry-run")
    assert ran.code in (0, 1)
    assert ran.err == ""
    assert f"configmap/a -n {place.namespace}" in ran.out
    assert made is not None
    assert is_as_it_was(place, made)
    assert timed_out.receipt.read_bytes() == before


def test_resuming_asks_too(timed_out: TimedOut):
    before = timed_out.receipt.read_bytes()
    ran = timed_out.place.resume(timed_out.receipt)
    assert ran.code == 2
    assert "--yes" in ran.err
    assert timed_out.receipt.read_bytes() == before


def test_a_server_that_is_not_there_is_not_taken_for_another_cluster(timed_out: TimedOut, tmp_path: Path):
    nowhere = tmp_path / "config"
    nowhere.write_text(NO_SERVER)
    ran = run("delete", "--resume", timed_out.receipt, "--yes", kubeconfig=nowhere)
    assert (ran.code, ran.out) == (3, "")
    assert in_one_sentence(ran)
    assert "was not reached" in ran.err


def test_what_is_no_receipt_cannot_be_resumed(place: Place, tmp_path: Path):
    path = tmp_path / "m.yaml"
    path.write_text("kind: ConfigMap")
    for file in (path, tmp_path / "nowhere.json"):
        ran = place.resume(file, "--yes")
        assert (ran.code, ran.out) == (2, "")
        assert in_one_sentence(ran)
        assert "Give a file that `pilotage delete` has written." in ran.err


def test_a_receipt_is_resumed_on_its_own_cluster_only(timed_out: TimedOut):
    before = timed_out.receipt.read_bytes()
    with harbor() as other:
        ran = run("delete", "--resume", timed_out.receipt, "--yes", kubeconfig=other.kubeconfig)
    assert (ran.code, ran.out) == (2, "")
    assert in_one_sentence(ran)
    assert "another cluster" in ran.err
    assert timed_out.receipt.read_bytes() == before


# Ctrl-C


@contextlib.contextmanager
def started(*args: str | Path) -> Iterator[subprocess.Popen[str]]:
    """The program, as a process of its own."""
    program = [sys.executable, "-m", "pilotage", *map(str, args)]
    with subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Ran:
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert "Traceback" not in out + err
    return Ran(process.returncode, out, err)


def deleting(place: Place, receipt: Path, *more: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    args = ("cm/a", "-n", place.namespace, "--receipt", receipt, "--kubeconfig", place.kubeconfig)
    return started("delete", *args, "--yes", *more)


def test_ctrl_c_stops_and_resuming_goes_on(place: Place, tmp_path: Path):
    place.make("a", FINALIZER)
    receipt = tmp_path / "r.json"
    with deleting(place, receipt) as process:
        wait_for("ConfigMap that is asked to go", lambda: place.is_asked_to_go("a"), SECONDS_MAX)
        process.send_signal(signal.SIGINT)
        ran = ended(process)
    assert ran.code == 130
    assert "Stopped. 0 of 1 are gone" in ran.err
    assert f"Resume with: pilotage delete --resume {receipt}" in ran.err
    assert json.loads(receipt.read_text())["result"] == "incomplete"
    place.let_go("a")
    ran = place.resume(receipt, "--yes")
    assert ran.code == 0, ran
    assert f"Receipt: {receipt} (1 gone, 0 kept)" in ran.out
    assert json.loads(receipt.read_text())["result"] == "complete"


def test_resuming_waits_for_what_was_asked_to_go_before(place: Place, tmp_path: Path):
    """Resuming continues with the same uid, and does not give up because there is nothing left to delete."""
    place.make("a", FINALIZER)
    receipt = tmp_path / "r.json"
    assert place.delete("cm/a", "--yes", "--timeout", "1", "--receipt", receipt).code == 1
    resuming = ("delete", "--resume", receipt, "--yes", "-o", "json", "--kubeconfig", place.kubeconfig)
    with started(*resuming) as process:
        wait_for_event(process, "waits")
        place.let_go("a")
        ran = ended(process)
    assert ran.code == 0
    assert json.loads(ran.out.splitlines()[-1])["result"] == "complete"


class Cut(NamedTuple):
    """A teardown of an owner and its parts that one of them holds up, and what has happened since."""

    place: Place
    receipt: Path
    late: Object
    """A part of a kind that the owner had none of before."""
    stranger: Object
    """Object that has the name of a part that is gone."""


@pytest.fixture
def cut(place: Place, widgets: Resource, tmp_path: Path) -> Cut:
    receipt = tmp_path / "r.json"
    body = {"apiVersion": widgets.api_version, "kind": "Widget", "metadata": {"name": "w"}}
    web = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}

    async def make(client: Client) -> Json:
        made = await client.create(widgets, body, namespace=place.namespace)
        owner = {"apiVersion": widgets.api_version, "kind": "Widget", "name": "w", "uid": made.meta.uid}
        part: Json = {"ownerReferences": [owner]}
        deployment = kinds.deployment("web")
        deployment["metadata"] |= part
        await client.create(kinds.DEPLOYMENTS, deployment, namespace=place.namespace)
        held = web | {"metadata": {"name": "web", "finalizers": [FINALIZER], **part}}
        await client.create(kinds.SERVICES, held, namespace=place.namespace)
        return part

    async def go_on(client: Client) -> tuple[Object, Object]:
        late = {"metadata": {"name": "late", **part}}
        patch = merge_patch({"metadata": {"finalizers": None}})
        service = await client.get(kinds.SERVICES, ObjectKey(place.namespace, "web"))
        # On a busy machine the command may have been cut off before its turn.
        await client.delete(kinds.SERVICES, service.key, uid=service.meta.uid, propagation=Propagation.BACKGROUND)
        await client.patch(kinds.SERVICES, service.key, patch)
        return (
            await client.create(SECRETS, late, namespace=place.namespace),
            await client.create(kinds.DEPLOYMENTS, kinds.deployment("web"), namespace=place.namespace),
        )

    part = place.ask(make)
    ran = place.delete(f"{widgets}/w", "--yes", "--timeout", "1", "--receipt", receipt)
    assert ran.code == 1
    assert "1 of 3 is gone" in ran.err
    return Cut(place, receipt, *place.ask(go_on))


def test_resuming_takes_in_what_has_appeared_and_leaves_what_was_made_anew(cut: Cut, widgets: Resource):
    place = cut.place
    ran = place.resume(cut.receipt, "--yes")
    assert (ran.code, ran.err) == (0, ""), ran
    lines = ran.out.splitlines()
    assert re.fullmatch(
        rf"Resumes {cut.receipt} at https://\S+: deletes 2 objects \(namespace {place.namespace}\)\.", lines[0]
    )
    assert lines[1] == "Of 3 objects 2 are gone already; 1 was added since."
    assert lines[2] == f"added    secret/late -n {place.namespace}  (owned by widget/w -n {place.namespace})"
    assert lines[3] == f"note     deployment/web -n {place.namespace} is another object by now, and stays"
    assert {line.split("  (")[0].strip() for line in lines[4:6]} == {
        f"secret/late -n {place.namespace}",
        f"widget/w -n {place.namespace}",
    }
    assert lines[6].startswith("Plan: 2 objects in 2 steps.")

    async def read(client: Client) -> Object:
        for resource, name in ((SECRETS, "late"), (kinds.SERVICES, "web"), (widgets, "w")):
            with pytest.raises(Absent):
                await client.get(resource, ObjectKey(place.namespace, name))
        return await client.get(kinds.DEPLOYMENTS, cut.stranger.key)

    assert place.ask(read).meta.resource_version == cut.stranger.meta.resource_version
    told = json.loads(cut.receipt.read_text())
    assert told["result"] == "complete"
    assert {(each["kind"], each["state"]) for each in told["objects"]} == {
        ("Deployment", "gone"),
        ("Secret", "gone"),
        ("Service", "gone"),
        ("Widget", "gone"),
    }
    assert told["targets"] == [f"widget/w -n {place.namespace}"]


def test_resuming_tells_scripts_what_is_new(cut: Cut):
    ran = cut.place.resume(cut.receipt, "--dry-run", "-o", "json")
    [event] = map(json.loads, ran.out.splitlines())
    assert event["added"] == [cut.late.meta.uid]
    assert len(event["gone"]) == 2
    assert event["replaced"] == [f"deployment/web -n {cut.place.namespace}"]
    assert len(event["objects"]) == 4


def test_resuming_empties_a_namespace_of_what_came_since(own_cluster: Cluster, tmp_path: Path):
    """A real cluster, whose namespace controller has the last word."""
    place = _place(own_cluster.kubeconfig, f"resumed-{secrets.token_hex(4)}")
    place.make("a", FINALIZER)
    receipt = tmp_path / "r.json"
    what = ("delete", f"namespace/{place.namespace}", "--yes", "--timeout", "2", "--receipt", receipt)
    try:
        assert run(*what, kubeconfig=place.kubeconfig).code == 1
        secret = {"metadata": {"name": "late"}}
        late = place.ask(lambda client: client.create(SECRETS, secret, namespace=place.namespace))
    finally:
        place.let_go("a")
    ran = place.resume(receipt, "--yes", "--timeout", "30")
    assert ran.code == 0, ran
    assert f"added    secret/late -n {place.namespace}" in ran.out
    objects = {each["uid"]: each["state"] for each in json.loads(receipt.read_text())["objects"]}
    assert objects[late.meta.uid] == "gone"
    assert set(objects.values()) == {"gone"}


def test_an_impatient_ctrl_c_is_no_accident(place: Place, tmp_path: Path):
    """Two signals at once: whatever the second one interrupts, it ends as the first does."""
    place.make("a", FINALIZER)
    with deleting(place, tmp_path / "r.json") as process:
        wait_for("ConfigMap that is asked to go", lambda: place.is_asked_to_go("a"), SECONDS_MAX)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        ran = ended(process)
    assert ran.code == 130
    assert f"--resume {tmp_path / 'r.json'}" in ran.err
    place.let_go("a")


def test_the_second_ctrl_c_does_not_wait_for_a_server_that_is_silent(
    own_cluster: Cluster, namespace: str, tmp_path: Path
):
    """The first lets the request that is under way end, which it never does. It is a delete that is tried again."""
    Place(own_cluster.kubeconfig, namespace).make("a")
    user = f"viewer-{namespace[-8:]}"
    allow_config_maps(own_cluster, namespace, user, "get", "list", "watch")
    place, receipt = Place(own_cluster.user(user), namespace), tmp_path / "r.json"
    with deleting(place, receipt, "-o", "json") as process:
        wait_for_event(process, "refused")
        own_cluster.pause_apiserver()
        try:
            wait_for_event(process, "asked")
            process.send_signal(signal.SIGINT)
            wait_for("delivery of the signal", lambda: not has_pending_signals(process.pid), SECONDS_MAX)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            ran = ended(process)
        finally:
            own_cluster.repair()
    assert ran.code == 130
    assert time.monotonic() - began < 5
    assert f"--resume {receipt}" in ran.err


def wait_for_event(process: subprocess.Popen[str], name: str) -> None:
    """Read what is printed for scripts, up to an event."""
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == name:
            return
    pytest.fail(f"it ended before {name}")


def has_pending_signals(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return any(int(mask, 16) for mask in re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)$", status, re.MULTILINE))


# Rights


def test_who_may_read_nothing_is_told_so(own_cluster: Cluster, namespace: str, tmp_path: Path):
    place = Place(own_cluster.kubeconfig, namespace)
    made = place.make("a", a="b")
    nobody = own_cluster.user("nobody")
    for what in (("--all",), ("-l", "a=b"), ("cm/a",)):
        ran = run("delete", "-n", namespace, *what, "--yes", "--receipt", tmp_path / "r.json", kubeconfig=nobody)
        assert (ran.code, ran.out) == (3, "")
        assert in_one_sentence(ran)
        assert "permission" in ran.err
        planned = run("plan", "-n", namespace, *what, kubeconfig=nobody)
        assert (planned.code, planned.out, planned.err) == (3, "", ran.err)
    assert is_as_it_was(place, made)
    assert not list(tmp_path.iterdir())


def test_what_may_not_be_read_is_not_proven_gone(own_cluster: Cluster, namespace: str, tmp_path: Path):
    """A user who may read ConfigMaps only can take those down, and is told that there may be more."""
    place = Place(own_cluster.kubeconfig, namespace)
    place.make("a")
    place.make("b")
    user = f"reader-{namespace[-8:]}"
    allow_config_maps(own_cluster, namespace, user, "get", "list", "watch", "delete")
    receipt = tmp_path / "r.json"
    ran = run("delete", "-n", namespace, "--all", "--yes", "--receipt", receipt, kubeconfig=own_cluster.user(user))
    assert ran.code == 1, ran
    assert place.find("a") is None
    assert place.find("b") is None
    assert re.search(r"\d+ kinds could not be read", ran.out + ran.err), ran
    told = json.loads(receipt.read_text())
    assert told["result"] == "incomplete"
    assert {each["name"]: each["state"] for each in told["objects"]} == {"a": "gone", "b": "gone"}


def test_a_dry_run_where_not_all_could_be_read_ends_as_the_plan_does(own_cluster: Cluster, namespace: str):
    """The objects that are shown may not be all that are meant."""
    Place(own_cluster.kubeconfig, namespace).make("a")
    user = f"looker-{namespace[-8:]}"
    allow_config_maps(own_cluster, namespace, user, "get", "list", "delete")
    config = own_cluster.user(user)
    dry = run("delete", "-n", namespace, "--all", "--dry-run", kubeconfig=config)
    assert re.search(r"Predicted blockers: none\.\n\n\d+ kinds could not be read", dry.out), dry
    assert dry.code == 1
    assert dry == run("plan", "-n", namespace, "--all", kubeconfig=config)


def allow_config_maps(cluster: Access, namespace: str, user: str, *verbs: str) -> None:
    """Let a user do this with ConfigMaps there, and nothing else; returns when it is so."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    cluster.request("POST", f"{rbac}/roles", {"metadata": {"name": user}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    cluster.request("POST", f"{rbac}/rolebindings", {"metadata": {"name": user}, "roleRef": role, "subjects": subjects})
    what = {"namespace": namespace, "verb": verbs[-1], "resource": "configmaps"}
    review = {"spec": {"user": user, "resourceAttributes": what}}
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    wait_for("permission", lambda: cluster.request("POST", reviews, review)["status"]["allowed"])
