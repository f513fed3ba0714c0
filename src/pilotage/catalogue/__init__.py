"""The catalogue: everything that Pilotage knows about a kind, one row per kind, one file per ecosystem.

`kind.KnownKind` lists the columns, `ecosystems` has the rows, `registry` looks them up. What a column means is decided
where it is read: planning, relations, diagnosis. Data only: nothing here reads a cluster or decides about an object.
"""
