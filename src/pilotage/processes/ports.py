"""Ports of this machine: which are free, and on which somebody listens."""

import socket

CONNECT_SECONDS_MAX = 1.0


def free_port(host: str, port: int = 0) -> int:
    """The port, if a server could listen on it now; for 0 one that is free. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        probe.bind((host, port))
        probe.listen()
        found: int = probe.getsockname()[1]
        return found


def is_listening(port: int) -> bool:
    """Whether somebody answers on a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(CONNECT_SECONDS_MAX)
        return probe.connect_ex(("127.0.0.1", port)) == 0
