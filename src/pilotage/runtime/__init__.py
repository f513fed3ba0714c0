"""Runtime of controllers: workqueue, informers, controllers, leader election, Events, conditions, metrics.

client-go's semantics, on one event loop. Nothing here knows what any controller is for. Time comes from the running
loop and randomness from an injected seed, so that a loop with virtual time can drive all of it; no thread is started.
The names below are the public face; the modules behind them can move.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotage.runtime.clock import monotonic, uptime, utc_now
    from pilotage.runtime.conditions import clipped, find_condition, set_condition
    from pilotage.runtime.controller import STALLED, Context, Controller, owner_keys
    from pilotage.runtime.events import Recorder
    from pilotage.runtime.informer import Change, Informer
    from pilotage.runtime.leader import Election, Leader, LeaseLost
    from pilotage.runtime.logs import configure_logging
    from pilotage.runtime.manager import Address, Manager
    from pilotage.runtime.process import on_signals, tune_gc
    from pilotage.runtime.queue import Queue, ShutDown
    from pilotage.runtime.store import Store, by_namespace, by_owner
    from pilotage.runtime.types import Reconcile, Result, TerminalError

# Imported when first used: who follows one kind needs no metrics, and these take most of the time.
_LATER = {
    "Address": "pilotage.runtime.manager",
    "Change": "pilotage.runtime.informer",
    "Context": "pilotage.runtime.controller",
    "Controller": "pilotage.runtime.controller",
    "Election": "pilotage.runtime.leader",
    "Informer": "pilotage.runtime.informer",
    "Leader": "pilotage.runtime.leader",
    "LeaseLost": "pilotage.runtime.leader",
    "Manager": "pilotage.runtime.manager",
    "Queue": "pilotage.runtime.queue",
    "Reconcile": "pilotage.runtime.types",
    "Recorder": "pilotage.runtime.events",
    "Result": "pilotage.runtime.types",
    "STALLED": "pilotage.runtime.controller",
    "ShutDown": "pilotage.runtime.queue",
    "Store": "pilotage.runtime.store",
    "TerminalError": "pilotage.runtime.types",
    "by_namespace": "pilotage.runtime.store",
    "by_owner": "pilotage.runtime.store",
    "configure_logging": "pilotage.runtime.logs",
    "clipped": "pilotage.runtime.conditions",
    "find_condition": "pilotage.runtime.conditions",
    "monotonic": "pilotage.runtime.clock",
    "on_signals": "pilotage.runtime.process",
    "owner_keys": "pilotage.runtime.controller",
    "set_condition": "pilotage.runtime.conditions",
    "tune_gc": "pilotage.runtime.process",
    "uptime": "pilotage.runtime.clock",
    "utc_now": "pilotage.runtime.clock",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "STALLED",
    "Address",
    "Change",
    "Context",
    "Controller",
    "Election",
    "Informer",
    "Leader",
    "LeaseLost",
    "Manager",
    "Queue",
    "Reconcile",
    "Recorder",
    "Result",
    "ShutDown",
    "Store",
    "TerminalError",
    "by_namespace",
    "by_owner",
    "clipped",
    "configure_logging",
    "find_condition",
    "monotonic",
    "on_signals",
    "owner_keys",
    "set_condition",
    "tune_gc",
    "uptime",
    "utc_now",
]
