"""Aggregated APIs that do not answer."""

from typing import Any

from pilotage.kube import Object
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.diagnosis.why.render import remedies_of
from tests.support.kinds import deployment
from tests.support.waiting import until
from tests.teardown.why.objects import API_SERVICES, DEPLOYMENTS, SERVICES, unique
from tests.teardown.why.staging import Stage, root_codes, the


async def dead(stage: Stage, service: str) -> Object:
    """An APIService in front of a Service that does not answer, as the aggregator has found out."""
    group = f"{unique('dead')}.example.com"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"namespace": stage.namespace, "name": service},
        "insecureSkipTLSVerify": True,
    }
    made = await stage.make(API_SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec})

    def is_unavailable(now: Object | None) -> bool:
        conditions: list[dict[str, Any]] = now.get("status", "conditions", default=[]) if now else []
        return any(each["type"] == "Available" and each["status"] == "False" for each in conditions)

    await until(stage.client, API_SERVICES, made.key, is_unavailable)
    return made


async def test_an_apiservice_without_its_service(stage: Stage):
    made = await dead(stage, "metrics")
    found = await stage.why(API_SERVICES, made)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"service-missing"}
    step = the(found, "apiservice-dead")
    assert "ServiceNotFound" in step.evidence[0]
    assert "no namespace can be proven empty" in step.text
    assert [each.command for each in remedies_of(found)] == [
        f"kubectl -n {stage.namespace} get service,endpointslices,deployments,pods",
        f"kubectl delete apiservice {made.meta.name}",
    ]


async def test_an_apiservice_whose_deployment_is_scaled_to_nothing(stage: Stage):
    await stage.make(DEPLOYMENTS, deployment("metrics", replicas=0))
    selector = {"app": "metrics"}
    await stage.make(
        SERVICES, {"metadata": {"name": "metrics"}, "spec": {"ports": [{"port": 443}], "selector": selector}}
    )
    made = await dead(stage, "metrics")
    found = await stage.why(API_SERVICES, made)
    assert root_codes(found) == {"workload-not-running"}
    assert str(found.roots[0].subject) == f"deployment/metrics -n {stage.namespace}"
