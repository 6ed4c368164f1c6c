#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures made by chance (chance.py), and parts of them: every format tells of the same spans, and a part is what Python
makes of the whole."""
import collections
import csv
import fnmatch
import io
import json
import os
import random
import re
import sqlite3
import struct

from captures import (ANNOTATION, EXIT, FAULTS, GAVE, MARK, MEMORY, PROCESS_MEMORY, PYTHON, RESULT, SAMPLE, TAKES, VALUE,
                      WORDS, WRITTEN, Made)
from chance import START, allocating, make
from harness import case, check, equal, main, xsptrace

FORMATS = ("json", "csv", "db", "speedscope.json", "folded")
SEEDS = range(int(os.environ.get("XSP_MADE_FROM", 1)), int(os.environ.get("XSP_MADE_TO", 9)))

# ---- readings ----


class Read:
    """All formats of one export; `spans` are those of the table."""

    def __init__(self, folder, capture, *options):
        self.path = {e: f"{folder}/part.{e}" for e in FORMATS}
        outputs = [word for p in self.path.values() for word in ("-o", p)]
        done = xsptrace("export", "-q", "--weight", "wall", capture, *options, *outputs, "--summary", "json", status=None)
        check(done.returncode in (0, 6), f"export {options}: {done.returncode}", done.stderr)
        self.summary = json.loads(done.stdout)
        with open(self.path["csv"], newline="", encoding="utf-8") as f:
            rows = csv.DictReader(io.StringIO(f.read(), newline=""), strict=True)
            words = ("thread", "category", "name", "provider", "module", "ending")
            self.spans = {int(r["id"]): {k: v if k in words else int(v) if v else None for k, v in r.items()} for r in rows}
        with open(self.path["json"], encoding="utf-8") as f:
            self.trace = json.load(f)
        with open(self.path["speedscope.json"], encoding="utf-8") as f:
            self.speedscope = json.load(f)
        self.database = sqlite3.connect(f"file:{self.path['db']}?mode=ro", uri=True)
        self.database.row_factory = sqlite3.Row

    def rows(self, query):
        return [dict(r) for r in self.database.execute(query)]

    def around(self, span):
        while span["parent_id"] in self.spans:
            span = self.spans[span["parent_id"]]
            yield span

    def check_all(self, what):
        self.check_database(what)
        self.check_trace(what)
        self.check_speedscope(what)
        if not self.many_stacks():  # a span's ancestors may be on another stack then
            self.check_sums(what)

    def many_stacks(self):
        return any(s["fiber"] for s in self.spans.values())

    def check_database(self, what):
        equal(self.rows("PRAGMA integrity_check")[0]["integrity_check"], "ok", what)
        calls = {r["id"]: r for r in self.rows("SELECT * FROM calls")}
        equal(sorted(calls), sorted(self.spans), f"{what}: ids in .db")
        for key, s in self.spans.items():
            differs = {k: (v, s[k]) for k, v in calls[key].items() if k in s and v != s[k] and (v is not None or s[k] != "")}
            equal(differs, {}, f"{what}: span {key} in .db and .csv")

    def check_trace(self, what):
        window = self.trace["xsptrace_window"]
        begin = window["start_ns"] - self.trace["baseTimeNanoseconds"]
        run = self.rows("SELECT * FROM runs")[0]
        begin -= window["start_ns"] - run["start_ns"]
        equal(run["duration_ns"], window["duration_ns"], f"{what}: length")
        slices = [e for e in self.trace["traceEvents"] if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")]
        equal(sorted(e["args"]["External id"] for e in slices), sorted(self.spans), f"{what}: ids in .json")
        for e in slices:
            s = self.spans[e["args"]["External id"]]
            start = round(e["ts"] * 1000) - begin
            check((e["name"], bool(s["cut"])) == (s["name"], "cut" in e["args"]) and abs(start - s["start_ns"]) <= 1 and
                  -2 <= s["end_ns"] - start - round(e["dur"] * 1000) <= 128, f"{what}: in .json and .csv", e, s)

    def check_speedscope(self, what):
        names = [f["name"] for f in self.speedscope["shared"]["frames"]]
        got = collections.Counter()
        for p in self.speedscope["profiles"]:
            tid, stack = re.search(r"\) thread (\d+) .*?(?: stack (\d+))?$", p["name"], re.S).groups()
            last, inside = p["startValue"], []
            for e in p["events"]:
                check(last <= e["at"] <= p["endValue"], f"{what}: times rise", e)
                last = e["at"]
                if e["type"] == "O":
                    inside.append(e)
                else:
                    begin = inside.pop()
                    equal(begin["frame"], e["frame"], f"{what}: what ends began last")
                    got[int(tid), int(stack or 0), names[e["frame"]], begin["at"], e["at"]] += 1
        expected = collections.Counter(
            (s["tid"], s["fiber"], s["name"] + (" [end not seen]" if s["ending"] in ("unfinished", "exit lost") else ""),
             s["start_ns"], s["end_ns"]) for s in self.spans.values())
        equal((got - expected, expected - got), (collections.Counter(), collections.Counter()), f"{what}: speedscope")

    def check_sums(self, what):
        """The summary, the view `operators` and folded stacks, against sums over spans."""
        names = collections.defaultdict(list)
        for s in self.spans.values():
            names[s["name"]].append(s)
        view = {r["name"]: r for r in self.rows("SELECT * FROM operators")}
        equal(sorted(view), sorted(names), f"{what}: names")
        for name, spans in names.items():
            whole = [s["duration_ns"] for s in spans if s["duration_ns"] is not None and not s["cut"]]
            outermost = [s for s in spans if all(a["name"] != name for a in self.around(s))]
            outer = sum(s["duration_ns"] or 0 for s in outermost)
            # which of those inside of one without an end are outermost, the view does not know: docs/sql.md
            if any(s["ending"] in ("unfinished", "exit lost") for s in outermost) and \
                    any(s["duration_ns"] is not None for s in spans if s not in outermost):
                equal(view[name]["total_ns"], None, f"{what}: total of {name!r}")
                outer = 0
            mean = sum(whole) / len(whole) if whole else None
            r = view[name]
            equal((r["calls"], r["measured"], r["cut_calls"], r["total_ns"] or 0, r["self_ns"] or 0, r["mean_ns"], r["max_ns"]),
                  (len(spans), len(whole), sum(bool(s["cut"]) for s in spans), outer, sum(s["self_ns"] or 0 for s in spans), mean, max(whole, default=None)),
                  f"{what}: operator {name!r}")
        totals = collections.Counter()
        for r in self.summary["names"]:
            totals["calls"] += r["calls"]
            totals["self"] += r.get("self_ns", 0)
        own = sum(s["self_ns"] or 0 for s in self.spans.values())
        equal((totals["calls"], totals["self"]), (len(self.spans), own), f"{what}: summary")
        with open(self.path["folded"], encoding="utf-8") as f:
            equal(sum(int(line.rpartition(" ")[2]) for line in f), own, f"{what}: folded stacks")


def part_of(whole, low, high, tid=None, keep=None, least=0, depth=0):
    """{id: span} of the part. Self time only if all time of children is on one stack."""
    left, inside = {}, collections.Counter()
    for s in whole.spans.values():
        outside = s["start_ns"] >= high or (s["start_ns"] < low and s["end_ns"] <= low)
        if outside or (tid and s["tid"] != tid) or s["end_ns"] - s["start_ns"] < least or (keep and not keep(s)):
            continue
        outer = sum(keep is None or keep(a) for a in whole.around(s))
        if depth == 0 or outer < depth:
            left[s["id"]] = dict(s, depth=outer, cut=int(s["start_ns"] < low or s["end_ns"] > high))
    for s in left.values():
        s["start_ns"], s["end_ns"] = max(s["start_ns"], low), min(s["end_ns"], high)
        s["parent_id"] = next((a["id"] for a in whole.around(s) if a["id"] in left), None)
        inside[s["parent_id"]] += s["end_ns"] - s["start_ns"]
    for s in left.values():
        if s["duration_ns"] is not None:
            s["duration_ns"] = s["end_ns"] - s["start_ns"]
            s["self_ns"] = s["duration_ns"] - inside[s["id"]]
    return left


def choose(dice, whole, length):
    """Options, and what they leave by Python."""
    options, what = [], {"low": 0, "high": 1 << 62}
    if dice.random() < 0.7:
        moments = [s[k] for s in whole.spans.values() for k in ("start_ns", "end_ns") if 0 <= s[k] <= length]
        low, high = sorted(dice.choice((dice.randrange(length + 1), dice.choice(moments or [0]))) for _ in range(2))
        if low < high:
            options += ["--from", f"{low}ns", "--to", f"{high}ns"]
            what.update(low=low, high=high)
    if dice.random() < 0.3 and whole.spans:
        what["tid"] = dice.choice(list(whole.spans.values()))["tid"]
        options += ["-t", what["tid"]]
    patterns, keep = dice.choice(((["same"], lambda s: s["name"] == "same"),
                                  (["record_function"], lambda s: s["category"] == "user_annotation"),
                                  (["!a*"], lambda s: not fnmatch.fnmatchcase(s["name"], "a*")),
                                  (["turn*", "work"], lambda s: s["name"] in ("turn 1", "turn 2", "work")), ([], None), ([], None)))
    options += [word for p in patterns for word in ("-e", p)]
    what["keep"] = keep
    if dice.random() < 0.3:
        what["least"] = dice.choice((1, 100, 30_000))
        options += ["--min-duration", f"{what['least']}ns"]
    if dice.random() < 0.3:
        what["depth"] = dice.choice((1, 2, 3))
        options += ["--max-depth", what["depth"]]
    return options, what


@case
def formats_agree_on_parts(folder):
    for seed in SEEDS:
        capture, dice = f"{folder}/made.xspt", random.Random(~seed)
        length = make(capture, seed)
        whole = Read(folder, capture)
        whole.check_all(f"seed {seed}")
        for _ in range(0 if whole.many_stacks() else 2):
            options, what = choose(dice, whole, length)
            part = Read(folder, capture, *options)
            title = f"seed {seed}, {' '.join(str(o) for o in options)}"
            part.check_all(title)
            expected = part_of(whole, **what)
            equal(sorted(part.spans), sorted(expected), f"{title}: spans")
            for key, s in expected.items():
                differs = {k: (part.spans[key][k], v) for k, v in s.items() if part.spans[key][k] != v and "cpu" not in k}
                equal(differs, {}, f"{title}: span {key}, got and expected")


def twenty_steps(folder):
    """With three calls of 5 us in each."""
    made, thread = Made(), (500, 500)
    made.clock(START)
    made.process(500)
    work, ranges = made.probe("work"), made.probe("record_function", provider="record_function", kind=ANNOTATION)
    for i in range(20):
        made.name(1000 + i, f"ProfilerStep#{i}")
        at = START + i * 1_000_000
        made.begin(at, thread, ranges, 9000, 1000 + i)
        for k in range(3):
            made.entry(at + 1000 + k * 10_000, thread, work, 8000)
            made.exit(at + 6000 + k * 10_000, thread, work, 8000)
        made.end(at + 500_000, thread, ranges, 9000)
    made.finish(f"{folder}/steps.xspt", START, START + 20_000_000)
    return f"{folder}/steps.xspt"


@case
def steps_of_chosen_names(folder):
    """Dropped names are steps all the same, with the kept spans in them."""
    capture = twenty_steps(folder)
    for options in ([], ["-e", "work"], ["-e", "!record_function"]):
        steps = json.loads(xsptrace("export", capture, *options, "--summary", "json").stdout)["steps"]
        equal((steps["steps"], steps["not_whole"], steps["mean_ns"]), (20, 0, 500_000), f"steps with {options}")
        equal((steps["calls"], steps["threads"][0]["names"][0]["self_ns"]), (60, 60 * 5000), f"what is in them with {options}")


@case
def what_is_loaded_and_stays_does_not_leak(folder):
    """It grew for as long as there were allocations, and then for long it did not."""
    for end, grows in ((2_000_000_000, True), (20_000_000_000, False)):
        capture, blocks = allocating(folder, 2_000_000_000, end)
        site = json.loads(xsptrace("export", capture, "--summary", "json").stdout)["allocations"]["sites"][0]
        equal((site["name"], site["alive"], site["only_grows"]), ("inner", blocks, grows), f"of {end} ns")
        equal("leak?" in xsptrace("export", capture).stdout, grows, "what the summary says")


@case
def allocations_of_chosen_threads_and_names(folder):
    capture, blocks = allocating(folder, 50_000_000, 100_000_000)
    for options, tids, spans in ((["-t", 500], {500: blocks}, {"inner"}), (["-t", 501], {501: 2 * blocks}, set()),
                                 (["--comm", "other"], {501: 2 * blocks}, set()),
                                 (["-e", "outer"], {500: blocks, 501: 2 * blocks}, {"outer"})):
        xsptrace("export", "-q", capture, *options, "-o", f"{folder}/m.json", "-o", f"{folder}/m.db")
        with open(f"{folder}/m.json", encoding="utf-8") as f:
            trace = json.load(f)["traceEvents"]
        ids = {e["args"]["External id"]: e["name"] for e in trace
               if e["ph"] == "X" and "External id" in e["args"]}
        events = [e for e in trace if e["name"] == "[memory]"]
        equal(dict(collections.Counter(e["tid"] for e in events)), tids, f"allocations and frees with {options}")
        equal({ids.get(e["args"]["External id"]) for e in events if "External id" in e["args"]}, spans, f"in which span, {options}")
        rows = sqlite3.connect(f"{folder}/m.db").execute("SELECT COUNT(*), COUNT(operator_id) FROM allocations").fetchone()
        equal(rows, (len(events), sum("External id" in e["args"] for e in events)), f".db with {options}")


@case
def totals_that_are_not_known(folder):
    """Memory may have been freed between two windows: the database then has no total after an allocation."""
    for windows, known in ([], [100, 300]), ([(0, 500), (600, 1000)], [None, None]):
        made = Made()
        made.clock(START)
        made.process(500)
        gave = made.probe(GAVE, GAVE, "memory")
        for begin, end in windows:
            made.window(START + begin, START + end)
        made.allocation(START + 10, (500, 500), gave, 0x1000, 100)
        made.allocation(START + 700, (500, 500), gave, 0x2000, 200)
        made.finish(f"{folder}/totals.xspt", START, START + 1000)
        xsptrace("export", "-q", f"{folder}/totals.xspt", "-o", f"{folder}/totals.db")
        with sqlite3.connect(f"{folder}/totals.db") as db:
            equal(db.execute("SELECT bytes, total_bytes FROM allocations ORDER BY time_ns").fetchall(),
                  list(zip((100, 200), known)), f"with windows {windows}")


@case
def memory_of_each_process(folder):
    made, sizes = Made(), {500 + i: 1000 * (i + 1) for i in range(20)}
    made.clock(START)
    gave = made.probe(GAVE, GAVE, "memory")
    for i, (pid, size) in enumerate(sizes.items()):
        made.process(pid)
        made.allocation(START + i, (pid, pid), gave, 0x10000, size)
    made.finish(f"{folder}/processes.xspt", START, START + 1000)
    pools = json.loads(xsptrace("export", f"{folder}/processes.xspt", "--summary", "json").stdout)["allocations"]["pools"]
    equal({p["pid"]: p["end_bytes"] for p in pools}, sizes, "bytes of each process")
    text = xsptrace("export", f"{folder}/processes.xspt").stdout
    check("PyTorch's host memory of process 501, allocated since the recording began: 1.95 KiB at most" in text, "501", text)
    check(text.count("host memory of process") == 16 and "... and that of 4 more devices or processes" in text, "20 lines", text)


@case
def texts_of_a_capture_do_not_drive_the_terminal(folder):
    made, thread = Made(), (500, 500)
    for key in ("arguments", "host", "kernel", "version", "filters", "max overhead", "worst slowdown", "calls unseen", "children",
                "libraries", "sites refused", "ended early", "samples", "wait stacks"):
        made.info(key, f"\x1b]0;{key}\x07\x1b[31m1 {key}\r")
    made.info("waits", "10000")
    made.clock(START)
    made.process(500, "a\x1b[2Jb")
    made.thread(500, 500, "c\x1b[2Jd")
    bad = made.probe("\x1b[31mbad\x07", module=made.module("/lib/\x1b[1mx.so"))
    made.entry(START + 10, thread, bad, 9000)
    made.wait(START + 2000, START + 900_000, START + 1_000_000, thread, 2)
    made.exit(START + 2_000_000, thread, bad, 9000)
    made.let_go(bad, START + 3_000_000, 5)
    made.window(START, START + 4_000_000)
    made.sums(START + 5_000_000, thread, START, 4_002_000, 100_000, {2: 898_000})
    made.finish(f"{folder}/bad.xspt", START, START + 5_000_000)
    for options in (["export"], ["export", "--by", "line"], ["export", "-e", "*bad*"], ["info"], ["info", "-e", "*bad*"]):
        done = xsptrace(*options[:1], f"{folder}/bad.xspt", *options[1:], errors="surrogateescape")
        text = done.stdout + done.stderr
        check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f]", text), f"{options}: control characters", ascii(text))
        check("bad" in text or options[0] == "info", f"{options}: names", text)


# What a recording says of itself; those of the second line make its figures less than the whole truth.
FACTS = ["arguments", "version", "host", "kernel", "machine", "attach", "hit costs", "hit costs there", "filters", "children", "execs",
         "libraries", "changed code", "unnamed call sites", "python", "waits", "samples", "read from", "not as there"]
GAPS = ["sites refused", "breakpoints gone", "functions left out", "files left out", "threads not counted", "Python stacks torn",
        "Python stacks not named", "wait stacks torn", "allocations unseen", "side records lost", "waits ended early", "lines of Python ended early",
        "samples ended early", "ended early"]


@case
def every_fact_of_a_capture_is_told(folder):
    """Each row of info, and each line of the summary about the recording, for a capture in which none has its usual value."""
    made, thread = Made(), (7, 8)
    values = {key: f"{i + 3} of {key.upper()}" for i, key in enumerate(FACTS + GAPS)}
    for key, value in {**values, "max overhead": "5 %", "worst slowdown": "4.5 %"}.items():
        made.info(key, value)
    made.clock(START)
    made.process(7, "shop")
    made.thread(7, 8, "till")
    gone = made.probe("gone_fn", module=made.module("/lib/libshop.so"))
    for i in range(3):
        made.point(START + i, thread, gone, 9000)
    made.let_go(gone, START + 250_000_000, 4321)
    made.let_go(made.probe("jumped_fn"), START + 260_000_000, 0)
    made.window(START, START + 500_000_000)
    made.window(START + 1_000_000_000, START + 1_250_000_000)
    path = f"{folder}/facts.xspt"
    made.finish(path, START, START + 3_000_000_000, [11, 12, 13, 14, 15, 16, 17, 18, 1_500_000_000, 250_000_000])
    said = xsptrace("info", path).stdout
    for key, value in values.items():
        check(re.search(rf"^{key} +{value}$", said, re.M), f"info does not tell {key}", said)
    for row in ("recorded +2023.*, 3.000 s", "windows +2 of --max-overhead, 0.750 s together", "file +complete .*",
                r"processes +7 \(7 in its namespace\) shop: shop", "threads +1 known at the start",
                "modules +/lib/libshop.so 010203", "released +gone_fn, 4321 calls/s", "probes +2 functions, 0 internal", "events +3",
                "lost entries +11", "lost exits +12", "lost other +13", "lost names +14", "filtered +15", "silent hits +16",
                "missed hits +17", "untracked +18", "cost +1.500 s of the target's threads, 0.250 s of xsptrace"):
        check(re.search(f"^{row}$", said, re.M), f"info: {row}", said)
    said = xsptrace("export", path).stdout
    for key in GAPS + ["children", "execs", "libraries", "changed code"]:
        check(f"\n{key}: {values[key]}\n" in said, f"the summary does not tell {key}", said)
    for line in ("to keep the target within 5 % all was on for 750 ms of it, in 2 windows: the totals are of 25 % of the time, in windows that are too few for shares",
                 "released: gone_fn, at least 4,321 calls/s even under the probe; --max-overhead off keeps it",
                 "released: jumped_fn, its exits are hit by those who jump behind its entry; --max-overhead off keeps it",
                 "lost: 11 entries, 12 exits, 13 other events, 14 names, 17 hits missed by the kernel, 18 calls not followed (table full)",
                 "      what is left may lie on another stack, or last too long: a larger --buffer loses less",
                 "held back by filters: 15", "overhead of the target, estimated: 1.50 s in probes, 50.00 % of one core",
                 "slowed most, estimated: 4.5 %, of at most 5 %", "xsptrace itself: 250 ms of CPU time"):
        check(f"\n{line}\n" in said, f"the summary: {line}", said)
    check(re.search(r"^gone_fn \(until 0.25 s\) +3 ", said, re.M), "the row of what was released", said)
    with open(path, "rb") as f:
        whole = f.read()
    for size, how in ((len(whole) - 96, "not ended properly"), (len(whole) - 68, "cut off inside its last chunk")):
        with open(f"{folder}/cut.xspt", "wb") as f:
            f.write(whole[:size])
        said = xsptrace("info", f"{folder}/cut.xspt", status=None).stdout
        check(re.search(f"^file +{how}", said, re.M), f"info of {size} bytes: {how}", said)
        equal("the capture is cut off: its last 28 B are no whole chunk" in said, size == len(whole) - 68, said)
        check("counters         the last ones in the file, which may be a second old:" in said, "how old they are", said)
        said = xsptrace("export", f"{folder}/cut.xspt", status=None).stdout
        check(", up to the last count in the capture" in said and "the capture has no end" in said, "the summary of what is cut", said)


@case
def how_calls_ended_is_told(folder):
    """By an exception, where nobody saw it, behind the way back to a stack whose calls were open; losses of which not all is known."""
    made, thread = Made(), (500, 500)
    made.clock(START)
    inside, outer = made.probe("inside"), made.probe("outer")
    made.thread(*thread, "main")
    at = START
    for _ in range(2):  # an exception lands above
        made.entry(at := at + 10, thread, outer, 9000)
        made.entry(at := at + 10, thread, inside, 8000)
        made.unwind(at := at + 10, thread, 8500)
        made.exit(at := at + 10, thread, outer, 9000)
    for _ in range(3):  # its exit is lost, and the slot is another's
        made.entry(at := at + 10, thread, inside, 9000)
        made.entry(at := at + 10, thread, outer, 9000)
        made.exit(at := at + 10, thread, outer, 9000)
    made.entry(at := at + 10, thread, outer, 9000)
    made.entry(at := at + 10, thread, inside, 1 << 40)
    made.exit(at := at + 10, thread, inside, 1 << 40)
    made.exit(at := at + 10, thread, outer, 9000)
    made.finish(f"{folder}/ends.xspt", START, START + 1_000_000)
    said = xsptrace("export", f"{folder}/ends.xspt").stdout
    for line in ("left by an exception, longjmp or exec: 2", "end not seen, closed when the stack showed that they were gone: 3",
                 "switches between stacks of a thread: 1", "nothing was lost"):
        check(f"\n{line}\n" in said, line, said)
    with open(f"{folder}/ends.xspt", "rb") as f:
        whole = f.read()
    with open(f"{folder}/cut.xspt", "wb") as f:
        f.write(whole[:-96])
    said = xsptrace("export", f"{folder}/cut.xspt", status=None).stdout
    check("\nnothing was lost up to the last count in the capture\n" in said, "of what is cut", said)
    made = Made()
    made.info("calls unseen", "of 3 children")
    made.clock(START)
    made.point(START, thread, made.probe("p"), 9000)
    made.finish(f"{folder}/unseen.xspt", START, START + 1000)
    said = xsptrace("export", f"{folder}/unseen.xspt").stdout
    check("\nno event was lost; calls of 3 children before their probes were there are missing\n" in said, "calls unseen", said)
    made = Made()
    made.clock(START)
    made.finish(f"{folder}/nothing.xspt", START, START + 1000)
    said = xsptrace("export", f"{folder}/nothing.xspt").stdout
    check("nothing was lost (no event was counted)\n" in said, "of a capture without events", said)


def summary_and_info(made, folder, end):
    made.finish(f"{folder}/seldom.xspt", START, end)
    return xsptrace("export", f"{folder}/seldom.xspt").stdout, xsptrace("info", f"{folder}/seldom.xspt").stdout


def has_line(said, *lines):
    for line in lines:
        check(re.search(f"^{line}$", said, re.M), line, said)


@case
def what_is_seldom_told_of_threads(folder):
    """Page faults from disk, time without a span, samples that end at once and what they cost, values that could not be read; and
    when it was, of a recorder that died before it told."""
    made, thread = Made(), (500, 501)
    made.info("waits", "10000")
    made.info("samples", "cpu-clock 99")
    made.info("sample costs", "7 2100")
    made.process(500, "shop")
    made.thread(500, 501, "till")
    work, counter = made.probe("work"), made.probe("counter", "__itt_counter_inc_delta", "itt")
    made.name(1, "loss")
    for at in (0, 52_000_000):
        made.entry(START + at, thread, work, 9000)
        made.exit(START + at + 1_000_000, thread, work, 9000)
        if at == 0:
            made.wait(START + 2_000_000, START + 51_000_000, START + 51_500_000, thread, 4)
    for i in range(3):
        made.event(VALUE, START + 54_000_000 + i, thread, counter, body=struct.pack("<QQII", 1, 5, 0, i == 0))
    for i in range(4):
        made.event(SAMPLE, START + 55_000_000 + i, thread, sp=9000, body=struct.pack("<QIhBB", 0x1234, 10_000_000, -1, 0, 0))
    made.sums(START + 60_000_000, thread, START, 10_500_000, 500_000, {4: 49_000_000}, [(FAULTS, 0, struct.pack("<2Q", 5, 2))])
    said, info = summary_and_info(made, folder, START + 60_000_000)
    has_line(said, "without a span: till \\(501\\) for 51.0 ms from 0.001 s on: on CPU 1.50 ms, runnable 500 us, sleep 49.0 ms",
             "a sample takes 300 ns", r"stacks without a known native caller: 100.0 %, in .*",
             r"till \(501\) .* 7  sleep 49.0 ms.*; 2 page faults read from disk",
             "values that were not in memory, or of no known type: 1")
    has_line(info, r"recorded +at a time that is not known, 0.060 s")


@case
def what_is_seldom_told_of_memory(folder):
    """Memory that was swapped out, allocations of before, and more places that grow than have a line."""
    made, thread = Made(), (500, 500)
    made.clock(START)
    made.process(500, "shop")
    gave, takes = (made.probe(s, s, "memory") for s in (GAVE, TAKES))
    made.event(MEMORY, START + 1, (500, 0), sections=[(PROCESS_MEMORY, 0, struct.pack("<6Q", 9 << 20, 8 << 20, 1 << 20, 0, 5 << 20, 9 << 20))])
    places, at = [made.probe(f"place{i}") for i in range(7)], START
    for turn in range(600):
        for i, place in enumerate(places):
            made.entry(at := at + 1_000_000, thread, place, 9000)
            made.allocation(at + 1, thread, gave, 0x10000 + (turn * 7 + i) * 0x10000, 1 << 15)
            made.exit(at + 2, thread, place, 9000)
    for i in range(3):
        made.allocation(at + 10 + i, thread, takes, 0x8 + i)
    said, _ = summary_and_info(made, folder, at + 1000)
    has_line(said, r"memory of process 500 \(shop\): .*; 5.00 MiB swapped out", "PyTorch's host memory, .*, and 3 of what was there before",
             " +and 2 more places that only grow")
    equal(len(re.findall("^leak\\? only grows: ", said, re.M)), 5, said)


@case
def what_is_seldom_told_of_a_part(folder):
    """How many of its spans go beyond it; and whatever is left in it."""
    made, thread = Made(), (500, 500)
    made.clock(START)
    work = made.probe("work")
    for i in range(10):
        made.entry(START + i * 1000, thread, work, 9000)
        made.exit(START + i * 1000 + 900, thread, work, 9000)
    made.finish(f"{folder}/part.xspt", START, START + 10_000)
    said = xsptrace("info", f"{folder}/part.xspt", "--from", "2.5us", "--to", "6.5us").stdout
    has_line(said, " +5 spans in 1 threads; 2 of them go beyond it", " +0 waits, 0 samples, 0 GPU activities, 0 allocations and frees")
    said = xsptrace("export", f"{folder}/part.xspt", "--from", "2.5us", "--to", "6.5us").stdout
    check("2 go beyond it" in said, "the summary", said)


@case
def what_is_seldom_told_of_steps(folder):
    """Two that are longer than the others: one between its calls, one by a little in each of many."""
    made, thread = Made(), (500, 500)
    made.clock(START)
    ranges, works = made.probe("record_function", provider="record_function", kind=ANNOTATION), [made.probe(f"work{i}") for i in range(30)]
    at = START
    for i in range(20):
        made.name(1000 + i, f"ProfilerStep#{i}")
        made.begin(at := at + 1000, thread, ranges, 9000, 1000 + i)
        for work in works:
            made.entry(at := at + 1000, thread, work, 8000)
            made.exit(at := at + 20_000 + (5000 if i == 7 else 0), thread, work, 8000)
        made.end(at := at + 1000 + (300_000 if i == 12 else 0), thread, ranges, 9000)
    said, _ = summary_and_info(made, folder, at)
    has_line(said, " +slowest: step 12, 931 us, .* over the mean: outside of traced calls \\+285 us",
             " +then: step 7, 781 us, .* over the mean: a little of everything")


@case
def what_is_seldom_told_of_a_gpu(folder):
    """What the agent says, calls that failed, who allocated, frees of what was there before; of two processes."""
    made = Made()
    made.clock(START)
    alloc, free = (made.probe(n, n, "cuda") for n in ("cuMemAlloc_v2", "cuMemFree_v2"))
    batch = made.probe("xsp_gpu_batch", "xsp_gpu_batch", "gpu", kind=MARK)
    text = b"cuptiActivityEnable: no room"
    for pid in (500, 600):
        made.process(pid)
        made.thread(pid, pid, "main")
        for i, (probe, address, result) in enumerate(((alloc, 0x1000, 0), (alloc, 0x2000, 0), (alloc, 0x3000, 2), (free, 0x1000, 0), (free, 0x9000, 0))):
            words = (0x7000, 4096) if probe == alloc else (address,)
            made.entry(START + 1000 * i, (pid, pid), probe, 9000, [(WORDS, 0, struct.pack(f"<{len(words)}Q", *words))])
            made.event(EXIT, START + 1000 * i + 500, (pid, pid), probe, 9000, 1, sections=[
                (RESULT, 0, struct.pack("<Q", result)), *([(WRITTEN, 0, struct.pack("<Q", address))] if probe == alloc else [])])
        made.gpu(START + 5000, (pid, pid), batch, [(18, 0, struct.pack("<QIIHHI", START, 3, 0, 32, len(text), 0) + text + bytes(-len(text) % 8))])
    said, _ = summary_and_info(made, folder, START + 10_000)
    has_line(said, "the agent said: cuptiActivityEnable: no room", "CUDA calls that returned an error: 2",
             " +cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY 2, 2 times", " +allocated by no operator 16.0 KiB in 4 calls",
             *(f"GPU memory of process {pid}, allocated since the recording began: 8.00 KiB at most, 4.00 KiB at its end; "
               "1 frees of what was there before" for pid in (500, 600)))
    memory = json.loads(xsptrace("export", f"{folder}/seldom.xspt", "--summary", "json").stdout)["gpu"]["memory"]
    equal([(m["pid"], m["peak_bytes"], m["bytes_at_end"], m["unknown_frees"]) for m in memory], [(p, 8192, 4096, 1) for p in (500, 600)], "in JSON")


@case
def names_of_modules_that_no_recorder_writes(folder):
    """One longer than any path of modules: its calls are in no module."""
    made, thread = Made(), (100, 100)
    made.process(100)
    made.thread(100, 100, "main")
    made.clock(0)
    made.name(1, "net.py\n3\nforward")
    made.name(2, "N" * 5000)
    made.python(9, [1], module=2)
    inside = made.probe("inside")
    made.entry(1000, thread, inside, 5000, [(PYTHON, 1, struct.pack("<Q", 9))])
    made.exit(3000, thread, inside, 5000)
    made.finish(f"{folder}/made.xspt", 0, 10_000)
    summary = json.loads(xsptrace("export", "--summary", "json", f"{folder}/made.xspt").stdout)
    equal((summary["lines"][0]["self_ns"], summary["modules"], summary["without_module"]["calls"]), (2000, [], 1), "sums")


@case
def ends_in_a_part_are_told_as_of_it(folder):
    """Two calls without a seen return, one of them in the part: its line comes before those of the whole recording."""
    made, threads = Made(), [(500, 500 + i) for i in range(2)]
    inside = made.probe("inside")
    for i, thread in enumerate(threads):
        made.thread(*thread, f"thread{i}")
        made.entry(1000 + 4000 * i, thread, inside, 5000)
    made.clock(0)
    made.finish(f"{folder}/made.xspt", 0, 10_000)
    still = "still open at the end of the recording or of their thread: "
    for cut, calls in (([], 2), (["-t", "501"], 1), (["--from", "0", "--to", "3us"], 1)):
        said = xsptrace("export", f"{folder}/made.xspt", *cut).stdout.split("what follows is of the whole recording:")
        check(f"{still}{calls}\n" in said[0], f"{cut}: what is told of the part", said)
        equal([still in part for part in said[1:]], [False] * len(cut[:1]), f"{cut}: what is told of the whole")


@case
def weights_that_change_nothing_say_so(folder):
    make(f"{folder}/made.xspt", 2)
    said = "--weight wall changes nothing: it is what .folded, .svg, .perf and .pb.gz add up"
    for outputs, says in ((["a.json"], True), (["a.csv", "a.db"], True), ([], True), (["a.json", "a.svg"], False)):
        done = xsptrace("export", f"{folder}/made.xspt", "--weight", "wall", *(w for o in outputs for w in ("-o", f"{folder}/{o}")))
        equal(said in done.stderr, says, f"said of {outputs}")


def spanless(folder, name):
    """A thread that waits once."""
    made, thread = Made(ord(name[0])), (500, 500)
    made.clock(START)
    made.process(500)
    made.thread(500, 500, "program")
    made.info("waits", "10000")
    made.wait(START + 1_000_000, START + 3_000_000, START + 3_000_000, thread, 2)
    made.finish(f"{folder}/{name}.xspt", START, START + 20_000_000)
    return f"{folder}/{name}.xspt"


@case
def empty_outputs_say_so(folder):
    capture, endings = spanless(folder, "waits"), ("svg", "folded", "perf", "pb.gz", "csv", "speedscope.json")
    outputs = [w for e in endings for w in ("-o", f"{folder}/o.{e}")]
    lines = [l for l in xsptrace("export", capture, *outputs).stderr.splitlines() if "is empty: it holds spans" in l]
    equal([l.split(" is empty")[0] for l in lines], [f"xsptrace: {folder}/o.{e}" for e in endings if e in ("perf", "csv", "speedscope.json")],
          "said of all but those that add up all time")
    check(all("--weight off-cpu in .svg" in l and "--weight samples" not in l for l in lines), "where the waits are", lines)
    check("is empty" not in xsptrace("export", capture, *outputs[:8], "--weight", "off-cpu").stderr, "waits are no spans")
    make(f"{folder}/full.xspt", 2)
    check("is empty" not in xsptrace("export", f"{folder}/full.xspt", *outputs).stderr, "said of a full one")


@case
def outputs_that_are_given_twice(folder):
    make(f"{folder}/made.xspt", 2)
    twice = ["-o", f"{folder}/l.json", "-o", f"{folder}/l.json"]
    check("l.json is given twice" in xsptrace("export", f"{folder}/made.xspt", *twice, status=2).stderr, "why")
    equal([n for n in os.listdir(folder) if n.startswith("l")], [], "what is written")


@case
def captures_of_no_job(folder):
    """Nothing is late in them, and that is no pass."""
    paths = [spanless(folder, n) for n in ("a", "b")]
    said = xsptrace("analyze", *paths, "--fail-on", "low", status=2).stderr
    check("no rank of a job is in the 2 captures" in said and f"xsptrace analyze {paths[0]}" in said, "what it says", said)
    for i in range(2):
        make(paths[i], 2 + i)
    xsptrace("analyze", *paths, "--fail-on", "low", status=2)
    check("no rank of a job" in xsptrace("analyze", *paths, status=None).stderr, "said of compared processes")


@case
def parts_without_anything(folder):
    """One line and one status, whatever was asked for and by whom."""
    make(f"{folder}/made.xspt", 2)
    for options in (["-e", "nosuch"], ["-t", 1], ["--comm", "nosuch"], ["--min-duration", "100s"]):
        for verb in ("export", "analyze", "info"):
            done = xsptrace(verb, f"{folder}/made.xspt", *options, status=6)
            said = f"{options[0]} {options[1]}: no span of the capture is left"
            equal([l for l in done.stderr.splitlines() if "left" in l], [f"xsptrace: {said}"], f"{verb} says")
    waiting = spanless(folder, "waits")
    for verb in ("export", "analyze", "info"):
        equal(xsptrace(verb, waiting, "-t", 500).stderr, "", f"{verb} of waits that are left")


@case
def steps_that_nothing_is_called(folder):
    capture = twenty_steps(folder)
    words = "no span is called nosuch, or that and a number; without --step ProfilerStep#N are steps"
    said = xsptrace("analyze", capture, "--step", "nosuch").stdout
    check(words in " ".join(said.split()), "analyze", said)
    for outputs in ([], ["-o", f"{folder}/s.json"], ["--summary", "json"], ["-o", f"{folder}/s.html"]):
        done = xsptrace("export", "-q", capture, "--step", "nosuch", *outputs, status=None)
        if "built without it" in done.stderr:  # the page, where Node was missing
            continue
        equal(done.returncode, 0, f"export {outputs}")
        check(words in done.stderr, f"export {outputs}", done.stderr)
        check("--step" not in xsptrace("export", "-q", capture, "--step", "ProfilerStep", *outputs).stderr, "of one that is there")
    check(words in xsptrace("export", capture, "--step", "nosuch", "--from", "step:3", status=2).stderr, "--from")


if __name__ == "__main__":
    main()
