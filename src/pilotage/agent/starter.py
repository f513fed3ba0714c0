"""Start of the process of a HostProcess: weights, program, memory, port, journal, launch."""

import os
import random
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from pilotage.agent import memory, process_status
from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import AgentJournal, JournalEntry, LifecycleState
from pilotage.agent.launch import logs, other_user, process, programs
from pilotage.agent.launch.command import command_line, variables
from pilotage.agent.launch.environment import scrubbed
from pilotage.agent.launch.failures import LaunchFailure
from pilotage.agent.launch.ports import Ports
from pilotage.agent.permission import LaunchRules, refusal
from pilotage.agent.process_state import ProcessState
from pilotage.agent.process_status import DesiredStatus
from pilotage.agent.settings import AgentSettings
from pilotage.api.host import ProcessSpec
from pilotage.api.names import LABEL_ENDPOINT_UID
from pilotage.kube import Client, Object
from pilotage.models import FetchRequest, HubSource, Kept, PermanentError, Problem, Reason, TransientError, parse_source
from pilotage.models.attempts import Attempts
from pilotage.models.credentials import read_credentials
from pilotage.models.fetch import Progress
from pilotage.models.source import is_read_by_pods
from pilotage.models.store import ModelStore
from pilotage.runtime.clock import monotonic, uptime, utc_now
from pilotage.serving.runtimes import RUNTIMES, HostLaunch

_GPUS = ("/dev/nvidia0", "/dev/kfd", "/dev/dri/renderD128")


class LocalWeights(NamedTuple):
    """Weights on this host, or a name that the program fetches by itself: then their size is not known."""

    path: str
    size: int = 0
    parameters: int | None = None
    context_length: int | None = None


class StartWait(NamedTuple):
    """A start that waits: the status to write (None: unchanged), and when the next step is due (None: it is woken)."""

    status: DesiredStatus | None
    seconds: float | None


class Starter:
    """Starts processes. Weights are fetched beside it (`Attempts`): they may take hours."""

    def __init__(
        self,
        settings: AgentSettings,
        journal: AgentJournal,
        models: ModelStore,
        ports: Ports,
        intervals: Intervals,
        *,
        gauge: memory.MemoryGauge,
        rng: random.Random,
        client: Client,
        rules: Callable[[], LaunchRules],
    ) -> None:
        self._settings = settings
        self._user = settings.server_user
        self._journal = journal
        self._models = models
        self._ports = ports
        self._intervals = intervals
        self._gauge = gauge
        self._client = client
        self._rules = rules
        self._attempts: Attempts[FetchRequest] = Attempts(self._look, rng)

    async def close(self) -> None:
        """End all fetches."""
        await self._attempts.close()

    async def drop(self, uid: str) -> None:
        """End the fetch of a process that is not wanted any more."""
        await self._attempts.drop(uid)

    def free(self, but: str = "") -> int:
        """Memory for new servers, in bytes; the promise to the process `but` is not counted."""
        promised = sum(entry.need for entry in self._journal.entries() if entry.uid != but)
        return memory.free(self._gauge.read(), promised)

    def total(self) -> int:
        """Total memory of the host, in bytes."""
        return self._gauge.read().total

    async def start(
        self, obj: Object, spec: ProcessSpec, state: ProcessState, wake: Callable[[], None]
    ) -> JournalEntry | StartWait:
        """Start it, or say why not yet. `wake` is called when the weights are fetched, and at each progress."""
        if (left := state.due - monotonic()) > 0:
            return StartWait(state.status, left)
        if refused := refusal(self._rules(), obj.meta.namespace, spec):
            return self._cannot(state, refused)
        kept = await self._weights(obj, spec, state, wake)
        if isinstance(kept, StartWait):
            return kept
        return await self._launch(obj, spec, state, kept)

    # Weights

    async def _weights(
        self, obj: Object, spec: ProcessSpec, state: ProcessState, wake: Callable[[], None]
    ) -> LocalWeights | StartWait:
        try:
            source = parse_source(spec.model.source)
            if is_read_by_pods(source):
                if spec.model.sha256 or spec.model.secret:
                    return self._cannot(state, _fetched_by_itself(spec))
                return LocalWeights(_as_named(source, spec.runtime.name))
        except PermanentError as problem:
            return self._cannot(state, LaunchFailure(problem.reason.value, str(problem), permanent=True))
        request = FetchRequest(
            source,
            spec.model.sha256 or "",
            secret=spec.model.secret or "",
            namespace=obj.meta.namespace,
            user=obj.meta.uid,
        )
        attempt = self._attempts.get(obj.meta.uid)
        if attempt is None or attempt.request != request or (attempt.outcome and attempt.due <= monotonic()):
            await self._attempts.begin(obj.meta.uid, request, wake)
            return StartWait(state.status, None)
        outcome = attempt.outcome
        if outcome is None:
            text = f"The weights come from {source}."
            fetching = DesiredStatus(process_status.FETCHING, "Fetching", text, expected=True)
            return StartWait(state.status or (fetching if attempt.slow else None), None)
        if isinstance(outcome, Problem):
            lasting = not isinstance(outcome, TransientError)
            state.problem = LaunchFailure(outcome.reason.value, str(outcome), lasting)
            return StartWait(state.status, max(0.0, attempt.due - monotonic()))
        try:
            await self._models.confirm(outcome)  # the server opens it by its name, right after this
        except Problem:
            await self._attempts.begin(obj.meta.uid, request, wake)
            return StartWait(state.status, None)
        return LocalWeights(outcome.path, outcome.size or 0, outcome.format.parameters, outcome.format.context_length)

    async def _look(self, request: FetchRequest, progress: Progress) -> Kept:
        credentials = await read_credentials(self._client, request.namespace, request.secret)
        return await self._models.keep(request, credentials, progress)

    # The process

    async def _launch(
        self, obj: Object, spec: ProcessSpec, state: ProcessState, kept: LocalWeights
    ) -> JournalEntry | StartWait:
        uid, runtime, known = obj.meta.uid, spec.runtime, RUNTIMES[spec.runtime.name]
        program = programs.find(runtime.name, self._settings.llama_server)
        if program is None and not runtime.command:
            return self._cannot(state, _no_program(runtime.name, self._settings.llama_server))
        tokens = known.context(runtime.args, kept.context_length)
        need = max(spec.memory_bytes or 0, memory.estimate(kept.size, kept.parameters, tokens))
        if refused := memory.refusal(need, self.free(but=uid)):
            said = DesiredStatus(process_status.PENDING, "NoMemory", process_status.sentence(refused))
            return StartWait(said, self._intervals.memory)
        port = self._port(spec, state)
        if isinstance(port, StartWait):
            return port
        given = other_user.weights(self._user, kept.path, runtime.name)
        if isinstance(given, LaunchFailure):
            return self._cannot(state, given)
        path, opened = given
        launch = HostLaunch(
            runtime,
            model=path,
            alias=spec.model.name,
            host=self._settings.bind,
            port=port,
            other_names=tuple(spec.model.other_names or ()),
            program=program.path if program is not None else "",
            gpu=has_gpu(),
        )
        argv = command_line(launch)
        own = other_user.own_variables(self._user, os.environ)
        env = scrubbed(own, variables(launch), self._journal.mark(uid))
        executable = shutil.which(argv[0], path=env.get("PATH"))
        if executable is None:
            return self._cannot(
                state, LaunchFailure("NoProgram", f"there is no program {argv[0]} on this host", permanent=True)
            )
        if problem := other_user.program_problem(self._user, executable):
            return self._cannot(state, problem)
        log = self.log_of(obj)
        entry = JournalEntry(
            uid=uid,
            namespace=obj.meta.namespace,
            name=obj.meta.name,
            state=LifecycleState.STARTING,
            endpoint_uid=obj.meta.labels.get(LABEL_ENDPOINT_UID, ""),
            service=spec.service,
            runtime=runtime.name,
            alias=spec.model.name,
            health=runtime.health_path or known.health,
            port=port,
            log=str(log),
            need=need,
            started=utc_now().timestamp(),
            begun=uptime(),
            drain_seconds=spec.drain_seconds,
        )
        state.log_from = logs.size(log)
        try:
            self._journal.put(entry, "that it starts")
        except sqlite3.Error as error:
            return self._cannot(state, LaunchFailure("JournalNotWritten", self._journal.unwritable(error)))
        try:
            begun = process.start([executable, *argv[1:]], env, log, self._user, opened)
        except OSError as error:
            self._journal.forget(uid)
            why = f"{executable} cannot be started: {error.strerror}"
            return self._cannot(state, LaunchFailure("NoProgram", why, permanent=True))
        entry = self._journal.note(entry.but(pid=begun.pid, born=begun.born), "its process")
        await self._attempts.drop(uid)  # the next start looks at the weights again
        return entry

    def log_of(self, obj: Object) -> Path:
        """The path of its log."""
        name = re.sub(r"[^a-z0-9.-]", "_", f"{obj.meta.namespace}_{obj.meta.name}_{obj.meta.uid[:8]}")
        return self._settings.data / "logs" / f"{name}.log"

    def sweep_logs(self, used: Collection[Path]) -> None:
        """Remove logs that are not `used`: their HostProcess was deleted while no agent ran."""
        for path in (self._settings.data / "logs").glob("*.log"):
            if path not in used:
                logs.remove(path)

    def _port(self, spec: ProcessSpec, state: ProcessState) -> int | StartWait:
        given = spec.port or spec.runtime.port
        if given is None:
            return self._ports.take()
        if not self._ports.is_free(given):
            return self._cannot(state, LaunchFailure("PortTaken", f"port {given} is taken by another program"))
        return given

    def _cannot(self, state: ProcessState, failure: LaunchFailure) -> StartWait:
        state.fail(failure, self._intervals, ran=False)
        return StartWait(state.status, state.due - monotonic())


def has_gpu() -> bool:
    """Whether this host may have a GPU."""
    return sys.platform == "darwin" or any(Path(each).exists() for each in _GPUS)


def _as_named(source: object, runtime: str) -> str:
    """The name for a program that loads repositories by itself. PermanentError where it could not."""
    if not isinstance(source, HubSource):
        raise PermanentError(Reason.NOT_SUPPORTED, "a claim cannot be read on a host", "Use another source")
    if not RUNTIMES[runtime].loads_repositories:
        raise PermanentError(Reason.NOT_SUPPORTED, f"{runtime} needs one file", "Name a file of the repository")
    if source.revision != "main":
        raise PermanentError(
            Reason.NOT_SUPPORTED, "on a host a repository has no revision here", "Give it in runtime.args instead"
        )
    return source.repository


def _fetched_by_itself(spec: ProcessSpec) -> LaunchFailure:
    """A check that is impossible where the program fetches the weights; it must not seem to be done."""
    what = "sha256" if spec.model.sha256 else "secretRef"
    text = f"{spec.runtime.name} fetches {spec.model.source} by itself, so {what} would not be checked. "
    return LaunchFailure("NotLookedAt", f"{text}Name a file, or leave it out.", permanent=True)


def _no_program(runtime: str, setting: Path | None) -> LaunchFailure:
    known = RUNTIMES[runtime]
    if known.program == programs.SET_PROGRAM and setting is not None:
        return LaunchFailure("NoProgram", f"{setting}, which the agent was given, cannot be run", permanent=True)
    more = f"; the extra pilotage[{known.extra}] has one" if known.extra else ", and runtime.command is not given"
    return LaunchFailure(
        "NoProgram", f"there is no program for the runtime {runtime} on this host{more}", permanent=True
    )
