"""One run of one client: see the package."""

import importlib
import json
import sys

from bench.meter import Meter, end_with_parent
from bench.peers import CLIENTS, Job


def main() -> None:
    client, task, job = sys.argv[1:]
    assert client in CLIENTS
    end_with_parent()
    module = importlib.import_module(f"bench.peers.{client}_peer")
    meter = Meter()
    getattr(module, task)(Job(**json.loads(job)), meter)
    meter.report()


main()
