"""The command line of a server, from its spec. Pure.

A preset for llama.cpp, vLLM, SGLang and TGI; the user's arguments come last and win. Every command may have
placeholders: ``{model}``, ``{alias}``, ``{host}`` and ``{port}``, or, as in a pod, ``$(MODEL_PATH)``,
``$(MODEL_NAME)``, ``$(HOST)`` and ``$(PORT)``. They are also in its environment.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from pilotage.serving.runtimes.contract import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.api.endpoint import Runtime

CONTEXT_TOKENS = 4096
"""What llama-server gets unless the user says otherwise; all its requests share them."""


SLOTS = 4
"""Requests that it works on at a time, likewise."""
SLOT_TOKENS = 256
"""It gives each slot a multiple of this, also where that is more than was asked for."""
BATCH_TOKENS = 512
"""That it works on in one step; its own default."""
BATCH_COST = 10
"""In tokens of context: what each more in a step takes, for an answer to each of them."""
_RECKONED = {
    **dict.fromkeys(("-c", "--ctx-size"), "context"),
    **dict.fromkeys(("-np", "--parallel"), "slots"),
    **dict.fromkeys(("-ub", "--ubatch-size"), "batch"),
}


class Place(NamedTuple):
    """What is known when a server is started."""

    program: str
    """The executable of its runtime; empty where the command names one."""
    model: str
    """The path of the weights, or what else the program takes for them."""
    alias: str
    host: str
    port: int
    gpu: bool
    """Whether the host has one that llama.cpp could use."""


class Kind(NamedTuple):
    """How others see the state of a server."""

    health: str
    """The path that answers 200 when it can serve."""
    lists_models: bool
    """Whether /v1/models says under which name it serves."""
    in_flight: tuple[str, ...]
    """The metrics that count its requests, those that wait too; none: nobody can tell."""


KINDS = {
    "llama.cpp": Kind("/health", True, ("llamacpp:requests_processing", "llamacpp:requests_deferred")),
    "vllm": Kind("/health", True, ("vllm:num_requests_running", "vllm:num_requests_waiting")),
    "sglang": Kind("/health", True, ("sglang:num_running_reqs", "sglang:num_queue_reqs")),
    "tgi": Kind("/health", False, ("tgi_batch_current_size", "tgi_queue_size")),
    "custom": Kind("", False, ()),
}


def command_line(runtime: Runtime, place: Place) -> list[str]:
    """The program and its arguments. Only the user's own words may have placeholders: a path may look like one."""
    given = {name: [_filled(word, place) for word in getattr(runtime, name)] for name in ("command", "args")}
    return _PRESETS[runtime.name](runtime.model_copy(update=given), place)


def variables(runtime: Runtime, place: Place) -> dict[str, str]:
    """What its environment says."""
    said = {"MODEL_PATH": place.model, "MODEL_NAME": place.alias, "HOST": place.host, "PORT": str(place.port)}
    return said | {each.name: _filled(each.value, place) for each in runtime.env}


def context_tokens(args: list[str], trained: int | None = None) -> int:
    """How many tokens of context llama-server takes memory for. `trained`: those of the model, which it takes for 0."""
    asked = {"context": CONTEXT_TOKENS, "slots": SLOTS, "batch": BATCH_TOKENS}
    for word, following in itertools.pairwise([*args, ""]):
        name, equals, value = word.partition("=")
        given = value if equals else following
        if name in _RECKONED and given.isdecimal():
            asked[_RECKONED[name]] = int(given)
    context = max(asked["context"] or trained or CONTEXT_TOKENS, asked["slots"] * SLOT_TOKENS)
    return context + BATCH_COST * max(0, min(asked["batch"], context) - BATCH_TOKENS)


def _filled(word: str, place: Place) -> str:
    for names, value in (
        (("{model}", "$(MODEL_PATH)"), place.model),
        (("{alias}", "$(MODEL_NAME)"), place.alias),
        (("{host}", "$(HOST)"), place.host),
        (("{port}", "$(PORT)"), str(place.port)),
    ):
        for name in names:
            word = word.replace(name, value)
    return word


def _llama_cpp(runtime: Runtime, place: Place) -> list[str]:
    options: list[tuple[str, ...]] = [
        ("--model", place.model),
        ("--alias", place.alias),
        ("--host", place.host),
        ("--port", str(place.port)),
        ("--ctx-size", str(CONTEXT_TOKENS)),
        ("--parallel", str(SLOTS)),
        # One for each request that it holds, also those that wait for a slot; what it has left answers health checks.
        ("--threads-http", "128"),
        ("--fit", "off"),  # what it may take was reckoned before
        ("--cache-ram", "0"),
        ("--no-ui",),
        ("--metrics",),
        ("--offline",),
    ]
    if not place.gpu:
        options.append(("--device", "none"))
    return [*(runtime.command or [place.program]), *arguments(options, runtime.args)]


def _vllm(runtime: Runtime, place: Place) -> list[str]:
    options = [("--served-model-name", place.alias), ("--host", place.host), ("--port", str(place.port))]
    return [*(runtime.command or [place.program, "serve"]), place.model, *arguments([*options], runtime.args)]


def _sglang(runtime: Runtime, place: Place) -> list[str]:
    options: list[tuple[str, ...]] = [
        ("--model-path", place.model),
        ("--served-model-name", place.alias),
        ("--host", place.host),
        ("--port", str(place.port)),
        ("--enable-metrics",),
    ]
    return [*runtime.command, *arguments(options, runtime.args)]


def _tgi(runtime: Runtime, place: Place) -> list[str]:
    options = [("--model-id", place.model), ("--hostname", place.host), ("--port", str(place.port))]
    return [*(runtime.command or [place.program]), *arguments([*options], runtime.args)]


def _custom(runtime: Runtime, _place: Place) -> list[str]:
    return [*runtime.command, *runtime.args]


_PRESETS: dict[str, Callable[[Runtime, Place], list[str]]] = {
    "llama.cpp": _llama_cpp,
    "vllm": _vllm,
    "sglang": _sglang,
    "tgi": _tgi,
    "custom": _custom,
}
