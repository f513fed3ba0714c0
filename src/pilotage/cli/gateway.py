"""``pilotage gateway``: Envoy and its control plane, until SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pilotage.cli.connecting import cluster_options
from pilotage.cli.errors import one_sentence

if TYPE_CHECKING:
    from pilotage.gateway.settings import Settings

LISTEN = "127.0.0.1:8080"
METRICS = "127.0.0.1:8083"
PORT_MAX = 65535


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


@click.command()
@cluster_options
@click.option(
    "--listen",
    metavar="HOST:PORT",
    envvar="PILOTAGE_GATEWAY_LISTEN",
    default=LISTEN,
    show_default=True,
    callback=_address,
    help="Where clients get in; port 0 is a free one.",
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
    help="Where its sockets and logs are. [default: pilotage/gateway in $XDG_RUNTIME_DIR or ~/.cache]",
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
    help="A line of JSON for each request goes there; empty for nowhere. [default: access.log in --run]",
)
@click.option(
    "--drain",
    "drain_seconds",
    metavar="SECONDS",
    envvar="PILOTAGE_GATEWAY_DRAIN",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="How long requests under way may take to end when the gateway is told to.",
)
@click.option(
    "--log-level",
    envvar="PILOTAGE_GATEWAY_LOG_LEVEL",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
@one_sentence
def gateway(
    kubeconfig: str | None,
    context: str | None,
    listen: tuple[str, int] | None,
    metrics: tuple[str, int] | None,
    run_folder: Path | None,
    access_log: str | None,
    **given: object,
) -> None:
    """Serve requests for models with a real Envoy, until SIGTERM.

    GatewayRoutes and EndpointSlices say where each goes:

    \b
    POST /v1/chat/completions …     by the "model" in the body
    GET  /v1/models                 what is served; one of them: /v1/models/NAME
    ANY  /endpoints/NAME/…          by the name of an endpoint; also /endpoints/NAMESPACE/NAME/…
    and by host, where a route has one.

    At SIGTERM no new connection is taken, and requests under way may end (--drain); a second one does not wait. The
    exit code is 1 if requests had to be cut.

    Every option from --listen on is also a variable: PILOTAGE_GATEWAY_LISTEN.
    """
    import asyncio

    from pilotage.gateway.envoy import NoEnvoy
    from pilotage.gateway.keeper import InUse, run
    from pilotage.gateway.settings import Folder, Settings, default_folder
    from pilotage.kube import load_config
    from pilotage.runtime import configure_logging

    if listen is None:
        raise click.UsageError("--listen cannot be empty: there would be no way in.")
    folder = Folder(run_folder or default_folder())
    settings = Settings(
        run=str(folder.path),
        host=listen[0],
        port=listen[1],
        metrics_host=metrics[0] if metrics else "",
        metrics_port=metrics[1] if metrics else None,
        access_log=str(folder.access_log if access_log is None else access_log and Path(access_log).absolute()),
        kubeconfig=kubeconfig,
        context=context,
        **given,  # type: ignore[arg-type]
    )
    load_config(kubeconfig=kubeconfig, context=context)  # now, and not in another process, which would say it elsewhere
    configure_logging(level=settings.log_level)
    try:
        cut = asyncio.run(run(settings, _announce))
    except (NoEnvoy, InUse) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --run.") from error
    if cut:
        raise click.ClickException(f"{cut} requests were cut off: they took longer than --drain.")


def _announce(settings: Settings) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    click.echo(f"gateway: http://{host}:{settings.port}")
