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

import shared
from harness import EXTRA, ROOT, Skip, case, check, equal, has_torch, json_report, main, run, workload, xsptrace

SPANS = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
ENDINGS = ("json", "json.gz", "pftrace", "perf", "folded", "pb.gz", "speedscope.json", "db", "csv", "svg")
STATS = "select name, value from stats where value > 0 and severity != 'info'"
COMPLAINTS = re.compile(r"Tried|still open|Failed|rror|out of order|Could not|Unable|skip", re.I)


def consumer(script, *arguments):
    done = run([f"{ROOT}/tests/consumers/run", script, *arguments], timeout=400)
    if done.returncode == 77:
        raise Skip(done.stdout + done.stderr)
    equal(done.returncode, 0, f"{script} {arguments[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def sections(said, paths, mark=""):
    """{path: lines}: a consumer's lines for each, after a line with its path."""
    found, lines = {}, None
    for line in said.splitlines():
        path = line.removeprefix(mark)
        if line == mark + path and path in paths:
            lines = found.setdefault(path, [])
        elif lines is not None:
            lines.append(line)
    equal(list(found), list(paths), "files that were read")
    return found


def perfetto(queries):
    """{path: rows} of {path: query}; its own complaints are none. It takes longer to start than to read a file."""
    said = consumer("perfetto.mjs", *[w for path, query in queries.items() for w in ("--", path, STATS, query)][1:])
    rows = {path: [json.loads(line) for line in lines if line.startswith("{")] for path, lines in sections(said, queries, "-- ").items()}
    for path, got in rows.items():
        check(not any(set(r) == {"name", "value"} for r in got), f"Perfetto complains of {os.path.basename(path)}", got[:5])
    return rows


def speedscope(paths):
    """{path: [(kind, unit, events, from first to last)] of the profiles}, of all in one browser."""
    profiles = {}
    for path, lines in sections(consumer("speedscope.mjs", *paths), paths).items():
        said = "\n".join(lines)
        check(not COMPLAINTS.search(said.split("frames")[0].replace(path, "")), "speedscope complains", said[:2000])
        profiles[path] = [json.loads(line) for line in lines if line.startswith("{")]
    return profiles


def rows_of(report, section, table):
    return report["sections"].get(section, {"tables": {}})["tables"].get(table, {"rows": []})["rows"]


class Exported:
    """A capture, or a part of one, in all formats, and what analyze says of it."""

    def __init__(self, folder, capture, *cut, weight="wall"):
        """Makes the folder: several have different paths."""
        os.mkdir(folder)
        self.name, self.weight = os.path.basename(folder), weight
        self.path = {e: f"{folder}/out.{e}" for e in ENDINGS}
        xsptrace("export", "-q", capture, *cut, "--weight", weight, "--by", "step", *(a for p in self.path.values() for a in ("-o", p)),
                 timeout=200)
        self.report = json_report("analyze", capture, *cut, "--rows", 1000000)
        self.operations = {r["name"]: r for r in rows_of(self.report, "operations", "operations")}
        self.calls = collections.Counter({n: r["calls"] for n, r in self.operations.items()})
        self.self_ns = sum(r["self_ns"] or 0 for r in self.operations.values())
        # what its stacks add up to
        self.whole = self.report["sections"]["samples"]["values"]["cpu_ns"] if weight == "samples" else self.self_ns
        with open(self.path["perf"], encoding="utf-8") as f:
            self.periods = [int(m[1]) for m in re.finditer(r":\s+(\d+) \S+:\s*$", f.read(), re.M)]

    def row(self, name):
        """Names that only number are one row."""
        return name if name in self.calls else re.sub(r"#\d+$", "#*", name)

    def counted(self, names):
        got = collections.Counter()
        for name, n in names:
            got[self.row(name)] += n
        return got

    def queries(self):
        """{path: query} for Perfetto."""
        wanted = {}
        if self.weight == "wall":
            spans = f"select name, count(*) n, sum(dur) d from slice where category in {SPANS!r} group by name"
            wanted |= {self.path[ending]: spans for ending in ("json.gz", "pftrace")}
        if self.whole > 0:
            wanted[self.path["folded"]] = "select sum(value) s from __intrinsic_aggregate_sample"
            # a count a profile, and time
            wanted[self.path["pb.gz"]] = ("select p.sample_type_type t, sum(s.value) s from __intrinsic_aggregate_sample s join "
                                          "__intrinsic_aggregate_profile p on p.id = s.aggregate_profile_id group by 1")
        if self.periods:
            wanted[self.path["perf"]] = "select count(*) n from cpu_profile_stack_sample"
        return wanted

    def for_speedscope(self):
        own = [self.path["speedscope.json"], self.path["json"]] if self.weight == "wall" else []
        return own + ([self.path["folded"]] if self.whole > 0 else [])

    def check_spans(self, answers):
        """JSON, .pftrace, .csv and .db: each call by its name."""
        for ending in ("json.gz", "pftrace"):
            equal(self.counted((r["name"], r["n"]) for r in answers[self.path[ending]]), self.calls, f"{self.name}: calls in .{ending}")
        with open(self.path["csv"], encoding="utf-8", newline="") as f:
            got = [r for r in csv.DictReader(f) if r["category"] != "value"]
        equal(self.counted((r["name"], 1) for r in got), self.calls, f"{self.name}: calls in .csv")
        equal(sum(int(r["self_ns"] or 0) for r in got), self.self_ns, f"{self.name}: self time in .csv")
        with sqlite3.connect(f"file:{self.path['db']}?mode=ro", uri=True) as db:
            got = db.execute("select name, calls, total_ns, self_ns from operators").fetchall()
        equal(self.counted((r[0], r[1]) for r in got), self.calls, f"{self.name}: calls in .db")
        equal(sum(r[3] or 0 for r in got), self.self_ns, f"{self.name}: self time in .db")

    def check_stacks(self, answers, profiles):
        """Folded stacks, pprof and perf-script text: all of the time (ns) is there."""
        with open(self.path["folded"], encoding="utf-8") as f:
            lines = f.read().splitlines()
        equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines), self.whole, f"{self.name}: time in .folded")
        check(all(re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line) for line in lines), f"{self.name}: flamegraph.pl takes each line")
        if self.whole > 0:
            got, = answers[self.path["folded"]]
            equal(got["s"], self.whole, f"{self.name}: Perfetto: time in .folded")
            got = answers[self.path["pb.gz"]]
            check(self.whole in [r["s"] for r in got], f"{self.name}: Perfetto: time in .pb.gz", got, self.whole)
            equal(sum(p["length"] for p in profiles[self.path["folded"]]), self.whole, f"{self.name}: speedscope: time in .folded")
        equal(sum(self.periods), self.whole, f"{self.name}: time in .perf")
        if self.periods:
            got, = answers[self.path["perf"]]
            equal(got["n"], len(self.periods), f"{self.name}: Perfetto: samples in .perf")

    def check_others(self, profiles):
        """Firefox Profiler and speedscope: every call, or a complaint."""
        with gzip.open(self.path["json.gz"], "rt", encoding="utf-8") as f:
            events = [e for e in json.load(f)["traceEvents"] if e["ph"] in "Xi"]
        said = json.loads(consumer("firefox.mjs", self.path["json"], "profile markers --json --limit 1"))
        equal(said["totalCount"], len(events), f"{self.name}: Firefox Profiler: markers")
        equal(sum(p["events"] for p in profiles[self.path["speedscope.json"]]), 2 * sum(self.calls.values()),
              f"{self.name}: speedscope: begins and ends in its own format")


def check_all(*exported):
    """Each consumer is started once for all of them. Of samples the stacks alone are looked at."""
    answers = perfetto({path: query for e in exported for path, query in e.queries().items()})
    profiles = speedscope([path for e in exported for path in e.for_speedscope()])
    for e in exported:
        if e.weight == "wall":
            e.check_spans(answers)
            e.check_others(profiles)
        e.check_stacks(answers, profiles)


def family(folder):
    """A recording of a program and its children; how many calls there were, as it says."""
    path = f"{folder}/family.xspt"
    xsptrace(*EXTRA, "-q", "--follow=stop", "-e", "family:family_call", "-o", path, "--", workload("family"), f"{folder}/told", 2, 2, 20, 50)
    with open(f"{folder}/told", encoding="ascii") as f:
        return path, sum(int(line.split()[1]) for line in f)


def of_python(folder, capture):
    """The whole, a part, and samples."""
    whole = Exported(f"{folder}/torch", capture)
    with open(whole.path["csv"], encoding="utf-8", newline="") as f:
        starts = sorted(int(r["start_ns"]) for r in csv.DictReader(f))
    part = Exported(f"{folder}/part_of_torch", capture, *(f"--{which}={starts[len(starts) * share // 10] / 1e9:.9f}" for which, share in (("from", 3), ("to", 7))))
    check(0 < sum(part.calls.values()) < sum(whole.calls.values()), "it is a part", len(part.calls))
    return [whole, part, Exported(f"{folder}/samples_of_torch", capture, weight="samples")]


@case(long="five captures in ten formats; consumers.all reads the formats in each run")
def every_kind(folder):
    """Annotations, memory and samples; children, and a part of that; PyTorch with lines and waits, where there is one."""
    if shutil.which("node") is None:
        raise Skip("node is not installed")
    path, calls = family(folder)
    whole = Exported(f"{folder}/children", path)
    equal(sum(whole.calls.values()), calls, "calls of the leaves")
    exported = [whole, Exported(f"{folder}/part_of_children", path, "--from", "10ms", "--to", "99%"), Exported(f"{folder}/program", shared.capture("demo").path)]
    if has_torch():
        exported += of_python(folder, shared.capture("torch").path)
    check_all(*exported)


main()
