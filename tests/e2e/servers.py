#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real servers and runtimes, all of their libc and all of themselves traced.

What they answer is what they answer untraced, none of them ends or starts again, and the calls that
were recorded are those that they count themselves: INFO commandstats, pgbench's transactions, ab's
and nginx's requests, a program's own counters.

redis comes with redis-tools, whose redis-check-rdb is the server under another name, so that no
package starts one. The others are what the machine has installed, or, with XSP_LONG=1, what
tests/servers/fetch-servers unpacks beside it.
"""
import collections
import contextlib
import functools
import glob
import hashlib
import http.client
import http.server
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from harness import (LONG, ROOT, XSPTRACE, Recording, Skip, Trace, alive, case, check, check_calls, equal, finish, main,
                     run, start, start_ready, total, wait_for, xsptrace)

PROGRAMS = os.path.join(ROOT, "tests/servers")
NOBODY = 65534
# The brake may release a hot function; here every call counts.
NO_BRAKE = (["--max-overhead", "off"]
            if "--max-overhead" in run([XSPTRACE, "help", "all"]).stdout else [])


# ---- programs ------------------------------------------------------------------------


@functools.cache
def fetched():
    """The folder of programs that are not installed; empty if none were asked for."""
    if not LONG:
        return ""
    done = run([f"{PROGRAMS}/fetch-servers"], timeout=900)
    check(done.returncode in (0, 77), "fetch-servers", done.stderr)
    if done.returncode:
        print(done.stderr.strip())
    return done.stdout.strip()


# usr/bin has wrappers of PostgreSQL's programs and of the headless shell
FOLDERS = ("usr/lib/postgresql/*/bin", "usr/lib/chromium", "usr/lib/jvm/java-*-openjdk-*/bin",
           "usr/lib/go-*/bin", "usr/bin", "usr/sbin")


def program(name):
    for root in ("/", fetched()):
        for folder in FOLDERS if root else ():
            for path in sorted(glob.glob(os.path.join(root, folder, name)), reverse=True):
                if os.access(path, os.X_OK):
                    return os.path.realpath(path)
    raise Skip(f"no {name} here (the long tests fetch it)")


def environment(**more):
    """The tests' own environment, with the fetched packages' libraries."""
    libraries = f"{fetched()}/usr/lib/x86_64-linux-gnu" if fetched() else ""
    return {**os.environ, "LD_LIBRARY_PATH": libraries, "LC_ALL": "C.UTF-8", **more}


def tool(*command, timeout=120, **options):
    """Runs a client or a compiler, which must succeed; its standard output."""
    done = run(command, timeout=timeout, env=environment(), **options)
    equal(done.returncode, 0, f"status of {' '.join(str(c) for c in command)}: {done.stderr}")
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def changed_text(pid):
    """Where code in memory differs from its file."""
    wrong, size = [], 1 << 16
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            fields = line.split(maxsplit=5)
            if "x" not in fields[1] or len(fields) < 6 or not fields[5].startswith("/"):
                continue
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            with open(fields[5].strip(), "rb") as f:
                f.seek(int(fields[2], 16))
                for at in range(begin, end, size):
                    expected = f.read(min(size, end - at))
                    memory.seek(at)
                    got = memory.read(len(expected))
                    if got != expected:
                        wrong += [f"{pid}: {fields[5].strip()} at {f.tell() - len(expected) + i:#x}: {x:#x}"
                                  for i, x in enumerate(got) if x != expected[i]]
    return wrong


def check_text(pid):
    """No probe is left. (Those of somebody else who traces a library for the whole machine may pass.)"""
    end = time.monotonic() + 10
    while changed_text(pid):
        check(time.monotonic() < end, "bytes differ from the file", *changed_text(pid)[:20])
        time.sleep(0.5)


# ---- recordings ----------------------------------------------------------------------

TIME = r"(?:-|[\d.]+ [a-z]+)"
ROW = re.compile(rf"^(\S.*?)(?: \*)? +([\d,]+)(?: +{TIME}){{6}}$", re.M)


class Counts:
    """What a recording says of calls: the summary with all rows, and the messages beside it."""

    def __init__(self, summary, said, seconds):
        self.tail = summary[summary.rfind("\n\n"):].strip()
        self.seconds = seconds
        self.probed = re.search(r"tracing ([\d,]+) functions", said)
        self.calls = collections.Counter()
        for function, calls in ROW.findall(summary):
            self.calls[function] += int(calls.replace(",", ""))

    def check(self, what, pairs, untraced_seconds):
        """pairs: (function, calls that the program counted). The lines are for the log."""
        print(f"  {what}: {self.probed[1] if self.probed else '?'} functions, "
              f"{sum(self.calls.values()):,} calls; "
              f"{untraced_seconds:.2f} s untraced, {self.seconds:.2f} s traced")
        wrong = []
        for function, calls in pairs:
            got = total(self.calls, function)
            print(f"    {function}: {got} calls, {calls} by the program's count")
            if got != calls:
                wrong.append(f"{function}: {got} calls recorded, {calls} counted by the program")
        print("    " + self.tail.replace("\n", "\n    "))
        # records of the whole machine may be lost beside others; events may not
        check(re.search("^ *(nothing|no event) was lost", self.tail, re.M), f"{what}: losses")
        check(not wrong, f"{what}: counts differ", *wrong)


def options_for(folder, *patterns, name="traced"):
    return [*NO_BRAKE, "--rows", "all", "--buffer", "256M", "-o", f"{folder}/{name}.xspt",
            *(x for p in patterns for x in ("-e", p))]


class Traced:
    """All functions that match, in some processes, until the end of the block; then `counts`."""

    def __init__(self, folder, pids, *patterns):
        self.table = f"{folder}/traced.table"
        self.recording = Recording(folder, "-p", ",".join(str(p) for p in pids),
                                   *options_for(folder, *patterns), table=self.table)
        begun = time.monotonic()
        self.recording.wait_live(120)
        self.attach = time.monotonic() - begun

    def __enter__(self):
        self.begun = time.monotonic()
        return self

    def __exit__(self, kind, value, trace):
        self.recording.__exit__(kind, value, trace)
        if kind:
            return
        seconds = time.monotonic() - self.begun
        self.recording.stop()
        said = self.recording.wait(seconds=180)
        detach = time.monotonic() - self.begun - seconds
        with open(self.table, encoding="utf-8", errors="replace") as f:
            self.counts = Counts(f.read(), said, seconds)
        print(f"  live after {self.attach:.1f} s, ended after {detach:.1f} s")


def timed(function, *arguments):
    begun = time.monotonic()
    value = function(*arguments)
    return value, time.monotonic() - begun


# ---- redis ---------------------------------------------------------------------------


def redis_encode(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


REDIS_COMMANDS = [
    ("SET", "text", "x" * 500), ("APPEND", "text", b"\0\r\n\xff"), ("GETRANGE", "text", 490, -1),
    ("SETBIT", "bits", 1000, 1), ("BITCOUNT", "bits"), ("INCRBYFLOAT", "float", "0.1"),
    ("INCRBYFLOAT", "float", "1e10"), ("INCR", "text"), ("NOSUCH", "command"), ("GET",),
    ("HSET", "hash", "a", 1, "b", 2.5, "c", "three"), ("HINCRBY", "hash", "a", 41),
    ("HGETALL", "hash"), ("LPUSH", "hash", "x"), ("RPUSH", "list", *range(300, 0, -7)),
    ("SORT", "list", "LIMIT", 3, 9, "DESC"), ("LINSERT", "list", "BEFORE", 20, "here"),
    ("LRANGE", "list", 0, -1), ("SORT", "list"), ("SADD", "set", *range(50)),
    ("SINTER", "set", "set"), ("ZADD", "zset", *[x for i in range(200) for x in (i * i % 61, f"m{i}")]),
    ("ZRANGE", "zset", 0, -1, "WITHSCORES"), ("ZRANGEBYLEX", "zset", "[m1", "[m3"),
    ("GEOADD", "geo", "13.361389", "38.115556", "P", "15.087269", "37.502669", "C"),
    ("GEODIST", "geo", "P", "C"), ("GEOPOS", "geo", "P"), ("PFADD", "log", *range(1000)),
    ("PFCOUNT", "log"), ("XADD", "stream", "1-1", "k", "v"), ("XRANGE", "stream", "-", "+"),
    ("MULTI",), ("INCR", "n"), ("GET", "n"), ("EXEC",), ("DUMP", "zset"), ("OBJECT", "ENCODING", "zset"),
    ("EVAL", "local t = {} for i = 1, 100 do t[i] = redis.call('INCRBY', KEYS[1], i) end "
     "redis.call('PUBLISH', 'c', 'm') return {t, cjson.encode(ARGV), math.sqrt(2) .. ''}", 1, "n", 1, "b"),
    ("EVAL", "return redis.call('HGET', 'list', 'x')", 0), ("EVAL", "syntax error", 0),
    ("DEL", "text", "bits", "missing"), ("DBSIZE",), ("TYPE", "geo"),
]


class Redis:
    def __init__(self, folder):
        run(["ln", "-sf", program("redis-check-rdb"), f"{folder}/redis-server"])
        program("redis-benchmark")
        self.port = free_port()
        self.log = f"{folder}/redis.log"
        with open(self.log, "wb") as log:
            self.child = start([f"{folder}/redis-server", "--port", self.port, "--bind", "127.0.0.1",
                                "--save", "", "--appendonly", "no", "--dir", folder],
                               env=environment(), user=NOBODY, group=NOBODY, extra_groups=[],
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(lambda: accepts(self.port), 10, "redis")

    def ask(self, *commands):
        """The bytes that it answers."""
        end = b"$3\r\nend\r\n"
        with socket.create_connection(("127.0.0.1", self.port), 60) as s:
            s.sendall(b"".join(redis_encode(*c) for c in [*commands, ("ECHO", "end")]))
            answer = b""
            while not answer.endswith(end):
                part = s.recv(1 << 16)
                check(part, "redis closed the connection", answer[-200:])
                answer += part
        return answer[:-len(end)]

    def info(self, section):
        return dict(line.split(":", 1) for line in self.ask(("INFO", section)).decode().splitlines()
                    if ":" in line)

    def commands_done(self):
        return int(self.info("stats")["total_commands_processed"])

    def load(self, requests):
        """redis-benchmark says how many requests it ended, and of which command."""
        said = tool(program("redis-benchmark"), "-p", self.port, "-c", 10, "-n", requests, "-P", 2,
                    "-t", "set,get,incr,lpush,sadd,hset,zadd,lrange_100,mset", "--precision", 3)
        equal(re.findall(r"(\d+) requests completed", said), [str(requests)] * 10,
              "requests that redis-benchmark completed")
        check("rror" not in said, "redis-benchmark", said)

    def end(self):
        check(self.child.poll() is None, "redis ended", self.child.returncode)
        check_text(self.child.pid)
        self.child.terminate()
        equal(finish(self.child), 0, "status of redis")
        with open(self.log, encoding="utf-8") as f:
            log = f.read()
        check("BUG REPORT" not in log and "crashed" not in log, "redis crashed", log)


def redis_work(redis, requests):
    answers = redis.ask(*REDIS_COMMANDS)
    redis.load(requests)
    return answers, redis.info("errorstats")


@case
def redis(folder):
    requests = 120
    plain = Redis(folder)
    (expected, errors), seconds = timed(redis_work, plain, requests)
    check(len(expected) > 5000, "answers of redis", expected)
    plain.end()
    server = Redis(folder)
    run_id = server.info("server")["run_id"]
    with Traced(folder, [server.child.pid], "redis-check-rdb:*", "libc.so:*") as traced:
        server.ask(("CONFIG", "RESETSTAT"))
        got, got_errors = redis_work(server, requests)
        stats = server.info("commandstats")
    equal(server.info("server")["run_id"], run_id, "run_id: redis was restarted")
    server.end()
    equal(got, expected, "answers")
    equal(got_errors, errors, "errors that redis counts")

    counted = {name[len("cmdstat_"):]: int(re.match(r"calls=(\d+)", value)[1])
               for name, value in stats.items()}
    # its figures lack the last INFO, and the ECHO after it
    counted["echo"] += 1
    commands = sum(counted.values()) + 1
    # GEOADD is ZADD underneath, unless the compiler has put that into it
    if "<zaddCommand" in tool("objdump", "-d", "--disassemble=geoaddCommand", program("redis-check-rdb")):
        counted["zadd"] += counted["geoadd"]
    symbols = set(tool("nm", "-D", "--defined-only", program("redis-check-rdb")).split())
    pairs = [(f"{name}Command", calls) for name, calls in sorted(counted.items())
             if f"{name}Command" in symbols and name != "info"]
    check(len(pairs) > 25, "too few commands have a function of their own", pairs)
    pairs.append(("call", commands))
    traced.counts.check("redis", pairs, seconds)


@case(long="redis-benchmark and its server want all processors for a minute; `redis` is the quick one")
def redis_under_load(folder):
    """Attached to and detached from three times while requests come as fast as it answers."""
    server = Redis(folder)
    expected = server.ask(*REDIS_COMMANDS)
    server.ask(("FLUSHALL",))
    requests, commands = 200000, ("set", "get", "incr")
    bench = start([program("redis-benchmark"), "-p", server.port, "-c", 6, "-n", requests,
                   "-t", ",".join(commands)],
                  env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                  text=True)
    rounds = 0
    for _ in range(3):
        with Traced(folder, [server.child.pid], "redis-check-rdb:*", "libc.so:*") as traced:
            begun = server.commands_done()
            time.sleep(0.5)
            wait_for(lambda: server.commands_done() > begun + 100 or bench.poll() is not None, 60, "redis to answer while it is traced")
        if bench.poll() is not None:  # on a busy machine: attaching takes seconds there
            break
        check(traced.counts.calls["call"] > 50, "redis did nothing while it was traced", traced.counts.tail)
        rounds += 1
    check(rounds > 0, "redis-benchmark ended early")
    said = bench.communicate(timeout=120)[0]
    equal(bench.returncode, 0, f"status of redis-benchmark: {said}")
    check("rror" not in said, "redis-benchmark", said)
    stats = server.info("commandstats")
    for command in commands:
        calls = int(re.match(r"calls=(\d+)", stats[f"cmdstat_{command}"])[1])
        check(calls - requests in range(0, 3), f"calls of {command}", calls)
    server.ask(("FLUSHALL",))
    equal(server.ask(*REDIS_COMMANDS), expected, "answers afterwards")
    server.end()


def nothing_amiss(folder, *patterns):
    server = Redis(folder)
    with Traced(folder, [server.child.pid], *patterns) as traced:
        server.load(50)
    check(traced.counts.calls, "nothing was traced", traced.counts.tail)
    for words in ("begun before", "end not seen"):
        check(words not in traced.counts.tail, words, traced.counts.tail)
    # mempcpy jumps into the middle of memmove, whose exits it then passes: no loss, and the output says so
    tail = traced.counts.tail.replace("exits without an entry (functions entered in another way", "")
    check("exits without an entry" not in tail, "exits without an entry", traced.counts.tail)


@case
def functions_that_fall_through(folder):
    """glibc's strcasecmp ends where strcasecmp_l begins and falls into it: that is a way out, seen where it is."""
    nothing_amiss(folder, "libc.so:*strcasecmp*")


@case
def functions_that_return_together(folder):
    """glibc's __memcpy_chk ends where memcpy begins and falls into it: memcpy's exits are its exits too, and
    each call of memcpy hits two probes there."""
    nothing_amiss(folder, "libc.so:*memcpy*", "libc.so:*mempcpy*", "libc.so:*memset*")


# ---- postgres ------------------------------------------------------------------------

# pgbench's own TPC-B, after a gate that opens when the connections exist and are traced
PGBENCH = r"""
\if :gate
\else
\setshell gate %s
\endif
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""
STATEMENTS = 7
BALANCES = """
SELECT md5(string_agg(aid || ' ' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts;
SELECT md5(string_agg(tid || ' ' || tbalance, ',' ORDER BY tid)) FROM pgbench_tellers;
SELECT bbalance FROM pgbench_branches;
SELECT count(*), md5(string_agg(concat_ws(' ', tid, bid, aid, delta), ',' ORDER BY tid, bid, aid, delta))
FROM pgbench_history;
SELECT sum(sqrt(abalance::numeric ^ 2)), corr(aid, abalance) IS NULL FROM pgbench_accounts;
SELECT to_char(d, 'Day DD Month YYYY'), regexp_replace(d::text, '(\\d)-', '\\1/', 'g')
FROM generate_series('2024-02-27'::date, '2024-03-02', '1 day') d;
"""


class Postgres:
    def __init__(self, folder):
        self.folder = f"{folder}/postgres"
        self.port = free_port()
        self.as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": self.folder}
        os.mkdir(self.folder)
        os.chown(self.folder, NOBODY, NOBODY)
        data = f"{self.folder}/data"
        self.run(program("initdb"), "-D", data, "-U", "test", "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
        self.log = f"{self.folder}/log"
        with open(self.log, "wb") as log:
            self.child = start([program("postgres"), "-D", data, "-p", self.port, "-k", self.folder, "-h",
                                "127.0.0.1", "-c", "fsync=off", "-c", "autovacuum=off", "-c", "jit=off"],
                               env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               **self.as_nobody)
        wait_for(lambda: accepts(self.port), 20, "postgres")
        wait_for(lambda: self.sql("SELECT 1", check_status=False) == "1", 20, "postgres")
        gate = f"{self.folder}/gate.sh"
        with open(gate, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\nwhile ! test -e {self.folder}/open; do sleep 0.1; done; echo 1\n")
        os.chmod(gate, 0o755)
        with open(f"{self.folder}/script", "w", encoding="ascii") as f:
            f.write(PGBENCH % gate)

    def run(self, *command):
        return tool(*command, **self.as_nobody)

    def connection(self):
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "test"]

    def sql(self, text, check_status=True):
        done = run([program("psql"), *self.connection(), "-d", "postgres", "-XAtq", "-v", "ON_ERROR_STOP=1",
                    "-c", text], env=environment(), **self.as_nobody)
        check(not check_status or done.returncode == 0, "psql", done.stderr)
        return done.stdout.strip()

    def pgbench(self, transactions, traced):
        """traced(pids) makes what is entered while they work; what pgbench counted, and what the
        tables then hold."""
        if os.path.exists(f"{self.folder}/open"):
            os.unlink(f"{self.folder}/open")
        self.run(program("pgbench"), *self.connection(), "-i", "-q", "-s", "1", "postgres")
        before = int(self.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"))
        bench = start([program("pgbench"), *self.connection(), "-n", "-c", 4, "-j", 1, "-t", transactions,
                       "-f", f"{self.folder}/script", "-D", "gate=0", "-D", "scale=1",
                       "--random-seed=1", "postgres"], env=environment(), stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **self.as_nobody)
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY pid"
        wait_for(lambda: len(self.sql(query).split()) == 4, 20, "pgbench's connections")
        pids = [int(p) for p in self.sql(query).split()]
        with traced(pids):
            begun = time.monotonic()
            with open(f"{self.folder}/open", "wb"):
                pass
            said = bench.communicate(timeout=240)[0]
            self.seconds = time.monotonic() - begun
        equal(bench.returncode, 0, f"status of pgbench: {said}")
        done = re.search(r"number of transactions actually processed: (\d+)/(\d+)", said)
        equal(done and done.groups(), (str(4 * transactions),) * 2, f"transactions: {said}")
        check("failed transactions: 0 " in said, "pgbench", said)
        for pid in pids:
            wait_for(lambda p=pid: not alive(p), 30, "the end of a connection")
        committed = int(self.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"))
        check(committed - before >= 4 * transactions, "transactions that the server committed",
              committed - before)
        return int(done[1]), "\n".join(self.sql(q) for q in BALANCES.split(";\n") if q.strip())

    def end(self):
        check(self.child.poll() is None, "postgres ended", self.child.returncode)
        self.child.send_signal(signal.SIGINT)
        equal(finish(self.child), 0, "status of postgres")
        with open(self.log, encoding="utf-8", errors="replace") as f:
            log = f.read()
        for word in ("PANIC", "FATAL", "terminated by signal", "crash"):
            check(word not in re.sub(r"FATAL: +the database system is starting up", "", log),
                  f"{word} in postgres' log", log)


@case(long="fetched, minutes")
def postgres(folder):
    server = Postgres(folder)
    transactions = 40

    _, expected = server.pgbench(transactions, contextlib.nullcontext)
    seconds = server.seconds
    seen = []

    def trace(pids):
        seen.append(Traced(folder, pids, "postgres:*", "libc.so:*"))
        return seen[0]

    done, got = server.pgbench(transactions, trace)
    server.end()
    equal(got, expected, "what the tables hold")
    statements = STATEMENTS * done
    seen[0].counts.check("postgres", [
        ("pg_parse_query", statements), ("PortalStart", statements), ("PortalRun", statements),
        ("CommitTransactionCommand", statements), ("heap_insert", done),
        ("pgstat_count_heap_update", 3 * done)], seconds)


# ---- nginx ---------------------------------------------------------------------------

NGINX = """
user nobody nogroup; daemon off; worker_processes 1; pid {0}/pid; error_log {0}/error.log notice;
events {{ worker_connections 256; }}
http {{
	access_log {0}/access.log; gzip on; gzip_min_length 100; gzip_types *;
	client_body_temp_path {0}/t1; proxy_temp_path {0}/t2; fastcgi_temp_path {0}/t3;
	uwsgi_temp_path {0}/t4; scgi_temp_path {0}/t5;
	server {{
		listen 127.0.0.1:{1};
		root {0}/www;
		location /status {{ stub_status; }}
		location /moved {{ rewrite ^/moved/(.*)$ /$1 permanent; }}
		location /inner {{ rewrite ^ /small.txt last; }}
		location /proxy/ {{ proxy_pass http://127.0.0.1:{1}/; }}
		location /list/ {{ alias {0}/www/; autoindex on; }}
	}}
}}
"""
NGINX_REQUESTS = [
    ("GET", "/small.txt", {}), ("GET", "/big.bin", {}), ("GET", "/big.bin", {"Range": "bytes=5-1004"}),
    ("GET", "/big.bin", {"Range": "bytes=-10"}), ("HEAD", "/big.bin", {}),
    ("GET", "/text.txt", {"Accept-Encoding": "gzip"}), ("GET", "/missing", {}), ("GET", "/moved/x?y=1", {}),
    ("GET", "/inner", {}), ("POST", "/small.txt", {}), ("GET", "/list/", {}), ("BREW", "/small.txt", {}),
    ("GET", "/proxy/text.txt", {}), ("GET", "/%2e%2e/small.txt", {}), ("GET", "/x" * 3000, {}),
]


class Nginx:
    def __init__(self, folder):
        self.folder = f"{folder}/nginx"
        self.port = free_port()
        os.makedirs(f"{self.folder}/www")
        with open(f"{self.folder}/www/small.txt", "w", encoding="ascii") as f:
            f.write("small\n")
        with open(f"{self.folder}/www/text.txt", "w", encoding="ascii") as f:
            f.write("".join(f"line {i} of a text\n" for i in range(5000)))
        with open(f"{self.folder}/www/big.bin", "wb") as f:
            f.write(b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(20000)))
        with open(f"{self.folder}/conf", "w", encoding="ascii") as f:
            f.write(NGINX.format(self.folder, self.port))
        run(["chown", "-R", f"{NOBODY}:{NOBODY}", self.folder])
        self.child = start([program("nginx"), "-p", self.folder, "-c", f"{self.folder}/conf", "-e",
                            f"{self.folder}/error.log"], env=environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: accepts(self.port), 10, "nginx")
        self.worker = wait_for(lambda: children(self.child.pid), 5, "nginx' worker")[0]

    def ask(self, method, path, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        # the port is another one for the next server
        header = sorted((k, v.replace(str(self.port), "PORT")) for k, v in answer.getheaders() if k != "Date")
        connection.close()
        return answer.status, header, len(body), hashlib.sha256(body).hexdigest()

    def status(self):
        """accepts, handled, requests, without the request that asks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/status")
        text = connection.getresponse().read().decode()
        connection.close()
        return [int(x) - 1 for x in re.search(r"(\d+) (\d+) (\d+) \n", text).groups()]

    def load(self, requests):
        """Requests and connections, as ab counts them."""
        count = [0, 0]
        for path, options in (("small.txt", []), ("small.txt", ["-k"]), ("text.txt", ["-k"])):
            said = tool(program("ab"), "-q", "-n", requests, "-c", 8, *options,
                        f"http://127.0.0.1:{self.port}/{path}")
            figures = {k: int(v) for k, v in re.findall(r"^([A-Z].*?): +(\d+)", said, re.M)}
            equal((figures["Complete requests"], figures["Failed requests"]), (requests, 0), said)
            count[0] += requests
        return count[0]

    def end(self):
        equal(children(self.child.pid), [self.worker], "workers: it was restarted")
        check_text(self.worker)
        self.child.send_signal(signal.SIGQUIT)
        equal(finish(self.child), 0, "status of nginx")
        with open(f"{self.folder}/error.log", encoding="utf-8", errors="replace") as f:
            log = f.read()
        for word in ("[alert]", "[crit]", "[emerg]", "on signal"):
            check(word not in log, f"{word} in nginx' log", log)


def nginx_work(server, requests):
    answers = [server.ask(*r) for r in NGINX_REQUESTS]
    return answers, server.load(requests)


def nginx_traced(folder, server):
    requests = 500
    (expected, done), seconds = timed(nginx_work, server, requests)
    equal([a[0] for a in expected[:4]], [200, 200, 206, 206], "answers of nginx")
    before = server.status()
    with Traced(folder, [server.worker], "nginx:*", "libc.so:*") as traced:
        got, _ = nginx_work(server, requests)
        after = server.status()
    equal(got, expected, "answers")
    server.end()
    # nginx counts since the first status, which it counted itself; the last one came while traced
    accepted, _, asked = (a - b for a, b in zip(after, before))
    check(asked >= done + len(NGINX_REQUESTS), "requests by nginx' own count", asked)
    traced.counts.check("nginx", [
        ("ngx_http_init_connection", accepted), ("ngx_http_create_request", asked)], seconds)


@case(long="fetched, minutes")
def nginx(folder):
    server = Nginx(folder)
    try:
        nginx_traced(folder, server)
    finally:
        # a master that is killed leaves its worker, one that is not starts another
        server.child.kill()
        server.child.wait()
        if alive(server.worker):
            os.kill(server.worker, signal.SIGKILL)


# ---- programs that count themselves --------------------------------------------------


def self_counting(folder, what, command, *patterns, seconds=180, **options):
    """It waits for a line, works, and prints its answer as JSON, with its own counts in `calls`.
    Its answer is that of the untraced run, and the counts are ours."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment(**options)}

    def work(child):
        child.stdin.write(b"go\n")
        child.stdin.close()
        said = child.stdout.read()
        equal(finish(child, seconds), 0, f"status of {what}: {said}")
        return said

    expected, untraced_seconds = timed(work, start_ready(command, **options))
    child = start_ready(command, **options)
    with Traced(folder, [child.pid], *patterns) as traced:
        got = work(child)
    equal(got, expected, f"what {what} answers")
    traced.counts.check(what, json.loads(expected)["calls"].items(), untraced_seconds)


@case(long="fetched, minutes", quiet="hundreds of thousands of sites, each of which waits for others in the kernel")
def node(folder):
    self_counting(folder, "node", [program("node"), f"{PROGRAMS}/program.js"], "node:*", "libc.so:*")


@case(long="fetched, minutes", quiet="hundreds of thousands of sites, each of which waits for others in the kernel")
def java(folder):
    tool(program("javac"), "-d", folder, f"{PROGRAMS}/Program.java")
    command = [program("java"), "-Xmx128m", "-XX:-UsePerfData", "-cp", folder, "Program", f"{PROGRAMS}/page.html"]
    self_counting(folder, "java", command, "libjvm.so:*", "libjava.so:*", "java:*", "libc.so:*")


def go_program(folder):
    go = program("go")
    run([go, "build", "-o", f"{folder}/program", f"{PROGRAMS}/program.go"], timeout=300, cwd=folder,
        env=environment(GOROOT=os.path.dirname(os.path.dirname(go)), GOCACHE=f"{folder}/cache",
                        GO111MODULE="off", GOFLAGS="-p=1", HOME=folder))
    check(os.path.exists(f"{folder}/program"), "go build")
    return f"{folder}/program"


@case(long="fetched, minutes")
def go(folder):
    self_counting(folder, "go", [go_program(folder)], "program:*", "libc.so:*")


@case(long="fetched, minutes")
def go_stacks_that_grow(folder):
    """A Go function that finds no room on its goroutine's stack, or whose goroutine is to give way, calls
    runtime.morestack and begins again, which is the same call; a return probe would end the program."""
    self_counting(folder, "go", [go_program(folder), "deep"], "program:*", "libc.so:*")
    child = start_ready([f"{folder}/program", "deep"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out = f"{folder}/returns.json"
    with Recording(folder, "-p", child.pid, "--exit=return", "-e", "program:main.*", "-o", out) as recording:
        child.stdin.write(b"go\n")
        child.stdin.close()
        facts = json.loads(child.stdout.read())
        equal(finish(child), 0, "status with return probes asked for")
        check("without a duration" in recording.wait(), "not said")
    trace = Trace(out)
    check_calls(trace, facts)
    check(all(e["dur"] == 0 for e in trace.spans), "durations that nobody knows")


@case(long="fetched, minutes")
def ocaml_stacks_that_grow(folder):
    """OCaml 5 copies a stack that has become too small, with the calls that are open on it, to a larger place."""
    ocaml = program("ocamlopt")
    if int(run([ocaml, "-version"]).stdout.split(".")[0]) < 5:
        raise Skip("stacks that move came with OCaml 5")
    shutil.copy(f"{PROGRAMS}/program.ml", folder)
    run([ocaml, "-o", f"{folder}/program", f"{folder}/program.ml"], cwd=folder)
    self_counting(folder, "ocaml", [f"{folder}/program"], "program:camlProgram.*", "libc.so:*")
    out = f"{folder}/deep.json"
    done = xsptrace(*NO_BRAKE, "--exit=return", "-e", "program:camlProgram.*", "-o", out, "--", f"{folder}/program",
                    input="go\n")
    check("without a duration" in done.stderr, "not said", done.stderr)
    for line in ("still open", "end not seen", "had begun before", "without an entry"):
        check(line not in done.stderr, "what is not so", done.stderr)
    trace = Trace(out)
    check_calls(trace, json.loads(done.stdout))
    check(all(e["dur"] == 0 for e in trace.spans), "durations that nobody knows")


@case(long="fetched, minutes")
def rust(folder):
    rustc = shutil.which("rustc") or program("rustc")
    tool(rustc, "-O", "-C", "codegen-units=1", "--crate-name", "program", "-o", f"{folder}/program",
         f"{PROGRAMS}/program.rs")
    self_counting(folder, "rust", [f"{folder}/program"], "program:*", "libc.so:*")


@case
def rust_panics(folder):
    """Each function that a caught panic went through is left there, and was seen to be."""
    rustc, source = shutil.which("rustc") or program("rustc"), f"{PROGRAMS}/panics.rs"
    for level, options in (("0", ["opt-level=0"]), ("3", ["opt-level=3"]), ("lto", ["opt-level=3", "lto=fat", "codegen-units=1"])):
        binary, out = f"{folder}/panics{level}", f"{folder}/panics{level}.json"
        tool(rustc, *(word for o in options for word in ("-C", o)), "--crate-name", "panics", "-o", binary, source)
        done = xsptrace(*NO_BRAKE, "-q", "-e", f"panics{level}:panics::*", "-o", out, "--", binary)
        caught = int(done.stdout)
        equal(caught, 200, "panics by the program's own count")
        trace = Trace(out)
        trace.check_nothing_lost()
        equal([e["name"] for e in trace.spans if "exit lost" in e["args"]], [], "ends not seen")
        left = collections.Counter(e["name"] for e in trace.spans if "unwound" in e["args"])
        for name, times in (("throws", caught), ("drops", caught // 2), ("has_nothing_to_drop", caught // 2)):
            equal(left[f"panics::{name}"], times, f"level {level}: {name} left by a panic")


# ---- chromium ------------------------------------------------------------------------


@case(long="fetched, minutes", quiet="hundreds of thousands of sites, each of which waits for others in the kernel")
def chromium(folder):
    """Browser and renderer in one process; launched by xsptrace, from the first instruction on."""
    shell = program("chromium-headless-shell")
    profile = f"{folder}/profile"

    def command():
        shutil.rmtree(profile, ignore_errors=True)
        return [shell, "--no-sandbox", "--single-process", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", f"--user-data-dir={profile}",
                "--dump-dom", f"file://{PROGRAMS}/page.html"]

    def page(text):
        dom, end, rest = text.partition("</html>\n")
        return dom + end, rest

    expected, seconds = timed(lambda: page(tool(*command()))[0])
    facts = re.search(r'<pre id="out">(\{.*\})</pre>', expected)
    check(facts, "the page did not run", expected[-500:])
    clones = json.loads(facts[1])["clones"]
    done, traced_seconds = timed(lambda: xsptrace(
        *options_for(folder, "chromium-headless-shell:*", "libc.so:*"), "--", *command(), timeout=400,
        env=environment()))
    got, summary = page(done.stdout)
    equal(got, expected, "the page's DOM")
    Counts(summary, done.stderr, traced_seconds).check("chromium", [
        ("v8::ValueSerializer::WriteHeader", clones), ("v8::ValueDeserializer::ReadHeader", clones)], seconds)


class Pages(http.server.ThreadingHTTPServer):
    """Serves the page, holds back its work until the gate opens, and takes its result."""

    def __init__(self):
        self.gate, self.result = threading.Event(), queue.Queue()
        self.waiting = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, body, kind="text/plain"):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                if self.path == "/gate":
                    self.server.waiting.set()
                    self.server.gate.wait(120)
                    return self.answer(b"open")
                with open(f"{PROGRAMS}/page.html", "rb") as f:
                    return self.answer(f.read(), "text/html")

            def do_POST(self):
                self.server.result.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.answer(b"thanks")

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, daemon=True).start()


def family(pid):
    """A process and all that descend from it."""
    return [pid, *(p for c in children(pid) for p in family(c))]


@case(long="fetched, minutes", quiet="hundreds of thousands of sites, each of which waits for others in the kernel")
def chromium_sandboxed(folder):
    """Browser, zygotes, renderers and network service as they run in earnest, as an unprivileged user,
    renderers behind seccomp and in namespaces of their own; attached to all of them."""
    shell = program("chromium-headless-shell")
    profile = f"{folder}/profile"
    os.mkdir(profile)
    os.chown(profile, NOBODY, NOBODY)

    def browse(traced):
        pages = Pages()
        with open(f"{folder}/log", "wb") as log:
            browser = start([shell, "--disable-gpu", "--no-first-run", "--disable-background-networking",
                             "--remote-debugging-port=0", f"--user-data-dir={profile}",
                             f"http://127.0.0.1:{pages.server_port}/"], env=environment(HOME=profile),
                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=NOBODY, group=NOBODY,
                            extra_groups=[])
        try:
            if not pages.waiting.wait(20):
                with open(f"{folder}/log", encoding="utf-8", errors="replace") as log:
                    said = log.read()
                if "sandbox" in said.lower():
                    raise Skip("chromium's sandbox does not work here")
                check(False, "chromium shows no page", said)
            before = family(browser.pid)
            begun = time.monotonic()
            with traced(before):
                pages.gate.set()
                result = pages.result.get(timeout=200)
                seconds = time.monotonic() - begun
            equal([p for p in before if not alive(p)], [], "processes that ended")
            for pid in before:
                check_text(pid)
        finally:
            pages.shutdown()
            pages.server_close()
            browser.terminate()
            finish(browser)
        return result, seconds

    expected, seconds = browse(contextlib.nullcontext)
    seen = []

    def trace(pids):
        seen.append(Traced(folder, pids, "chromium-headless-shell:*", "libc.so:*"))
        return seen[0]

    got, _ = browse(trace)
    equal(got, expected, "what the page found")
    clones = json.loads(expected)["clones"]
    seen[0].counts.check("chromium, sandboxed", [
        ("v8::ValueSerializer::WriteHeader", clones), ("v8::ValueDeserializer::ReadHeader", clones)], seconds)


if __name__ == "__main__":
    main()
