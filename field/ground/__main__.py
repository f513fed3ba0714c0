"""Command `python -m field.ground`: serves commands on a unix socket inside of the network of its own."""

import asyncio
import ctypes
import json
import signal
import subprocess
import sys
from typing import Any

from field.ground import network
from field.ground.backends import Backend
from field.ground.load import Load
from field.ground.relay import Relay

PR_SET_PDEATHSIG = 1


class Ground:
    """State of the network (servers, load, Envoy) and the commands that act on it."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._backends: dict[str, Backend] = {}
        self._loads: dict[str, Load] = {}
        self._numbers: dict[str, int] = {}
        self._envoys: list[subprocess.Popen[bytes]] = []

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Obey one command."""
        match command.pop("do"):
            case "relay":
                return {"port": await self._relay.start()}
            case "envoy":
                self._start_envoy(**command)
            case "hold":
                self._relay.hold()
            case "release":
                self._relay.release()
            case "backend":
                return {"address": await self._start_backend(**command)}
            case "stop-backend":
                self._backends.pop(command["name"]).stop()
            case "load":
                self._loads[command["host"]] = Load(**command)
            case "mark":
                self._loads[command["host"]].mark()
            case "report":
                return self._loads[command["host"]].report()
            case "stop-load":
                return await self._loads.pop(command["host"]).stop()
            case other:
                return {"error": f"no command {other!r}"}
        return {}

    def _start_envoy(self, argv: list[str], log: str) -> None:
        libc = ctypes.CDLL(None)
        with open(log, "ab") as output:  # noqa: PTH123
            self._envoys.append(
                subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
                )
            )

    async def _start_backend(self, name: str) -> str:
        """Start a backend. Each name keeps its address, which no other gets."""
        number = self._numbers.setdefault(name, len(self._numbers) + 1)
        address = f"198.18.{number // 250}.{number % 250 + 1}"
        network.add_address(number, address)
        self._backends[name] = Backend(name, address)
        await self._backends[name].start()
        return address


async def serve(path: str, relay: Relay) -> None:
    """Serve until killed."""
    ground = Ground(relay)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            try:
                answer = await ground.do(json.loads(line))
            except (OSError, KeyError, TypeError) as error:
                answer = {"error": repr(error)}
            writer.write(json.dumps(answer).encode() + b"\n")

    server = await asyncio.start_unix_server(talk, path)
    await server.serve_forever()


async def main() -> None:
    """Make what belongs to the old network, leave it, and serve."""
    relay = Relay(int(sys.argv[2]))
    network.leave()
    await serve(sys.argv[1], relay)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except OSError as error:
        sys.exit(str(error))
