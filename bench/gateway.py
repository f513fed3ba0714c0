"""The gateway: time until a change is proven, requests that go astray meanwhile, and its cost beside nginx.

One run, one machine: harbor and the control plane in this process, a real Envoy, and nginx (where it is installed, with
wrk) in front of the same servers. `python -m bench.gateway` measures this alone, without a cluster.

A change is proven when Envoy has acknowledged it; the time is that from the moment the control plane hears of it.
Stale are requests that were sent after that and still reached the old server. Throughput is that of one core: requests
by the CPU time of the proxy's process, so that what else runs on the machine does not count.

Envoy is killed, too: the time is that from the kill to the first answer of a server, for a client that keeps asking.

nginx is measured in two ways, and the gateway beside each: with a connection to the server for each request, which is
how nginx is as Debian has it and how the gateway is in front of a llama-server; and with kept connections, which is how
the gateway is in front of servers that keep them. Goals are decided with requests that both lead by their path: nginx
looks into no body. LiteLLM's proxy leads by model, and keeps connections.
"""

import asyncio
import contextlib
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from bench import steadiness
from bench.figures import PILOTAGE, Goal, Section
from bench.gateway_litellm import VERSION, litellm_proxy
from bench.gateway_stage import Stage, playing, staged, until
from bench.gateway_traffic import (
    BODY,
    Client,
    cpu_of,
    missing,
    nginx_proxy,
    nginx_server,
    percentile,
    pin,
    port_of,
    posting,
    serve,
    token_delays,
    wrk,
)
from bench.progress import say
from bench.run import Run

CHANGES = 500
CLIENTS = 4
ENDPOINTS = (3, 300, 3000)
MANY_CHANGES = 50
KILLS = 7
ASK_SECONDS = 0.002
ROUNDS = 3
WRK_ROUNDS = 7
WRK_SECONDS = 2
LITELLM_SECONDS = 10
"""With 50 clients it may take longer than 2 s until one of them has an answer."""
TOKENS = 100
STREAMS = 4
MS = 1e3
MIB = 1024 * 1024
NGINX = "nginx, as Debian has it: a connection for each request"
NGINX_KEPT = "nginx with kept connections"
BY_MODEL = "pilotage, by model"
PLAIN = "pilotage, a connection for each request"
PLAIN_BY_MODEL = "pilotage, by model, a connection for each request"
LITELLM = f"LiteLLM's proxy {VERSION}"


def run(_: Run | None = None) -> Section:
    """All of it."""
    section = Section("gateway", "The gateway: Envoy and its control plane, beside nginx")
    with tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder:
        asyncio.run(_changes(section, Path(folder) / "one"))
        for number in ENDPOINTS:
            asyncio.run(_many(section, Path(folder) / str(number), number))
        asyncio.run(_kills(section, Path(folder) / "killed"))
        if lacking := missing():
            section.notes.append(f"Not measured beside nginx: there is no {lacking} here.")
        else:
            asyncio.run(_beside_nginx(section, Path(folder) / "beside"))
    return section


async def _changes(section: Section, folder: Path) -> None:
    """One endpoint that moves between two servers, first in silence, then under load."""
    servers = [await serve("chat-1"), await serve("chat-2")]
    async with staged(folder) as stage:
        for number, server in enumerate(servers, 1):
            await stage.slice(f"chat-{number}", port_of(server))
        await stage.route("chat", _all_to(1))
        async with playing(stage):
            say(f"gateway: {CHANGES} changes in silence")
            steadiness.sample()
            silent = [await stage.changed("chat", _all_to(1 + number % 2)) for number in range(1, CHANGES + 1)]
            say(f"gateway: {CHANGES} changes under load")
            steadiness.sample()
            loaded, requests, stale, failed = await _under_load(stage)
    for each in servers:
        each.close()
    section.add("change to ACK, median", "ms", {PILOTAGE: statistics.median(silent) * MS})
    section.add("change to ACK, p99", "ms", {PILOTAGE: percentile(silent, 0.99) * MS})
    section.add("the same under load, median", "ms", {PILOTAGE: statistics.median(loaded) * MS})
    section.add(f"requests during {CHANGES} changes", "", {PILOTAGE: float(requests)})
    section.add("stale requests after the ACK", "", {PILOTAGE: float(stale)})
    section.add("failed requests", "", {PILOTAGE: float(failed)})
    section.goals.append(Goal("change to ACK, median", statistics.median(silent) * MS, 5.0, "ms"))
    section.goals.append(Goal("stale requests after the ACK", float(stale), 0.0, ""))


def _all_to(number: int) -> dict[str, int]:
    return {f"chat-{each}": 100 if each == number else 0 for each in (1, 2)}


async def _under_load(stage: Stage) -> tuple[list[float], int, int, int]:
    """Duration of each change; then the numbers of requests, of stale ones and of failed ones."""
    expected, epoch = "", 0
    requests = stale = failed = 0

    async def keep_asking() -> None:
        nonlocal requests, stale, failed
        async with Client(stage.port, "/v1/chat/completions") as client:
            while True:
                wanted, began = expected, epoch
                status, body = await client.ask()
                requests += 1
                failed += status != 200
                stale += bool(wanted and began == epoch and body != wanted)

    def _more(number: int) -> Callable[[], bool]:
        return lambda: requests >= number

    clients = [asyncio.create_task(keep_asking()) for _ in range(CLIENTS)]
    times: list[float] = []
    for number in range(CHANGES):
        target = 2 - number % 2
        expected, epoch = "", epoch + 1
        times.append(await stage.changed("chat", _all_to(target)))
        expected, epoch = f"chat-{target}", epoch + 1
        await until(_more(requests + CLIENTS))
    for each in clients:
        each.cancel()
    for outcome in await asyncio.gather(*clients, return_exceptions=True):
        failed += not isinstance(outcome, asyncio.CancelledError)
    return times, requests, stale, failed


async def _many(section: Section, folder: Path, endpoints: int) -> None:
    """Many endpoints, each with two revisions: until all are there, a change then, and what Envoy weighs.

    A change comes when the status of the one before it is written, as in a rollout. Its counts are read from Envoy,
    which takes longer the more there is.
    """
    say(f"gateway: {endpoints} endpoints")
    steadiness.sample()
    server = await serve("chat")
    async with staged(folder) as stage:
        for number in range(endpoints):
            backends = {f"e{number}-1": 100, f"e{number}-2": 0}
            for service in backends:
                await stage.slice(service, port_of(server))
            await stage.route(f"e{number}", backends)
        async with playing(stage) as seconds:
            assert stage.accepted() == endpoints
            await stage.settled()
            times = []
            for number in range(MANY_CHANGES):
                times.append(await stage.changed("e2", {"e2-1": number % 2 * 100, "e2-2": 100 - number % 2 * 100}))
                await stage.settled()
            rss = psutil.Process(stage.envoy.pid).memory_info().rss
            away = await _killed(stage, f"/endpoints/default/e{endpoints - 1}/v1/x")
    server.close()
    median = statistics.median(times) * MS
    section.add(f"{endpoints} endpoints programmed", "s", {PILOTAGE: seconds})
    section.add(f"change to ACK with {endpoints} endpoints, median", "ms", {PILOTAGE: median})
    section.add(f"RSS of Envoy with {endpoints} endpoints", "MiB", {PILOTAGE: rss / MIB})
    section.add(f"Envoy killed until it serves again with {endpoints} endpoints", "s", {PILOTAGE: away})
    if endpoints == max(ENDPOINTS):
        section.goals.append(Goal(f"change to ACK with {endpoints} endpoints, median", median, 5.0, "ms"))


async def _kills(section: Section, folder: Path) -> None:
    """Time from a kill of Envoy to the next answer, for a client that keeps asking. Each time a gateway of its own.

    A gateway whose Envoy is killed repeatedly backs off for longer and longer, which is not measured here.
    """
    server = await serve("chat")
    seconds: list[float] = []
    for number in range(KILLS):
        say(f"gateway: Envoy is killed, {number + 1} of {KILLS}")
        steadiness.sample()
        async with staged(folder / str(number)) as stage:
            await stage.slice("chat-1", port_of(server))
            await stage.route("chat", {"chat-1": 100})
            async with playing(stage):
                seconds.append(await _killed(stage, "/v1/chat/completions"))
    server.close()
    section.add("Envoy killed until it serves again, median", "s", {PILOTAGE: statistics.median(seconds)})
    section.add("Envoy killed until it serves again, slowest", "s", {PILOTAGE: max(seconds)})
    section.goals.append(Goal("Envoy killed until it serves again, median", statistics.median(seconds), 1.0, "s"))


async def _killed(stage: Stage, path: str) -> float:
    """Kill Envoy for the first time; the seconds until what is asked at a path is answered again."""
    await _answered(stage, path)
    assert stage.envoy.pid is not None
    began = time.perf_counter()
    os.kill(stage.envoy.pid, signal.SIGKILL)
    await _answered(stage, path)
    assert stage.envoy.starts == 2
    return time.perf_counter() - began


async def _answered(stage: Stage, path: str) -> None:
    """Ask until a server answers."""
    while True:
        with contextlib.suppress(OSError, EOFError):
            async with Client(stage.port, path) as client:
                status, _ = await client.ask()
                if status == 200:
                    return
        await asyncio.sleep(ASK_SECONDS)


async def _beside_nginx(section: Section, folder: Path) -> None:
    """Both proxies in front of the same servers: CPU for a request, and the delay of a token."""
    streaming = await serve("", TOKENS)
    server_port, proxy_port, kept_port, stream_port, litellm_port = [await _free_port() for _ in range(5)]
    async with staged(folder) as stage:
        await stage.slice("chat-1", server_port, kept=True)
        await stage.slice("plain-1", server_port)
        await stage.slice("tokens-1", port_of(streaming))
        await stage.route("chat", {"chat-1": 100})
        await stage.route("plain", {"plain-1": 100})
        await stage.route("tokens", {"tokens-1": 100})
        with (
            nginx_server(server_port) as server,
            nginx_proxy(proxy_port, server_port, kept=False) as proxy,
            nginx_proxy(kept_port, server_port, kept=True) as kept,
            nginx_proxy(stream_port, port_of(streaming), kept=False),
            litellm_proxy(litellm_port, server_port) as litellm,
        ):
            async with playing(stage):
                assert stage.envoy.pid is not None
                contestants = {
                    PILOTAGE: (f"http://127.0.0.1:{stage.port}", psutil.Process(stage.envoy.pid)),
                    NGINX: (f"http://127.0.0.1:{proxy_port}", proxy),
                    NGINX_KEPT: (f"http://127.0.0.1:{kept_port}", kept),
                    LITELLM: (f"http://127.0.0.1:{litellm_port}", litellm),
                }
                await asyncio.to_thread(_throughput, section, contestants, server)
                say("gateway: the delay of a token")
                steadiness.sample()
                ways = {
                    "direct": (port_of(streaming), "/"),
                    PILOTAGE: (stage.port, "/endpoints/default/tokens/v1/x"),
                    NGINX: (stream_port, "/endpoints/default/chat/v1/x"),
                }
                delays = await token_delays(ways, ROUNDS, STREAMS)
    streaming.close()
    added = {name: (delay - delays["direct"]) * MS for name, delay in delays.items() if name != "direct"}
    section.add("added delay of a token, median", "ms", added)
    section.goals.append(Goal("added delay of a token", added[PILOTAGE], 1.0, "ms"))


Contestants = dict[str, tuple[str, psutil.Process]]


def _throughput(section: Section, contestants: Contestants, server: psutil.Process) -> None:
    """The proxies on one core, the server and the load on the other."""
    for _, process in contestants.values():
        pin(process.pid, 0)
    pin(server.pid, 1)
    by_path, by_model = "/endpoints/default/chat/v1/x", "/v1/chat/completions"
    ways = {
        name: (f"{url}{by_model if name == LITELLM else by_path}", process)
        for name, (url, process) in contestants.items()
    }
    url, process = contestants[PILOTAGE]
    ways |= {
        BY_MODEL: (f"{url}{by_model}", process),
        PLAIN: (f"{url}/endpoints/default/plain/v1/x", process),
        PLAIN_BY_MODEL: (f"{url}{by_model}#plain", process),
    }
    rates = _per_core(ways)
    section.add("requests/s of one core", "/s", rates)
    section.add("CPU of a request", "µs", {name: 1e6 / rate for name, rate in rates.items()})
    section.add("RSS", "MiB", {name: each.memory_info().rss / MIB for name, (_, each) in contestants.items()})
    ours, plain = rates[PILOTAGE], rates[PLAIN]
    section.goals.append(
        Goal(f"throughput of {NGINX_KEPT}, in times of ours by path", rates[NGINX_KEPT] / ours, 4.0, "")
    )
    section.goals.append(Goal(f"throughput of {NGINX}, in times of ours like that", rates[NGINX] / plain, 3.0, ""))
    section.notes.append(
        f"throughput by model, in times of {LITELLM}: {rates[BY_MODEL] / rates[LITELLM]:.0f} with kept connections, "
        f"{rates[PLAIN_BY_MODEL] / rates[LITELLM]:.0f} without"
    )


def _per_core(ways: Contestants) -> dict[str, float]:
    """Requests by second of CPU: the medians of some rounds, in each of which all take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(1, WRK_ROUNDS + 1):
        say(f"gateway: throughput, round {number} of {WRK_ROUNDS}")
        steadiness.sample()
        for name, (url, process) in ways.items():
            before = cpu_of(process)
            body = BODY.replace(b'"chat"', b'"plain"') if url.endswith("#plain") else BODY
            seconds = LITELLM_SECONDS if name == LITELLM else WRK_SECONDS
            requests, _ = wrk(url.removesuffix("#plain"), 1, seconds, posting(body))
            found[name].append(requests / (cpu_of(process) - before))
    return {name: statistics.median(rates) for name, rates in found.items()}


async def _free_port() -> int:
    server = await serve("")
    port = port_of(server)
    server.close()
    await server.wait_closed()
    return port


if __name__ == "__main__":
    print(run())
    print(f"steadiness: {steadiness.verdict()}")
