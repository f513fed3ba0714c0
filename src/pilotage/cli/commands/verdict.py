"""``pilotage verdict``: the comparison of a rollout or an Experiment, with an exit code for scripts."""

import datetime as dt
from typing import NamedTuple

import click

from pilotage.analysis.text import EXIT_CODES, lines
from pilotage.api.analysis import Verdict
from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.experiment import StoredExperiment
from pilotage.api.names import ENDPOINTS, EXPERIMENTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, plain_errors
from pilotage.cli.options import cluster_options, names_of, namespace_option, output_option
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.table import age
from pilotage.cli.output.text import columns, say, wrapped
from pilotage.kube import Client, Json, ObjectKey, Resource
from pilotage.rollout.requests import get
from pilotage.teardown.snapshot.world import Name

UNDECIDED = EXIT_CODES["Undecided"]
UNREADABLE = 3


class Judged(NamedTuple):
    """A rollout or an Experiment, and the comparisons of it."""

    name: Name
    subject: str
    """The thing that is compared, in words."""
    verdicts: list[Verdict]
    result: str
    """The result that decides; empty while there is none."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command: no data is never a pass."""
        return EXIT_CODES.get(self.result, UNREADABLE) if self.result else UNDECIDED


@click.command()
@click.argument("target", metavar="NAME|experiment/NAME", shell_complete=names_of("endpoint"))
@namespace_option
@cluster_options
@output_option("the endpoint or the Experiment")
@plain_errors
@asynchronous
async def verdict(target: str, namespace: str, cluster: ClusterChoice, output: str) -> int:
    """Print the verdict of a rollout or an Experiment, and what would decide it.

    \b
    pilotage verdict assistant -n chat
    pilotage verdict experiment/q8 -n chat

    The candidate is compared with the other side metric by metric; docs/verdict.md says how. Of an Experiment with
    several variants, the worst result counts.

    Exit codes: 0 Better or NoWorse, 1 Worse, 4 Undecided (also if there are no numbers yet), 5 Invalid, 2 bad usage,
    no such object or nothing that is compared, 3 the verdict could not be read.
    """
    resource, name = _target(target)
    async with cluster.session() as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        found = await _read(session.client, resource, key, cluster)
    if output != "text":
        print_report(output, _report(found), [found.name])
    else:
        say(*_page(found, dt.datetime.now(dt.UTC)))
    return found.exit_code


def _target(word: str) -> tuple[Resource, str]:
    kind, slash, name = word.partition("/")
    if not slash:
        return ENDPOINTS, word
    from pilotage.teardown.session.request import is_endpoint_kind

    if name and is_endpoint_kind(kind):
        return ENDPOINTS, name
    if name and kind.lower() in ("experiment", "experiments", f"experiment.{EXPERIMENTS.group}"):
        return EXPERIMENTS, name
    raise click.BadParameter(f"{word!r} is neither an endpoint nor an Experiment: write NAME, or experiment/NAME.")


async def _read(client: Client, resource: Resource, key: ObjectKey, cluster: ClusterChoice) -> Judged:
    """The comparisons of an object, as its status says them."""
    obj = await get(client, resource, key)
    name = Name(resource.group, resource.kind, key.namespace, key.name)
    if resource == EXPERIMENTS:
        status = StoredExperiment.of(obj).status
        each = [variant.verdict for variant in status.variants if variant.verdict is not None]
        result = status.verdict.result if status.verdict is not None else ""
        return Judged(name, f"experiment/{key.name}", each, result)
    endpoint = StoredEndpoint.of(obj)
    state = endpoint.status.rollout
    if state is None:
        others = [f"pilotage verdict experiment/{each.name} -n {key.namespace}" for each in endpoint.status.experiments]
        more = f" Its Experiments: {', '.join(map(cluster.complete, others))}" if others else ""
        raise BadTarget(f"{obj.ref} has had no rollout in steps, so there is nothing to compare.{more}")
    verdicts = [state.verdict] if state.verdict is not None else []
    return Judged(name, f"the rollout of {state.revision}", verdicts, verdicts[0].result if verdicts else "")


def _report(found: Judged) -> Json:
    """The comparisons for scripts."""
    return {
        "apiVersion": ENDPOINTS.api_version,
        "kind": "Verdict",
        "metadata": {"name": found.name.name, "namespace": found.name.namespace},
        "of": found.subject,
        "result": found.result or "Undecided",
        "verdicts": [each.written() for each in found.verdicts],
    }


def _page(found: Judged, now: dt.datetime) -> list[str]:
    if not found.verdicts:
        return [f"Undecided: {found.subject} has no measured numbers yet, or no analysis that compares them."]
    width = columns()
    page: list[str] = []
    for each in found.verdicts:
        told = [*lines(each), f"Numbers of {age(now, each.at)} ago."]
        page += [*([""] if page else []), *(part for line in told for part in _fitted(line, width))]
    return page


def _fitted(line: str, width: int | None) -> list[str]:
    """A sentence is wrapped; a line of the table is left as it is."""
    return [line] if width is None or line.startswith("  ") else wrapped(line, width)
