"""Problems of a spec are reported before anything is created."""

from typing import Any

import pytest

from pilotage.serving.parts import Capabilities, ResolvedModel
from pilotage.serving.problems import problems
from tests.serving.cases import ALL, GGUF, REPOSITORY, subject

CPU = {"requests": {"cpu": 1}}
HOST = {"kind": "Host", "host": "gpu-3"}


@pytest.mark.parametrize(
    ("said", "spec", "model", "capabilities"),
    [
        ("--port, which Pilotage sets itself", {"runtime": {"args": ["--port=1"]}}, GGUF, ALL),
        ("is a whole repository. Add the file", {}, REPOSITORY, ALL),
        ("Take sha256 out", {"runtime": {"name": "vllm"}}, REPOSITORY._replace(sha256="ab" * 32), ALL),
        ("name no fetch image", {}, GGUF, Capabilities()),
        ("may read nodes' files nowhere", {}, ResolvedModel("a", "file:///models/a"), Capabilities()),
        ("only below /models", {}, ResolvedModel("a", "file:///models/../etc/shadow"), ALL),
        ("only below /models", {}, ResolvedModel("a", "file:///models-of-others/a"), ALL),
        ("Take sha256 out", {}, ResolvedModel("a", "pvc://c/a", sha256="ab" * 32), ALL),
        ("autoscaling.min is 0", {"autoscaling": {"min": 0, "max": 2}, "resources": CPU}, GGUF, ALL),
        ("set resources.requests.cpu", {"autoscaling": {"max": 2}}, GGUF, ALL),
        (
            "set resources.requests.cpu",
            {"autoscaling": {"max": 2, "targetConcurrency": 4}},
            GGUF,
            ALL._replace(keda=False),
        ),
        ("more cpu (2) than", {"resources": {"limits": {"cpu": "1900m"}, "requests": {"cpu": 2}}}, GGUF, ALL),
        ("no KServe", {"placement": {"kind": "KServe"}}, GGUF, ALL._replace(kserve=False)),
        ("take autoscaling out", {"placement": HOST, "autoscaling": {"max": 2}}, GGUF, ALL),
        ("take cache out", {"placement": HOST, "cache": {"size": "1Gi"}}, GGUF, ALL),
        (
            "give the custom runtime a command",
            {"placement": HOST, "runtime": {"name": "custom", "image": "x"}},
            GGUF,
            ALL,
        ),
        ("This operator has no runtime ollama", {"runtime": {"name": "ollama"}}, GGUF, ALL),
        ("This operator has no placement.kind Nomad", {"placement": {"kind": "Nomad"}}, GGUF, ALL),
        ("which a Host cannot mount", {"placement": HOST}, ResolvedModel("a", "pvc://c/a"), ALL),
        (
            "more memory (2Gi) than",
            {"placement": HOST, "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}}},
            GGUF,
            ALL,
        ),
        ("needs an image", {"runtime": {"name": "custom", "command": ["serve"]}}, GGUF, ALL),
        (
            "needs an image",
            {"runtime": {"name": "custom", "command": ["serve"]}, "placement": {"kind": "KServe"}},
            GGUF,
            ALL,
        ),
    ],
)
def test_it_is_said(said: str, spec: dict[str, Any], model: ResolvedModel, capabilities: Capabilities):
    [found] = problems(subject(spec), model, capabilities)
    assert said in found


def test_a_name_that_kserve_cannot_make_its_own_of_is_refused():
    [found] = problems(subject({"placement": {"kind": "KServe"}}, name="a" * 43), GGUF, ALL)
    assert "at most 42 characters" in found


@pytest.mark.parametrize(
    ("spec", "model", "capabilities"),
    [
        ({"autoscaling": {"max": 2, "targetConcurrency": 4}}, GGUF, ALL),
        ({"placement": HOST}, ResolvedModel("a", "file:///anywhere/a.gguf"), Capabilities()),
        ({"placement": HOST, "runtime": {"name": "custom", "command": ["serve"]}}, GGUF, Capabilities()),
        ({"placement": HOST, "route": {"kind": "PilotageGateway"}}, GGUF, Capabilities()),
        ({"runtime": {"name": "custom", "image": "x", "args": ["--port", "1"]}}, GGUF, ALL),
        ({"resources": {"limits": {"cpu": 1}}, "autoscaling": {"max": 2}}, GGUF, ALL),
        ({"runtime": {"name": "vllm"}}, REPOSITORY, Capabilities()),
    ],
)
def test_what_works_is_not_refused(spec: dict[str, Any], model: ResolvedModel, capabilities: Capabilities):
    assert problems(subject(spec), model, capabilities) == []
