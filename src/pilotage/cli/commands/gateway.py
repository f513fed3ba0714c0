"""``pilotage gateway``: Envoy and its control plane, until SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options

if TYPE_CHECKING:
    from pilotage.cli.connection import ClusterChoice
    from pilotage.gateway.settings import GatewaySettings

LISTEN = "127.0.0.1:8080"
METRICS = "127.0.0.1:8083"
PORT_MAX = 65535
MEMORY_MIB_MIN = 128


def _address(_: click.Context, parameter: click.Parameter, text: str) -> tuple[str, int] | None:
    """``HOST:PORT``, ``[V6]:PORT``, or ``:PORT`` for all addresses; None for an empty text."""
    from ipaddress import ip_address

    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > PORT_MAX or (":" in host and not host.startswith("[")):
        raise click.BadParameter(f"{text!r} is not HOST:PORT, such as {parameter.default}.")
    host = "127.0.0.1" if host == "localhost" else host.strip("[]") or "0.0.0.0"  # noqa: S104 - no host means all
    try:
        ip_address(host)
    except ValueError:
        raise click.BadParameter(f"{host!r} is no IP address, and Envoy takes no names.") from None
    return host, int(port)


def _names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    from pilotage.gateway.hostnames import is_name

    for each in given:
        if not is_name(each.lower()):
            raise click.BadParameter(f"{each!r} is no name, such as models.example.com.")
    return tuple(each.lower() for each in given)


def _hosts(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    from pilotage.gateway.hostnames import HostRules

    found = []
    for each in given:
        namespace, _sign, host = each.lower().partition("=")
        if not namespace or HostRules().refusal(host, namespace):
            raise click.BadParameter(f"{each!r} is not NAMESPACE=HOST, such as team-a=*.a.example.com.")
        found.append((namespace, host))
    return tuple(found)


@click.command()
@cluster_options
@click.option(
    "--listen",
    metavar="HOST:PORT",
    envvar="PILOTAGE_GATEWAY_LISTEN",
    default=LISTEN,
    show_default=True,
    callback=_address,
    help="The address that clients connect to; port 0 is a free one.",
)
@click.option(
    "--metrics-address",
    "metrics",
    metavar="HOST:PORT",
    envvar="PILOTAGE_GATEWAY_METRICS_ADDRESS",
    default=METRICS,
    show_default=True,
    callback=_address,
    help="Where /metrics, /healthz and /readyz are served; empty for nowhere.",
)
@click.option(
    "--run",
    "run_folder",
    metavar="DIR",
    envvar="PILOTAGE_GATEWAY_RUN",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of its sockets and logs. [default: pilotage/gateway in $XDG_RUNTIME_DIR or ~/.cache]",
)
@click.option(
    "--envoy",
    metavar="FILE",
    envvar="PILOTAGE_GATEWAY_ENVOY",
    default="",
    help="The Envoy to run. [default: that on PATH, else that of pilotage[gateway]]",
)
@click.option(
    "--access-log",
    metavar="FILE",
    envvar="PILOTAGE_GATEWAY_ACCESS_LOG",
    help="The access log, a line of JSON for each request; empty for none. [default: access.log in --run]",
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    envvar="PILOTAGE_GATEWAY_NAME",
    callback=_names,
    help="A name by which clients reach the gateway: no route gets it as its host. May be given several times.",
)
@click.option(
    "--hosts",
    metavar="NAMESPACE=HOST",
    multiple=True,
    envvar="PILOTAGE_GATEWAY_HOSTS",
    callback=_hosts,
    help="A host that routes of the namespace may have, such as team-a=*.a.example.com. May be given several times; "
    "from the first one on, no other hosts are taken. [default: any]",
)
@click.option(
    "--memory",
    "memory_mib",
    metavar="MIB",
    envvar="PILOTAGE_GATEWAY_MEMORY",
    type=click.IntRange(min=MEMORY_MIB_MIN),
    help="Memory that Envoy may take, in MiB; as it runs out, new requests get 503. "
    "[default: an eighth of the machine's, 256 to 2048]",
)
@click.option(
    "--drain",
    "drain_seconds",
    metavar="SECONDS",
    envvar="PILOTAGE_GATEWAY_DRAIN",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="How long requests in flight may take to end when the gateway stops.",
)
@click.option(
    "--log-level",
    envvar="PILOTAGE_GATEWAY_LOG_LEVEL",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
@plain_errors
def gateway(
    cluster: ClusterChoice,
    listen: tuple[str, int] | None,
    metrics: tuple[str, int] | None,
    run_folder: Path | None,
    access_log: str | None,
    memory_mib: int | None,
    **given: object,
) -> None:
    """Serve requests for models with a real Envoy, until SIGTERM.

    Requests are routed by GatewayRoutes and EndpointSlices:

    \b
    POST /v1/chat/completions …     by the "model" in the body
    GET  /v1/models                 the models served; one of them: /v1/models/NAME
    ANY  /endpoints/NAMESPACE/NAME/…  by the name of an endpoint
    and by host, where a route has one.

    A name stays with the route that has it. The gateway neither authenticates clients nor speaks TLS: whoever can
    reach it can use every model that it serves.

    At SIGTERM no new connection is accepted, and requests in flight may end (--drain); a second one does not wait. The
    exit code is 1 if requests had to be cut off.

    Every option from --listen on is also a variable: PILOTAGE_GATEWAY_LISTEN.
    """
    import asyncio

    from pilotage.gateway.envoy import NoEnvoy
    from pilotage.gateway.settings import Folder, GatewaySettings, default_folder
    from pilotage.gateway.supervisor import InUse, run
    from pilotage.kube import load_config
    from pilotage.runtime.logs import configure_logging

    if listen is None:
        raise click.UsageError("--listen cannot be empty: no client could connect.")
    folder = Folder(run_folder or default_folder())
    settings = GatewaySettings(
        run=str(folder.path),
        host=listen[0],
        port=listen[1],
        metrics_host=metrics[0] if metrics else "",
        metrics_port=metrics[1] if metrics else None,
        access_log=str(folder.access_log if access_log is None else access_log and Path(access_log).absolute()),
        memory_bytes=(memory_mib or 0) * 1024 * 1024,
        kubeconfig=cluster.kubeconfig,
        context=cluster.context,
        **given,  # type: ignore[arg-type]
    )
    # now, and not in another process, which would say it elsewhere
    load_config(kubeconfig=cluster.kubeconfig, context=cluster.context)
    configure_logging(level=settings.log_level)
    try:
        cut = asyncio.run(run(settings, _announce))
    except (NoEnvoy, InUse) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --run.") from error
    if cut:
        raise click.ClickException(f"{cut} requests were cut off: they took longer than --drain.")


def _announce(settings: GatewaySettings) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    click.echo(f"gateway: http://{host}:{settings.port}")
