"""The controller of Models on a real API server, with rechecks every few milliseconds instead of minutes."""

import asyncio
import contextlib
import json
import socket

import pytest

from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.controllers.model.controller import Models
from pilotage.kube import Client, Invalid, ObjectKey, Propagation, load_config, merge_patch
from pilotage.models import Access, ModelCache
from pilotage.runtime.conditions import find_condition
from pilotage.runtime.manager import Manager
from tests.api.objects import endpoint, install, model
from tests.controllers.simulated_models import EVENTS, CountingStore
from tests.models.web import LOOPBACK, Says, web
from tests.models.weights import gguf
from tests.support.waiting import eventually, until

WEIGHTS = gguf()


@contextlib.asynccontextmanager
async def operating(cluster, namespace, folder):
    """A client, a manager with its metrics, a model store, and a controller for one namespace."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install(client)
        manager = Manager(client, name="models", seed=1)
        access = Access(roots=(folder,), networks=(LOOPBACK,), plain_http=True, host="gpu-3")
        keeper = CountingStore(ModelCache(folder / "cache"), access)
        async with Models(manager, keeper, namespace=namespace), asyncio.TaskGroup() as tasks:
            tasks.create_task(manager.run())
            await manager.started.wait()
            try:
                yield client, manager, keeper
            finally:
                manager.stop()


def is_in(phase):
    return lambda obj: obj is not None and obj.get("status", "phase") == phase


async def delete(client, resource, key):
    uid = (await client.get(resource, key)).meta.uid
    await client.delete(resource, key, uid=uid, propagation=Propagation.BACKGROUND)


async def test_a_model_fails_costs_nothing_recovers_and_goes(cluster, namespace, tmp_path, monkeypatch):
    monkeypatch.setattr("pilotage.models.attempts.RECHECK_SECONDS", 0.05)
    key = ObjectKey(namespace, "qwen")
    async with operating(cluster, namespace, tmp_path) as (client, _, keeper):
        source = {"source": f"file://{tmp_path}/a.gguf"}
        await client.create(MODELS, model("qwen", source, namespace=namespace))
        failed = await until(client, MODELS, key, is_in("Failed"))
        degraded = find_condition(failed.get("status", "conditions"), "Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "FileNotFound")
        looks = len(keeper.looks)

        async def twelve():
            return len(keeper.looks) >= looks + 12

        await eventually(twelve)
        assert (await client.get(MODELS, key)).meta.resource_version == failed.meta.resource_version
        (tmp_path / "a.gguf").write_bytes(WEIGHTS)
        ready = await until(client, MODELS, key, is_in("Ready"))
        assert ready.get("status", "format", "architecture") == "qwen3"
        await client.patch(MODELS, key, merge_patch({"spec": {"sha256": "0" * 64}}))
        await until(client, MODELS, key, is_in("Failed"))
        await delete(client, MODELS, key)
        await until(client, MODELS, key, lambda obj: obj is None)
    assert (tmp_path / "a.gguf").exists()


BROKEN = {
    "missing": ("FileNotFound", "file://{folder}/none.gguf", {}),
    "folder": ("NotAFile", "file://{folder}", {}),
    "outside": ("SourceNotAllowed", "file:///etc/passwd", {}),
    "sum": ("ChecksumMismatch", "file://{folder}/whole.gguf", {"sha256": "0" * 64}),
    "page": ("InvalidFormat", "file://{folder}/page.gguf", {}),
    "cut": ("InvalidFormat", "file://{folder}/cut.gguf", {}),
    "gone": ("NotFound", "{site}/none.gguf", {}),
    "who": ("Unauthorized", "{site}/401.gguf", {}),
    "denied": ("AccessDenied", "{site}/403.gguf", {}),
    "odd": ("RequestRefused", "{site}/400.gguf", {}),
    "loop": ("BadRedirect", "{site}/302.gguf", {}),
    "metadata": ("AddressNotAllowed", "http://169.254.169.254/a.gguf", {}),
    "nowhere": ("HostNotFound", "https://models.example/a.gguf", {}),
    "fetched-sum": ("ChecksumMismatch", "{site}/whole.gguf", {"sha256": "0" * 64}),
    "fetched-page": ("InvalidFormat", "{site}/page.gguf", {}),
    "no-secret": ("SecretNotFound", "{site}/whole.gguf", {"secretRef": {"name": "none"}}),
    "no-hosts": ("SecretUnusable", "{site}/whole.gguf", {"secretRef": {"name": "token"}}),
    "invalid": ("InvalidSource", "https://example.com/", {}),
    "hub": ("InvalidSource", "hf://acme", {}),
    "registry": ("NotFound", "oci://{host}/tiny:v1", {}),
}
"""Lasting failures: reason, source, and the rest of the spec, by name of the Model."""
NEVER_ASKED = {"invalid", "hub"}
"""Models whose spec alone is wrong."""


async def test_each_failure_that_lasts_is_written_once_and_ends_with_a_change_of_the_spec(
    own_cluster, namespace, tmp_path, monkeypatch
):
    def recheck_every(seconds):
        for module in ("models.attempts", "controllers.model.controller"):
            monkeypatch.setattr(f"pilotage.{module}.RECHECK_SECONDS", seconds)

    recheck_every(0.2)
    really_resolve = socket.getaddrinfo

    def resolve(host, *args, **options):
        if host == "models.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return really_resolve(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    page = b"<html>sign in first</html>"
    for name, content in (("whole", WEIGHTS), ("page", page), ("cut", WEIGHTS[:1000])):
        (tmp_path / f"{name}.gguf").write_bytes(content)
    own_cluster.kubectl("create", "secret", "generic", "token", "--from-literal=token=s3cret", "-n", namespace)
    async with (
        web(**{"whole.gguf": WEIGHTS, "page.gguf": page}) as site,
        operating(own_cluster, namespace, tmp_path) as (client, manager, _),
    ):
        for status in ("401 Unauthorized", "403 Forbidden", "400 Bad Request", "302 Found"):
            site.answers[f"/{status[:3]}.gguf"] = Says(status, {"Location": site.url("/302.gguf")})
        for name, (_, source, rest) in BROKEN.items():
            spec = {"source": source.format(folder=tmp_path, site=site.url(""), host=site.host), **rest}
            await client.create(MODELS, model(name, spec, namespace=namespace))
        for name, (reason, *_) in BROKEN.items():
            failed = await until(client, MODELS, ObjectKey(namespace, name), is_in("Failed"))
            degraded = find_condition(failed.get("status", "conditions"), "Degraded")
            assert (name, degraded["status"], degraded["reason"]) == (name, "True", reason)
        await eventually(lambda: all_told(client, namespace))
        mark, before = own_cluster.audit_mark(), checks(manager)
        await eventually(lambda: checked_again(manager, before, times=5))
        assert writes(own_cluster, mark, namespace) == []
        assert manager.metrics.registry.get_sample_value(*ERRORS) in (None, 0.0)
        recheck_every(300.0)  # from the next check on: only the change of the spec can be what ends it
        before = checks(manager)
        await eventually(lambda: checked_again(manager, before, times=1))
        good = {"source": f"file://{tmp_path}/whole.gguf", "sha256": None, "secretRef": None}
        for name in BROKEN:
            await client.patch(MODELS, ObjectKey(namespace, name), merge_patch({"spec": good}))
        for name in BROKEN:
            await until(client, MODELS, ObjectKey(namespace, name), is_in("Ready"))


ERRORS = "controller_runtime_reconcile_total", {"controller": "models", "result": "error"}


def checks(manager):
    """The number of checks so far, by reason."""
    reasons = {reason for name, (reason, *_) in BROKEN.items() if name not in NEVER_ASKED}
    count = manager.metrics.registry.get_sample_value
    return {reason: count("pilotage_model_checks_total", {"result": reason}) or 0 for reason in reasons}


async def checked_again(manager, before, times):
    """Whether each Model was checked so often since; those with the same reason take turns."""
    reasons = [reason for name, (reason, *_) in BROKEN.items() if name not in NEVER_ASKED]
    now = checks(manager)
    return all(now[reason] - before[reason] >= times * reasons.count(reason) for reason in reasons)


async def all_told(client, namespace):
    """Whether there is an Event about each Model: nothing is written after these."""
    events = (await client.list(EVENTS, namespace)).items
    return {event.get("regarding", "name") for event in events} >= BROKEN.keys()


def writes(cluster, mark, namespace):
    return [
        (record.verb, record.resource, record.subresource, record.name)
        for record in cluster.audit(since=mark, namespace=namespace)
        if record.verb in ("create", "update", "patch", "delete")
    ]


async def test_a_fetched_model_stays_while_it_is_used_and_takes_its_file_along(cluster, namespace, tmp_path):
    key = ObjectKey(namespace, "qwen")
    async with web(**{"a.gguf": WEIGHTS}) as site, operating(cluster, namespace, tmp_path) as (client, *_):
        await client.create(MODELS, model("qwen", {"source": site.url("/a.gguf")}, namespace=namespace))
        await client.create(ENDPOINTS, endpoint("chat", namespace=namespace))
        ready = await until(client, MODELS, key, is_in("Ready"))
        assert ready.get("status", "bytes") == {"done": len(WEIGHTS), "total": len(WEIGHTS)}
        path = tmp_path / ready.get("status", "path")
        assert path.read_bytes() == WEIGHTS
        await delete(client, MODELS, key)
        waiting = await until(client, MODELS, key, is_in("Deleting"))
        said = find_condition(waiting.get("status", "conditions"), "Deleting")
        assert "servingendpoint/chat" in said["message"]
        await delete(client, ENDPOINTS, ObjectKey(namespace, "chat"))
        await until(client, MODELS, key, lambda obj: obj is None)
        assert not path.exists()


async def test_who_may_not_read_a_secret_cannot_have_it_sent_to_a_host_of_their_choice(
    cluster, namespace, tmp_path, monkeypatch
):
    """A role that may create Models and not read Secrets, as the owner of a namespace may make it."""
    monkeypatch.setattr("pilotage.models.attempts.RECHECK_SECONDS", 0.05)
    here, mallory = ("-n", namespace), ("--as", f"mallory-of-{namespace}")
    key = ObjectKey(namespace, "qwen")
    async with web(**{"a.gguf": WEIGHTS}) as site, operating(cluster, namespace, tmp_path) as (client, *_):
        cluster.kubectl("create", "secret", "generic", "theirs", "--from-literal=token=s3cret", *here)
        cluster.kubectl("create", "role", "author", "--verb=create,get", "--resource=models.pilotage.dev", *here)
        cluster.kubectl("create", "rolebinding", "author", "--role=author", f"--user={mallory[1]}", *here)
        with pytest.raises(Exception, match="cannot get resource"):
            cluster.kubectl("get", "secret", "theirs", *here, *mallory)
        spec = {"source": site.url("/a.gguf"), "secretRef": {"name": "theirs"}}
        body = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "Model"} | model("qwen", spec, namespace=namespace)
        cluster.kubectl("create", "-f", "-", *here, *mallory, input=json.dumps(body))
        failed = await until(client, MODELS, key, is_in("Failed"))
        assert find_condition(failed.get("status", "conditions"), "Degraded")["reason"] == "SecretUnusable"
        assert site.asked == []
        patch = json.dumps({"stringData": {"hosts": site.host}})  # by a user who may write the Secret
        cluster.kubectl("patch", "secret", "theirs", "-p", patch, *here)
        await until(client, MODELS, key, is_in("Ready"))
        assert site.asked[0].headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\u202e", "\u2028"])
async def test_a_source_with_a_control_character_is_refused_by_the_api_server(cluster, namespace, character):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install(client)
        source = {"source": f"hf://acme/small/{character}.gguf"}
        with pytest.raises(Invalid, match=r"spec\.source"):
            await client.create(MODELS, model("qwen", source, namespace=namespace))
