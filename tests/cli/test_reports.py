"""Reports for scripts: the same in JSON and YAML, and the names of what a plan takes."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.running import run

DUMP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop, uid: u1, creationTimestamp: "2026-11-01T10:00:00Z"}
"""


@pytest.mark.parametrize("command", [("why", "cm/a"), ("tree", "cm/a"), ("leaks",)], ids=lambda words: words[0])
def test_a_report_says_the_same_as_json_and_as_yaml(command: tuple[str, ...], tmp_path: Path):
    (tmp_path / "dump.yaml").write_text(DUMP)
    words: tuple[str | Path, ...] = (*command, "-n", "shop", "--dump", tmp_path)
    as_json, as_yaml = run(*words, "-o", "json"), run(*words, "-o", "yaml")
    assert as_json.code == as_yaml.code
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)
    assert as_yaml.out != as_json.out


def test_a_plan_can_be_printed_as_names(chat):
    chat.make("a")
    assert chat.run("plan", "se/a", "-o", "name").out == "servingendpoint.pilotage.dev/a\n"
    assert yaml.safe_load(chat.run("plan", "se/a", "-o", "yaml").out) == json.loads(
        chat.run("plan", "se/a", "-o", "json").out
    )
