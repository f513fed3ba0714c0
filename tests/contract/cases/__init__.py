"""The cases, one module for each theme. Importing this package registers all of them."""

import importlib
import pkgutil

from tests.contract.case import Case, registered

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

CASES: dict[str, Case] = registered()
"""Every case by its id, in the order of the themes."""
