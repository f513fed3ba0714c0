"""Deviations of harbor from kube-apiserver, with the reason. Everything else must be the same.

A case that is listed here and does not differ is a failure, too, so that the list stays true.
"""

from __future__ import annotations

_APISERVICES = "nothing is aggregated by harbor, so there are no APIServices, and none can be written"
_LOOPBACK = "on one machine loopback is where the servers are, so harbor takes such addresses"
_UNCOUNTED = "a quota that harbor could not enforce is refused, with the reason, and not stored and ignored"

DEVIATIONS: dict[str, str] = {
    "kind/endpoint-slice-loopback": _LOOPBACK,
    "kind/endpoints-loopback": _LOOPBACK,
    "kind/api-services": _APISERVICES,
    "discover/api-services": _APISERVICES,
    "kind/pod-security": "nothing runs in harbor's pods, and a real server is mostly told to allow privileged ones",
    "bad/json-deep": "harbor takes nothing nested more than 250 deep: who walks through it would run out of stack",
    "crd/rule-too-costly": "harbor does not estimate what a CEL rule may cost",
    "cr/api-version-and-kind-must-fit": "in a version that is not served harbor warns of no unknown fields",
    "sub/ephemeral-containers": "the refusal of a change to a pod's spec ends, in Go, with a diff of Go structures",
    "quota/scopes": _UNCOUNTED,
    "quota/scope-selector": _UNCOUNTED,
    "quota/devices": _UNCOUNTED,
    "policy/formats": "harbor's CEL has no `format` library: whoever uses it is refused when the policy is written",
    "policy/very-many-variables": "an expression and the variables that it uses are at most 32 levels deep in harbor",
}
"""The reason, by case id."""
