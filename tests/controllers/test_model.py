"""Models: what lasts costs nothing, what passes is tried again, and everything is said once."""

import asyncio
import hashlib
from itertools import pairwise

import pytest

from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.kube import ObjectKey, Resource, merge_patch
from pilotage.models import Kept, PermanentError, Reason, Removed, TransientError, WeightsFormat
from pilotage_sim.loop import virtual
from tests.controllers.simulated_models import HOUR, simulated_models
from tests.models.weights import gguf

WEIGHTS = gguf()
SECRETS = Resource("", "v1", "secrets", "Secret")


class Script:
    """A `ModelStore` that follows a script: each call takes the next step."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.times = []
        self.released = []
        self.credentials = None

    async def keep(self, request, credentials, progress):
        self.times.append(asyncio.get_running_loop().time())
        self.credentials = credentials
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        if callable(step):
            await step(progress)
        return Kept("/cache/x", 10, "", WeightsFormat("GGUF"), in_place=False)

    async def release(self, user, *, retain=None, but=None):
        self.released.append((user, retain, but))
        return []

    async def sweep(self, users):
        return []


# Document 3: a source that cannot be reached


@virtual
async def _missing_file(folder):
    async with simulated_models(folder, real=True) as sim:
        await sim.start()
        await sim.make("qwen", f"file://{folder}/models/qwen.gguf")
        await sim.until("qwen", "Failed")
        degraded = sim.condition("qwen", "Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "FileNotFound")
        assert degraded["message"] == (
            f"the file {folder}/models/qwen.gguf does not exist on host gpu-3. Put it there, or change spec.source; "
            "it is checked again every 5 minutes, and at once when the spec changes."
        )
        assert sim.condition("qwen", "Available")["status"] == "False"
        await asyncio.sleep(5)
        assert sim.events() == [("Warning", "FileNotFound")]
        # no error to the rate limiter: the result is a delay
        assert sim.metric("controller_runtime_reconcile_total", controller="models", result="error") == 0
        assert sim.metric("pilotage_model_checks_total", result="FileNotFound") == 1
        assert sim.metric("pilotage_models", phase="Failed") == 1


def test_a_missing_file_is_failed_and_degraded_without_an_error_to_the_rate_limiter(tmp_path):
    _missing_file(tmp_path)


@virtual
async def _steady(folder, make_source):
    async with simulated_models(folder) as sim:
        await sim.start()
        await make_source(sim)
        await sim.until("qwen", "Failed")
        await asyncio.sleep(10)
        writes, looks = len(sim.writes()), len(sim.keeper.looks)
        for _ in range(3):
            await asyncio.sleep(HOUR)
        assert len(sim.keeper.looks) - looks == 36
        assert sim.writes()[writes:] == []
        assert sim.metric("controller_runtime_reconcile_total", controller="models", result="error") == 0


async def _make_missing(sim):
    await sim.make("qwen", f"file://{sim.folder}/models/qwen.gguf")


async def _make_not_allowed(sim):
    await sim.make("qwen", "file:///etc/passwd")


async def _make_wrong_sum(sim):
    (sim.folder / "models" / "qwen.gguf").write_bytes(WEIGHTS)
    await sim.make("qwen", f"file://{sim.folder}/models/qwen.gguf", sha256="0" * 64)


async def _make_no_model(sim):
    (sim.folder / "models" / "qwen.gguf").write_text("<html>")
    await sim.make("qwen", f"file://{sim.folder}/models/qwen.gguf")


async def _make_without_secret(sim):
    source = f"file://{sim.folder}/models/qwen.gguf"
    await sim.make("qwen", source, secretRef={"name": "token"})


@pytest.mark.parametrize("make_source", [_make_missing, _make_not_allowed, _make_wrong_sum, _make_no_model])
def test_a_steady_failed_model_costs_12_looks_and_no_write_in_an_hour(tmp_path, make_source):
    _steady(tmp_path, make_source)


REASONS = {
    _make_missing: "FileNotFound",
    _make_not_allowed: "SourceNotAllowed",
    _make_wrong_sum: "ChecksumMismatch",
    _make_no_model: "InvalidFormat",
    _make_without_secret: "SecretNotFound",
}


@pytest.mark.parametrize("make_source", REASONS)
def test_each_way_to_fail_has_its_reason(tmp_path, make_source):
    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start()
            await make_source(sim)
            await sim.until("qwen", "Failed")
            assert sim.condition("qwen", "Degraded")["reason"] == REASONS[make_source]
            assert sim.status("qwen").get("path") is None
            assert sim.cached() == []  # no part of anything, anywhere

    play()


def test_repeated_looks_stay_on_the_fixed_interval(tmp_path):
    @virtual
    async def play():
        keeping = Script(PermanentError(Reason.NOT_READABLE, "it may not be read", "Let it"))
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "file:///models/qwen.gguf")
            await asyncio.sleep(1600)
            pauses = [round(b - a) for a, b in pairwise(keeping.times)]
            assert pauses == [300] * 5

    play()


def test_what_others_do_to_a_failed_model_does_not_hurry_it(tmp_path):
    """Labels, endpoints that come and go, a restart of the watch: none of them causes a retry."""

    @virtual
    async def play():
        keeping = Script(PermanentError(Reason.NOT_FOUND, "it does not exist", "Put it there"))
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Failed")
            await sim.serve("chat", "qwen")
            for number in range(50):
                labels = {"metadata": {"labels": {"n": str(number)}}}
                await sim.user.patch(MODELS, ObjectKey("default", "qwen"), merge_patch(labels))
                await asyncio.sleep(1)
            assert len(keeping.times) == 1

    play()


def test_a_failed_model_recovers_by_itself_when_the_file_appears(tmp_path):
    @virtual
    async def play():
        async with simulated_models(tmp_path, real=True) as sim:
            await sim.start()
            await _make_missing(sim)
            await sim.until("qwen", "Failed")
            await asyncio.sleep(1000)
            (tmp_path / "models" / "qwen.gguf").write_bytes(WEIGHTS)
            await sim.until("qwen", "Ready", limit=301)
            status = sim.status("qwen")
            assert status["path"] == f"{tmp_path}/models/qwen.gguf"
            assert status["bytes"] == {"done": len(WEIGHTS), "total": len(WEIGHTS)}
            assert status["format"] == {
                "kind": "GGUF",
                "architecture": "qwen3",
                "quantization": "Q4_K_M",
                "contextLength": 32768,
            }
            assert sim.condition("qwen", "Degraded")["status"] == "False"
            assert (
                sim.condition("qwen", "Available")["status"],
                sim.condition("qwen", "Available")["reason"],
            ) == (
                "True",
                "InPlace",
            )
            await asyncio.sleep(5)
            assert sim.events() == [("Warning", "FileNotFound"), ("Normal", "InPlace")]
            assert sim.metric("pilotage_models", phase="Ready") == 1
            assert sim.metric("pilotage_models", phase="Failed") == 0

    play()


def test_a_change_of_the_spec_is_looked_at_at_once(tmp_path):
    @virtual
    async def play():
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "b.gguf").write_bytes(WEIGHTS)
        async with simulated_models(tmp_path) as sim:
            await sim.start()
            await _make_missing(sim)
            await sim.until("qwen", "Failed")
            await sim.change("qwen", source=f"file://{tmp_path}/models/b.gguf")
            await sim.until("qwen", "Ready", limit=1)
            assert sim.status("qwen")["observedGeneration"] == sim.model("qwen")["metadata"]["generation"]

    play()


def test_a_ready_model_whose_file_goes_is_failed_and_costs_nothing_while_it_is_there(tmp_path):
    @virtual
    async def play():
        path = tmp_path / "models" / "qwen.gguf"
        async with simulated_models(tmp_path) as sim:
            path.write_bytes(WEIGHTS)
            await sim.start()
            sha256 = hashlib.sha256(WEIGHTS).hexdigest()
            await sim.make("qwen", f"file://{path}", sha256=sha256)
            await sim.until("qwen", "Ready")
            await asyncio.sleep(5)
            writes = len(sim.writes())
            await asyncio.sleep(HOUR)
            assert len(sim.writes()) == writes
            path.unlink()
            await sim.until("qwen", "Failed", limit=301)

    play()


def test_a_restart_of_the_operator_writes_nothing_where_nothing_has_changed(tmp_path):
    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            (tmp_path / "models" / "good.gguf").write_bytes(WEIGHTS)
            await sim.start()
            await sim.make("good", f"file://{tmp_path}/models/good.gguf")
            await _make_missing(sim)
            await sim.until("good", "Ready")
            await sim.until("qwen", "Failed")
            await asyncio.sleep(5)
            await sim.stop()
            writes = len(sim.writes())
            await sim.start()
            await asyncio.sleep(1000)
            assert sim.writes()[writes:] == []

    play()


# Transient errors


def test_what_passes_is_tried_again_with_growing_pauses_and_written_once(tmp_path):
    @virtual
    async def play():
        keeping = Script(TransientError(Reason.SERVER_ERROR, "https://example.com/qwen.gguf was answered with 503"))
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Fetching")
            await asyncio.sleep(10)
            writes = len(sim.writes())
            await asyncio.sleep(HOUR)
            assert len(sim.writes()) == writes
            available = sim.condition("qwen", "Available")
            assert (available["status"], available["reason"]) == ("False", "ServerError")
            assert available["message"] == (
                "https://example.com/qwen.gguf was answered with 503. It is retried with exponential backoff."
            )
            assert sim.condition("qwen", "Degraded")["status"] == "False"
            pauses = [b - a for a, b in pairwise(keeping.times)]
            assert all(later > earlier for earlier, later in pairwise(pauses[:6]))
            assert 0.75 <= pauses[0] <= 1.01
            assert 200 <= max(pauses) <= 301
            assert sim.events() == [("Warning", "ServerError")]

    play()


def test_a_source_that_asks_for_patience_gets_it(tmp_path):
    @virtual
    async def play():
        keeping = Script(TransientError(Reason.THROTTLED, "it was answered with 429", retry_after=120.0), None)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Ready", limit=130)
            assert keeping.times[1] - keeping.times[0] >= 120

    play()


def test_a_bug_in_the_fetcher_is_seen_and_retried(tmp_path):
    @virtual
    async def play():
        keeping = Script(RuntimeError("a bug"), None)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Fetching")
            assert sim.condition("qwen", "Available")["reason"] == "InternalError"
            await sim.until("qwen", "Ready")

    play()


# Progress


def test_progress_is_written_no_more_often_than_every_five_seconds(tmp_path):
    async def slowly(progress):
        for done in range(600):
            progress(done, 600)
            await asyncio.sleep(0.1)

    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start(Script(slowly))
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Fetching", limit=2)
            assert sim.status("qwen")["bytes"]["total"] == 600
            await sim.serve("chat", "qwen")  # events in between do not shorten the backoff
            await sim.until("qwen", "Ready", limit=61)
            times = sim.status_times()
            pauses = [b - a for a, b in pairwise(times[:-1])]
            assert len(pauses) >= 10
            assert min(pauses) >= 4.9
            await asyncio.sleep(5)
            assert sim.events() == [("Normal", "Fetching"), ("Normal", "Fetched")]
            assert sum("events.events.k8s.io" in write for write in sim.writes()) == 2

    play()


def test_a_source_that_does_not_answer_is_said_to_be_asked(tmp_path):
    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start(Script(lambda _: asyncio.sleep(30)))
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Pending", limit=2)
            assert sim.condition("qwen", "Available")["reason"] == "Asking"
            await sim.until("qwen", "Ready")

    play()


def test_a_long_fetch_does_not_keep_a_change_of_the_spec_or_a_deletion_waiting(tmp_path):
    ended = []

    async def for_hours(progress):
        try:
            progress(1, 100)
            await asyncio.sleep(HOUR)
        finally:
            ended.append(asyncio.get_running_loop().time())

    @virtual
    async def play():
        keeping = Script(for_hours)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            for number in range(6):  # more than there are workers
                await sim.make(f"m{number}", f"https://example.com/{number}.gguf")
            await asyncio.sleep(10)
            await sim.change("m0", source="https://example.com/other.gguf")
            await asyncio.sleep(1)
            assert len(ended) == 1
            assert len(keeping.times) == 7
            await sim.delete(MODELS, "m1")
            await asyncio.sleep(1)
            assert sim.model("m1") is None
            assert len(ended) == 2

    play()


@pytest.mark.parametrize("context", [2**31, 2**63, 2**64 - 1])
def test_a_number_in_a_header_that_no_object_can_hold_is_left_out_and_said(tmp_path, context):
    @virtual
    async def play():
        async with simulated_models(tmp_path, real=True) as sim:
            (tmp_path / "models").mkdir(exist_ok=True)
            (tmp_path / "models" / "q.gguf").write_bytes(gguf(context=context))
            await sim.start()
            await sim.make("qwen", f"file://{tmp_path}/models/q.gguf")
            await sim.until("qwen", "Ready")
            assert sim.model("qwen")["status"]["format"] == {
                "kind": "GGUF",
                "architecture": "qwen3",
                "quantization": "Q4_K_M",
            }
            assert "claims a context of more than 2147483647 tokens" in sim.condition("qwen", "Available")["message"]

    play()


# Secrets


def test_credentials_come_from_the_secret_and_appear_nowhere(tmp_path):
    @virtual
    async def play():
        keeping = Script(PermanentError(Reason.UNAUTHORIZED, "it was answered with 401", "Give the right token"))
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "hf://Qwen/Qwen3/q.gguf", secretRef={"name": "hf-token"})
            await sim.until("qwen", "Failed")
            assert sim.condition("qwen", "Degraded")["reason"] == "SecretNotFound"
            assert keeping.credentials is None
            secret = {"metadata": {"namespace": "default", "name": "hf-token"}, "stringData": {"token": "hf_s3cret"}}
            await sim.user.create(SECRETS, secret)
            await sim.world.until(lambda: keeping.credentials, 301)
            assert keeping.credentials.get("token") == "hf_s3cret"
            await asyncio.sleep(5)
            assert sim.condition("qwen", "Degraded")["reason"] == "Unauthorized"
            assert "s3cret" not in str(sim.model("qwen")) + str(sim.notes())

    play()


@pytest.mark.parametrize(
    "type_", ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"]
)
def test_a_secret_that_is_none_of_a_source_is_not_read(tmp_path, type_):
    @virtual
    async def play():
        keeping = Script(None)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            meta = {"namespace": "default", "name": "theirs"}
            if type_ == "kubernetes.io/service-account-token":
                meta["annotations"] = {"kubernetes.io/service-account.name": "default"}
            await sim.user.create(SECRETS, {"metadata": meta, "type": type_, "stringData": {"token": "s3cret"}})
            await sim.make("qwen", "https://attacker.example.com/q.gguf", secretRef={"name": "theirs"})
            await sim.until("qwen", "Failed")
            degraded = sim.condition("qwen", "Degraded")
            assert degraded["reason"] == "SecretUnusable"
            assert "is not sent to any source" in degraded["message"]
            assert keeping.times == []

    play()


# Pods


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        ("pvc://weights/qwen.gguf", {}, "CheckedByPods"),
        ("hf://Qwen/Qwen3-0.6B", {}, "CheckedByPods"),
        ("https://example.com/qwen.gguf", {"by_pods": True}, "FetchedByPods"),
        ("file:///models/only-on-the-host.gguf", {"by_pods": True}, "FetchedByPods"),
    ],
)
def test_what_only_pods_can_read_is_left_to_them(tmp_path, source, options, reason):
    @virtual
    async def play():
        keeping = Script(RuntimeError("nobody may look"))
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping, **options)
            await sim.make("qwen", source)
            await sim.until("qwen", "Ready")
            assert sim.condition("qwen", "Available")["reason"] == reason
            await asyncio.sleep(HOUR)
            assert keeping.times == []
            await sim.delete(MODELS, "qwen")
            await asyncio.sleep(1)
            assert sim.model("qwen") is None

    play()


# Its end


def test_a_model_in_use_stays_and_says_who_uses_it(tmp_path):
    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start(Script(None))
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.serve("chat", "qwen")
            await sim.serve("search", "qwen")
            await sim.until("qwen", "Ready")
            await sim.delete(MODELS, "qwen")
            await sim.until("qwen", "Deleting")
            deleting = sim.condition("qwen", "Deleting")
            assert deleting["reason"] == "InUse"
            assert deleting["message"] == (
                "It is used by servingendpoint/chat, servingendpoint/search. "
                "Delete them or switch them to another model; then this Model is deleted."
            )
            await asyncio.sleep(5)
            writes = len(sim.writes())
            await asyncio.sleep(HOUR)
            assert len(sim.writes()) == writes
            await sim.delete(ENDPOINTS, "chat")
            await asyncio.sleep(2)
            assert "servingendpoint/chat" not in sim.condition("qwen", "Deleting")["message"]
            await sim.delete(ENDPOINTS, "search")
            await sim.world.until(lambda: sim.model("qwen") is None, 2)

    play()


def test_an_endpoint_that_the_cache_does_not_know_yet_protects_too(tmp_path):
    """The last check before the deletion is a fresh read."""

    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start(Script(None))
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Ready")
            cache = sim.manager.informer(ENDPOINTS).store
            await sim.serve("chat", "qwen")
            await asyncio.sleep(1)
            cache.remove(ObjectKey("default", "chat"))
            await sim.delete(MODELS, "qwen")
            await sim.until("qwen", "Deleting")

    play()


def test_deletion_comes_before_any_look_at_the_spec(tmp_path):
    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start()
            await sim.make("qwen", "https://user:password@example.com/qwen.gguf", secretRef={"name": "gone"})
            await sim.until("qwen", "Failed")
            assert sim.condition("qwen", "Degraded")["reason"] == "InvalidSource"
            assert "password" not in sim.condition("qwen", "Degraded")["message"]
            await sim.delete(MODELS, "qwen")
            await sim.world.until(lambda: sim.model("qwen") is None, 2)

    play()


def test_a_deleted_model_says_which_files_it_took_along(tmp_path):
    class Telling(Script):
        async def release(self, user, *, retain=None, but=None):
            return [Removed("/cache/ab/qwen.gguf", 10), Removed("/cache/cd/x.gguf", 7, "another Model")]

    @virtual
    async def play():
        async with simulated_models(tmp_path) as sim:
            await sim.start(Telling(None))
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Ready")
            await sim.delete(MODELS, "qwen")
            await sim.world.until(lambda: sim.model("qwen") is None, 2)
            await asyncio.sleep(5)
            assert "Removed /cache/ab/qwen.gguf (10 bytes), /cache/cd/x.gguf stays for another Model." in sim.notes()

    play()


def test_files_that_cannot_be_removed_keep_the_model_and_are_named(tmp_path):
    class Stuck(Script):
        stuck = True

        async def release(self, user, *, retain=None, but=None):
            if self.stuck and but is None:
                raise PermissionError(13, "Permission denied", "/cache/ab")
            return []

    @virtual
    async def play():
        keeping = Stuck(None)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.until("qwen", "Ready")
            await sim.delete(MODELS, "qwen")
            await sim.until("qwen", "Deleting")
            assert sim.condition("qwen", "Deleting")["reason"] == "CacheNotRemoved"
            assert "/cache/ab cannot be removed: Permission denied" in sim.condition("qwen", "Deleting")["message"]
            await asyncio.sleep(5)
            writes = len(sim.writes())
            await asyncio.sleep(HOUR)
            assert len(sim.writes()) == writes
            keeping.stuck = False
            await sim.world.until(lambda: sim.model("qwen") is None, 301)

    play()


@pytest.mark.parametrize(("policy", "retain"), [("Delete", False), ("Retain", True)])
def test_the_cache_policy_is_kept_to(tmp_path, policy, retain):
    @virtual
    async def play():
        keeping = Script(None)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf", cache={"policy": policy})
            await sim.until("qwen", "Ready")
            await sim.delete(MODELS, "qwen")
            await sim.world.until(lambda: sim.model("qwen") is None, 2)
            assert keeping.released[-1][1:] == (retain, None)

    play()


def test_what_a_model_left_whose_finalizer_was_taken_off_is_released(tmp_path):
    @virtual
    async def play():
        keeping = Script(None)
        async with simulated_models(tmp_path) as sim:
            await sim.start(keeping)
            await sim.make("qwen", "https://example.com/qwen.gguf")
            await sim.serve("chat", "qwen")
            await sim.until("qwen", "Ready")
            uid = sim.model("qwen")["metadata"]["uid"]
            await sim.delete(MODELS, "qwen")
            await sim.until("qwen", "Deleting")
            assert (uid, None, None) not in keeping.released
            await sim.user.patch(MODELS, ObjectKey("default", "qwen"), merge_patch({"metadata": {"finalizers": None}}))
            await asyncio.sleep(1)
            assert sim.model("qwen") is None
            assert (uid, None, None) in keeping.released

    play()
