"""Answers to a TokenReview, as kube-apiserver gives them (`reviews.token_review`)."""

import pytest

from pilotage_harbor.access.reviews import token_review
from pilotage_harbor.access.tokens import AUDIENCE, Tokens, digest_of
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import UserInfo

UNKNOWN = {"user": {}, "error": "invalid bearer token"}


def ask(token: str = "right", **spec: object) -> object:
    tokens = Tokens()
    tokens.add(digest_of("right"), UserInfo("jo", "uid-1", ("crew",)))
    return token_review({"spec": {"token": token, **spec}}, tokens)["status"]


def test_it_tells_whose_token_it_is_and_whom_it_is_for():
    jo = {"username": "jo", "uid": "uid-1", "groups": ["crew", "system:authenticated"]}
    assert ask() == ask(audiences=["other", AUDIENCE]) == {"authenticated": True, "user": jo, "audiences": [AUDIENCE]}


def test_a_token_that_is_none_or_is_for_others_is_nobodys():
    assert ask("wrong") == UNKNOWN
    assert ask(audiences=["other"]) == UNKNOWN


def test_without_a_token_there_is_nothing_to_review():
    with pytest.raises(StatusError, match="token is required for TokenReview in authentication") as caught:
        ask("")
    assert caught.value.code == 400
