#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ranges against the program's own clock: where exceptions are caught inside them, and where filters
are on."""
import collections
import json
import re

from harness import (AS_ASKED, EXTRA, NO_BRAKE, TABLE, SCRIPTS, Trace, case, check, check_as_shipped, equal, main,
                     need_torch, torch_when_traced, workload, xsptrace)


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
    done = xsptrace(*EXTRA, "-q", "-e", "torch", "-o", out, "--", *torch_when_traced(f"{SCRIPTS}/torch_caught.py", 40))
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
def guards_that_do_not_end_in_turn(folder, *options):
    """Behind an exception, by longjmp, in another order, on another thread, never."""
    for program in ("guards_0", "guards_2"):
        out = f"{folder}/{program}.json"
        done = xsptrace(*EXTRA, *options, "-q", "-o", out, "--", workload(program), 20)
        trace = Trace(out)
        check_as_shipped(trace, options)
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


@case
def guards_that_do_not_end_in_turn_bare(folder):
    guards_that_do_not_end_in_turn(folder, *AS_ASKED)


def record_filtered(folder, *options):
    out = f"{folder}/filtered{'_'.join(options)}.json"
    done = xsptrace(*EXTRA, "-e", "torch", *options, "-o", out, "--", *torch_when_traced(f"{SCRIPTS}/torch_filtered.py", 20))
    trace = Trace(out)
    check(trace.spans, "no spans", done.stderr, done.stdout)
    trace.check_nothing_lost()
    trace.check_nesting()
    equal([e for e in trace.spans if {"unwound", "finished", "exit lost"} & e["args"].keys()], [],
          f"{options}: spans without an end")
    times = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return trace, times, done.stdout


@case
def shorter_than_min_duration(folder):
    """Of ranges and backward nodes as of functions: those that are long enough, with their times."""
    need_torch()
    least = 3_000_000
    trace, times, table = record_filtered(folder, "--min-duration", "3ms")
    equal([e for e in trace.spans if round(e["dur"] * 1000) < least - 2], [], "shorter spans")
    for name in ("short", "long"):
        # which of those between the two are long enough only xsptrace knows
        sure = [t for t in times[name] if t[2] - t[1] >= least]
        perhaps = [t for t in times[name] if t[3] - t[0] >= least]
        check(len(sure) <= len(named(trace, name)) <= len(perhaps), f"ranges {name}", len(sure), len(named(trace, name)), len(perhaps), trace.losses)
        if len(sure) == len(perhaps):
            check_times(named(trace, name), sure, name)
    check_times(named(trace, "autograd::engine::evaluate_function: WaitsBackward"),
                times["backward"], "node")
    held_back = re.search(r"held back by filters: ([\d,]+)", table)
    check(held_back and int(held_back[1].replace(",", "")) > 20 * 10, "not said", table)


@case
def deeper_than_max_depth(folder):
    """Ranges and nodes are levels like any other: a run with --max-depth has the outermost levels of a run without."""
    need_torch()

    def levels(trace):
        count, open_at = collections.Counter(), collections.defaultdict(list)
        for e in sorted(trace.spans, key=lambda e: (e["tid"], e["ts"], -e["dur"])):
            ends = open_at[e["pid"], e["tid"]]
            while ends and ends[-1] <= e["ts"]:
                ends.pop()
            count[e["name"], len(ends)] += 1
            ends.append(e["ts"] + e["dur"])
        return count

    whole = levels(record_filtered(folder)[0])
    check(max(depth for _, depth in whole) >= 3, "the script is too shallow", whole)
    equal(dict(levels(record_filtered(folder, "--max-depth", "2")[0])),
          {k: v for k, v in whole.items() if k[1] < 2}, "spans with --max-depth 2")


@case
def more_names_than_the_kernel_side_remembers(folder):
    """They are sent again each time, which is no loss."""
    xsptrace(*EXTRA, "-q", "-e", "record_function", "-o", f"{folder}/n.json", "--", workload("many_names"), 70_000)
    trace = Trace(f"{folder}/n.json")
    equal((len(trace.spans), len(trace.calls)), (70_000, 70_000), "ranges, and names")
    trace.check_nothing_lost()


main(declined=[*NO_BRAKE, TABLE])
