"""``pilotage receipt``: what a receipt says, and whether it still holds."""

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, namespace_option, output_option
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.text import paint, say
from pilotage.teardown.engine.receipt import ObjectRecord, Receipt, load
from pilotage.teardown.engine.verify import Verification
from pilotage.teardown.engine.verify import verify as verify_receipt
from pilotage.teardown.planning.ledger import Entry
from pilotage.teardown.session.reading import cluster_uid
from pilotage.teardown.session.receipt_files import find_receipt, read_record, record_named

EXIT_CODES = {"holds": 0, "does not hold": 1, "unknown": 3}
SHOWN_MAX = 20


@click.group()
def receipt() -> None:
    """Show and check the receipts that `pilotage delete` and the operator write."""


@receipt.command()
@click.argument("word", metavar="FILE|td/NAME")
@namespace_option
@cluster_options
@output_option("each object of the receipt")
@plain_errors
@asynchronous
async def show(word: str, namespace: str, cluster: ClusterChoice, output: str) -> None:
    """Show what a receipt says: what went, when and by which proof, what was kept, and what is left.

    \b
    pilotage receipt show web-20261115-213012.json
    pilotage receipt show td/assistant-x2x9k -n chat

    FILE is a path, or a name in the folder of receipts; td/NAME is a Teardown in the cluster.

    Exit codes: 0 shown, 2 bad usage or no receipt, 3 the API could not be read.
    """
    if name := record_named(word):
        async with cluster.session() as session:
            found = await read_record(session, name, namespace)
    else:
        found = load(find_receipt(Path(word)))
    if output != "text":
        print_report(output, found, (entry.full_name for entry in found.ledger.entries))
    else:
        again = f"pilotage receipt verify {quote(word)}" + (f" -n {quote(namespace)}" if name and namespace else "")
        say(*_told(found), "", f"Verify it with: {cluster.complete(again)}")


@receipt.command()
@click.argument("word", metavar="FILE|td/NAME")
@namespace_option
@cluster_options
@output_option("each object that contradicts the receipt")
@plain_errors
@asynchronous
async def verify(word: str, namespace: str, cluster: ClusterChoice, output: str) -> int:
    """Read the cluster again, and say whether a receipt still holds.

    \b
    pilotage receipt verify web-20261115-213012.json
    pilotage receipt verify td/assistant-x2x9k -n chat

    Each object is looked for by its uid: another one of the same name is another object, and is mentioned. FILE is a
    path, or a name in the folder of receipts; td/NAME is a Teardown in the cluster.

    Exit codes: 0 it holds, 1 it does not, 2 bad usage, 3 too little could be read to say.
    """
    name = record_named(word)
    loaded = None if name else load(find_receipt(Path(word)))
    async with cluster.session() as session:
        receipt = loaded or await read_record(session, name, namespace)
        uid = await cluster_uid(session)
        verification = await verify_receipt(session.client, receipt, server=session.server, cluster=uid)
    if output != "text":
        wrong = (*verification.back, *verification.lost)
        print_report(output, verification.to_json(), (entry.full_name for entry in wrong))
    else:
        say(*_lines(word, receipt, verification, cluster))
    return EXIT_CODES[verification.verdict]


def _told(receipt: Receipt) -> Iterator[str]:
    """All that a receipt says, as a person reads it."""
    yield f"{', '.join(receipt.targets)}: {receipt.result}, {receipt.count('gone')} gone, {receipt.count('kept')} kept"
    yield f"started  {receipt.started}" + (f", ended {receipt.ended}" if receipt.ended else "")
    yield f"cluster  {receipt.cluster or 'unknown'} at {receipt.server or 'an unknown address'}"
    phase = ""
    for record in sorted(receipt.objects, key=lambda record: record.state == "kept"):
        heading = "kept" if record.state == "kept" else record.phase
        yield from ("", paint(heading, bold=True)) if heading != phase else ()
        phase = heading
        yield f"  {record}  {_history(record)}"
        yield from (f"    {line}" for line in _proof(record))
    if not receipt.objects:
        yield from ("", "Planned", *(f"  {entry}  ({entry.reason})" for entry in receipt.ledger.going))
    yield from _titled("References left", receipt.references)
    yield from _titled("Notes", receipt.notes)


def _history(record: ObjectRecord) -> str:
    times = [f"delete sent {record.asked}" if record.asked else "", f"gone {record.gone}" if record.gone else ""]
    said = ", ".join(filter(None, times)) or record.state
    return f"{said}  ({record.found}; uid {record.uid})"


def _proof(record: ObjectRecord) -> Iterator[str]:
    if record.proof is not None:
        yield f"proven by {record.proof.request} at {record.proof.at}"
    if record.unverified:
        yield f"not verified: {record.unverified}"
    if record.state not in ("gone", "kept"):
        yield f"{record.state}{': ' if record.waits else ''}{record.waits}"


def _titled(title: str, lines: tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield from ("", paint(title, bold=True), *(f"  {line}" for line in lines))


def _lines(word: str, loaded: Receipt, found: Verification, cluster: ClusterChoice) -> list[str]:
    going = len(loaded.ledger.going)
    counts = f"{len(found.gone)} of {going} gone by uid, {len(found.kept)} of {len(loaded.ledger.kept)} kept"
    colour = {"holds": "green", "does not hold": "red", "unknown": "yellow"}[found.verdict]
    verdict = {
        "holds": "The receipt holds",
        "does not hold": "The receipt does NOT hold",
        "unknown": "Whether the receipt holds cannot be said",
    }[found.verdict]
    lines = [f"{paint(verdict, fg=colour, bold=True)}: {counts}."]
    if found.contradiction:
        lines.append(f"It contradicts itself: {found.contradiction}. It was changed, or is not from Pilotage.")
    if found.incomplete:
        resume = cluster.complete(f"pilotage delete --resume {quote(word)}")
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
