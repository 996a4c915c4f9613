"""An endpoint of a chain that stands before a good one and, while `wrong` is set, answers some
requests wrongly, in every way in turn: which ones follows from a seed. Not a test."""

import collections
import http.server
import json
import random
import socketserver
import threading
import time
import urllib.request

from town import SOAK

SHARE = 1 / (40 if SOAK else 150)  # of requests


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.server.owner.answer(self, sent)
        except OSError:
            pass

    def say(self, body, code=200, length=None):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length is not None


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class Endpoint:
    """counts: how often each way was taken."""

    HOW = ("cut", "truncated", "garbage", "unavailable", "refusing", "old", "empty", "slow", "lost",
           "loris")

    def __init__(self, port):
        self.behind = "http://127.0.0.1:%d" % port
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.owner = self
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        self.wrong, self.requests, self.numbers = False, 0, random.Random(39)
        self.counts, self.first = collections.Counter(), {}
        self.lock = threading.Lock()

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def fetch(self, sent):
        request = urllib.request.Request(self.behind, sent, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=240) as reply:
            return reply.read()

    def choose(self):
        with self.lock:
            self.requests += 1
            if not self.wrong or self.numbers.random() >= SHARE:
                return None
            how = self.HOW[sum(self.counts.values()) % len(self.HOW)]
            self.counts[how] += 1
            return how

    def answer(self, handler, sent):
        how = self.choose()
        if how == "cut":
            handler.close_connection = True
            return None
        if how == "unavailable":
            return handler.say(b"busy", code=503)
        if how == "garbage":
            return handler.say(b"<html>welcome</html>")
        request = json.loads(sent)
        single = isinstance(request, dict)
        if how == "refusing" and single:
            return handler.say(json.dumps({"jsonrpc": "2.0", "id": request.get("id"), "error": {
                "code": -32005, "message": "limit exceeded"}}).encode())
        if how == "empty" and single:
            return handler.say(json.dumps({"jsonrpc": "2.0", "id": request.get("id"),
                                           "result": None}).encode())
        body = self.fetch(sent)
        if how == "old" and single:
            # The answer to the first such request.
            what = json.dumps([request.get("method"), request.get("params")])
            known = json.loads(self.first.setdefault(what, body))
            known["id"] = request.get("id")
            return handler.say(json.dumps(known).encode())
        if how == "lost":  # done, but nobody hears of it
            handler.close_connection = True
            return None
        if how == "truncated":
            return handler.say(body[:len(body) // 2], length=len(body))
        if how == "slow":
            time.sleep(1)
        if how == "loris":
            return self.drip(handler, body)
        if single:
            self.first.setdefault(json.dumps([request.get("method"), request.get("params")]), body)
        return handler.say(body)

    @staticmethod
    def drip(handler, body):
        """A byte at a time, until nobody listens or a good part is sent."""
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for at in range(min(len(body), 100)):
            handler.wfile.write(body[at:at + 1])
            handler.wfile.flush()
            time.sleep(0.02)
        handler.wfile.write(body[100:])
