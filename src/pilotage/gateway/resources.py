"""Envoy's resources, as plain dicts: what a listener, a cluster, an assignment and a route look like here. Pure.

Every setting that differs from Envoy's default is here because the default does harm, and has a test:

- A route's time-out of 15 s would cut streams; so would one for silence that is shorter than a long prompt takes.
- Retries happen where nothing was delivered, and nowhere else.
- A connection to a server that waits for a request is closed by us before the server closes it. It is used for another
  one only where the server is known to keep connections, and for how long.
- 1,024 connections, 1,024 waiting requests and 3 retries at a time are not enough for anybody.
- Hosts that are draining get nothing new, not even where no other is left (panic mode).
- A direct answer of more than 4 KiB would have the whole route table refused.
- Clients on this machine count as internal by default, and could set time-outs and retries by headers.
- A connection's buffers of 1 MiB, and 1,024 requests of HTTP/2 on one with a window of 16 MiB each, are memory that any
  client could take.
- A slash that is escaped would be another one to us than to the server, which may take it for a plain one.
- A route to a cluster that is not there would be acknowledged, and answer with 503.

Servers are not asked for their health: EndpointSlices say it. So ``ignore_health_on_host_removal`` is not set, without
which an Envoy that asks would keep sending requests to a server that was removed.
"""

from collections.abc import Sequence

from pilotage.gateway import answers, finder, keys, scopes, tokens
from pilotage.gateway.answers import HEADER, METADATA, encoded, local_replies
from pilotage.gateway.division import RouteDivision, stratum_name
from pilotage.gateway.inputs import GatewayCopies, Hosts, ProxiedRoute, cluster_name, copies_name, parsed_name
from pilotage.gateway.measured_log import FIELDS
from pilotage.gateway.own_routes import answering
from pilotage.kube import Json

STAT_PREFIX = "gateway"
LISTENER = "gateway"

BODY_BYTES_MAX = 4 * 1024 * 1024
"""Upper bound on the body of a request whose model is searched in it. Longer ones would stall all others meanwhile."""
CONNECTION_BUFFER_BYTES = 128 * 1024
"""Bytes that are read from a connection, or held for a slow reader, before another connection is served."""
STREAMS_MAX = 100
"""Requests at a time on one connection of HTTP/2."""
STREAM_WINDOW_BYTES, CONNECTION_WINDOW_BYTES = 256 * 1024, 1024 * 1024
UPLOAD_SECONDS_MAX = 600
"""Time for a whole request to arrive. It is routed as at its beginning, so old routes are in use for that long."""
SILENCE_SECONDS_MAX = 3600
"""Timeout of a server that sends nothing: a model may think for that long."""
HELD_SILENCE_SECONDS_MAX = 60
"""Timeout of a client that does not send the rest of its request. Until it has, its body takes memory here."""
UNDER_WAY_SECONDS = 1
"""Interval between two lines of the log about a request that is under way."""
CONNECT_SECONDS_MAX = 2
IDLE_SECONDS_MAX = 3
"""Idle time of a connection that was made for a request whose client has gone since; below the 5 s after which many
servers close it."""
PLENTY = 1_000_000
DIRECT_BYTES_MAX = 4 * 1024 * 1024

_HOLDABLE: Json = {"name": "content-length", "range_match": {"start": 0, "end": BODY_BYTES_MAX + 1}}
"""Requests whose body can be searched for a key. Others are passed on, without one."""
_NOBODY: Json = {"address_prefix": "::", "prefix_len": 128}
"""No client has this address. An empty list would mean the default: all private addresses."""
_TYPES = "type.googleapis.com/"
_ADS: Json = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}


def listener(address: str, port: int, access_log: str, measured_log: str = "") -> Json:
    """The one listener. It depends on settings alone: a change of it would cut streams."""
    manager = {
        "@type": f"{_TYPES}envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": STAT_PREFIX,
        "scoped_routes": scopes.scoped_routes(_ADS),
        "early_header_mutation_extensions": [scopes.begin_in_main(), keys.no_key()],
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "UNESCAPE_AND_FORWARD",
        "use_remote_address": True,
        "internal_address_config": {"cidr_ranges": [_NOBODY]},
        "server_header_transformation": "PASS_THROUGH",
        "max_request_headers_kb": 60,
        "request_headers_timeout": "30s",
        "request_timeout": f"{UPLOAD_SECONDS_MAX}s",
        "stream_idle_timeout": f"{HELD_SILENCE_SECONDS_MAX}s",
        "http2_protocol_options": {
            "max_concurrent_streams": STREAMS_MAX,
            "initial_stream_window_size": STREAM_WINDOW_BYTES,
            "initial_connection_window_size": CONNECTION_WINDOW_BYTES,
        },
        "local_reply_config": local_replies(),
        "access_log": [
            *([_access_log(access_log)] if access_log else []),
            *([_measured_log(measured_log)] if measured_log else []),
        ],
        # A line of what is under way, for those that are measured: others' log has none of these.
        "access_log_options": {"access_log_flush_interval": f"{UNDER_WAY_SECONDS}s"},
        "http_filters": [
            # Off, but where a route asks for it: it holds a whole body back, and those below a path are passed on.
            {"name": finder.HOLDER, "typed_config": finder.holder(BODY_BYTES_MAX), "disabled": True},
            {"name": finder.NAME, "typed_config": finder.finder(), "disabled": True},
            scopes.chooser(),
            *keys.key_filters(BODY_BYTES_MAX),
            tokens.token_filter(),
            {
                "name": "envoy.filters.http.router",
                "typed_config": {
                    "@type": f"{_TYPES}envoy.extensions.filters.http.router.v3.Router",
                    "suppress_envoy_headers": True,
                },
            },
        ],
    }
    return {
        "name": LISTENER,
        "address": {"socket_address": {"address": address, "port_value": port}},
        # Else a second Envoy on the same port would get a part of the requests, and nobody would notice.
        "enable_reuse_port": False,
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }


def cluster(name: str, keep_seconds: int = 0) -> Json:
    """A Service. Its addresses come apart, so that this hardly ever changes.

    A connection is used again where servers keep it open for `keep_seconds`, and for half of that time at most: then
    it is not closed from there while a request is under way to it.

    Of one that gets copies, the limit is that of requests: a copy beyond it is not sent. With one of connections, it
    would wait, and be sent later.
    """
    parsed = parsed_name(name)
    limit = parsed.copies_max if parsed is not None else None
    plenty = {
        "max_connections": PLENTY,
        "max_pending_requests": PLENTY,
        "max_requests": limit or PLENTY,
        "max_retries": PLENTY,
    }
    return {
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": _ADS},
        "connect_timeout": f"{CONNECT_SECONDS_MAX}s",
        "lb_policy": "LEAST_REQUEST",
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "circuit_breakers": {"thresholds": [{"priority": each, **plenty} for each in ("DEFAULT", "HIGH")]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{_TYPES}envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "common_http_protocol_options": _kept(keep_seconds) if keep_seconds else _CLOSED,
                "explicit_http_config": {"http_protocol_options": {}},
            }
        },
    }


_CLOSED: Json = {
    "idle_timeout": f"{IDLE_SECONDS_MAX}s",
    # After each stream llama-server closes its connection and does not say so beforehand: now and then
    # another request would have gone into it already, and be lost. (Measured: after 762 of 762.)
    "max_requests_per_connection": 1,
}


def _kept(seconds: int) -> Json:
    return {"idle_timeout": f"{seconds / 2:g}s"}


def assignment(name: str, hosts: Hosts) -> Json:
    """The addresses of a cluster."""
    endpoints = [
        {
            "endpoint": {"address": {"socket_address": {"address": each.address, "port_value": each.port}}},
            "health_status": "DRAINING" if each.draining else "HEALTHY",
        }
        for each in hosts
    ]
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}] if endpoints else []}


def model_routes(route: ProxiedRoute, division: RouteDivision) -> list[Json]:
    """Requests to /v1, in the table of a model: their body names it."""
    return _leading_to(route, {"prefix": "/v1/"}, division)


def path_routes(route: ProxiedRoute, prefix: str, division: RouteDivision) -> list[Json]:
    """Requests below a path, which the server does not get to see, and below the paths of single revisions.

    Two routes, because one for both would leave two slashes, or need a pattern, which Envoy takes long to compile.
    """
    found = [each for match in _below(prefix) for each in _leading_to(route, match, division, prefix_rewrite="/")]
    for each in route.revisions:
        cluster = cluster_name(route.key.namespace, each.service, each.port)
        action = {"cluster": cluster, "prefix_rewrite": "/"}
        found += [_to_servers(route, match, action) for match in _below(f"{prefix}@{each.number}")]
    return found


def host_routes(route: ProxiedRoute, division: RouteDivision) -> list[Json]:
    """Requests for a host, below the route's path, which stays as it is."""
    plain = route.path.rstrip("/")
    match = {"path_separated_prefix": plain} if plain else {"prefix": "/"}
    return _leading_to(route, match, division)


def virtual_host(name: str, domains: Sequence[str]) -> Json:
    """A host, without its routes."""
    return {
        "name": name,
        "domains": [*domains],
        **keys.hold_nothing(),
        "retry_policy": {
            "retry_on": "connect-failure,refused-stream,reset-before-request",
            "num_retries": 3,
            "retry_host_predicate": [
                {
                    "name": "envoy.retry_host_predicates.previous_hosts",
                    "typed_config": {
                        "@type": f"{_TYPES}envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
                    },
                }
            ],
            # A server that is away has the fewest requests, so it is nearly always the first choice: with 5 attempts at
            # another one, a request in some hundred failed where two servers were, one of them away and one busy.
            "host_selection_retry_max_attempts": 30,
            "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.1s"},
        },
    }


def route_configuration(name: str) -> Json:
    """A route table without its hosts."""
    return {
        "name": name,
        "validate_clusters": True,
        "ignore_port_in_host_matching": True,
        "max_direct_response_body_size_bytes": DIRECT_BYTES_MAX,
        "request_headers_to_remove": [HEADER, keys.KEY],
    }


def scope(name: str) -> Json:
    """A scope without its route table."""
    return {"name": name, "key": {"fragments": [{"string_key": name}]}}


def _below(prefix: str) -> tuple[Json, Json]:
    return {"prefix": f"{prefix}/"}, {"path": prefix}


def _leading_to(route: ProxiedRoute, match: Json, division: RouteDivision, **action: object) -> list[Json]:
    """Routes of the requests that match: a branch each, the first one that matches counts, and that of all others."""
    found = []
    for branch in (*range(1, len(division.shares)), 0):
        headers = [_exactly(*header) for header in route.branches[branch - 1].headers] if branch else []
        made = _shared_out(route, match, division, branch, **action)
        searched = keys.in_body(route, BODY_BYTES_MAX) if division.shares[branch] else {}
        if searched:
            filters = {"typed_per_filter_config": {**made["typed_per_filter_config"], **searched}}
            found.append(made | filters | {"match": {**match, "headers": [*headers, _HOLDABLE]}})
        found.append(made | {"match": {**match, "headers": headers}} if headers else made)
    return found


def _exactly(name: str, value: str) -> Json:
    return {"name": name, "string_match": {"exact": value}}


def _shared_out(route: ProxiedRoute, match: Json, division: RouteDivision, branch: int, **action: object) -> Json:
    shares = division.shares[branch]
    if not shares:
        status, body = answers.detached(route)
        return answering(match, status, encoded(body))
    clusters: Json = {"clusters": [{"name": name, "weight": weight} for name, weight in shares]}
    if route.assign is not None:
        clusters["use_hash_policy"] = True
        action["hash_policy"] = [{"header": {"header_name": keys.KEY}}]
    if route.copies:
        action["request_mirror_policies"] = [_copied(route, each) for each in route.copies]
    filters = keys.by_key(route) | (tokens.counted() if route.measure else {})
    measured = {"measured": stratum_name(route, division, branch)} if route.measure else {}
    made = _to_servers(route, match, {"weighted_clusters": clusters, **action}, measured)
    return made | ({"typed_per_filter_config": filters} if filters else {})


def _copied(route: ProxiedRoute, copies: GatewayCopies) -> Json:
    return {
        "cluster": copies_name(route.key.namespace, copies),
        "runtime_fraction": {"default_value": {"numerator": copies.percent, "denominator": "HUNDRED"}},
        # Else a server would see another host than the one that the client named.
        "disable_shadow_host_suffix_append": True,
    }


def _to_servers(route: ProxiedRoute, match: Json, action: Json, known: Json | None = None) -> Json:
    metadata = {"endpoint": route.endpoint, "namespace": route.key.namespace, **(known or {})}
    return {
        "match": match,
        "metadata": {"filter_metadata": {METADATA: metadata}},
        "route": {"timeout": "0s", "idle_timeout": f"{SILENCE_SECONDS_MAX}s", **action},
    }


def _access_log(path: str) -> Json:
    """One line of JSON for each request. Never what is in it."""
    line = {
        "time": "%START_TIME%",
        "method": "%REQ(:METHOD)%",
        "host": "%REQ(:AUTHORITY)%",
        "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
        "model": f"%DYNAMIC_METADATA({METADATA}:model)%",
        "namespace": f"%METADATA(ROUTE:{METADATA}:namespace)%",
        "endpoint": f"%METADATA(ROUTE:{METADATA}:endpoint)%",
        "cluster": "%UPSTREAM_CLUSTER%",
        "server": "%UPSTREAM_HOST%",
        "status": "%RESPONSE_CODE%",
        "flags": "%RESPONSE_FLAGS%",
        "details": "%RESPONSE_CODE_DETAILS%",
        "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
        "bytes_in": "%BYTES_RECEIVED%",
        "bytes_out": "%BYTES_SENT%",
        "ms": "%DURATION%",
        # Of the body: many servers send the headers at once, and the first token when there is one.
        "ms_to_first_byte": "%COMMON_DURATION(DS_RX_END:US_RX_BODY_BEG:ms)%",
        "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
        "request_id": "%REQ(X-REQUEST-ID)%",
    }
    return _file(path, {"json_format": line}) | {"filter": {"log_type_filter": {"types": ["DownstreamEnd"]}}}


def _measured_log(path: str) -> Json:
    """A line for each request that is measured, when it ends and while it lasts."""
    cel = f"{_TYPES}envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
    expression = {"@type": cel, "expression": f"'measured' in xds.route_metadata.filter_metadata['{METADATA}']"}
    line = {"text_format_source": {"inline_string": "\t".join(FIELDS) + "\n"}}
    return _file(path, line) | {"filter": {"extension_filter": {"name": "cel", "typed_config": expression}}}


def _file(path: str, log_format: Json) -> Json:
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": f"{_TYPES}envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": log_format,
        },
    }
