"""Modules that a command needs later, imported while the API server answers: a start costs as much as many reads."""

import importlib
import sys
import threading
from collections.abc import Sequence

SWITCH_SECONDS = 0.0005
"""Switch interval of threads, so that an answer is processed soon after it arrives; the default is ten times this."""
TEARDOWN = (
    "pilotage.teardown.snapshot.gather",
    "pilotage.teardown.relations",
    "pilotage.teardown.diagnosis.hazards",
    "pilotage.teardown.snapshot.resolve",
    "pilotage.teardown.diagnosis.finalizer_owners",
    "pilotage.teardown.planning.plan",
    "pilotage.teardown.engine.executor",
    "pilotage.teardown.engine.receipt",
    "pilotage.teardown.session.execution",
    "pilotage.cli.output.teardown",
)
"""The modules of `plan` and `delete`, in the order in which they are needed."""


def import_meanwhile(modules: Sequence[str]) -> None:
    """Import these in the background, in this order. Whoever needs one of them before waits for it, as always."""
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.Thread(target=_import, args=(modules,), daemon=True).start()


def _import(modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)
