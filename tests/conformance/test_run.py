from conformance.run import follow

ONE = "[sig-api-machinery] Watchers should be told [Conformance]"
TWO = "[sig-api-machinery] Namespaces [Serial] should go [Conformance]"
OUTPUT = f"""\
Will run 2 of 7000 specs
------------------------------
{ONE}
/some/where/watch.go:60
  STEP: waiting @ 01/01/26
• [0.345 seconds]
------------------------------
{TWO}
• [FAILED] [12.061 seconds]
{TWO} [Fail]
"""


def test_each_spec_is_told_when_it_ends_and_all_output_is_kept():
    kept: list[str] = []
    told: list[str] = []
    follow(OUTPUT.splitlines(keepends=True), [ONE, TWO], kept.append, told.append)
    assert told == [f"1 of 2  {ONE}: passes in 0.3 s", f"2 of 2  {TWO}: fails after 12.1 s"]
    assert "".join(kept) == OUTPUT
