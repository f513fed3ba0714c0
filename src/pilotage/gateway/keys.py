"""Keys of requests: those with the same key go to the same Service. Plain dicts, pure.

A few lines of Lua look for the key where the route says, in headers or among the fields of the body that `finder` has
found, and write a hash of it, and of the salt, into the header `KEY`. Envoy then matches the request again, and chooses
among the Services by that header. The choice would have been made already if the key were kept anywhere else.

The header is ours: a client's is removed before anything is matched, and servers do not get to see it. It has a hash
because a field of a body can be any text, and because a key may be the name of a person.
"""

from pilotage.gateway.answers import METADATA
from pilotage.gateway.inputs import ProxiedRoute
from pilotage.kube import Json

KEY = "x-pilotage-key"
FILTER = "pilotage.key"
BUCKETS = 1024
"""Buckets of keys, by which the requests of one key are counted together."""
_TYPES = "type.googleapis.com/"
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
  for _, place in ipairs(context:get("keys")) do
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


def key_filter() -> Json:
    """The filter that finds keys, behind the one that finds models. It does nothing but where a route asks for it."""
    script = {"key": {"inline_string": _SCRIPT}}
    lua = {"@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.Lua", "source_codes": script}
    return {"name": FILTER, "typed_config": lua}


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
