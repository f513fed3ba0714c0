"""Plain YAML: what is read without a library is what the library reads; all else is left to it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import load_config
from pilotage.kube.plain_yaml import parse_plain

KUBECTL = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    insecure-skip-tls-verify: false
    server: https://127.0.0.1:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    namespace: shop
    user: kubernetes-admin
  name: kubernetes-admin@kubernetes
current-context: kubernetes-admin@kubernetes
kind: Config
preferences: {}
users:
- name: kubernetes-admin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - get-token
      - --cluster
      command: aws
      env: null
      interactiveMode: IfAvailable
"""


def test_a_kubeconfig_as_kubectl_writes_it_is_plain():
    plain = KUBECTL.replace("      - --cluster\n", "").replace("      env: null\n", "")
    assert parse_plain(plain.encode()) == yaml.safe_load(plain)


PLAIN = (
    "clusters:\n- cluster:\n    server: https://example:6443\n  name: a\n"
    "contexts:\n- context:\n    cluster: a\n    user: b\n  name: c\n"
    "current-context: c\nusers:\n- name: b\n  user:\n    token: abc\n"
)


@pytest.mark.parametrize("text", [PLAIN, json.dumps(yaml.safe_load(PLAIN), indent=1)])
def test_such_a_kubeconfig_needs_no_yaml_library(tmp_path, text):
    """It takes longer to import than a request takes."""
    file = tmp_path / "config"
    file.write_text(text)
    code = f"import sys; from pilotage.kube import load_config; load_config(kubeconfig={str(file)!r})"
    done = subprocess.run([sys.executable, "-c", f"{code}; sys.exit('yaml' in sys.modules)"], check=False)
    assert done.returncode == 0
    assert load_config(kubeconfig=str(file)).server == "https://example:6443"


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "a: 1e3",
        "a: ~",
        "a: null",
        "a: yes",
        "a: 2026-01-01",
        "a: b c",
        "a: b # c",
        "# c\na: b",
        "a: |\n  b",
        "a: &x b",
        "a: *x",
        "a: !!str b",
        "a: 'b'",
        'a: "b\\n"',
        "a: {b: c}",
        "a: [b]",
        "a:\n b: c\n  d: e",
        "a: b\n c: d",
        "a: b\na: c",
        "a:\n- b\n  c: d",
        "- a",
        "---\na: b",
        "on: a",
        "<<: a",
        "a:\tb",
        "a: b:",
        "a: é",
        "",
    ],
)
def test_what_could_mean_something_else_is_left_to_the_library(text):
    assert parse_plain(text.encode()) is None


WORDS = st.sampled_from(
    [
        "a", "b-c", "https://x:1", "LS0t+/==", "true", "false", "yes", "null", '"quoted"', '"1"', "{}", "[]", "1",
        "1.5", "a:", ":a", "- a", "-", "'x'", "|", "#", "x#y", "a b", "*a", "&a", "@a", "~", "", "=", "/p", "a=b", "?",
        "0x1",
    ]
)  # fmt: skip
KEYS = st.sampled_from(["a", "b", "c-d", "on", "null", "x.y", "1", "?", "<<"])
LINES = st.builds(
    lambda indent, dash, key, value: f"{' ' * indent}{dash}{key}{value}",
    st.integers(0, 6),
    st.sampled_from(["", "- ", "-", "-  "]),
    st.one_of(KEYS.map(lambda key: f"{key}:"), st.just("")),
    st.one_of(WORDS.map(lambda word: f" {word}"), WORDS, st.just("")),
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_what_is_read_at_all_is_read_as_the_library_does(text):
    plain = parse_plain(text.encode())
    if plain is not None:
        assert plain == yaml.safe_load(text)
