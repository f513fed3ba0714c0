"""Routes: how requests reach an endpoint, what is known about a route, and how traffic moves between Services.

- `contract` has the values that all of this exchanges: `Mix`, `RouteStatus`, `ExpectedRoute`, `ProxyObserver`.
- `routers` has a file for each kind of route: the object that is written, and what its status means.
- `proxies` finds and reads Envoys, `envoy` parses their answers, `programmed` compares: `observe` is the proof.
- `shift` decides the next step from one mix to another, `drain` when requests in flight have had their time.

Nothing here writes to the API.
"""
