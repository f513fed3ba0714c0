"""llama.cpp: `llama-server` with one GGUF file.

After SIGTERM with a request under way it closes its port and hangs, and so does the client (measured). So it gets the
signal when it has no request, or when the time for them is over.
"""

from __future__ import annotations

from pilotage.serving.runtimes.allowed import BATCH, COUNT, NAME, NAMES, NUMBER, NUMBERS, SIZE, SWITCH, Allowed, options
from pilotage.serving.runtimes.contract import EVERYWHERE, Job, Runtime, Server, arguments
from pilotage.serving.stopping import is_asked
from pilotage.serving.weights import literal

_IMAGE = "ghcr.io/ggml-org/llama.cpp:server-b10108"
_IMAGE_CUDA = "ghcr.io/ggml-org/llama.cpp:server-cuda-b10108"


def _server(job: Job) -> Server:
    runtime = job.spec.runtime
    # Both have to be there and 0: no answer is not an idle server.
    idle = (
        f"curl -s -m 2 http://127.0.0.1:{job.port}/metrics"
        " | grep -cE '^llamacpp:requests_(processing|deferred) 0$' | grep -qx 2"
    )
    options = [
        ("--model", literal(job.weights.path)),
        ("--alias", literal(job.model)),
        ("--host", EVERYWHERE),
        ("--port", str(job.port)),
        ("--metrics",),
    ]
    return Server(
        image=runtime.image or (_IMAGE_CUDA if job.gpus else _IMAGE),
        command=runtime.command,
        args=arguments(options, runtime.args),
        stop=is_asked(job.drain_seconds, idle),
        health=runtime.health_path or "/health",
        metrics="/metrics",
        in_flight=RUNTIME.in_flight,
    )


RUNTIME = Runtime(
    "llama.cpp",
    port=8080,
    server=_server,
    loads_repositories=False,
    single_file=True,
    in_flight="llamacpp:requests_processing",
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
