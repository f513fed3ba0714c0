"""The same operator on Pilotage and on kopf: `python -m bench.operators.NAME_operator KUBECONFIG NAMESPACE POLLS`.

It puts a finalizer on every Widget, and once the world is ready, which it asks `POLLS` times before it is, copies
`spec.size` to the status; and again when the size changes. It takes the finalizer away when the Widget is deleted.

`NAME_endpoints` are the operators of ServingEndpoints: see `bench.endpoints`.
"""

GROUP, VERSION, PLURAL, KIND = "bench.pilotage.dev", "v1", "widgets", "Widget"

POLL_SECONDS = 1.0
FETCH_IMAGE = "registry.example/pilotage:1.0"


class World:
    """Something outside that is ready for a name when it has been asked often enough."""

    def __init__(self, polls: int) -> None:
        self._polls = polls
        self._asked: dict[str, int] = {}

    def ready_for(self, name: str) -> bool:
        """Ask."""
        asked = self._asked[name] = self._asked.get(name, -1) + 1
        return asked >= self._polls
