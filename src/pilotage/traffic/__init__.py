"""How requests get to an endpoint: routers, what each of them can prove, and how weight moves from one to another.

- `contract` has the values that all of this exchanges.
- `routers` has a file for each kind of route: what is written, and what its controller says about it.
- `proxies` finds Envoys and reads them, `envoy` understands what they say: `observe` is the proof.
- `shift` decides the next step of a change.

Nothing here writes to the API.
"""
