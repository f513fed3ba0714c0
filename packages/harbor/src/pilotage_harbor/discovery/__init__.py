"""The answers to clients that ask what is served, at which version, and whether the server is ready."""
