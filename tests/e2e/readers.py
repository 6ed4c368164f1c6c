#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real captures of many options, in every format, as other programs read them (tests/consumers): nothing is complained of, and calls
and times are those of `analyze --format json` of the same."""
import collections
import csv
import gzip
import json
import os
import re
import shutil
import sqlite3

from harness import EXTRA, ROOT, SCRIPTS, Skip, case, check, equal, json_report, main, run, workload, xsptrace

PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")
SPANS = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
ENDINGS = ("json", "json.gz", "pftrace", "perf", "folded", "pb.gz", "speedscope.json", "db", "csv", "svg")
STATS = "select name, value from stats where value > 0 and severity != 'info'"
COMPLAINTS = re.compile(r"Tried|still open|Failed|rror|out of order|Could not|Unable|skip", re.I)


def consumer(script, *arguments):
    done = run([f"{ROOT}/tests/consumers/run", script, *arguments], timeout=200)
    if done.returncode == 77:
        raise Skip(done.stdout + done.stderr)
    equal(done.returncode, 0, f"{script} {arguments[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def perfetto(path, *queries):
    """Rows of all queries; its own complaints are none."""
    rows = [json.loads(line) for line in consumer("perfetto.mjs", path, STATS, *queries).splitlines() if line.startswith("{")]
    check(not any(set(r) == {"name", "value"} for r in rows), f"Perfetto complains of {os.path.basename(path)}", rows[:5])
    return rows


def speedscope(path):
    """[(kind, unit, events, from first to last)] of the profiles."""
    said = consumer("speedscope.mjs", path)
    check(not COMPLAINTS.search(said.split("frames")[0].replace(path, "")), "speedscope complains", said[:2000])
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def rows_of(report, section, table):
    return report["sections"].get(section, {"tables": {}})["tables"].get(table, {"rows": []})["rows"]


class Exported:
    """A capture, or a part of one, in all formats, and what analyze says of it."""

    def __init__(self, folder, capture, *cut, weight="wall"):
        self.path = {e: f"{folder}/out.{e}" for e in ENDINGS}
        xsptrace("export", "-q", capture, *cut, "--weight", weight, *(a for p in self.path.values() for a in ("-o", p)),
                 timeout=200)
        self.report = json_report("analyze", capture, *cut, "--top", 1000000)
        self.operations = {r["name"]: r for r in rows_of(self.report, "operations", "operations")}
        self.calls = collections.Counter({n: r["calls"] for n, r in self.operations.items()})
        self.self_ns = sum(r["self_ns"] or 0 for r in self.operations.values())

    def row(self, name):
        """Names that only number are one row."""
        return name if name in self.calls else re.sub(r"#\d+$", "#*", name)

    def counted(self, names):
        got = collections.Counter()
        for name, n in names:
            got[self.row(name)] += n
        return got

    def check_spans(self):
        """JSON, .pftrace, .csv and .db: each call by its name."""
        query = f"select name, count(*) n, sum(dur) d from slice where category in {SPANS!r} group by name"
        told = {}
        for ending in ("json.gz", "pftrace"):
            got = [r for r in perfetto(self.path[ending], query)]
            equal(self.counted((r["name"], r["n"]) for r in got), self.calls, f"calls in .{ending}")
            told[ending] = sum(r["d"] for r in got)
        with open(self.path["csv"], encoding="utf-8", newline="") as f:
            got = [r for r in csv.DictReader(f) if r["category"] != "value"]
        equal(self.counted((r["name"], 1) for r in got), self.calls, "calls in .csv")
        equal(sum(int(r["self_ns"] or 0) for r in got), self.self_ns, "self time in .csv")
        with sqlite3.connect(f"file:{self.path['db']}?mode=ro", uri=True) as db:
            got = db.execute("select name, calls, total_ns, self_ns from operators").fetchall()
        equal(self.counted((r[0], r[1]) for r in got), self.calls, "calls in .db")
        equal(sum(r[3] or 0 for r in got), self.self_ns, "self time in .db")

    def check_stacks(self, whole):
        """Folded stacks, pprof and perf-script text: all of the time (ns) is there."""
        with open(self.path["folded"], encoding="utf-8") as f:
            lines = f.read().splitlines()
        equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines), whole, "time in .folded")
        check(all(re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line) for line in lines), "flamegraph.pl takes each line")
        if whole > 0:
            got, = perfetto(self.path["folded"], "select sum(value) s from __intrinsic_aggregate_sample")
            equal(got["s"], whole, "Perfetto: time in .folded")
            # a count a profile, and time
            got = perfetto(self.path["pb.gz"], "select p.sample_type_type t, sum(s.value) s from __intrinsic_aggregate_sample s join "
                           "__intrinsic_aggregate_profile p on p.id = s.aggregate_profile_id group by 1")
            check(whole in [r["s"] for r in got], "Perfetto: time in .pb.gz", got, whole)
            equal(sum(p["length"] for p in speedscope(self.path["folded"])), whole, "speedscope: time in .folded")
        with open(self.path["perf"], encoding="utf-8") as f:
            periods = [int(m[1]) for m in re.finditer(r":\s+(\d+) \S+:\s*$", f.read(), re.M)]
        equal(sum(periods), whole, "time in .perf")
        if periods:
            got, = perfetto(self.path["perf"], "select count(*) n from cpu_profile_stack_sample")
            equal(got["n"], len(periods), "Perfetto: samples in .perf")

    def check_others(self):
        """Firefox Profiler and speedscope: every call, or a complaint."""
        spans = sum(self.calls.values())
        with gzip.open(self.path["json.gz"], "rt", encoding="utf-8") as f:
            events = [e for e in json.load(f)["traceEvents"] if e["ph"] in "Xi"]
        info = consumer("firefox.mjs", self.path["json"], "profile info --all")
        threads = [(f"thread select {handle}", "thread markers --json") for handle in re.findall(r"^\s*(t-\d+):", info, re.M)]
        said = consumer("firefox.mjs", self.path["json"], *(command for both in threads for command in both))
        equal(sum(map(int, re.findall(r'"totalMarkerCount":\s*(\d+)', said))), len(events), "Firefox Profiler: markers")
        own = speedscope(self.path["speedscope.json"])
        equal(sum(p["events"] for p in own), 2 * spans, "speedscope: begins and ends in its own format")
        speedscope(self.path["json"])

    def check_all(self, whole=None):
        self.check_spans()
        self.check_stacks(self.self_ns if whole is None else whole)
        self.check_others()


def need():
    if shutil.which("node") is None:
        raise Skip("node is not installed")


@case
def memory_of_malloc(folder):
    need()
    xsptrace(*EXTRA, "-q", "--memory=malloc:4096", "-e", "heap:*_here", "-o", f"{folder}/heap.xspt", "--", workload("heap"), 200, 3, 1000)
    Exported(folder, f"{folder}/heap.xspt").check_all()


@case(long="a browser for each format, after PyTorch")
def python_waits_and_samples(folder):
    need()
    if not os.path.exists(PYTHON) or run([PYTHON, "-c", "import torch"]).returncode != 0:
        raise Skip(f"{PYTHON} has no torch (Debian: python3-torch)")
    capture = f"{folder}/torch.xspt"
    xsptrace(*EXTRA, "-q", "--python", "--waits", "--wait-stacks", "--sample", "--sequence", "-o", capture, "--", PYTHON,
             f"{SCRIPTS}/torch_train.py", "--losses", f"{folder}/losses", "--steps", 20, timeout=200)
    whole = Exported(folder, capture)
    if not whole.calls:
        raise Skip("PyTorch was there too late, on a machine that does much else")
    whole.check_all()
    with open(whole.path["csv"], encoding="utf-8", newline="") as f:
        starts = sorted(int(r["start_ns"]) for r in csv.DictReader(f))
    part = Exported(folder, capture, *(f"--{which}={starts[len(starts) * share // 10] / 1e9:.9f}" for which, share in (("from", 3), ("to", 7))))
    check(0 < sum(part.calls.values()) < sum(whole.calls.values()), "it is a part", len(part.calls))
    part.check_all()
    samples = Exported(folder, capture, weight="samples")
    samples.check_stacks(samples.report["sections"]["samples"]["values"]["cpu_ns"])


@case
def children(folder):
    need()
    xsptrace(*EXTRA, "-q", "--follow=stop", "-e", "family:family_call", "-o", f"{folder}/family.xspt", "--", workload("family"), f"{folder}/told", 2, 2,
             20, 50)
    with open(f"{folder}/told", encoding="ascii") as f:
        calls = sum(int(line.split()[1]) for line in f)
    exported = Exported(folder, f"{folder}/family.xspt")
    equal(sum(exported.calls.values()), calls, "calls of the leaves")
    exported.check_all()
    Exported(folder, f"{folder}/family.xspt", "--from", "10ms", "--to", "99%").check_all()


main()
