"""``pilotage receipt verify``: whether what a receipt says still holds."""

import json
from pathlib import Path
from shlex import quote

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, output_option
from pilotage.cli.output.text import paint, say
from pilotage.teardown.engine.receipt import Receipt, load
from pilotage.teardown.engine.verify import Verification
from pilotage.teardown.engine.verify import verify as verify_receipt
from pilotage.teardown.planning.ledger import Entry

EXIT_CODES = {"holds": 0, "does not hold": 1, "unknown": 3}
SHOWN_MAX = 20


@click.group()
def receipt() -> None:
    """Check the receipts that `pilotage delete` writes."""


@receipt.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@cluster_options
@output_option
@plain_errors
@asynchronous
async def verify(file: Path, cluster: ClusterChoice, output: str) -> int:
    """Read the cluster again, and say whether a receipt still holds.

    \b
    pilotage receipt verify web-20261115-213012.json

    Each object is looked for by its uid: another one of the same name is another object, and is mentioned.

    Exit codes: 0 it holds, 1 it does not, 2 bad usage, 3 too little could be read to say.
    """
    loaded = load(file)
    async with cluster.session() as session:
        verification = await verify_receipt(session.client, loaded, server=session.server)
    if output == "json":
        click.echo(json.dumps(verification.to_json(), indent=2))
    else:
        say(*_lines(file, loaded, verification, cluster))
    return EXIT_CODES[verification.verdict]


def _lines(file: Path, loaded: Receipt, found: Verification, cluster: ClusterChoice) -> list[str]:
    going = len(loaded.ledger.going)
    counts = f"{len(found.gone)} of {going} gone by uid, {len(found.kept)} of {len(loaded.ledger.kept)} kept"
    colour = {"holds": "green", "does not hold": "red", "unknown": "yellow"}[found.verdict]
    verdict = {
        "holds": "The receipt holds",
        "does not hold": "The receipt does NOT hold",
        "unknown": "Whether the receipt holds cannot be said",
    }[found.verdict]
    lines = [f"{paint(verdict, fg=colour, bold=True)}: {counts}."]
    if found.incomplete:
        resume = cluster.complete(f"pilotage delete --resume {quote(str(file))}")
        lines.append(f"It is incomplete: {found.incomplete}. Resume with: {resume}")
    if found.elsewhere:
        lines.append(f"Is this the right cluster? It says that {found.elsewhere}. Choose with --context.")
    lines += _listed("There again, or still", found.back)
    lines += _listed("To be kept, and not there any more", found.lost)
    lines += _unread(found)
    lines += _block(
        "Another object has the name by now", [f"{name} (uid {uid})" for name, uid in found.successors.items()]
    )
    return lines


def _listed(title: str, entries: tuple[Entry, ...]) -> list[str]:
    return _block(title, [f"{entry} (uid {entry.uid})" for entry in entries])


def _unread(found: Verification) -> list[str]:
    """A server that does not answer does so for all objects: the reason is printed once."""
    reasons = set(found.unread.values())
    if len(reasons) == 1 and len(found.unread) > 1:
        return [f"{len(found.unread)} objects could not be read: {reasons.pop()}"]
    return _block("Could not be read", [f"{name}: {why}" for name, why in found.unread.items()])


def _block(title: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    more = [f"  … and {len(rows) - SHOWN_MAX} more"] if len(rows) > SHOWN_MAX else []
    return [f"{title}:", *(f"  {row}" for row in rows[:SHOWN_MAX]), *more]
