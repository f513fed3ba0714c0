"""Where harbor answers otherwise than kube-apiserver, and why. Everything else must be the same.

A case that is listed here and does not differ is a failure, too: the list stays true.
"""

from __future__ import annotations

_LOOPBACK = "on one machine loopback is where the servers are, so harbor takes such addresses"

DEVIATIONS: dict[str, str] = {
    "kind/endpoint-slice-loopback": _LOOPBACK,
    "kind/endpoints-loopback": _LOOPBACK,
}
"""The reason, by case id."""
