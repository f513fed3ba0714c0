"""Admission by webhooks: who is asked about a write, in which order, and what their answers do.

Mutating webhooks are asked one after the other, in the order of their configurations' names; one that wishes so is
asked once more if a later one has changed the object. Validating ones are asked all at once. The configurations are
compiled when they change; where there are none, a write costs one look at an empty list.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pilotage_harbor.admission.match_resources import MatchResources, name_of
from pilotage_harbor.admission.review import (
    VERSIONS,
    BadPatch,
    InvalidReview,
    NoReview,
    converted,
    denial,
    request,
    shown,
    verdict_untrusted,
)
from pilotage_harbor.admission.values import values_of
from pilotage_harbor.admission.webhook_client import Failed, Https, call
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.expressions.conditions import Conditions
from pilotage_harbor.expressions.programs import Expressions
from pilotage_harbor.kinds import scale
from pilotage_harbor.patching import PatchError, json_patch
from pilotage_harbor.schema import decode_problem, prune

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from pilotage_harbor.admission.review import ReviewResponse
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.admission import AdmissionAttributes, Post
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import Event

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}"
_EXEMPT = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
_ASSIGNED = ("uid", "creationTimestamp")

_log = logging.getLogger(__name__)


class _NotAsked(Exception):
    """The webhook could not be asked, or made no sense: its failure policy decides."""


class Webhooks:
    """An `Admission`. `post` is how webhooks are reached, if not by HTTPS.

    `closed` are storages in which nothing may be created: those of definitions that are being deleted.
    """

    def __init__(self, core: Core, post: Post | None = None, closed: Collection[str] = ()) -> None:
        self._core = core
        self._closed = closed
        self._expressions = Expressions(core.authorizer.decide)
        self._https = Https()
        self._post: Post = post if post is not None else self._https
        core.post = self._post
        self._hooks: dict[str, list[Webhook] | None] = {MUTATING: None, VALIDATING: None}
        self._stop_listening: list[Callable[[], None]] = [
            core.store.listen(storage, self._changed) for storage in (MUTATING, VALIDATING)
        ]

    async def close(self) -> None:
        """Ask nobody any more."""
        for stop in self._stop_listening:
            stop()
        self._stop_listening.clear()
        self._core.post = None
        await self._https.close()

    async def mutate(self, attributes: AdmissionAttributes) -> list[str]:
        """Ask each mutating webhook in turn, as `Admission.mutate` says."""
        if self._closed and attributes.operation == "CREATE" and attributes.scope.kind.storage in self._closed:
            kind = attributes.scope.kind
            words = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(kind.group, kind.plural, name_of(attributes), words)
        hooks = self._hooks[MUTATING]
        if hooks is None:
            hooks = self._compile(MUTATING)
        if not hooks or _is_exempt(attributes):
            return []
        assigned = _take_assigned(attributes)
        try:
            return await _Round(self._core, self._ask).run(hooks, attributes)
        finally:
            if assigned:
                attributes.obj["metadata"].update(assigned)

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        """Ask all validating webhooks, as `Admission.validate` says."""
        hooks = self._hooks[VALIDATING]
        if hooks is None:
            hooks = self._compile(VALIDATING)
        if not hooks or _is_exempt(attributes):
            return []
        concerned = []
        for hook in hooks:
            prepared = _prepared(self._core, hook, attributes)
            if prepared is not None:
                concerned.append((hook, prepared[1]))
        answers = await asyncio.gather(
            *(self._ask(hook, wanted, attributes, mutating=False) for hook, wanted in concerned),
            return_exceptions=True,
        )
        refused = next((answer for answer in answers if isinstance(answer, BaseException)), None)
        if refused is not None:
            raise refused
        return [
            warning
            for answer in answers
            if answer and not isinstance(answer, BaseException)
            for warning in answer.warnings
        ]

    def _changed(self, event: Event) -> None:
        self._hooks[event.storage] = None

    def _compile(self, storage: str) -> list[Webhook]:
        hooks = self._hooks[storage] = hooks_of(self._core.objects(storage), self._expressions)
        return hooks

    async def _ask(
        self, hook: Webhook, wanted: Json, attributes: AdmissionAttributes, *, mutating: bool = True
    ) -> ReviewResponse | None:
        """Its yes; None if it could not be asked and that does not matter. Raises the refusal."""
        if attributes.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
            raise errors.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            verdict = await self._call(hook, wanted, mutating=mutating)
        except _NotAsked as error:
            words = f'failed calling webhook "{hook.name}": {error}'
            if hook.ignores_failures:
                _log.warning("%s; its failure policy is to ignore that", words)
                return None
            raise errors.internal(words) from None
        if not verdict.allowed:
            raise denial(hook.name, verdict.status)
        return verdict

    async def _call(self, hook: Webhook, wanted: Json, *, mutating: bool) -> ReviewResponse:
        version = next((version for version in hook.review_versions if version in VERSIONS), None)
        if version is None:
            words = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise _NotAsked(f"could not create admission objects: {words}")
        uid = self._core.uid()
        review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": wanted}
        wanted["uid"] = uid
        try:
            answer = await call(self._core, self._post, hook, review)
        except Failed as error:
            raise _NotAsked(f"failed to call webhook: {error}") from None
        try:
            return verdict_untrusted(answer, uid, version, mutating=mutating)
        except NoReview as error:
            raise _NotAsked(f"failed to call webhook: {error}") from None
        except InvalidReview as error:
            raise _NotAsked(f"received invalid webhook response: {error}") from None
        except BadPatch as error:
            raise _NotAsked(str(error)) from None


class _Round:
    """One write on its way through the mutating webhooks."""

    def __init__(
        self, core: Core, ask: Callable[[Webhook, Json, AdmissionAttributes], Awaitable[ReviewResponse | None]]
    ) -> None:
        self._core = core
        self._ask = ask
        self._asked: set[str] = set()
        """Those that wish to be asked again, if something changes after them."""
        self._again: set[str] = set()
        self._changed = False
        self._warnings: list[str] = []

    async def run(self, hooks: list[Webhook], attributes: AdmissionAttributes) -> list[str]:
        """Ask all, and those again that wish so; returns warnings."""
        for hook in hooks:
            await self._one(hook, attributes)
        if self._changed:
            for hook in [each for each in hooks if each.uid in self._again]:
                await self._one(hook, attributes)
        return self._warnings

    async def _one(self, hook: Webhook, attributes: AdmissionAttributes) -> None:
        prepared = _prepared(self._core, hook, attributes)
        if prepared is None:
            return
        kind, wanted = prepared
        verdict = await self._ask(hook, wanted, attributes)
        if verdict is not None:
            self._warnings += verdict.warnings
            if verdict.patch and self._patch(hook, kind, verdict, attributes):
                self._changed = True
                self._again |= self._asked
                self._asked.clear()
        if hook.reinvocable:
            self._asked.add(hook.uid)

    def _patch(self, hook: Webhook, kind: Kind, verdict: ReviewResponse, attributes: AdmissionAttributes) -> bool:
        """Apply a patch; whether it has changed anything."""
        if attributes.obj is None:
            words = "attempted to modify the object, which is not supported for this operation"
            raise errors.internal(f'admission webhook "{hook.name}" {words}')
        own = attributes.scope.kind
        try:
            patched = json_patch(shown(attributes, attributes.obj, kind) or {}, verdict.patch)
        except PatchError as error:
            raise errors.internal(error.why) from None
        if attributes.scope.subresource == "scale":
            replicas = scale.replicas_of(own, attributes.scope.name, patched)
            new: Json | None = scale.with_replicas(own, attributes.obj, replicas)
        else:
            new = converted(patched, kind, own)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise errors.internal(f'admission webhook "{hook.name}" left no object')
        problem = None if own.custom else decode_problem(own.schema, new, own.kind)
        if problem is not None:
            raise errors.internal(problem)
        prune(own.schema, new)
        own.strategy.default(new)
        changed: bool = new != attributes.obj
        attributes.obj = new
        return changed


def _prepared(core: Core, hook: Webhook, attributes: AdmissionAttributes) -> tuple[Kind, Json] | None:
    """Kind and request to send to a webhook; None if it is not to be asked."""
    kind = hook.kind_for(core, attributes)
    if kind is None:
        return None
    wanted = request(attributes, kind, "")
    return (kind, wanted) if hook.meets_conditions(attributes, wanted) else None


def _is_exempt(attributes: AdmissionAttributes) -> bool:
    kind = attributes.scope.kind
    return kind.group == GROUP and kind.kind in _EXEMPT


def _take_assigned(attributes: AdmissionAttributes) -> Json:
    """Remove from a new object the fields that are assigned only after mutation."""
    if attributes.operation != "CREATE" or attributes.obj is None:
        return {}
    meta = attributes.obj["metadata"]
    return {name: meta.pop(name) for name in _ASSIGNED if name in meta}


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
        """Kind to show the write as; None if the webhook is not to be asked. Raises what its selectors raise."""
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
