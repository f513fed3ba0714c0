"""Small servers with bad habits, as scripts for `python -c`. Each answers 200 on its PORT."""

_SERVE = """
import http.server, os, signal, subprocess, sys, threading, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
def serve():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""

PLAIN = _SERVE + "serve()"
DEAF = _SERVE + "signal.signal(signal.SIGTERM, signal.SIG_IGN); serve()"
"""It does not listen to SIGTERM."""
FORKING = (
    _SERVE
    + """
def child(): time.sleep(1000)
for leave in (lambda: None, lambda: os.setpgid(0, 0), os.setsid):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN); leave(); child()
serve()
"""
)
"""It has three children that outlive it: one in its group, one in another group, one in another session."""
ESCAPING = (
    _SERVE
    + """
script = "import os, signal, sys, time; signal.signal(15, signal.SIG_IGN)\\n" \\
    "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(1000)"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", script, sys.argv[1]], {})
    os._exit(0)
serve()
"""
)
"""A grandchild of it leaves session, parent and environment; its pid is in the file that the first argument names."""
SICKLY = (
    _SERVE
    + """
flag = sys.argv[1]
class Answer(Answer):
    def do_GET(self):
        if os.path.exists(flag):
            self.send_response(500); self.send_header("Content-Length", "0"); self.end_headers()
        else:
            super().do_GET()
serve()
"""
)
"""It answers 500 as long as the file is there that its first argument names."""
