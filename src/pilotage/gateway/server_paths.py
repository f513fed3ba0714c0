"""The paths of a server that the gateway passes on: those for inference. Plain dicts, pure.

Servers have more: llama-server shows the file of its model and what it works on (/props, /slots), and lets anybody
change its adapters; others load weights, profile or flush caches. Whoever reaches the gateway could use that. So what
is not known to be for clients is not passed on; a new path of a new server has to be added here.

An endpoint that has a host and names a path there (`route.path`) has said itself what is to be reached: below such a
path everything is passed on, as it is.
"""

from pilotage.gateway.own_routes import unknown_path
from pilotage.kube import Json

PATHS = (
    "health",
    "chat/completions",
    "completions?",
    "responses",
    "embeddings?",
    "infill",
    "rerank(ing)?",
    "v2/rerank",
    "score",
    "classify",
    "pooling",
    "(de)?tokenize",
    "apply-template",
    "generate(_stream)?",
)
"""Paths beside all of /v1, and the root, as patterns: those of llama-server, vLLM, SGLang and TGI."""
ADMINISTRATION = ("(un)?load_lora_adapter", "internal(/.*)?")
"""Paths below /v1 that are not for clients: of vLLM, of text-generation-webui."""

_ENDPOINT = "/endpoints/[^/?]+/[^/?]+"
_PASSED = f"(/|/v1/.*|/({'|'.join(PATHS)}))?"
_ADMINISTERED = f"/v1/({'|'.join(ADMINISTRATION)})/?"
_QUERY = r"(\?.*)?"

PATTERN_STEPS_MAX = 1000
"""Upper bound on the program size of a pattern, as Envoy compiles it. Its default of 100 is too small."""


def below_endpoints() -> list[Json]:
    """Routes that answer what is not passed on by model or by path; before those that lead to servers."""
    return [
        _refused("/endpoints/", f"{_ENDPOINT}{_PASSED}{_QUERY}", unless=True),
        _refused("/", f"({_ENDPOINT})?{_ADMINISTERED}{_QUERY}"),
    ]


def below_hosts() -> list[Json]:
    """The same, for a host that leads to all of a server: before the route that does."""
    return [_refused("/", f"{_PASSED}{_QUERY}", unless=True), _refused("/", f"{_ADMINISTERED}{_QUERY}")]


def _refused(prefix: str, pattern: str, *, unless: bool = False) -> Json:
    """A route that answers paths that match, or those that do not."""
    path: Json = {"name": ":path", "string_match": {"safe_regex": {"regex": pattern}}}
    return unknown_path({"prefix": prefix, "headers": [path | {"invert_match": True} if unless else path]})
