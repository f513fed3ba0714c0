"""`python -m conformance`: run Kubernetes's own conformance specs on both servers, and print what came of them."""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from conformance import document
from conformance.results import Result, table, unexpected
from conformance.run import NoReport, list_specs, run
from conformance.servers import SERVERS, Failed
from conformance.specs import binary, chosen, short
from controlplane import NoControlPlane, StartError
from controlplane.build import build

SECONDS_MAX = 1800
_STARTED = time.monotonic()


def main() -> int:
    """The command."""
    args = _parse()
    runs: dict[str, dict[str, Result]] = {}
    try:
        if "kubernetes" in args.server:
            build(os.environ, say)
        e2e = binary(os.environ, say)
        specs = chosen(list_specs(e2e), args.only)
        if not specs:
            print(f"no spec matches {args.only!r}", file=sys.stderr)
            return 2
        logs = Path(tempfile.mkdtemp(prefix="pilotage-conformance-logs-"))
        for server in args.server:
            say(f"starting {server}; what its {len(specs)} specs print goes to {logs / server}.log")
            with SERVERS[server]() as running:
                log = logs / f"{server}.log"
                runs[server] = run(e2e, running.kubeconfig, specs, log, say, seconds_max=SECONDS_MAX)
                if unexpected({server: runs[server]}):
                    say(f"some of them fail; the logs of {server} stay in {running.keep_logs()}")
    except (Failed, NoControlPlane, NoReport, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    print(table(runs))
    if args.record:
        document.record(runs)
    failures = unexpected(runs)
    for name in failures:
        for server, results in runs.items():
            if name in results and not results[name].passed:
                print(f"\n{short(name)} fails on {server}:\n{results[name].failure}")
    if not failures:
        shutil.rmtree(logs)
    return 1 if failures else 0


def say(line: str) -> None:
    """Progress on stderr, so that stdout holds only the results."""
    print(f"{time.monotonic() - _STARTED:5.0f} s  {line}", file=sys.stderr, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--only", type=_regex, default="", metavar="REGEX", help="run the specs whose name matches")
    parser.add_argument("--server", action="append", choices=SERVERS, help="run on this one only")
    parser.add_argument("--record", action="store_true", help=f"put the table into {document.NAME}")
    args = parser.parse_args()
    args.server = args.server or list(SERVERS)
    return args


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from error
    return text


if __name__ == "__main__":
    sys.exit(main())
