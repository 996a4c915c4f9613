"""An endpoint on loopback that serves a folder and does wrong what the first word of a path says:
/truncate/..., /wrong/..., /slow/..., /huge/..., /drip/..., /foreign/..., /redirect/..., /error/...,
/silent/... (nothing at all), /loris/... (a header without an end), /old/... (of what is numbered,
the one before), /other/... (what other jobs have under that number);
/parts-HOW/... gives lists of pieces as they are, and does HOW with all else, or what only parts know:
/parts-half/... (of a shorter file), /parts-shifted/... (from the byte after), /parts-paced/... (each
after a moment; so does each name that begins with it), /parts-whole/... (no parts, always the whole); /unlisted/... has no lists of pieces;
/mortal/... gives two parts of a file and then breaks off for ever;
/good/... does nothing wrong, /norange/... ignores ranges and breaks off in the middle once.
/switch/... is what the last /set/HOW asked for; /count tells how many answers that did wrong.
Prints its port. Goes when its standard input closes. Not a test: others start it."""

import http.server
import os
import re
import socketserver
import sys
import threading
import time

ROOT = sys.argv[1]
SEGMENT = 4  # steps of one, in all that is served
broken_once = set()
switch = {"how": "good", "count": 0, "left": 2}


class Mirror(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, body, length=None, code=200, extra=()):
        self.send_response(code)
        for name, value in extra:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length is not None

    def content(self, path):
        whole = os.path.join(ROOT, path)
        if ".." in path or not os.path.isfile(whole):
            return None
        with open(whole, "rb") as file:
            return file.read()

    def ranged(self, body):
        """The part of body that was asked for, and the headers that say so."""
        asked = self.headers.get("Range", "")
        if not asked.startswith("bytes="):
            return body, 200, ()
        first, _, last = asked[6:].partition("-")
        first, last = int(first), min(int(last or len(body)), len(body) - 1)
        if first >= len(body):
            return b"", 416, ()
        said = "bytes %d-%d/%d" % (first, last, len(body))
        return body[first:last + 1], 206, (("Content-Range", said),)

    def do_GET(self):
        try:
            self.serve()
        except OSError:
            pass

    def before(self, path):
        """The same of the number before; of the first one, the first."""
        return re.sub(r"(segments|checkpoints)/(\d+)", lambda found: "%s/%0*d" % (
            found[1], len(found[2]), max(0, int(found[2]) - (SEGMENT if "check" in found[1] else 1))), path)

    def elsewhere(self, path):
        """The same of the job that comes next in this folder."""
        jobs = sorted(os.listdir(os.path.join(ROOT, "v1/jobs")))
        parts = path.split("/")
        if parts[:2] != ["v1", "jobs"] or len(parts) < 4 or parts[2] not in jobs:
            return path
        parts[2] = jobs[(jobs.index(parts[2]) + 1) % len(jobs)]
        return "/".join(parts)

    def control(self, how, path):
        if how == "set":
            switch.update(how=path, count=0)
        return self.answer(str(switch["count"]).encode())

    def loris(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
        while True:
            self.wfile.write(b"a")
            self.wfile.flush()
            time.sleep(0.05)

    def serve(self):
        how, _, path = self.path[1:].partition("/")
        if how in ("set", "count"):
            return self.control(how, path)
        if how == "switch":
            how = switch["how"]
            switch["count"] += how != "good"
        if how.startswith("parts-"):
            how = "good" if path.endswith(".pieces") else how[6:]
        if how == "unlisted" and path.endswith(".pieces"):
            return self.answer(b"no", code=404)
        if how == "mortal" and "Range" in self.headers:
            switch["left"] -= 1
            if switch["left"] < 0:
                self.close_connection = True
                return None
        if how.startswith("paced"):
            time.sleep(0.1)
        if how == "silent":
            return time.sleep(1000)
        if how == "loris":
            return self.loris()
        if how == "old":
            path = self.before(path)
        if how == "other":
            path = self.elsewhere(path)
        body = self.content(path)
        if how == "error":
            return self.answer(b"no", code=503)
        if how == "redirect":
            return self.answer(b"", code=302, extra=(("Location", "/good/" + path),))
        if body is None:
            return self.answer(b"no", code=404)
        if how == "wrong":
            body = body[:-1] + bytes([body[-1] ^ 1])
        if how == "foreign":
            body = b"\0" * len(body)
        if how == "half":
            body = body[:4]
        if how == "shifted":
            body = body[1:] + body[:1]
        if how == "whole":
            return self.answer(body)
        if how == "huge":
            return self.huge()
        if how in ("slow", "drip"):
            return self.drip(*self.ranged(body), how == "slow")
        if how == "norange" and path not in broken_once:
            broken_once.add(path)
            return self.answer(body[: len(body) // 2], length=len(body))
        if how == "norange":
            return self.answer(body)
        part, code, extra = self.ranged(body)
        if how == "truncate":
            return self.answer(part[: (len(part) + 1) // 2], length=len(part) + 1, code=code,
                               extra=extra)
        if how == "cut" and len(part) > 4096:
            return self.answer(part[:4096], length=len(part), code=code, extra=extra)
        return self.answer(part, code=code, extra=extra)

    def huge(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 65536)

    def drip(self, body, code, extra, silent):
        self.send_response(code)
        for name, value in extra:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(len(body)):
            self.wfile.write(body[at : at + 1])
            self.wfile.flush()
            time.sleep(1000 if silent else 0.05)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Mirror)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
