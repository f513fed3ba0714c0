"""One webhook of a configuration, compiled: which writes it is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.admission.match_resources import MatchResources
from pilotage_harbor.admission.values import values_of
from pilotage_harbor.expressions.conditions import Conditions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.core import Core
    from pilotage_harbor.core.admission import AdmissionAttributes
    from pilotage_harbor.expressions.programs import Expressions
    from pilotage_harbor.kinds import Json, Kind

TIMEOUT_SECONDS = 10


class Webhook:
    """One webhook. `uid` tells it from all others."""

    def __init__(self, configuration: str, at: int, webhook: Json, expressions: Expressions) -> None:
        self.name: str = webhook["name"]
        self.uid = f"{configuration}/{self.name}/{at}"
        self.client: Json = webhook.get("clientConfig") or {}
        self.ignores_failures = webhook.get("failurePolicy") == "Ignore"
        self.timeout_seconds: int = webhook.get("timeoutSeconds") or TIMEOUT_SECONDS
        self.side_effects: str | None = webhook.get("sideEffects")
        self.reinvocable = webhook.get("reinvocationPolicy") == "IfNeeded"
        self.review_versions: list[str] = webhook.get("admissionReviewVersions") or []
        self._matching = MatchResources(webhook, rules="rules")
        self._conditions = Conditions(webhook.get("matchConditions") or (), expressions)

    def kind_for(self, core: Core, attributes: AdmissionAttributes) -> Kind | None:
        """As which kind to show it the write; None if it is not to be asked. Raises what its selectors raise."""
        return self._matching.kind_for(core, attributes)

    def meets_conditions(self, attributes: AdmissionAttributes, request: Json) -> bool:
        """Whether its matchConditions are met by the request of a review; 403 if that cannot be said."""
        name, kind = request.get("name", ""), attributes.scope.kind
        return self._conditions.met(values_of(attributes, request), kind, name, ignores_failures=self.ignores_failures)


def hooks_of(configurations: Iterable[Json], expressions: Expressions) -> list[Webhook]:
    """All webhooks of some configurations, in their order."""
    return [
        Webhook(configuration["metadata"]["name"], at, webhook, expressions)
        for configuration in configurations
        for at, webhook in enumerate(configuration.get("webhooks") or ())
    ]
