"""Selection of Kubernetes's specs: the conformance specs of these families. Location of the binary.

They are the ones of sig-api-machinery that ask something of an API server alone, or of one with controllers beside it.
Left out are those that need containers that really run (webhooks, aggregated API servers) and those that take minutes
each (chunking, publishing of OpenAPI).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.assets import Binary, cache_folder
from controlplane.build import NoGo, fill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.build import Say

FAMILIES = (
    "Watchers",
    "FieldValidation",
    "Namespaces",
    "OrderedNamespaceDeletion",
    "Garbage collector",
    "CustomResourceDefinition resources",
    "CustomResourceFieldSelectors",
    "Discovery",
    "AggregatedDiscovery",
    "Servers with support for Table transformation",
    "server version",
)

_SELECTORS = "CustomResourceFieldSelectors"
NEEDS_CONTAINERS = (f"{_SELECTORS} {_SELECTORS} MUST list and watch custom resources matching the field selector",)
"""Specs that fail wherever no container runs, on a real API server as well: they talk to a webhook in a pod."""

E2E = Binary(
    "e2e.test", "k8s.io/kubernetes/test/e2e", Path(__file__).parent / "kubernetes", verb=("test", "-c", "-vet=off")
)

_SIG = "[sig-api-machinery] "
_TAG = re.compile(r" ?\[[^]]*\]")


def binary(env: Mapping[str, str], say: Say) -> Path:
    """The binary with all of Kubernetes's specs, which is built if it is not there. Raises `NoControlPlane`."""
    path = cache_folder(env, (E2E,)) / E2E.name
    if not path.is_file():
        if shutil.which("go", path=env.get("PATH")) is None:
            raise NoGo("no e2e.test: install Go, with which Kubernetes's specs are compiled (once, about 6 minutes)")
        say("conformance: Kubernetes's specs are compiled first, once; that takes about 6 minutes on two cores")
        fill(path.parent, lambda: [] if path.is_file() else [E2E], env, say)
    return path


def focus(full_names: Sequence[str]) -> str:
    """The regular expression that selects exactly these specs; it is matched with the name of the suite before them."""
    return f"(^| )({'|'.join(re.escape(name) for name in full_names)})$"


def chosen(full_names: Sequence[str], only: str) -> list[str]:
    """Those of the specs that are in our families, are for conformance, and match a regular expression."""
    return [
        name
        for name in full_names
        if "[Conformance]" in name and family(name) in FAMILIES and re.search(only, short(name), re.IGNORECASE)
    ]


def family(full_name: str) -> str:
    """The family of a spec, or "" if it is none of ours."""
    if not full_name.startswith(_SIG):
        return ""
    text = short(full_name)
    return next((each for each in sorted(FAMILIES, key=len, reverse=True) if text.startswith(each + " ")), "")


def short(full_name: str) -> str:
    """The name of a spec without its tags."""
    return _TAG.sub("", full_name).strip()
