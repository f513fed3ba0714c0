"""Servers, clients and nginx for measuring the gateway. As light as they can be: they are not what is measured."""

import asyncio
import contextlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

BODY = b'{"model":"chat","messages":[{"role":"user","content":"How deep is the harbour?"}]}'
TOKEN_SECONDS = 0.01
WRK_CONNECTIONS = 50
"""Number of concurrent clients that an endpoint has to bear. With a few, idle cores are woken for each request,
which costs the slower of two proxies more than the faster one."""

_NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log error;
events {{ worker_connections 4096; }}
http {{
  access_log {log}; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 1000000;
  {content}
}}
"""
_PROXY = """
  log_format line escape=json
    '{{"time":"$time_iso8601","method":"$request_method","host":"$host","path":"$request_uri",'
    '"namespace":"default","endpoint":"chat","cluster":"$proxy_host","server":"$upstream_addr","status":$status,'
    '"bytes_in":$request_length,"bytes_out":$bytes_sent,"seconds":$request_time,'
    '"seconds_to_first_byte":"$upstream_header_time","client":"$remote_addr","request_id":"$request_id"}}';
  upstream servers {{ server 127.0.0.1:{upstream}; {keep} }}
  server {{
    listen 127.0.0.1:{port};
    location /endpoints/default/chat/ {{
      proxy_pass http://servers/; proxy_buffering off; {reuse}
      proxy_set_header Host $http_host; proxy_set_header X-Request-Id $request_id;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
"""
_SERVER = """
  server {{
    listen 127.0.0.1:{port}; default_type application/json;
    keepalive_timeout 60s;
    location / {{ return 200 '{answer}'; }}
  }}
"""


_ANSWER = (
    '{"id":"c","object":"chat.completion","created":1,"model":"chat","choices":[{"index":0,"finish_reason":"stop",'
    '"message":{"role":"assistant","content":"Ten fathoms."}}],'
    '"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}'
)


class Answering(asyncio.Protocol):
    """A server that says its name to every request; to one below /stream it sends tokens, each with its time."""

    def __init__(self, name: str, tokens: int = 0) -> None:
        self._answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(name)}\r\n\r\n{name}".encode()
        self._tokens = tokens
        self._transport: asyncio.Transport | None = None
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            found = re.search(rb"(?i)content-length: *(\d+)", self._data[:end])
            whole = end + 4 + (int(found[1]) if found else 0)
            if len(self._data) < whole:
                return
            self._data = self._data[whole:]
            assert self._transport is not None
            if self._tokens:
                self._task = asyncio.ensure_future(self._stream())
            else:
                self._transport.write(self._answer)

    async def _stream(self) -> None:
        assert self._transport is not None
        self._transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(self._tokens):
            await asyncio.sleep(TOKEN_SECONDS)
            line = f"data: {time.perf_counter():.9f}\n\n".encode()
            self._transport.write(b"%x\r\n%s\r\n" % (len(line), line))
        self._transport.write(b"0\r\n\r\n")


async def serve(name: str, tokens: int = 0) -> asyncio.Server:
    """Serve on a free port of loopback."""
    return await asyncio.get_running_loop().create_server(lambda: Answering(name, tokens), "127.0.0.1", 0)


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


class Client:
    """One connection that asks again and again."""

    def __init__(self, port: int, path: str) -> None:
        self._port = port
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
        )
        self._request = head.encode() + BODY

    async def __aenter__(self) -> "Client":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self) -> tuple[int, str]:
        """Status and body."""
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        body = await self._reader.readexactly(int(length[1]) if length else 0)
        return int(head.split(b" ", 2)[1]), body.decode()

    async def delays(self) -> list[float]:
        """Seconds that each token of a stream was under way."""
        self._writer.write(self._request)
        await self._reader.readuntil(b"\r\n\r\n")
        found: list[float] = []
        while size := int(await self._reader.readline(), 16):
            chunk = await self._reader.readexactly(size + 2)
            now = time.perf_counter()
            found += [now - float(each) for each in re.findall(rb"data: ([0-9.]+)", chunk)]
        await self._reader.readline()
        return found


async def token_delays(ports: dict[str, tuple[int, str]], rounds: int, streams: int) -> dict[str, float]:
    """The median delay of a token on each way, in seconds; all take turns."""
    found: dict[str, list[float]] = {name: [] for name in ports}
    for _ in range(rounds):
        for name, (port, path) in ports.items():
            async with contextlib.AsyncExitStack() as stack:
                clients = [await stack.enter_async_context(Client(port, path)) for _ in range(streams)]
                for delays in await asyncio.gather(*(each.delays() for each in clients)):
                    found[name] += delays
    return {name: statistics.median(each) for name, each in found.items()}


def missing() -> str:
    """Names of the programs that the comparison needs and that are not installed."""
    return next((each for each in ("nginx", "wrk", "taskset") if shutil.which(each) is None), "")


@contextlib.contextmanager
def nginx_server(port: int) -> Iterator[psutil.Process]:
    """The server behind both proxies, in C: it is never the bottleneck."""
    with _nginx(_SERVER.format(port=port, answer=_ANSWER), "off") as process:
        yield process


@contextlib.contextmanager
def nginx_proxy(port: int, upstream: int, *, kept: bool) -> Iterator[psutil.Process]:
    """nginx as the gateway is: nothing buffered, the same headers for the server, the same line for each request.

    To a server it opens a connection for each request, as the gateway does and as it does unless it is told otherwise;
    `kept`: it uses them again. In front of a llama-server that loses requests: see docs/gateway.md.
    """
    keep = "keepalive 64; keepalive_requests 1000000;" if kept else ""
    reuse = 'proxy_http_version 1.1; proxy_set_header Connection "";' if kept else ""
    content = _PROXY.format(port=port, upstream=upstream, keep=keep, reuse=reuse)
    with _nginx(content, "{folder}/access.log line") as process:
        yield process


@contextlib.contextmanager
def _nginx(content: str, log: str) -> Iterator[psutil.Process]:
    with tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder:
        config = Path(folder) / "nginx.conf"
        if log != "off":  # a format has to be named before it is used
            content, log = content + f"  access_log {log.format(folder=folder)};", "off"
        config.write_text(_NGINX.format(folder=folder, log=log, content=content).replace("user ", "#user "))
        process = subprocess.Popen(["nginx", "-e", f"{folder}/error.log", "-c", str(config)])
        try:
            workers: list[psutil.Process] = []
            while not workers:
                time.sleep(0.05)
                workers = psutil.Process(process.pid).children()
            yield workers[0]
        finally:
            process.terminate()
            process.wait()


def pin(pid: int, core: int) -> None:
    """Let a process, with all its threads, run on one core."""
    subprocess.run(["taskset", "-a", "-p", "-c", str(core), str(pid)], check=True, stdout=subprocess.DEVNULL)


def cpu_of(process: psutil.Process) -> float:
    """Seconds so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def wrk(url: str, core: int, seconds: int, script: str = "") -> tuple[int, float]:
    """Requests that were answered with 200, and the seconds that it took."""
    command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{WRK_CONNECTIONS}", f"-d{seconds}s"]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        if script:
            file.write(script)
            file.flush()
            command += ["-s", file.name]
        said = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in said:
        raise RuntimeError(f"wrk got errors from {url}: {said}")
    found = re.search(r"(\d+) requests in ([0-9.]+)s", said)
    assert found is not None, said
    return int(found[1]), float(found[2])


def posting(body: bytes) -> str:
    """A script of wrk that sends this body."""
    return (
        f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[{body.decode()}]==]\n'
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Percentile of sorted values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
