"""Objects that a test has put on a cluster: made one by one, found again by uid, and taken away whatever happened.

    with Staged(cluster) as staged:
        staged.create("/api/v1/namespaces/x/configmaps", {…})

`remove` takes finalizers off: it is for the end of a test, when their owners are gone. Kinds of one's own are
installed with `install`, once for the whole session: a CRD that comes and goes costs seconds.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import pytest

import field
from controlplane import Access, ApiError
from tests.conftest import UNDER_CI

Json = dict[str, Any]

POLL_SECONDS = 0.02
READY_SECONDS_MAX = 30.0
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class Placed:
    """One object, as it was when it was made."""

    path: str
    """Path of the object itself."""
    body: Json

    @property
    def kind(self) -> str:
        kind: str = self.body["kind"]
        return kind

    @property
    def name(self) -> str:
        name: str = self.body["metadata"]["name"]
        return name

    @property
    def uid(self) -> str:
        uid: str = self.body["metadata"]["uid"]
        return uid

    def __str__(self) -> str:
        """``plural/name``, as in the audit log."""
        return "/".join(self.path.split("/")[-2:])

    def owner(self) -> Json:
        """The one controller reference that children of it have."""
        return {
            "apiVersion": self.body["apiVersion"],
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


class Staged:
    """Objects that one test has created, in their order."""

    def __init__(self, cluster: Access, namespace: str = "", name: str = "") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name
        self.objects: list[Placed] = []
        self.phases: dict[str, tuple[str, ...]] = {}
        """Objects that a teardown is expected to delete in each phase, in order; as ``plural/name``."""

    def create(self, collection: str, body: Json) -> Placed:
        """One more object. The answer of the server is its body."""
        made = self.cluster.request("POST", collection, body)
        placed = Placed(f"{collection}/{made['metadata']['name']}", made)
        self.objects.append(placed)
        return placed

    def find(self, kind: str, name: str = "") -> Placed:
        """The object of a kind (and name) that was made last."""
        return next(each for each in reversed(self.objects) if each.kind == kind and name in ("", each.name))

    @contextlib.contextmanager
    def or_nothing(self) -> Iterator[Self]:
        """Remove what was created so far if the block fails: all of it, or nothing."""
        try:
            yield self
        except BaseException:
            self.remove()
            raise

    def set_status(self, placed: Placed, status: Json) -> Placed:
        """Write a status, as a controller would."""
        body = self.cluster.request("GET", placed.path)
        updated = replace(placed, body=self.cluster.request("PUT", f"{placed.path}/status", body | {"status": status}))
        self.objects[self.objects.index(placed)] = updated
        return updated

    def wait(self, placed: Placed, ready: Callable[[Json], object]) -> None:
        """Wait until the server's copy is ready."""
        wait_until(lambda: ready(self.cluster.request("GET", placed.path)), f"{placed.path} to be ready")

    def left(self) -> list[Placed]:
        """Those that are still there, terminating or not. One that came back under its name has another uid."""
        return [each for each in self.objects if (now := self.cluster.find(each.path)) and _uid(now) == each.uid]

    def remove(self) -> None:
        """Remove all of it with its finalizers, owners first; also objects that were recreated under their names.

        Stop the stand-ins first: they would recreate more.
        """
        for placed in self.objects:
            force_away(self.cluster, placed.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def force_away(cluster: Access, path: str) -> None:
    """Delete the object at a path, and remove its finalizers. Raises `TimeoutError` where it is recreated for ever."""

    def gone() -> bool:
        body = cluster.find(path)
        if body is None:
            return True
        try:
            if body["metadata"].get("finalizers"):
                body["metadata"]["finalizers"] = []
                cluster.request("PUT", path, body)
            cluster.request("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        except ApiError as error:
            if error.reason not in {"NotFound", "Conflict"}:
                raise
        return cluster.find(path) is None

    wait_until(gone, f"{path} to go")


def install(cluster: Access, definitions: Iterable[Json]) -> list[str]:
    """Make sure that these kinds are served; returns the paths of those that were not there before."""
    wanted, made = list(definitions), []
    for each in wanted:
        try:
            cluster.request("POST", CRDS, each)
            made.append(f"{CRDS}/{each['metadata']['name']}")
        except ApiError as error:
            if error.reason != "AlreadyExists":  # from a test before this one, or the user's own
                raise
    for each in wanted:
        for version in each["spec"]["versions"]:
            if version["served"]:
                _wait_until_served(cluster, each["spec"], version["name"])
    return made


def theirs(name: str, *only: str) -> list[Json]:
    """The CRDs of others. Skips the test where there is no Go to read them with, but under CI."""
    try:
        return field.crds(name, *only)
    except field.NoGo as error:
        if UNDER_CI:
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def definition(group: str, kind: str, plural: str, *, namespaced: bool = True) -> Json:
    """The CustomResourceDefinition of a small kind of our own, which preserves unknown fields."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


def wait_until(condition: Callable[[], object], what: str, seconds: float = READY_SECONDS_MAX) -> None:
    """Ask again and again. Raises `TimeoutError`, which says for what."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(POLL_SECONDS)


def _wait_until_served(cluster: Access, spec: Json, version: str) -> None:
    """Wait until it answers a list and discovery lists it, so that kubectl finds it."""
    group, plural = f"/apis/{spec['group']}/{version}", spec["names"]["plural"]

    def served() -> bool:
        try:
            known = cluster.request("GET", group)["resources"]
            cluster.request("GET", f"{group}/{plural}?limit=1")
        except ApiError:
            return False
        return any(each["name"] == plural for each in known)

    wait_until(served, f"{plural}.{spec['group']} to be served")


def _uid(body: Json) -> str:
    uid: str = body["metadata"]["uid"]
    return uid
