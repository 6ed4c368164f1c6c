#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ranges against the program's own clock: where exceptions are caught inside them, and where filters
are on."""
import json
import os

from harness import EXTRA, SCRIPTS, Skip, Trace, case, check, equal, main, run, workload, xsptrace

PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")


def need_torch():
    if not os.path.exists(PYTHON) or run([PYTHON, "-c", "import torch"]).returncode != 0:
        raise Skip(f"{PYTHON} has no torch (Debian: python3-torch)")


def named(trace, name):
    return sorted((e for e in trace.spans if e["name"] == name), key=lambda e: e["ts"])


def check_times(spans, times, name):
    """Each span lasts as long as the program saw, between the clock readings inside and around it."""
    equal(len(spans), len(times), f"spans {name}")
    for span, (before, first, last, after) in zip(spans, times):
        length = round(span["dur"] * 1000)
        # the conversion to a double may cost some nanoseconds
        check(last - first - 2 <= length <= after - before + 2,
              f"{name}: {length} ns, not {last - first} to {after - before}", span)


def inside(span, outer):
    return (span["tid"] == outer["tid"] and outer["ts"] <= span["ts"] and
            span["ts"] + span["dur"] <= outer["ts"] + outer["dur"] + 0.002)


@case
def exceptions_caught_in_python(folder):
    """at::_ops::mm::call throws, the binding catches, Python goes on inside the range."""
    need_torch()
    out = f"{folder}/caught.json"
    done = xsptrace(*EXTRA, "-q", "-e", "torch", "-o", out, "--", PYTHON,
                    f"{SCRIPTS}/torch_caught.py", 40)
    times, trace = json.loads(done.stdout), Trace(out)
    trace.check_nothing_lost()
    trace.check_nesting()
    caught, inner = named(trace, "caught"), named(trace, "inner")
    check_times(caught, times, "caught")
    equal(len(inner), len(times), "ranges inside, behind the exception")
    equal([e for e in caught + inner if "unwound" in e["args"] or "finished" in e["args"]], [],
          "ranges not ended by their end")
    equal(sum("unwound" in e["args"] for e in named(trace, "aten::mm")), 40, "operators that threw")
    for outer, i, add, neg in zip(caught, inner, named(trace, "aten::add")[3:], named(trace, "aten::neg")):
        check(inside(i, outer) and inside(add, i) and inside(neg, outer), "nesting", outer, i, add, neg)


@case
def guards_that_do_not_end_in_turn(folder):
    """Behind an exception, by longjmp, in another order, on another thread, never."""
    for program in ("guards_0", "guards_2"):
        out = f"{folder}/{program}.json"
        done = xsptrace(*EXTRA, "-q", "-o", out, "--", workload(program), 20)
        trace = Trace(out)
        trace.check_nothing_lost()
        trace.check_nesting()
        for name, times in json.loads(done.stdout).items():
            check_times(named(trace, name), times, f"{program}: {name}")
        not_ended = {e["name"] for e in trace.spans
                     if {"unwound", "finished", "exit lost"} & e["args"].keys()}
        equal(not_ended, {"jumped", "never ended"}, f"{program}: ranges without an end")
        for outer, gone in zip(named(trace, "around"), named(trace, "never ended")):
            check(inside(gone, outer), f"{program}: a range without an end goes beyond", gone)
        # a row of its own for what overlaps, but of the thread that began it
        equal(len({e["pid"] for e in named(trace, "handed")}), 1, "processes")


main()
