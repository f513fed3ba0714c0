"""Coverage-guided fuzzing of every parser of untrusted bytes: `make fuzz`.

`targets` has a function for each parser, which takes any bytes and raises when the parser breaks its contract;
`__main__` runs them under atheris, one process for each, within bounds on time and memory. `tests/test_fuzz.py` plays
the seeds, and every input that was ever found to break one.
"""
