"""Envoy's limit of memory and what happens at it: new requests are refused, those under way are kept.

What a request costs is mostly its body, of which up to 4 MiB are held until its model is found. So the sum is bounded,
and the number only where it comes near to that: anybody can open connections. As its memory fills up, Envoy

- gives back what it has free, and keeps no connection open that has had its answer,
- answers new requests with 503, while those under way go on, and
- closes connections that send it more, the likelier the less is left. A body of some MiB comes in many pieces, and
  hardly gets through; a small request of somebody else often does, and gets its 503. What has arrived in full and waits
  for its answer sends nothing, and is left alone.

It looks at its memory 20 times a second. What arrives in between is the reason for beginning early.
"""

import contextlib
import os
import resource
from pathlib import Path

from pilotage.kube import Json

_TYPES = "type.googleapis.com/envoy.extensions.resource_monitors"
HEAP = "envoy.resource_monitors.fixed_heap"
CONNECTIONS = "envoy.resource_monitors.global_downstream_max_connections"
LOOK_SECONDS = 0.05

GIVE_BACK, CLOSE, REFUSE, CUT = 0.6, 0.75, 0.8, 0.9
"""Parts of the memory at which each of them begins."""
BYTES_GIVEN_BACK, GIVE_BACK_SECONDS = 64 * 1024 * 1024, 1
"""Bytes of free memory that are returned to the system each time, also after a flood is over."""


MIB = 1024 * 1024
SHARE = 8
"""One part in so many of the machine's memory, unless somebody says how much."""
LEAST, MOST = 256 * MIB, 2048 * MIB
CONNECTION_BYTES = 64 * 1024
"""More than an idle connection takes."""
CONNECTIONS_MAX = 50_000
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def machine_share() -> int:
    """Bytes of memory that Envoy gets on this machine, or in this container."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # there is no limit
        total = min(total, int(_CGROUP.read_text()))
    return max(LEAST, min(MOST, total // SHARE))


def connections_max(memory_bytes: int) -> int:
    """Number of client connections that fit into that memory, and into half of the open files of a process."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = CONNECTIONS_MAX * 2 if files == resource.RLIM_INFINITY else files
    return min(CONNECTIONS_MAX, memory_bytes // CONNECTION_BYTES, files // 2)


def manager(memory_bytes: int, connections_max: int) -> Json:
    """Overload manager of the bootstrap."""
    return {
        "refresh_interval": f"{LOOK_SECONDS}s",
        "resource_monitors": [
            {
                "name": HEAP,
                "typed_config": {
                    "@type": f"{_TYPES}.fixed_heap.v3.FixedHeapConfig",
                    "max_heap_size_bytes": memory_bytes,
                },
            },
            {
                "name": CONNECTIONS,
                "typed_config": {
                    "@type": f"{_TYPES}.downstream_connections.v3.DownstreamConnectionsConfig",
                    "max_active_downstream_connections": connections_max,
                },
            },
        ],
        "actions": [
            _at("envoy.overload_actions.shrink_heap", GIVE_BACK),
            _at("envoy.overload_actions.disable_http_keepalive", CLOSE),
            _at("envoy.overload_actions.stop_accepting_requests", REFUSE),
        ],
        "loadshed_points": [
            # It closes connections of HTTP/1 as well, before anything of what they sent is looked at.
            _from("envoy.load_shed_points.http2_server_go_away_and_close_on_dispatch", CUT),
        ],
    }


def _at(name: str, part: float) -> Json:
    return {"name": name, "triggers": [{"name": HEAP, "threshold": {"value": part}}]}


def _from(name: str, part: float) -> Json:
    """The likelier, the less is left."""
    scaled = {"scaling_threshold": part, "saturation_threshold": 1.0}
    return {"name": name, "triggers": [{"name": HEAP, "scaled": scaled}]}
