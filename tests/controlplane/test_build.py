import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controlplane import NoControlPlane, assets
from controlplane.access import wait_for
from controlplane.build import NoGo, build
from tests.controlplane.fake_go import FakeGo

ALL = [binary.name for binary in assets.BINARIES]


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    return FakeGo(tmp_path)


@pytest.fixture
def env(tmp_path: Path, go: FakeGo) -> dict[str, str]:
    return {"PATH": str(go.path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@contextmanager
def builder(env: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """`python -m controlplane build` in a process of its own."""
    command = [sys.executable, "-m", "controlplane", "build"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdout
    assert any(text in line for line in process.stdout), f"ended without saying {text!r}"


def test_all_binaries_are_built_once_and_the_time_is_told(env: dict[str, str], go: FakeGo) -> None:
    lines: list[str] = []
    folder = build(env, lines.append)
    assert go.calls == ALL
    assert sorted(path.name for path in folder.iterdir()) == sorted([*ALL, "lock"])
    assert all(os.access(folder / name, os.X_OK) for name in ALL)
    assert lines[:2] == ["control plane: building etcd (1 of 6)", "control plane: etcd built in 0 s"]
    assert lines[-1].startswith("control plane: 6 binaries built in ")
    assert lines[-1].endswith(str(folder))

    build(env, lines.append)
    assert lines[-1] == "control plane: everything is there, nothing to build"
    assert go.calls == ALL


def test_what_given_assets_lack_is_all_that_is_built(env: dict[str, str], go: FakeGo, tmp_path: Path) -> None:
    given = tmp_path / "assets"
    given.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (given / name).touch()
    build({**env, "KUBEBUILDER_ASSETS": str(given)}, lambda _: None)
    assert go.calls == ["kube-controller-manager", "kube-scheduler", "kwok"]


def test_a_build_that_failed_says_why_and_goes_on_where_it_stood(env: dict[str, str], go: FakeGo) -> None:
    def break_at_third(line: str) -> None:
        if "(3 of 6)" in line:
            go.set("broken")

    with pytest.raises(NoControlPlane, match=r"(?s)could not build kube-controller-manager:.*no space left on device"):
        build(env, break_at_third)
    folder = assets.cache_folder(env)
    assert sorted(path.name for path in folder.iterdir()) == ["etcd", "kube-apiserver", "lock"]

    go.set("broken", to=False)
    build(env, lambda _: None)
    assert go.calls == [*ALL[:3], *ALL[2:]]


def test_without_go_one_line_says_every_way_to_a_control_plane(env: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(NoGo) as caught:
        build({**env, "PATH": str(tmp_path)}, lambda _: None)
    message = str(caught.value)
    assert "\n" not in message
    for way in ("install Go and run `make kube`", "KUBEBUILDER_ASSETS", "PILOTAGE_TEST_KUBECONFIG"):
        assert way in message


def test_a_go_that_is_too_old_is_named(env: dict[str, str], go: FakeGo) -> None:
    go.set("too-old")
    with pytest.raises(NoGo, match=r"requires go >= 1\.26\.0 \(running go 1\.21\.0"):
        build(env, lambda _: None)


def test_a_second_builder_waits_for_the_first_and_finds_its_work_done(env: dict[str, str], go: FakeGo) -> None:
    go.set("hold")
    with builder(env) as first:
        read_until(first, "building etcd")
        with builder(env) as second:
            read_until(second, "another process is building it")
            go.set("hold", to=False)
            assert (first.wait(), second.wait()) == (0, 0)
    assert go.calls == ALL


def test_a_builder_that_was_killed_leaves_no_half_binary_and_no_second_go(env: dict[str, str], go: FakeGo) -> None:
    go.set("hold")
    with builder(env) as first:
        read_until(first, "building etcd")
        wait_for("call of go", lambda: go.calls)
        first.kill()
        first.wait()
        with builder(env) as second:
            read_until(second, "another process is building it")  # the Go of the first, which is still at work
            assert go.calls == ["etcd"]
            assert assets.find(env) == {}
            go.set("hold", to=False)
            assert second.wait() == 0
    folder = assets.cache_folder(env)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*ALL, "lock"])
