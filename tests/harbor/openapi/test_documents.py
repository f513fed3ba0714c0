"""Content of the documents about kinds, and when they change."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import msgspec
import pytest

from .world import BUILTIN, CRONTABS, World, crd, crontab, references

DEPLOYMENTS = "/apis/apps/v1/namespaces/{namespace}/deployments"
GVK = "x-kubernetes-group-version-kind"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def apps(world: World):
    return world.document("/openapi/v3/apis/apps/v1")


def names(parameters) -> set[str]:
    return {parameter["name"] for parameter in parameters}


def test_the_index_leads_to_every_document(world: World):
    world.define(crd({"type": "object"}))
    index = world.document("/openapi/v3")["paths"]
    assert {path for path in index if path.count("/") == (1 if path.startswith("api/") else 2)} == {
        "api/v1",
        "apis/apps/v1",
        "apis/rbac.authorization.k8s.io/v1",
        "apis/apiextensions.k8s.io/v1",
        "apis/apiregistration.k8s.io/v1",
        "apis/authorization.k8s.io/v1",
        "apis/authentication.k8s.io/v1",
        "apis/stable.example.com/v1",
    }
    for place in index.values():
        path, _, wanted = place["serverRelativeURL"].partition("?hash=")
        assert world.ask(path, query={"hash": [wanted]}).status == 200


@pytest.mark.parametrize("path", ["/openapi/v3/api/v1", "/openapi/v3/apis/apiextensions.k8s.io/v1", "/openapi/v2"])
def test_whatever_is_referred_to_is_there(world: World, path: str):
    world.define(crd({"type": "object", "properties": {"spec": {"type": "object"}}}))
    document = world.document(path)
    prefix, schemas = "#/definitions/", document.get("definitions")
    if schemas is None:
        prefix, schemas = "#/components/schemas/", document["components"]["schemas"]
    referred = references(document)
    assert referred
    assert {reference.removeprefix(prefix) for reference in referred} == schemas.keys()


def test_a_patch_is_checked_by_the_server_and_can_be_tried(apps):
    patch = apps["paths"][DEPLOYMENTS + "/{name}"]["patch"]
    assert names(patch["parameters"]) == {"dryRun", "fieldManager", "fieldValidation", "force"}
    assert patch["x-kubernetes-action"] == "patch"
    assert patch[GVK] == {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert patch["operationId"] == "patchAppsV1NamespacedDeployment"
    assert patch["tags"] == ["apps_v1"]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_a_custom_kind_is_not_patched_strategically(world: World):
    world.define(crd({"type": "object"}))
    document = world.document("/openapi/v3/apis/stable.example.com/v1")
    patch = document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"]["patch"]
    assert set(patch["requestBody"]["content"]) == {
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    }
    assert patch["operationId"] == "patchStableExampleComV1NamespacedCronTab"


def test_the_operations_of_a_kind(apps):
    paths = apps["paths"]
    assert {path: set(item) - {"parameters"} for path, item in paths.items()} == {
        "/apis/apps/v1/": {"get"},
        "/apis/apps/v1/deployments": {"get"},
        DEPLOYMENTS: {"get", "post", "delete"},
        DEPLOYMENTS + "/{name}": {"get", "put", "patch", "delete"},
        DEPLOYMENTS + "/{name}/scale": {"get", "put", "patch"},
        DEPLOYMENTS + "/{name}/status": {"get", "put", "patch"},
    }
    assert paths[DEPLOYMENTS + "/{name}/scale"]["get"][GVK]["kind"] == "Scale"
    assert names(paths[DEPLOYMENTS + "/{name}"]["parameters"]) == {"name", "namespace", "pretty"}
    assert paths[DEPLOYMENTS]["delete"]["operationId"] == "deleteAppsV1CollectionNamespacedDeployment"
    assert paths["/apis/apps/v1/deployments"]["get"]["operationId"] == "listAppsV1DeploymentForAllNamespaces"


def test_what_all_operations_of_a_path_share_stands_at_the_path(apps):
    everywhere = apps["paths"]["/apis/apps/v1/deployments"]
    assert "parameters" not in everywhere["get"]
    assert {"watch", "labelSelector", "pretty"} <= names(everywhere["parameters"])


def test_only_the_verbs_that_are_served(world: World):
    paths = world.document("/openapi/v3/apis/apiregistration.k8s.io/v1")["paths"]
    assert set(paths["/apis/apiregistration.k8s.io/v1/apiservices"]) == {"get", "parameters"}
    assert set(paths["/apis/apiregistration.k8s.io/v1/apiservices/{name}"]) == {"get", "parameters"}


def test_a_delete_answers_with_a_status_but_for_some(world: World, apps):
    def answered(document, path):
        return references(document["paths"][path]["delete"]["responses"]["200"])

    assert answered(apps, DEPLOYMENTS + "/{name}") == {
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Status"
    }
    pods = world.document("/openapi/v3/api/v1")
    assert answered(pods, "/api/v1/namespaces/{namespace}/pods/{name}") == {
        "#/components/schemas/io.k8s.api.core.v1.Pod"
    }


def test_questions_can_only_be_asked(world: World):
    paths = world.document("/openapi/v3/apis/authorization.k8s.io/v1")["paths"]
    item = paths["/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"]
    assert set(item) == {"post", "parameters"}
    assert item["post"][GVK]["kind"] == "LocalSubjectAccessReview"
    assert item["post"]["operationId"] == "createAuthorizationV1NamespacedLocalSubjectAccessReview"


def test_lists_are_merged_by_their_keys(apps):
    containers = apps["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }


def test_nothing_stands_beside_a_reference(apps):
    strategy = apps["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
        "x-kubernetes-patch-strategy": "retainKeys",
    }


def test_delete_options_are_a_kind_of_each_group(apps):
    schemas = apps["components"]["schemas"]
    assert [each["group"] for each in schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][GVK]] == [
        "",
        "apps",
    ]


def test_a_document_is_kept_until_its_own_kinds_change(world: World):
    before = world.document("/openapi/v3")["paths"]
    apps = world.ask("/openapi/v3/apis/apps/v1").body
    world.define(crd({"type": "object", "description": "one"}))
    first = world.document("/openapi/v3")["paths"]
    assert world.ask("/openapi/v3/apis/apps/v1").body is apps
    assert {path: place for path, place in first.items() if path in before} == before
    world.define(crd({"type": "object", "description": "two"}))
    second = world.document("/openapi/v3")["paths"]
    assert {path for path in first if first[path] != second[path]} == {"apis/stable.example.com/v1"}
    world.registry.serve_custom(CRONTABS, [])
    assert world.document("/openapi/v3")["paths"] == before
    assert world.ask("/openapi/v3/apis/stable.example.com/v1").status == 404


def test_a_version_that_joins_changes_the_whole_of_version_2(world: World):
    old = world.ask("/openapi/v2")
    world.define(crd({"type": "object"}), crontab(), crontab("v2"))
    new = world.ask("/openapi/v2")
    assert new.headers["Etag"] != old.headers["Etag"]
    assert "com.example.stable.v2.CronTab" in msgspec.json.decode(new.body)["definitions"]


def test_version_2_says_bodies_and_types_in_its_own_way(world: World):
    item = world.document("/openapi/v2")["paths"][DEPLOYMENTS + "/{name}"]
    body = item["put"]["parameters"][0]
    assert body == {
        "in": "body",
        "name": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"},
    }
    assert item["get"]["produces"] == ["application/json", "application/yaml"]
    assert item["get"]["responses"]["200"]["schema"] == {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"}
    assert {"in": "query", "name": "pretty", "type": "string", "uniqueItems": True} in item["parameters"]


def test_documents_go_with_their_core():
    world = World()
    world.document("/openapi/v3/api/v1")
    gone = weakref.ref(world)
    del world
    gc.collect()
    assert gone() is None


def test_two_processes_agree_on_the_hashes(world: World):
    program = "from tests.harbor.openapi.world import World; print(World().ask('/openapi/v3').body.decode())"
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert msgspec.json.decode(other.stdout) == world.document("/openapi/v3")


def test_every_builtin_kind_can_be_found_by_its_name(world: World):
    for kind in BUILTIN:
        path = f"/openapi/v3/apis/{kind.group}/{kind.version}" if kind.group else f"/openapi/v3/api/{kind.version}"
        wanted = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        schemas = world.document(path)["components"]["schemas"].values()
        assert [schema for schema in schemas if wanted in schema.get(GVK, ())], kind.kind
