"""The CustomResourceDefinitions that others publish."""

import copy
import functools
from typing import Any

import yaml

from field.modules import FieldError, module_dir
from field.table import DEFINITIONS

Json = dict[str, Any]


def crds(name: str, *only: str) -> list[Json]:
    """All CustomResourceDefinitions of one of `DEFINITIONS`, or `only` some, such as ``rollouts.argoproj.io``.

    Each as it is published, and yours to change. Raises `FieldError`, also for a name that is not among them.
    """
    if name not in DEFINITIONS:
        raise FieldError(f"no definitions {name!r} here; there are {', '.join(DEFINITIONS)}")
    found = _read(name)
    if missing := set(only) - set(found):
        raise FieldError(f"{DEFINITIONS[name].module} has no {', '.join(sorted(missing))}; it has {', '.join(found)}")
    return [copy.deepcopy(found[each]) for each in only or found]


@functools.cache
def _read(name: str) -> dict[str, Json]:
    """Definitions by name, in alphabetical order."""
    module, place = DEFINITIONS[name].module, DEFINITIONS[name].place
    path = module_dir(module.path, module.version, module.sum) / place
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    # The loader in C, where there is one: these are megabytes.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [each for file in files for each in yaml.load_all(file.read_text(), loader)]
    found = {
        each["metadata"]["name"]: each
        for each in documents
        if isinstance(each, dict) and each.get("kind") == "CustomResourceDefinition"
    }
    if not found:
        raise FieldError(f"{module} has no CustomResourceDefinition in {place}")
    return dict(sorted(found.items()))
