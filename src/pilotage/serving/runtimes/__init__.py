"""Runtimes: one file for each server program, found here by name.

Every module of this package that has a `RUNTIME` is registered. `contract` says what that is; `allowed` has the syntax
of the tables of arguments that a Host accepts, `stop` the ways to stop a server in a pod.
"""

import pkgutil
from importlib import import_module

from pilotage.serving.runtimes.contract import HostLaunch, PodLaunch, ServerContainer, ServingRuntime

_MODULES = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]

RUNTIMES: dict[str, ServingRuntime] = {each.RUNTIME.name: each.RUNTIME for each in _MODULES if hasattr(each, "RUNTIME")}
"""Runtimes by name, which is that of `spec.runtime.name`."""

__all__ = ["RUNTIMES", "HostLaunch", "PodLaunch", "ServerContainer", "ServingRuntime"]
