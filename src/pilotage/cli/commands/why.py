"""``pilotage why``: why something does not go away, and what to do about it; with ``--fix``, one remedy at a time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, plain_errors
from pilotage.cli.options import (
    cluster_options,
    dump_option,
    names_of,
    namespace_option,
    need_words,
    output_option,
    with_endpoint_kind,
)
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.text import paint, say
from pilotage.cli.preload import import_meanwhile
from pilotage.teardown.session.reading import read_named, read_named_in_dump
from pilotage.teardown.session.relation_files import edges_nearby, related_graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pilotage.teardown.diagnosis.fix import FixResult, Proposal
    from pilotage.teardown.diagnosis.why.model import Explanation
    from pilotage.teardown.session import Session
    from pilotage.teardown.snapshot.world import Name, World

_MODULES = (
    "pilotage.teardown.snapshot.resolve",
    "pilotage.teardown.relations",
    "pilotage.teardown.diagnosis.why.explain",
)
FIX_EXIT_CODES = {"gone": 0, "going": 0, "refused": 1, "unknown": 3}


@click.command()
@click.argument("words", metavar="KIND/NAME", nargs=-1, shell_complete=names_of("endpoint"))
@namespace_option
@dump_option
@click.option(
    "--fix",
    "code",
    metavar="CODE",
    help="Do one of the remedies, after showing what it does and what may leak: replay-delete, redrive-foreground, "
    "force-delete-pod, strip-finalizer.",
)
@click.option("--finalizer", metavar="NAME", default="", help="The finalizer that --fix=strip-finalizer removes.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before --fix.")
@cluster_options
@output_option("each root cause; with --fix, the object that was changed")
@plain_errors
@asynchronous
async def why(
    words: tuple[str, ...],
    namespace: str,
    files: tuple[Path | Literal["-"], ...],
    code: str | None,
    finalizer: str,
    yes: bool,
    cluster: ClusterChoice,
    output: str,
) -> int:
    """Explain why an object is not deleted: the root cause, its evidence, and what to do, least destructive first.

    \b
    pilotage why namespace/shop
    pilotage why inferenceservice/chat -n shop
    pilotage why pvc/cache --dump dump.yaml
    pilotage why widget/a --fix=strip-finalizer --finalizer acme.io/cleanup

    Nothing is changed without --fix. A finalizer is removed only by its own name, from the object that was explained.

    Objects of Pilotage are explained also while they are not ready.

    Exit codes: 0 nothing is stuck, 1 stuck with a cause, 2 bad usage, 3 too little could be read to say. With --fix:
    0 it was done, 1 it was not, 3 whether it was done could not be read.
    """
    need_words(words)
    if not files:
        words = await with_endpoint_kind(cluster, words, namespace)
    if finalizer and not code:
        raise click.UsageError("--finalizer is an option of --fix=strip-finalizer.")
    if code:
        if files:
            raise BadTarget("A dump cannot be changed. Use --fix without --dump, on the cluster itself.")
        async with cluster.session(remembering=True, changes=True) as session:
            result = await _fix(session, words, namespace, code, finalizer, cluster, yes=yes)
        return _tell(result, cluster, output) if result else 1
    explanations = _from_dump(files, words, namespace) if files else await _live(cluster, words, namespace)
    from pilotage.teardown.diagnosis.why.render import exit_code, to_json

    if output != "text":
        told = [to_json(each, cluster.complete) for each in explanations]
        names = (name for each in explanations for name in _roots(each))
        print_report(output, told[0] if len(told) == 1 else told, names)
    else:
        say(*(line for i, each in enumerate(explanations) for line in (*([""] if i else []), *_lines(each, cluster))))
    codes = {exit_code(each) for each in explanations}
    return 1 if 1 in codes else max(codes)


def _from_dump(files: tuple[Path | Literal["-"], ...], words: tuple[str, ...], namespace: str) -> list[Explanation]:
    from pilotage.teardown.diagnosis.why.explain import explain

    seen = read_named_in_dump(files, words, namespace)
    graph = related_graph(seen.world)
    return [explain(seen.world, graph, item) for item in seen.items]


async def _live(cluster: ClusterChoice, words: tuple[str, ...], namespace: str) -> list[Explanation]:
    async with cluster.session(remembering=True) as session:
        import_meanwhile(_MODULES)
        from pilotage.catalogue.reading import FOR_FINALIZERS

        seen = await read_named(session, words, namespace, FOR_FINALIZERS)
        from pilotage.teardown.diagnosis.why.explain import explain
        from pilotage.teardown.snapshot.resolve import until_resolved

        def think(world: World) -> list[Explanation]:
            graph = edges_nearby(world)
            return [explain(world, graph, item) for item in seen.items]

        return await until_resolved(session.client, seen.world, think)


def _roots(explanation: Explanation) -> Iterator[Name]:
    """The objects that are root causes: not those of notes, nor where too little could be read."""
    from pilotage.teardown.diagnosis.why.codes import NOTES, UNCERTAIN
    from pilotage.teardown.snapshot.world import Name

    subjects = (root.subject for root in explanation.roots if root.code not in NOTES | UNCERTAIN)
    return (each if isinstance(each, Name) else each.name for each in subjects)


def _lines(explanation: Explanation, cluster: ClusterChoice) -> list[str]:
    from pilotage.teardown.diagnosis.why.render import ROOT_MARK, render

    first, *rest = render(explanation, cluster.complete)
    lines = [paint(first, bold=True)]
    for line in rest:
        if ROOT_MARK in line:
            line = paint(line, fg="red", bold=True)
        elif "LEAKS:" in line:
            line = paint(line, fg="yellow")
        lines.append(line)
    return lines


async def _fix(
    session: Session,
    words: tuple[str, ...],
    namespace: str,
    code: str,
    finalizer: str,
    cluster: ClusterChoice,
    *,
    yes: bool,
) -> FixResult | None:
    """Do one remedy, after asking; None if the answer was no."""
    from pilotage.catalogue.reading import FOR_FINALIZERS
    from pilotage.teardown.diagnosis.fix import FixRefused, fix, propose
    from pilotage.teardown.diagnosis.why.explain import explain
    from pilotage.teardown.snapshot.resolve import until_resolved

    seen = await read_named(session, words, namespace, FOR_FINALIZERS)
    if len(seen.items) != 1:
        raise BadTarget("--fix works on one object at a time. Name one.")
    (item,) = seen.items
    explanation = await until_resolved(
        session.client, seen.world, lambda world: explain(world, related_graph(world), item)
    )
    try:
        proposal = propose(seen.world, explanation, code, finalizer=finalizer)
        if _agreed(proposal, yes):
            return await fix(session.client, seen.world, explanation, code, finalizer=finalizer)
    except FixRefused as error:
        raise BadTarget(f"{error.problem} {error.advice} {cluster.complete(error.command)}".rstrip()) from error
    say("Nothing was done.", err=True)
    return None


def _agreed(proposal: Proposal, yes: bool) -> bool:
    """Show what would be done, and ask."""
    say(*proposal.describe(), err=True)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("This is not a terminal, so it cannot be confirmed here: add --yes.")
    return click.confirm("Continue?", default=False, err=True)


def _tell(result: FixResult, cluster: ClusterChoice, output: str) -> int:
    """Print what was done; returns the exit code."""
    advice = f"{result.advice} {cluster.complete(result.command)}".strip()
    if output != "text":
        told = {
            "fix": result.proposal.remedy.code,
            "subject": str(result.proposal.subject),
            "uid": result.proposal.subject.uid,
            "outcome": str(result.outcome),
            "text": result.said,
            "advice": advice,
            "changes": list(result.changes),
        }
        print_report(output, told, [result.proposal.subject.name])
    else:
        changes = (f"  {change}" for change in result.changes if change not in result.said)
        say(result.said, *changes, *filter(None, [advice]))
    return FIX_EXIT_CODES[result.outcome]
