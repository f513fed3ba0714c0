"""A front end that is no command line: it plans, executes and resumes teardowns, and prints what came of it as JSON.

``python -m tests.teardown.front_end KUBECONFIG RECEIPT [KIND/NAME …]``: without names, it resumes the receipt.
"""

import asyncio
import datetime as dt
import json
import sys
from pathlib import Path

from pilotage.kube import Client, Discovery, load_config
from pilotage.teardown.engine.decision import Decision
from pilotage.teardown.engine.progress import Step
from pilotage.teardown.session import Session
from pilotage.teardown.session.execution import Execution
from pilotage.teardown.session.preparation import plan
from pilotage.teardown.session.request import TeardownRequest
from pilotage.teardown.session.resumption import resume

TIMEOUT = 3.0


class Heard:
    """An observer: what it was told."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.decisions = 0

    def step(self, step: Step) -> None:
        self.steps.append(step.what)

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        self.decisions += 1


async def run(kubeconfig: str, receipt: Path, words: tuple[str, ...]) -> dict[str, object]:
    config = load_config(kubeconfig=kubeconfig)
    async with Client.connect(config) as client:
        session = Session(client, Discovery(client), config.server)
        if words:
            request = TeardownRequest(words, namespace="default", timeout=TIMEOUT)
            prepared = await plan(session, request)
        else:
            prepared = (await resume(session, receipt, TIMEOUT)).prepared
        heard = Heard()
        result = await Execution(session, prepared, receipt=receipt).run(heard)
    return {
        "planned": [str(entry) for entry in prepared.ledger.going],
        "result": result.receipt.result,
        "complete": result.complete,
        "gone": result.gone,
        "blockers": [f"{wait.entry}: {wait.cause}" for wait in result.blockers],
        "heard": sorted(set(heard.steps)),
        "decisions": heard.decisions > 0,
        "command_line": sorted({"click", "pilotage.cli"} & set(sys.modules)),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run(sys.argv[1], Path(sys.argv[2]), tuple(sys.argv[3:])))))
