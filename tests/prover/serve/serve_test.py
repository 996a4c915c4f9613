"""Goal: a solver serves and publishes the bundle's own bytes under their names and roots, strangers
get nothing else, and no client can block the server.
Method: a real server on a free port; requests by http.client and by raw sockets."""

import hashlib
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proofs/reader"))
sys.dont_write_bytecode = True

import browser  # noqa: E402
import processes  # noqa: E402
import reader  # noqa: E402
import tap  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
SANITIZED = os.path.basename(os.path.dirname(LOCKSTEP)) == "asan"
DATA = "fixtures/text/village.u8"
WAIT_MAX_S = 240  # for what must come; only a machine that is very busy needs so much

folder = tempfile.mkdtemp(prefix="lockstep-test-")


def path(name):
    return os.path.join(folder, name)


def lockstep(*words, wanted=0):
    done = subprocess.run([LOCKSTEP, *words, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert done.returncode == wanted, (words, done.returncode, done.stdout, done.stderr[-400:])
    return json.loads(done.stdout)


class Server:
    """Closes no connection, unless the test wants it."""

    def __init__(self, *words):
        if "--idle-timeout" not in words:
            words += ("--idle-timeout", "3600")
        self.process = processes.start(
            [LOCKSTEP, "prover", "serve", path("run"), "--serve", "127.0.0.1:0", "--threads", "1", "--json",
             *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()[-400:]
        self.port = int(json.loads(line)["serving"].rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_MAX_S) == 0
        self.process.stdout.close()
        self.process.stderr.close()

    def get(self, name, method="GET", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_MAX_S)
        connection.request(method, name, body=body, headers=headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content, response.headers


def read(name):
    with open(name, "rb") as file:
        return file.read()


def roots_of_steps():
    steps = lockstep("bundle", "steps", path("run"), "--count", "1000")["steps"]
    return [bytes.fromhex(step["state_root"]) for step in steps]


def losses_of_steps():
    """As section 11.2 of FORMATS has them."""
    steps = lockstep("bundle", "steps", path("run"), "--count", "1000")["steps"]
    return [struct.pack(">f", step["loss"]) + b"\x7f\xc0\0\0" * 2 for step in steps], [
        step["nanoseconds"] for step in steps]


def every_name_gives_the_bundles_bytes():
    with Server() as server:
        code, content, _ = server.get("/v1/jobs.json")
        assert code == 200
        job = json.loads(content)["jobs"][0]
        assert (job["steps"], job["steps_done"], job["segments"]) == (22, 22, 6), job
        place = "/v1/jobs/%s/" % job["job"]
        assert server.get(place + "job")[1] == read(path("small.job"))
        assert server.get("/v1/roots/" + job["job"])[1] == read(path("small.job"))
        roots = roots_of_steps()
        losses, spent = losses_of_steps()
        segments = lockstep("bundle", "segments", path("run"))["segments"]
        for number, segment in enumerate(segments):
            wanted = b"".join(roots[4 * number:4 * number + 4])
            assert server.get(place + "segments/%d" % number)[1] == wanted
            assert server.get("/v1/roots/" + segment["root"])[1] == wanted
            said = server.get(place + "segments/%d.losses" % number)[1]
            assert len(said) == 20 * len(losses[4 * number:4 * number + 4])
            for at, loss in enumerate(losses[4 * number:4 * number + 4]):
                assert said[20 * at:20 * at + 12] == loss
                assert int.from_bytes(said[20 * at + 12:20 * at + 20], "big") >= spent[
                    4 * number + at] > 0
        assert job["checkpoints"][-1] == 22
        for step in job["checkpoints"]:
            name = "checkpoints/%012d.safetensors" % step
            code, content, headers = server.get(place + name)
            assert code == 200 and content == read(path("run/" + name))
            assert headers["ETag"] == '"%s"' % roots[step - 1].hex()
            assert server.get("/v1/roots/" + roots[step - 1].hex())[1] == content
        data = lockstep("job", "show", path("small.job"))["data"][0]
        assert server.get("/v1/roots/" + data)[1] == read(DATA)
        assert server.get("/v1/roots/%s.pieces" % data)[1] == pieces_of(read(DATA))


def pieces_of(data):
    """docs/FORMATS.md, 11.1: the hashes of the pieces of data, in a row."""
    return b"".join(
        reader.tree_root([reader.leaf_hash(leaf) for leaf in reader.leaves_of(data[at:at + 8192])])
        for at in range(0, len(data), 8192))


def named(name, **tensors):
    """A .safetensors of byte tensors."""
    header, payload = {}, b""
    for key, content in tensors.items():
        header[key] = {"dtype": "U8", "shape": [len(content)],
                       "data_offsets": [len(payload), len(payload) + len(content)]}
        payload += content
    text = json.dumps(header).encode()
    with open(path(name), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + payload)
    return path(name)


def a_tensor_of_a_named_file_is_served_alone():
    file = named("named.safetensors", other=b"x" * 1001, data=read(DATA), last=b"y" * 7)
    root = lockstep("job", "show", path("small.job"))["data"][0]
    with Server("--data", file) as server:
        assert server.get("/v1/roots/" + root)[1] == read(DATA)
        code, content, _ = server.get("/v1/roots/" + root, headers={"Range": "bytes=5-1030"})
        assert code == 206 and content == read(DATA)[5:1031]
        code, content, _ = server.get("/v1/roots/%s.pieces" % root, headers={"Range": "bytes=32-63"})
        assert code == 206 and content == pieces_of(read(DATA))[32:64]
    lockstep("prover", "publish", path("run"), "--data", file, "--out", path("published-named"))
    assert read(path("published-named/v1/roots/" + root)) == read(DATA)
    assert read(path("published-named/v1/roots/%s.pieces" % root)) == pieces_of(read(DATA))
    lockstep("audit", path("run"), "--data", file)
    lie = bytearray(read(DATA))
    lie[1000] ^= 1
    lockstep("audit", path("run"), "--data", named("lie.safetensors", data=bytes(lie)), wanted=2)
    with Server("--data", path("lie.safetensors")) as server:  # the bundle remembers the other file
        assert server.get("/v1/roots/" + root)[1] == read(DATA)


def a_browser_finds_a_page():
    with Server() as server:
        job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]["job"]
        code, content, headers = server.get("/")
        page = content.decode()
        assert code == 200 and headers["Content-Type"] == "text/html; charset=utf-8", headers
        assert "--mirror" in page and "22 of 22" in page and "<script" not in page, page
        links = re.findall('<a href="([^"]*)"', page)
        assert links == ["/v1/jobs/%s/job" % job, "/v1/jobs.json"], links
        assert all(server.get(link)[0] == 200 for link in links)
        browser.see("http://127.0.0.1:%d/" % server.port, refreshes=False)


def what_is_not_there_is_not_found():
    with Server("--no-traces") as server:
        job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]["job"]
        place = "/v1/jobs/%s/" % job
        for name in ("/v1", "/v1/jobs", "/v1/jobs/", place, place + "journal.db",
                     place + "../run/journal.db", "/../../../../etc/passwd", "//etc/passwd",
                     "/v1/jobs/" + job.upper() + "/job", "/v1/jobs/" + job[:-1] + "/job",
                     "/v1/roots/" + "0" * 64, "/v1/roots/" + job + "0",
                     "/v1/roots/%s.pieces" % job, "/v1/roots/%s.piece" % ("0" * 64), place + "segments/6",
                     place + "segments/00", place + "segments/6.losses", place + "segments/1.loss",
                     place + "segments/.losses", place + "segments/-1", place + "segments/",
                     place + "segments/99999999999999999999", place + "checkpoints/4.safetensors",
                     place + "checkpoints/000000000003.safetensors",
                     place + "checkpoints/000000000004.safetensor", place + "trace/3/list/trace",
                     "/%2e%2e/%2e%2e/etc/passwd", "/v1/jobs/" + "a" * 5000):
            code, content, _ = server.get(name)
            assert code in (404, 414, 431), (name, code)
            assert folder.encode() not in content, content


def a_pipe_in_place_of_a_checkpoint_holds_nobody_up():
    name = "checkpoints/%012d.safetensors" % 22
    with Server() as server:
        job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]["job"]
        os.rename(path("run/" + name), path("kept"))
        os.mkfifo(path("run/" + name))
        try:
            assert server.get("/v1/jobs/%s/%s" % (job, name))[0] == 404
        finally:
            os.rename(path("kept"), path("run/" + name))
        assert server.get("/v1/jobs/%s/%s" % (job, name))[0] == 200


def only_reading_is_served_and_vouches_are_taken_in():
    """A bundle that stands on no ledger has no keeper."""
    with Server() as server:
        for method in ("POST", "DELETE", "PATCH", "OPTIONS"):
            code, _, headers = server.get("/v1/jobs.json", method, body=b"x" * 100)
            assert code == 405 and headers["Allow"] == "GET, HEAD, PUT", (method, code)
        vouch = bytes(range(32)) + b"x" * 65
        good = "/vouch/" + vouch[:32].hex()
        for name in ("/v1/jobs.json", "/vouch/", good[:-1], good + "0", "/v1" + good):
            assert server.get(name, "PUT", body=vouch)[0] == 404, name
        for body, said in ((vouch, b"no job"), (vouch[:-1], b"no job"), (vouch[:32], b"97 bytes"),
                           (b"", b"97 bytes"), (b"y" + vouch[1:], b"another segment")):
            code, content, _ = server.get(good, "PUT", body=body)
            assert code == 403 and said in content, (body, code, content)
        for body in (vouch + b"x" * (32 + 1024 + 1 - 97), b"x" * 10000000):  # no more than that is read
            try:
                assert server.get(good, "PUT", body=body)[0] == 403
            except (http.client.HTTPException, OSError):
                pass
        assert not os.path.exists(os.path.join(path("run"), "vouches"))
        code, content, headers = server.get("/v1/jobs.json", "HEAD")
        assert code == 200 and content == b"" and int(headers["Content-Length"]) > 10


def ranges_are_parts():
    with Server() as server:
        job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]["job"]
        whole = read(path("small.job"))
        name = "/v1/jobs/%s/job" % job
        for text, part in (("0-0", whole[:1]), ("5-9", whole[5:10]), ("7-", whole[7:]),
                           ("-4", whole[-4:]), ("0-99999999", whole), ("-99999999", whole)):
            code, content, headers = server.get(name, headers={"Range": "bytes=" + text})
            assert (code, content) == (206, part), (text, code)
            assert headers["Content-Range"].endswith("/%d" % len(whole))
        for text in ("%d-" % len(whole), "-0", "99999999-999999999"):
            assert server.get(name, headers={"Range": "bytes=" + text})[0] == 416, text
        for text in ("5-4", "x", "-", "1-2,4-5", "1 - 2", "0x1-2", ""):
            assert server.get(name, headers={"Range": "bytes=" + text})[0] == 200, text
        head = server.get(place_of_checkpoint(server), headers={"Range": "bytes=8-107"})
        assert head[0] == 206 and len(head[1]) == 100


def place_of_checkpoint(server):
    job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]
    return "/v1/jobs/%s/checkpoints/%012d.safetensors" % (job["job"], job["checkpoints"][0])


def queries_about_any_step_are_answered():
    with Server() as server:
        job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]["job"]
        place = "/v1/jobs/%s/trace/" % job
        for step in (0, 7, 21):
            code, reply, _ = server.get(place + "%d/list/next" % step)
            assert code == 200
            # The items below the tree's root, as RFC 6962 hashes them, under the header of states.
            items = [reply[at:at + 32] for at in range(32, len(reply), 32)]
            level = [hashlib.sha256(b"\0" + item).digest() for item in items]
            while len(level) > 1:
                level = [hashlib.sha256(b"\1" + level[at] + level[at + 1]).digest()
                         if at + 1 < len(level) else level[at] for at in range(0, len(level), 2)]
            assert level[0] == reply[:32]
            header = (b"lockstep.state.v1".ljust(32, b"\0") + level[0] + bytes(8)
                      + len(items).to_bytes(8, "big"))
            assert hashlib.sha256(header).digest() == roots_of_steps()[step]
            assert server.get(place + "%d/tensor/0" % step)[0] == 200
        for name in ("22/list/trace", "0/list/none", "0/tensor/999999", "0/tensor/-1", "x/tensor/0",
                     "0/diverged", "0/", "0"):
            assert server.get(place + name)[0] == 404, name


def a_process_without_a_key_answers():
    """It is confined, it may be killed, and it ends with its server."""
    with Server() as server:
        job = json.loads(server.get("/v1/jobs.json")[1])["jobs"][0]["job"]
        name = "/v1/jobs/%s/trace/7/list/trace" % job
        replies, children = [], []
        for _ in range(3):
            replies.append(server.get(name)[:2])
            children.append(processes.child_of(server.process, b"--lockstep-tracer"))
            if not SANITIZED:
                about = processes.fields_of("/proc/%d/status" % children[-1])
                assert (about["Seccomp"], about["NoNewPrivs"]) == ("2", "1"), about
            os.kill(children[-1], signal.SIGKILL)
        assert replies[0][0] == 200 and replies == 3 * replies[:1], replies
        assert len(set(children)) == 3, children
        assert server.get(name)[:2] == replies[0]
        child = processes.child_of(server.process, b"--lockstep-tracer")
    assert not os.path.exists("/proc/%d" % child)


def slow_clients_are_closed_and_others_are_served():
    with Server("--idle-timeout", "1", "--connections-per-client", "100") as server:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for one in slow:
            try:
                one.sendall(b"GET /v1/jobs.json HTT")
            except OSError:
                pass  # on a busy machine it may have been given up already
        assert get_at_last(server, "/v1/jobs.json")[0] == 200
        for one in slow:
            one.settimeout(WAIT_MAX_S)
            try:
                while one.recv(4096):
                    pass
            except ConnectionError:
                pass
            one.close()


def get_at_last(server, name):
    """Who is quick is served. On a busy machine even a test may be too slow, at times."""
    until = time.monotonic() + WAIT_MAX_S
    while True:
        try:
            return server.get(name)
        except (OSError, http.client.HTTPException):
            if time.monotonic() > until:
                raise


def one_client_has_so_many_connections():
    """Who is over the limit is closed, and the rest are served. Later the server closes those too:
    they have not asked for ten seconds. A machine that is as slow as that tries again."""
    with Server("--connections-per-client", "3") as server:
        until = time.monotonic() + WAIT_MAX_S
        while not only_some_are_served(server, 12, 3):
            assert time.monotonic() < until


def only_some_are_served(server, count, most):
    lines = {socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)}
    closed = set()
    while len(closed) < count - most:
        ready, _, _ = select.select(lines - closed, [], [], WAIT_MAX_S)
        assert ready, "%d are closed" % len(closed)
        closed.update(ready)
    served = sum(is_answered(line) for line in lines - closed)
    for line in lines:
        line.close()
    return served == most


def is_answered(line):
    line.settimeout(WAIT_MAX_S)
    try:
        line.sendall(b"GET /v1/jobs.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return line.recv(12) == b"HTTP/1.1 200"
    except ConnectionError:
        return False


def published_files_are_what_is_served():
    first = lockstep("prover", "publish", path("run"), "--data", DATA, "--out", path("tree"))
    again = lockstep("prover", "publish", path("run"), "--data", DATA, "--out", path("tree"))
    assert first["written"] > 10 and again["written"] == 1 and again["kept"] == first["written"] - 1
    found = 0
    with Server() as server:
        for place, _, names in os.walk(path("tree")):
            for name in names:
                full = os.path.join(place, name)
                assert os.stat(full).st_mode & 0o444 == 0o444, "a web server may not read " + full
                code, content, _ = server.get("/" + os.path.relpath(full, path("tree")))
                assert code == 200
                if name != "jobs.json":
                    assert content == read(full), full
                    found += 1
    assert found >= first["written"]


def encrypted_bundles_are_not_shown():
    shutil.copy(path("small.job"), path("encrypted.job"))
    lockstep("prover", "run", path("encrypted.job"), "--bundle", path("encrypted"), "--data", DATA,
             "--threads", "1", "--encrypt", "--bundle-key", path("a.key"))
    done = subprocess.run([LOCKSTEP, "prover", "serve", path("encrypted"), "--serve", "127.0.0.1:0"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"encrypted" in done.stderr, done


def bad_places_to_listen_are_refused():
    for words in (("--serve", "example.org:0"), ("--certificate", DATA), ("--serve", "192.0.2.1:0"),
                  ("--certificate", DATA, "--tls-key", DATA)):
        done = subprocess.run([LOCKSTEP, "prover", "serve", path("run"), "--serve", "127.0.0.1:0", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=WAIT_MAX_S)
        assert done.returncode in (2, 3) and b"lockstep prover serve: " in done.stderr, done


def connections_can_be_encrypted():
    if shutil.which("openssl") is None:
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", path("key.pem"), "-out", path("cert.pem")],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with Server("--certificate", path("cert.pem"), "--tls-key", path("key.pem")) as server:
        context = ssl.create_default_context(cafile=path("cert.pem"))
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=WAIT_MAX_S,
                                                 context=context)
        connection.request("GET", "/v1/jobs.json")
        assert connection.getresponse().status == 200
        connection.close()


TESTS = [
    every_name_gives_the_bundles_bytes,
    a_tensor_of_a_named_file_is_served_alone,
    a_browser_finds_a_page,
    what_is_not_there_is_not_found,
    a_pipe_in_place_of_a_checkpoint_holds_nobody_up,
    only_reading_is_served_and_vouches_are_taken_in,
    ranges_are_parts,
    queries_about_any_step_are_answered,
    a_process_without_a_key_answers,
    slow_clients_are_closed_and_others_are_served,
    one_client_has_so_many_connections,
    published_files_are_what_is_served,
    encrypted_bundles_are_not_shown,
    bad_places_to_listen_are_refused,
    connections_can_be_encrypted,
]


try:
    lockstep("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16",
             "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", "22", "--segment-steps",
             "4", "--out", path("small.job"))
    lockstep("prover", "run", path("small.job"), "--bundle", path("run"), "--data", DATA,
             "--threads", "1")
    code = tap.run(TESTS)
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
