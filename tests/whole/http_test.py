"""Goal: every server of the house refuses what two readers could read in two ways, and names that are
not this machine's; says what HTTP says of parts, tags and tokens; and serves a caller that asks
while sixteen addresses hold as many connections as they get and drip. Method: all kinds of servers,
raw sockets from many loopback addresses."""

import os
import resource
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from by_ledger_test import TOKEN, serve_job  # noqa: E402
from delivery_test import train  # noqa: E402
from town import Town  # noqa: E402

ADDRESSES = ["127.0.0.%d" % number for number in range(2, 18)]
EACH = 17
HONEST_S = 8   # for an honest answer, below HTTP_SERVER_HEAD_MS; a busy machine needs some


def connect(port, address="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=stage.WAIT_MAX_S,
                                    source_address=(address, 0))


def ask(port, text, closes=True):
    """All that comes until the server closes; else what comes first."""
    with connect(port) as line:
        line.sendall(text.replace("\n", "\r\n").encode("latin-1"))
        got = b""
        while True:
            more = line.recv(1 << 16)
            got += more
            if not more or not closes:
                break
    return got.decode("latin-1")


def get(port, path, *headers, method="GET", host="localhost", body=""):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + host, "Connection: close", *headers]
    return ask(port, "\n".join(lines) + "\n\n" + body)


def code(reply):
    assert reply.count("HTTP/1.1 ") == 1, reply
    return int(reply.split(" ")[1])


def header(reply, name):
    lines = reply.split("\r\n\r\n")[0].split("\r\n")[1:]
    return [line.split(": ", 1)[1] for line in lines if line.lower().startswith(name.lower() + ":")]


def refuses_what_two_readers_read_differently(port):
    second = "GET /second HTTP/1.1\nHost: localhost\n\n"
    for words in ("Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n",
                  "Transfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n",
                  "Content-Length: 0\nContent-Length: %d\n\n" % len(second),
                  "Content-Length: 0\nContent-Length: 0\n\n",
                  "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n0\n\n"):
        for method in ("GET", "PUT"):
            reply = ask(port, "%s / HTTP/1.1\nHost: localhost\n%s%s" % (method, words, second))
            assert code(reply) == 400, (method, words, reply)
    assert code(ask(port, "GET / HTTP/1.1\n\n")) == 400
    assert code(ask(port, "GET / HTTP/1.1\nHost: localhost\nHost: localhost\n\n")) == 400


def knows_its_names(port):
    for host in ("evil.example", "evil.example:%d" % port, "localhost.evil.example", "127.0.0.1.nip.io"):
        assert code(get(port, "/", host=host)) == 421, host
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:%d" % port, "[::1]:80"):
        assert code(get(port, "/", host=host)) in (200, 404), host


def speaks_of_parts_and_tags(port, path):
    whole = get(port, path)
    size = int(header(whole, "Content-Length")[0])
    for tag in header(whole, "ETag"):
        for known in (tag, "W/" + tag, '"x", ' + tag, "*"):
            reply = get(port, path, "If-None-Match: " + known)
            assert code(reply) == 304 and header(reply, "ETag") == [tag], reply
            assert reply.endswith("\r\n\r\n"), reply
        assert code(get(port, path, "Range: bytes=0-3", "If-Range: " + tag)) == 206
    assert code(get(port, path, 'If-None-Match: "x"')) == 200
    assert code(get(port, path, "Range: bytes=0-3")) == 206
    assert code(get(port, path, "Range: bytes=0-3", 'If-Range: "x"')) == 200
    assert code(get(port, path, "Range: bytes=0-3",
                    "If-Range: Sun, 06 Nov 1994 08:49:37 GMT")) == 200
    reply = get(port, path, "Range: bytes=%d-" % size)
    assert code(reply) == 416 and header(reply, "Content-Range") == ["bytes */%d" % size], reply


def takes_pushes_whole_and_by_the_token(port, job):
    def put(path, *headers):
        return get(port, path, "Content-Length: 3", *headers, method="PUT", body="abc")
    path = "/v1/jobs/%s/checkpoints/000000000004.pieces" % job
    right = "Authorization: Bearer " + TOKEN
    for words in ((), ("Authorization: Bearer wrong",), ("Authorization: Basic eA==",)):
        reply = put(path, *words)
        assert code(reply) == 401 and header(reply, "WWW-Authenticate") == ["Bearer"], reply
    assert code(put(path, right, "Content-Range: bytes 0-2/3")) == 400
    for name in (path + "%00", "/v1/%00/" + path, "/v1/a%00.pieces", "/..%2f" + path):
        assert code(put(name, right)) in (403, 404), name
    assert code(get(port, path)) == 404
    assert code(put(path, right)) == 201
    assert get(port, path).endswith("abc")


class Drips:
    """Sixteen addresses with as many connections as they get, a byte a second on each."""

    def __init__(self, port):
        self.port, self.lines, self.over = port, [], threading.Event()
        for address in ADDRESSES:
            for _ in range(EACH):
                line = connect(port, address)
                line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
                self.lines.append(line)
        self.thread = threading.Thread(target=self.drip)
        self.thread.start()

    def drip(self):
        while not self.over.wait(1):
            for line in self.lines:
                try:
                    line.sendall(b"a")
                except OSError:
                    pass

    def here(self):
        """Lines that the server has not closed."""
        count = 0
        for line in self.lines:
            try:
                line.setblocking(False)
                count += line.recv(1) != b""
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def close(self):
        self.over.set()
        self.thread.join()
        for line in self.lines:
            line.close()


def outlives_drips(port, path):
    drips = Drips(port)
    try:
        for _ in range(5):
            now = time.monotonic()
            assert code(get(port, path)) in (200, 404, 503)
            assert time.monotonic() - now < HONEST_S
        end = time.monotonic() + stage.WAIT_MAX_S
        while drips.here() > 0:
            assert time.monotonic() < end, drips.here()
            time.sleep(0.5)
    finally:
        drips.close()


def every_server_is_sound():
    with Town(["client", "solver", "verifier"]) as here:
        job, bundle = train(here, "first")
        ports = [stage.free_port(), stage.free_port()]
        pushed = int(serve_job(here, job).rsplit(":", 1)[1])
        solver, place = here.serve("solver", bundle)
        node = here.start("verifier", "verifier", "node", "--threads", "1",
                          "--serve", "127.0.0.1:%d" % ports[0], "--page",
                          "127.0.0.1:%d,status.example" % ports[1])
        here.until(lambda: "started" in node.said(), "the node runs")
        served = int(place.rsplit(":", 1)[1])
        name = here.ask("client", "job", "show", job)["id"]
        assert code(get(ports[1], "/", host="status.example")) == 200
        for port in (pushed, served, *ports):
            refuses_what_two_readers_read_differently(port)
            knows_its_names(port)
        for port in (served, ports[1]):
            policy = header(get(port, "/"), "Content-Security-Policy")
            assert len(policy) == 1 and "default-src 'none'" in policy[0], policy
        assert header(get(served, "/v1/roots/" + name), "ETag") == ['"%s"' % name]
        for port in (pushed, served):
            speaks_of_parts_and_tags(port, "/v1/roots/" + name)
        takes_pushes_whole_and_by_the_token(pushed, name)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(outlives_drips, (pushed, served, *ports),
                          ("/v1/roots/" + name, "/v1/roots/" + name, "/v1/none", "/health")))
        assert solver.stop() == 0 and node.stop() == 0


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    sys.exit(stage.main([every_server_is_sound]))
