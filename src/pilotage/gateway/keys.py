"""Keys of requests: those with the same key go to the same Service. Plain dicts, pure.

A few lines of Lua look for the key where the route says, in headers or among the fields of the body, and write a hash
of it, and of the salt, into the header `KEY`. Envoy then matches the request again, and chooses among the Services by
that header. The choice would have been made already if the key were kept anywhere else.

A body is held for that until it is whole, and so only where a route has a key in it, and up to the size that is
searched for a model; a larger one, or one that does not say its length, is passed on as it comes, without a key.

The header is ours: a client's is removed before anything is matched, and servers do not get to see it. It has a hash
because a field of a body can be any text, and because a key may be the name of a person.
"""

from pilotage.gateway import finder
from pilotage.gateway.answers import METADATA
from pilotage.gateway.inputs import ProxiedRoute
from pilotage.kube import Json

KEY = "x-pilotage-key"
HOLDER, FIELDS, FILTER = "pilotage.hold", "pilotage.fields", "pilotage.key"
BUCKETS = 1024
"""Buckets of keys, by which the requests of one key are counted together."""
_TYPES = "type.googleapis.com/"
_FINDER = f"{_TYPES}envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata"
_HOLDER = f"{_TYPES}envoy.extensions.filters.http.buffer.v3.BufferPerRoute"
_HASH = """
local function hash(text, factor)
  local value = #text
  for at = 1, #text do value = (value * factor + text:byte(at) + 1) % 2147483647 end
  return value
end
"""
_SCRIPT = f"""{_HASH}
function envoy_on_request(handle)
  local context, headers = handle:filterContext(), handle:headers()
  local fields = handle:streamInfo():dynamicMetadata():get("{METADATA}.fields") or {{}}
  for _, place in ipairs(context:get("keys") or {{}}) do
    local found
    if place.header then found = headers:get(place.header) else found = fields[place.body] end
    if found ~= nil and found ~= "" then
      local text = context:get("salt") .. "/" .. tostring(found)
      local first, second = hash(text, 16807), hash(text, 48271)
      handle:streamInfo():dynamicMetadata():set("{METADATA}", "bucket", first % {BUCKETS})
      headers:replace("{KEY}", ("%d-%d"):format(first, second))
      return
    end
  end
end
"""


def key_filters(bytes_max: int) -> list[Json]:
    """The filters that find keys, behind the one that finds models. They do nothing but where a route asks for it.

    A filter that is off cannot be turned on by the table that a request is matched in last: its first one decides. So
    these are on: the first is told by each virtual host to hold nothing, the second one looks at no kind of body.
    """
    nowhere = {"rules": [_found("-")], "allow_content_types": ["-"]}
    script = {"key": {"inline_string": _SCRIPT}}
    lua = {"@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.Lua", "source_codes": script}
    return [
        {"name": HOLDER, "typed_config": finder.holder(bytes_max)},
        {"name": FIELDS, "typed_config": {"@type": _FINDER, "request_rules": nowhere}},
        {"name": FILTER, "typed_config": lua},
    ]


def hold_nothing() -> Json:
    """Configuration of a virtual host."""
    return {"typed_per_filter_config": {HOLDER: {"@type": _HOLDER, "disabled": True}}}


def no_key() -> Json:
    """Mutation of the headers of a request before it is matched."""
    mutation = f"{_TYPES}envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    return {"name": "no-key", "typed_config": {"@type": mutation, "mutations": [{"remove": KEY}]}}


def by_key(route: ProxiedRoute) -> Json:
    """Configuration of a route whose requests are assigned by their key, by filter; empty for others."""
    if route.assign is None:
        return {}
    config = {
        "@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.LuaPerRoute",
        "name": "key",
        "filter_context": {"salt": route.assign.salt, "keys": [{kind: name} for kind, name in route.assign.keys]},
    }
    return {FILTER: config}


def in_body(route: ProxiedRoute, bytes_max: int) -> Json:
    """The same for a route whose requests are held, and their bodies searched for the key, by filter."""
    names = [name for kind, name in route.assign.keys if kind == "body"] if route.assign is not None else []
    if not names:
        return {}
    rules = {"rules": [_found(each) for each in dict.fromkeys(names)], **finder.json_only()}
    held = {"@type": _HOLDER, "buffer": {"max_request_bytes": bytes_max}}
    return {HOLDER: held, FIELDS: {"@type": _FINDER, "request_rules": rules}}


def _found(name: str) -> Json:
    return {"selectors": [{"key": name}], "on_present": {"metadata_namespace": f"{METADATA}.fields", "key": name}}
