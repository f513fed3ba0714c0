"""``pilotage fetch``: bring one model to one path. What an init container runs, with the operator's own fetcher."""

import asyncio
import ipaddress
import sys
import time
from pathlib import Path

import click

from pilotage.cli.output.text import say
from pilotage.models import Access, PermanentError, Problem, SourceCredentials
from pilotage.models.access import Network
from pilotage.models.limits import BYTES_MAX, Limits
from pilotage.models.place import bring
from pilotage.models.source import parse_source

PERMANENT, TRANSIENT = 1, 75
"""Exit codes: it will not get better by itself; it may, so try again (EX_TEMPFAIL)."""
PROGRESS_SECONDS = 5.0


@click.command()
@click.argument("source")
@click.option("--to", "target", metavar="FILE", required=True, type=click.Path(path_type=Path), help="Where to put it.")
@click.option("--sha256", default="", metavar="HEX", help="What its checksum has to be.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["GGUF", "Safetensors", "Any"]),
    help="What it has to be. [default: what its name says]",
)
@click.option(
    "--credentials",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with a file for each entry of a Secret, as Kubernetes mounts it.",
)
@click.option(
    "--allow-root",
    "roots",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    envvar="PILOTAGE_FILE_ROOTS",
    help="file:// sources may be read below it.",
)
@click.option(
    "--allow-network",
    "networks",
    multiple=True,
    metavar="CIDR",
    type=ipaddress.ip_network,
    envvar="PILOTAGE_NETWORKS",
    help="Addresses that are not public may be connected to in it.",
)
@click.option(
    "--max-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    envvar="PILOTAGE_MODEL_BYTES_MAX",
    help="The largest file that is fetched. [default: 250 GB]",
)
@click.option("--allow-http", is_flag=True, envvar="PILOTAGE_PLAIN_HTTP", help="http:// may be used.")
def fetch(
    source: str,
    target: Path,
    sha256: str,
    kind: str | None,
    credentials: Path | None,
    roots: tuple[Path, ...],
    networks: tuple[Network, ...],
    max_bytes: int | None,
    allow_http: bool,
) -> None:
    """Bring a model to a path: checked, whole or not at all, and continued where an earlier attempt broke off.

    \b
    pilotage fetch hf://Qwen/Qwen3-0.6B-GGUF/qwen3-0.6b-q4_k_m.gguf --to /models/qwen.gguf
    pilotage fetch s3://weights/a.gguf --to /models/a.gguf --sha256 3f1c…

    A file that an earlier call has brought from the same source is left as it is. Buckets are read with the credentials
    of this environment where none are given.

    Exit codes: 0 it is there, 1 something has to be changed first, 2 bad usage, 75 try again later.
    """
    limits = Limits(bytes_max=max_bytes or BYTES_MAX)
    access = Access(roots=roots, networks=networks, plain_http=allow_http, ambient=True, limits=limits)
    try:
        asyncio.run(_fetch(source, target, sha256.lower(), kind or "", _read(credentials), access))
    except Problem as problem:
        say(f"error: {problem}", err=True)
        sys.exit(PERMANENT if isinstance(problem, PermanentError) else TRANSIENT)


async def _fetch(
    text: str, target: Path, sha256: str, kind: str, credentials: SourceCredentials, access: Access
) -> None:
    told = time.monotonic()

    def progress(done: int, total: int | None) -> None:
        nonlocal told
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            share = f" of {_size(total)} ({done * 100 // total} %)" if total else ""
            say(f"{_size(done)}{share}", err=True)

    brought = await bring(
        parse_source(text), target, access, sha256=sha256, kind=kind, credentials=credentials, progress=progress
    )
    seen = brought.format
    about = ", ".join(filter(None, (seen.kind, seen.architecture, seen.quantization)))
    how = "is there already" if brought.was_there else "fetched"
    say(f"{target}: {how}, {_size(brought.size)}, {about}, sha256 {brought.sha256}")


def _read(folder: Path | None) -> SourceCredentials:
    if folder is None:
        return SourceCredentials()
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    try:
        return SourceCredentials({path.name: path.read_text() for path in files})
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(
            f"an entry of it cannot be read as text ({type(error).__name__})", param_hint="--credentials"
        ) from None


def _size(number: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} byte{'' if number == 1 else 's'}"
