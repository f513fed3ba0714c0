"""The heart of harbor: what is stored, what is served, who decides, what time it is. No I/O, no waiting.

`Core` holds it together. Beside it: an object between its bytes and its versions (`objects`), the target of a request
(`scope`), the contract of admission (`admission`), quotas, and long work in threads (`offload`).
"""

from pilotage_harbor.core.core import CRD_FINALIZER, CRDS, LASTING_NAMESPACES, NAMESPACES, OBJECT_BYTES_MAX, Core

__all__ = ["CRDS", "CRD_FINALIZER", "LASTING_NAMESPACES", "NAMESPACES", "OBJECT_BYTES_MAX", "Core"]
