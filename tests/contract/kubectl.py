"""The real kubectl as a case's hand: what it printed and how it ended are noted, up to ages and column widths."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.contract.server import Place, kubectl_binary

if TYPE_CHECKING:
    from tests.contract.kit import Kit

PARALLEL = 3

_AGE = re.compile(r"(?<![\w.\-/:])(?:\d+[dhms])+(?: ago)?(?=\s|\)|$)|<invalid>")
_GAP = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)|(?<=\S)\t(?=\S)")
_VERSION = re.compile(r'resourceVersion: "\d+"|"resourceVersion": "\d+"|(?<=Resource Version:)\s+\d+')
_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_LOG = re.compile(r"^[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a command."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl for one server, with a home and a cache of its own."""

    def __init__(self, place: Place) -> None:
        self._env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(place.cache),
            "KUBECACHEDIR": str(place.cache / "discovery"),
            "KUBECONFIG": str(place.kubeconfig),
            "GOGC": "off",  # it is gone before its garbage matters
        }
        self._room = asyncio.Semaphore(PARALLEL)

    async def run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
        """Run it to its end."""
        async with self._room:
            process = await asyncio.create_subprocess_exec(
                str(kubectl_binary()),
                *args,
                env={**self._env, **(env or {})},
                cwd=cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                out, err = await process.communicate(stdin.encode())
            except BaseException:
                process.kill()
                await process.wait()
                raise
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())


async def kubectl(kit: Kit, *args: str, stdin: str = "", shown: bool = True, env: dict[str, str] | None = None) -> Ran:
    """Run kubectl in the case's namespace, and note it unless it is just a preparation."""
    ran = await kit.server.kubectl.run("-n", kit.ns, *args, stdin=stdin, env=env)
    if shown:
        kit.steps.append(
            {
                "kubectl": kit.normal.text(" ".join(args)),
                "code": ran.code,
                "out": plain(kit, ran.out).splitlines(),
                "err": plain(kit, _LOG.sub("", ran.err)).splitlines(),
            }
        )
    return ran


def plain(kit: Kit, text: str) -> str:
    """Printed text without what differs from run to run."""
    return without_moment(kit.normal.text(text))


def aligned(text: str) -> str:
    """The same for a reader: columns keep their widths, and ages are those of something new."""
    return _TRAILING.sub("", _VERSION.sub("resourceVersion: RV", _AGE.sub("1s", text)))


def without_moment(text: str) -> str:
    """Text without ages, widths of columns and versions of objects."""
    text = _VERSION.sub("resourceVersion: RV", _AGE.sub("AGE", text))
    return _TRAILING.sub("", _GAP.sub("  ", text))
