# SPDX-License-Identifier: BSD-2-Clause
"""-o clickhouse://HOST:PORT/DATABASE: what a real server holds afterwards is what SQLite holds of the same capture, row by row, and
so are the answers to the queries of docs/sql.md; each row is there once, whatever happens to the server and the connection. What
needs no ClickHouse runs against a server of this file's own, which breaks replies as it is told."""
import http.server
import json
import os
import re
import shutil
import socket
import sqlite3
import struct
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import OUTPUT, ROOT, USAGE, WORKLOADS, XSPTRACE, Skip, case, check, equal, main, run, start, wait_for, xsptrace
from tables import fleet_questions, fleet_statements, made, queries, shown

SERVER, ACCESS = 11, 12  # user/base/error.h
USER = {"XSPTRACE_CLICKHOUSE_USER": "tracer", "XSPTRACE_CLICKHOUSE_PASSWORD": "pass word"}
SPANS = int(os.environ.get("XSP_SQL_SPANS", 2_000_000))  # of `scale`

USERS = """<yandex><profiles><default><log_queries>0</log_queries></default></profiles><quotas><default/></quotas><users>
<tracer><password>pass word</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></tracer>
</users></yandex>"""
CONFIG = """<yandex><logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{port}</http_port><listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>268435456</mark_cache_size></yandex>"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ClickHouse:
    """A server of our own: its data in `folder`, on `room` (tmpfs) if that is given."""

    def __init__(self, folder, room=None):
        program = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise Skip("no clickhouse-server")
        self.folder, self.port = f"{folder}/server", free_port()
        for name in ("data", "tmp"):
            os.makedirs(f"{self.folder}/{name}")
        with open(f"{self.folder}/users.xml", "w", encoding="utf-8") as f:
            f.write(USERS)
        with open(f"{self.folder}/config.xml", "w", encoding="utf-8") as f:
            f.write(CONFIG.format(folder=self.folder, port=self.port))
        self.command = [program, f"--config-file={self.folder}/config.xml"]
        if room is not None:
            mount = f'mount -t tmpfs -o size={room} tmpfs {self.folder}/data && exec "$@"'
            self.command = ["unshare", "-m", "sh", "-c", mount, "sh", *self.command]
        self.start()
        self.query("CREATE DATABASE d", database="default")

    def start(self):
        with open(f"{self.folder}/output", "ab") as output:
            self.process = start(self.command, stdout=output, stderr=output, cwd=self.folder)
        wait_for(self.answers, 30, "the server")

    def answers(self):
        check(self.process.poll() is None, "the server ended", self.said())
        try:
            return self.query("SELECT 1", database="default") == "1\n"
        except OSError:
            return False

    def said(self):
        text = ""
        for name in ("output", "errors"):
            if os.path.exists(f"{self.folder}/{name}"):
                with open(f"{self.folder}/{name}", encoding="utf-8", errors="replace") as f:
                    text += f.read()[-3000:]
        return text

    def kill(self):
        self.process.kill()
        self.process.wait()

    def cpu(self):
        """Seconds until now."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            return sum(int(n) for n in f.read().rpartition(")")[2].split()[11:13]) / os.sysconf("SC_CLK_TCK")

    def url(self, database="d"):
        return f"clickhouse://127.0.0.1:{self.port}/{database}"

    def query(self, text, database="d", timeout=600):
        parameters = urllib.parse.urlencode({"database": database, "output_format_json_quote_64bit_integers": 0})
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/?{parameters}", text.encode(), {
            "X-ClickHouse-User": "tracer", "X-ClickHouse-Key": "pass word"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.read().decode("utf-8")
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{text}: {e.read().decode('utf-8', 'replace')}") from e

    def rows(self, text):
        answer = json.loads(self.query(text.rstrip().rstrip(";") + " FORMAT JSONCompact"))
        return [c["name"] for c in answer["meta"]], [tuple(r) for r in answer["data"]]

    def number(self, text):
        return int(self.query(text))


def export(capture, *outputs, status=0, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("XSPTRACE_CLICKHOUSE")}
    return xsptrace("export", capture, *(a for o in outputs for a in ("-o", o)), status=status, timeout=3000,
                    env={**env, **USER, **environment})


def long_capture(folder, spans):
    """Ids 1 to `spans`."""
    program = os.path.join(os.path.dirname(WORKLOADS), "make_long_capture")
    if not os.path.exists(program):
        raise Skip("make_long_capture is not built")
    equal(run([program, f"{folder}/long.xspt", spans], timeout=3000).returncode, 0, "make_long_capture")
    return f"{folder}/long.xspt"


def in_order(rows):
    return sorted(map(tuple, rows), key=lambda r: [(v is not None, str(type(v)), v) for v in r])


def same_rows(theirs, ours, what):
    """Whole numbers to the last digit; sums of fractions depend on the order they were summed in."""
    columns = {i for row in ours for i, v in enumerate(row) if isinstance(v, float)}
    def rounded(rows):
        return in_order([float(f"{v:.9g}") if i in columns and v is not None else v for i, v in enumerate(r)] for r in rows)
    equal(rounded(theirs), rounded(ours), what)
    return len(ours)


def same_as_sqlite(server, database):
    """Tables, views, and the queries of docs/sql.md, without a limit to the rows."""
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    db.text_factory = lambda b: b.decode("utf-8")
    counted = 0
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
        ours = db.execute(f"SELECT * FROM {name}")
        columns = [c[0] for c in ours.description]
        names, theirs = server.rows(f"SELECT {', '.join(columns)} FROM {name}")
        equal(names, columns, f"columns of {name}")
        counted += same_rows(theirs, ours.fetchall(), f"rows of {name}")
    check(counted > 1000, "there is something to compare", counted)
    answers = 0
    for query in queries():
        query = re.sub(r"LIMIT 20\b", "LIMIT 1000000", query)
        answers += same_rows(server.rows(query)[1], db.execute(query).fetchall(), query) > 0
    db.close()
    return answers


@case
def same_rows_and_answers_as_sqlite(folder):
    """Also of names with quotes, line feeds and bytes that are no UTF-8; and loaded twice, all is there once."""
    server = ClickHouse(folder)
    capture, expected = made(folder)
    done = export(capture, f"{folder}/made.db", server.url())
    check(re.search(r"wrote clickhouse://\S+ \(run \d+, \d+ rows\)", done.stderr), "what is said", done.stderr)
    for times in (1, 2):
        if times == 2:
            export(capture, server.url())
        check(same_as_sqlite(server, f"{folder}/made.db") > 5, "queries that answer")
        equal(server.number("SELECT count() FROM loads"), times, "loads")
        text = lambda raw: shown(bytes.fromhex(raw).decode("utf-8", "replace"))
        names = {text(n) for n in expected["names"]}
        got = {r[0] for r in server.rows("SELECT name FROM names")[1]}
        plain = {n for n in names if not n.startswith("_Z")}
        equal(got & plain, plain & {text(expected["names"][s[3]]) for s in expected["spans"]}, "names")
    count = server.number("SELECT count() FROM spans")
    equal(server.number("SELECT count() FROM all_spans"), 2 * count, "what both loads brought")
    with open(os.path.join(ROOT, "docs/sql.md"), encoding="utf-8") as f:
        server.query(re.search(r"ALTER TABLE all_spans DELETE [^`]*", f.read())[0])
    wait_for(lambda: server.number("SELECT count() FROM all_spans") == count, 10, "what does not count to be gone")
    equal(server.number("SELECT count() FROM spans"), count, "what counts")


def slower_runs(db, server):
    """Beside the run that is there two more, twice and four times as slow, of other builds: the same rows, put in by either engine's SQL."""
    tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    changed = {("runs", "start_ns"): "start_ns + {k}", ("spans", "end_ns"): "start_ns + {f} * (end_ns - start_ns)",
               ("spans", "self_ns"): "{f} * self_ns", ("functions", "build_id"): "'build {k}'"}
    for k, factor in (1, 2), (2, 4):
        for table in tables:
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({table})") if c[1] != "run"]
            values = ", ".join(changed.get((table, c), c).format(k=k, f=factor) for c in columns)
            first = db.execute("SELECT MIN(run) FROM runs").fetchone()[0]
            db.execute(f"INSERT INTO {table} (run, {', '.join(columns)}) SELECT run + {k}, {values} FROM {table} WHERE run = {first}")
            server.query(f"INSERT INTO all_{table} (run, batch, {', '.join(columns)}) SELECT run + {k}, batch, {values} FROM all_{table} "
                         f"WHERE run = {first}")
        server.query(f"INSERT INTO batches SELECT run + {k}, load, table_name, batch, rows FROM batches WHERE run = {first}")
        server.query(f"INSERT INTO loads SELECT run + {k}, load, loaded_at, xsptrace_version FROM loads WHERE run = {first}")


@case
def answers_over_runs(folder):
    """Regressions since a date, versions of what was run, and stragglers, all of known size."""
    server = ClickHouse(folder)
    capture, _ = made(folder)
    export(capture, f"{folder}/made.db", server.url())
    db = sqlite3.connect(f"{folder}/made.db")
    slower_runs(db, server)
    first, start = db.execute("SELECT run, start_ns FROM runs ORDER BY start_ns").fetchone()
    means = dict(db.execute(f"SELECT name, mean_ns / 1e3 FROM operators WHERE mean_ns > 0 AND run = {first}"))
    check(len(means) > 10, "operators", means)
    answers = {}
    for do, engine in ((db.execute, "sqlite"), (server.query, "clickhouse")):
        for statement in fleet_statements(f"tables.{engine}.sql") + fleet_statements("roll-up.sql"):
            do(statement)
    for query in (*queries(), *fleet_questions(start + 1).values()):
        query = re.sub(r"LIMIT (20|100)\b", "LIMIT 1000000", query)
        answers[query] = db.execute(query).fetchall()
        same_rows(server.rows(query)[1], answers[query], query)
    def answer(word):
        return next(rows for query, rows in answers.items() if word in query)
    equal({name: (round(before, 3), round(since / before, 6)) for name, before, since in answer("since_us")},
          {name: (round(mean, 3), 3.0) for name, mean in means.items()}, "regressions: 2 and 4 times as slow")
    builds = {(r[0], r[1], r[2]): r[6] for r in answer("build_id")}
    equal({name for name, _, _ in builds} <= set(means) and len(builds) > 20, True, "versions")
    for (name, module, build), mean in builds.items():
        if build == "build 1":
            equal(round(builds[name, module, "build 2"] / mean, 6), 2.0, f"{name} in the later build")
    check(answer("operators_by_rank"), "stragglers")
    db.close()
    panels = answers_of_panels(server, start)
    equal(len(panels["Operators"]), min(len(means), 30), "operators of the dashboard")
    equal(len(panels["Recordings"]), 3, "its recordings")


def answers_of_panels(server, start):
    """Of Grafana's dashboard, with an hour on both sides of `start` (ns) as the range."""
    second = start // 10**9
    with open(f"{ROOT}/tools/package/grafana.json", encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    return {p["title"]: server.rows(p["targets"][0]["rawSql"].replace("$__fromTime", f"toDateTime({second - 3600})")
                                    .replace("$__toTime", f"toDateTime({second + 3600})"))[1] for p in panels}


@case
def gpu_and_other_runs(folder):
    """Two runs side by side: one is as it would be alone, and a view has both."""
    server = ClickHouse(folder)
    seeds = os.path.join(ROOT, "tests/fuzz/seeds")
    export(f"{seeds}/gpu.xspt", f"{folder}/gpu.db", server.url())
    same_as_sqlite_but_small(server, f"{folder}/gpu.db")
    export(f"{seeds}/torch.xspt", server.url())
    equal(server.number("SELECT count() FROM runs"), 2, "runs")
    db = sqlite3.connect(f"{folder}/gpu.db")
    run_id, spans = db.execute("SELECT run, COUNT(*) FROM spans GROUP BY run").fetchone()
    db.close()
    equal(server.number(f"SELECT count() FROM spans WHERE run = {run_id}"), spans, "spans of the first run")


def same_as_sqlite_but_small(server, database):
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    for query in queries():
        same_rows(server.rows(query)[1], db.execute(query).fetchall(), query)
    check(db.execute("SELECT COUNT(*) FROM gpu_activities").fetchone()[0] > 0, "activities")
    db.close()


@case
def server_killed_in_mid_load(folder):
    """By SIGKILL, and started again: no row is lost, none is there twice; and until the end none counts."""
    spans = 600_000
    server = ClickHouse(folder)
    capture = long_capture(folder, spans)
    loading = start([XSPTRACE, "export", "-q", capture, "-o", server.url()], env=dict(os.environ, **USER))
    wait_for(lambda: server.number("EXISTS TABLE all_spans") and server.number("SELECT count() FROM all_spans") > 0, 20, "rows")
    server.kill()
    time.sleep(0.5)
    check(loading.poll() is None, "it goes on")
    server.start()
    equal(server.number("SELECT count() FROM spans"), 0, "what counts in the middle of it")
    equal(loading.wait(timeout=300), 0, "status")
    equal([int(n) for n in server.query("SELECT count(), uniqExact(id), min(id), max(id) FROM spans").split()],
          [spans, spans, 1, spans], "spans")
    server.kill()  # acknowledged rows outlive the server
    server.start()
    equal(server.number("SELECT count() FROM spans"), spans, "spans after another end")


def refused(capture, output, status, *words, **environment):
    done = export(capture, output, status=status, **environment)
    lines = done.stderr.splitlines()
    equal(len(lines), 1, f"lines: {done.stderr!r}")
    for word in words:
        check(word in lines[0], f"the line does not say {word!r}", lines[0])
    print(f"  {status}: {lines[0]}")
    return done


@case
def refusals(folder):
    """Each has one line, and a status of its own."""
    server = ClickHouse(folder)
    capture, _ = made(folder)
    refused(capture, server.url(), ACCESS, "assword", XSPTRACE_CLICKHOUSE_PASSWORD="wrong")
    refused(capture, server.url(), ACCESS, "nobody", XSPTRACE_CLICKHOUSE_USER="nobody")
    refused(capture, server.url("nowhere"), USAGE, "nowhere", "CREATE DATABASE")
    server.query("CREATE DATABASE others")
    server.query("CREATE TABLE others.names (name String) ENGINE = Memory")
    refused(capture, server.url("others"), USAGE, "not xsptrace's")
    # tables of another version: the first said none
    for database, made_by, version in (("first", "CREATE TABLE first.batches (run Int64) ENGINE = Memory", 1),
                                       ("later", "CREATE VIEW later.schema_version AS SELECT 999 AS version", 999)):
        server.query(f"CREATE DATABASE {database}")
        server.query(made_by)
        refused(capture, server.url(database), USAGE, f"are of version {version} ", "CREATE DATABASE")
        equal(server.number(f"SELECT count() FROM system.tables WHERE database = '{database}'"), 1, "what was made there")
    # the file instead of the environment
    path = f"{folder}/who"
    with open(path, "w", encoding="ascii") as f:
        f.write("# who we are\nuser=tracer\npassword=pass word\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XSPTRACE_CLICKHOUSE")}
    environment["XSPTRACE_CLICKHOUSE_FILE"] = path
    os.chmod(path, 0o640)
    done = xsptrace("export", capture, "-o", server.url(), status=USAGE, env=environment)
    check("chmod 600" in done.stderr, "a file that others may read", done.stderr)
    os.chmod(path, 0o600)
    xsptrace("export", capture, "-o", server.url(), env=environment)
    check(server.number("SELECT count() FROM spans") > 0, "spans")


@case
def full_disk(folder):
    server = ClickHouse(folder, room="12m")
    capture = long_capture(folder, 1_000_000)
    refused(capture, server.url(), OUTPUT, "disk is full")
    equal(server.number("SELECT count() FROM spans"), 0, "what counts")


# ---- without ClickHouse ----


class Fake(http.server.BaseHTTPRequestHandler):
    """As much of a server as the loading needs, which keeps rows by the batches they came in. `plan`: what becomes of each INSERT
    of rows, in turn: "well"; "503", before it is done; "cut" in the middle of the reply, or "silent", without one, after it is done;
    "half": the connection ends before all of the rows were read."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, text, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def end_now(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self):
        state, size = self.server.state, int(self.headers["Content-Length"])
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        if "query" not in query:
            self.reply(state.do(self.rfile.read(size).decode()))
            return
        action = state.plan.pop(0) if state.plan else "well"
        state.actions.append(action)
        if action == "503":
            self.rfile.read(size)
            self.reply("busy", 503, [("Retry-After", "1")] if state.actions == ["503"] else [])
            return
        if action == "half":
            self.rfile.read(size // 2)
            self.end_now()
            return
        state.insert(query["query"][0], self.rfile.read(size))
        if action == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            self.end_now()
        elif action == "silent":
            self.end_now()
        else:
            self.reply("")


class State:
    def __init__(self, plan):
        self.plan, self.actions = list(plan), []
        self.types, self.rows, self.batches, self.loads, self.version = {}, {}, [], [], None
        self.forget = 0

    def do(self, statement):
        if statement.startswith("EXISTS"):
            return "0\n"
        if made := re.match(r"CREATE VIEW IF NOT EXISTS schema_version AS SELECT (\d+) AS version$", statement):
            self.version = made[1]
        elif statement == "SELECT version FROM schema_version":
            return f"{self.version}\n"
        if "system.tables" in statement or statement.startswith("SELECT max(load)"):
            return "0\n"
        if table := re.match(r"CREATE TABLE IF NOT EXISTS all_(\w+) \((.*)\) ENGINE", statement):
            self.types[table[1]] = [c.split(" ") for c in table[2].split(", ")]
        elif values := re.match(r"INSERT INTO batches .* VALUES (.*)", statement):
            self.batches += [(table, int(number)) for table, number in
                             re.findall(r"\(\d+,\d+,'(\w+)',(\d+),\d+\)", values[1])]
        elif statement.startswith("INSERT INTO loads"):
            self.loads.append(statement)
        elif count := re.match(r"SELECT count\(\) FROM all_(\w+) ", statement):
            return f"{len(self.counting(count[1])) - self.forget}\n"
        return ""

    def insert(self, statement, body):
        table = re.match(r"INSERT INTO all_(\w+) \((.*)\) FORMAT RowBinary", statement)
        equal(table[2].split(", "), [name for name, _ in self.types[table[1]]], "columns")
        for row in decode(body, self.types[table[1]]):
            self.rows.setdefault((table[1], row["batch"]), []).append(row)

    def counting(self, table):
        """What the views would show."""
        numbers = {number for name, number in self.batches if name == table}
        return [r for (name, number), rows in self.rows.items() if name == table and number in numbers for r in rows]


def decode(body, columns):
    """RowBinary, by the types of the table."""
    at = 0
    def take(n):
        nonlocal at
        at += n
        check(at <= len(body), "a row ends where the body does")
        return body[at - n:at]
    formats = {"Int64": "<q", "UInt64": "<Q", "UInt32": "<I", "UInt8": "<B"}
    def value(kind):
        if nullable := re.fullmatch(r"Nullable\((\w+)\)", kind):
            return None if take(1) == b"\1" else value(nullable[1])
        if kind != "String":
            return struct.unpack(formats[kind], take(struct.calcsize(formats[kind])))[0]
        length = shift = 0
        while True:
            byte = take(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return take(length).decode("utf-8")
    while at < len(body):
        yield {name: value(kind) for name, kind in columns}


def fake(plan):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.daemon_threads = True
    server.state = State(plan)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"clickhouse://127.0.0.1:{server.server_address[1]}/d"


@case
def broken_replies(folder):
    """Where it is not known whether rows arrived, they are sent again, and count once."""
    capture, expected = made(folder)
    plan = ["503", "cut", "silent", "half", "well", "cut", "well", "well", "503", "503", "silent"]
    server, url = fake(plan)
    done = export(capture, f"{folder}/made.db", url)
    check("times something was sent again" in done.stderr, "it is said", done.stderr)
    state = server.state
    server.shutdown()
    equal(state.actions[:len(plan)], plan, "what became of the first batches")
    equal(len(state.loads), 1, "loads")
    db = sqlite3.connect(f"{folder}/made.db")
    db.row_factory = sqlite3.Row
    for table, columns in state.types.items():
        names = [n for n, _ in columns if n != "batch"]
        ours = [tuple(r) for r in db.execute(f"SELECT {', '.join(names)} FROM {table}")]
        equal(in_order(tuple(r[n] for n in names) for r in state.counting(table)), in_order(ours), f"rows of {table}")
    equal(sum(len(r) for r in state.rows.values()) > sum(len(state.counting(t)) for t in state.types), True,
          "some came twice, and do not count")
    equal(len(state.counting("spans")), len(expected["spans"]), "spans")
    db.close()


@case
def server_that_loses_rows(folder):
    """It has taken them, and does not have them in the end: then nothing of the load counts."""
    capture, _ = made(folder)
    server, url = fake([])
    server.state.forget = 1
    refused(capture, url, OUTPUT, "rows of", "nothing of this load counts")
    equal(server.state.loads, [], "loads")
    server.shutdown()


@case
def server_that_does_not_come_back(folder):
    """After the patience that was asked for."""
    capture, _ = made(folder)
    server, url = fake(["503"] * 100)
    begun = time.monotonic()
    refused(capture, url, SERVER, "503", XSPTRACE_CLICKHOUSE_PATIENCE="2")
    check(time.monotonic() - begun < 20, "it gives up", time.monotonic() - begun)
    server.shutdown()


@case
def words_that_are_wrong(folder):
    capture, _ = made(folder)
    closed = free_port()
    refused(capture, f"clickhouse://127.0.0.1:{closed}/d", SERVER, "connect", str(closed))
    for url in ("clickhouse://", "clickhouse://host", "clickhouse://host/", "clickhouse:///d", "clickhouse://h/a/b", "clickhouse://h/d?x=1",
                "clickhouse://h:/d", "clickhouse://h:http/d", "clickhouse://h/a b"):
        refused(capture, url, USAGE, "clickhouse://HOST[:PORT]/DATABASE")
    # a password on the command line is not repeated, wherever it stands
    for url in ("clickhouse://me:secret@h/d", "clickhouse://h/d?user=me&password=secret", "clickhouse://h/d&password=secret",
                "clickhouse://h/d;password=secret"):
        done = refused(capture, url, USAGE, "XSPTRACE_CLICKHOUSE_PASSWORD")
        check("secret" not in done.stderr, f"{url} is repeated", done.stderr)
    for url in ("clickhouse://h/d%3Fpassword=secret", "clickhouse://h#secret", "clickhouse:/h/d?password=secret", "http://me:secret@h/d"):
        for command in (["export", capture, "-o", url], ["-o", url, "--", "/bin/true"]):
            done = xsptrace(*command, status=USAGE)
            check("secret" not in done.stdout + done.stderr, f"{command} is repeated", done.stderr)
    refused(capture, f"clickhouse://127.0.0.1:{closed}/d", USAGE, "control character", XSPTRACE_CLICKHOUSE_PASSWORD="a\nb")
    refused(capture, f"clickhouse://127.0.0.1:{closed}/d", USAGE, "PATIENCE", XSPTRACE_CLICKHOUSE_PATIENCE="long")
    # names of databases: any letters, and those that would be a file's
    for name in ("übung", "run.xspt"):
        refused(capture, f"clickhouse://127.0.0.1:{closed}/{name}", SERVER, "connect", name)
    done = xsptrace("-o", "clickhouse://h/d", "--", "/bin/true", status=USAGE)
    check("-o run.xspt" in done.stderr, "what to do instead", done.stderr)
    class Other(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>welcome</html>")
        def log_message(self, *_):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    refused(capture, f"clickhouse://127.0.0.1:{server.server_address[1]}/d", SERVER, "no ClickHouse")
    server.shutdown()


def raw_server(answer):
    """Accepts connections and, after each request, gives the connection to `answer`."""
    listener = socket.create_server(("127.0.0.1", 0))
    def serve():
        while True:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1 << 16)
                    answer(connection)
            except OSError:  # the client has hung up; or we have, and the next accept() fails
                if listener.fileno() < 0:
                    return
    threading.Thread(target=serve, daemon=True).start()
    return listener, f"clickhouse://127.0.0.1:{listener.getsockname()[1]}/d"


@case
def server_that_lies(folder):
    """Endless answers, redirections, and no HTTP at all: a line and a status, soon."""
    capture, _ = made(folder)
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"1" * (1 << 16))
    def elsewhere(to):
        return lambda c: c.sendall(b"HTTP/1.1 302 Found\r\nLocation: " + to + b"\r\nContent-Length: 0\r\n\r\n")
    for answer, words in ((endless, ("no ClickHouse",)), (elsewhere(b"file:///etc/passwd"), ("302",)),
                          (elsewhere(b"http://127.0.0.2:1/"), ("302",)),
                          (lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), ())):
        listener, url = raw_server(answer)
        begun = time.monotonic()
        refused(capture, url, SERVER, *words)
        check(time.monotonic() - begun < 20, "it gives up", time.monotonic() - begun)
        listener.close()


@case
def server_that_is_silent(folder):
    """It takes the connection and never answers, or trickles: an export does not wait for ever, and says for how long it did."""
    capture, _ = made(folder)
    def trickle(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        for _ in range(200):
            connection.sendall(b"0")
            time.sleep(0.5)
    said = {}
    def try_it(name, answer):
        listener, url = raw_server(answer)
        begun = time.monotonic()
        try:
            refused(capture, url, SERVER, "has not answered for 20 s", "8123")
            said[name] = time.monotonic() - begun
        except AssertionError as e:
            said[name] = e
        listener.close()
    threads = [threading.Thread(target=try_it, args=a) for a in (("mute", lambda c: time.sleep(100)), ("trickle", trickle))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(all(isinstance(s, float) and 15 < s < 60 for s in said.values()), "how long", said)


@case
def certificates(folder):
    """clickhouses:// takes a server whose certificate its CA vouches for, and no other."""
    if not shutil.which("openssl"):
        raise Skip("no openssl")
    import ssl
    capture, expected = made(folder)
    made_key = run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-keyout", f"{folder}/key", "-out", f"{folder}/cert", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
    equal(made_key.returncode, 0, made_key.stderr)
    server, url = fake([])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = url.replace("clickhouse:", "clickhouses:")
    refused(capture, url, SERVER, "certificate", "XSPTRACE_CLICKHOUSE_CA")
    export(capture, url, XSPTRACE_CLICKHOUSE_CA=f"{folder}/cert")
    equal(len(server.state.counting("spans")), len(expected["spans"]), "spans")
    server.shutdown()


# ---- how large, how fast ----


def load(capture, output, env, cpu=lambda: 0):
    """Says how long it took, how much of processors, also of a server (`cpu`), and how much memory."""
    begun, before = time.monotonic(), cpu()
    pid = os.posix_spawn(XSPTRACE, [XSPTRACE, "export", "-q", capture, "-o", output], env)
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - begun
    equal(status, 0, output)
    print(f"  {output}: {SPANS / wall:.0f} spans/s, {wall:.0f} s (CPU: {usage.ru_utime + usage.ru_stime:.1f} s xsptrace, "
          f"{cpu() - before:.1f} s server), peak {usage.ru_maxrss / 1024:.0f} MB", flush=True)


def documented():
    """(title, query) of docs/sql.md."""
    with open(os.path.join(ROOT, "docs/sql.md"), encoding="utf-8") as f:
        titles = re.findall(r"\n([^\n]+):\n\n```sql\n", f.read())
    equal(len(titles), len(queries()), "titles")
    return list(zip(titles, queries()))


def ask_all(asked, ask, cpu):
    """How many rows each query gives; says how long it took, of processors too."""
    counts = []
    for title, query in asked:
        begun, before = time.monotonic(), cpu()
        counts.append(len(ask(query)))
        print(f"    {title[:50]:50} {time.monotonic() - begun:8.2f} s, {cpu() - before:8.2f} s of CPU, {counts[-1]} rows", flush=True)
    return counts


@case(long="millions of rows")
def scale(folder):
    """XSP_SQL_SPANS spans in both: figures, and that all are there."""
    server = ClickHouse(folder)
    capture, database = long_capture(folder, SPANS), f"{folder}/long.db"
    print(f"  {SPANS} spans, capture {os.path.getsize(capture) / 1e9:.2f} GB")
    load(capture, server.url(), {**os.environ, **USER}, server.cpu)
    equal([int(n) for n in server.query("SELECT count(), uniqExact(id), min(id), max(id) FROM spans").split()],
          [SPANS, SPANS, 1, SPANS], "spans in ClickHouse")
    size = server.number("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'd'")
    print(f"    {size / 1e9:.2f} GB on disk, {size / SPANS:.1f} bytes a span", flush=True)
    theirs = ask_all(documented(), lambda query: server.rows(query)[1], server.cpu)
    load(capture, database, dict(os.environ))
    size = os.path.getsize(database)
    print(f"    {size / 1e9:.2f} GB on disk, {size / SPANS:.1f} bytes a span", flush=True)
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    equal(ask_all(documented(), lambda query: db.execute(query).fetchall(), time.process_time), theirs, "rows of answers")
    db.close()


def load_in_trouble(server, capture, who):
    """Half the time the server is killed in mid-load, else xsptrace, which then loads again."""
    loading = start([XSPTRACE, "export", "-q", capture, "-o", server.url()], env=dict(os.environ, **USER))
    before = server.number("SELECT count() FROM all_spans")
    wait_for(lambda: loading.poll() is not None or server.number("SELECT count() FROM all_spans") > before, 60, "rows of the load")
    check(loading.poll() is None, "it is still loading")
    if who == "server":
        server.kill()
        server.start()
        equal(loading.wait(timeout=600), 0, "status after the server's end")
    else:
        loading.kill()
        loading.wait()
        export(capture, server.url())


@case(long="recordings of a hundred jobs")
def scale_of_jobs(folder):
    """100 jobs of equal size on one server, one after the other, as many spans as XSP_SQL_JOB; of two a load is killed. All are there once."""
    server, jobs, spans = ClickHouse(folder), 100, int(os.environ.get("XSP_SQL_JOB", 20_000))
    wall = cpu = ours = 0
    for job in range(jobs):
        capture = long_capture(folder, spans)
        begun, before, used = time.monotonic(), server.cpu(), os.times()
        if job in (40, 60):
            load_in_trouble(server, capture, "server" if job == 40 else "xsptrace")
            continue
        export(capture, server.url())
        wall, cpu, ended = wall + time.monotonic() - begun, cpu + server.cpu() - before, os.times()
        ours += ended.children_user + ended.children_system - used.children_user - used.children_system
    loaded = (jobs - 2) * spans
    print(f"  {jobs} jobs of {spans} spans: {loaded / wall:.0f} spans/s, {wall:.0f} s (CPU: {ours:.1f} s xsptrace, {cpu:.1f} s server)", flush=True)
    equal([int(n) for n in server.query("SELECT count(), uniqExact(run), uniqExact(run, id), max(id) FROM spans").split()],
          [jobs * spans, jobs, jobs * spans, spans], "spans, runs, different ones")
    equal(server.number("SELECT count() FROM loads"), jobs, "loads that count")
    size = server.number("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'd'")
    print(f"    {size / 1e9:.2f} GB on disk, {size / jobs / spans:.1f} bytes a span", flush=True)
    begun = time.monotonic()
    for statement in fleet_statements("tables.clickhouse.sql") + fleet_statements("roll-up.sql"):
        server.query(statement)
    print(f"    rolled up in {time.monotonic() - begun:.2f} s", flush=True)
    ask_all(documented() + list(fleet_questions(0).items()), lambda query: server.rows(query)[1], server.cpu)


if __name__ == "__main__":
    sys.exit(main(traces=False))
