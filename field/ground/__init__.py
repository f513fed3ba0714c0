"""A small network of its own for traffic tests: a process that leaves the network of the machine for an empty one.

An API server refuses loopback addresses in EndpointSlices, so real traffic needs others; here they are on a loopback
that nothing else uses, and nothing can leave it. In this process run the servers behind Services (`backends`), the
clients (`load`), and the Envoy. Of the world outside it has files, unix sockets and what it opened before it left:
through that the `relay` reaches Contour.

`python -m field.ground SOCKET CONTOUR-PORT` serves commands, one JSON object in a line each, on a unix socket, until
it is killed. `field.edge` starts and drives it.
"""
