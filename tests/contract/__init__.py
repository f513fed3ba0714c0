"""One suite for two servers: what kube-apiserver answered is recorded, and harbor must answer the same.

`cases` holds the requests, `recorded` the answers of the real server, `deviations` where harbor differs on purpose.
`python -m tests.contract.record` asks the real server again.
"""
