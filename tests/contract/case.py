"""A case: some requests in a namespace of its own, whose answers are compared. A theme: the cases of one module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.contract.kit import Kit

Run = Callable[["Kit"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """`facts` are the numbers of the facts about Kubernetes that it pins, as docs/harbor-contract.md lists them."""

    id: str
    run: Run
    facts: tuple[int, ...] = ()
    managed: bool = False
    """Whether metadata.managedFields is compared. It is large, so only where it matters."""
    alone: bool = False
    """Whether it sees what others make in the whole cluster: it then runs before all others, with none beside it."""

    @property
    def theme(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def namespace(self) -> str:
        """The namespace that is the case's own. The same on every server, so that answers can be compared."""
        return self.id.replace("/", "-")[:60].rstrip("-")


_cases: dict[str, Case] = {}
_namespaces: set[str] = set()


def registered() -> dict[str, Case]:
    """All cases that were defined so far."""
    return _cases


class Theme:
    """Registry of a module's cases."""

    def __init__(self, name: str) -> None:
        self.name = name

    def case(self, *, facts: Sequence[int] = (), managed: bool = False, alone: bool = False) -> Callable[[Run], Run]:
        """Register a function, under its name."""

        def register(run: Run) -> Run:
            self.add(run.__name__, run, facts=facts, managed=managed, alone=alone)
            return run

        return register

    def creates(self, name: str, resource: str, body: Any, *, facts: Sequence[int] = (), **query: Any) -> None:
        """Register a case of one create, be it taken or refused."""

        async def run(kit: Kit) -> None:
            await kit.create(resource, body, **query)

        self.add(name, run, facts=facts)

    def asks(
        self, name: str, method: str, target: str, body: Any = None, *, facts: Sequence[int] = (), **how: Any
    ) -> None:
        """Register a case of one request; `{ns}` in its target is replaced by the namespace."""

        async def run(kit: Kit) -> None:
            await kit.send(method, target.replace("{ns}", kit.ns), body, **how)

        self.add(name, run, facts=facts)

    def add(
        self, name: str, run: Run, *, facts: Sequence[int] = (), managed: bool = False, alone: bool = False
    ) -> None:
        slug = name.strip("_").replace("_", "-").replace(" ", "-").lower()
        case = Case(f"{self.name}/{slug}", run, tuple(facts), managed, alone)
        if case.id in _cases:
            raise ValueError(f"there are two cases {case.id}")
        if case.namespace in _namespaces:
            raise ValueError(f"the namespace of {case.id} is another case's, too: shorten its name")
        _cases[case.id] = case
        _namespaces.add(case.namespace)
