"""Those who make things again, or scale them up again."""

import pytest

from controlplane import Access
from pilotage.kube import PODS, Client, Json, Object, Resource, load_config
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.relations import relate
from tests.support.kinds import CONFIG_MAPS, config_map, deployment
from tests.support.waiting import eventually, until
from tests.teardown.staged import definition, install
from tests.teardown.why import worlds
from tests.teardown.why.objects import AUTOSCALERS, DEPLOYMENTS, FINALIZER
from tests.teardown.why.staging import Stage, root_codes, the

APPLICATIONS = Resource("argoproj.io", "v1", "applications", "Application")
KUSTOMIZATIONS = Resource("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization")


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_pod_that_its_deployment_makes_again(stage: Stage):
    await stage.make(DEPLOYMENTS, deployment("web"))

    async def its_pod() -> Object | None:
        return next(iter((await stage.client.list(PODS, stage.namespace)).items), None)

    made = await eventually(its_pod)
    found = await stage.why(PODS, made)
    assert found.verdict is StuckVerdict.NOT_STUCK
    note = the(found, "made-by-controller")
    assert str(note.subject) == f"deployment/web -n {stage.namespace}"
    assert f"recreates pod/{made.meta.name}" in note.text
    assert note.remedies[0].command == f"kubectl delete deployment/web -n {stage.namespace}"


@pytest.mark.usefixtures("namespace_for_pods")
async def test_an_autoscaler_that_scales_back(stage: Stage):
    web = await stage.make(DEPLOYMENTS, deployment("web", replicas=1))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3}
    scaler = await stage.make(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})
    await until(stage.client, AUTOSCALERS, scaler.key, lambda now: now and now.get("status", "lastScaleTime"))
    found = await stage.why(DEPLOYMENTS, web)
    note = the(found, "autoscaler-fights")
    assert str(note.subject) == f"horizontalpodautoscaler/web -n {stage.namespace}"
    assert "2 or more replicas" in note.text
    assert "to 2" in note.evidence[0]
    assert note.remedies[0].command == f"kubectl delete horizontalpodautoscaler/web -n {stage.namespace}"
    later = await stage.why(DEPLOYMENTS, web, seconds_later=3600)
    assert root_codes(later) == {"autoscaler-scales"}


def application(**automated: bool) -> Json:
    return {"metadata": {"name": "shop"}, "spec": {"syncPolicy": {"automated": automated}}}


def tracked(stage: Stage) -> Json:
    tracking = f"{stage.namespace}_shop:/ConfigMap:{stage.namespace}/settings"
    return config_map("settings", annotations={"argocd.argoproj.io/tracking-id": tracking})


async def test_argo_cd_applies_it_again(stage: Stage, cluster: Access):
    install(cluster, [definition("argoproj.io", "Application", "applications")])
    await stage.make(APPLICATIONS, application(selfHeal=True))
    made = await stage.make(CONFIG_MAPS, tracked(stage))
    found = await stage.why(CONFIG_MAPS, made)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"gitops-reapplies"}
    root = the(found, "gitops-reapplies")
    assert str(root.subject) == f"application/shop -n {stage.namespace}"
    assert "selfHeal" in root.evidence[1]
    assert root.remedies[0].title.startswith("Take configmap/settings")
    assert root.remedies[1].command == "argocd app set shop --sync-policy none"


async def test_argo_cd_that_does_not_heal_is_only_a_note(stage: Stage, cluster: Access):
    install(cluster, [definition("argoproj.io", "Application", "applications")])
    await stage.make(APPLICATIONS, application(selfHeal=False))
    made = await stage.make(CONFIG_MAPS, tracked(stage))
    found = await stage.why(CONFIG_MAPS, made)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert root_codes(found) == {"gitops-managed"}


async def test_flux_has_just_made_it_again(stage: Stage, cluster: Access):
    """Its own object was not seen, but its hand is in managedFields."""
    labels = {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
    config = load_config(kubeconfig=str(cluster.kubeconfig))
    async with Client.connect(config, name="kustomize-controller") as flux:
        made = await Stage(flux, stage.namespace).make(CONFIG_MAPS, config_map("settings", labels=labels))
    found = await stage.why(CONFIG_MAPS, made, seconds_later=20)
    assert found.verdict is StuckVerdict.STUCK
    root = the(found, "gitops-reapplies")
    assert root.evidence[1].startswith("kustomize-controller made it 2")
    assert root.remedies[1].command == "flux suspend kustomization shop -n flux-system"
    later = await stage.why(CONFIG_MAPS, made, seconds_later=3600)
    assert root_codes(later) == {"gitops-managed"}


@pytest.mark.parametrize(("suspended", "code"), [(False, "gitops-reapplies"), (True, "gitops-managed")])
def test_flux_applies_it_again_unless_it_is_suspended(suspended: bool, code: str):
    labels = {"kustomize.toolkit.fluxcd.io/name": "all", "kustomize.toolkit.fluxcd.io/namespace": "shop"}
    made = worlds.item(CONFIG_MAPS, "settings", metadata={"labels": labels})
    source = worlds.item(KUSTOMIZATIONS, "all", spec={"interval": "5m", "suspend": suspended})
    world = worlds.world(made, source)
    found = explain(world, relate(world), made)
    assert root_codes(found) == {code}
    assert ("every 5m" in " ".join(the(found, code).evidence)) is not suspended


async def test_helm_does_not_come_back_by_itself(stage: Stage):
    release = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": stage.namespace}
    made = await stage.make(CONFIG_MAPS, config_map("settings", annotations=release))
    found = await stage.why(CONFIG_MAPS, made)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert the(found, "gitops-managed").remedies[1].command == f"helm uninstall shop -n {stage.namespace}"


async def test_what_is_being_deleted_is_not_held_by_its_maker(stage: Stage, cluster: Access):
    install(cluster, [definition("argoproj.io", "Application", "applications")])
    await stage.make(APPLICATIONS, application(selfHeal=True))
    made = await stage.make(CONFIG_MAPS, tracked(stage), finalizers=[FINALIZER])
    await stage.delete(CONFIG_MAPS, made)
    found = await stage.why(CONFIG_MAPS, made)
    assert "gitops-reapplies" not in root_codes(found)
    assert "gitops-managed" in root_codes(found)
