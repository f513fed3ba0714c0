"""The objects that an endpoint consists of, per placement and runtime, and whether they are ready.

Pure: manifests from the spec of an endpoint, and readiness from what was observed. `controllers` writes them. No part
has an ownerReference to its endpoint: a foreground delete would take them all at once.

`runtimes` has the server programs, `placements` the ways to run them; a new one is a file there. `pod` puts a server,
its weights (`weights`) and its probes together. `revision` says what makes a new revision, `drift` whether an object
has to be written, `problems` what cannot work, `pods` why a start fails.
"""

from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, Readiness, ResolvedModel
from pilotage.serving.placements import PLACEMENTS, Find, PlacementStrategy, ServiceBackend


def placement_of(endpoint: EndpointRef) -> PlacementStrategy:
    """Strategy for the placement of an endpoint."""
    return PLACEMENTS[endpoint.spec.placement.kind]


def desired_objects(
    endpoint: EndpointRef, revision: int, model: ResolvedModel, capabilities: Capabilities
) -> list[DesiredObject]:
    """All objects of a revision, and those of all revisions, in the order in which they are made."""
    return placement_of(endpoint).desired(endpoint, revision, model, capabilities)


def readiness(endpoint: EndpointRef, revision: int, find: Find) -> Readiness:
    """Readiness of a revision, from its observed parts."""
    return placement_of(endpoint).readiness(endpoint, revision, find)


def backend(endpoint: EndpointRef, revision: int) -> ServiceBackend:
    """The Service of a revision, and its port."""
    return placement_of(endpoint).backend(endpoint, revision)
