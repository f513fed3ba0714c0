"""One file per ecosystem, with one `ECOSYSTEM` each. The registry finds them: a new file needs no entry elsewhere.

`make manifests` then writes `reading_table` anew.
"""
