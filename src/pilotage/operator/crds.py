"""CustomResourceDefinitions of our kinds, with the choices that the registries offer.

The types in `api` say what a spec looks like. Which runtimes, placements and kinds of routes there are, and which
fields each kind of route takes, is known to their own files, in layers above `api`. Both are put together here.
"""

from collections.abc import Iterable

from pilotage.api.cel_rules import CelRule
from pilotage.api.crds import crds_of_types
from pilotage.api.names import ENDPOINTS, PROCESSES
from pilotage.kube import Json
from pilotage.serving.placements import PLACEMENTS
from pilotage.serving.runtimes import RUNTIMES
from pilotage.traffic.routers import ROUTERS

ROUTE_FIELDS = ("host", "className", "gateway", "tls")
"""The fields of `spec.route` that not every kind of route takes."""


def crds() -> list[Json]:
    """The CustomResourceDefinitions of all our kinds, sorted by name. Each call gives a copy that may be changed."""
    made = crds_of_types()
    for crd in made:
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get("spec")
        if crd["metadata"]["name"] in (str(ENDPOINTS), str(PROCESSES)):
            _offer(schema["properties"]["runtime"], "name", RUNTIMES, _runtime_rules())
        if crd["metadata"]["name"] == str(ENDPOINTS):
            _offer(schema["properties"]["placement"], "kind", PLACEMENTS, ())
            _offer(schema["properties"]["route"], "kind", ROUTERS, _route_rules())
            _add_rules(schema, [_host_rule()])
    return made


def _offer(schema: Json, field: str, choices: Iterable[str], rules: Iterable[CelRule]) -> None:
    """Limit a field of an object to these choices, and add rules to the object."""
    choice = schema["properties"][field]
    del choice["maxLength"]
    choice["enum"] = sorted(choices)
    _add_rules(schema, rules)


def _add_rules(schema: Json, rules: Iterable[CelRule]) -> None:
    if written := [each.written() for each in rules]:
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *written]


def _runtime_rules() -> list[CelRule]:
    names = [each.name for each in RUNTIMES.values() if each.custom]
    return [
        CelRule(
            f"!(self.name in {names}) || has(self.image) || has(self.command) && size(self.command) > 0",
            "a custom runtime needs an image, or on a Host a command",
        )
    ]


def _route_rules() -> list[CelRule]:
    rules = []
    for field in ROUTE_FIELDS:
        kinds = sorted(each.kind for each in ROUTERS.values() if field in each.fields)
        rules.append(CelRule(f"self.kind in {kinds} || !has(self.{field})", f"{field} is for route.kind {_any(kinds)}"))
    for router in ROUTERS.values():
        for field in router.needs:
            message = f"route.kind {router.kind} needs route.{field}"
            rules.append(CelRule(f"self.kind != '{router.kind}' || has(self.{field})", message))
        for rule, message in router.rules:
            rules.append(CelRule(f"self.kind != '{router.kind}' || ({rule})", message))
    return rules


def _host_rule() -> CelRule:
    kinds = sorted(each.kind for each in ROUTERS.values() if each.reaches_hosts)
    return CelRule(
        f"self.placement.kind != 'Host' || self.route.kind in {kinds}",
        f"on a Host, route.kind is {_any(kinds)}: the others lead to pods",
    )


def _any(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
