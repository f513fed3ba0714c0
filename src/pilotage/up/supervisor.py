"""Brings the parts up in order, keeps them up, and takes them down in the reverse order of need."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import fcntl
import functools
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pilotage.kube import ApiError, Client, load_config
from pilotage.up import access, logs, remains
from pilotage.up.children import Child
from pilotage.up.keys import Keys
from pilotage.up.layout import Layout, Note, Seen
from pilotage.up.parts import DOWN, GATEWAY, HARBOR, WORKERS, Wishes, command
from pilotage.up.proof import UpError, look

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator

START_SECONDS = 60
ATTEMPTS = 3
"""A part that has ended so often before it was ready for the first time keeps the rest from coming up."""
PATIENCE = 60
"""How long a leftover of an earlier life may take to end when it is asked."""
BACKOFF = (0.2, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
AGAIN_SECONDS = 0.3
"""In a hurry, between two times that a part is told to end."""
STEADY_SECONDS = 60
"""A part that ran for so long starts anew with the shortest wait."""
NOTE_SECONDS = 1.0
"""Between two attempts to write the note."""
PORT_SECONDS = 0.5
"""Between two looks whether the API server's port is free again."""


class Supervisor:
    """The parts of one folder. `say` tells a person, a line at a time."""

    def __init__(self, wishes: Wishes, say: Callable[[str], None]) -> None:
        self.layout = Layout(wishes.folder)
        self._wishes = wishes
        self._say = functools.partial(_say, say)
        self._children = {name: Child(name, self.layout) for name in DOWN}
        self._parts: dict[str, Seen] = {}
        self._ports: dict[str, int] = {}
        self._all_ready = False
        self._hurried = False
        self._changed = asyncio.Event()
        """Set while the note does not say what runs."""
        self._ends: collections.Counter[str] = collections.Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keys = Keys(self.layout, self._client, self._say, wishes.host)

    async def run(self, told: asyncio.Event, on_ready: Callable[[Note], None]) -> None:
        """Bring everything up, keep it up until `told`, then take everything down. Raises UpError."""
        with self._alone():
            self._clear()
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
                self._say("going down: servers first, in order")
            finally:
                waiting.cancel()
                await self._stop()

    def hurry(self) -> None:
        """Do not wait for requests any more: the part whose turn it is gets told a second time, as do the next."""
        self._hurried = True

    # Coming up

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One supervisor for each folder."""
        try:
            self.layout.make()
            lock = os.fdopen(self.layout.open_lock(), "rb")
        except OSError as error:
            raise UpError(f"{error}. Choose another --data.") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UpError(f"{self.layout.folder} is up already. Take it down first: pilotage down") from error
            yield

    def _clear(self) -> None:
        """End what an earlier supervisor left that was killed: its parts in order, then what it did not write down."""
        note = self.layout.read()
        parts = note.parts if note is not None else {}
        for part in DOWN:
            if part in parts and remains.end([parts[part]], PATIENCE):
                raise UpError(f"{part} of an earlier `up` does not end (pid {parts[part].pid}).")
        if left := remains.end(remains.marked(self.layout.folder), PATIENCE):
            pids = ", ".join(str(each.pid) for each in left)
            raise UpError(f"processes of an earlier `up` do not end: {pids}.")
        if note is not None:
            self._ports.update({part: note.ports[part] for part in WORKERS if part in note.ports})

    async def _start(self) -> Note:
        if remains.listening([self._wishes.port]):
            raise UpError(f"port {self._wishes.port} is taken. Choose another --port.")
        self._spawn(self._keep_note())
        async with self._in_time(HARBOR):
            await self._run(HARBOR)
            await self._prepared()
        for part in WORKERS:
            async with self._in_time(part):
                await self._run(part)
        await asyncio.gather(*(self._ready(part) for part in WORKERS))
        self._all_ready = True
        self.layout.write(self._note())
        # Not before: who waits for all this looks for the last words of a start that failed where the log ended.
        own = [child.log for child in self._children.values()]
        self._spawn(logs.keep_short([*own, self.layout.supervisor_log], self._say))
        return self._note()

    @contextlib.asynccontextmanager
    async def _in_time(self, part: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(START_SECONDS):
                yield
        except TimeoutError as error:
            child = self._children[part]
            raise UpError(f"{part} did not come up in {START_SECONDS} s: {child.last_words()} ({child.log})") from error

    async def _run(self, part: str) -> None:
        """Start a part and see to it that it is started again whenever it ends."""
        self._parts[part] = await self._children[part].start(self._command(part))
        self.layout.write(self._note())
        self._spawn(self._keep(part))

    def _command(self, part: str) -> list[str]:
        if part == GATEWAY:
            self.layout.shorten()  # each time: what cleans temporary folders may have taken the way
        if part in WORKERS:
            self._ports[part] = remains.free_port(self._ports.get(part, 0))  # somebody may have taken the last one
        return command(part, self._wishes, self.layout, self._ports)

    def _note(self) -> Note:
        own = remains.seen(os.getpid())
        assert own is not None
        return Note(own, self._parts, self._ports, f"http://127.0.0.1:{self._wishes.port}", self._all_ready)

    async def _keep(self, part: str) -> None:
        child, failures = self._children[part], 0
        loop = asyncio.get_running_loop()
        while True:
            since = loop.time()
            code = await child.ended()
            self._ends[part] += 1
            failures = 0 if loop.time() - since > STEADY_SECONDS else failures + 1
            pause = BACKOFF[min(failures, len(BACKOFF) - 1)]
            self._say(f"{part} ended with {code}: {child.last_words()}. It starts again in {pause} s ({child.log})")
            await asyncio.sleep(pause)
            with contextlib.suppress(OSError):
                if part == HARBOR:
                    await self._own_port_is_free()
                    self._keys.renew()
                self._parts[part] = await child.start(self._command(part))
                self._changed.set()

    async def _keep_note(self) -> None:
        """Write down what runs, for whoever comes after this process; tried on where the disk is full."""
        while True:
            await self._changed.wait()
            try:
                self.layout.write(self._note())
                self._changed.clear()
            except OSError:
                await asyncio.sleep(NOTE_SECONDS)

    async def _own_port_is_free(self) -> None:
        """Wait until the API server can listen where its clients look for it.

        They check its certificate: whoever has taken the port meanwhile gets no token from them.
        """
        port, said = self._ports[HARBOR], False
        while remains.free_port(port) != port:
            if not said:
                self._say(f"{HARBOR} starts when port {port} is free: another process has taken it. End that one.")
            said = True
            await asyncio.sleep(PORT_SECONDS)

    async def _prepared(self) -> None:
        """The API server answers, knows our kinds, and every part has its key; keys are changed from time to time."""
        await self._until(self._answers)
        server = load_config(kubeconfig=str(self.layout.kubeconfig)).server
        self._ports[HARBOR] = urlsplit(server).port or 0  # not before it answers: what the file says may be an old one
        self.layout.write(self._note())
        async with self._client() as client:
            await access.install(client, self._wishes.host)
        await self._keys.give()
        self._spawn(self._keys.keep(self._start_anew))

    def _start_anew(self, part: str) -> None:
        """Kill a part, as a crash would: it reads at its start how the API server is reached. Its servers go on."""
        self._say(f"{part} starts anew: the address or the authority of the API server has changed")
        self._children[part].crash()

    def _client(self) -> Client:
        return Client.connect(load_config(kubeconfig=str(self.layout.kubeconfig)))

    async def _answers(self) -> bool:
        if not self._children[HARBOR].running:
            raise UpError(f"the API server did not start: {self._children[HARBOR].last_words()}")
        if not self.layout.kubeconfig.exists():
            return False
        try:
            async with self._client() as client:
                await client.get_path("/readyz")
        except (ApiError, OSError):
            return False
        return True

    async def _ready(self, part: str) -> None:
        async with self._in_time(part):
            await self._until(functools.partial(self._says_ready, part))
        self._say(f"{part} is ready")

    async def _says_ready(self, part: str) -> bool:
        if self._ends[part] >= ATTEMPTS:
            raise UpError(f"{part} does not start: {self._children[part].last_words().removeprefix('Error: ')}")
        return await _answers_ready(self._ports[part])

    async def _until(self, true: Callable[[], Awaitable[bool]]) -> None:
        while not await true():  # noqa: ASYNC110 - what other processes do
            await asyncio.sleep(0.05)

    # Going down

    async def _stop(self) -> None:
        """Each part in its turn; the servers of the agent first, while requests still get through."""
        for task in self._tasks:  # nothing is started again from here on
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in DOWN:
            child = self._children[part]
            if not child.running:
                continue
            code = await self._end(child)
            self._say(f"{part} has ended" + (f" with {code}: {child.last_words()}" if code else ""))
        proof = look(self.layout, self._note())
        if not proof:
            raise UpError(str(proof))
        self.layout.forget()

    async def _end(self, child: Child) -> int:
        """Ask a part to end; in a hurry, again and again: of two signals that come at once the system keeps one."""
        child.ask_to_end()
        ended = asyncio.ensure_future(child.ended())
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wishes.patience
        while not ended.done() and loop.time() < until:
            await asyncio.wait({ended}, timeout=AGAIN_SECONDS)
            if self._hurried and not ended.done():
                child.ask_to_end()
        if not ended.done():
            child.force()
        return await ended

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.add(asyncio.create_task(work))


async def _answers_ready(port: int) -> bool:
    """Whether /readyz answers 200."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
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
    """Tell a person. Where that fails (a disk that is full, a terminal that is gone) the work goes on."""
    with contextlib.suppress(OSError):
        say(text)
