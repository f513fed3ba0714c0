"""Addresses that may be connected to."""

import ipaddress

import pytest

from pilotage.models import Access, SourceCredentials


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "0.0.0.0",
        "::",
        "169.254.169.254",
        "fe80::1%eth0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "224.0.0.1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "unix",
        "",
    ],
)
def test_what_is_not_public_is_not_connected_to(address):
    assert not Access().allows(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_what_is_public_is(address):
    assert Access().allows(address)


def test_a_network_that_is_opened_opens_nothing_else():
    access = Access(networks=(ipaddress.ip_network("10.0.0.0/8"),))
    assert access.allows("10.1.2.3")
    assert access.allows("::ffff:10.1.2.3")
    assert not access.allows("192.168.1.1")
    assert not access.allows("169.254.169.254")


def test_credentials_are_found_by_any_spelling_and_never_shown():
    credentials = SourceCredentials({"AWS_ACCESS_KEY_ID": " abc\n", "token": ""})
    assert credentials.get("token", "aws_access_key_id") == "abc"
    assert "abc" not in repr(credentials)
