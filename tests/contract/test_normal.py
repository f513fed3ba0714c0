"""The normaliser keeps what can be compared, and equality of what cannot."""

from __future__ import annotations

from tests.contract.compare import differences
from tests.contract.kubectl import without_moment
from tests.contract.normal import Normaliser

ONE = "3f2b8a1c-0d4e-4f5a-9b6c-7d8e9f0a1b2c"
TWO = "4f2b8a1c-0d4e-4f5a-9b6c-7d8e9f0a1b2c"


def test_uids_keep_equality_also_inside_of_text() -> None:
    normal = Normaliser()
    assert normal.value([ONE, TWO, f"uid {ONE} is another's"]) == ["UID-1", "UID-2", "uid UID-1 is another's"]
    assert normal.value("00000000-0000-0000-0000-000000000001") == "00000000-0000-0000-0000-000000000001"


def test_versions_of_objects_keep_equality_and_those_of_lists_do_not() -> None:
    normal = Normaliser()
    item = {"metadata": {"name": "a", "resourceVersion": "123"}}
    got = normal.value({"metadata": {"resourceVersion": "456", "continue": "abc"}, "items": [item, item]})
    assert got["metadata"] == {"resourceVersion": "RV", "continue": "CONTINUE"}
    assert [each["metadata"]["resourceVersion"] for each in got["items"]] == ["RV-1", "RV-1"]
    assert normal.value({"metadata": {"resourceVersion": "124"}})["metadata"]["resourceVersion"] == "RV-2"


def test_times_of_now_go_and_those_that_a_case_chose_stay() -> None:
    normal = Normaliser()
    assert normal.value("2026-11-16T02:55:06Z") == "TIME"
    assert normal.value("2026-11-16T02:55:06.123456Z") == "TIME"
    assert normal.value("2001-02-03T04:05:06Z") == "2001-02-03T04:05:06Z"


def test_generated_names_are_known_from_then_on() -> None:
    normal = Normaliser()
    normal.value({"metadata": {"generateName": "some-", "name": "some-x7k2p"}})
    assert normal.text('configmaps "some-x7k2p" not found') == 'configmaps "some-GEN-1" not found'


def test_managed_fields_are_left_out_unless_they_matter() -> None:
    entries = [{"manager": "b", "operation": "Update"}, {"manager": "a", "operation": "Update"}]
    body = {"metadata": {"managedFields": entries}}
    assert Normaliser().value(body) == {"metadata": {}}
    got = Normaliser(managed=True).value(body)["metadata"]["managedFields"]
    assert [each["manager"] for each in got] == ["a", "b"]


def test_addresses_ports_and_certificates() -> None:
    normal = Normaliser()
    spec = {"clusterIP": "10.0.12.7", "clusterIPs": ["10.0.12.7"], "ports": [{"nodePort": 31000}, {"nodePort": 80}]}
    got = normal.value({"spec": spec})["spec"]
    assert got == {"clusterIP": "IP-1", "clusterIPs": ["IP-1"], "ports": [{"nodePort": "PORT-1"}, {"nodePort": 80}]}


def test_printed_text_has_no_ages_and_no_column_widths() -> None:
    text = "NAME      HOLDER   AGE\na         me       12s   \nlong-a    you      3d4h\n"
    assert without_moment(text) == "NAME  HOLDER  AGE\na  me  AGE\nlong-a  you  AGE\n"
    assert without_moment("Name:\t\ta\n  key:  1\n") == "Name:  a\n  key:  1\n"


def test_a_difference_names_its_place() -> None:
    want = [{"request": "GET /x", "status": 200, "body": {"a": [1, 2]}}]
    got = [{"request": "GET /x", "status": 200, "body": {"a": [1, 3]}}]
    assert differences(want, got) == ["1. GET /x at .body.a[1]: recorded 2, came 3"]
    assert differences(want, want) == []
    assert len(differences(want, [])) == 1
    assert differences([{"note": "x", "value": 1}], [{"note": "x", "value": True}])
