import subprocess
import sys

import pytest

from pilotage_harbor.schema import builtin, definition, kubernetes_version, make, prune, unknown_fields


def test_the_table_is_what_the_published_schemas_give():
    made = make.table(make.definitions(), make.named_types(make.NAMED_TYPES.read_text()))

    assert make.TABLE.read_text() == made, "run python -m pilotage_harbor.schema.make"


def test_named_types_are_of_fields_that_exist():
    source = make.definitions()
    named = make.named_types(make.NAMED_TYPES.read_text())

    missing = [path for path in named if path.rpartition(".")[2] not in source[path.rpartition(".")[0]]["properties"]]

    assert not missing


def test_the_version_is_told():
    assert kubernetes_version() == "1.36.0"


def test_a_kind_that_kubernetes_does_not_have_is_a_key_error():
    with pytest.raises(KeyError):
        builtin("", "v1", "Nonsense")


def test_keys_and_strategies_of_lists_are_there():
    template = builtin("apps", "v1", "Deployment").properties["spec"].properties["template"]
    containers = template.properties["spec"].properties["containers"]
    assert containers.items is not None
    ports = containers.items.properties["ports"]
    assert ports.items is not None

    assert (containers.type, containers.list_type, containers.list_map_keys) == ("array", "map", ("name",))
    assert (containers.patch_strategy, containers.patch_merge_key) == ("merge", "name")
    assert ports.list_map_keys == ("containerPort", "protocol")
    assert ports.items.properties["protocol"].default == "TCP"
    assert ports.items.required == ("containerPort",)


def test_what_a_field_says_stays_with_the_field():
    spec = builtin("apps", "v1", "Deployment").properties["spec"]

    assert spec.properties["strategy"].patch_strategy == "retainKeys"
    assert definition("io.k8s.api.apps.v1.DeploymentStrategy").patch_strategy == ""
    assert spec.properties["selector"].map_type == "atomic"


def test_types_that_decode_themselves_are_known():
    meta = builtin("", "v1", "Pod").properties["metadata"].properties
    fields = meta["managedFields"].items
    assert fields is not None
    rolling = definition("io.k8s.api.apps.v1.RollingUpdateDeployment").properties

    assert (meta["creationTimestamp"].type, meta["creationTimestamp"].format) == ("string", "date-time")
    assert fields.properties["fieldsV1"].preserve_unknown
    assert rolling["maxSurge"].int_or_string
    assert definition("io.k8s.api.core.v1.ResourceRequirements").properties["limits"].go_name == "v1.ResourceList"


def test_a_schema_that_contains_itself_can_be_walked():
    schema = definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    for _ in range(20):
        child = schema.properties["properties"].additional
        assert child is not None
        schema = child

    assert "allOf" in schema.properties


def test_unions_of_schemas_are_pruned_and_never_strict():
    schema = definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    value = {"items": {"type": "string", "what": 1}, "additionalProperties": True, "default": {"any": 1}}

    assert unknown_fields(schema, value) == []
    prune(schema, value)
    assert value == {"items": {"type": "string"}, "additionalProperties": True, "default": {"any": 1}}


def test_rules_are_not_loaded_before_they_are_needed():
    code = "import sys, pilotage_harbor.schema; print({'cel_expr_python', 'google.protobuf'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
