"""Programs that our users run beside Pilotage: CRDs and tools of others, at pinned versions, for tests and benchmarks.

    field.crds("kserve")       # their CustomResourceDefinitions, as they publish them
    field.tool("kapp", print)  # the program, built on the first call

`edge` runs Contour with a real Envoy beside a control plane, in a network of its own (`ground`), with servers and load.

Everything else is read from Go modules, through Go's own cache and its checks: nothing of theirs is in this repository,
and what was fetched once is there without a network as well. `table` says what comes from where. Nothing here imports
`pilotage`.
"""

from field.definitions import crds
from field.modules import FieldError, NoGo, module_dir
from field.table import DEFINITIONS, TOOLS
from field.tools import built, tool

__all__ = ["DEFINITIONS", "TOOLS", "FieldError", "NoGo", "built", "crds", "module_dir", "tool"]
