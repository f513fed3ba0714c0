from pathlib import Path

import pytest

from controlplane import NoControlPlane, assets

ALL = [binary.name for binary in assets.BINARIES]
ENVTEST = ["etcd", "kube-apiserver", "kubectl"]


def fill(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def given(env: dict[str, str], tmp_path: Path) -> Path:
    folder = tmp_path / "assets"
    env["KUBEBUILDER_ASSETS"] = str(folder)
    return folder


def test_nothing_is_there_at_first(env: dict[str, str]) -> None:
    assert assets.find(env) == {}
    assert [binary.name for binary in assets.missing(env)] == ALL


def test_the_cache_is_used_when_no_assets_are_given(env: dict[str, str]) -> None:
    cache = assets.cache_folder(env)
    fill(cache, ALL)
    assert assets.find(env) == {name: cache / name for name in ALL}
    assert assets.missing(env) == []


def test_given_assets_come_before_the_cache(env: dict[str, str], given: Path) -> None:
    fill(assets.cache_folder(env), ALL)
    fill(given, ALL)
    assert assets.find(env) == {name: given / name for name in ALL}


def test_what_envtest_lacks_comes_from_the_cache(env: dict[str, str], given: Path) -> None:
    fill(given, ENVTEST)
    assert [binary.name for binary in assets.missing(env)] == ["kube-controller-manager", "kube-scheduler", "kwok"]
    cache = assets.cache_folder(env)
    fill(cache, ALL)
    assert assets.find(env) == {name: (given if name in ENVTEST else cache) / name for name in ALL}


@pytest.mark.parametrize("absent", ["etcd", "kube-apiserver"])
def test_assets_without_an_api_server_are_a_mistake_that_is_named(
    env: dict[str, str], given: Path, absent: str
) -> None:
    fill(given, [name for name in ALL if name != absent])
    fill(assets.cache_folder(env), ALL)
    with pytest.raises(NoControlPlane, match=f"KUBEBUILDER_ASSETS={given} has no {absent}"):
        assets.find(env)


def test_a_missing_binary_is_named_with_the_way_to_get_it(env: dict[str, str], given: Path) -> None:
    fill(given, ENVTEST)
    assert assets.require(env, ["etcd"])["etcd"] == given / "etcd"
    with pytest.raises(NoControlPlane, match=r"\(kwok missing\): run `make kube`"):
        assets.require(env, ["etcd", "kwok"])


def test_the_cache_is_in_the_home_folder_by_default(tmp_path: Path) -> None:
    assert assets.cache_folder({"HOME": str(tmp_path)}).parent == tmp_path / ".cache" / "pilotage" / "controlplane"


def test_other_versions_have_another_cache_folder(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go.mod").write_text("module m\nrequire k8s.io/kubernetes v1.40.1\n")
    (tmp_path / "go.sum").touch()
    monkeypatch.setattr(assets, "BINARIES", (assets.Binary("etcd", "example.test/etcd", tmp_path),))
    before = assets.cache_folder(env)
    assert before == assets.cache_folder(env)
    (tmp_path / "go.sum").write_text("example.test/etcd v1.0.0 h1:other\n")
    assert assets.cache_folder(env) != before


def test_the_linker_is_told_the_version_that_go_mod_pins(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module m\nrequire (\n\tk8s.io/kubernetes v1.40.1\n)\n")
    assert assets.Binary("kubectl", "k8s.io/kubernetes/cmd/kubectl", tmp_path).ldflags.split(" -X ")[1:] == [
        "k8s.io/component-base/version.gitVersion=v1.40.1",
        "k8s.io/component-base/version.gitMajor=1",
        "k8s.io/component-base/version.gitMinor=40",
    ]
