"""Endpoints of every kind, for tests: each runtime on each placement, with each way to get weights and to scale."""

from typing import Any, NamedTuple

from pilotage.api.endpoint import EndpointSpec
from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel

GGUF = ResolvedModel("qwen", "hf://Qwen/Qwen3-0.6B-GGUF/qwen3-0.6b-q4_k_m.gguf", sha256="ab" * 32)
REPOSITORY = ResolvedModel("qwen", "hf://Qwen/Qwen3-0.6B@v1.0", secret="hf-token")
SOURCES = {
    "gguf": GGUF,
    "secret": ResolvedModel("qwen", "s3://models/qwen/a.gguf", secret="bucket"),
    "claim": ResolvedModel("qwen", "pvc://models/qwen/a.gguf"),
    "node": ResolvedModel("qwen", "file:///models/qwen/a.gguf"),
    "repository": REPOSITORY,
}
ALL = Capabilities(keda=True, fetch_image="pilotage:1", host_paths=("/models",))
NAME = "assistant"
UID = "6f1c0a3e-0000-4000-8000-000000000001"

RUNTIMES: dict[str, dict[str, Any]] = {
    "llama.cpp": {"args": ["--ctx-size", "8192"]},
    "vllm": {"args": ["--max-model-len=4096"], "env": [{"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"}]},
    "sglang": {"port": 9000},
    "tgi": {"env": [{"name": "EMPTY"}]},
    "custom": {"image": "example.com/server:1", "command": ["/server"], "args": ["$(MODEL_PATH)"], "healthPath": "/ok"},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "gpus": {
        "resources": {
            "limits": {"nvidia.com/gpu": 2, "memory": "64Gi"},
            "requests": {"cpu": "1500m", "memory": "32768Mi"},
        },
        "nodeSelector": {"gpu": "yes"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "replicas": 3,
    },
    "cache": {"cache": {"size": "10Gi"}, "replicas": 0},
    "shared": {"cache": {"size": "1.5Gi", "accessMode": "ReadWriteMany", "storageClassName": "fast"}},
    "by CPU": {"autoscaling": {"min": 2, "max": 5}, "resources": {"requests": {"cpu": 1}}},
    "by requests": {"autoscaling": {"max": 5, "targetConcurrency": 8}, "resources": {"requests": {"cpu": "0.5"}}},
    "no drain": {"deletion": {"drainSeconds": 0}},
    "long drain": {"deletion": {"drainSeconds": 86400}},
}


class Case(NamedTuple):
    """One endpoint."""

    subject: EndpointRef
    model: ResolvedModel


def subject(spec: dict[str, Any] | None = None, name: str = NAME, namespace: str = "chat", **more: Any) -> EndpointRef:
    """An endpoint; `spec` and `more` have what is not the default."""
    whole = {"model": {"name": "qwen"}} | (spec or {}) | more
    return EndpointRef(namespace, name, UID, EndpointSpec.read(whole))


def cases(namespace: str = "chat", kinds: tuple[str, ...] = ("Deployment", "KServe")) -> dict[str, Case]:
    """All of them that can be served, by what they are."""
    found = {}
    for kind in kinds:
        for runtime, details in RUNTIMES.items():
            base = {"runtime": {"name": runtime, **details}, "placement": {"kind": kind}}
            longest = "a" * (42 if kind == "KServe" else 52)
            model = GGUF if runtime == "llama.cpp" else REPOSITORY
            for option, spec in OPTIONS.items():
                found[f"{kind}, {runtime}, {option}"] = Case(subject(base | spec, namespace=namespace), model)
            for source, model in SOURCES.items():
                if runtime != "llama.cpp" or source != "repository":
                    found[f"{kind}, {runtime}, {source}"] = Case(subject(base, longest, namespace), model)
    return found
