"""Content negotiation and caching: forms, hashes, tags."""

from __future__ import annotations

import pytest

from .world import World, crd

APPS = "/openapi/v3/apis/apps/v1"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture
def world() -> World:
    return World()


def test_who_has_it_already_does_not_get_it_again(world: World):
    first = world.ask(APPS)
    again = world.ask(APPS, if_none_match=f'"x", W/{first.headers["Etag"]}')
    assert (again.status, again.body, again.headers["Etag"]) == (304, b"", first.headers["Etag"])
    assert world.ask(APPS, if_none_match='"x"').body == first.body
    assert world.ask(APPS, if_none_match="*").status == 304


def test_what_is_asked_for_by_its_hash_is_kept_for_ever(world: World):
    plain = world.ask(APPS)
    assert "Cache-Control" not in plain.headers
    answer = world.ask(APPS, query={"hash": [plain.headers["Etag"].strip('"')]})
    assert (answer.status, answer.body) == (200, plain.body)
    assert answer.headers["Cache-Control"] == "public, immutable"
    assert answer.headers["Expires"] == "Fri, 01 Jan 1971 00:00:00 GMT"
    assert answer.headers["Vary"] == "Accept"


def test_an_old_hash_leads_to_the_new_one(world: World):
    answer = world.ask(APPS, query={"hash": ["OLD"]})
    assert (answer.status, answer.body) == (301, b"")
    tag = world.ask(APPS).headers["Etag"].strip('"')
    assert answer.headers["Location"] == f"{APPS}?hash={tag}"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("application/json", 200),
        ("application/json, */*", 200),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf, application/json;q=0.5", 200),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", 406),
        ("text/html", 406),
    ],
)
def test_version_3_is_json(world: World, accept: str, status: int):
    answer = world.ask(APPS, accept=accept)
    assert (answer.status, answer.headers["Vary"]) == (status, "Accept")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        (PROTOBUF_OLD, PROTOBUF),
        (f"application/json;q=0.5, {PROTOBUF}", PROTOBUF),
        (f"application/json, {PROTOBUF};q=bad", "application/json"),
    ],
)
def test_version_2_is_json_or_protobuf(world: World, accept: str, form: str):
    answer = world.ask("/openapi/v2", accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, form)
    assert answer.headers["Etag"] == world.ask("/openapi/v2").headers["Etag"]
    assert (answer.body[:1] == b"{") == (form == "application/json")


def test_version_2_as_protobuf_changes_with_the_kinds(world: World):
    old = world.ask("/openapi/v2", accept=PROTOBUF)
    world.define(crd({"type": "object"}))
    new = world.ask("/openapi/v2", accept=PROTOBUF, if_none_match=old.headers["Etag"])
    assert new.status == 200
    assert b"com.example.stable.v1.CronTab" in new.body
    assert world.ask("/openapi/v2", accept=PROTOBUF, if_none_match=new.headers["Etag"]).status == 304


@pytest.mark.parametrize("path", ["/openapi/v3/", "/openapi/v3/apis/none/v1", "/openapi/v3/apis/apps", "/openapi/v3/x"])
def test_what_is_not_served_has_no_document(world: World, path: str):
    assert world.ask(path).status == (200 if path.endswith("apps") else 404)


def test_the_method_does_not_matter(world: World):
    assert world.ask(APPS, "POST").body == world.ask(APPS).body


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v2/", "/openapi/v4"])
def test_nothing_else_is_here(world: World, path: str):
    assert world.ask(path)[:2] == (404, b"404 page not found\n")
