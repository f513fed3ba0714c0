"""The embedded API server: the Kubernetes API for one machine, without a cluster.

Its packages are layers: an import goes down, never up, also one for a type (`tests/harbor/test_layers.py`).
From the bottom:

- `apimachinery`: Status errors, requests and answers, users, rules for names and metadata
- `storage`: objects as bytes, with a history and SQLite behind it
- `schema`: what objects look like, in OpenAPI and CEL; `patching`: the patches, and who owns which field; `protobuf`
- `kinds`: what a served kind is, and the registry of all
- `access`: users' rights (RBAC) and tokens; `expressions`: the CEL of admission
- `builtin`: the kinds of Kubernetes, one file for each family
- `core`: `Core`, a plain object without I/O: what is stored and served, who decides, what time it is
- `admission`: policies and webhooks
- `verbs`: get, list, watch, create, update, patch, apply, delete; `discovery` and `openapi`
- `housekeeping`: garbage collector, namespace deletion, serving of CRDs
- `api`: `Harbor`, which answers a call; `server`: the same over HTTP

Nothing here knows about Pilotage's own kinds. Of the rest of Pilotage, harbor uses the selectors and the wire types of
`kube`, and the handling of private files.
"""
