"""A program in the place of Envoy (`pilotage gateway --envoy`): Envoy, whose control plane is behind a relay.

SIGUSR1 to the relay, whose process id is in `PID`, holds back everything that the control plane sends; SIGUSR2 releases
it. Connections stay open. Envoy's admin interface says everything here, and not just what the gateway needs. All of it
is in the working directory, which is the gateway's. Only the standard library: it starts in a bare environment.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path

PID = "relay.pid"
RELAY = "relay.sock"
PR_SET_PDEATHSIG = 1
CHUNK = 65536


def main() -> None:
    """Read Envoy's bootstrap from standard input, and become Envoy. Its program is the first argument."""
    bootstrap = json.load(sys.stdin)
    control = bootstrap["static_resources"]["clusters"][0]["load_assignment"]["endpoints"][0]["lb_endpoints"][0]
    pipe = control["endpoint"]["address"]["pipe"]
    listener = _listen(RELAY)
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        asyncio.run(_Relay(pipe["path"]).run(listener))
    pipe["path"] = RELAY
    del bootstrap["admin"]["allow_paths"]
    content = os.memfd_create("bootstrap")
    os.write(content, json.dumps(bootstrap).encode())
    os.dup2(content, 0)
    os.execv(sys.argv[1], sys.argv[1:])


def _listen(path: str) -> socket.socket:
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener


class _Relay:
    def __init__(self, control: str) -> None:
        self._control = control
        self._open = asyncio.Event()
        self._open.set()

    async def run(self, listener: socket.socket) -> None:
        self._obey(asyncio.get_running_loop())
        server = await asyncio.start_unix_server(self._accept, sock=listener)
        await server.serve_forever()

    def _obey(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_signal_handler(signal.SIGUSR1, self._open.clear)
        loop.add_signal_handler(signal.SIGUSR2, self._open.set)
        Path(PID).write_text(str(os.getpid()))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_control, to_control = await asyncio.open_unix_connection(self._control)
        except OSError:  # it is not there yet; Envoy tries again
            writer.transport.abort()
            return
        ways = [self._pass_on(reader, to_control), self._pass_on(from_control, writer, held=True)]
        tasks = [asyncio.create_task(each) for each in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in tasks:
            each.cancel()
        for end in (writer, to_control):
            end.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held: bool = False) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                if held:
                    await self._open.wait()
                writer.write(data)
                await writer.drain()


if __name__ == "__main__":
    main()
