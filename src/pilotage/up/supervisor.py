"""The supervisor: starts the components in order, restarts those that end, and stops them in the reverse order."""

import asyncio
import collections
import contextlib
import fcntl
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from urllib.parse import urlsplit

from pilotage.kube import ApiError, Client, load_config
from pilotage.processes import identity
from pilotage.processes.census import Marked, Processes
from pilotage.processes.identity import ProcessId
from pilotage.processes.ports import free_port, is_listening
from pilotage.processes.terminate import StillRunning, TerminationTarget, terminate
from pilotage.up import access, leftovers, logs
from pilotage.up.components import GATEWAY, HARBOR, STOP_ORDER, WORKERS, Component, command
from pilotage.up.layout import Layout, UpState
from pilotage.up.leftovers import UpError
from pilotage.up.settings import UpOptions, remember
from pilotage.up.tokens import ComponentTokens

LOCALHOST = "127.0.0.1"
START_SECONDS = 60
ATTEMPTS = 3
"""A component that has ended so often before it was ready for the first time fails the whole start."""
CLEAR_SECONDS = 60
"""Time from SIGTERM to SIGKILL, for a component of an earlier run."""
WRITE_SECONDS = 1.0
"""Pause between two attempts to record what runs."""
PORT_SECONDS = 0.5
"""Interval of checks whether the API server's port is free again."""


class Supervisor:
    """The components of one folder. `say` tells a person, a line at a time."""

    def __init__(self, options: UpOptions, say: Callable[[str], None]) -> None:
        self.layout = Layout(options.folder)
        self._options = options
        self._say = functools.partial(_say, say)
        self._components = {
            each: Component(each, self.layout, functools.partial(self._command, each)) for each in STOP_ORDER
        }
        self._processes: dict[str, ProcessId] = {}
        self._ports: dict[str, int] = {}
        self._all_ready = False
        self._hurried = False
        self._changed = asyncio.Event()
        """Set while the recorded state is not what runs."""
        self._exits: collections.Counter[str] = collections.Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tokens = ComponentTokens(self.layout, self._client, self._say, options.host)

    async def run(self, told: asyncio.Event, on_ready: Callable[[UpState], None]) -> None:
        """Start everything, keep it running until `told`, then stop everything. Raises UpError."""
        with self._locked():
            await self._clear()
            waiting = asyncio.create_task(told.wait())
            try:
                starting = asyncio.create_task(self._start())
                await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
                if not starting.done():
                    starting.cancel()
                    await asyncio.gather(starting, return_exceptions=True)
                    return
                on_ready(await starting)
                await waiting
                self._say("stopping: model servers first, then the components in order")
            finally:
                waiting.cancel()
                await self._stop()

    def hurry(self) -> None:
        """Do not wait for requests any more: each component that is being stopped gets SIGTERM again."""
        self._hurried = True

    # Start

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock of the folder: one supervisor for each."""
        try:
            self.layout.make()
            lock = os.fdopen(self.layout.open_lock(), "rb")
        except OSError as error:
            raise UpError(f"{error}. Choose another --data.") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UpError(f"{self.layout.folder} is being brought up. Try again in a moment.") from error
            yield

    async def _clear(self) -> None:
        """End what a killed supervisor has left: its components in order, then what it did not record."""
        state = self.layout.read_state()
        components = state.components if state is not None else {}
        for each in STOP_ORDER:
            if each in components:
                await self._end(Processes([components[each]]), each)
        await self._end(Marked(leftovers.mark(self.layout)), "a process")
        if state is not None:
            self._ports.update({each: state.ports[each] for each in WORKERS if each in state.ports})

    async def _end(self, target: TerminationTarget, what: str) -> None:
        until = asyncio.get_running_loop().time() + CLEAR_SECONDS
        try:
            await terminate(target, lambda: until)
        except StillRunning as error:
            raise UpError(f"{what} of an earlier `up` has not ended: {error}.") from error

    async def _start(self) -> UpState:
        if is_listening(self._options.port):
            raise UpError(f"port {self._options.port} is taken. Choose another --port.")
        self._spawn(self._keep_state())
        async with self._in_time(HARBOR):
            await self._run(HARBOR)
            await self._prepared()
        for each in WORKERS:
            async with self._in_time(each):
                await self._run(each)
        await asyncio.gather(*(self._ready(each) for each in WORKERS))
        remember(self.layout, self._options)  # not before: settings with which it does not start are not kept
        self._all_ready = True
        self.layout.write_state(self._state())
        # Not before: `up --detach` reads the last line of a start that failed where the log ended.
        own = [each.log for each in self._components.values()]
        self._spawn(logs.keep_short([*own, self.layout.supervisor_log], self._say))
        return self._state()

    @contextlib.asynccontextmanager
    async def _in_time(self, name: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(START_SECONDS):
                yield
        except TimeoutError as error:
            component = self._components[name]
            raise UpError(
                f"{name} was not ready in {START_SECONDS} s: {component.last_line()} ({component.log})"
            ) from error

    async def _run(self, name: str) -> None:
        """Start a component, and again whenever it ends."""
        component = self._components[name]
        process = await component.start()
        if process is None:
            raise UpError(f"{name} ended at once: {component.last_line()} ({component.log})")
        self._processes[name] = process
        self.layout.write_state(self._state())
        before = self._before_harbor if name == HARBOR else None
        ended, started = functools.partial(self._ended, name), functools.partial(self._started, name)
        self._spawn(component.keep(ended, before, started))

    def _command(self, name: str) -> list[str]:
        if name == GATEWAY:
            self.layout.shorten()  # each time: what cleans temporary folders may have removed the link
        if name in WORKERS:
            self._ports[name] = self._free_port(self._ports.get(name, 0))
        return command(name, self._options, self.layout, self._ports)

    def _free_port(self, last: int) -> int:
        """The port of the last time, unless another program has taken it."""
        with contextlib.suppress(OSError):
            return free_port(LOCALHOST, last)
        return free_port(LOCALHOST)

    def _state(self) -> UpState:
        own = identity.find(os.getpid())
        assert own is not None
        gateway = f"http://{LOCALHOST}:{self._options.port}"
        return UpState(own.id, self._processes, self._ports, gateway, self._all_ready)

    def _ended(self, name: str, how: int | OSError, seconds: float) -> None:
        self._exits[name] += 1
        component = self._components[name]
        self._say(
            f"{name} ended with {how}: {component.last_line()}. It is restarted in {seconds:g} s ({component.log})"
        )

    def _started(self, name: str, process: ProcessId) -> None:
        self._processes[name] = process
        self._changed.set()

    async def _before_harbor(self) -> None:
        await self._own_port_is_free()
        self._tokens.renew()

    async def _keep_state(self) -> None:
        """Record what runs, for whoever comes after this process; retried where the disk is full."""
        while True:
            await self._changed.wait()
            try:
                self.layout.write_state(self._state())
                self._changed.clear()
            except OSError:
                await asyncio.sleep(WRITE_SECONDS)

    async def _own_port_is_free(self) -> None:
        """Wait until the API server can listen where its clients expect it.

        They check its certificate: whoever has taken the port meanwhile gets no token from them.
        """
        port, said = self._ports[HARBOR], False
        while self._free_port(port) != port:
            if not said:
                self._say(f"{HARBOR} starts when port {port} is free: another process has taken it. End that one.")
            said = True
            await asyncio.sleep(PORT_SECONDS)

    async def _prepared(self) -> None:
        """Wait until the API server answers, install our kinds, and issue tokens; they are renewed from then on."""
        await self._until(self._answers)
        server = load_config(kubeconfig=str(self.layout.kubeconfig)).server
        self._ports[HARBOR] = urlsplit(server).port or 0  # not before it answers: the file may be of an earlier run
        self.layout.write_state(self._state())
        async with self._client() as client:
            await access.install(client, self._options.host)
        await self._tokens.issue()
        self._spawn(self._tokens.keep(self._restart))

    def _restart(self, name: str) -> None:
        """Kill a component, as a crash would: it reads its kubeconfig only at its start. Model servers go on."""
        self._say(f"{name} is restarted: the address or the certificate authority of the API server has changed")
        self._components[name].crash()

    def _client(self) -> Client:
        return Client.connect(load_config(kubeconfig=str(self.layout.kubeconfig)))

    async def _answers(self) -> bool:
        if self._components[HARBOR].id is None:
            raise UpError(f"the API server did not start: {self._components[HARBOR].last_line()}")
        if not self.layout.kubeconfig.exists():
            return False
        try:
            async with self._client() as client:
                await client.get_path("/readyz")
        except (ApiError, OSError):
            return False
        return True

    async def _ready(self, name: str) -> None:
        async with self._in_time(name):
            await self._until(functools.partial(self._is_ready, name))
        self._say(f"{name} is ready")

    async def _is_ready(self, name: str) -> bool:
        if self._exits[name] >= ATTEMPTS:
            raise UpError(f"{name} does not start: {self._components[name].last_line().removeprefix('Error: ')}")
        return await _answers_ready(self._ports[name])

    async def _until(self, true: Callable[[], Awaitable[bool]]) -> None:
        while not await true():  # noqa: ASYNC110 - other processes change it
            await asyncio.sleep(0.05)

    # Stop

    async def _stop(self) -> None:
        """Each component in its turn; the agent's servers first, while requests still get through."""
        for task in self._tasks:  # nothing is restarted from here on
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name in STOP_ORDER:
            component = self._components[name]
            if component.id is None:
                continue
            with contextlib.suppress(StillRunning):  # the census below names it
                code = await component.stop(self._options.stop_seconds, hurry=lambda: self._hurried)
                self._say(f"{name} has ended" + (f" with {code}: {component.last_line()}" if code else ""))
        if left := leftovers.find(self.layout, self._state()):
            raise UpError(str(left))
        self.layout.remove_state()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.add(asyncio.create_task(work))


async def _answers_ready(port: int) -> bool:
    """Whether /readyz answers 200."""
    try:
        reader, writer = await asyncio.open_connection(LOCALHOST, port)
    except OSError:
        return False
    try:
        writer.write(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return b" 200 " in await reader.readline()
    except OSError:
        return False
    finally:
        writer.close()


def _say(say: Callable[[str], None], text: str) -> None:
    """Tell a person. A failure (a full disk, a terminal that is gone) stops nothing."""
    with contextlib.suppress(OSError):
        say(text)
