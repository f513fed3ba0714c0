"""Why an object does not go away: the chain of causes down to the root, with evidence, and what to do about it.

`explain.explain` decides, from a world, without I/O. A family of causes is one file in `families`. `render` makes text
and JSON of the result, and the exit code.
"""
