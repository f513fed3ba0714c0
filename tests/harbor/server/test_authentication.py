"""Authentication and impersonation."""

import pytest

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.access.rbac import AuthorizationDecision
from pilotage_harbor.access.tokens import digest_of
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import NOBODY, UserInfo
from pilotage_harbor.server.authentication import Authentication
from pilotage_harbor.server.http1 import RequestHead, parse_headers
from tests.harbor.server.support import ADMIN, TOKEN, tokens

JANE = UserInfo("jane", groups=("system:authenticated",))


class Allowing:
    """Allows what it is given, and the masters everything."""

    def __init__(self, *allowed):
        self.allowed = allowed

    def decide(self, user, wanted):
        return AuthorizationDecision("system:masters" in user.groups or wanted in self.allowed)


def head(*lines: str) -> RequestHead:
    block = "".join(f"{line}\r\n" for line in ("Host: h", *lines)).encode()
    return RequestHead("GET", "/api/v1/namespaces/ns/pods/p", {}, parse_headers(block), True)


def who(*lines, authorizer=None, peer=None):
    return Authentication(tokens(), authorizer or Allowing()).user(head(*lines), peer)


@pytest.mark.parametrize("line", [f"Authorization: Bearer {TOKEN}", f"authorization: bEARER {TOKEN}"])
def test_a_token_stands_for_its_user(line):
    assert who(line) == ADMIN


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Basic eDp5", TOKEN])
def test_what_is_no_token_stands_for_nobody(given):
    assert who(f"Authorization: {given}") == NOBODY


@pytest.mark.parametrize("given", ["wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), digest_of(TOKEN).hex()])
def test_a_wrong_token_is_refused(given):
    with pytest.raises(StatusError) as caught:
        who(f"Authorization: Bearer {given}")
    assert caught.value.code == 401


def test_a_certificate_comes_before_a_token():
    assert who("Authorization: Bearer wrong", peer=JANE) == JANE


AS_ADMIN = f"Authorization: Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("lines", "user"),
    [
        (["Impersonate-User: joe"], UserInfo("joe", groups=("system:authenticated",))),
        (
            ["Impersonate-User: joe", "Impersonate-Group: a", "Impersonate-Group: b", "Impersonate-Uid: 7"],
            UserInfo("joe", "7", ("a", "b", "system:authenticated")),
        ),
        (["Impersonate-User: joe", "Impersonate-Group: system:masters"],
         UserInfo("joe", groups=("system:masters", "system:authenticated"))),
        (["Impersonate-User: system:anonymous"], NOBODY),
        (
            ["Impersonate-User: system:serviceaccount:ns:bot"],
            UserInfo(
                "system:serviceaccount:ns:bot",
                groups=("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            ),
        ),
        (
            ["Impersonate-User: system:node:n1"],
            UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated")),
        ),
        (
            ["Impersonate-User: joe", "Impersonate-Extra-Scopes: a", "Impersonate-Extra-scopes: b",
             "Impersonate-Extra-acme%2fproject: p"],
            UserInfo("joe", groups=("system:authenticated",), extra={"scopes": ("a", "b"), "acme/project": ("p",)}),
        ),
    ],
)  # fmt: skip
def test_the_administrator_asks_as_anybody(lines, user):
    assert who(AS_ADMIN, *lines) == user


def test_whoever_is_allowed_to_impersonate_may_and_only_whom():
    allowing = Allowing(AccessAttributes("impersonate", "", "users", name="joe"))
    assert who("Impersonate-User: joe", authorizer=allowing, peer=JANE).name == "joe"
    for lines in (["Impersonate-User: jim"], ["Impersonate-User: joe", "Impersonate-Group: system:masters"]):
        with pytest.raises(StatusError) as caught:
            who(*lines, authorizer=allowing, peer=JANE)
        assert caught.value.code == 403


def test_the_narrow_way_needs_both_rights():
    on = AccessAttributes("impersonate-on:user-info:get", "", "pods", namespace="ns", name="p")
    such = AccessAttributes("impersonate:user-info", "authentication.k8s.io", "users", name="joe")
    assert who("Impersonate-User: joe", authorizer=Allowing(on, such), peer=JANE).name == "joe"
    for allowed in ([on], [such]):
        with pytest.raises(StatusError):
            who("Impersonate-User: joe", authorizer=Allowing(*allowed), peer=JANE)
    group = AccessAttributes("impersonate:user-info", "authentication.k8s.io", "groups", name="system:masters")
    with pytest.raises(StatusError) as caught:
        who(
            "Impersonate-User: joe",
            "Impersonate-Group: system:masters",
            authorizer=Allowing(on, such, group),
            peer=JANE,
        )
    assert "impersonating the system:masters group is not allowed" in caught.value.message


def test_a_refusal_names_the_right_that_is_missing():
    with pytest.raises(StatusError) as caught:
        who("Impersonate-User: joe", peer=JANE)
    assert caught.value.message == (
        'pods "p" is forbidden: User "jane" cannot impersonate-on:user-info:get resource "pods" in API group "" '
        'in the namespace "ns"'
    )


def test_the_way_that_last_led_somewhere_is_tried_first():
    asking = Authentication(tokens(), Allowing(AccessAttributes("impersonate", "", "users", name="joe")))
    asking.user(head("Impersonate-User: joe"), JANE)
    with pytest.raises(StatusError, match='User "jane" cannot impersonate resource "users"'):
        asking.user(head("Impersonate-User: jim"), JANE)


def test_groups_without_a_user_are_a_bad_request():
    with pytest.raises(StatusError) as caught:
        who(AS_ADMIN, "Impersonate-Group: a", "Impersonate-Extra-K: v")
    assert caught.value.code == 400
    assert caught.value.message == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, '
        'Extra:map[string][]string{"k":[]string{"v"}}} without impersonating a user name'
    )
