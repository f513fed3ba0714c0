"""Counts the tokens of answers, as far as these say it (`usage`), while they pass. Plain dicts, pure.

A few lines of Lua look at each piece of an answer, and hold none back. In a text of an answer, quotation marks are
escaped: so what is found is a field, and nothing that a model says.
"""

from pilotage.gateway.answers import METADATA
from pilotage.kube import Json

FILTER = "pilotage.tokens"
_TYPES = "type.googleapis.com/"
_SCRIPT = f"""
function envoy_on_response(handle)
  local rest, tokens = "", nil
  for piece in handle:bodyChunks() do
    local text = rest .. piece:getBytes(0, piece:length())
    for found in text:gmatch('"completion_tokens"%s*:%s*(%d+)%D') do tokens = tonumber(found) end
    rest = text:sub(-64)
  end
  if tokens then handle:streamInfo():dynamicMetadata():set("{METADATA}", "tokens", tokens) end
end
"""


def token_filter() -> Json:
    """The filter that counts tokens. It does nothing but where a route asks for it."""
    lua = {
        "@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.Lua",
        "source_codes": {"tokens": {"inline_string": _SCRIPT}},
    }
    return {"name": FILTER, "typed_config": lua}


def counted() -> Json:
    """Configuration of a route whose answers are looked at, by filter."""
    return {FILTER: {"@type": f"{_TYPES}envoy.extensions.filters.http.lua.v3.LuaPerRoute", "name": "tokens"}}
