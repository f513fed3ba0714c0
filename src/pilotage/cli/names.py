"""Names of objects from the cluster: those that complete a word on the command line, and endpoints named by one word.

It is imported when names are needed, and not before.
"""

import asyncio
import contextlib
import io
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from pilotage.api.names import ENDPOINTS, EXPERIMENTS, HOSTS, MODELS
from pilotage.cli.connection import ClusterChoice
from pilotage.kube import NAMESPACES, Absent, ApiError, ObjectKey, UnknownKind
from pilotage.kube.names import UnusableName
from pilotage.teardown.planning.arguments import TargetError

COMPLETION_SECONDS_MAX = 2.0
"""Time for the names of a completion. Then there are none: nobody waits longer for a TAB."""
KINDS = {
    "endpoint": ENDPOINTS,
    "experiment": EXPERIMENTS,
    "model": MODELS,
    "host": HOSTS,
    "namespace": NAMESPACES,
}


def complete(context: click.Context, kind: str, start: str) -> list[CompletionItem]:
    """The names of a kind that begin like this, of the cluster and namespace that the words before choose.

    Whatever goes wrong, there are none, and nothing is said: a completion is no place for errors.
    """
    if kind == "model" and (Path(start).is_absolute() or start.startswith((".", "~"))):
        return [CompletionItem(start, type="file")]
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        names = asyncio.run(asyncio.wait_for(_names(context, kind), COMPLETION_SECONDS_MAX))
        return [CompletionItem(name) for name in names if name.startswith(start)]
    return []


async def _names(context: click.Context, kind: str) -> list[str]:
    resource, given = KINDS[kind], context.params
    cluster = ClusterChoice(given.get("kubeconfig"), given.get("context"))
    async with cluster.session() as session:
        place = (given.get("namespace") or session.client.namespace) if resource.namespaced else ""
        listed = await session.client.list(resource, place, metadata_only=True)
        return sorted(obj.meta.name for obj in listed.items)


async def is_endpoint(cluster: ClusterChoice, word: str, namespace: str) -> bool:
    """Whether a word is no kind, but the name of an endpoint. TargetError where it is neither.

    If that cannot be read, it is not: the command itself will say what is wrong.
    """
    async with cluster.session() as session:
        place = namespace or session.client.namespace
        with contextlib.suppress(UnknownKind):
            await session.discovery.find(word)
            return False
        try:
            await session.client.get(ENDPOINTS, ObjectKey(place, word), metadata_only=True)
        except Absent:
            raise TargetError(
                f"{word!r} is neither a kind nor an endpoint in namespace {place}: write KIND/NAME, such as "
                f"deployment/{word}, or choose another namespace with -n."
            ) from None
        except (ApiError, UnusableName):
            return False
    return True
