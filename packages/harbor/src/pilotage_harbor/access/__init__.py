"""Authentication tokens and authorization: RBAC, access reviews. No I/O."""
