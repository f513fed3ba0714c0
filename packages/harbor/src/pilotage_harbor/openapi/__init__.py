"""The OpenAPI documents: v3 per group and version, and v2 for everything at once.

kubectl needs it to explain kinds, to merge lists by their keys, and to know that the server checks fields itself. The
documents follow from the registry alone; nothing is made before somebody asks for it. Built-in kinds have no
descriptions here, because the table that harbor carries has none; those of custom kinds come from their definitions.
"""

from __future__ import annotations

from pilotage_harbor.openapi.handler import serve

__all__ = ["serve"]
