"""Usages, Crossplane's and our own: what is in use, and by what. They keep what is in use from being deleted."""

from __future__ import annotations

from pilotage.teardown.relations.rows import Reference, Relation, Row, Selected


def usage_rows(group: str, kind: str, *, across: bool = False, user_across: bool = False) -> tuple[Row, ...]:
    """A Usage names what it is about, or selects it until its controller has chosen.

    `across`: what is in use may be in another namespace; `user_across`: so may its user.
    """
    used = Reference(name="resourceRef.name", namespace="resourceRef.namespace" if across else "")
    user = Reference(name="resourceRef.name", namespace="resourceRef.namespace" if user_across else "")
    selector = Selected(reference=used, selector="resourceSelector.matchLabels", plain=True)
    return (
        Row(group, kind, Relation.PROTECTS, "spec.of", used),
        Row(group, kind, Relation.PROTECTS, "spec.of", selector),
        # Its user goes before it, so the user is said to need it: where both are composed, the controller waits for it.
        Row(group, kind, Relation.NEEDS, "spec.by", user, back=True),
        Row(group, kind, Relation.NEEDS, "spec.by", selector, back=True),
    )
