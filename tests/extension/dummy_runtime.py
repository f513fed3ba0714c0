"""A whole runtime in one file: a few lines of Python as the server program."""

from __future__ import annotations

from pilotage.serving.runtimes.contract import HostLaunch, PodLaunch, ServerContainer, ServingRuntime
from pilotage.serving.runtimes.stop import once_idle

SERVER = """
import http.server, sys
ANSWERS = {"/ready": b"ok", "/metrics": b"dummy_active 0\\ndummy_queued 0\\n"}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ANSWERS.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b""))); self.end_headers(); self.wfile.write(body or b"")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
REQUESTS = ("dummy_active", "dummy_queued")


def _in_pod(launch: PodLaunch) -> ServerContainer:
    return ServerContainer(
        image="dummy:1",
        command=["dummy"],
        args=[launch.model, launch.alias, str(launch.port)],
        stop=once_idle(launch.drain_seconds, launch.port, REQUESTS),
    )


def _on_host(launch: HostLaunch) -> list[str]:
    return [launch.program, "-c", SERVER, launch.host, str(launch.port), launch.model]


RUNTIME = ServingRuntime(
    name="dummy",
    port=7777,
    in_pod=_in_pod,
    on_host=_on_host,
    health="/ready",
    lists_models=False,
    request_metrics=REQUESTS,
    program="python3",
)
