#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Steps of real programs: how long they took by the program's own clock, and what was called in them by the trace's
slices. tests/unit/test_steps.c has what must not count."""
import json
import os
import re
import statistics
import subprocess

import shared
from harness import EXTRA, SCRIPTS, TORCH, Recording, Skip, Trace, case, check, equal, json_report, main, start, workload, xsptrace

PYTHON = TORCH


def ns(us):
    return round(us * 1000)


def attached(folder, how, count):
    """A loop of torch_steps.py: (trace, what it says, steps as JSON and as text). The probes are there before it begins."""
    if not os.path.exists(PYTHON):
        raise Skip(f"no {PYTHON}")
    child = start([PYTHON, f"{SCRIPTS}/torch_steps.py", how, count], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdout.readline() != b"ready\n":
        raise Skip(f"{PYTHON} has no torch (Debian: python3-torch)")
    with Recording(folder, "-p", child.pid, "-e", "torch", "-o", f"{folder}/run.xspt", "-o", f"{folder}/run.json") as r:
        facts = json.loads(child.communicate(b"\n", timeout=120)[0])
        r.wait()
    text = xsptrace("export", f"{folder}/run.xspt").stdout
    steps = json.loads(xsptrace("export", f"{folder}/run.xspt", "--summary=json").stdout).get("steps")
    return Trace(f"{folder}/run.json"), facts, steps, text


def check_figures(steps, lengths, text):
    """Of whole steps in their order, {number: ns} of each thread: what counts, and the figures of that."""
    warm_up, counted, near = [], [], []
    for thread in lengths:
        median, warm = statistics.median_low(sorted(thread.values())), True
        for i, (number, length) in enumerate(thread.items()):
            warm = warm and i < 10 and length > 2 * median
            (warm_up if warm else counted).append((number, length))
            if abs(length - 2 * median) < median / 10:
                near.append(number)
    got = sorted((s["number"], s["time_ns"]) for s in steps["warm_up"])
    if got != sorted(warm_up):
        check(near, "left out as warm-up", got, sorted(warm_up))
        return
    times = [length for _, length in counted]
    equal(steps["steps"], len(times), "steps that count")
    for key, expected in (("mean_ns", statistics.fmean(times)), ("std_ns", statistics.stdev(times)),
                          ("min_ns", min(times)), ("max_ns", max(times))):
        check(abs(steps[key] - expected) <= 4, f"{key}: {steps[key]}, expected {expected}")
    for key, share in (("p50_ns", 0.5), ("p99_ns", 0.99)):
        rank = sorted(times)[max(0, -(-int(share * 100) * len(times) // 100) - 1)]
        check(abs(steps[key] - rank) <= rank / 100 + 4, f"{key}: {steps[key]}, expected {rank}")
    equal([s["time_ns"] for s in steps["slowest"]], sorted(times, reverse=True)[:5], "the slowest")
    check(f"steps ({steps['marker']}): {len(times)}, mean " in text, "the summary's line", text)
    equal("left out as warm-up" in text, bool(warm_up), "is warm-up said?")


def inside(spans, outer):
    return [e for e in spans if e is not outer and e["tid"] == outer["tid"] and outer["ts"] <= e["ts"] and
            e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + 0.002]


@case
def ranges_that_number(folder):
    """Times against the clock, calls against the program's count, on two threads."""
    path, facts = shared.capture("demo")
    xsptrace("export", "-q", path, "-o", f"{folder}/run.json")
    trace = Trace(f"{folder}/run.json")
    steps = json.loads(xsptrace("export", path, "--summary=json", "--step", "turn").stdout)["steps"]
    text = xsptrace("export", path, "--step", "turn").stdout
    trace.check_nothing_lost()
    turns = [e for e in trace.spans if e["name"].startswith("turn ")]
    lengths, threads = [], {}
    for tid, rows in facts["steps"].items():
        mine = sorted((e for e in turns if e["tid"] == int(tid)), key=lambda e: e["ts"])
        equal([e["name"] for e in mine], [f"turn {i}" for i in range(shared.STEPS)], "steps of a thread")
        for e, (before, first, last, after, *_) in zip(mine, rows):
            check(last - first - 2 <= ns(e["dur"]) <= after - before + 2, "a step's time", e, before, after)
        lengths.append({i: ns(e["dur"]) for i, e in enumerate(mine)})
        threads[int(tid)] = rows
    check_figures(steps, lengths, text)
    equal((steps["marker"], steps["not_whole"], steps["uncertain"]), ("turn *", 0, False), "what is said of them")
    for s in steps["slowest"] + steps["warm_up"]:
        equal(s["calls"], threads[s["tid"]][s["number"]][5], f"calls in step {s['number']}")
    equal(sum(t["calls"] for t in steps["threads"]), steps["calls"], "calls of all threads")
    left_out = {tid: [s["number"] for s in steps["warm_up"] if s["tid"] == tid] for tid in threads}
    counted = {tid: [row for i, row in enumerate(rows) if i not in left_out[tid]] for tid, rows in threads.items()}
    equal({t["tid"]: t["calls"] for t in steps["threads"]}, {tid: sum(r[5] for r in rows) for tid, rows in counted.items()},
          "calls: what is in the steps, and nothing between two of them")
    told = {t["tid"]: {n["name"]: n["calls"] for n in t["names"]} for t in steps["threads"]}
    equal({tid: names.get("part") for tid, names in told.items()}, {tid: sum(r[4] for r in rows) for tid, rows in counted.items()}, "what is called")
    check("of 2 threads; the slowest, everything (" in text, "threads", text)
    # one row of the table; without --step each of these names has a row
    check(re.search(rf"^turn \* +{2 * shared.STEPS} ", text, re.M), "one row", text)
    plain = xsptrace("export", path, "--rows", "all").stdout
    check("turn 7 " in plain and "steps (" not in plain, "names that number", plain)
    # nothing marks steps: there are none, and the output says how to mark them
    check("steps" not in json.loads(xsptrace("export", path, "--summary=json").stdout), "steps that nobody marked")
    equal(json_report("analyze", path)["sections"]["steps"]["notes"], ["no span marks steps: --step NAME says what one is"], "what is said")
    # six more parts than in the others: "what was longer" shows them, if that step is among the slowest
    for s in steps["slowest"]:
        longer = {n["name"]: n["calls"] for n in s["longer"] if n["name"] in ("part", "clock_nanosleep")}
        if s["number"] == 6:
            equal(longer, {name: {"part": 9, "clock_nanosleep": 10}[name] for name in longer}, "calls of what was longer in step 6")


@case
def cut_off_by_the_end(folder):
    """Recorded for a while of a program that goes on: its last step is in no figure."""
    child = start([workload("stepped"), 5000], stdout=subprocess.DEVNULL)
    run = f"{folder}/run"
    xsptrace(*EXTRA, "-q", "-e", "record_function", "-d", "1", "-o", f"{run}.xspt", "-o", f"{run}.json", "-p", child.pid, timeout=120)
    trace = Trace(f"{run}.json")
    steps = json.loads(xsptrace("export", f"{run}.xspt", "--summary=json", "--step", "turn").stdout)["steps"]
    text = xsptrace("export", f"{run}.xspt", "--step", "turn").stdout
    turns = [e for e in trace.spans if e["name"].startswith("turn ")]
    open_at_end = [e for e in turns if e["args"].get("finished") is False]
    equal(steps["not_whole"], len(open_at_end), "steps that were not seen to end")
    whole = {int(e["name"].split()[1]): ns(e["dur"]) for e in turns if e not in open_at_end}
    check_figures(steps, [dict(sorted(whole.items()))], text)
    equal("left out as not recorded from beginning to end: 1 step" in text, len(open_at_end) == 1, "said")


@case
def while_it_is_recorded(folder):
    """The line is in the summary of the recording itself, by record's own --step."""
    done = xsptrace(*EXTRA, "--step", "turn", "-o", f"{folder}/x.folded", "--", workload("stepped"), 8)
    check(re.search(r"^steps \(turn \*\): \d, mean ", done.stdout, re.M), "no line of steps", done.stdout)


@case
def torch_optimizer(folder):
    """From the end of one optimizer.step() to that of the next."""
    trace, facts, steps, text = attached(folder, "optimizer", 24)
    trace.check_nothing_lost()
    markers = sorted((e for e in trace.spans if e["name"] == "Optimizer.step#SGD.step"), key=lambda e: e["ts"])
    equal(len(markers), 24, "optimizer.step()")
    ends = [ns(e["ts"]) + ns(e["dur"]) for e in markers]
    lengths = {i: ends[i] - ends[i - 1] for i in range(1, 24)}
    for i, length in lengths.items():
        (before, after), (before_last, after_last) = facts[i], facts[i - 1]
        check(before - after_last <= length <= after - before_last, f"step {i}: {length} ns", facts[i - 1:i + 1])
    check_figures(steps, [lengths], text)
    equal((steps["marker"], steps["not_whole"]), ("Optimizer.step#SGD.step", 2), "the first one and the last")
    calls = {i: [e["name"] for e in trace.spans if e["tid"] == markers[0]["tid"] and ends[i - 1] <= ns(e["ts"]) and
                 ns(e["ts"]) + ns(e["dur"]) <= ends[i]] for i in lengths}
    equal(calls[5].count("aten::linear"), 4, "the planted step")
    left_out = {s["number"] for s in steps["warm_up"]}
    equal(steps["calls"], sum(len(c) for i, c in calls.items() if i not in left_out), "calls")
    for s in steps["slowest"]:
        equal(s["calls"], len(calls[s["number"]]), f"calls of step {s['number']}")
    # it slept for 20 ms, outside of all operators; where others hold up five more of them for as long, it is none of the slowest
    slow = sorted(set(lengths) - left_out, key=lengths.get)[-5:]
    five = next((s for s in steps["slowest"] if s["number"] == 5), None)
    check(5 not in slow or five and any(n["name"] is None and n["self_ns"] > 19_000_000 for n in five["longer"]),
          "what was longer in step 5", steps["slowest"])


@case
def torch_profiler(folder):
    """torch.profiler's own steps, with its schedule; they are one row."""
    trace, facts, steps, text = attached(folder, "profiler", 16)
    markers = sorted((e for e in trace.spans if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])
    whole = [e for e in markers if "finished" not in e["args"]]
    equal(steps["marker"], "ProfilerStep#*", "marker")
    equal(steps["steps"] + len(steps["warm_up"]), len(whole), "steps")
    # after the first step() each is a turn of the loop: by the clock around both ends
    for around in facts[1:]:
        begin_before, begin_after, end_before, end_after = around
        near = [e for e in whole if end_before - begin_after <= ns(e["dur"]) + 2 and
                ns(e["dur"]) - 2 <= end_after - begin_before]
        check(near, "no step lasts as long as the program saw", around)
    times = [ns(e["dur"]) for e in whole]
    counted = list(times)
    for s in steps["warm_up"]:
        counted.remove(s["time_ns"])
    check(abs(steps["mean_ns"] - statistics.fmean(counted)) <= 4 and abs(steps["std_ns"] - statistics.stdev(counted)) <= 4,
          "mean and spread", steps, counted)
    rows = re.findall(r"^ProfilerStep#\S+ +([\d,]+) ", text, re.M)
    equal(rows, [str(len(markers))], "rows of the table")
    inner = {id(e): len(inside(trace.spans, e)) for e in whole}
    warm = sorted(s["calls"] for s in steps["warm_up"])
    total = sum(inner.values())
    equal(steps["calls"] + sum(warm), total, "calls in all steps")


main()
