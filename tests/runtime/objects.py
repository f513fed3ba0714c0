"""Objects and changes for tests of the runtime, made in one line."""

from pilotage.kube import Object, ObjectKey, Resource
from pilotage.runtime.informer import Change

THINGS = Resource("test.pilotage.dev", "v1", "things", "Thing")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
KEY = ObjectKey("ns", "a")


def thing(name: str = "a", *, version: int = 1, uid: str = "u1", namespace: str = "ns", **more: object) -> Object:
    """A Thing; `more` is merged into its metadata."""
    metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(version), **more}
    return Object.from_dict({"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": metadata})


def changed(version: int, *, before: int | None = None) -> Change:
    """A change of the thing `a` to this version."""
    return Change(None if before is None else thing(version=before), thing(version=version))
