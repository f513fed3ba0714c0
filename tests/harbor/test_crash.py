"""A crash at any moment loses no acknowledged write, and tears no object."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def crash(folder, kills, writes, seed):
    command = [sys.executable, "-m", "tests.harbor.crashing", str(folder), str(kills), str(writes), str(seed)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=170)
    return json.loads(ran.stdout.splitlines()[-1])


def test_fifty_kills_during_ten_thousand_writes_lose_nothing(tmp_path):
    outcome = crash(tmp_path, kills=50, writes=12_000, seed=7)
    assert outcome["problems"] == []
    assert outcome["kills"] == 50
    assert outcome["writes"] >= 10_000
