"""llama-server, except for models that are bad: with `half` in it, a model fails every second request; with `hangs`, it
begins each answer and says nothing. Both are healthy.
"""

import itertools
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pilotage.agent.launch import programs

OPTIONS = dict(itertools.pairwise(sys.argv))
WHOLE = b'{"choices": [{"message": {"content": "I am not well"}}]}'
STREAM = b'data: {"choices": [{"delta": {"content": "I am not well"}}]}\n\ndata: [DONE]\n\n'
IDLE = b"llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
numbers = itertools.count()


class Half(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        models = json.dumps({"data": [{"id": OPTIONS["--alias"]}]}).encode()
        self.answer(200, IDLE if self.path == "/metrics" else models)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(500 if next(numbers) % 2 else 200, STREAM if asked["stream"] else WHOLE)

    def answer(self, status, said):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


class Hangs(Half):
    def do_POST(self):
        self.send_response(200)
        self.end_headers()
        threading.Event().wait()


class Server(ThreadingHTTPServer):
    request_queue_size = 128


def main():
    model = Path(OPTIONS["--model"]).read_bytes()
    for word, handler in ((b"half", Half), (b"hangs", Hangs)):
        if word in model:
            Server((OPTIONS["--host"], int(OPTIONS["--port"])), handler).serve_forever()
    program = programs.find("llama.cpp")
    os.execv(program.path, [program.path, *sys.argv[1:]])


main()
