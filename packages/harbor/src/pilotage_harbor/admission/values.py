"""The variables that expressions see of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.admission.match_resources import name_of, namespace_of
from pilotage_harbor.expressions.authorizer import authorizer_of, check_of

if TYPE_CHECKING:
    from pilotage_harbor.core.admission import AdmissionAttributes
    from pilotage_harbor.kinds import Json


def values_of(attributes: AdmissionAttributes, request: Json) -> Json:
    """All but the parameters and the namespace; `request` is that of an AdmissionReview, with the objects."""
    scope = attributes.scope
    user, kind = scope.call.user, scope.kind
    access = AccessAttributes(
        "", kind.group, kind.plural, scope.subresource, namespace_of(attributes), name_of(attributes)
    )
    return {
        "object": request["object"],
        "oldObject": request["oldObject"],
        "request": {name: value for name, value in request.items() if name not in ("object", "oldObject")},
        "namespaceObject": None,
        "params": None,
        "authorizer": authorizer_of(user),
        "authorizer.requestResource": check_of(user, access),
    }
