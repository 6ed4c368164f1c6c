#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of several processes against the ranks' own clocks: torch.distributed over gloo with a slow and a late rank, and
NCCL's calls on a double of its library."""
import collections
import glob
import json
import os
import statistics

from harness import (CAPTURE, EXTRA, SCRIPTS, TORCH, USAGE, Recording, Skip, Trace, case, check, equal, json_report,
                     main, run, start, workload, xsptrace)

PYTHON = TORCH
BARRIER, ALLREDUCE = (f"c10d::ProcessGroupGloo::{n}" for n in ("barrier", "allreduce"))


def need_gloo():
    program = "import torch.distributed as d; assert d.is_available() and hasattr(d, 'ProcessGroupGloo')"
    if not os.path.exists(PYTHON) or run([PYTHON, "-c", program]).returncode != 0:
        raise Skip(f"{PYTHON} has no torch.distributed with gloo (Debian: python3-torch)")


class Job:
    """A job that waits for a signal to begin, and its ranks' clock readings."""

    def __init__(self, folder, ranks, steps, *slow_and_late):
        self.folder, self.ranks = folder, ranks
        self.process = start([PYTHON, f"{SCRIPTS}/torch_ranks.py", folder, ranks, steps, *slow_and_late],
                             stdout=-1, text=True)
        line = self.process.stdout.readline().split()
        check(line[:1] == ["ready"], "the job did not begin", line)
        self.pids = [int(p) for p in line[1:]]

    def go(self):
        with open(f"{self.folder}/go", "wb"):
            pass
        equal(self.process.wait(timeout=120), 0, "the job's exit status")
        self.times = []
        for rank in range(self.ranks):
            with open(f"{self.folder}/{rank}.json", encoding="ascii") as f:
                self.times.append(json.load(f))

    def collectives(self):
        """Of each collective its name, when the ranks came, and when they left."""
        for rows in zip(*self.times):
            for first in range(0, len(rows[0]), 2):
                name = ALLREDUCE if first == 0 and len(rows[0]) > 2 else BARRIER
                yield name, [r[first] for r in rows], [r[first + 1] for r in rows]

    def waited(self, rank):
        return sum(max(came) - came[rank] for _, came, _ in self.collectives())

    def late(self, rank, which):
        """Its delays after the others' median, added up."""
        return sum(max(0, came[rank] - statistics.median(c for r, c in enumerate(came) if r != rank))
                   for name, came, _ in self.collectives() if name == which)


    def is_as_planned(self, slow, late):
        """By the clocks: others that run on this machine hold ranks up as well."""
        return all(self.late(rank, which) > 4 * max(self.late(r, which) for r in range(self.ranks) if r != rank)
                   for rank, which in ((slow, ALLREDUCE), (late, BARRIER)))


def as_planned(folder, ranks, steps, slow, late, record):
    """The job, run and recorded by record(job, folder), again and again until only those two were late."""
    for attempt in range(3):
        here = f"{folder}/{attempt}"
        os.mkdir(here)
        job = Job(here, ranks, steps, slow, late)
        record(job, here)
        if job.is_as_planned(slow, late):
            return job
    raise Skip("other programs hold up ranks that were not to be slow")


def tables(report):
    """{table: {first cell: row}} of a report as JSON."""
    return {key: {next(iter(r.values())): r for r in t["rows"]}
            for s in report["sections"].values() for key, t in s["tables"].items()}


def near(got, expected, what, tolerance):
    check(abs(got - expected) <= tolerance, f"{what}: {got}, by the ranks' own clocks {expected}")


def analyzed(*arguments):
    return json_report("analyze", *arguments)


def check_job(job, report, slow, late, steps):
    """Both are named, with the operator, and the figures are those of the ranks' own clocks."""
    found = {f["rule"]: f for f in report["findings"] if f["rule"] in ("straggler", "late-rank")}
    equal({k: f["subject"] for k, f in found.items()},
          {"straggler": f"rank {slow}: aten::mm", "late-rank": f"rank {late}: {BARRIER}"}, "findings")
    rows = tables(report)
    # each call passes some probes before it counts as come
    for rank, row in rows["ranks"].items():
        equal(row["collectives"], 2 * steps + 1, "collectives of a rank")
        near(row["waited_ns"], job.waited(rank), f"rank {rank} waited for others", 0.05 * job.waited(rank) + steps * 1e6)
    near(rows["ranks"][slow]["late_ns"], job.late(slow, ALLREDUCE) + job.late(slow, BARRIER), "the slow rank is late by",
         0.1 * job.late(slow, ALLREDUCE) + steps * 5e5)
    equal(rows["collectives"][BARRIER]["rank"], late, "latest at the barrier")
    equal(rows["collectives"][ALLREDUCE]["rank"], slow, "latest at allreduce")
    near(rows["collectives"][BARRIER]["late_ns"], job.late(late, BARRIER), "late at the barrier",
         0.05 * job.late(late, BARRIER) + steps * 5e5)
    return rows


@case(quiet="who is late by the clock")
def slow_and_late_rank(folder):
    """Four ranks recorded into one capture: -p of several."""
    need_gloo()

    def record(job, here):
        with Recording(here, "--shapes", "-p", ",".join(map(str, job.pids)), "-o", f"{here}/job.xspt") as r:
            job.go()
            r.wait(seconds=240)

    job = as_planned(folder, 4, 8, 2, 1, record)
    out = f"{job.folder}/job.xspt"
    rows = check_job(job, analyzed(out), slow=2, late=1, steps=8)
    equal(rows["collectives"][ALLREDUCE]["bytes"], 4000, "bytes of 1,000 floats")
    # each step, who had most to do by itself
    slowest = collections.Counter(s["rank"] for s in rows["rank_steps"].values())
    check(set(slowest) <= {1, 2}, "slowest by step", slowest)
    text = xsptrace("analyze", "--full", out).stdout
    check("rank 2" in text and "aten::mm" in text and "rank 1" in text, "the text names both", text)


@case(long="eight processes, a recording each")
def eight_captures_of_a_job(folder):
    """A capture a rank; the folder is the job: analysis and one trace."""
    need_gloo()

    def record(job, here):
        os.mkdir(f"{here}/captures")
        recordings = [Recording(here, "-p", pid, "-o", f"{here}/captures/rank{i}.xspt", name=f"rank{i}")
                      for i, pid in enumerate(job.pids)]
        for r in recordings:
            r.wait_live(60)
        job.go()
        for r in recordings:
            r.wait(seconds=240)

    job = as_planned(folder, 8, 10, 5, 3, record)
    captures = f"{job.folder}/captures"
    check_job(job, analyzed(captures), slow=5, late=3, steps=10)
    files = sorted(glob.glob(f"{captures}/*.xspt"))
    equal(tables(analyzed(*files))["ranks"].keys(), {*range(8)}, "the same by name")
    check_trace(folder, job, captures, files)
    refused = xsptrace("export", *files, "-o", f"{folder}/job.folded", status=USAGE)
    check("several captures" in refused.stderr, "a clear refusal", refused.stderr)
    twice = xsptrace("analyze", files[0], files[1], files[0], status=USAGE)
    check("same capture" in twice.stderr, "the same capture twice", twice.stderr)
    os.mkdir(f"{folder}/empty")
    none = xsptrace("analyze", f"{folder}/empty", status=CAPTURE)
    check("no capture" in none.stderr, "an empty folder", none.stderr)


def check_trace(folder, job, captures, files):
    """One trace has the spans of all, each process under its rank's name, on one clock."""
    xsptrace("export", "-q", captures, "-o", f"{folder}/job.json")
    with open(f"{folder}/job.json", encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    single = 0
    for path in files:
        xsptrace("export", "-q", path, "-o", f"{folder}/one.json")
        single += len(Trace(f"{folder}/one.json").spans)
    spans = [e for e in events if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")]
    equal(len(spans), single, "spans of all captures")
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    ranks = {int(n.split()[1]): p for p, n in names.items() if n.startswith("rank ")}
    equal(ranks, dict(enumerate(job.pids)), "processes by rank")
    equal(sum(e["name"] == "xsptrace_capture" for e in events), 8, "what is said of each capture")
    # no rank leaves a barrier before all have come
    begun = collections.defaultdict(list)
    for e in sorted((e for e in spans if e["name"] == BARRIER), key=lambda e: e["ts"]):
        begun[e["pid"]].append(e["ts"])
    left = collections.defaultdict(list)
    for e in sorted((e for e in spans if e["name"] == "gloo::barrier"), key=lambda e: e["ts"]):
        left[e["pid"]].append(e["ts"] + e["dur"])
    for came, ended in zip(zip(*begun.values()), zip(*left.values())):
        check(min(ended) > max(came), "a barrier was left before all had come", came, ended)


@case
def same_names_as_the_profiler(folder):
    """Ranges that gloo makes of each collective, and record_function(), have the names that torch.profiler tells of the same
    program; those of TorchScript cannot be read, and have nobody else's."""
    need_gloo()
    wanted = collections.Counter()
    os.mkdir(f"{folder}/theirs")
    equal(run([PYTHON, f"{SCRIPTS}/torch_gloo.py", f"{folder}/theirs", "profile"]).returncode, 0, "with torch.profiler")
    for rank in range(2):
        with open(f"{folder}/theirs/{rank}.json", encoding="ascii") as f:
            wanted.update(json.load(f))
    check(len(wanted) >= 9, "names that the profiler told", wanted)
    os.mkdir(f"{folder}/ours")
    xsptrace(*EXTRA, "-q", "-e", "torch:record_function", "--follow=stop", "-o", f"{folder}/ours.json", "--", PYTHON,
             f"{SCRIPTS}/torch_gloo.py", f"{folder}/ours", timeout=120)
    trace = Trace(f"{folder}/ours.json")
    unread = wanted.pop("scripted")
    equal(trace.lost(), {"lost_names": unread}, "losses")
    wanted["[name not readable]"] = unread
    equal(collections.Counter(e["name"] for e in trace.spans if e["cat"] == "user_annotation"), wanted, "names and how often")


@case
def nccl_calls(folder):
    """A double of libnccl that counts its own calls: names, elements, types, communicator, group."""
    out = f"{folder}/nccl.json"
    done = xsptrace(*EXTRA, "-q", "-o", out, "--", workload("nccl_job"), 50)
    truth, trace = json.loads(done.stdout), Trace(out)
    trace.check_nothing_lost()
    communicator = truth.pop("communicator")
    calls, elements = collections.Counter(), collections.Counter()
    for e in trace.spans:
        if e["name"] in truth:
            calls[e["name"]] += 1
            elements[e["name"]] += e["args"]["In msg nelems"]
            equal(e["args"]["communicator"], communicator, "communicator")
    equal({n: [calls[n], elements[n]] for n in truth}, truth, "calls and their elements")
    of = {e["name"]: e["args"] for e in trace.spans}
    equal({n: of[n]["dtype"] for n in truth},
          {"ncclAllReduce": "Float", "ncclReduce": "Half", "ncclBroadcast": "Long", "ncclReduceScatter": "BFloat16",
           "ncclAllGather": "Char", "ncclSend": "Float", "ncclRecv": "Float"}, "types")
    equal({n: of[n]["peer"] for n in truth if "peer" in of[n]},
          {"ncclReduce": 5, "ncclBroadcast": 6, "ncclSend": 3, "ncclRecv": 1}, "roots and peers")
    join = of["ncclCommInitRank"]
    equal((join["Rank"], join["Group size"]), (2, 8), "the communicator's rank and size")
    equal((trace.calls["ncclGroupStart"], trace.calls["ncclGroupEnd"]), (50, 50), "groups")


main()
