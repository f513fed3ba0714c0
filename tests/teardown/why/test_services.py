"""Services that wait for a cloud, and EndpointSlices that no controller cleans up."""

from typing import Any

from pilotage.kube import Object
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from tests.teardown.why.objects import SERVICES, SLICES, event
from tests.teardown.why.staging import Stage, all_causes, root_codes, the

LOAD_BALANCER = "service.kubernetes.io/load-balancer-cleanup"


async def balanced(stage: Stage) -> Object:
    """A Service whose load balancer was made by a cloud controller, and that is being deleted."""
    body = {"metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    made = await stage.make(SERVICES, body, finalizers=[LOAD_BALANCER])
    await stage.status(SERVICES, made, {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}})
    await stage.delete(SERVICES, made)
    return made


async def test_a_load_balancer_that_nobody_gives_back(stage: Stage):
    made = await balanced(stage)
    found = await stage.why(SERVICES, made, seconds_later=600)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"load-balancer-controller-missing"}
    root = the(found, "load-balancer-controller-missing")
    assert "192.0.2.7" in root.evidence[0]
    assert root.remedies[-1].code == "strip-finalizer"
    assert root.remedies[-1].effect.startswith("LEAKS: the load balancer at 192.0.2.7")
    assert not [cause for cause in all_causes(found) if cause.code.startswith("finalizer")]


async def test_a_cloud_controller_that_says_why_it_fails(stage: Stage):
    made = await balanced(stage)
    await event(stage, SERVICES, made, "SyncLoadBalancerFailed", "Error deleting load balancer: quota exceeded")
    found = await stage.why(SERVICES, made, seconds_later=600)
    assert root_codes(found) == {"load-balancer-fails"}
    assert "quota exceeded" in the(found, "load-balancer-fails").evidence[0]


def endpoint_slice(name: str, service: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.8"]}],
        "ports": [{"port": 80}],
    }


async def test_a_slice_whose_service_is_gone(stage: Stage):
    left = await stage.make(SLICES, endpoint_slice("by-hand", "web"))
    found = await stage.why(SLICES, left)
    assert found.verdict is StuckVerdict.NOT_STUCK
    note = the(found, "endpointslice-without-service")
    assert "its Service web does not exist" in note.text
    assert note.remedies[0].command == f"kubectl delete endpointslice/by-hand -n {stage.namespace}"


async def test_a_service_whose_slices_will_stay(stage: Stage):
    made = await stage.make(SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    await stage.make(SLICES, endpoint_slice("by-hand", "web"))
    found = await stage.why(SERVICES, made)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert str(the(found, "endpointslices-stay").subject) == f"endpointslice/by-hand -n {stage.namespace}"
