"""Arguments of each server, and how it is stopped."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pilotage.serving import desired_objects
from pilotage.serving.parts import ResolvedModel
from tests.serving.cases import ALL, GGUF, REPOSITORY, subject

Json = dict[str, Any]


def pod_of(model: ResolvedModel = GGUF, *, gpus: int = 0, drain: int = 30, **runtime: Any) -> Json:
    spec: Json = {"runtime": runtime, "deletion": {"drainSeconds": drain}}
    if gpus:
        spec["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    parts = desired_objects(subject(spec), 1, model, ALL)
    pod: Json = next(each.body for each in parts if each.resource.kind == "Deployment")["spec"]["template"]["spec"]
    return pod


def server_of(model: ResolvedModel = GGUF, **more: Any) -> Json:
    server: Json = pod_of(model, **more)["containers"][0]
    return server


def test_llama_cpp_serves_one_file_under_the_models_name():
    server = server_of(args=["--ctx-size", "8192"])
    path = server["args"][1]
    assert path.startswith("/weights/models/")
    assert path.endswith("/qwen3-0.6b-q4_k_m.gguf")
    assert server["args"] == [
        *("--model", path),
        *("--alias", "qwen"),
        *("--host", "0.0.0.0"),
        *("--port", "8080"),
        "--metrics",
        *("--ctx-size", "8192"),
    ]
    assert server["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert "cuda" in server_of(gpus=1)["image"]


def test_vllm_loads_a_repository_and_drains_for_as_long_as_requests_may_take():
    server = server_of(REPOSITORY, name="vllm", drain=77, gpus=4)
    assert server["command"] == ["vllm", "serve"]
    assert server["args"] == [
        "Qwen/Qwen3-0.6B",
        *("--served-model-name", "qwen"),
        *("--host", "0.0.0.0"),
        *("--port", "8000"),
        *("--shutdown-timeout", "77"),
        *("--revision", "v1.0"),
        *("--tensor-parallel-size", "4"),
    ]
    assert {"name": "HF_HOME", "value": "/weights/hub"} in server["env"]
    tokens = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in server["env"] if "valueFrom" in each}
    assert tokens == {
        "HF_TOKEN": {"name": "hf-token", "key": "HF_TOKEN", "optional": True},
        "HUGGING_FACE_HUB_TOKEN": {"name": "hf-token", "key": "token", "optional": True},
    }
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in server["volumeMounts"]


def test_vllm_answers_to_every_name_of_its_route():
    args = server_of(REPOSITORY._replace(other_names=("chat", "former")), name="vllm")["args"]
    assert args[1:5] == ["--served-model-name", "qwen", "chat", "former"]
    given = server_of(REPOSITORY._replace(other_names=("chat",)), name="vllm", args=["--served-model-name", "x"])
    assert given["args"].count("--served-model-name") == 1


@pytest.mark.parametrize(
    ("image", "drains"),
    [
        ("vllm/vllm-openai:v0.18.0", True),
        ("vllm/vllm-openai:v0.17.1", False),
        ("example.com:5000/vllm:v0.9.2-rocm", False),
        ("example.com:5000/vllm:ours", True),
        ("example.com:5000/vllm@sha256:" + "0" * 64, True),
    ],
)
def test_a_vllm_that_drops_requests_gets_its_signal_when_their_time_is_over(image, drains):
    server = server_of(REPOSITORY, name="vllm", image=image, drain=60)
    assert ("--shutdown-timeout" in server["args"]) == drains
    assert server["lifecycle"]["preStop"]["sleep"]["seconds"] == (5 if drains else 65)


def test_tgi_gets_its_signal_later_where_requests_may_take_longer_than_it_gives_them():
    for drain, before in ((30, 5), (90, 5), (300, 215)):
        pod = pod_of(REPOSITORY, name="tgi", drain=drain)
        assert pod["containers"][0]["lifecycle"]["preStop"] == {"sleep": {"seconds": before}}
        assert pod["terminationGracePeriodSeconds"] == 5 + drain + 15


def test_sglang_is_told_where_its_model_is():
    args = server_of(ResolvedModel("qwen", "pvc://models/qwen/"), name="sglang")["args"]
    assert args[:4] == ["--model-path", "/weights/qwen", "--served-model-name", "qwen"]
    assert "--enable-metrics" in args


def test_what_a_user_says_comes_in_place_of_what_the_preset_says():
    args = server_of(args=["--alias=other"])["args"]
    assert "--alias" not in args
    assert args[-1] == "--alias=other"
    server = server_of(REPOSITORY, name="vllm", env=[{"name": "HF_HOME", "value": "/elsewhere"}])
    assert [each for each in server["env"] if each["name"] == "HF_HOME"] == [{"name": "HF_HOME", "value": "/elsewhere"}]


def test_a_custom_server_finds_everything_in_its_environment():
    server = server_of(name="custom", image="example.com/server:1", port=9000, args=["--model", "$(MODEL_PATH)"])
    env = {each["name"]: each["value"] for each in server["env"]}
    assert env.keys() == {"MODEL_PATH", "MODEL_NAME", "PORT"}
    assert (env["MODEL_NAME"], env["PORT"]) == ("qwen", "9000")
    assert server["args"] == ["--model", "$(MODEL_PATH)"]
    assert server["readinessProbe"]["tcpSocket"] == {"port": "http"}


def test_weights_are_fetched_into_the_cache_before_the_server_starts():
    pod = pod_of(ResolvedModel("qwen", "s3://models/a b$(X).gguf?v=1", sha256="ab" * 32, secret="bucket"))
    [fetch] = pod["initContainers"]
    path = pod["containers"][0]["args"][1]
    assert fetch["image"] == "pilotage:1"
    assert fetch["args"][:4] == ["fetch", "s3://models/a b$$(X).gguf?v=1", "--to", path]
    assert fetch["args"][4:] == ["--sha256", "ab" * 32, "--credentials", "/var/run/pilotage/credentials"]
    assert {"name": "credentials", "secret": {"secretName": "bucket"}} in pod["volumes"]
    assert {"name": "weights", "emptyDir": {}} in pod["volumes"]
    mounted = {each["name"]: each for each in pod["containers"][0]["volumeMounts"]}
    assert mounted["weights"]["readOnly"] is True
    assert "credentials" not in mounted  # the server has no business with them


def test_two_sources_of_one_name_do_not_take_each_others_place():
    paths = {server_of(ResolvedModel("qwen", source))["args"][1] for source in ("s3://a/m.gguf", "s3://b/m.gguf")}
    assert len(paths) == 2


@pytest.mark.parametrize(
    ("source", "volume", "path"),
    [
        ("pvc://models/qwen/a.gguf", {"persistentVolumeClaim": {"claimName": "models"}}, "/weights/qwen/a.gguf"),
        ("pvc://models/../../etc/shadow", {"persistentVolumeClaim": {"claimName": "models"}}, "/weights/etc/shadow"),
        ("file:///models/a.gguf", {"hostPath": {"path": "/models/a.gguf", "type": "File"}}, "/weights/a.gguf"),
    ],
)
def test_weights_that_are_there_are_mounted_read_only(source, volume, path):
    pod = pod_of(ResolvedModel("qwen", source))
    assert pod["volumes"] == [{"name": "weights"} | volume]
    [server] = pod["containers"]
    assert server["args"][1] == path
    assert [each["readOnly"] for each in server["volumeMounts"]] == [True]
    assert "initContainers" not in pod


COUNTED = {
    "llama.cpp": "llamacpp:requests_processing",
    "vllm": "vllm:num_requests_running",
    "sglang": "sglang:num_running_reqs",
    "tgi": "tgi_batch_current_size",
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_metric_of_requests_in_work_scales_an_endpoint_and_prometheus_is_told_where_it_is(name: str):
    spec = {"runtime": {"name": name}, "autoscaling": {"max": 3, "targetConcurrency": 8}}
    parts = {each.resource.kind: each.body for each in desired_objects(subject(spec), 1, GGUF, ALL)}
    [trigger] = parts["ScaledObject"]["spec"]["triggers"]
    assert trigger["metadata"]["valueLocation"] == COUNTED[name]
    assert trigger["metadata"]["url"].endswith(".chat.svc:80/metrics")
    template = parts["Deployment"]["spec"]["template"]
    [port] = template["spec"]["containers"][0]["ports"]
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port["containerPort"]),
        "prometheus.io/path": "/metrics",
    }


def test_a_server_without_metrics_is_not_scraped_and_scales_by_cpu():
    spec = {"runtime": {"name": "custom", "image": "x"}, "autoscaling": {"max": 3, "targetConcurrency": 8}}
    parts = {each.resource.kind: each.body for each in desired_objects(subject(spec), 1, GGUF, ALL)}
    assert "annotations" not in parts["Deployment"]["spec"]["template"]["metadata"]
    assert "HorizontalPodAutoscaler" in parts


@pytest.mark.parametrize(
    ("runtime", "check"),
    [
        ({"name": "vllm"}, {"httpGet": {"path": "/health", "port": "http"}}),
        ({"name": "vllm", "healthPath": "/ping"}, {"httpGet": {"path": "/ping", "port": "http"}}),
        ({"name": "custom", "image": "x"}, {"tcpSocket": {"port": "http"}}),
        ({"name": "custom", "image": "x", "healthPath": "/ok"}, {"httpGet": {"path": "/ok", "port": "http"}}),
    ],
)
def test_health_is_asked_where_the_user_says_or_the_runtime_has_it(runtime: Json, check: Json):
    server = server_of(**runtime)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert check.items() <= server[probe].items()


IDLE = "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
BUSY = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n"
QUEUED = "llamacpp:requests_processing 0\nllamacpp:requests_deferred 2\n"


@pytest.mark.parametrize(
    ("answers", "seconds"),
    [
        ([IDLE], 5),
        ([BUSY, QUEUED, BUSY, IDLE], 5 + 3),
        ([BUSY] * 9, 5 + 5),
        ([""] * 9, 5 + 5),  # no answer is not an idle server
    ],
)
def test_llama_cpp_is_kept_from_its_signal_until_it_is_idle(tmp_path: Path, answers, seconds):
    """It hangs after SIGTERM with a request under way, and so does the client."""
    [*_, script] = server_of(drain=5)["lifecycle"]["preStop"]["exec"]["command"]
    (tmp_path / "now").write_text("1000")
    (tmp_path / "asked").write_text("0")
    for number, answer in enumerate(answers):
        (tmp_path / f"answer{number}").write_text(answer)
    stand_ins = {
        "sleep": "echo $(($(cat now)+$1)) > now",
        "date": "cat now",
        "curl": 'n=$(cat asked); echo $((n+1)) > asked; cat "answer$n"',
    }
    for name, body in stand_ins.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", script], cwd=tmp_path, env={"PATH": path}, check=True, timeout=20)
    assert int((tmp_path / "now").read_text()) - 1000 == seconds
