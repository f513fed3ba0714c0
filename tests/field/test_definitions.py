"""The definitions of others, from their real modules."""

import pytest

import field
from controlplane import Access
from tests.conftest import UNDER_CI
from tests.field.conftest import FakeGo

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SOME = {
    "argo-rollouts": "rollouts.argoproj.io",
    "contour": "httpproxies.projectcontour.io",
    "crossplane": "usages.protection.crossplane.io",
    "gateway-api": "httproutes.gateway.networking.k8s.io",
    "istio": "virtualservices.networking.istio.io",
    "keda": "scaledobjects.keda.sh",
    "kserve": "inferenceservices.serving.kserve.io",
}


@pytest.fixture(scope="session")
def theirs() -> None:
    """Their modules can be had. Without Go the tests are skipped, but under CI."""
    try:
        field.crds("gateway-api")
    except field.NoGo as error:
        if UNDER_CI:
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.mark.parametrize(("name", "one_of_them"), SOME.items(), ids=SOME)
def test_a_real_api_server_takes_what_they_publish(theirs: None, cluster: Access, name: str, one_of_them: str):
    found = field.crds(name)
    assert one_of_them in [each["metadata"]["name"] for each in found]
    for each in field.crds(name, one_of_them):
        if cluster.find(f"{CRDS}/{one_of_them}") is None:
            taken = cluster.request("POST", f"{CRDS}?dryRun=All", each)
            assert taken["spec"]["names"]["plural"] == one_of_them.partition(".")[0]


def test_every_row_of_the_table_is_tried_above():
    assert set(SOME) == set(field.DEFINITIONS)


def test_a_caller_may_change_what_it_gets(go: FakeGo):
    publish(go, "rollouts.argoproj.io")
    field.crds("argo-rollouts")[0]["spec"].clear()
    assert field.crds("argo-rollouts")[0]["spec"] == {"group": "argoproj.io"}


def test_only_those_that_are_asked_for_come_in_that_order(go: FakeGo):
    publish(go, "a.argoproj.io", "b.argoproj.io", "c.argoproj.io")
    assert [each["metadata"]["name"] for each in field.crds("argo-rollouts", "c.argoproj.io", "a.argoproj.io")] == [
        "c.argoproj.io",
        "a.argoproj.io",
    ]


def test_a_definition_that_they_do_not_have_is_an_error_with_those_they_have(go: FakeGo):
    publish(go, "rollouts.argoproj.io")
    with pytest.raises(field.FieldError, match=r"v1.10.1 has no rolls.argoproj.io; it has rollouts.argoproj.io"):
        field.crds("argo-rollouts", "rolls.argoproj.io")


def test_a_module_that_keeps_them_elsewhere_by_now_is_an_error(go: FakeGo):
    publish(go)
    with pytest.raises(field.FieldError, match=r"has no CustomResourceDefinition in manifests/crds"):
        field.crds("argo-rollouts")


def test_a_name_that_is_not_in_the_table_is_an_error_with_those_that_are():
    with pytest.raises(field.FieldError, match=r"no definitions 'argo' here; there are argo-rollouts, "):
        field.crds("argo")


def publish(go: FakeGo, *names: str) -> None:
    """Let the module have these definitions, in one file, after something that is none."""
    definitions = [
        f"kind: CustomResourceDefinition\nmetadata: {{name: {name}}}\nspec: {{group: argoproj.io}}" for name in names
    ]
    place = go.module / "manifests" / "crds"
    place.mkdir(parents=True)
    (place / "all.yaml").write_text("\n---\n".join(["kind: Kustomization", "", *definitions]))
    go.answer(Dir=str(go.module), Sum=field.DEFINITIONS["argo-rollouts"].module.sum)
