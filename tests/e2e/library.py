#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""libxsptrace: a program that knows include/xsptrace/trace.h alone reads what the other outputs say."""
import collections
import json
import os
import shutil
import struct
import subprocess
import sys

import shared
from harness import XSPTRACE, Skip, Trace, case, check, equal, main, total, workload, xsptrace

READ_TRACE = os.path.join(os.path.dirname(XSPTRACE), "read_trace")


def read(*arguments, status=0):
    """Lines of read_trace by kind, without their first words."""
    done = subprocess.run([READ_TRACE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=30, check=False, text=True)
    equal(done.returncode, status, f"status of read_trace: {done.stderr}")
    lines = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        kind, *fields = line.split("\t")
        lines[kind].append(fields)
    lines["error"] = done.stderr
    return lines


@case
def spans_and_all_else(folder):
    """Spans, nesting and times are the program's and the JSON's; waits, samples and counters are there."""
    path, facts = shared.capture("demo")
    xsptrace("export", "-q", path, "-o", f"{folder}/t.json")
    trace, told = Trace(f"{folder}/t.json"), read(path)
    calls = collections.Counter(s[9] for s in told["span"])
    for name, count in facts["calls"].items():
        equal(total(calls, name), count, name)
    equal(calls, trace.calls, "names and calls")
    # where several end in one moment, as those that an exception leaves, the JSON has them end ns apart
    returned = collections.Counter((s[9], int(s[3]) - int(s[2])) for s in told["span"] if s[7] == "0")
    shown = collections.Counter((e["name"], round(1000 * e["dur"])) for e in trace.spans)
    check(len(returned) > 100 and returned <= shown, "durations", list((returned - shown).items())[:5])
    by_id = {s[0]: s for s in told["span"]}
    equal(len(by_id), len(told["span"]), "ids")
    for s in told["span"]:
        if s[1] == "0":
            equal(s[6], "0", "depth of what has no parent")
            continue
        parent = by_id[s[1]]
        check(int(parent[2]) <= int(s[2]) and int(s[3]) <= int(parent[3]), "sticks out of its parent", s, parent)
        equal((parent[9], int(parent[6]) + 1), (s[10], int(s[6])), "name and depth of the parent")
    equal({s[8] for s in told["span"]}, {"function", "record_function"}, "providers")
    equal(len(told["wait"]) > 0, True, "waits")
    check(all(int(w[0]) <= int(w[1]) <= int(w[2]) for w in told["wait"]), "waits go back in time")
    check(len(told["sample"]) > 0 and len(told["counter"]) > 0, "no samples, or no memory")
    equal(told["complete"], [["1"]], "complete")
    equal([p[1] for p in told["process"]], ["everything"], "processes")
    equal(sorted({int(s[5]) for s in told["span"]} - {int(t[1]) for t in told["thread"]}), [], "threads of spans")
    equal(len({t[1] for t in told["thread"]}), len(told["thread"]), "each thread once")


@case
def a_part_of_it(folder):
    """from_ns and to_ns are the --from and --to of export."""
    path = shared.capture("demo").path
    whole = read(path)
    start, end, recorded = map(int, whole["window"][0])
    check(0 < recorded <= end - start, "recorded time", recorded)
    middle = (min(int(s[2]) for s in whole["span"]) + max(int(s[3]) for s in whole["span"])) // 2 - start
    xsptrace("export", path, "--to", f"{middle}ns", "-o", f"{folder}/part.json")
    part = collections.Counter(s[9] for s in read(path, 0, middle)["span"])
    equal(part, Trace(f"{folder}/part.json").calls, "calls of the first half")
    check(0 < sum(part.values()) < len(whole["span"]), "it is a part", part)


@case
def what_the_gpu_did(_):
    """Activities of the simulated GPU: as many, and as many bytes, as its driver counted."""
    path, facts = shared.capture("gpu")
    made, told = facts["driver"], collections.defaultdict(list)
    for kind, *rest in read(path)["activity"]:
        told[int(kind)].append(rest)
    equal([len(told[kind]) for kind in range(3)], [made["kernels"], made["memcpys"], made["memsets"]],
          "kernels, copies and sets")
    equal(sum(int(a[4]) for a in told[1]), made["memcpys_bytes"], "bytes")
    check(all(int(a[0]) <= int(a[1]) and a[5] for a in told[0]), "a kernel without a name, or that ends before it begins")


@case
def what_analyze_says(folder):
    """The report of the verb, in each format, of all and of a part."""
    xsptrace("--waits", "--sample", "-o", f"{folder}/t.xspt", "--", workload("faults"), "lock")
    start, end, _ = map(int, read(f"{folder}/t.xspt")["window"][0])
    middle = (end - start) // 2

    def library(*arguments):
        done = subprocess.run([READ_TRACE, f"{folder}/t.xspt", *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=30, check=False, text=True)
        return done.returncode, done.stdout or done.stderr

    for form in ("text", "json", "csv"):
        said = xsptrace("analyze", f"{folder}/t.xspt", "--format", form, "--rows", "all").stdout
        check(len(said) > 1000 and "want_it" in said, "the verb found nothing", said)
        equal(library(form), (0, said), form)
    part = xsptrace("analyze", f"{folder}/t.xspt", "--format", "json", "--to", f"{middle}ns").stdout
    equal(library("json", 0, middle), (0, part), "the first half")
    equal(library("xml"), (1, "Invalid argument\n"), "a format that there is not")


@case
def what_the_program_tells(_):
    """Each number of each thread, in the thread's order."""
    path, facts = shared.capture("demo")
    counted = {tid: {name: [f"{struct.unpack('>d', bytes.fromhex(b))[0]:.0f}" for b in bits] for name, bits in values.items()}
               for tid, values in facts["values"].items()}
    by_thread = collections.defaultdict(lambda: collections.defaultdict(list))
    for _, name, value, tid in read(path)["counter"]:
        if tid != "0":
            by_thread[tid][name].append(value)
    equal(by_thread, counted, "values")


@case
def ended_by_a_callback(folder):
    """What it returns, be it above 0 or below, is what the run returns, at once; and it cannot begin another run of the same trace."""
    with open(f"{folder}/t.json", "w", encoding="ascii") as f:
        json.dump([{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i in range(50)], f)
    equal(len(read(f"{folder}/t.json")["span"]), 50, "spans")
    for code in (7, -7):
        told = read(f"{folder}/t.json", "stop", code)
        equal((len(told["span"]), told["stopped"]), (2, 2 * [[str(code), "stopped by a callback"]]),
              f"a span, what is returned, and why, of each of two runs, for {code}")
    told = read(f"{folder}/t.json", "within", 0)
    equal((len(told["span"]), {w[0] for w in told["within"]}, told["stopped"]), (100, {"-16"}, 2 * [["0", ""]]), "-EBUSY, and the run goes on")


@case
def arguments_that_are_none(folder):
    """Sizes end where a member does, or are those of a later struct, up to 4096; nothing is called that the caller does not know."""
    with open(f"{folder}/t.json", "w", encoding="ascii") as f:
        json.dump([{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i in range(3)], f)
    told = read(f"{folder}/t.json", "misuse")
    # seven and five members of 8 bytes each; further ones are a later version's
    for what, known in ("callbacks", 56), ("part", 40):
        equal(told[what], [[str(size), "0"] for size in [*range(8, known + 1, 8), *range(known + 1, 4097)]], what)
    equal((len(told["span"]), told["old"]), (3, [["0"]]), "spans of an older program's struct")
    equal((told["no-callbacks"], told["no-file"]), ([["-22"]], [["-22"]]), "NULL")


@case
def calls_without_a_duration(folder):
    """Functions of one instruction: nothing is known of their time, and 0 is not what it was."""
    source = "__attribute__((noinline, noclone, naked)) void one(void) { __asm__(\"ret\"); }\nint main(void) { for (int i = 0; i < 5; i++) one(); }\n"
    with open(f"{folder}/one.c", "w", encoding="ascii") as f:
        f.write(source)
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    subprocess.run(["cc", "-O1", "-fcf-protection=none", "-o", f"{folder}/one", f"{folder}/one.c"], check=True)
    xsptrace("--waits", "-e", "one:one", "-e", "one:main", "-o", f"{folder}/t.xspt", "--", f"{folder}/one")
    spans = [(s[9], s[4], s[11]) for s in read(f"{folder}/t.xspt")["span"]]
    equal(sorted(spans)[1:], 5 * [("one", "0", str(2**64 - 1))], "own time, and time on a CPU")
    check(int(spans[-1][2]) < 10**9, "the time of main on a CPU is known", spans)


@case
def what_is_no_capture(folder):
    with open(f"{folder}/no.xspt", "wb") as f:
        f.write(b"nothing of the kind")
    check("capture" in read(f"{folder}/no.xspt", status=1)["error"], "not said")
    check("No such file" in read(f"{folder}/none.xspt", status=1)["error"], "not said")


if __name__ == "__main__":
    sys.exit(main())
