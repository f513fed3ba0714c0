"""Scopes: a route table of its own for each endpoint, model and host, so that a change is as large as itself. Pure.

In one table for all, a change of one endpoint would have Envoy build the routes of all others anew, and each request
would be compared with all of them. So every request begins in the table `MAIN`, which knows no endpoint: a few lines of
Lua read from its path, its body or its host where it belongs, and write that into the header `HEADER`; then Envoy looks
for a table of that name, by a hash, and matches the request again there. A table that is not there answers like a path,
or a model, that is unknown (`answers`).

The header is ours: a client's is overwritten before anything is matched, and it is removed before a server sees it.
"""

import string
from collections.abc import Iterable, Sequence

from pilotage.gateway import own_routes, server_paths
from pilotage.gateway.answers import HEADER, METADATA, MODEL_SCOPE
from pilotage.gateway.finder import on, with_finder
from pilotage.kube import Json

MAIN, MODELS = "main", "models"
"""The table in which every request begins, and the one that lists models."""
LUA = "envoy.filters.http.lua"
_TYPES = "type.googleapis.com/"
_PLAIN = frozenset(f"{string.ascii_letters}{string.digits}".encode())

_SHARED = f"""
local function go(handle, scope)
  if scope then handle:headers():replace("{HEADER}", scope) end
end
local function model(handle, name)
  -- As a header can have it: what is no letter and no digit is escaped.
  local written = name:gsub("[^%w]", function(each) return ("%%%02X"):format(each:byte()) end)
  go(handle, "{MODEL_SCOPE}" .. written)
end
"""
_SCRIPTS = {
    "path": """
function envoy_on_request(handle)
  go(handle, handle:headers():get(":path"):match("^/endpoints/[^/?]+/[^/?@]+"))
end
""",
    "body": f"""
function envoy_on_request(handle)
  local found = handle:streamInfo():dynamicMetadata():get("{METADATA}")
  if found and type(found.model) == "string" and #found.model <= MODEL_BYTES_MAX then model(handle, found.model) end
end
""",
    "name": """
function envoy_on_request(handle)
  local name = handle:headers():get(":path"):match("^/v1/models/([^?]+)")
  if name then model(handle, (name:gsub("%%(%x%x)", function(each) return string.char(tonumber(each, 16)) end))) end
end
""",
    "scope": """
function envoy_on_request(handle)
  go(handle, handle:metadata():get("scope"))
end
""",
}
MODEL_BYTES_MAX = 4096
"""Upper bound on the name of a model: more than a route can have."""


def of_model(name: str) -> str:
    """Scope of a model. The scripts write it in the same way."""
    return MODEL_SCOPE + "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in name.encode())


def of_host(host: str) -> str:
    """Scope of a host."""
    return f"host {host}"


def chooser() -> Json:
    """The filter that says where a request belongs. Off, but where a route of the main table asks for it."""
    sources = {
        name: {"inline_string": f"local MODEL_BYTES_MAX = {MODEL_BYTES_MAX}\n{_SHARED}{each}"}
        for name, each in _SCRIPTS.items()
    }
    config = {"@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.Lua", "source_codes": sources}
    return {"name": LUA, "typed_config": config, "disabled": True}


def begin_in_main() -> Json:
    """Mutation of the headers before a request is matched for the first time."""
    header = {"header": {"key": HEADER, "value": MAIN}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
    mutation = f"{_TYPES}envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    return {"name": "begin", "typed_config": {"@type": mutation, "mutations": [{"append": header}]}}


def scoped_routes(source: Json) -> Json:
    """Configuration of the listener: where tables come from, and by what they are found."""
    extractor = {"header_value_extractor": {"name": HEADER, "index": 0}}
    return {
        "name": MAIN,
        "scope_key_builder": {"fragments": [extractor]},
        "rds_config_source": source,
        "scoped_rds": {"scoped_rds_config_source": source},
    }


def main_routes() -> list[Json]:
    """Routes of requests for no host in particular, in this order."""
    no_model, by_model = own_routes.body_routes()
    unknown_name, any_model, unknown = own_routes.last_routes()
    return [
        _to_scope(own_routes.model_list_match(), MODELS),
        *server_paths.below_endpoints(),
        own_routes.unknown_path({"prefix": "/endpoints/"}) | _choosing("path"),
        no_model,
        by_model | _finding(),
        unknown_name | _choosing("name"),
        any_model | _finding(),
        unknown,
    ]


def host_routes(host: str) -> list[Json]:
    """Routes of requests for a host."""
    return [_to_scope({"prefix": "/"}, of_host(host))]


def model_list(served: Iterable[tuple[str, str]]) -> list[Json]:
    """Routes of the table that lists models."""
    return [own_routes.model_list([*served])]


def main_hosts(hosts: Iterable[str], own: Sequence[str]) -> list[tuple[str, tuple[str, ...], list[Json]]]:
    """Virtual hosts of the main table: name, domains and routes of each."""
    # Its own names, too: a name goes before a wildcard that covers it.
    return [(host, (host,), host_routes(host)) for host in sorted(hosts)] + [("any", ("*", *own), main_routes())]


def _to_scope(match: Json, scope: str) -> Json:
    metadata = {"metadata": {"filter_metadata": {LUA: {"scope": scope}}}}
    return own_routes.unknown_path(match) | metadata | _choosing("scope")


def _finding() -> Json:
    filters = with_finder()["typed_per_filter_config"] | _choosing("body")["typed_per_filter_config"]
    return {"typed_per_filter_config": filters}


def _choosing(script: str) -> Json:
    config = {"@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.LuaPerRoute", "name": script}
    return {"typed_per_filter_config": {LUA: on(config)}}
