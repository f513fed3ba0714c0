"""Settings of the operator, where they are given, and the messages for wrong ones."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pilotage.cli.commands.operator import operator
from pilotage.operator.settings import OperatorSettings, load_settings, variable_name
from pilotage.runtime.manager import Address
from pilotage.runtime.settings import SettingsError, camel_case
from tests.cli.running import run

LEVELS = st.none() | st.sampled_from(["debug", "info", "warning", "error"])


@given(flag=LEVELS, variable=LEVELS, line=LEVELS)
def test_a_flag_wins_over_a_variable_and_that_over_the_file(tmp_path_factory, flag, variable, line):
    file = tmp_path_factory.getbasetemp() / "settings.yaml"
    file.write_text(yaml.safe_dump({} if line is None else {"logLevel": line}))
    settings = load_settings(
        {} if flag is None else {"log_level": flag}, {} if variable is None else {"PILOTAGE_LOG_LEVEL": variable}, file
    )
    assert settings.log_level == (flag or variable or line or "info")


def test_nothing_has_to_be_set():
    settings = load_settings({}, {"HOME": "/home/a"})
    assert settings.address == Address("127.0.0.1", 8081)
    assert settings.leader_election


def test_a_list_is_a_list_everywhere(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("fileRoots: [/a, /b c]\nnetworks: [10.0.0.0/8]\n")
    assert load_settings(env={}, file=file).file_roots == (Path("/a"), Path("/b c"))
    env = {"PILOTAGE_CONFIG": str(file), "PILOTAGE_FILE_ROOTS": "/d /e"}
    assert load_settings(env=env).file_roots == (Path("/d"), Path("/e"))
    assert [str(each) for each in load_settings(env=env).networks] == ["10.0.0.0/8"]
    assert load_settings({"file_roots": ("/f",)}, env).file_roots == (Path("/f"),)


@pytest.mark.parametrize(("text", "value"), [("No", False), ("off", False), ("0", False), ("TRUE", True), ("y", True)])
def test_a_flag_in_a_variable(text, value):
    assert load_settings({}, {"PILOTAGE_LEADER_ELECTION": text}).leader_election is value
    assert load_settings({}, {"PILOTAGE_PLAIN_HTTP": text}).plain_http is value


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", None),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        (":80", Address("0.0.0.0", 80)),
        ("[::1]:80", Address("::1", 80)),
    ],
)
def test_addresses(text, address):
    assert load_settings({"metrics_address": text}, {}).address == address


@pytest.mark.parametrize(
    ("flags", "env", "text", "message"),
    [
        ({"fetch": "nobody"}, {}, "", "--fetch: 'nobody' cannot be used: input should be 'operator' or 'pods'."),
        ({}, {"PILOTAGE_FETCH": "nobody"}, "", "PILOTAGE_FETCH: 'nobody' cannot be used"),
        ({}, {}, "fetch: nobody", "settings.yaml: fetch: 'nobody' cannot be used"),
        (
            {},
            {"PILOTAGE_METRICS_ADDRESS": "8081"},
            "",
            "PILOTAGE_METRICS_ADDRESS: '8081' cannot be used: it is HOST:PORT",
        ),
        ({}, {"PILOTAGE_METRICS_ADDRESS": "::1:80"}, "", "it is HOST:PORT"),
        ({}, {"PILOTAGE_NETWORKS": "10.0.0.0/8 home"}, "", "PILOTAGE_NETWORKS: 'home' cannot be used"),
        ({}, {"PILOTAGE_ENVOY_ADMINS": "envoy"}, "", "pods://NAMESPACE/LABEL-SELECTOR:PORT"),
        ({}, {"PILOTAGE_NAMESPACE": "A"}, "", "PILOTAGE_NAMESPACE: 'A' cannot be used: a namespace's name has at most"),
        ({}, {"PILOTAGE_NAMESPACE": "a\n"}, "", "cannot be used: a namespace's name has at most"),
        ({}, {"PILOTAGE_PLAIN_HTTP": "maybe"}, "", "'maybe' cannot be used: input should be a valid boolean"),
        ({}, {"PILOTAGE_MODEL_BYTES_MAX": "many"}, "", "'many' cannot be used: input should be a valid integer"),
        ({}, {"PILOTAGE_MODEL_BYTES_MAX": "0"}, "", "'0' cannot be used: input should be greater than or equal to 1"),
        ({}, {}, "fileRoots: /a", "settings.yaml: fileRoots: '/a' cannot be used: it has to be a list"),
        ({}, {}, "cacheRoot: 1", "settings.yaml: cacheRoot: 1 cannot be used: input is not a valid path"),
        ({}, {}, "fetchImage: 1", "settings.yaml: fetchImage: 1 cannot be used: input should be a valid string"),
        ({"fetsch": "pods"}, {}, "", "--fetsch: there is no such setting"),
        ({}, {}, "fecth: pods", "settings.yaml: fecth: there is no such setting; did you mean fetch?"),
        ({}, {}, "zzz: 1", "settings.yaml: zzz: there is no such setting; there are cacheRoot, "),
        ({}, {}, "[a]", "settings.yaml: has to be a mapping"),
        ({}, {}, "a: [", "settings.yaml: is not YAML: while parsing"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, flags, env, text, message):
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        load_settings(flags, env, file)
    assert message in str(error.value)


def test_a_file_that_is_not_there_is_named_with_who_named_it(tmp_path):
    with pytest.raises(SettingsError, match=r"PILOTAGE_CONFIG: .*none.yaml cannot be read \(No such file"):
        load_settings(env={"PILOTAGE_CONFIG": str(tmp_path / "none.yaml")})
    answer = run("operator", "--config", tmp_path / "none.yaml")
    assert answer.code == 2
    assert answer.err.startswith("Error: --config: ")


def test_every_setting_has_its_flag_its_variable_and_its_line():
    flags = {parameter.name for parameter in operator.params} - {"kubeconfig", "context", "config"}
    assert flags == set(OperatorSettings.__struct_fields__)
    assert variable_name("fetch_image") == "PILOTAGE_FETCH_IMAGE"
    assert camel_case("fetch_image") == "fetchImage"
