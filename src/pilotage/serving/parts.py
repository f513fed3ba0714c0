"""The values that serving, traffic and the controllers exchange."""

from typing import NamedTuple

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_MANAGED_BY, LABEL_REVISION, MANAGED_BY
from pilotage.kube import Resource
from pilotage.kube.wire import Json


class EndpointRef(NamedTuple):
    """An endpoint: its identity, its spec and its ledger."""

    namespace: str
    name: str
    uid: str
    spec: EndpointSpec
    ledger: frozenset[str] = frozenset()
    """The uids of its parts, as far as its status has them."""


class ResolvedModel(NamedTuple):
    """The model of an endpoint, with its Model looked up."""

    name: str
    """Name in requests: that of the Model, or that of the endpoint if its source is inline."""
    source: str
    sha256: str = ""
    secret: str = ""
    """The name of the Secret with the credentials of the source."""
    other_names: tuple[str, ...] = ()
    """More names in requests. A server that knows its names answers to these, too."""


class Capabilities(NamedTuple):
    """Features of the cluster and settings of the operator that change the objects of an endpoint."""

    keda: bool = False
    fetch_image: str = ""
    """The image whose `pilotage fetch` brings the weights into a pod; empty: the runtime has to fetch them itself."""
    fetch_env: tuple[tuple[str, str], ...] = ()
    """Variables for it: what may be fetched from where is the operator's to say."""
    kserve: bool = True
    host_paths: tuple[str, ...] = ()
    """Folders of nodes that pods may read weights from, where file:// sources lie; empty: none."""


class DesiredObject(NamedTuple):
    """One object as it should be: the whole manifest, with labels, without a namespace."""

    resource: Resource
    name: str
    body: Json
    revision: int | None
    """None for what belongs to all revisions."""


class Readiness(NamedTuple):
    """Readiness of a revision, from its observed parts."""

    ready: int
    desired: int
    available: bool
    """Whether it can take all of the traffic."""
    reason: str
    """Reason for the condition, CamelCase."""
    message: str
    """The one fact that counts comes first."""
    failed: bool = False
    """Whether waiting does not help: its image cannot be pulled, or a quota is exceeded."""
    troubled: bool = False
    """Whether the reason is a problem, and not just that a start takes its time."""
    unknown: bool = False
    """Whether it may be serving, and nobody knows: its Hosts are lost."""


def labels(endpoint: EndpointRef, revision: int | None = None) -> dict[str, str]:
    """Labels of every part."""
    found = {
        LABEL_MANAGED_BY: MANAGED_BY,
        LABEL_ENDPOINT: endpoint.name[:63].rstrip("-."),
        LABEL_ENDPOINT_UID: endpoint.uid,
    }
    if revision is not None:
        found[LABEL_REVISION] = str(revision)
    return found


def revision_name(name: str, revision: int) -> str:
    """The name of all parts of a revision."""
    return f"{name}-{revision}"
