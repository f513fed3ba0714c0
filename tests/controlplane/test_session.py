"""Control plane of a test run: each test here is a run of pytest of its own, with our conftest."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from controlplane import Cluster
from controlplane.access import wait_for
from controlplane.background import REPOSITORY
from tests.controlplane.fake_go import FakeGo
from tests.controlplane.leftovers import interruptible, processes_of, send, wait_until_nothing_is_left

PLAIN_AND_CLUSTER = """
def test_with_cluster(namespace):
    pass

def test_plain(tmp_path):
    pass
"""


@contextmanager
def session(
    folder: Path, tests: str, env: Mapping[str, str | None], *options: str
) -> Iterator["subprocess.Popen[str]"]:
    """A run of pytest over the given tests; a variable that is None is unset. What it leaves is in the folder."""
    (folder / "test_it.py").write_text(tests)
    plugins = [part for name in ("tests.conftest", "no:cacheprovider", "no:hypothesispytest") for part in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-v", *plugins, *options]
    command += [f"--config-file={REPOSITORY / 'pyproject.toml'}", f"--rootdir={folder}", str(folder / "test_it.py")]
    ours: dict[str, str | None] = {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder)}
    merged = {**os.environ, **ours, "CI": None, "PILOTAGE_TEST_KUBECONFIG": None, **env}
    with subprocess.Popen(
        command,
        env={key: value for key, value in merged.items() if value is not None},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(folder: Path, tests: str, env: Mapping[str, str | None], *options: str) -> tuple[int, str]:
    """The exit code and the output of such a run."""
    with session(folder, tests, env, *options) as process:
        output, _ = process.communicate()
        return process.returncode, output


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str | None]:
    """The environment of a machine with nothing on it."""
    return {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": None}


def test_without_go_and_assets_one_line_says_how_to_get_it(tmp_path: Path, bare: dict[str, str | None]) -> None:
    more = PLAIN_AND_CLUSTER + "\ndef test_with_own_cluster(own_cluster): pass\n"
    code, output = run(tmp_path, more, bare)
    assert code == 0, output
    assert "1 passed, 2 skipped" in output
    line = output.splitlines()[-1]
    assert line.startswith("skipped 2: ")
    assert "install Go and run `make kube`" in line


FIELD = """
import pytest

def test_pushes(registry_program): pass

def test_pulls(registry_program): pass

def test_mounts(): pytest.skip("needs the right to mount")

def test_plain(): pass
"""


@pytest.mark.parametrize("remote", [None, "/dev/null"])
def test_programs_that_were_not_built_are_named_in_one_line_at_the_end(tmp_path: Path, remote: str | None) -> None:
    """Also where the cluster is the user's own: they are built outside of any test, or not at all."""
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PILOTAGE_TEST_KUBECONFIG": remote}
    code, output = run(tmp_path, FIELD, env)
    assert code == 0, output
    assert "1 passed, 3 skipped" in output
    assert output.splitlines()[-1] == "skipped 2: need registry: make field; 1: needs the right to mount"
    assert "SKIPPED [" not in output


def test_under_ci_nothing_is_skipped_for_a_program_that_is_unavailable(
    tmp_path: Path, bare: dict[str, str | None]
) -> None:
    code, output = run(tmp_path, FIELD, {**bare, "CI": "true"})
    assert code == 1
    assert "1 passed, 1 skipped, 2 errors" in output
    assert output.count("install Go") == 4  # for each test, once in the report and once in the summary


def test_without_go_and_assets_a_run_under_ci_fails(tmp_path: Path, bare: dict[str, str | None]) -> None:
    code, output = run(tmp_path, PLAIN_AND_CLUSTER, {**bare, "CI": "true"})
    assert code == 1
    assert "1 passed, 1 error" in output
    assert "install Go and run `make kube`" in output


def test_wrong_assets_are_a_failure(tmp_path: Path, bare: dict[str, str | None]) -> None:
    code, output = run(tmp_path, PLAIN_AND_CLUSTER, {**bare, "KUBEBUILDER_ASSETS": str(tmp_path)})
    assert code == 1
    assert f"KUBEBUILDER_ASSETS={tmp_path} has no etcd" in output


def test_tests_without_a_cluster_run_while_it_is_built_and_no_test_pays_for_the_wait(
    tmp_path: Path, bare: dict[str, str | None]
) -> None:
    go = FakeGo(tmp_path)
    go.set("hold")
    tests = """
import pathlib
import pytest
from controlplane.access import wait_for

@pytest.mark.timeout(4)
def test_with_cluster(namespace):
    pass

def test_plain():
    wait_for("call of go", pathlib.Path("calls").exists)
"""
    with session(tmp_path, tests, {**bare, "PATH": str(go.path)}) as process:
        assert process.stdout
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if "the rest waits for it" in line:
                assert any("test_plain PASSED" in each for each in lines)
                time.sleep(4.1)  # longer than the test with a cluster may take
                go.set("hold", to=False)
    output = "".join(lines)
    assert "control plane: etcd built in " in output
    assert "control plane: 6 binaries built in " in output
    assert "Timeout" not in output
    assert "StartError: " in output  # the binary of the fake compiler does not run


def test_a_build_that_fails_is_a_failure_and_says_why(tmp_path: Path, bare: dict[str, str | None]) -> None:
    go = FakeGo(tmp_path)
    go.set("broken")
    code, output = run(tmp_path, PLAIN_AND_CLUSTER, {**bare, "PATH": str(go.path)})
    assert code == 1
    assert "1 passed, 1 error" in output
    reason = output[output.rindex("the build of the control plane failed:") :]
    assert "Go could not build etcd" in reason
    assert "no space left on device" in reason


def test_a_build_ends_with_the_run_that_began_it(tmp_path: Path, bare: dict[str, str | None]) -> None:
    go = FakeGo(tmp_path)
    go.set("hold")
    with session(tmp_path, PLAIN_AND_CLUSTER, {**bare, "PATH": str(go.path)}) as process:
        wait_for("call of go", lambda: go.calls)
        send(process, signal.SIGKILL)
        process.wait()
        wait_for("end of go", lambda: not processes_of(go.path))
        wait_for("end of the run folder", lambda: not list(tmp_path.glob("pilotage-*")))


def test_nothing_is_built_for_a_run_that_needs_no_cluster(tmp_path: Path, bare: dict[str, str | None]) -> None:
    go = FakeGo(tmp_path)
    with_go = {**bare, "PATH": str(go.path)}
    assert run(tmp_path, PLAIN_AND_CLUSTER, with_go, "-m", "not cluster")[0] == 0
    assert run(tmp_path, PLAIN_AND_CLUSTER, with_go, "--collect-only")[0] == 0
    assert not go.was_asked


def test_a_failure_keeps_the_logs_and_says_where(own_cluster: Cluster, tmp_path: Path) -> None:
    code, output = run(tmp_path, "def test_it(namespace): raise ValueError", {})
    assert code == 1
    (folder,) = tmp_path.glob("pilotage-*")
    assert str(folder / "logs") in output.splitlines()
    assert (folder / "logs" / "audit.jsonl").stat().st_size > 0
    assert list(folder.iterdir()) == [folder / "logs"]
    assert processes_of(folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_was_cut_off(
    own_cluster: Cluster, tmp_path: Path, number: signal.Signals
) -> None:
    tests = """
import pathlib, time

def test_it(namespace, cluster):
    pathlib.Path("folder").write_text(str(cluster.folder))
    time.sleep(1000)
"""
    told = tmp_path / "folder"
    # Things that a user may have set, and that must not reach the control plane.
    burden = {"https_proxy": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1", "ETCD_NAME": "other"}
    with session(tmp_path, tests, burden) as process:
        folder = Path(wait_for("running test", lambda: told.read_text() if told.exists() else "", timeout=90))
        assert len(processes_of(folder)) == 5
        send(process, number, to_group=True)
        process.wait()
        wait_until_nothing_is_left(folder)
        assert not list(tmp_path.glob("pilotage-*"))


def test_a_cluster_of_the_users_own_is_used_and_left_as_it_was(own_cluster: Cluster, tmp_path: Path) -> None:
    tests = """
def test_it(namespace, cluster):
    assert namespace in cluster.kubectl("get", "namespaces")
    assert cluster.find(f"/api/v1/namespaces/{namespace}/configmaps/absent") is None
    assert cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "one"}})

def test_breaks(own_cluster):
    own_cluster.stop_apiserver()
"""

    def namespaces() -> set[str]:
        return {each["metadata"]["name"] for each in own_cluster.request("GET", "/api/v1/namespaces")["items"]}

    remote = {"PILOTAGE_TEST_KUBECONFIG": str(own_cluster.kubeconfig)}
    before = namespaces()
    code, output = run(tmp_path, tests, remote)
    assert code == 0, output
    assert "1 passed, 1 skipped" in output
    assert "needs a control plane of our own" in output
    assert not list(tmp_path.glob("pilotage-*"))
    assert namespaces() <= before
