#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Parts of a capture: what each option leaves is what Python leaves of the whole export, slice by slice."""
import collections
import fnmatch
import functools
import json
import re
import shutil
import sqlite3
import tempfile
import time

import shared
from harness import (EXTRA, NO_MATCH, USAGE, Skip, Trace, case, check, equal, main, workload, xsptrace)
from shared import STEPS


@functools.cache
def recorded():
    """(folder for what is made of it, whole trace, truth) of the recording that the cases read: spans, waits, samples; two threads that
    have steps, one after the other, and one with a name of its own."""
    folder = tempfile.mkdtemp(prefix="xsptrace-cutting-")
    path, facts = shared.capture("demo")
    xsptrace("export", "-q", path, "-o", f"{folder}/whole.json")
    return folder, Whole(f"{folder}/whole.json"), facts


def export(*options, name="part", status=0, suffix=".json"):
    """The trace of the rest, and the output."""
    out = f"{recorded()[0]}/{name}{suffix}"
    done = xsptrace("export", shared.capture("demo").path, *options, "-o", out, status=status)
    return (Trace(out) if suffix == ".json" else open(out, encoding="utf-8").read()), done


def nanoseconds(us):
    return round(us * 1000)


class Slice:
    def __init__(self, e, begin=0):
        self.id, self.name, self.thread = e["args"].get("External id"), e["name"], (e["pid"], e["tid"])
        self.start = nanoseconds(e["ts"]) - begin
        self.end = self.start + nanoseconds(e["dur"])
        self.marks = {k for k in ("cut", "finished", "unwound", "exit lost") if k in e["args"]}
        self.cpu = e["args"].get("cpu_time (us)")
        self.kind = e["cat"]
        self.depth, self.around = 0, None


def states_of(trace, begin):
    """Of threads, as they are called: the rows that these slices are on are numbered by what there is."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace.json["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    states = [Slice(e, begin) for e in trace.json["traceEvents"] if e.get("cat") == "thread_state"]
    for s in states:
        s.thread = (s.thread[0], int(re.match(r"thread (\d+)", names[s.thread])[1]))
    return states


class Whole(Trace):
    """Slices with times from the recording's beginning, nested."""

    def __init__(self, path):
        super().__init__(path)
        w = self.json["xsptrace_window"]
        self.begin, self.length = w["start_ns"] - self.json["baseTimeNanoseconds"], w["duration_ns"]
        self.slices = [Slice(e, self.begin) for e in self.spans]
        self.states = states_of(self, self.begin)
        self.samples = sorted(nanoseconds(e["ts"]) - self.begin for e in self.json["traceEvents"]
                              if e.get("cat") == "sample")
        nest(self.slices)

    def at(self, share):
        """That share of the time in which there are spans, to the millisecond: the program began a while after the recording."""
        first, last = min(s.start for s in self.slices), max(s.end for s in self.slices)
        return int(first + share * (last - first)) // 10**6 * 10**6


def nest(slices):
    """depth and ancestors of each."""
    rows = collections.defaultdict(list)
    for s in sorted(slices, key=lambda s: (s.start, -s.end, s.id)):
        stack = rows[s.thread]
        while stack and stack[-1].end <= s.start:
            stack.pop()
        s.depth, s.around = len(stack), stack[-1] if stack else None
        stack.append(s)


def of(trace, slices):
    """What a part shows of them: {id: (name, start, end, marks)}."""
    begin = recorded()[1].begin
    return {s.id: (s.name, s.start, s.end, s.marks) for s in (Slice(e, begin) for e in slices)}


def check_slices(trace, expected, what):
    got = of(trace, trace.spans)
    equal(sorted(got), sorted(s.id for s in expected), f"{what}: spans")
    for s in expected:
        name, start, end, marks = got[s.id]
        # readers of the file compute with doubles; spans cut together end 2 ns before the one around them
        near = 12 if "cut" in marks else 3
        check(name == s.name and abs(start - s.start) <= 3 and abs(end - s.end) <= near and marks == s.marks,
              f"{what}: {name} [{start}, {end}] {marks}, expected {s.name} [{s.start}, {s.end}] {s.marks}")


def within(slices, low, high):
    """Clipped copies of overlapping ones."""
    out = []
    for s in slices:
        if s.start >= high or (s.end <= low and s.start < low):
            continue
        c = Slice.__new__(Slice)
        c.__dict__.update(s.__dict__)
        if s.start < low or s.end > high:
            c.marks = s.marks | {"cut"}
        c.start, c.end = max(s.start, low), min(s.end, high)
        out.append(c)
    return out


def comm_of(tid):
    """As the program has it."""
    return "keeper" if tid == recorded()[2]["keeper"] else "everything"


def folded_of(slices):
    """Self time by stack, computed from slices alone: as if there were no others."""
    nest(slices)
    sums, inner = collections.Counter(), collections.Counter()
    for s in slices:
        if s.around:
            inner[s.around.id] += s.end - s.start
    for s in slices:
        stack, at = [], s
        while at:
            stack.append(re.sub(r" (\d+)$", r"_\1", at.name))  # docs/formats.md, folded stacks
            at = at.around
        sums[";".join([comm_of(s.thread[1]), *reversed(stack)])] += s.end - s.start - inner[s.id]
    return sums


def check_folded(slices, *options):
    text, _ = export(*options, "--weight", "wall", "--by", "step", name="part", suffix=".folded")
    got, expected = collections.Counter(), folded_of(slices)
    spans = {frame for stack in expected for frame in stack.split(";")[1:]}
    for line in text.splitlines():
        stack, _, ns = line.rpartition(" ")
        comm, *frames = stack.split(";")
        got[";".join([comm, *(f for f in frames if f in spans)])] += int(ns)  # without functions between two spans
    equal(sorted(got), sorted(expected), f"{options}: stacks")
    for stack, ns in expected.items():
        check(abs(got[stack] - ns) <= 6 * len(slices), f"{options}: {stack}: {got[stack]} ns, expected {ns}")


def check_summary(slices, *options):
    """Calls, totals and means, against the same from slices."""
    _, done = export(*options, "--summary", "json", name="summed")
    summary = json.loads(done.stdout)
    names = collections.defaultdict(list)
    for s in slices:
        names[s.name].append(s)
    rows = {r["name"]: r for r in summary["names"]}
    equal(sorted(rows), sorted(names), f"{options}: names of the summary")
    for name, of_name in names.items():
        whole = [s.end - s.start for s in of_name if "cut" not in s.marks]
        row, total = rows[name], sum(s.end - s.start for s in of_name)
        equal((row["calls"], row["measured"]), (len(of_name), len(whole)), f"{options}: {name}")
        check(abs(row["total_ns"] - total) <= 3 * len(of_name), f"{options}: total of {name}", row, total)
        equal("mean_ns" in row, bool(whole), f"{options}: has {name} a mean?")
        if whole:
            check(abs(row["mean_ns"] - sum(whole) / len(whole)) <= 4, f"{options}: mean of {name}", row)
            check(abs(row["max_ns"] - max(whole)) <= 3, f"{options}: max of {name}", row)
    return summary


# ---- time ----


@case
def seconds_shares_and_the_clock(folder):
    _, whole, _ = recorded()
    length = whole.length
    ms, percent = whole.at(0.4) // 10**6, -(-100 * whole.at(0.75) // length)
    low, high = ms * 10**6, length * percent // 100
    expected = within(whole.slices, low, high)
    check(any("cut" in s.marks for s in expected) and len(expected) < len(whole.slices), "nothing is cut")
    trace, _ = export("--from", f"{ms / 1000}", "--to", f"{percent}%")
    check_slices(trace, expected, "seconds")
    trace.check_nesting()
    equal(trace.json["xsptrace_capture"]["cut"], f"--from {ms / 1000} --to {percent}%", "what the trace says of it")
    check(abs(trace.json["xsptrace_window"]["duration_ns"] - (high - low)) <= 1, "window", trace.json["xsptrace_window"])
    check_folded(within(whole.slices, low, high), "--from", f"{ms}ms", "--to", f"{percent}%")
    check_summary(within(whole.slices, low, high), "--from", f"{ms / 1000}", "--to", f"{percent}%")
    # by the clock on the wall: the recording's window says when it began
    start = whole.json["xsptrace_window"]["start_ns"]
    at = start + low
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at // 10**9)) + f".{at % 10**9:09d}"
    for form in (text, text.replace(" ", "T"), text.split(" ")[1]):
        trace, _ = export("--from", form, "--to", f"{percent}%")
        got = of(trace, trace.spans)
        # the real-time clock is read in microseconds, and may be slewed meanwhile
        edge = min(s[1] for s in got.values())
        check(abs(edge - min(s.start for s in expected)) < 20_000, f"--from '{form}' begins at {edge}")


@case
def waits_and_samples_of_the_range(folder):
    _, whole, _ = recorded()
    low, high = whole.at(1 / 3), whole.at(2 / 3)
    trace, done = export("--from", f"{low}ns", "--to", f"{high}ns", "--summary", "json")
    begin = whole.begin
    got = sorted((s.thread, s.name, s.start, s.end) for s in states_of(trace, begin))
    expected = sorted((s.thread, s.name, s.start, s.end) for s in within(whole.states, low, high)
                      if s.end > s.start)
    equal([g[:2] for g in got], [e[:2] for e in expected], "states")
    for g, e in zip(got, expected):
        check(abs(g[2] - e[2]) <= 3 and abs(g[3] - e[3]) <= 3, "a state's time", g, e)
    samples = sorted(nanoseconds(e["ts"]) - begin for e in trace.json["traceEvents"] if e.get("cat") == "sample")
    equal(len(samples), sum(low <= s < high for s in whole.samples), "samples")
    # the sums of threads are those of their states
    for t in json.loads(done.stdout)["threads"]:
        states = [s for s in within(whole.states, low, high) if t["tid"] == s.thread[1]]
        blocked = sum(t["blocked_ns"].values())
        check(t["running_ns"] + t["runnable_ns"] + blocked == t["time_ns"], "a thread's sums", t, len(states))
    sums = collections.Counter()
    for s in within(whole.states, low, high):
        sums[s.name.split(":")[0]] += s.end - s.start
    told = collections.Counter()
    for t in json.loads(done.stdout)["threads"]:
        told["Running"] += t["running_ns"]
        told["Blocked"] += sum(t["blocked_ns"].values())
        told["Runnable"] += t["runnable_ns"]
    sums["Runnable"] += sums.pop("Preempted", 0)
    for state, ns in sums.items():
        check(abs(told[state] - ns) <= 6 * len(expected), f"{state}: {told[state]} ns, states say {ns}")


@case
def cpu_time_in_the_range(folder):
    """Of a span that goes beyond it: its part without what its thread was off the CPU in that part."""
    _, whole, _ = recorded()
    jobs = [s for s in whole.slices if s.name == "job"]
    low, high = jobs[0].start + 30_000_000, jobs[0].end - 20_000_000
    trace, _ = export("--from", f"{low}ns", "--to", f"{high}ns")
    job = next(e for e in trace.spans if e["name"] == "job")
    check(job["args"]["cut"] and "cpu_time (us)" in job["args"], "job is not cut, or its CPU time is missing", job)
    row = jobs[0].thread
    states = [s for s in within(whole.states, low, high) if s.name != "Running"]
    mine = [s for s in states if s.thread[1] == row[1]]
    expected = high - low - sum(s.end - s.start for s in mine)
    # waits of less than 10 us have no state
    check(0 <= expected - nanoseconds(job["args"]["cpu_time (us)"]) < 2_000_000, "CPU time of the part",
          job["args"], expected)


@case
def steps_as_a_range(folder):
    _, whole, facts = recorded()
    turns = {int(s.name.split()[1]): s for s in whole.slices if s.name.startswith("turn ")}  # of the second thread
    firsts = {int(s.name.split()[1]): s for s in reversed(whole.slices) if s.name.startswith("turn ")}
    equal(len(turns), STEPS, "turns")
    for options, low, high in (
            (["--from", "step:4..6"], firsts[4].start, turns[6].end),
            (["--from", "step:4", "--to", "step:6"], firsts[4].start, turns[6].end),
            (["--from", "step:9"], firsts[9].start, whole.length),
            (["--to", "step:2"], 0, turns[2].end)):
        trace, _ = export(*options, "--step", "turn")
        check_slices(trace, within(whole.slices, low, high), str(options))
    # one thread's steps: none of its figures changes, their numbers neither
    tid = turns[0].thread[1]
    one = [s for s in within(whole.slices, turns[4].start, turns[6].end) if s.thread == turns[0].thread]
    trace, done = export("--from", "step:4..6", "--step", "turn", "-t", tid, "--summary", "json")
    check_slices(trace, one, "steps of a thread")
    steps = json.loads(done.stdout)["steps"]
    # on a busy machine the first ones may be warm-up
    counted = sorted(s["number"] for s in steps["slowest"])
    equal((len(counted) + len(steps["warm_up"]), steps["not_whole"]), (3, 0), "steps in the part")
    equal(counted, [4, 5, 6][3 - len(counted):], "their numbers")
    equal(steps["calls"], sum(facts["steps"][str(tid)][i][5] for i in counted), "calls, as the program counts them")


# ---- choices ----


@case
def threads(folder):
    _, whole, facts = recorded()
    tids = [int(t) for t in facts["steps"]] + [facts["keeper"]]
    for t in tids:
        trace, _ = export("-t", t)
        check_slices(trace, [s for s in whole.slices if s.thread[1] == t], f"-t {t}")
        others = {e["tid"] for e in trace.json["traceEvents"] if e["name"] == "thread_name" and e["pid"] < 2**28
                  and f"thread {t} " not in e["args"]["name"]}
        on_them = [e for e in trace.json["traceEvents"] if e.get("tid") in others and e["ph"] != "M"]
        check(others == {e["tid"] for e in on_them} and all((e["ph"], e.get("cat")) == ("s", "wakeup") for e in on_them),
              "rows of others, but for who woke it", on_them)
    trace, _ = export("-t", ",".join(str(s) for s in {s.thread[1] for s in whole.slices}))
    check_slices(trace, whole.slices, "-t all")
    for comm in ("everything", "every*", "*", "keeper", "everythin"):
        left = [s for s in whole.slices if fnmatch.fnmatchcase(comm_of(s.thread[1]), comm)]
        trace, _ = export("--comm", comm, status=0 if left else NO_MATCH)
        check_slices(trace, left, f"--comm {comm}")
        equal(0 < len(left) < len(whole.slices), comm not in ("*", "everythin"), f"--comm {comm}: a part")


@case
def names(folder):
    _, whole, _ = recorded()
    def function(n):
        return "nanosleep" in n or n.startswith("every_")
    for patterns, keep in (
            (["part"], lambda n: n == "part"),
            (["turn*"], lambda n: n.startswith("turn")),
            (["libc.so:*"], lambda n: "nanosleep" in n),
            (["everything:*"], lambda n: n.startswith("every_")),
            (["record_function"], lambda n: not function(n)),
            (["record_function:turn [4-6]", "job"], lambda n: n in ("turn 4", "turn 5", "turn 6", "job")),
            (["!turn*"], lambda n: not n.startswith("turn")),
            (["record_function", "!part"], lambda n: n != "part" and not function(n)),
            (["!record_function:between"], lambda n: n != "between")):
        options = [word for p in patterns for word in ("-e", p)]
        left = [s for s in whole.slices if keep(s.name)]
        check(0 < len(left) < len(whole.slices), f"{patterns} choose nothing, or all")
        trace, _ = export(*options)
        check_slices(trace, left, str(patterns))
        check_folded(left, *options)
    nest(whole.slices)


@case
def duration_and_depth(folder):
    """Pitfall: self time of kept spans includes the time of dropped ones."""
    _, whole, _ = recorded()
    nest(whole.slices)
    durations = sorted(s.end - s.start for s in whole.slices)
    least = (durations[len(durations) // 2] + durations[len(durations) // 2 + 1]) // 2 // 1000 * 1000
    long = [s for s in whole.slices if s.end - s.start >= least]
    trace, _ = export("--min-duration", f"{least // 1000}us")
    check_slices(trace, long, "--min-duration")
    check_folded(long, "--min-duration", f"{least // 1000}us")
    check_summary(long, "--min-duration", f"{least // 1000}us")
    nest(whole.slices)
    outer = [s for s in whole.slices if s.depth < 2]
    trace, _ = export("--max-depth", 2)
    check_slices(trace, outer, "--max-depth")
    check_folded(outer, "--max-depth", 2)
    # depth counts kept spans: parts are at the top if nothing else is there
    parts = [s for s in whole.slices if s.name == "part"]
    trace, _ = export("--max-depth", 1, "-e", "part", "-e", "libc.so:*")
    nest(chosen := [s for s in whole.slices if s.name == "part" or "nanosleep" in s.name])
    check_slices(trace, [s for s in chosen if s.depth == 0], "--max-depth with -e")
    check(len(parts) > 0, "no parts")
    nest(whole.slices)


@case
def all_at_once(folder):
    _, whole, facts = recorded()
    tid = int(list(facts["steps"])[1])
    chosen = [s for s in whole.slices if s.thread[1] == tid and (s.name == "job" or s.name == "part")]
    low, high = min(s.start for s in chosen) + 60_000_000, max(s.end for s in chosen) - 10_000_000
    left = within(chosen, low, high)
    options = ["--from", f"{low}ns", "--to", f"{high}ns", "-t", tid, "-e", "job", "-e", "part"]
    trace, _ = export(*options)
    check_slices(trace, left, "all")
    check_folded(left, *options)
    check_summary(within(chosen, low, high), *options)
    done = xsptrace("info", shared.capture("demo").path, *options)
    equal(int(re.search(r"(\d+) spans in 1 threads", done.stdout)[1]), len(left), "spans that info tells of")
    svg, _ = export(*options, "--weight", "wall", suffix=".svg")
    perf, _ = export(*options, "--weight", "wall", suffix=".perf")
    check(f"{len(left)} spans" in svg and perf.count("self-ns") == len(left), "spans in .svg and .perf")


# ---- traces of others ----


def imported(folder, events):
    path = f"{folder}/imported.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"traceEvents": [dict(zip(("cat", "name", "tid", "ts", "dur"), e), ph="X", pid=1) for e in events]}, f)
    return path


@case
def categories_are_no_names(folder):
    """Pitfall: a capture that is made of a trace has its categories where others have symbols."""
    spans = [("cpu_op", "aten::add", 1, 0, 10), ("cpu_op", "optimizer_op", 1, 20, 10), ("user_annotation", "my_op", 1, 40, 10),
             ("python_function", "train.py(3): f", 1, 60, 10), ("cuda_runtime", "cudaLaunchKernel", 1, 80, 10)]
    path = imported(folder, spans)
    for pattern, left in (("*_op", {"optimizer_op", "my_op"}), ("!*_op", {"aten::add", "train.py(3): f", "cudaLaunchKernel"}),
                          ("*add", {"aten::add"}), ("cudaL*", {"cudaLaunchKernel"}), ("train*", {"train.py(3): f"})):
        xsptrace("export", path, "-q", "-e", pattern, "-o", f"{folder}/part.json")
        got = {(e.get("cat"), e["name"]) for e in Trace(f"{folder}/part.json").json["traceEvents"] if e["ph"] == "X" and e.get("tid") == 1}
        equal(got, {s[:2] for s in spans if s[1] in left}, f"-e {pattern}: categories and names")
    for pattern in ("*python*", "cpu*", "cuda_*"):
        xsptrace("export", path, "-q", "-e", pattern, "-o", f"{folder}/part.json", status=NO_MATCH)


@case
def steps_of_other_threads(folder):
    """A loader's part of some steps, which the main thread marks; its own are taken if it has some."""
    spans = [("user_annotation", f"ProfilerStep#{i}", 1, 100 * i, 100) for i in range(5)]
    spans += [("cpu_op", f"load {i}", 2, 100 * i + 10, 50) for i in range(5)]
    spans += [("user_annotation", f"ProfilerStep#{i}", 3, 100 * i + 25, 50) for i in range(5)]
    path = imported(folder, spans)
    for options, left in ((["-t", "2", "--from", "step:1..2"], ["load 1", "load 2"]),
                          (["-t", "2", "--from", "step:3"], ["load 3", "load 4"]),
                          (["-t", "2", "--to", "step:0"], ["load 0"]),
                          (["-t", "2,3", "--from", "step:1..1", "--min-duration", "50us"], ["ProfilerStep#1"])):
        xsptrace("export", path, "-q", *options, "-o", f"{folder}/part.json")
        equal(sorted(e["name"] for e in Trace(f"{folder}/part.json").spans if "cut" not in e["args"]), left, str(options))
    done = xsptrace("export", path, "-t", "2", "--from", "step:9", "-o", f"{folder}/part.json", status=USAGE)
    check("the capture has steps 0 to 4" in done.stderr, "a step that there is not", done.stderr)
    path = imported(folder, [s for s in spans if s[2] == 2][:3])
    for chosen in ([], ["-t", "2"]):
        done = xsptrace("export", path, *chosen, "--from", "step:1", "-o", f"{folder}/part.json", status=USAGE)
        check("--from step:1: the capture has no whole step" in done.stderr, f"{chosen}: no thread has one", done.stderr)


# ---- the GPU ----


@case
def gpu_activities_and_memory(folder):
    """Kernels, copies and memory of the range, by what the whole export says of each."""
    capture, out = shared.capture("gpu").path, f"{folder}/gpu"
    xsptrace("export", "-q", capture, "-o", f"{out}.json")

    def activities(trace, begin):
        return sorted((nanoseconds(e["ts"]) - begin, nanoseconds(e["ts"]) + nanoseconds(e["dur"]) - begin,
                       e["cat"], e["name"], e["tid"], "cut" in e["args"])
                      for e in trace.json["traceEvents"]
                      if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"))

    def totals(trace, begin):
        return sorted((nanoseconds(e["ts"]) - begin, e["args"]["bytes"]) for e in trace.json["traceEvents"]
                      if e["ph"] == "C" and e["name"].startswith("GPU memory"))

    whole = Trace(f"{out}.json")
    begin = whole.json["xsptrace_window"]["start_ns"] - whole.json["baseTimeNanoseconds"]
    all_of_them = activities(whole, begin)
    check(len(all_of_them) > 50, "the simulation did little", len(all_of_them))
    middle = all_of_them[len(all_of_them) // 3], all_of_them[2 * len(all_of_them) // 3]
    low, high = (middle[0][0] + middle[0][1]) // 2, (middle[1][0] + middle[1][1]) // 2
    xsptrace("export", capture, "--from", f"{low}ns", "--to", f"{high}ns", "-o", f"{out}.part.json",
             "-o", f"{out}.part.db")
    part = Trace(f"{out}.part.json")
    expected = sorted((max(a[0], low), min(a[1], high), *a[2:5], a[0] < low or a[1] > high) for a in all_of_them
                      if a[0] < high and (a[1] > low or a[0] >= low))
    got = activities(part, begin)
    equal([g[2:] for g in got], [e[2:] for e in expected], "activities")
    check(all(abs(g[i] - e[i]) <= 3 for g, e in zip(got, expected) for i in (0, 1)), "their times")
    with sqlite3.connect(f"{out}.part.db") as db:
        equal(db.execute("SELECT category, name, cut, COUNT(*) FROM gpu_activities JOIN names USING (run, name_id) WHERE category IN "
                         "('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_sync') GROUP BY 1, 2, 3 ORDER BY 1, 2, 3").fetchall(),
              sorted((*k, n) for k, n in collections.Counter((e[2], e[3], int(e[5])) for e in expected).items()), "marks of the database")
        for name, *figures in db.execute("SELECT name, calls, measured, cut_calls, total_ns, max_ns FROM kernels"):
            of_name = [e for e in expected if e[2:4] == ("kernel", name)]
            whole_ones = [e[1] - e[0] for e in of_name if not e[5]]
            equal(figures, [len(of_name), len(whole_ones), len(of_name) - len(whole_ones), sum(e[1] - e[0] for e in of_name),
                            max(whole_ones, default=None)], f"kernel {name}")
    equal([m[1] for m in totals(part, begin)], [m[1] for m in totals(whole, begin) if low <= m[0] < high],
          "memory in use: all that was allocated before counts")
    used = totals(whole, begin)
    check(len(used) >= 3, "allocations", used)
    low = (used[0][0] + used[1][0]) // 2
    done = xsptrace("export", capture, "--from", f"{low}ns", "-o", f"{out}.memory.json", "--summary", "json", "-q")
    equal([m[1] for m in totals(Trace(f"{out}.memory.json"), begin)], [m[1] for m in used[1:]], "memory from there on")
    peaks = [m["peak_bytes"] for m in json.loads(done.stdout)["gpu"]["memory"] if not m["pinned_host"]]
    check(max(m[1] for m in used) in peaks, "peak of the range", peaks, used)
    arrows = collections.Counter(e["ph"] for e in part.json["traceEvents"] if e.get("cat") == "ac2g")
    calls = {(e["pid"], e["tid"], e["ts"]) for e in part.json["traceEvents"]
             if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    for e in part.json["traceEvents"]:
        if e.get("cat") == "ac2g" and e["ph"] == "s":
            check(any(c[:2] == (e["pid"], e["tid"]) for c in calls), "an arrow from where nothing is", e)
    check(arrows["s"] <= arrows["f"], "arrows that lead nowhere", arrows)
    # those of one thread: what its calls launched
    tids = collections.Counter(c[1] for c in calls)
    tid = tids.most_common(1)[0][0]
    xsptrace("export", capture, "-t", tid, "-o", f"{out}.thread.json")
    thread = Trace(f"{out}.thread.json")
    launched = {e["args"]["correlation"] for e in thread.json["traceEvents"]
                if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]}
    kernels = [e for e in thread.json["traceEvents"] if e.get("cat") == "kernel"]
    check(kernels and all(e["args"]["correlation"] in launched for e in kernels), "kernels of other threads")


# ---- errors ----


@case
def errors_name_the_option(folder):
    capture = shared.capture("demo").path
    for options, said in (
            (["--from", "soon"], "--from wants"), (["--to", "101%"], "--to wants"),
            (["--from", "9999"], "--from 9999 is not in the recording"),
            (["--to", "2001-01-01 00:00:00"], "--to 2001-01-01 00:00:00 is not in the recording"),
            (["--from", "0.3", "--to", "0.2"], "--to 0.2 does not come behind --from 0.3"),
            (["--from", "step:3", "--step", "no_such"], "--from step:3: --step: no span is called no_such"),
            (["--from", "step:99", "--step", "turn"], f"--from step:99: the capture has steps 0 to {STEPS - 1}"),
            (["--from", "step:1..2", "--to", "1"], "leave out --to"),
            (["--to", "step:1..2"], "--to wants one step"), (["--from", "step:x"], "--from wants"),
            (["-t", "me"], "-t wants"), (["-e", ""], "-e ''"),
            (["--min-duration", "long"], "--min-duration wants"), (["--max-depth", "0"], "--max-depth wants"),
            (["--step", ""], "--step wants"), (["--from"], "--from: unknown option or missing value"),
            (["--form", "1"], "unknown option")):
        for verb in ("export", "info"):
            done = xsptrace(verb, capture, *options, status=USAGE)
            check(said in done.stderr, f"{verb} {options}", done.stderr)
    done = xsptrace("export", capture, "-e", "no_such_name", status=NO_MATCH)
    check("-e no_such_name: no span of the capture is left" in done.stderr, "nothing is left", done.stderr)


@case(long="a gigabyte is written")
def large_outputs_say_so(folder):
    """A gigabyte of JSON, into nothing."""
    capture = f"{folder}/hot.xspt"
    xsptrace(*EXTRA, "-q", "--buffer", "512M", "-e", "hot_frame", "-o", capture, "--", workload("hot"), "--seconds",
             "30", timeout=400)
    done = xsptrace("export", capture, "-o", "/dev/null", timeout=400)
    said = "of JSON, more than viewers manage (1 GB): cut it" in done.stderr
    spans = int(re.search(r"events\s+(\d+)", xsptrace("info", capture).stdout)[1]) // 2
    if spans < 6_000_000:
        raise Skip(f"only {spans} spans in 30 s: no gigabyte")
    check(said, "not said", spans, done.stderr)
    done = xsptrace("export", capture, "--from", "0", "--to", "1%", "-o", "/dev/null")
    check("of JSON" not in done.stderr, "said of a small one", done.stderr)


try:
    main()
finally:
    if recorded.cache_info().currsize:
        shutil.rmtree(recorded()[0], ignore_errors=True)
