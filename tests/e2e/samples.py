#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--sample against what each thread of tests/workloads/samples.c counts on its own CPU clock; --profile."""
import collections
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

from harness import (EXTRA, NO_MATCH, USAGE, Recording, Skip, Trace, alive, broker_of, case, check, equal, main,
                     record_attached, run, start, start_ready, wait_for, workload, xsptrace)

DEVIATIONS = 4.5  # by chance one recording in a hundred thousand is farther off


def stacks_of(path):
    """{(comm, frame, ...): ns}"""
    found = collections.Counter()
    with open(path, encoding="utf-8") as f:
        for line in f:
            stack, _, ns = line.rpartition(" ")
            found[tuple(stack.split(";"))] += int(ns)
    return found


def holding(stacks, frame):
    return sum(ns for stack, ns in stacks.items() if frame in stack)


def shares_are(got, wanted, samples):
    """Of each part of `wanted` (ns of CPU time), within sampling error."""
    whole = sum(wanted.values())
    for name, ns in wanted.items():
        share = ns / whole
        error = DEVIATIONS * math.sqrt(share * (1 - share) / samples)
        check(abs(got[name] / sum(got.values()) - share) <= error,
              f"share of {name}: {got[name] / sum(got.values()):.3f}, {share:.3f} +- {error:.3f} expected", got)


def samples_in(trace):
    return [e for e in trace.json["traceEvents"] if e.get("cat") == "sample"]


def spinning(*options):
    child = start_ready([workload("samples"), "--wait", "--seconds", 60, *options])
    child.send_signal(signal.SIGUSR1)
    return child


@case
def shares_as_the_program_counts_them(folder):
    trace, truth = record_attached(folder, [workload("samples"), "--seconds", 1.5], "--sample=499", "-o",
                                   f"{folder}/s.folded", "-o", f"{folder}/s.perf", "-o", f"{folder}/s.svg")
    trace.check_nothing_lost()
    stacks, taken = stacks_of(f"{folder}/s.folded"), samples_in(trace)
    got = {name: holding(stacks, name) for name in ("samples_a", "samples_b", "samples_c")}
    got["samples_reads"] = sum(stacks.values()) - sum(got.values())
    shares_are(got, truth["cpu_ns"], len(taken))
    kernel = sum(ns for stack, ns in stacks.items()
                 if stack[-1] == "[kernel] read" and stack[-4:-2] == ("samples_round", "samples_reads"))
    check(kernel > 0.8 * got["samples_reads"], "time in the kernel", kernel, stacks)

    cpu = sum(truth["cpu_ns"].values())
    check(0.8 * cpu < sum(stacks.values()) < 1.1 * cpu, "time on CPUs", sum(stacks.values()), cpu)
    equal(sum(e["args"]["weight (ns)"] for e in taken), sum(stacks.values()), "weights in the trace")
    for stack in stacks:
        if stack[-1] == "samples_b":
            equal(stack[-3:-1], ("spin", "samples_round"), "callers")
    with open(f"{folder}/s.perf", encoding="utf-8") as f:
        equal(len(re.findall(r"^\S.* cpu-clock: $", f.read(), re.M)), len(taken), "samples in .perf")
    with open(f"{folder}/s.svg", encoding="utf-8") as f:
        check(re.search(r"by samples \((cpu-clock|cycles), 499 a second", f.read()), "head of the graph")


@case
def spans_are_frames_of_samples(folder):
    record_attached(folder, [workload("samples"), "--seconds", 1], "--sample=499", "-e", "samples:samples_round",
                    "-e", "samples:samples_c", "-o", f"{folder}/s.folded", "-o", f"{folder}/s.xspt")
    stacks = stacks_of(f"{folder}/s.folded")
    # what had begun before is no span: its frames are those of the stack
    whole = sum(stacks.values())
    check(stacks[("spinner", "samples_round", "samples_c")] > 0.3 * whole, "both are spans", stacks)
    check(stacks[("spinner", "samples_round", "samples_b")] > 0.1 * whole, "one is", stacks)
    check(not any(len(s) > len(set(s)) for s in stacks), "a function is its own caller", stacks)

    xsptrace("export", "--weight", "samples", f"{folder}/s.xspt", "-o", f"{folder}/samples.folded")
    equal(stacks_of(f"{folder}/samples.folded"), stacks, "samples that were asked for")
    xsptrace("export", "--weight", "wall", f"{folder}/s.xspt", "-o", f"{folder}/wall.folded")
    equal({frame for stack in stacks_of(f"{folder}/wall.folded") for frame in stack},
          {"spinner", "samples_round", "samples_c"}, "spans that were asked for")
    xsptrace("-q", "-e", "libc.so.6:getppid", "-o", f"{folder}/without.xspt", "--", "true")
    done = xsptrace("export", "--weight", "samples", f"{folder}/without.xspt", "-o", f"{folder}/no.folded", status=2)
    check("--sample records it" in done.stderr, "does not say what records them", done.stderr)


@case
def a_table_that_says_how_sure_it_is(folder):
    child = spinning()
    out = xsptrace("-p", child.pid, "--sample=199", "-d", 1, "-o", f"{folder}/s.folded").stdout
    rows = re.findall(r"^\s*(\d+)\s+\S+ \S+\s+([\d.]+) %\s+([\d.]+)  (.+)$", out, re.M)
    names = [r[3] for r in rows]
    check(names[0] == "samples_c (samples)" and "[kernel] read (libc.so.6)" in names, "rows", out)
    samples = sum(int(r[0]) for r in rows)
    for count, _, error, name in rows:
        share = int(count) / samples
        check(abs(float(error) - 196 * math.sqrt(share * (1 - share) / samples)) < 0.02, f"uncertainty of {name}", out)
    check(re.search(r"samples: \d+, of .* in the kernel; 199 a second by (cpu-clock|cycles)", out), "sums", out)
    check("nothing was lost" in out, "losses", out)
    child.kill()


@case
def the_same_for_programs(folder):
    _, truth = record_attached(folder, [workload("samples"), "--seconds", 1], "--sample=499", "-o", f"{folder}/s.xspt",
                               "-o", f"{folder}/s.folded")
    samples = json.loads(xsptrace("export", f"{folder}/s.xspt", "--summary", "json").stdout)["samples"]
    stacks, functions = stacks_of(f"{folder}/s.folded"), samples["functions"]
    equal(sum(f["cpu_ns"] for f in functions), sum(stacks.values()), "time of all functions")
    equal((sum(f["samples"] for f in functions), samples["hz"]), (samples["samples"], 499), "samples")
    got = {name: sum(f["cpu_ns"] for f in functions if f["name"] == name) for name in truth["cpu_ns"]}
    got["samples_reads"] = samples["cpu_ns"] - sum(got[name] for name in got if name != "samples_reads")
    shares_are(got, truth["cpu_ns"], samples["samples"])


@case
def stacks_that_are_deeper_than_what_is_read(folder):
    """A function whose variables take 16 KiB: said as what it is, in the summary and in its stacks."""
    out = xsptrace("--sample=499", "-o", f"{folder}/b.folded", "--", workload("samples"), "--seconds", 1, "BIG").stdout
    check(re.search(r"go on beyond the 8 KiB that are read of them: (9\d|100)", out), "summary", out)
    stacks = stacks_of(f"{folder}/b.folded")
    big = {stack: ns for stack, ns in stacks.items() if "samples_big" in stack}
    check(big and all(s[1] == "[stack beyond what is read of it]" for s in big), "stacks", *stacks.items())


@case
def only_the_threads_that_were_asked_for(folder):
    child = spinning()
    time.sleep(0.1)
    tids = sorted(int(t) for t in os.listdir(f"/proc/{child.pid}/task"))
    xsptrace("-p", child.pid, "-t", tids[1], "--sample=499", "-d", 0.5, "-o", f"{folder}/t.json")
    equal({e["tid"] for e in samples_in(Trace(f"{folder}/t.json"))}, {tids[1]}, "threads")
    xsptrace("-p", child.pid, "--comm", "nobody", "--sample=499", "-d", 0.5, "-o", f"{folder}/n.json")
    equal(samples_in(Trace(f"{folder}/n.json")), [], "of a name that none has")
    child.kill()


@case
def callers_of_what_a_signal_interrupted(folder):
    """It stands at its instruction, not behind a call: rules of the one before are others where a register was pushed."""
    record_attached(folder, [workload("samples"), "--seconds", 1.5, "--threads", 1, "SIGNALS"], "--sample=499", "-o",
                    f"{folder}/s.folded")
    stacks = {stack: ns for stack, ns in stacks_of(f"{folder}/s.folded").items() if "samples_handler" in stack}
    whole, found = sum(stacks.values()), holding(stacks, "interrupted") + holding(stacks, "main")
    check(whole > 50e6 and found > 0.98 * whole, f"{found} of {whole} ns with the callers", *stacks.items())


@case
def a_target_that_leaves_in_the_middle(folder):
    child = start_ready([workload("samples"), "--wait", "LEAVE"])
    with Recording(folder, "-p", child.pid, "--profile", "-o", f"{folder}/l.folded") as recording:
        child.send_signal(signal.SIGUSR1)
        child.wait()
        recording.wait(seconds=30)
    stacks = stacks_of(f"{folder}/l.folded")
    check(holding(stacks, "samples_c") > 0, "functions have names", stacks)


@case
def a_program_that_becomes_another(folder):
    out = f"{folder}/x.folded"
    xsptrace(*EXTRA, "--sample=499", "-o", out, "--", "/bin/sh", "-c",
             f"exec {workload('samples')} --seconds 0.7 --out /dev/null")
    check(holding(stacks_of(out), "samples_c") > 0, "functions of what was execed", stacks_of(out))


@case
def profile_attaches_nothing(folder):
    """Not with the flag, and not where no provider finds anything: a bare -p."""
    child = spinning()
    with open(f"/proc/{child.pid}/maps", encoding="ascii") as f:
        before = [line for line in f if "[uprobes]" in line]
    equal(before, [], "nobody was here before")
    for options in (["--profile"], []):
        done = xsptrace(*options, "-p", child.pid, "-d", 0.7, "-o", f"{folder}/p.folded", "-o", f"{folder}/p.json")
        check("nothing" in done.stderr and "attached to code" in done.stderr, "what it says", done.stderr)
        check(("so this is --profile" in done.stderr) == (not options), "why", done.stderr)
        trace = Trace(f"{folder}/p.json")
        equal(trace.spans, [], "spans")
        check(samples_in(trace) and trace.json["xsptrace_threads"], "samples and waits", done.stdout)
        with open(f"/proc/{child.pid}/maps", encoding="ascii") as f:
            equal([line for line in f if "[uprobes]" in line], [], "the kernel's page for breakpoints")
    for wrong in (["--profile", "-e", "x"], ["--sample=0"], ["--sample=x"]):
        xsptrace("-p", child.pid, *wrong, status=USAGE)
    xsptrace("-p", child.pid, "-e", "samples:nothing_*", status=NO_MATCH)
    child.kill()


@case
def nothing_is_left_of_a_killed_recorder(folder):
    def events(pid):
        return [fd for fd in os.listdir(f"/proc/{pid}/fd")
                if "perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}")]

    child = spinning()
    with Recording(folder, "-p", child.pid, "--profile", "-o", f"{folder}/k.folded") as recording:
        broker = broker_of(recording.process.pid)
        check(events(broker), "the broker holds them")
        recording.process.kill()
        recording.process.wait()
        wait_for(lambda: not alive(broker), 5, "the broker's end")
    child.kill()


@case
def lines_of_python_call_native_functions(folder):
    """Operators of PyTorch as well, where they are recorded."""
    script = f"{folder}/train.py"
    with open(script, "w", encoding="utf-8") as f:
        f.write("import os, time\nimport torch\ntorch.set_num_threads(1)\n"
                "def multiplies(a):\n    return torch.mm(a, a)\n"
                "def adds():\n    n = 0\n    for i in range(100000):\n        n += i\n    return n\n"
                "a = torch.rand(300, 300)\nprint('ready', flush=True)\n"
                "while True:\n    multiplies(a)\n    adds()\n")
    if run(["/usr/bin/python3", "-c", "import torch"]).returncode != 0:
        raise Skip("no torch in /usr/bin/python3")
    child = start(["/usr/bin/python3", script], stdout=subprocess.PIPE)
    equal(child.stdout.readline(), b"ready\n", "the script")
    out = xsptrace("-p", child.pid, "--sample=199", "-d", 1, "-o", f"{folder}/t.folded").stdout
    stacks = stacks_of(f"{folder}/t.folded")

    def seen(*frames):
        return sum(ns for stack, ns in stacks.items() if stack[1:1 + len(frames)] == frames)

    whole = sum(stacks.values())
    check(seen("train.py:14 <module>", "train.py:5 multiplies", "aten::mm") > 0.1 * whole, "an operator", stacks)
    check(seen("train.py:15 <module>", "train.py:9 adds") + seen("train.py:15 <module>", "train.py:8 adds")
          > 0.05 * whole, "a loop of Python", stacks)
    check(sum(ns for stack, ns in stacks.items() if "train.py" in stack[1]) > 0.97 * whole, "all have lines", stacks)
    check(re.search(r"train\.py:[89] adds$", out, re.M) and "train.py:5 multiplies" in out, "lines", out)
    child.kill()


if __name__ == "__main__":
    sys.exit(main())
