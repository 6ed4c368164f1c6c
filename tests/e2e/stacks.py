#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--stacks: call chains that tests/workloads/callers.c is known to have. With frame pointers all of
them are there; without, the caller is, and no frame is there that is not on the stack."""
import collections
import os
import shutil

from harness import EXTRA, USAGE, Trace, case, check, equal, main, run, workload, xsptrace

CHAIN = ["inner", "middle", "outer", "main"]
CALLS = 20


def record(folder, program, *options):
    xsptrace(*EXTRA, "-q", *options, "-o", f"{folder}/t.json", "-o", f"{folder}/t.folded", "-o",
             f"{folder}/t.perf", "-o", f"{folder}/t.svg", "-o", f"{folder}/t.xspt", "--", program, CALLS)
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    trace.check_nesting()
    return trace


def stacks(trace, name):
    """Call stacks of a function's spans, in the order of time, as lists."""
    spans = sorted((e for e in trace.spans if e["name"] == name), key=lambda e: e["ts"])
    return [e["args"].get("Call stack", "").split(";") for e in spans]


def folded(folder):
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        return {line.rpartition(" ")[0].partition(";")[2] for line in f}


@case
def with_frame_pointers(folder):
    program = workload("callers")
    trace = record(folder, program, "--stacks", "-e", "callers:leaf", "-e", "callers:outer")
    got = stacks(trace, "leaf")
    equal(len(got), CALLS + 1, "calls of leaf")
    for stack in got[:-1]:
        equal(stack[:4], CHAIN, "who called leaf")
    equal(got[-1][:CALLS + 2], ["recursion"] * (CALLS + 1) + ["main"], "who called leaf in the recursion")
    for stack in stacks(trace, "outer"):
        equal(stack[0], "main", "who called outer")
    # below the span around it, which comes once; that one's ancestors, above it
    lines = folded(folder)
    chain = [line for line in lines if line.endswith(";outer;middle;inner;leaf")]
    check(len(chain) == 1 and "main;outer;middle" in chain[0], "the chain in the folded stacks", lines)
    check(any("main;" + "recursion;" * (CALLS + 1) + "leaf" in line for line in lines),
          "the recursion in the folded stacks", lines)
    with open(f"{folder}/t.perf", encoding="utf-8") as f:
        text = f.read()
    sample = next(s for s in text.split("\n\n") if " leaf+" in s)
    equal([line.split()[1].partition("+")[0] for line in sample.splitlines()[1:6]],
          ["leaf", "inner", "middle", "outer", "main"], "frames of a sample")
    with open(f"{folder}/t.svg", encoding="utf-8") as f:
        check(">main<" in f.read() or "main" in f.read(), "no native frames in the flame graph")


@case
def without_frame_pointers(folder):
    """The return address is right; of what the register that was a frame pointer leads to, only
    what returns behind a call is believed."""
    trace = record(folder, workload("callers_without"), "--stacks", "-e", "callers_without:leaf", "-e",
                   "callers_without:inner")
    for stack in stacks(trace, "leaf")[:-1]:
        equal(stack[0], "inner", "who called leaf")
        chain = iter(CHAIN[1:])
        ours = [f for f in stack[1:] if f in CHAIN]
        check(all(f in chain for f in ours), "a frame that is not there", stack)
    for stack in stacks(trace, "inner"):
        equal(stack[0], "middle", "who called inner")


@case
def as_many_as_asked_for(folder):
    trace = record(folder, workload("callers"), "--stacks=3", "-e", "callers:leaf")
    equal(collections.Counter(map(len, stacks(trace, "leaf"))), {3: CALLS + 1}, "frames")
    for wrong in ("0", "128", "x"):
        done = xsptrace(f"--stacks={wrong}", "--", "true", status=USAGE)
        check("1 to 127" in done.stderr, "does not say what can be given", done.stderr)


@case
def names_are_in_the_capture(folder):
    """The program is gone when the capture is read."""
    program = f"{folder}/callers"
    shutil.copy(workload("callers"), program)
    record(folder, program, "--stacks", "-e", "callers:leaf")
    os.unlink(program)
    xsptrace("export", f"{folder}/t.xspt", "-o", f"{folder}/again.json")
    for stack in stacks(Trace(f"{folder}/again.json"), "leaf")[:-1]:
        equal(stack[:4], CHAIN, "who called leaf")


@case
def with_every_flag(folder):
    """The programs load with all that they can do, and the largest events fit."""
    trace = record(folder, workload("callers"), "--stacks=127", "--shapes=all", "--inputs=values",
                   "--sequence", "--flops", "--counters", "page-faults,task-clock,cpu-clock", "-e",
                   "callers:leaf", "-e", "callers:outer")
    equal([s[:4] for s in stacks(trace, "leaf")[:-1]], [CHAIN] * CALLS, "who called leaf")
    for e in trace.spans:
        if e["name"] == "outer":
            check(e["args"].keys() >= {"task-clock", "page-faults"}, "counters", e)


@case
def same_output(folder):
    program = workload("callers")
    plain = run([program, CALLS]).stdout
    done = xsptrace(*EXTRA, "-q", "--stacks", "-e", "callers:*", "-o", f"{folder}/t.json", "--", program,
                    CALLS)
    equal(done.stdout, plain, "output of the traced program")


if __name__ == "__main__":
    main()
