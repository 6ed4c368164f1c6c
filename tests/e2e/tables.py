# SPDX-License-Identifier: BSD-2-Clause
"""Outputs for other programs, .db, .csv, .pb.gz and .speedscope.json, as sqlite3, csv, json and Go's pprof read them: the same spans, states, samples,
activities and losses as in the Chrome trace of the same capture, to the nanosecond."""
import collections
import csv
import decimal
import gzip
import io
import json
import math
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys

import shared
from harness import OUTPUT, ROOT, USAGE, WORKLOADS, XSPTRACE, Skip, case, check, equal, main, run, xsptrace

FIBER_TID = 0x20000001
CATEGORIES = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
GPU = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation", "overhead")
STEPS = 128  # ns: what the Chrome trace takes off spans that ended together (docs/formats.md)


def ns(us):
    return round(us * 1000)  # a Decimal: exact


def shown(value):
    """JSON escapes control characters; formats without escapes have U+FFFD for them."""
    if isinstance(value, str):
        return re.sub("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]", "\ufffd", value)
    if isinstance(value, dict):
        return {shown(k): shown(v) for k, v in value.items()}
    return [shown(v) for v in value] if isinstance(value, list) else value


class Both:
    """A capture as .json and as .db."""

    def __init__(self, capture, folder, name="both"):
        self.path = {e: f"{folder}/{name}.{e}" for e in ("json", "db", "csv", "pb.gz", "speedscope.json")}
        xsptrace("export", "-q", "--weight", "wall", "--by", "step", capture, *(a for p in self.path.values() for a in ("-o", p)))
        with open(self.path["json"], encoding="utf-8") as f:
            self.json = shown(json.load(f, parse_float=decimal.Decimal))
        self.events = self.json["traceEvents"]
        self.db = sqlite3.connect(f"file:{self.path['db']}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        equal(self.db.execute("PRAGMA integrity_check").fetchone()[0], "ok", "integrity")
        run_ns = self.db.execute("SELECT start_ns FROM runs").fetchone()[0]
        self.shift = run_ns - self.json["baseTimeNanoseconds"]  # time in the database to that in the trace

    def rows(self, query):
        return self.db.execute(query).fetchall()

    def slices(self, categories):
        return [e for e in self.events if e["ph"] == "X" and e["cat"] in categories]

    def spans(self):
        """Of any category, as a trace that was read has its own; not calls of CUDA's API."""
        return [e for e in self.events if e["ph"] == "X" and e["cat"] not in (*GPU, *CATEGORIES[2:], "Trace", "thread_state")]


def check_spans(b):
    """Each on its thread, under its name, from when to when; those whose end was not seen have no duration."""
    found = {r["id"]: r for r in b.rows("SELECT * FROM calls WHERE id IS NOT NULL")}
    slices = b.spans()
    ops = {e["args"]["External id"]: e for e in slices}
    equal(len(ops), len(slices), "ids")
    equal(sum(r["category"] not in CATEGORIES[2:] for r in found.values()), len(slices), "spans")
    for key, e in ops.items():
        r, args = found[key], e["args"]
        equal((r["pid"], r["name"]), (e["pid"], e["name"]), f"span {key}")
        check(r["category"] in (e["cat"], "other"), f"category of {key}", r["category"], e["cat"])
        check(r["tid"] == e["tid"] if r["fiber"] == 0 else e["tid"] >= FIBER_TID, f"thread of {key}", tuple(r), e)
        equal(r["start_ns"] + b.shift, ns(e["ts"]), f"start of {key}")
        short = r["end_ns"] - r["start_ns"] - ns(e["dur"])
        check(0 <= short <= (0 if r["ending"] in ("returned", "tail call", "point") else STEPS), f"end of {key}", short)
        equal((r["ending"] == "unfinished", r["ending"] == "unwound", r["ending"] == "exit lost"),
              (args.get("finished") is False, bool(args.get("unwound")), bool(args.get("exit lost"))), f"ending of {key}")
        equal(r["duration_ns"] is None, r["ending"] in ("unfinished", "exit lost", "point"), f"duration of {key}")
        if "cpu_time (us)" in args:
            equal(r["cpu_ns"], ns(args["cpu_time (us)"]), f"time on a CPU of {key}")
    return found


def check_family(b, found):
    """Parents lie around their children, and self time is without them, where there is one stack a thread."""
    inside = collections.Counter()
    for r in found.values():
        parent = found.get(r["parent_id"])
        equal(parent is None, r["depth"] == 0, f"parent of {r['id']}")
        if parent is None:
            continue
        inside[parent["id"]] += r["end_ns"] - r["start_ns"]
        equal((parent["tid"], parent["fiber"], parent["depth"]), (r["tid"], r["fiber"], r["depth"] - 1), "parent")
        check(parent["start_ns"] <= r["start_ns"] and r["end_ns"] <= parent["end_ns"], "a parent lies around", tuple(r))
    many = {r["tid"] for r in found.values() if r["fiber"]}
    for r in found.values():
        if r["duration_ns"] is not None and r["tid"] not in many:
            equal(r["self_ns"], r["duration_ns"] - inside[r["id"]], f"self time of {r['id']}")


def check_operators(b, found):
    """The view, against sums over the trace's slices."""
    calls = collections.Counter(e["name"] for e in b.spans())
    measured, total, own = collections.Counter(), collections.Counter(), collections.Counter()
    for r in found.values():
        if r["duration_ns"] is None:
            continue
        up, recursive = found.get(r["parent_id"]), False
        while up is not None and not recursive:
            recursive = up["name"] == r["name"]
            up = found.get(up["parent_id"])
        measured[r["name"]] += 1
        own[r["name"]] += r["self_ns"]
        if not recursive:
            total[r["name"]] += r["duration_ns"]
    view = {r["name"]: r for r in b.rows("SELECT * FROM operators")}
    for name, count in calls.items():
        r = view[name]
        equal((r["calls"], r["measured"], r["total_ns"] or 0, r["self_ns"] or 0),
              (count, measured[name], total[name], own[name]), f"operator {name!r}")


def check_stacks(b, found):
    """A span's stack has the names of its ancestors, without other functions between them."""
    stacks = {r["stack_id"]: r for r in b.rows("SELECT s.*, n.name FROM stacks s JOIN names n USING (run, name_id)")}
    for r in found.values():
        by_parents, up = [], r
        while up is not None:
            by_parents.append(up["name"])
            up = found.get(up["parent_id"])
        frame, by_stack = stacks[r["stack_id"]], []
        while frame is not None:
            by_stack.append(frame["name"])
            frame = stacks.get(frame["parent_id"])
        equal(by_stack, by_parents, f"stack of {r['id']}")
    return stacks


def path_of(b, stack):
    rows = b.db.execute("WITH RECURSIVE up AS (SELECT * FROM stacks WHERE stack_id = ? UNION ALL SELECT s.* FROM up JOIN "
                        "stacks s ON s.stack_id = up.parent_id) SELECT name FROM up JOIN names USING (run, name_id) "
                        "ORDER BY depth", (stack,)).fetchall()
    return ";".join(r[0] for r in rows)


def check_samples(b):
    wanted = collections.Counter((e["pid"], e["tid"], ns(e["ts"]), e["name"], e["args"]["weight (ns)"], e["args"]["stack"])
                                 for e in b.events if e["ph"] == "i" and e.get("cat") == "sample")
    got = collections.Counter((r["pid"], r["tid"], r["time_ns"] + b.shift, r["name"], r["weight_ns"], path_of(b, r["stack_id"]))
                              for r in b.rows("SELECT s.*, t.pid, t.tid, n.name FROM samples s JOIN threads t USING (run, "
                                              "thread_id) JOIN names n USING (run, name_id)"))
    equal(got, wanted, "samples")
    return len(got)


def check_states(b):
    """Slices, what they waited for, and the sums of threads."""
    tids = {(e["pid"], e["tid"]): int(re.match(r"thread (\d+)", e["args"]["name"])[1]) for e in b.events
            if e["ph"] == "M" and e["name"] == "thread_name" and e["args"]["name"].endswith(" states")}
    wanted = sorted(
        (tids[e["pid"], e["tid"]], ns(e["ts"]), e["name"].partition(":")[0], e["name"].partition(": ")[2] or "",
         str(e["args"].get("system call", "")), ns(e["args"].get("short waits (us)", 0)), ns(e["dur"]))
        for e in b.slices(("thread_state",)))
    got = sorted(
        (r["tid"], r["start_ns"] + b.shift, r["state"], r["reason"] or "", r["system_call"] or "", r["short_waits_ns"] or 0,
         r["end_ns"] - r["start_ns"]) for r in b.rows("SELECT s.*, t.tid FROM thread_states s JOIN threads t USING (run, thread_id)"))
    equal([g[:-1] for g in got], [w[:-1] for w in wanted], "states")
    short = [g[-1] - w[-1] for g, w in zip(got, wanted)]  # docs/formats.md
    check(set(short) <= {0, 1} and sum(short) <= 5 + len(short) / 4, "lengths of states", collections.Counter(short))
    threads = {(t["tid"], t["time_ns"], t["running_ns"], t["runnable_ns"]) for t in b.json.get("xsptrace_threads", [])}
    equal({(r["tid"], r["time_ns"], r["running_ns"], r["runnable_ns"])
           for r in b.rows("SELECT * FROM threads WHERE time_ns IS NOT NULL")}, threads, "sums of threads")
    reasons = {(t["tid"], why, blocked) for t in b.json.get("xsptrace_threads", []) for why, blocked in t["blocked_ns"].items()}
    equal({(r["tid"], r["reason"], r["blocked_ns"])
           for r in b.rows("SELECT w.*, t.tid FROM thread_waits w JOIN threads t USING (run, thread_id)")}, reasons, "reasons")
    return len(got)


def check_gpu(b):
    """Activities, and the calls that have CUPTI's numbers."""
    wanted = collections.Counter((e["cat"], e["name"], ns(e["ts"]), ns(e["dur"]),
                                  e["args"].get("correlation") or None, e["args"].get("External id"))
                                 for e in b.slices(GPU))
    got = collections.Counter((r["category"], r["name"], r["start_ns"] + b.shift, r["end_ns"] - r["start_ns"],
                               r["correlation"] if r["category"] not in ("overhead", "gpu_user_annotation") else None,
                               r["operator_id"])
                              for r in b.rows("SELECT g.*, n.name FROM gpu_activities g JOIN names n USING (run, name_id)"))
    equal(got, wanted, "GPU activities")
    wanted = collections.Counter((e["cat"], e["name"], e["pid"], ns(e["ts"]), ns(e["dur"]), e["args"].get("External id"))
                                 for e in b.slices(CATEGORIES[2:]))
    calls = collections.Counter((r["category"], r["name"], r["pid"], r["start_ns"] + b.shift, r["end_ns"] - r["start_ns"],
                                 r["operator_id"]) for r in b.rows("SELECT * FROM calls WHERE category LIKE 'cuda%'"))
    equal(calls, wanted, "calls of CUDA's API")
    equal(b.rows("SELECT COALESCE(SUM(bytes), 0) FROM allocations WHERE pool <> 'heap'")[0][0],
          sum(e["args"]["Bytes"] for e in b.events if e["name"] == "[memory]"), "GPU memory")
    equal([r["total_bytes"] for r in b.rows("SELECT * FROM allocations WHERE pool = 'heap' ORDER BY time_ns")],
          [e["args"]["bytes"] for e in b.events if e["name"] == "heap (estimated)"], "the heap, each time that it changed")
    return len(got)


def check_counters(b):
    names = [n.rstrip("*") for n in (b.rows("SELECT value FROM meta WHERE key = 'counters'") or [("",)])[0][0].split(",")]
    wanted = {(e["args"]["External id"], n, e["args"][n]) for e in b.spans() for n in names if n in e["args"]}
    got = {tuple(r) for r in b.rows("SELECT c.span_id, n.name, c.value FROM counters c JOIN names n USING (run, name_id)")}
    equal(got, wanted, "counters")
    return len(got)


def check_lines(b):
    """The innermost line of Python: the first of the trace's call stack, which without Python is of native callers."""
    wanted = {e["args"]["External id"]: e["args"]["Call stack"].partition(";")[0] for e in b.spans()
              if re.match(r"[^;]*\(\d+\): ", e["args"].get("Call stack", ""))}
    got = {r["id"]: f"{r['file']}({r['line']}): {r['line_function']}" for r in b.rows("SELECT * FROM calls WHERE file IS NOT NULL")}
    equal(got, wanted, "lines")
    return len(got)


def check_losses(b):
    for part in ("losses", "timeline", "overhead"):
        equal({r["name"]: r["value"] for r in b.rows(f"SELECT * FROM losses WHERE part = '{part}'")},
              b.json[f"xsptrace_{part}"], part)
    equal({r["name"]: (r["lost_entries"], r["lost_exits"]) for r in b.rows(
              "SELECT * FROM functions JOIN names USING (run, name_id) WHERE lost_entries + lost_exits > 0")},
          {r["name"]: (r["entries"], r["exits"]) for r in b.json["xsptrace_lost_by_function"]}, "losses by function")


def check_csv(b):
    """As the database has it; every line ends as RFC 4180 says."""
    with open(b.path["csv"], "rb") as f:
        text = f.read()
    check(text.endswith(b"\r\n"), "the last line ends")
    lines = list(csv.DictReader(io.StringIO(text.decode("utf-8"), newline=""), strict=True))
    rows = [r for r in lines if r["id"]]
    def number(text):
        return int(text) if text else None
    columns = ("parent_id", "pid", "tid", "fiber", "depth", "start_ns", "end_ns", "duration_ns", "self_ns", "cpu_ns",
               "self_cpu_ns", "correlation", "operator_id")
    got = {int(r["id"]): (r["name"], r["thread"], r["category"], r["ending"], r["module"] or None, r["provider"],
                          *(number(r[c]) for c in columns)) for r in rows}
    wanted = {r["id"]: (r["name"], r["thread"], r["category"], r["ending"], r["module"], r["provider"], *(r[c] for c in columns))
              for r in b.rows("SELECT * FROM calls WHERE id IS NOT NULL")}
    equal(len(got), len(rows), "ids")
    equal(got, wanted, "lines of the table")
    def finite(text):  # docs/sql.md: NULL there, if it is not
        return float(text) if math.isfinite(float(text)) else None
    equal(collections.Counter((r["name"], int(r["tid"]), int(r["start_ns"]), finite(r["value"])) for r in lines if not r["id"]),
          collections.Counter((r["name"], r["tid"], r["time_ns"], r["value"]) for r in b.rows(
              "SELECT v.*, n.name, t.tid FROM program_values v JOIN names n USING (run, name_id) JOIN threads t USING (run, thread_id)")),
          "values")


def fields(message):
    """[(number, value)...] of a message in protobuf's wire format: ints, and bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            found.append((tag >> 3, varint()))
        else:
            equal(tag & 7, 2, "wire type")
            length = varint()
            found.append((tag >> 3, message[at:at + length]))
            at += length
    equal(at, len(message), "end of the message")
    return found


def packed(message):
    return [value for _, value in fields(b"".join(b"\x08" + n for n in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", message, re.S)))]


class Profile:
    """A profile.proto: {(thread, names from the outermost on): values}."""

    def __init__(self, path):
        with gzip.open(path) as f:
            top = fields(f.read())
        self.strings = [v.decode("utf-8") for n, v in top if n == 6]
        functions = {dict(f)[1]: self.strings[dict(f)[2]] for f in (fields(v) for n, v in top if n == 5)}
        # with a system name that equals the name, `go tool pprof` adds up templates that differ in their arguments
        check(not any(n == 3 for v in (v for n, v in top if n == 5) for n, _ in fields(v)), "functions with a system name")
        locations = {dict(f)[1]: functions[dict(fields(dict(f)[4]))[1]] for f in (fields(v) for n, v in top if n == 4)}
        self.types = [(self.strings[dict(t)[1]], self.strings[dict(t)[2]]) for t in (fields(v) for n, v in top if n == 1)]
        self.samples = {}
        for sample in (fields(v) for n, v in top if n == 2):
            s = dict(sample)
            label = dict(fields(s[3]))
            equal(self.strings[label[1]], "thread", "label")
            key = (self.strings[label[2]], *[locations[i] for i in reversed(packed(s[1]))])
            check(key not in self.samples, "a stack is there once", key)
            self.samples[key] = packed(s[2])


def check_pprof(b, found):
    """Calls, wall and CPU time of each stack of each thread's name."""
    wanted = collections.defaultdict(lambda: [0, 0, 0])
    for r in found.values():
        path, up = [], r
        while up is not None:
            path.append(up["name"])
            up = found.get(up["parent_id"])
        values = wanted[(r["thread"], *reversed(path))]
        values[0] += 1
        values[1] += r["self_ns"] or 0
        values[2] += r["self_cpu_ns"] or 0
    p = Profile(b.path["pb.gz"])
    waits = bool(b.json.get("xsptrace_threads"))
    equal(p.types, [("calls", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")][:3 if waits else 2], "types")
    equal(p.samples, {k: v[:len(p.types)] for k, v in wanted.items()}, "stacks")
    if shutil.which("go"):
        done = run(["go", "tool", "pprof", "-raw", b.path["pb.gz"]], env=dict(os.environ, HOME=os.path.dirname(b.path["db"])))
        equal(done.returncode, 0, f"go tool pprof: {done.stderr}")
        got = sum(int(m[1]) for m in re.finditer(r"^\s+(\d+)\s+\d+[^:]*: [\d ]+$", done.stdout, re.M))
        equal(got, len(found), "calls, as Go's pprof reads them")


def check_speedscope(b, found):
    """Begins and ends nest, their times never fall, and they are the spans."""
    with open(b.path["speedscope.json"], encoding="utf-8") as f:
        profile = shown(json.load(f))
    names = [f["name"] for f in profile["shared"]["frames"]]
    got = collections.Counter()
    for p in profile["profiles"]:
        tid, fiber = re.search(r"\) thread (\d+) .*?(?: stack (\d+))?$", p["name"], re.S).groups()
        stack, last = [], 0
        for e in p["events"]:
            check(e["at"] >= last, "times never fall", e)
            last = e["at"]
            if e["type"] == "O":
                stack.append(e)
                continue
            begin = stack.pop()
            equal(begin["frame"], e["frame"], "what ends is what began last")
            got[int(tid), int(fiber or 0), names[e["frame"]], begin["at"], e["at"]] += 1
        equal(stack, [], "what is open at the end")
        check(p["endValue"] >= last, "the end", p["name"])
    unseen = ("unfinished", "exit lost")
    equal(got, collections.Counter((r["tid"], r["fiber"], r["name"] + (" [end not seen]" if r["ending"] in unseen else ""),
                                    r["start_ns"], r["end_ns"]) for r in found.values()), "spans")


def check_all(capture, folder):
    b = Both(capture, folder)
    found = check_spans(b)
    check_family(b, found)
    check_operators(b, found)
    check_losses(b)
    check_samples(b)
    check_states(b)
    check_gpu(b)
    check_counters(b)
    check_lines(b)
    check_csv(b)
    check_speedscope(b, found)
    return b, found


def queries(languages="sql"):
    """Of docs/sql.md: what runs on any engine, or "sql(?:ite)?", on SQLite."""
    with open(os.path.join(ROOT, "docs/sql.md"), encoding="utf-8") as f:
        return re.findall(rf"```{languages}\n(.*?)```", f.read(), re.S)


FLEET = os.path.join(ROOT, "tools/package/fleet")


def fleet_text(name):
    with open(f"{FLEET}/{name}", encoding="utf-8") as f:
        return f.read()


def fleet_statements(name):
    text = re.sub(r"^(--|\.).*\n", "", fleet_text(name), flags=re.M)
    return [s.strip() for s in text.split(";") if s.strip()]


def fleet_questions(since_ns):
    """{title: query}, of regressions since then."""
    found = re.findall(r"^-- ([^\n]*)\n(SELECT.*?);", fleet_text("questions.sql"), re.S | re.M)
    return {title.split(":")[0]: query.replace("1793491200000000000", str(since_ns)) for title, query in found}


def check_queries(path, limit=20):
    """Those of docs/sql.md, by SQLite's own program, with so many rows."""
    if not shutil.which("sqlite3"):
        raise Skip("no sqlite3")
    answers = []
    for query in queries("sql(?:ite)?"):
        done = run(["sqlite3", "-readonly", "-json", path, re.sub(r"LIMIT 20\b", f"LIMIT {limit}", query)])
        equal((done.returncode, done.stderr), (0, ""), query)
        answers.append(json.loads(done.stdout) if done.stdout.strip() else [])
    return answers


def made(folder):
    """The capture of tests/consumers: names that break readers, fibers, exceptions, containers."""
    program = os.path.join(os.path.dirname(WORKLOADS), "make_capture")
    if not os.path.exists(program):
        raise Skip("make_capture is not built")
    equal(run([program, f"{folder}/made.xspt", f"{folder}/expected.json"]).returncode, 0, "make_capture")
    with open(f"{folder}/expected.json", encoding="utf-8") as f:
        return f"{folder}/made.xspt", json.load(f)


@case
def hostile_names(folder):
    capture, expected = made(folder)
    b, found = check_all(capture, folder)
    check_stacks(b, found)
    check_pprof(b, found)
    equal(len(found), len(expected["spans"]), "spans")
    text = lambda raw: shown(bytes.fromhex(raw).decode("utf-8", "replace"))
    names = {text(n) for n in expected["names"]}
    got = {r["name"] for r in b.rows("SELECT DISTINCT name FROM calls")}
    plain = {n for n in names if not n.startswith("_Z")}
    equal(got & plain, plain & {text(expected["names"][s[3]]) for s in expected["spans"]}, "names")
    equal({(r["tid"], r["name"]) for r in b.rows("SELECT * FROM threads")},
          {(tid if pid in (6001, 7001) else ns_tid, text(comm))
           for pid, tid, _, ns_tid, comm in expected["threads"]}, "threads")
    answers = check_queries(b.path["db"])
    check(all(any(set(r) for r in a) for a in (answers[0], answers[1], answers[4], answers[-3])), "answers", answers)
    first = answers[0][0]
    equal(first["name"], max(b.rows("SELECT * FROM operators"), key=lambda r: r["self_ns"] or 0)["name"], "slowest")


class Perfetto:
    """A .pftrace: slices that begin, as (category, name), and whether each track ends what it began."""

    def __init__(self, path):
        with open(path, "rb") as f:
            packets = [fields(v) for _, v in fields(f.read())]
        words, self.slices, depth = {3: {}, 10: {}}, collections.Counter(), collections.Counter()
        for packet in packets:
            for number, value in packet:
                if number == 12:
                    for kind, entry in fields(value):
                        entry = dict(fields(entry))
                        words[{1: 3, 2: 10}[kind]][entry[1]] = entry[2].decode("utf-8")
                elif number == 11:
                    e = dict(fields(value))
                    depth[e[11]] += 1 if e[9] == 1 else -1
                    if e[9] == 1:
                        self.slices[words[3][e[3]], words[10][e[10]]] += 1
        self.balanced = set(depth.values()) == {0}


@case
def of_a_chrome_trace(folder):
    """What was read from a trace has its categories, threads and values in every output."""
    where, other = {"pid": 7, "tid": 8}, {"pid": 0, "tid": 0}
    spans = [("python_function", "a.py(1): f", 0, 100, where), ("cpu_op", "aten::mm", 10, 50, where),
             ("user_annotation", "range", 20, 10, where), ('mine, "own"\n', "'; DROP TABLE spans; --", 22, 3, where),
             ("python_function", "a.py(1): f", 70, 5, where), ("cpu_op", "a\tb\r\nc\u2028d\0e", 200, 1.25, where),
             ("cpu_op", "same tid", 0, 9, {"pid": 9, "tid": 8}), ("cpu_op", "none", 1, 5, other), ("", "no category", 2, 1, other),
             ("cpu_op", "far", 5, 1, {"pid": 2 ** 40, "tid": 2 ** 41}), ("cpu_op", "text", 5, 1, {"pid": "rank 0", "tid": "main\n"}),
             ("cpu_op", "overlaps", 150, 100, where), ("cpu_op", "too", 190, 100, where)]
    spans += [(f"category {i}", "many", 1000 + i, 0.5, where) for i in range(300)]
    events = [{"ph": "X", "cat": c, "name": n, "ts": ts, "dur": dur, **ids} for c, n, ts, dur, ids in spans]
    values = [(t, {"value": 2.5 - t}, {"pid": 7, "tid": 8}) for t in range(20)] + [(50, {"a": 1e-300, "b": "3", "c": "x"}, {"pid": 9})]
    events += [{"ph": "C", "name": "loss", "ts": ts, "args": args, **ids} for ts, args, ids in values]
    with open(f"{folder}/trace.json", "w", encoding="utf-8") as f:
        json.dump(events, f)
    b, found = check_all(f"{folder}/trace.json", folder)
    check_stacks(b, found)
    check_pprof(b, found)
    expected = collections.Counter((shown(c), shown(n)) for c, n, *_ in spans)
    equal(collections.Counter((e["cat"], e["name"]) for e in b.spans()), expected, "the Chrome trace")
    # a byte in the database: 4 of ours, 251 of the trace, and one word for the rest
    seen = collections.Counter((r["category"], r["name"]) for r in found.values())
    rest = collections.Counter({k: n for k, n in expected.items() if k not in seen})
    equal(seen, expected - rest + collections.Counter({("other", "many"): sum(rest.values())}), "the database")
    check(all(c.startswith("category ") for c, _ in rest), "what is without a number", rest)
    xsptrace("export", "-q", f"{folder}/trace.json", "-o", f"{folder}/t.pftrace")
    perfetto = Perfetto(f"{folder}/t.pftrace")
    equal((perfetto.slices, perfetto.balanced), (seen, True), "Perfetto's own format")
    told = collections.Counter((r["name"], r["pid"], r["time_ns"], r["value"]) for r in b.rows(
        "SELECT v.*, n.name, t.pid FROM program_values v JOIN names n USING (run, name_id) JOIN threads t USING (run, thread_id)"))
    equal(told, collections.Counter([("loss", 7, 1000 * t, 2.5 - t) for t in range(20)] + [("loss a", 9, 50000, 1e-300), ("loss b", 9, 50000, 3.0)]),
          "values")


@case
def control_characters(folder):
    """Whatever a target calls things, no output has escape sequences, or marks that turn or hide text. One rule for all of them."""
    evil = ["\x1b[2J", "\x9b31m", "\u202eevil", "\u2066x\u2069", "\x07\x7f", "\u2028\u2029", "\U000e0041", "\r", "\ufff9"]
    names = [f"n{i} {e}" for i, e in enumerate(evil)]
    where = {"pid": 7, "tid": 8}
    trace = [{"ph": "X", "cat": f"c{n}", "name": n, "ts": 100 * i, "dur": 50, **where} for i, n in enumerate(names)]
    trace += [{"ph": "X", "cat": "user_annotation", "name": "r" + n, "ts": 100 * i + 1, "dur": 40, **where} for i, n in enumerate(names)]
    trace += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 100 * i + 2, "dur": 5, "args": {"correlation": i + 1}, **where}
              for i, _ in enumerate(names)]
    trace += [{"ph": "X", "cat": "kernel", "name": "k" + n, "ts": 100 * i + 10, "dur": 5, "pid": 0, "tid": 7,
               "args": {"correlation": i + 1, "stream": 7, "device": 0, "context": 1}} for i, n in enumerate(names)]
    trace += [{"ph": "C", "name": "v" + n, "ts": i, "args": {n: i}, **where} for i, n in enumerate(names)]
    trace += [{"ph": "M", "name": m, "args": {"name": "t" + "".join(evil)}, **where} for m in ("thread_name", "process_name")]
    trace += [{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 5, "dur": 1, "pid": "p" + "".join(evil), "tid": "t" + "".join(evil)}]
    with open(f"{folder}/trace.json", "w", encoding="utf-8") as f:
        json.dump({"host_name": "h" + "".join(evil), "deviceProperties": [{"id": 0, "name": "g" + "".join(evil)}], "traceEvents": trace}, f)
    endings = re.findall(r"\.[a-z][a-z0-9.]*", xsptrace("export", f"{folder}/trace.json", "-o", f"{folder}/x.nothing", status=USAGE).stderr.partition("one of")[2])
    endings = [e for e in endings if e != ".html"]  # its texts are JSON
    check({".json", ".json.gz", ".perf", ".folded", ".svg", ".csv", ".speedscope.json", ".pb.gz", ".pftrace", ".db"} <= set(endings), "formats", endings)
    outputs = [f"{folder}/out{e}" for e in endings]
    said = xsptrace("export", f"{folder}/trace.json", *(a for o in outputs for a in ("-o", o)))
    written = {o: open(o, "rb").read() for o in outputs}
    written = {o: gzip.decompress(b) if o.endswith(".gz") else b for o, b in written.items()}
    for verb in (["analyze"], ["info"], *(["analyze", "--format", f] for f in ("json", "csv")), ["export", "--summary", "json"]):
        written[" ".join(verb)] = xsptrace(verb[0], f"{folder}/trace.json", *verb[1:]).stdout.encode()
    written["standard output"], written["standard error"] = said.stdout.encode(), said.stderr.encode()
    # in binary formats single bytes say nothing
    bad = [b"\x1b[2J", "\x9b31m".encode(), "\u202e".encode(), "\u2066".encode(), b"\x07\x7f", "\u2028".encode(), "\U000e0041".encode(), "\ufff9".encode()]
    for o, b in written.items():
        equal([w for w in bad if w in b], [], f"in {o}")
        if not o.endswith((".db", ".pftrace", ".pb.gz")):
            equal(sorted(set(re.findall("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", b.decode("utf-8")))), [], f"in {o}")
    # JSON has them, escaped
    kept = {e["name"] for e in json.loads(written[f"{folder}/out.json"])["traceEvents"] if e["ph"] == "X"}
    check(set(names) <= kept, "names in JSON", sorted(set(names) - kept))
    equal({r[0] for r in sqlite3.connect(f"{folder}/out.db").execute("SELECT name FROM names WHERE name LIKE 'n_ %'")}, {shown(n) for n in names}, "in .db")


@case
def what_a_picture_does_not_draw(folder):
    """A frame says how much in it is too small to be drawn: what a search finds may be more by that."""
    trace = [{"ph": "X", "cat": "cpu_op", "name": "outer", "ts": 0, "dur": 1_000_000, "pid": 1, "tid": 1},
             {"ph": "X", "cat": "cpu_op", "name": "wide", "ts": 0, "dur": 500_000, "pid": 1, "tid": 1}]
    trace += [{"ph": "X", "cat": "cpu_op", "name": f"small{i}", "ts": 100 * i, "dur": 10, "pid": 1, "tid": 1} for i in range(3000)]
    trace += [{"ph": "X", "cat": "cpu_op", "name": "in it", "ts": 100 * i + 1, "dur": 2, "pid": 1, "tid": 1} for i in range(3000)]
    with open(f"{folder}/trace.json", "w", encoding="utf-8") as f:
        json.dump(trace, f)
    xsptrace("export", "-q", f"{folder}/trace.json", "-o", f"{folder}/t.svg", "-o", f"{folder}/t.html")
    with open(f"{folder}/t.svg", encoding="utf-8") as f:
        svg = f.read()
    hidden = {re.search(r"<title>([^\n]*)", g)[1]: int(m[1]) for g in svg.split("<g ") if (m := re.search(r'data-u="(\d+)"', g))}
    equal(hidden, {"wide": 3000 * 10_000}, "what is not drawn")


@case
def columns_that_are_documented(folder):
    capture, _ = made(folder)
    b = Both(capture, folder)
    with open(os.path.join(ROOT, "docs/sql.md"), encoding="utf-8") as f:
        text = f.read()
    for (table,) in b.rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"):
        check(f"`{table}`" in text, f"docs/sql.md does not name {table}")
        missing = [c["name"] for c in b.rows(f"PRAGMA table_xinfo({table})") if f"`{c['name']}`" not in text
                   and not c["name"].startswith(("grid_", "block_"))]
        kind = b.rows(f"SELECT type FROM sqlite_master WHERE name = '{table}'")[0][0]
        check(kind == "view" or not missing, f"docs/sql.md does not name columns of {table}", missing)


@case
def waits_and_samples(folder):
    """And counters, annotations, numbers, what an exception left, a heap."""
    b, found = check_all(shared.capture("demo").path, folder)
    check(check_states(b) > 50 and check_counters(b) > 0 and check_samples(b) > 20, "states, counters and samples")
    check({"returned", "unwound"} <= {r["ending"] for r in found.values()}, "how calls ended")
    check_queries(b.path["db"])


@case
def gpu(folder):
    b, _ = check_all(shared.capture("gpu").path, folder)
    check(check_gpu(b) > 100, "activities")
    answers = check_queries(b.path["db"])
    check(any("kernel" in row for answer in answers for row in answer), "kernels by operator")


@case
def lines_of_python(folder):
    capture, facts = shared.capture("torch")
    b, _ = check_all(capture, folder)
    check(check_lines(b) > 100 and check_samples(b) > 0, "lines and samples")
    # a range's line is who opened it, as in the summary, not PyTorch's function that did it
    ranges = b.rows("SELECT * FROM calls WHERE category = 'user_annotation' AND file IS NOT NULL")
    openers = [r["file"] for r in ranges if r["file"].endswith(("torch/_ops.py", "torch/autograd/profiler.py", "contextlib.py"))]
    check(len(ranges) > 0 and not openers, "lines of ranges", openers)
    answer = [r for a in check_queries(b.path["db"], limit=1000000) for r in a if r.get("function") == facts["function"]]
    equal({r["line"] for r in answer}, {facts["line"]}, "the line")
    equal([r["calls"] for r in answer if r["name"] == "aten::mm"], [facts["multiplied"]], "by line")


@case
def no_room(folder):
    """A file that cannot be written to its end is not there, and what stood there is."""
    capture, _ = made(folder)
    with open(f"{folder}/full.db", "w", encoding="ascii") as f:
        f.write("before")
    done = subprocess.run([XSPTRACE, "export", "-q", capture, "-o", f"{folder}/full.db"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)), check=False)
    equal(done.returncode, OUTPUT, "status")
    check("full.db: File too large" in done.stderr, "what is said", done.stderr)
    with open(f"{folder}/full.db", encoding="ascii") as f:
        equal(f.read(), "before", "what stood there")
    equal(sorted(n for n in os.listdir(folder) if n.startswith((".", "full"))), ["full.db"], "files")
    os.mkfifo(f"{folder}/pipe.db")
    done = xsptrace("export", "-q", capture, "-o", f"{folder}/pipe.db", status=OUTPUT, timeout=10)
    check("pipe.db: it is a pipe or a device" in done.stderr, "what is said of a pipe", done.stderr)
    done = xsptrace("-d", 1, "-o", f"{folder}/pipe.db", "--", "/bin/touch", f"{folder}/ran", status=OUTPUT)
    check("pipe.db: it is a pipe or a device" in done.stderr and not os.path.exists(f"{folder}/ran"),
          "it is said before anything is started", done.stderr)


if __name__ == "__main__":
    sys.exit(main())
