"""Who asks, and who may: users, tokens, RBAC, reviews of access. No I/O."""
