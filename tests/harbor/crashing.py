"""Kills harbor again and again while it writes, and checks each time that it has kept the acknowledged writes.

A program of its own: ``python -m tests.harbor.crashing FOLDER KILLS WRITES SEED``. Each life is a fork that opens the
journal, checks what is there against what was acknowledged, and writes until SIGKILL comes. Its next write and
the answers go through a pipe to the parent, which outlives it. Prints a line of JSON with the result.
"""

import asyncio
import json
import os
import random
import signal
import sys
import traceback
import zlib
from pathlib import Path

from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.core import Core
from pilotage_harbor.storage.journal import SqliteJournal

PATH = "/api/v1/namespaces/default/configmaps"
NAMES = [f"map-{number}" for number in range(40)]


def call(method, path, body=None):
    raw = b"" if body is None else json.dumps(body).encode()
    return Call(method, path, {}, {"content-type": "application/json", "accept": "application/json"}, raw, LOOPBACK)


def content(number):
    """Data whose parts must fit together: a torn object would not."""
    text = "x" * (number * 37 % 3000)
    return {"number": str(number), "text": text, "sum": str(zlib.crc32(f"{number}{text}".encode()))}


async def live(folder, expected, first, seed, out):
    """One life. `expected` is what must be there, by name, and the write that was cut off, if there was one."""
    journal = SqliteJournal(Path(folder) / "harbor.sqlite")
    harbor = Harbor(Core(journal))
    await harbor.start()
    listed = json.loads((await harbor.handle(call("GET", PATH))).body)
    found = {item["metadata"]["name"]: item["data"] for item in listed["items"]}
    for name, data in found.items():
        if data != content(int(data["number"])):
            os.write(out, f"torn {name}\n".encode())
    problems = differences(found, *expected)
    os.write(
        out,
        (
            json.dumps({"problems": problems, "found": sorted((n, d["number"]) for n, d in found.items())}) + "\n"
        ).encode(),
    )
    rng = random.Random(seed)
    number = first
    while True:
        number += 1
        name = rng.choice(NAMES)
        operation = "delete" if rng.random() < 0.2 else "put" if name in found else "post"
        if operation == "delete" and name not in found:
            operation = "post"
        os.write(out, f"begin {operation} {name} {number}\n".encode())
        body = {"metadata": {"name": name}, "data": content(number)}
        path = PATH if operation == "post" else f"{PATH}/{name}"
        answer = await harbor.handle(
            call(
                {"post": "POST", "put": "PUT", "delete": "DELETE"}[operation],
                path,
                None if operation == "delete" else body,
            )
        )
        assert answer.status in (200, 201), answer.body
        if operation == "delete":
            del found[name]
        else:
            found[name] = body["data"]
        os.write(out, b"done\n")


def differences(found, acknowledged, in_doubt):
    """Differences from the acknowledged state; the one write in doubt may have happened or not."""
    problems = []
    for name in {*found, *acknowledged}:
        now, was = found.get(name), acknowledged.get(name)
        if now == was:
            continue
        if in_doubt is not None and in_doubt[1] == name:
            intended = None if in_doubt[0] == "delete" else content(in_doubt[2])
            if now == intended:
                continue
        problems.append(f"{name}: acknowledged {was and was['number']}, found {now and now['number']}")
    return problems


class Ledger:
    """Record over all lives: the acknowledged writes, the ones in doubt, the errors found."""

    def __init__(self):
        self.acknowledged, self.in_doubt = {}, None
        self.number = self.writes = self.life = 0
        self.problems = []

    def take(self, line):
        word, _, rest = line.strip().partition(" ")
        if word.startswith("{"):
            report = json.loads(line)
            self.problems += [f"life {self.life}: {problem}" for problem in report["problems"]]
            self.acknowledged = {name: content(int(value)) for name, value in report["found"]}
        elif word == "torn":
            self.problems.append(f"life {self.life}: {rest} is torn")
        elif word == "begin":
            operation, name, value = rest.split()
            self.in_doubt, self.number = (operation, name, int(value)), int(value)
        elif word == "done":
            operation, name, value = self.in_doubt
            if operation == "delete":
                del self.acknowledged[name]
            else:
                self.acknowledged[name] = content(value)
            self.in_doubt = None
            self.writes += 1


async def warm_up():
    """Load what the first write loads: once, before the forks, and not in every life."""
    harbor = Harbor(Core())
    await harbor.start()
    answer = await harbor.handle(call("POST", PATH, {"metadata": {"name": "first"}, "data": content(1)}))
    assert answer.status == 201, answer.body
    await harbor.stop()


def begin_life(folder, ledger, seed):
    reader, out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            asyncio.run(live(folder, (ledger.acknowledged, ledger.in_doubt), ledger.number, seed, out))
        except BaseException:  # noqa: BLE001 - it shall only end by being killed
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(out)
    ledger.in_doubt = None
    return child, os.fdopen(reader)


def main(folder, kills, writes, seed):
    rng = random.Random(seed)
    ledger = Ledger()
    asyncio.run(warm_up())
    for ledger.life in range(kills + 1):
        # The last life only checks.
        patience = ledger.writes + max(1, round(rng.expovariate(kills / writes))) if ledger.life < kills else 0
        child, lines = begin_life(folder, ledger, rng.random())
        killed = False
        with lines:
            for line in lines:  # those after the kill were said before it, and count
                ledger.take(line)
                if ledger.writes >= patience and not killed:
                    os.kill(child, signal.SIGKILL)
                    killed = True
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            ledger.problems.append(f"life {ledger.life}: it ended by itself")
            break
    outcome = {"writes": ledger.writes, "kills": kills, "problems": ledger.problems}
    print(json.dumps(outcome))  # noqa: T201 - that is its answer


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
