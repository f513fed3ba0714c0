"""How controllers run: workqueue, informers, controllers, leader election, Events, conditions, metrics.

client-go's semantics, on one event loop. Nothing here knows what any controller is for. Time comes from the running
loop and randomness from an injected seed, so that a loop with virtual time can drive all of it; no thread is started.
The names below are the public face; the modules behind them can move.
"""

from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.conditions import find_condition, set_condition
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
    "configure_logging",
    "find_condition",
    "monotonic",
    "on_signals",
    "owner_keys",
    "set_condition",
    "tune_gc",
    "utc_now",
]
