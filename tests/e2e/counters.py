#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--counters against the kernel's own figures for the threads, read by the program (tests/workloads/counted.c).
Hardware counters are read in the same way as task-clock; where the machine has none, they are left
out, and that is said."""
import collections
import os
import statistics

from harness import EXTRA, USAGE, Trace, case, check, equal, main, run, workload, xsptrace

CALLS = 4
PAGES = 64
FUNCTIONS = ("faults", "sleeps", "travels", "burns")


def record(folder, counters, *options):
    functions = [o for name in FUNCTIONS for o in ("-e", f"counted:{name}")]
    done = xsptrace(*EXTRA, "--counters", counters, *options, *functions, "-o", f"{folder}/t.json",
                    "--", workload("counted"), f"{folder}/truth", CALLS)
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    trace.check_nesting()
    return trace, done.stderr


def told(folder):
    """{(thread, function): [(minor, major, switches, ns)...]} in order."""
    rows = collections.defaultdict(list)
    with open(f"{folder}/truth", encoding="ascii") as f:
        for line in f:
            tid, name, *numbers = line.split()
            rows[int(tid), name].append(tuple(map(int, numbers)))
    return rows


def seen(trace):
    rows = collections.defaultdict(list)
    for e in sorted(trace.spans, key=lambda e: e["ts"]):
        rows[e["tid"], e["name"]].append(e["args"])
    return rows


@case
def as_the_kernel_tells_the_program(folder):
    trace, _ = record(folder, "minor-faults,major-faults,page-faults,context-switches,task-clock")
    spans, truth = seen(trace), told(folder)
    equal(len({tid for tid, _ in truth}), 2, "threads")
    for key, rows in truth.items():
        equal(len(spans[key]), CALLS, f"spans of {key}")
        # never more than the program's own readings around the call tell; what is between those and the
        # probes may fault, or be held up by others or by a hypervisor: in one call, hardly in most
        for number, (name, most) in enumerate((("minor-faults", 3), ("major-faults", 1), ("context-switches", 2),
                                               ("task-clock", 300_000))):
            beside = [row[number] - args[name] for args, row in zip(spans[key], rows)]
            check(min(beside) >= 0, f"{key} {name}: more than the program's own", beside, spans[key])
            check(statistics.median(beside) <= most, f"{key} {name}: {beside} are missing", rows)
        for args in spans[key]:
            equal(args["page-faults"], args["minor-faults"] + args["major-faults"], "page-faults")
        if key[1] == "faults":
            check(all(PAGES <= a["minor-faults"] < PAGES + 8 for a in spans[key]), "faults", spans[key])
        if key[1] == "sleeps":
            check(all(a["context-switches"] >= 3 for a in spans[key]), "sleeps", spans[key])
        if key[1] == "burns":
            check(statistics.median(a["task-clock"] for a in spans[key]) >= 4_900_000, "burns", spans[key])


@case
def across_cpus(folder):
    """A span that moves to another CPU and back has its own counts, no other thread's."""
    if os.cpu_count() < 2:
        return
    trace, _ = record(folder, "cpu-migrations,task-clock,context-switches")
    truth = told(folder)
    for key, spans in seen(trace).items():
        if key[1] != "travels":
            continue
        for args, row in zip(spans, truth[key]):
            check(args["cpu-migrations"] >= 2, "migrations", args)
            check(args["task-clock"] >= 1_950_000 and args["task-clock"] <= row[3],
                  "task-clock across CPUs", args, row)


@case
def what_the_machine_cannot_count(folder):
    """Left out with one line; the others are there. On a machine that has it, it is there too."""
    names = ["cycles", "instructions", "branch-misses:u"]
    has = {n: "not supported" not in run(["perf", "stat", "-x,", "-e", n, "true"]).stderr
           for n in names} if os.path.exists("/usr/bin/perf") else {}
    trace, said = record(folder, ",".join(names + ["page-faults"]))
    for spans in seen(trace).values():
        for args in spans:
            check("page-faults" in args, "page-faults are missing", args)
            for name in names:
                if name in has:
                    equal(name in args, has[name], f"{name} in {args}")
                elif name in args:
                    check(args[name] > 0, f"{name} is 0", args)
                equal(name not in args, f"{name} is left out" in said, f"message on {name}")


@case
def bad_lists(folder):
    for wrong, word in (("cykles", "cykles"), ("", "counter"), ("page-faults:u", ":u"),
                        (",".join(["faults"] * 9), "eight")):
        done = xsptrace("--counters", wrong, "--", "true", status=USAGE)
        equal(len(done.stderr.splitlines()), 1, "lines")
        check(word in done.stderr, "the message does not say what is wrong", done.stderr)


if __name__ == "__main__":
    main()
