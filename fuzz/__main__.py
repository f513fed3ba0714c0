"""`python -m fuzz [NAME …] [--seconds N] [--corpus FOLDER]`: run targets under atheris, two at a time.

Prints a line for each target with how many inputs were tried, and for each input that broke a contract its bytes, in
the form in which `tests/test_fuzz.py` keeps them. The exit code is 1 if there was one. The corpus is kept in
`.fuzz/NAME`: the next run goes on from there.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 1200
INPUT_SECONDS_MAX = 5
"""One input that takes longer than this is a finding."""
MEMORY_MIB_MAX = 2048
AT_A_TIME = 2
_INSIDE = "inside"
"""The first argument of a process that fuzzes one target."""
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_SLOWEST = re.compile(r"stat::slowest_unit_time_sec:\s+(\d+)")
_COVERED = re.compile(r" cov: (\d+)")


def main() -> int:
    """Run what was asked for; returns the exit code."""
    if sys.argv[1:2] == [_INSIDE]:
        _fuzz(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
        return 0
    from fuzz.targets import TARGETS  # only here: inside, it is imported with instruments

    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(TARGETS)}; all unless given")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each target (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, default=Path(".fuzz"), help="where inputs are kept")
    given = parser.parse_args()
    if unknown := set(given.names) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    names = given.names or [*TARGETS]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        broken = sum(pool.map(lambda name: _run(name, given.seconds, given.corpus), names))
    print(f"{len(names) - broken} passed, {broken} failed")
    return 1 if broken else 0


def _run(name: str, seconds: int, corpus: Path) -> bool:
    """Fuzz one target in a process of its own; returns whether a contract was broken."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fuzz", _INSIDE, name, str(seconds), str(corpus.resolve())]
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            timeout=seconds + 300,
            env={**os.environ, "TMPDIR": folder},
        )
        output = (done.stdout + done.stderr).decode(errors="replace")
        findings = sorted(Path(folder).glob("finding-*"))
        tried, slowest, covered = (_number(pattern, output) for pattern in (_EXECUTED, _SLOWEST, _COVERED))
        verdict = "broken" if findings or done.returncode else "held"
        print(f"{name:10} {verdict}: {tried} inputs, {covered} branches covered, slowest {slowest} s", flush=True)
        for finding in findings:
            print(f"  {finding.name}: {finding.read_bytes()!r}")
        if verdict == "broken":
            print("\n".join(f"  {line}" for line in _cause(output)), flush=True)
        return verdict == "broken"


def _number(pattern: re.Pattern[str], output: str) -> str:
    found = pattern.findall(output)
    return found[-1] if found else "?"


def _cause(output: str) -> list[str]:
    """The part of the fuzzer's report that a person needs: the traceback, else its end."""
    _, found, rest = output.partition("=== Uncaught Python exception: ===")
    return (rest if found else output[-2000:]).strip().splitlines()[:12]


def _fuzz(name: str, seconds: int, corpus: Path) -> None:
    """Feed one target until the time is over or a contract breaks. Ends the process."""
    import atheris

    with atheris.instrument_imports(include=["pilotage"]):
        from fuzz import targets
    target = targets.TARGETS[name]
    folder = Path(tempfile.mkdtemp())
    targets.use(folder)
    kept = corpus / name
    kept.mkdir(parents=True, exist_ok=True)
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, seed in enumerate(target.seeds):
        (seeds / str(number)).write_bytes(seed)
    limits = [f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS_MAX}", f"-rss_limit_mb={MEMORY_MIB_MAX}"]
    shape = [f"-max_len={target.bytes_max}", f"-artifact_prefix={tempfile.gettempdir()}/finding-"]
    atheris.Setup([sys.argv[0], str(kept), str(seeds), *limits, *shape, "-print_final_stats=1"], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
