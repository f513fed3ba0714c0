"""Locations of the binaries: KUBEBUILDER_ASSETS, else a cache outside the repository that `build` fills.

A folder of envtest has no controller manager, scheduler or kwok; what such a folder lacks comes from the cache.
"""

import hashlib
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


class NoControlPlane(Exception):
    """There are no binaries, and none can be made; the message is one line that says how to get them."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One program, its Go package, and the module of ours that pins its version."""

    name: str
    package: str
    module: Path
    verb: tuple[str, ...] = ("build",)
    """Go's subcommand for the package; a test binary comes from `test -c`."""

    @property
    def ldflags(self) -> str:
        """Flags for the linker. Without a version Kubernetes reports v0.0.0, which clients complain about."""
        pinned = re.search(r"\bk8s\.io/kubernetes v((\d+)\.(\d+)\.\S+)", (self.module / "go.mod").read_text())
        if pinned is None:
            return "-s -w"
        fields = {"gitVersion": f"v{pinned[1]}", "gitMajor": pinned[2], "gitMinor": pinned[3]}
        return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{key}={fields[key]}" for key in fields)])


BINARIES = (
    Binary("etcd", "go.etcd.io/etcd/server/v3", HERE / "kubernetes"),
    Binary("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", HERE / "kubernetes"),
    Binary("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", HERE / "kubernetes"),
    Binary("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", HERE / "kubernetes"),
    Binary("kubectl", "k8s.io/kubernetes/cmd/kubectl", HERE / "kubernetes"),
    Binary("kwok", "sigs.k8s.io/kwok/cmd/kwok", HERE / "kwok"),
)


def cache_folder(env: Mapping[str, str], binaries: Sequence[Binary] = ()) -> Path:
    """The folder for exactly these versions (else: of the control plane) on this kind of machine. It need not exist."""
    binaries = binaries or BINARIES
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for binary in binaries:
        digest.update(f"{binary.name} {binary.package} {binary.ldflags}".encode())
    for module in sorted({binary.module for binary in binaries}):
        digest.update((module / "go.mod").read_bytes() + (module / "go.sum").read_bytes())
    root = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "~")).expanduser() / ".cache")
    return root / "pilotage" / "controlplane" / digest.hexdigest()[:16]


def find(env: Mapping[str, str]) -> dict[str, Path]:
    """The binaries that are there, by name. Raises `NoControlPlane` where KUBEBUILDER_ASSETS points nowhere."""
    folders = [cache_folder(env)]
    if given := env.get("KUBEBUILDER_ASSETS"):
        for name in ("etcd", "kube-apiserver"):
            if not (Path(given) / name).is_file():
                raise NoControlPlane(f"KUBEBUILDER_ASSETS={given} has no {name}: correct it, or unset it")
        folders.insert(0, Path(given))
    places = {binary.name: [folder / binary.name for folder in folders] for binary in BINARIES}
    there = {name: next(filter(Path.is_file, paths), None) for name, paths in places.items()}
    return {name: path for name, path in there.items() if path is not None}


def missing(env: Mapping[str, str]) -> list[Binary]:
    """The binaries that must be built."""
    there = find(env)
    return [binary for binary in BINARIES if binary.name not in there]


def require(env: Mapping[str, str], names: Collection[str]) -> dict[str, Path]:
    """The binaries by name, at least those that are asked for. Raises `NoControlPlane` where one is missing."""
    there = find(env)
    if lacking := sorted(set(names) - set(there)):
        raise NoControlPlane(f"the control plane is not complete ({', '.join(lacking)} missing): run `make kube`")
    return there
