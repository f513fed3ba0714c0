"""The facts about Kubernetes that a teardown rests on and an API server decides. Each has at least one case.

The numbers are those under which the project keeps its facts; the gaps are facts that other parts decide.
"""

from __future__ import annotations

FACTS: dict[int, str] = {
    1: "A delete of an object with finalizers only marks it. From then on finalizers can be removed, not added, and "
    "nothing takes the mark away.",
    2: "Removing the last finalizer is an update: it is validated, and UPDATE webhooks may refuse it.",
    3: "Only Pods have a grace period, which can only shrink. Other kinds get the present moment and a grace of 0.",
    4: "Foreground and orphan are finalizers, and a second delete with another policy rewrites them.",
    5: "A Job that is deleted without a policy orphans its pods; a StatefulSet keeps its claims.",
    6: "A precondition on uid or resourceVersion that does not hold is a 409, as is a patch with an old version.",
    7: "A name that is being deleted is taken (409), and a namespace that is being deleted takes nothing new (403).",
    8: "Absence is a 404 for the object by name; a kind that is not served is another 404, and proves nothing.",
    9: "Any live owner keeps an object. A reference with another uid than the owner's dangles.",
    10: "An owner in another namespace counts as absent. A cluster-scoped object with an owner in a namespace stays.",
    11: "A foreground delete waits for those dependents that block it, and for no others.",
    12: "A foreground delete takes the dependents at once, whatever else holds their owner.",
    13: "A DELETE webhook that refuses keeps the object.",
    14: "A namespace that goes deletes its pods first, and nothing else while one is left.",
    15: "The conditions of a namespace that goes say what remains.",
    16: "A definition that goes takes its objects without asking DELETE webhooks, but waits for their finalizers.",
    18: "The conditions of an endpoint are stored as given; the family of a slice's addresses does not change.",
    19: "A slice belongs to a Service by a label alone.",
    20: "Budgets guard evictions, and only them.",
    23: "A Pod deleted by force is gone at once, whatever its node does.",
    25: "An Ingress is stored without a status of its own.",
}
