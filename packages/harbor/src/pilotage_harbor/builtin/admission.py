"""Webhook configurations, as objects; they are called in `pilotage_harbor.admission.webhooks`.

Policies, the other kinds of this group, are in `admission_policies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pilotage_harbor.apimachinery.field_errors import duplicate, invalid, not_supported, required
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import dns1035, dns_subdomain, port_number
from pilotage_harbor.builtin.base import Builtin, kind
from pilotage_harbor.builtin.cells import text
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

_FORM = "; desired format: https://host[/path]"
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_VERSIONS = ("v1", "v1beta1")
FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")


class WebhooksStrategy(Builtin):
    """A ValidatingWebhookConfiguration, or a MutatingWebhookConfiguration."""

    status = False
    counts = ("webhooks",)
    unconditional_update = False
    qualified_finalizers = False

    def __init__(self, go_type: str, *, mutating: bool) -> None:
        self.go_type = go_type
        self._mutating = mutating

    def fill(self, obj: Json) -> None:
        """Defaults."""
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if self._mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules", ()):
                rule.setdefault("scope", "*")
            if (service := hook["clientConfig"].get("service")) is not None:
                service.setdefault("port", 443)

    def check(self, obj: Json) -> list[StatusCause]:
        """All webhooks."""
        problems: list[StatusCause] = []
        names: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            here, found = f"webhooks[{index}]", hook.get("name", "")
            problems += self._hook(hook, here)
            problems += _review_versions(hook.get("admissionReviewVersions") or [], f"{here}.admissionReviewVersions")
            if found in names:
                problems.append(duplicate(f"{here}.name", found))
            elif found:
                names.add(found)
        return problems

    def _hook(self, hook: Json, field: str) -> list[StatusCause]:
        problems = _hook_name(hook.get("name", ""), f"{field}.name")
        for index, rule in enumerate(hook.get("rules", ())):
            problems += rule_problems(rule, f"{field}.rules[{index}]")
        for name, supported in (("failurePolicy", FAILURE_POLICIES), ("matchPolicy", MATCH_POLICIES)):
            if hook[name] not in supported:
                problems.append(not_supported(f"{field}.{name}", hook[name], supported))
        effects = hook.get("sideEffects")
        if effects is None:
            problems.append(required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun"))
        elif effects not in ("None", "NoneOnDryRun"):
            problems.append(not_supported(f"{field}.sideEffects", effects, ("None", "NoneOnDryRun")))
        if not 1 <= hook["timeoutSeconds"] <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            problems.append(invalid(f"{field}.timeoutSeconds", hook["timeoutSeconds"], why))
        for name in ("namespaceSelector", "objectSelector"):
            problems += selector_problems(hook[name], f"{field}.{name}")
        if self._mutating and hook["reinvocationPolicy"] not in ("IfNeeded", "Never"):
            policy = hook["reinvocationPolicy"]
            problems.append(not_supported(f"{field}.reinvocationPolicy", policy, ("IfNeeded", "Never")))
        return problems + client_problems(hook["clientConfig"], f"{field}.clientConfig")


def _hook_name(name: str, field: str) -> list[StatusCause]:
    if not name:
        return [required(field)]
    if why := dns_subdomain(name):
        return [invalid(field, name, ",".join(why))]
    if name.count(".") < 2:
        return [invalid(field, name, "should be a domain with at least three segments separated by dots")]
    return []


def client_problems(config: Json, field: str) -> list[StatusCause]:
    """Problems of how a webhook is reached."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(field, "exactly one of url or service is required")]
    if service is None:
        return _url_problems(str(url), f"{field}.url")
    here = f"{field}.service"
    # The real server mixes the two up, too: it asks for the other one's name.
    problems = [required(f"{here}.{other}") for name, other in _SERVICE if not service.get(name)]
    if why := port_number(service["port"]):
        problems.append(invalid(f"{here}.port", service["port"], f"port is not valid: {', '.join(why)}"))
    return problems + _path_problems(service.get("path") or "", f"{here}.path")


_SERVICE = (("namespace", "name"), ("name", "namespace"))


def _path_problems(path: str, field: str) -> list[StatusCause]:
    if path in ("", "/"):
        return []
    if path == "//":
        return [invalid(field, path, "segment[0] may not be empty")]
    problems = [] if path.startswith("/") else [invalid(field, path, "must start with a '/'")]
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            problems.append(invalid(field, path, f"segment[{index}] may not be empty"))
        else:
            problems += [invalid(field, path, f"segment[{index}]: {why}") for why in dns_subdomain(step)]
    return problems


def _url_problems(url: str, field: str) -> list[StatusCause]:
    parts = urlsplit(url)
    problems: list[StatusCause] = []
    if parts.scheme != "https":
        problems.append(invalid(field, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not parts.netloc:
        problems.append(invalid(field, "", f"host must be specified{_FORM}"))
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        problems.append(invalid(field, user, "user information is not permitted in the URL"))
    if parts.fragment:
        problems.append(invalid(field, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        problems.append(invalid(field, parts.query, "query parameters are not permitted in the URL"))
    return problems


def rule_problems(rule: Json, field: str) -> list[StatusCause]:
    """Problems of a rule of a webhook or a policy."""
    operations = rule.get("operations") or []
    problems = [] if operations else [required(f"{field}.operations")]
    if len(operations) > 1 and "*" in operations:
        why = "if '*' is present, must not specify other operations"
        problems.append(invalid(f"{field}.operations", operations, why))
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            problems.append(not_supported(f"{field}.operations[{index}]", operation, _OPERATIONS))
    for name, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            problems.append(required(f"{field}.{name}"))
        if len(values) > 1 and "*" in values:
            why = f"if '*' is present, must not specify other {words}"
            problems.append(invalid(f"{field}.{name}", values, why))
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            problems.append(required(f"{field}.apiVersions[{index}]"))
    problems += _resources(rule.get("resources") or [], f"{field}.resources")
    if rule["scope"] not in ("*", "Cluster", "Namespaced"):
        problems.append(not_supported(f"{field}.scope", rule["scope"], ("*", "Cluster", "Namespaced")))
    return problems


def _resources(resources: list[str], field: str) -> list[StatusCause]:
    problems = [] if resources else [required(field)]
    all_of: set[str] = set()
    of_all: set[str] = set()
    alone = False
    for index, each in enumerate(resources):
        here = f"{field}[{index}]"
        if not each:
            problems.append(required(here))
            continue
        resource, slash, sub = each.partition("/")
        if not slash:
            alone = each != "*"
            continue
        if resource in all_of:
            problems.append(invalid(here, each, f"if '{resource}/*' is present, must not specify {each}"))
        if sub in of_all:
            problems.append(invalid(here, each, f"if '*/{sub}' is present, must not specify {each}"))
        if sub == "*":
            all_of.add(resource)
        if resource == "*":
            of_all.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        problems.append(invalid(field, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and alone:
        why = "if '*' is present, must not specify other resources without subresources"
        problems.append(invalid(field, resources, why))
    return problems


def _review_versions(versions: list[str], field: str) -> list[StatusCause]:
    if not versions:
        return [required(field, "must specify one of v1, v1beta1")]
    problems: list[StatusCause] = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            problems.append(invalid(f"{field}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        problems += [invalid(f"{field}[{index}]", version, why) for why in dns1035(version)]
    if not seen.intersection(_VERSIONS):
        problems.append(invalid(field, versions, "must include at least one of v1, v1beta1"))
    return problems


def kinds() -> list[Kind]:
    """The kinds of this family."""
    api = "admissionregistration.k8s.io/v1"
    columns = (NAME, text("Webhooks", lambda obj: len(obj.get("webhooks") or ()), type_="integer"), AGE)
    return [
        kind(
            api,
            f"{word.lower()}webhookconfigurations",
            f"{word}WebhookConfiguration",
            WebhooksStrategy(f"admission.{word}WebhookConfiguration", mutating=word == "Mutating"),
            columns,
            categories="api-extensions",
            namespaced=False,
        )
        for word in ("Mutating", "Validating")
    ]
