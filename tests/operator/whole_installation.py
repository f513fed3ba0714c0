"""The image itself, built with buildah on a base that mmdebstrap makes: its operator on a real control plane. And the
wheels, installed as README says: one machine comes up from them.

It takes minutes, an index of packages, root, buildah and mmdebstrap: `make image-test` runs it, and `make test` has
`test_image`.
"""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from demo import tiny_gguf
from demo.machine import free_port
from tests.operator.test_image import checkout, do, make, reconciled, running

__all__ = ["checkout"]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    """The command of a buildah that keeps everything in a folder of its own, and needs no overlay and no daemon."""
    folder = tmp_path_factory.mktemp("images")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("STORAGE_DRIVER", "vfs")
        patched.setenv("BUILDAH_ISOLATION", "chroot")
        yield ("buildah", "--root", folder / "root", "--runroot", folder / "run")
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def base(buildah, tmp_path_factory):
    """An image of Debian with Python, and with this machine's certificate authorities and configuration of pip."""
    tarball = tmp_path_factory.mktemp("base") / "base.tar"
    given = [path for path in ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt") if Path(path).exists()]
    hooks = [f"--customize-hook=upload {path} {path}" for path in given]
    packages = "--include=python3,python3-venv,ca-certificates"
    do("mmdebstrap", "--variant=minbase", packages, *hooks, "bookworm", tarball)
    container = do(*buildah, "from", "scratch").strip()
    do(*buildah, "add", container, tarball, "/")
    tarball.unlink()
    do(*buildah, "commit", "--rm", container, "localhost/base:test")
    return "localhost/base:test"


def test_the_operator_of_the_image_brings_an_endpoint_up_on_a_real_control_plane(
    checkout, buildah, base, own_cluster, account, namespace_for_pods, tmp_path
):
    builder = " ".join(map(str, buildah))
    make(checkout, "image", BUILDER=builder, BASE=base, IMAGE="localhost/pilotage:test")
    container = do(*buildah, "from", "localhost/pilotage:test").strip()
    assert do(*buildah, "run", container, "--", "id", "-u") == "65532\n"
    account.chmod(0o644)
    settings = {
        "PILOTAGE_NAMESPACE": namespace_for_pods,
        "PILOTAGE_CACHE_ROOT": "/tmp/cache",
        "PILOTAGE_METRICS_ADDRESS": "",
        "PILOTAGE_FETCH": "pods",
        "PILOTAGE_FETCH_IMAGE": "pilotage:test",
    }
    flags = [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
    volume = ("--volume", f"{account}:/kubeconfig:ro")
    words = ("run", *flags, *volume, container, "--", "pilotage", "operator", "--kubeconfig", "/kubeconfig")
    with running(*buildah, *words):
        asyncio.run(reconciled(own_cluster.kubeconfig, namespace_for_pods, "Serving"))


def test_one_machine_comes_up_from_the_wheels(checkout, tmp_path):
    do(sys.executable, "-m", "venv", tmp_path / "pilotage")
    programs, wheels = tmp_path / "pilotage" / "bin", checkout / "dist"
    (pilotage,) = wheels.glob("pilotage-*.whl")
    do(programs / "pip", "install", f"{pilotage}[up]", *wheels.glob("pilotage_*.whl"))
    assert "explore" in do(programs / "python", "-m", "pilotage_sim", "--help", cwd=tmp_path)
    machine = ("--data", tmp_path / "data")
    model = tmp_path / "tiny.gguf"
    tiny_gguf.write(model, sentence="I came in a wheel.", endless=True)
    up = do(programs / "pilotage", "up", "-d", *machine, "--port", free_port(), "--file-roots", tmp_path)
    try:
        assert "Pilotage is up." in up
        words = ("--model", f"file://{model}", "--on", "local", "--route", "PilotageGateway")
        kubeconfig = ("--kubeconfig", tmp_path / "data" / "harbor" / "kubeconfig")
        assert " serves: http://127.0.0.1:" in do(programs / "pilotage", "deploy", "tiny", *words, *kubeconfig)
    finally:
        assert "No process is left" in do(programs / "pilotage", "down", "--now", *machine)
