from conformance.run import follow

ONE = "[sig-api-machinery] Watchers should be told [Conformance]"
TWO = "[sig-api-machinery] Namespaces [Serial] should go [Conformance]"
OUTPUT = f"""\
Will run 2 of 7000 specs
------------------------------
{ONE} [sig-api-machinery, Conformance]
/some/where/watch.go:60
  STEP: waiting @ 01/01/26
• [0.345 seconds]
------------------------------
{TWO} [sig-api-machinery, Serial, Conformance]
• [FAILED] [12.061 seconds]
{TWO} [Fail]
"""


def test_each_spec_is_told_when_it_ends_and_all_output_is_kept():
    kept: list[str] = []
    told: list[str] = []
    follow(OUTPUT.splitlines(keepends=True), [ONE, TWO], kept.append, told.append)
    assert told == [
        "1 of 2  Watchers should be told: passes in 0.3 s",
        "2 of 2  Namespaces should go: fails after 12.1 s",
    ]
    assert "".join(kept) == OUTPUT
