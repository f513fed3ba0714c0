import pytest

import field
from tests.field.conftest import FakeGo


def test_a_module_is_where_go_says_and_go_is_asked_once(go: FakeGo):
    assert field.module_dir("example.com/theirs", "v1.2.3") == go.module
    assert field.module_dir("example.com/theirs", "v1.2.3") == go.module
    assert go.calls == ["mod download -json example.com/theirs@v1.2.3"]


def test_without_go_the_error_names_what_is_missing(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(field.NoGo, match=r"no Go to read example.com/theirs v1.2.3 with: install Go"):
        field.module_dir("example.com/theirs", "v1.2.3")


def test_a_module_that_cannot_be_fetched_is_one_line_with_gos_reason(go: FakeGo):
    go.answer(Error="example.com/theirs@v1.2.3: module lookup\n\tdisabled by GOPROXY=off")
    go.break_down()
    with pytest.raises(field.FieldError) as error:
        field.module_dir("example.com/theirs", "v1.2.3")
    assert str(error.value) == (
        "Go could not fetch example.com/theirs@v1.2.3: example.com/theirs@v1.2.3: module lookup disabled by GOPROXY=off"
    )


def test_other_content_under_the_same_version_is_refused(go: FakeGo):
    with pytest.raises(field.FieldError, match=r"is not what it was: h1:theirs=, and h1:ours= was expected"):
        field.module_dir("example.com/theirs", "v1.2.3", "h1:ours=")


def test_a_tool_is_built_once_in_the_folder_of_its_module_and_outside_the_repository(go: FakeGo, tmp_path):
    go.answer(Dir=str(go.module), Sum=field.TOOLS["kapp"].module.sum)
    lines: list[str] = []
    built = field.tool("kapp", lines.append)
    assert built.read_text() == "a program"
    assert built.is_relative_to(tmp_path / "cache")
    assert lines[0] == "carvel.dev/kapp@v0.64.2: building kapp (1 of 1)"
    calls, said = go.calls, list(lines)
    assert any(call.startswith("build -mod=readonly") and call.endswith("./cmd/kapp") for call in calls)
    assert field.tool("kapp", lines.append) == built
    assert (go.calls, lines) == (calls, said)


def test_a_build_that_fails_says_why(go: FakeGo):
    go.answer(Dir=str(go.module), Sum=field.TOOLS["kapp"].module.sum)
    field.module_dir(field.TOOLS["kapp"].module.path, "v0.64.2", field.TOOLS["kapp"].module.sum)
    go.break_down()
    with pytest.raises(field.FieldError, match=r"Go could not build kapp:\nno space left on device"):
        field.tool("kapp", lambda line: None)


def test_a_tool_that_is_not_ours_to_build_is_refused_with_those_that_are():
    with pytest.raises(
        field.FieldError, match=r"no tool 'kopp' here; there are argo-rollouts, contour, helm, kapp, kserve, kube-"
    ):
        field.tool("kopp", lambda line: None)
