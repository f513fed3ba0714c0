"""Requests over connections that are used again, and replaced where the server has closed them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest

from controlplane.access import ApiError, wait_for
from controlplane.connections import Connections

ANSWERS = {
    b"/there": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    b"/absent": b'HTTP/1.1 404 Not Found\r\nContent-Length: 21\r\n\r\n{"reason":"NotFound"}',
}


class Server:
    """Answers each request, and counts connections. `hang_up` closes all of them without a word."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.accepted: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.listener.getsockname()[1], timeout=5)

    def hang_up(self) -> None:
        for connection in self.accepted:
            connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.close()
        for connection in self.accepted:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    @staticmethod
    def _answer(connection: socket.socket) -> None:
        with suppress(OSError):  # either side has hung up
            while request := connection.recv(65536):
                connection.sendall(ANSWERS[request.split()[1]])


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as made:
        yield made


def test_one_connection_is_enough_for_requests_one_after_the_other_also_where_one_is_refused(server: Server) -> None:
    with closing(Connections(server.connect)) as connections:
        assert connections.exchange("GET", "/there") == b"{}"
        with pytest.raises(ApiError, match="NotFound"):
            connections.exchange("GET", "/absent")
        assert connections.exchange("GET", "/there") == b"{}"
        assert len(server.accepted) == 1


def test_a_connection_that_the_server_has_closed_costs_no_request(server: Server) -> None:
    with closing(Connections(server.connect)) as connections:
        connections.exchange("GET", "/there")
        server.hang_up()
        wait_for("new connection", lambda: connections.exchange("GET", "/there") and len(server.accepted) == 2)


def test_after_close_there_are_new_ones(server: Server) -> None:
    connections = Connections(server.connect)
    connections.exchange("GET", "/there")
    connections.close()
    with closing(connections):
        connections.exchange("GET", "/there")
        assert len(server.accepted) == 2
