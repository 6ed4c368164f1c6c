#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The regions and values of record_function.h by the agent in the process, without probes. The workload counts its own; and a
second recorder, which has probes, records the same calls at the same time."""
import collections
import json
import os
import struct
import subprocess
import time

from harness import WORKLOADS, Recording, Trace, case, check, equal, finish, main, run, start, wait_for, workload

QUIET = ["--waits=off", "--sample=off", "-e", "record_function"]
BY_AGENT = "records its regions, without probes"
THREADS, ROUNDS = 4, 60
UNREADABLE = 2


AGENT = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")


class Target:
    def __init__(self, *arguments):
        self.child = start([workload("regions"), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.child.stdout.readline())

    def ask(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def go(self):
        """What it has counted by name."""
        self.ask()
        return collections.Counter(json.loads(self.child.stdout.readline()))

    def end(self):
        self.child.stdin.close()
        equal(finish(self.child), 0, "status of the target")


def spans_of(trace):
    """By thread: (name, depth) of each span, in order. Without a signal's, which may come between a probe and the agent."""
    rows = collections.defaultdict(list)
    for e in (e for e in trace.spans if e["name"] != "in a signal"):
        rows[e["tid"]].append((round(e["ts"] * 1000), -round(e["dur"] * 1000), e["name"]))
    out = {}
    for tid, row in rows.items():
        ends, found = [], []
        for begin, minus, name in sorted(row):
            while ends and ends[-1] <= begin:
                ends.pop()
            found.append((name, len(ends)))
            ends.append(begin - minus)
        out[tid] = found
    return out


def values_of(trace):
    return collections.Counter((e["name"], str(e["args"])) for e in trace.json["traceEvents"]
                               if e["ph"] == "C" and e["name"] in ("round", "jumps"))


def check_counts(trace, counts, what):
    calls = {k.removesuffix("…"): n for k, n in trace.calls.items()} # of a name that is longer, its beginning is kept
    readable = collections.Counter({k: n for k, n in calls.items() if k in counts})
    expected = collections.Counter(counts)
    del expected["unreadable"]
    equal(readable, expected, f"{what}: regions")
    equal(sum(trace.calls.values()), sum(counts.values()), f"{what}: all regions")


def log(r):
    with open(r.log, encoding="utf-8") as f:
        return f.read()


@case
def a_full_ring_and_signals(_):
    """In the agent alone: what found no room is counted, neither its beginning nor its end was written; and nothing of a fork's
    child, or when nobody wants regions any more."""
    words = run([workload("region_rings"), AGENT], text=True).stdout.split()
    got = {k: int(v) for k, v in zip(words[::2], words[1::2])}
    equal(got["begins"] + got["lost"], got["made"], f"regions {got}")
    equal(got["begins"], got["ends"], "ends")
    check(got["lost"] > 0 and got["signals"] > 0, "nothing was lost, or no signal came", got)
    equal({k: got[k] for k in ("bad", "backwards", "open", "child", "afterwards", "active")},
          {"bad": 0, "backwards": 0, "open": 0, "child": 0, "afterwards": 0, "active": 0}, "others")


@case
def both_ways_at_once(folder):
    """Each region is in both captures, equal in name, thread and nesting, and is what the program has counted; and each value."""
    target = Target(THREADS, ROUNDS)
    outs = {n: f"{folder}/{n}.json" for n in ("agent", "probes")}
    with Recording(folder, *QUIET, "-p", target.pid, "-o", outs["probes"], name="probes") as probes:
        with Recording(folder, "--inject", *QUIET, "-p", target.pid, "-o", outs["agent"], name="agent") as agent:
            check(BY_AGENT in log(agent), "what was said", log(agent))
            counts = target.go()
            time.sleep(0.1)
            for r in (agent, probes):
                r.stop()
                r.wait()
    target.end()
    traces = {n: Trace(path) for n, path in outs.items()}
    for n, trace in traces.items():
        check_counts(trace, counts, n)
        trace.check_nesting()
        lost = trace.lost()
        equal({k: v for k, v in lost.items() if k != "lost_names"}, {}, f"{n}: losses")
        check(lost.get("lost_names", 0) >= UNREADABLE, f"{n}: names that cannot be read", lost)
    by_agent, by_probes = spans_of(traces["agent"]), spans_of(traces["probes"])
    equal(set(by_agent), set(by_probes), "threads")
    for tid, row in by_agent.items():
        for i, (ours, theirs) in enumerate(zip(row, by_probes[tid])):
            named = ours[0] in counts or theirs[0] in counts
            check(ours[1] == theirs[1] and (ours[0] == theirs[0] or not named), f"thread {tid}, span {i}: {ours}, {theirs}")
        equal(len(row), len(by_probes[tid]), f"thread {tid}: spans")
    equal(values_of(traces["agent"]), values_of(traces["probes"]), "values")
    equal(sum(values_of(traces["agent"]).values()), 2 * THREADS * ROUNDS, "values")
    check(traces["agent"].json["xsptrace_overhead"]["probes_cost_ns"] * 5 < traces["probes"].json["xsptrace_overhead"]["probes_cost_ns"],
          "regions by the agent are not cheaper")


@case
def again_and_after_a_killed_tracer(folder):
    """Recordings one after the other, one of them killed: each has all, and nothing stays behind when nobody records."""
    target = Target(2, 10)
    for n in range(3):
        out = f"{folder}/{n}.json"
        with Recording(folder, "--inject", *QUIET, "-p", target.pid, "-o", out, name=str(n)) as r:
            if n == 1:
                r.process.kill()
                r.process.wait()
                target.go()
                continue
            counts = target.go()
            time.sleep(0.1)
            r.stop()
            r.wait()
        check_counts(Trace(out), counts, f"recording {n}")
    target.go()
    target.end()


@case
def a_target_that_is_killed(folder):
    """At most the region in progress is missing."""
    path = f"{folder}/counter"
    with open(path, "wb") as f:
        f.write(bytes(8))

    def ended():
        with open(path, "rb") as f:
            return struct.unpack("<Q", f.read())[0]

    for n in range(3):
        with open(path, "r+b") as f:
            f.write(bytes(8))
        target = Target(1, 1, path)
        out = f"{folder}/killed{n}.json"
        with Recording(folder, "--inject", *QUIET, "-p", target.pid, "-o", out, name=f"killed{n}") as r:
            target.ask()
            wait_for(lambda: ended() > 5000, 20, "regions")
            target.child.kill()
            target.child.wait()
            r.wait()
        trace = Trace(out)
        recorded = trace.calls["for ever"] + trace.losses["lost_entries"]
        check(ended() <= recorded <= ended() + 1, f"{recorded} recorded and lost, {ended()} ended", trace.losses)


main()
