"""The embedded API server: the Kubernetes API for one machine, without a cluster.

`Core` is a plain object without I/O: what is stored (`store`, with SQLite behind it in `journal`), what is served
(`registry`, `builtin`, `custom`), who decides (`access`, `webhooks`). `Harbor` answers calls; `server` speaks HTTP.
Nothing here knows about Pilotage's own kinds, and of the rest of Pilotage only the wire types of `kube` are used.
"""
