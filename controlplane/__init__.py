"""A real Kubernetes control plane on loopback: for tests, benchmarks and the demo. Not shipped in the wheel.

    with Cluster() as cluster:
        cluster.kubectl("get", "nodes")

- `assets` says where the binaries come from; `build` makes them with Go (`python -m controlplane build`), `background`
  does so beside a test run.
- `cluster` puts one control plane together: `layout` its files, `components` the flags of each program, `stages.yaml`
  what kwok plays.
- `access` is what tests may do on any cluster; `remote` is a cluster of the user's own.
- `supervisor` is the process that all others hang on, so that none outlives the test run; `processes` drives it.

Nothing here imports `pilotage`: this is the ground on which it is tested.
"""

from controlplane.access import Access, ApiError, KubectlError
from controlplane.assets import NoControlPlane
from controlplane.audit import AuditRecord
from controlplane.cluster import Cluster, StartError
from controlplane.components import COMPONENTS
from controlplane.remote import RemoteCluster

__all__ = [
    "COMPONENTS",
    "Access",
    "ApiError",
    "AuditRecord",
    "Cluster",
    "KubectlError",
    "NoControlPlane",
    "RemoteCluster",
    "StartError",
]
