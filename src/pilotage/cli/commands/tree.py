"""``pilotage tree``: what an object is made of, and what it has to do with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, dump_option, namespace_option, need_words, output_option
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.text import paint, say
from pilotage.cli.preload import import_meanwhile
from pilotage.teardown.session.reading import read_named, read_named_in_dump
from pilotage.teardown.session.relation_files import edges_nearby, related_graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pilotage.teardown.diagnosis.tree import Node, Tree
    from pilotage.teardown.snapshot.world import Name, World

_MODULES = ("pilotage.teardown.snapshot.resolve", "pilotage.teardown.relations", "pilotage.teardown.diagnosis.tree")


@click.command()
@click.argument("words", metavar="KIND/NAME", nargs=-1)
@namespace_option
@dump_option
@cluster_options
@output_option("each object in the tree that exists")
@plain_errors
@asynchronous
async def tree(
    words: tuple[str, ...], namespace: str, files: tuple[Path | Literal["-"], ...], cluster: ClusterChoice, output: str
) -> None:
    """Show the parts of an object and its references, with the state of each.

    \b
    pilotage tree deployment/web -n shop
    pilotage tree namespace/shop
    pilotage tree inferenceservice/chat --dump dump.yaml

    The objects that it owns come first, then its owners, the objects that refer to it, and those it refers to.

    Exit codes: 0 shown, 2 bad usage or no such object, 3 the API could not be read.
    """
    need_words(words)
    trees = _from_dump(files, words, namespace) if files else await _live(cluster, words, namespace)
    from pilotage.teardown.diagnosis.tree import render, to_json

    if output != "text":
        told = [to_json(each) for each in trees]
        names = (name for each in trees for name in _names(each.root))
        print_report(output, told[0] if len(told) == 1 else told, names)
        return
    for i, each in enumerate(trees):
        first, *rest = render(each)
        say(*([""] if i else []), paint(first, bold=True), *map(_coloured, rest))


def _names(node: Node) -> Iterator[Name]:
    """The objects of a tree that exist, from the top."""
    if node.item is not None:
        yield node.item.name
    for each in node.nodes:
        yield from _names(each)


def _from_dump(files: tuple[Path | Literal["-"], ...], words: tuple[str, ...], namespace: str) -> list[Tree]:
    from pilotage.teardown.diagnosis.tree import tree as make_tree

    seen = read_named_in_dump(files, words, namespace)
    graph = related_graph(seen.world)
    return [make_tree(seen.world, graph, item) for item in seen.items]


async def _live(cluster: ClusterChoice, words: tuple[str, ...], namespace: str) -> list[Tree]:
    async with cluster.session(remembering=True) as session:
        import_meanwhile(_MODULES)
        seen = await read_named(session, words, namespace)
        from pilotage.teardown.diagnosis.tree import tree as make_tree
        from pilotage.teardown.snapshot.resolve import until_resolved

        def think(world: World) -> list[Tree]:
            graph = edges_nearby(world)
            return [make_tree(world, graph, world.get(item.uid) or item) for item in seen.items]

        return await until_resolved(session.client, seen.world, think)


def _coloured(line: str) -> str:
    if "terminating" in line:
        return paint(line, fg="yellow")
    return paint(line, fg="red") if "  not there" in line or "  unknown: " in line else line
