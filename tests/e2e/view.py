#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`xsptrace view`: the page of a capture is answered to whoever has the address, and to nobody else. What is on the page is
tested in tests/consumers."""
import base64
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from harness import OK, USAGE, XSPTRACE, Skip, case, check, equal, finish, main, start, wait_for, xsptrace
from made import make

BLOCK = re.compile(rb'<script type="application/x-xsptrace" id="([a-z]+)">([^<]*)</script>')
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/(\S*)")


class Viewer:
    """One that runs until stop()."""

    def __init__(self, *arguments, **options):
        self.child = start([XSPTRACE, "view", "--no-browser", "-q", *arguments], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, **options)
        self.line = self.child.stdout.readline()
        found = ADDRESS.search(self.line)
        if found is None:
            why = self.child.stderr.read()
            if "this build has no" in why or "built without it" in why:
                raise Skip(why)
            check(False, "an address", self.line, why)
        self.port, self.token, self.name = int(found[1]), found[2], found[3]

    def ask(self, path, method="GET", host=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{self.port}", **headers})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), body

    def get(self, path=""):
        return self.ask(f"/{self.token}/{path}")

    def stop(self, number=signal.SIGINT):
        self.child.send_signal(number)
        return finish(self.child, 10)


def capture(folder, seed=2):
    path = f"{folder}/made.xspt"
    make(path, seed)
    return path


def timeline_of(block):
    """(JSON, columns) of a block "timeline"."""
    magic, length = struct.unpack_from("<II", block)
    equal(magic, 0x54505358, "magic")
    return json.loads(block[8:8 + length]), block[8 + length:]


@case
def the_browser_is_told_in_private(folder):
    """All users can see arguments: the address, with its token, is in a file of the user's, until the end."""
    os.chmod(folder, 0o777)
    path, opener = capture(folder), f"{folder}/xdg-open"
    os.chmod(path, 0o644)
    with open(opener, "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\nprintf "%s\\n" "$@" >{folder}/part && mv {folder}/part {folder}/arguments\n')
    os.chmod(opener, 0o755)
    binary = f"{folder}/xsptrace"  # not executable where it was built
    shutil.copy(XSPTRACE, binary)
    child = start([binary, "view", "-q", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=65534,
                  group=65534, extra_groups=[], cwd="/",
                  env={"PATH": f"{folder}:/usr/bin:/bin", "DISPLAY": ":0", "XDG_RUNTIME_DIR": folder})
    address = child.stdout.readline().strip()
    if not ADDRESS.match(address):
        why = child.stderr.read()
        if "this build has no" in why or "built without it" in why:
            raise Skip(why)
        check(False, "an address", address, why)
    wait_for(lambda: os.path.exists(f"{folder}/arguments"), 5, "the browser")
    with open(f"{folder}/arguments", encoding="ascii") as f:
        way = f.read().strip()
    check(re.fullmatch(rf"file://{re.escape(folder)}/xsptrace-view-\w+\.html", way), "what the browser is given", way)
    file = way.removeprefix("file://")
    equal((oct(os.stat(file).st_mode & 0o777), os.stat(file).st_uid), ("0o600", 65534), "whose it is")
    with open(file, encoding="ascii") as f:
        check(f"url={address}" in f.read(), "where it leads")
    child.send_signal(signal.SIGINT)
    finish(child, 10)
    check(not os.path.exists(file), "it stays behind")


@case
def only_with_the_address(folder):
    """Neither other users without the token, nor sites by a name that leads here, nor other methods get anything."""
    viewer = Viewer(capture(folder))
    status, headers, page = viewer.get()
    equal(status, 200, "the page")
    check(headers["content-type"].startswith("text/html"), "a page", headers)
    check("default-src 'none'" in headers["content-security-policy"], "policy", headers)
    equal({k: headers.get(k) for k in ("x-frame-options", "cache-control", "referrer-policy", "x-content-type-options",
                                       "access-control-allow-origin")},
          {"x-frame-options": "DENY", "cache-control": "no-store", "referrer-policy": "no-referrer",
           "x-content-type-options": "nosniff", "access-control-allow-origin": None}, "headers")
    blocks = {m[1].decode(): m[2] for m in BLOCK.finditer(page)}
    check({"page", "report", "timeline"} <= set(blocks), "blocks", list(blocks))
    wrong = viewer.token[:-1] + ("0" if viewer.token[-1] != "0" else "1")
    for path in ("/", "/timeline", f"/{wrong}/", f"/{viewer.token}", f"/{viewer.token[:16]}/", "//", "/" + "a" * 4000):
        equal(viewer.ask(path)[0], 404, path)
    equal(viewer.get("../etc/passwd")[0], 404, "another file")
    equal(viewer.ask(f"/{viewer.token}/", host="evil.example:8051")[0], 403, "a host that is not ours")
    equal(viewer.ask(f"/{viewer.token}/", host=f"localhost:{viewer.port}")[0], 200, "the same by name")
    equal(viewer.ask(f"/{viewer.token}/", method="POST")[0], 405, "POST")
    equal(viewer.ask(f"/{viewer.token}/", method="HEAD")[0::2], (200, b""), "HEAD")
    listening = []  # "0: 0100007F:1F8B 00000000:0000 0A": proc_net(5)
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as f:
            rows = [line.split() for line in f][1:]
        listening += [row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == viewer.port]
    equal(listening, [f"0100007F:{viewer.port:04X}"], "127.0.0.1 alone")
    equal(viewer.stop(), OK, "status")


def is_closed(connection):
    try:
        return connection.recv(100, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@case
def connections_that_ask_for_nothing(folder):
    """Whoever has no token cannot keep the owner out: neither with idle connections, more than are taken, nor with some that
    trickle; they are closed after 5 s."""
    viewer = Viewer(capture(folder))
    for count in (64, 600):
        began = time.monotonic()
        others = [socket.create_connection(("127.0.0.1", viewer.port), timeout=10) for _ in range(count)]
        for other in others:
            other.setblocking(False)  # with a time-out even MSG_DONTWAIT waits for that, and then looks like a closed one
        for other in others[::2]:
            other.send(b"GET /")
        before = time.monotonic()
        equal(viewer.get()[0], 200, f"beside {count} connections")
        took = time.monotonic() - before
        check(took < 3, f"beside {count} connections: seconds", took)
        check(len(os.listdir(f"/proc/{viewer.child.pid}/fd")) < 540, "descriptors are bounded")
        if count == 64:
            check(not any(is_closed(o) for o in others) or time.monotonic() - began > 4, "there is room for 64")
            while not all(is_closed(o) for o in others):
                check(time.monotonic() - began < 15, "they are closed", sum(not is_closed(o) for o in others))
                for other in others[::2]:
                    try:
                        other.send(b"a")
                    except OSError:
                        pass
                time.sleep(0.2)
            took = time.monotonic() - began
            check(took > 4, "a request has some seconds", took)
        for other in others:
            other.close()
    equal(viewer.stop(), OK, "status")


@case
def parts_of_the_time(folder):
    """A part of the timeline has what lies in it; times that are none are refused, and the server goes on."""
    viewer = Viewer(capture(folder))
    _, _, page = viewer.get()
    whole, _ = timeline_of(gzip.decompress(base64.b64decode(dict(BLOCK.findall(page))[b"timeline"])))
    status, headers, body = viewer.get(f"timeline?from={whole['to_ns'] // 4}&to={whole['to_ns'] // 2}")
    equal((status, headers.get("content-encoding")), (200, "gzip"), "a part")
    part, _ = timeline_of(gzip.decompress(body))
    spans = [sum(t.get("spans", 0) for t in x["tracks"] if t["kind"] == "spans") for x in (whole, part)]
    check(0 < spans[1] < spans[0], "fewer spans", spans)
    for query in ("", "?from=1", "?from=5&to=5", "?from=9&to=3", "?from=-1&to=3", "?from=a&to=b", "?from=1&to=" + "9" * 40):
        equal(viewer.get("timeline" + query)[0], 400, query)
    for noise in (b"\0" * 4096, b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\nHost: " + b"x" * 100000, b"POST / HTTP/1.1\r\n"
                  b"Content-Length: 99999999999\r\n\r\n" + b"y" * 65536):
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=2) as s:
            try:
                s.sendall(noise)
                s.shutdown(socket.SHUT_WR)
                s.recv(100)
            except OSError:
                pass
    equal(viewer.get()[0], 200, "after noise")
    equal(viewer.stop(signal.SIGTERM), OK, "status")


@case
def two_at_once_and_wrong_use(folder):
    """A port that is taken: the next one, but not instead of one that was asked for."""
    path = capture(folder)
    first, second = Viewer(path), Viewer(path)
    check(first.port != second.port and first.token != second.token, "another port and token", first.port, second.port)
    refused = subprocess.run([XSPTRACE, "view", "--port", str(first.port), "--no-browser", path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    check(refused.returncode == 1 and "--port takes another" in refused.stderr, "taken", refused.stderr)
    first.stop()
    second.stop()
    for arguments in ((), ("--port", "0", path), ("--port", "70000", path), ("--nonsense", path), (path, "vs"),
                      ("--perfetto", path, "vs", path)):
        xsptrace("view", *arguments, status=USAGE)
    xsptrace("view", f"{folder}/none.xspt", status=9)
    check("--perfetto" in xsptrace("view", "--help").stdout, "help")


@case
def for_perfetto(folder):
    """Its site may read the trace, which ends the verb."""
    viewer = Viewer("--perfetto", capture(folder))
    check(viewer.line.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/"), "address", viewer.line)
    equal(viewer.ask(f"/{viewer.token}/x")[0], 404, "another name")
    status, headers, body = viewer.ask(f"/{viewer.token}/{viewer.name}", Origin="https://ui.perfetto.dev")
    equal((status, headers["access-control-allow-origin"]), (200, "https://ui.perfetto.dev"), "trace")
    xsptrace("export", "-q", f"{folder}/made.xspt", "-o", f"{folder}/made.pftrace")
    equal(len(body), os.path.getsize(f"{folder}/made.pftrace"), "bytes")
    equal(finish(viewer.child, 10), OK, "status")
    equal([n for n in os.listdir(os.environ.get("TMPDIR", "/tmp")) if n.startswith("xsptrace-view-")], [], "left behind")


if __name__ == "__main__":
    main(traces=False)
