"""Receipts that were changed after they were written: what is done is what is shown, or nothing is done."""

import copy
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.kube import Client, Object, Resource
from tests.cli.running import Ran, ask, run
from tests.support import kinds

Json = dict[str, Any]
FINALIZER = "acme.example.com/cleanup"
SECRETS = Resource("", "v1", "secrets", "Secret")


def kind(group: str, plural: str, kind: str, *, namespaced: bool = True) -> Json:
    """A resource as it is saved."""
    return {"group": group, "version": "v1", "plural": plural, "kind": kind, "namespaced": namespaced}


SECRET = kind("", "secrets", "Secret")
CONFIG_MAP = kind("", "configmaps", "ConfigMap")


class Scene(NamedTuple):
    """A teardown whose time was over, its receipt, and a Secret that has nothing to do with it."""

    kubeconfig: Path
    namespace: str
    told: Json
    victim: Object
    folder: Path

    def resume(self, told: Json, *args: str) -> Ran:
        """Resume with a receipt of this content and without a digest that would tell."""
        path = self.folder / "doctored.json"
        path.write_text(json.dumps({name: value for name, value in told.items() if name != "digest"}))
        return run("delete", "--resume", path, *args, kubeconfig=self.kubeconfig)

    def with_entry(self, **entry: Any) -> Json:
        """The receipt with one more entry."""
        told = copy.deepcopy(self.told)
        entries = told["ledger"]["entries"]
        given = {"namespace": self.namespace, "name": "precious", "uid": self.victim.meta.uid, "resource": SECRET}
        about = {"phase": entries[0]["phase"], "disposition": "delete", "reason": "named"}
        entries.append(copy.deepcopy(given | about | entry))
        return told

    @property
    def nothing_was_done(self) -> bool:
        found = ask(self.kubeconfig, lambda client: client.get(SECRETS, self.victim.key))
        return found.meta.resource_version == self.victim.meta.resource_version


@pytest.fixture(scope="module")
def scene(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    namespace = "doctored"

    async def make(client: Client) -> Object:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        await client.create(kinds.CONFIG_MAPS, kinds.config_map("a", finalizers=[FINALIZER]), namespace=namespace)
        return await client.create(SECRETS, {"metadata": {"name": "precious"}}, namespace=namespace)

    victim = ask(server, make)
    folder = tmp_path_factory.mktemp("doctored")
    receipt = folder / "r.json"
    run("delete", "cm/a", "-n", namespace, "--yes", "--timeout", "1", "--receipt", receipt, kubeconfig=server)
    return Scene(server, namespace, json.loads(receipt.read_text()), victim, folder)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"resource": kind("", "secrets", "ConfigMap")}, "a ConfigMap is one of secrets"),
        ({"resource": kind("", "secrets", "Note")}, "a Note is one of secrets"),
        ({"resource": CONFIG_MAP}, "which is that of secret/precious"),
        ({"name": "harmless"}, "which is that of secret/precious"),
        ({"namespace": "elsewhere"}, "which is that of secret/precious"),
        ({"resource": kind("", "namespaces/doctored/secrets", "Note")}, "is no kind"),
        ({"resource": kind("x/../../api", "secrets", "Note")}, "is no kind"),
        ({"resource": kind("", "secrets", "Secret", namespaced=False)}, "a namespace"),
        ({"uid": ""}, "has no uid"),
        ({"name": "../secrets/precious"}, "is no name of an object"),
        ({"disposition": "keep", "disown": ["u-1"]}, "is to lose an owner that does not go"),
        ({"settleSeconds": 1e300}, "a pause"),
        ({"after": ["u-1"]}, "'u-1', which is not in it"),
        ({"disposition": "collect", "owner": "u-1"}, "'u-1', which is not in it"),
    ],
)
def test_an_entry_that_is_not_what_it_says_is_refused(scene: Scene, entry: Json, said: str):
    ran = scene.resume(scene.with_entry(**entry), "--yes", "--timeout", "2")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert scene.nothing_was_done


def test_a_uid_that_is_there_twice_is_refused(scene: Scene):
    told = scene.with_entry()
    told["ledger"]["entries"].append(told["ledger"]["entries"][-1] | {"name": "harmless"})
    ran = scene.resume(told, "--yes")
    assert (ran.code, "is in it twice" in ran.err) == (2, True)
    assert scene.nothing_was_done


def test_what_a_receipt_would_delete_is_shown_with_its_server_even_to_who_says_yes(scene: Scene):
    """An entry that describes its object correctly may have been wanted: it is shown, and needs a yes."""
    told = scene.with_entry() | {"targets": ["configmap/a"]}
    for more in ((), ("--yes",)):
        ran = scene.resume(told, "--dry-run", *more)
        assert re.match(
            r"Resumes \S+/doctored.json at https://\S+: deletes 2 objects \(namespace doctored\)\.", ran.out
        )
        assert "  secret/precious -n doctored  (named)" in ran.out
    assert scene.resume(told).code == 2  # there is no terminal here to ask at
    assert scene.nothing_was_done


def test_a_receipt_that_was_changed_by_accident_is_told_by_its_digest(scene: Scene):
    path = scene.folder / "accident.json"
    text = json.dumps(scene.told, indent=1)
    path.write_text(text)
    assert run("receipt", "verify", path, kubeconfig=scene.kubeconfig).code == 1  # another layout is no change
    path.write_text(text.replace("configmap/a", "configmap/b"))
    for command in (("receipt", "verify", path), ("delete", "--yes", "--resume", path), ("leaks", "--receipt", path)):
        ran = run(*command, kubeconfig=scene.kubeconfig)
        assert (ran.code, ran.out) == (2, "")
        assert "it was changed after it was written" in ran.err


def test_a_pipe_is_not_waited_for(scene: Scene):
    pipe = scene.folder / "pipe"
    os.mkfifo(pipe)
    ran = run("delete", "--yes", "--resume", pipe, kubeconfig=scene.kubeconfig)
    assert (ran.code, "not a regular file" in ran.err) == (2, True)


odd: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", -1, 2**70, 1e308, True, [], {}, [[]], "\x1b]52;c;eA==\x07", "\ud800", "../x", "x" * 5000, "gone", "keep"]
)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths in the receipt at which something can be changed."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for name, each in inner for path in paths(each, (*here, name)))]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_a_receipt_says_it_is_shown_or_refused_in_one_sentence(scene: Scene, data: st.DataObject):
    told = scene.with_entry(finalizer_owner="k", abandoned=["f"], unverified="u", disown=[], hold=False)
    known = [entry["uid"] for entry in told["ledger"]["entries"]]
    told["ledger"]["entries"][1] |= {"after": known[:1], "owner": data.draw(st.sampled_from(["", *known, "u"]))}
    for _ in range(data.draw(st.integers(1, 3))):
        *where, last = data.draw(st.sampled_from(paths(told)[1:]))
        place = told
        for name in where:
            place = place[name]
        place[last] = copy.deepcopy(data.draw(odd))
    ran = scene.resume(told, "--dry-run")  # raises where there would be a traceback
    assert ran.code in (0, 1, 2)
    if ran.code == 2:
        assert ran.err.startswith("Error: ")
        assert ran.err.count("\n") == 1
    assert scene.nothing_was_done
