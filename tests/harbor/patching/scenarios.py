"""Sequences of writes whose answers kube-apiserver decides: what is asked of a real one and replayed here.

A step is a write by a manager. `update` is a PUT of the live object with a merge patch put into it; all the others send
their body as it is. Bodies name no object: `recording` gives each scenario one of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]

CREATE, UPDATE, MERGE, JSON, STRATEGIC, APPLY = "create", "update", "merge", "json", "strategic", "apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Step(NamedTuple):
    verb: str
    body: Any
    manager: str = "alice"
    force: bool = False
    subresource: str = ""
    dropped: tuple[str, ...] = ()
    """Members of the spec that the server adds after it has settled who owns what."""


class Scenario(NamedTuple):
    name: str
    api_version: str
    kind: str
    plural: str
    steps: tuple[Step, ...]


GROUP = "patching.test"
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"boxes.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "note": {"type": "string", "nullable": True},
                                    "colours": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "plain": {"type": "array", "items": {"type": "string"}},
                                    "doors": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["side", "number"],
                                        "items": {
                                            "type": "object",
                                            "required": ["side"],
                                            "properties": {
                                                "side": {"type": "string"},
                                                "number": {"type": "integer", "default": 1},
                                                "width": {"type": "integer"},
                                                "height": {"type": "integer"},
                                            },
                                        },
                                    },
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                                    },
                                    "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": {"type": "string"}, "count": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def deployment(**spec: Any) -> Json:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "web:1",
                            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
                            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "<2&>"}],
                        }
                    ]
                },
            },
            **spec,
        },
    }


def container(name: str, **fields: Any) -> Json:
    return {"spec": {"template": {"spec": {"containers": [{"name": name, **fields}]}}}}


def containers(**images: str) -> Json:
    found = [{"name": name, "image": image} for name, image in images.items()]
    return {"spec": {"template": {"spec": {"containers": found}}}}


def a_deployment(name: str, *steps: Step) -> Scenario:
    return Scenario(name, "apps/v1", "Deployment", "deployments", steps)


def a_config_map(name: str, *steps: Step) -> Scenario:
    return Scenario(name, "v1", "ConfigMap", "configmaps", steps)


def a_box(name: str, *steps: Step) -> Scenario:
    return Scenario(name, f"{GROUP}/v1", "Box", "boxes", steps)


def a_service(name: str, *steps: Step) -> Scenario:
    return Scenario(name, "v1", "Service", "services", steps)


_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_DOORS = [{"side": "n", "width": 1}, {"side": "s", "number": 2, "width": 2, "height": 9}]
_PORTS = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "protocol": "UDP"}]
_CONDITION = {"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
_OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}
_CLIENT_SIDE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{name}"}, "data": {"a": "1", "b": "1"}}

SCENARIOS = (
    a_deployment(
        "deployment created, updated, patched and its status written",
        Step(CREATE, deployment()),
        Step(UPDATE, {"spec": {"replicas": 5}}, "bob"),
        Step(UPDATE, {"spec": {"replicas": 5}}, "carol"),
        Step(STRATEGIC, container("web", image="web:2"), "bob"),
        Step(STRATEGIC, container("side", image="side:1"), "bob"),
        Step(MERGE, {"metadata": {"labels": {"app": None, "tier": "front"}}}, "carol"),
        Step(MERGE, {"metadata": {"labels": None, "annotations": {"note": "x"}}}, "carol"),
        Step(JSON, [{"op": "replace", "path": "/spec/replicas", "value": 1}], "alice"),
        Step(
            MERGE,
            {
                "status": {
                    "replicas": 1,
                    "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}],
                }
            },
            "controller",
            subresource="status",
        ),
        Step(UPDATE, {"status": {"replicas": 2, "conditions": None}}, "controller", subresource="status"),
        Step(UPDATE, {"status": {"replicas": 9}, "spec": {"paused": True}}, "dave"),
        Step(MERGE, {"spec": {"replicas": 7}, "status": {"replicas": 3}}, "controller", subresource="status"),
        Step(STRATEGIC, {"spec": {"template": {"spec": {"containers": [{"name": "web", "$patch": "delete"}]}}}}, "bob"),
        Step(UPDATE, {"spec": {"paused": None}}, "dave"),
    ),
    a_deployment(
        "strategic merge with every directive",
        Step(CREATE, deployment()),
        Step(
            STRATEGIC,
            {
                "spec": {
                    "template": {
                        "spec": {
                            "$setElementOrder/containers": [{"name": "b"}, {"name": "web"}, {"name": "a"}],
                            "containers": [{"name": "b", "image": "b:1"}, {"name": "a", "image": "a:1"}],
                        }
                    }
                }
            },
        ),
        Step(STRATEGIC, container("web", env=[{"name": "C", "value": "3"}, {"name": "A", "$patch": "delete"}])),
        Step(STRATEGIC, container("web", env=[{"$patch": "replace"}, {"name": "D", "value": "4"}])),
        Step(STRATEGIC, container("web", args=["x", "y"], ports=[{"containerPort": 80, "name": "http"}])),
        Step(STRATEGIC, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        Step(STRATEGIC, {"metadata": {"finalizers": ["a/b", "c/d", "e/f"]}}),
        Step(STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["c/d"], "finalizers": ["g/h"]}}),
        Step(
            STRATEGIC,
            {"metadata": {"$setElementOrder/finalizers": ["g/h", "x/y", "a/b"], "finalizers": ["x/y"]}},
        ),
        Step(STRATEGIC, {"metadata": {"labels": {"$patch": "replace", "only": "this"}}}),
        Step(STRATEGIC, {"metadata": {"labels": {"$patch": "delete"}}}),
        Step(STRATEGIC, {"metadata": {"finalizers": None}}),
        Step(STRATEGIC, {"spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}}}),
        Step(
            STRATEGIC, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": {"a": 1}}}}
        ),
        Step(STRATEGIC, {"spec": {"template": {"spec": {"$setElementOrder/containers": "x"}}}}),
        Step(STRATEGIC, {"spec": {"strategy": {"$patch": "nonsense"}}}),
        Step(STRATEGIC, []),
    ),
    a_config_map(
        "json patch with every operation",
        Step(CREATE, {"data": {"a": "1", "d": "3"}, "metadata": {"annotations": {"b/c": "2"}}}),
        Step(
            JSON,
            [
                {"op": "test", "path": "/data/a", "value": "1"},
                {"op": "add", "path": "/data/x", "value": "9"},
                {"op": "replace", "path": "/metadata/annotations/b~1c", "value": "two"},
                {"op": "remove", "path": "/data/d"},
                {"op": "copy", "from": "/data/a", "path": "/data/copy"},
                {"op": "move", "from": "/data/x", "path": "/data/moved"},
                {"op": "replace", "path": "/data/missing", "value": "added"},
            ],
            "bob",
        ),
        Step(JSON, [{"op": "add", "path": "/metadata/finalizers", "value": ["a/a", "b/b"]}]),
        Step(
            JSON,
            [
                {"op": "add", "path": "/metadata/finalizers/1", "value": "c/c"},
                {"op": "add", "path": "/metadata/finalizers/-", "value": "d/d"},
                {"op": "remove", "path": "/metadata/finalizers/-1"},
                {"op": "replace", "path": "/metadata/finalizers/0", "value": "e/e"},
            ],
            "bob",
        ),
        Step(JSON, [{"op": "remove", "path": "/metadata/finalizers"}], "bob"),
        Step(JSON, [{"op": "remove", "path": "/data/none"}]),
        Step(JSON, [{"op": "test", "path": "/data/a", "value": "other"}]),
        Step(JSON, [{"op": "test", "path": "/data/none", "value": None}]),
        Step(JSON, [{"op": "add", "path": "/none/none", "value": 1}]),
        Step(JSON, [{"op": "add", "path": "", "value": {}}]),
        Step(JSON, [{"op": "frob", "path": "/data/a"}]),
        Step(JSON, [{"op": "move", "from": "/data/none", "path": "/data/z"}]),
        Step(JSON, [{"op": "add", "value": 1}]),
        Step(JSON, {"op": "add", "path": "/data/a", "value": "1"}),
        Step(JSON, ["x"]),
        Step(JSON, []),
        Step(MERGE, []),
        Step(MERGE, {"data": {"a": None, "new": "1", "none": None}}, "carol"),
        Step(MERGE, {"data": None, "binaryData": {"x": "AAAA"}}, "carol"),
        Step(MERGE, {}, "carol"),
    ),
    a_config_map(
        "managedFields cleared, and never tracked again until somebody applies",
        Step(CREATE, {"data": {"a": "1"}}),
        Step(MERGE, {"metadata": {"managedFields": [{}]}}, "bob"),
        Step(MERGE, {"data": {"b": "1"}}, "bob"),
        Step(APPLY, {"data": {"a": "1", "c": "1"}}, "carol"),
        Step(APPLY, {"data": {"b": "2"}}, "carol"),
        Step(UPDATE, {"metadata": {"managedFields": []}}, "bob"),
    ),
    a_config_map(
        "entries written by a client",
        Step(CREATE, {"data": {"a": "1", "b": "1"}}),
        Step(
            UPDATE,
            {
                "metadata": {
                    "managedFields": [
                        {
                            "manager": "mallory",
                            "operation": "Apply",
                            "apiVersion": "v1",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:data": {"f:b": {}, ".": {}}, "z:future": {}},
                            "time": "2020-01-01T00:00:00Z",
                        }
                    ]
                }
            },
            "bob",
        ),
        Step(
            UPDATE, {"metadata": {"managedFields": [{"manager": "x", "operation": "Wish"}]}, "data": {"c": "1"}}, "bob"
        ),
        Step(APPLY, {"data": {"a": "1"}}, "mallory"),
    ),
    a_config_map(
        "more updaters than are kept",
        Step(CREATE, {"data": {"m": "0"}}, "m00"),
        *(Step(MERGE, {"data": {f"k{n}": "1"}}, f"m{n:02}") for n in range(1, 13)),
        Step(MERGE, {"data": {"k1": "2"}}, "m01"),
    ),
    a_deployment(
        "apply creates, conflicts, is shared, forced and removed",
        Step(APPLY, deployment(), "alice"),
        Step(APPLY, deployment(), "alice"),
        Step(APPLY, deployment(replicas=3), "bob"),
        Step(APPLY, deployment(replicas=2), "bob"),
        Step(APPLY, {"spec": {"replicas": 4}}, "bob"),
        Step(APPLY, {"spec": {"replicas": 4}, "metadata": {"labels": {"app": "other"}}}, "carol"),
        Step(APPLY, {"spec": {"replicas": 4}, "metadata": {"labels": {"app": "other"}}}, "carol", force=True),
        Step(APPLY, {"metadata": {"labels": {"app": "other"}}}, "carol"),
        Step(APPLY, {**deployment(), "metadata": {}}, "alice", force=True),
        Step(UPDATE, {"spec": {"replicas": 9}}, "scaler"),
        Step(APPLY, deployment(), "alice"),
        Step(APPLY, container("web", image="web:9", env=[{"name": "A", "value": "9"}]), "dave"),
        Step(APPLY, container("web", image="web:9", env=[{"name": "A", "value": "9"}]), "dave", force=True),
        Step(APPLY, containers(web="web:9", side="side:1"), "dave"),
        Step(APPLY, containers(first="f:1", side="side:1", last="l:1"), "erin"),
        Step(APPLY, containers(web="web:9"), "dave"),
        Step(APPLY, containers(last="l:1", side="side:1"), "erin"),
        Step(APPLY, {}, "erin"),
        Step(APPLY, {"spec": {"replicas": None, "minReadySeconds": None}}, "erin"),
        Step(APPLY, {"spec": {"replicas": None, "minReadySeconds": None}}, "erin", force=True),
        Step(APPLY, container("web", image="web:9", imagePullPolicy=None), "erin"),
    ),
    a_deployment(
        "apply that does not fit",
        Step(APPLY, deployment(nonsense=1)),
        Step(APPLY, deployment(replicas="two")),
        Step(APPLY, deployment(paused="yes")),
        Step(APPLY, {**deployment(), "metadata": {"labels": {"a": 1}}}),
        Step(APPLY, deployment(template={"spec": {"containers": [{"name": "a"}, {"name": "a"}]}})),
        Step(APPLY, deployment(template={"spec": {"containers": [{"image": "a"}]}})),
        Step(APPLY, deployment(template={"spec": {"containers": {"name": "a"}}})),
        Step(APPLY, {**deployment(), "apiVersion": "apps/v1beta1"}),
        Step(APPLY, {**deployment(), "metadata": {"managedFields": []}}),
    ),
    a_config_map(
        "kubectl apply becomes server-side",
        Step(
            CREATE,
            {"metadata": {"annotations": {LAST_APPLIED: _CLIENT_SIDE}}, "data": {"a": "1", "b": "1"}},
            "kubectl-client-side-apply",
        ),
        Step(APPLY, {"data": {"a": "2"}}, "other"),
        Step(APPLY, {"data": {"a": "2", "b": "2"}}, "kubectl"),
        Step(MERGE, {"data": {"b": "3"}}, "bob"),
        Step(APPLY, {"data": {"a": "3", "b": "4"}}, "kubectl"),
        Step(APPLY, {"data": {"a": "3", "b": "<4>"}}, "kubectl", force=True),
    ),
    a_config_map(
        "apply of everything a config map can have",
        Step(APPLY, {"data": {"a": "1"}, "metadata": {"finalizers": ["x/y"], "annotations": {}}}, "alice"),
        Step(APPLY, {"data": {}, "metadata": {"finalizers": ["x/y", "z/z"]}}, "bob"),
        Step(APPLY, {"immutable": False, "binaryData": {"b": "AA=="}, "data": {"a": None}}, "bob", force=True),
        Step(APPLY, {"metadata": {"finalizers": []}}, "alice"),
        Step(APPLY, {"metadata": {"finalizers": []}}, "bob"),
    ),
    a_service(
        "service",
        Step(CREATE, {"spec": {"selector": {"a": "b"}, "ports": _PORTS}}, dropped=_ALLOCATED),
        Step(STRATEGIC, {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, "bob"),
        Step(APPLY, {"spec": {"ports": [{"port": 80, "targetPort": 1}]}}, "carol"),
        Step(APPLY, {"spec": {"ports": [{"port": 80, "appProtocol": "x", "targetPort": 1}]}}, "carol", force=True),
        Step(APPLY, {"spec": {"ports": [{"port": 82, "name": "new"}]}}, "carol"),
        Step(UPDATE, {"spec": {"ports": [{"name": "z", "port": 90, "targetPort": 90, "protocol": "TCP"}]}}, "bob"),
        Step(UPDATE, {"spec": {"selector": None, "sessionAffinity": "ClientIP"}}, "dave"),
        Step(
            MERGE,
            {"status": {"conditions": [{"type": "A", "status": "True", "reason": "R", **_CONDITION}]}},
            "cloud",
            subresource="status",
        ),
    ),
    Scenario(
        "other built-in kinds: stateful set",
        "apps/v1",
        "StatefulSet",
        "statefulsets",
        (
            Step(CREATE, {**deployment(serviceName="x"), "metadata": {"ownerReferences": [_OWNER]}}),
            Step(STRATEGIC, {"metadata": {"ownerReferences": [{**_OWNER, "uid": "2"}]}}, "bob"),
            Step(STRATEGIC, {"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}]}}, "bob"),
            Step(APPLY, {"metadata": {"ownerReferences": [{**_OWNER, "name": "o2"}]}}, "carol"),
            Step(UPDATE, {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}, "dave"),
        ),
    ),
    Scenario(
        "other built-in kinds: role",
        "rbac.authorization.k8s.io/v1",
        "Role",
        "roles",
        (
            Step(CREATE, {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
            Step(MERGE, {"rules": None}, "bob"),
            Step(MERGE, {"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}, "carol"),
        ),
    ),
    Scenario(
        "other built-in kinds: lease",
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        (
            Step(CREATE, {"spec": {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z"}}),
            Step(UPDATE, {"spec": {"holderIdentity": "b", "renewTime": "2026-01-02T00:00:00.000000Z"}}, "bob"),
            Step(UPDATE, {"spec": {"renewTime": None}}, "bob"),
            Step(MERGE, {"spec": None}, "bob"),
        ),
    ),
    Scenario(
        "other built-in kinds: endpoint slice",
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        (
            Step(CREATE, {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"port": 80}]}),
            Step(MERGE, {"endpoints": [{"addresses": ["10.1.1.2"], "conditions": {"ready": False}}]}, "bob"),
            Step(MERGE, {"ports": None}, "bob"),
        ),
    ),
    Scenario(
        "other built-in kinds: autoscaler",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        (
            Step(
                CREATE,
                {
                    "spec": {
                        "maxReplicas": 3,
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                    }
                },
            ),
            Step(
                APPLY,
                {"spec": {"maxReplicas": 4, "behavior": {"scaleDown": {"selectPolicy": "Max"}}}},
                "bob",
                force=True,
            ),
            Step(
                MERGE,
                {"status": {"desiredReplicas": 1, "conditions": [{"type": "A", "status": "True"}]}},
                "hpa",
                subresource="status",
            ),
        ),
    ),
    Scenario(
        "other built-in kinds: network policy and its empty structs",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        (
            Step(CREATE, {"spec": {"podSelector": {}, "ingress": [{}]}}),
            Step(MERGE, {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}, "bob"),
        ),
    ),
    a_box(
        "custom resource created and updated",
        Step(
            CREATE,
            {
                "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]},
                "spec": {
                    "size": 1,
                    "note": None,
                    "colours": ["red", "blue"],
                    "plain": ["x"],
                    "doors": _DOORS,
                    "whole": {"a": "1"},
                    "tags": {"k": "v"},
                    "open": {"x": {"y": [1, {"z": 2}]}, "s": "t", "e": {}},
                },
            },
        ),
        Step(MERGE, {"spec": {"size": 2, "colours": ["red", "green"]}}, "bob"),
        Step(MERGE, {"spec": {"doors": [{"side": "n", "number": 1, "width": 5}, {"side": "w"}]}}, "bob"),
        Step(UPDATE, {"spec": {"whole": {"b": "2"}, "open": {"x": "now text", "s": {"a": 1}}}}, "carol"),
        Step(UPDATE, {"spec": {"tags": None, "plain": []}}, "carol"),
        Step(MERGE, {"status": {"phase": "Ready"}, "metadata": {"labels": {"c": "d"}}}, "ctl", subresource="status"),
        Step(UPDATE, {"status": {"count": 3}}, "ctl", subresource="status"),
        Step(MERGE, {"metadata": {"finalizers": None}}, "bob"),
        Step(JSON, [{"op": "remove", "path": "/spec"}], "bob"),
    ),
    a_box(
        "custom resource applied",
        Step(
            APPLY, {"spec": {"size": 1, "doors": _DOORS, "colours": ["red", "blue"], "open": {"a": {"b": 1}}}}, "alice"
        ),
        Step(APPLY, {"spec": {"colours": ["blue", "green"], "doors": [{"side": "e"}, {"side": "n"}]}}, "bob"),
        Step(APPLY, {"spec": {"colours": ["yellow"], "open": {"a": {"c": 2}}}}, "bob"),
        Step(APPLY, {"spec": {"doors": [{"side": "n", "number": 1, "width": 7}]}}, "carol"),
        Step(
            APPLY,
            {"spec": {"doors": [{"side": "n", "number": 1, "width": 7}]}, "status": {"phase": "x"}},
            "carol",
            force=True,
        ),
        Step(APPLY, {"spec": {"size": 1, "whole": {"a": "1"}}}, "alice"),
        Step(APPLY, {"spec": {"whole": {"b": "1"}}}, "bob"),
        Step(APPLY, {"spec": {"whole": {"b": "1"}, "plain": ["a"], "tags": {"t": "1"}}}, "bob", force=True),
        Step(APPLY, {"spec": {"plain": ["b"], "tags": {"u": "1"}, "note": None}}, "bob"),
        Step(APPLY, {"status": {"phase": "Ready", "count": 1}}, "ctl", subresource="status"),
        Step(APPLY, {"status": {"phase": "Done"}}, "ctl", subresource="status"),
        Step(APPLY, {"spec": {"size": 1, "nonsense": 1}}, "alice"),
        Step(APPLY, {"spec": {"open": {}}}, "alice"),
    ),
    a_box(
        "order of lists that are applied, and nulls",
        Step(APPLY, {"spec": {"colours": ["a", "b", "c", "d", "e"], "doors": _DOORS, "tags": {"k": "v"}}}, "alice"),
        Step(APPLY, {"spec": {"colours": ["d", "x", "b"]}}, "bob"),
        Step(APPLY, {"spec": {"colours": ["y", "e", "a", "z", "c"]}}, "carol"),
        Step(APPLY, {"spec": {"colours": ["e", "d", "c", "b", "a"], "doors": _DOORS[::-1]}}, "alice"),
        Step(APPLY, {"spec": {"doors": [{"side": "w"}, *_DOORS[::-1]], "colours": ["q"]}}, "dave"),
        Step(APPLY, {"spec": {"tags": None, "doors": None, "colours": None}}, "erin"),
        Step(APPLY, {"spec": {"colours": []}}, "bob"),
    ),
    a_box(
        "everything that was applied is taken back",
        Step(APPLY, {"spec": {"size": 1, "open": {"a": {"b": 1}}}}, "alice"),
        Step(APPLY, {}, "alice"),
    ),
    a_config_map(
        "null instead of members",
        Step(APPLY, {"data": {"a": "1"}}, "alice"),
        Step(APPLY, {"data": None}, "bob"),
    ),
)
