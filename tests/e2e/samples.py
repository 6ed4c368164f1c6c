#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--sample against what each thread of tests/workloads/samples.c counts on its own CPU clock; --profile."""
import collections
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import (EXTRA, NO_MATCH, OK, USAGE, XSPTRACE, Recording, Skip, Trace, alive, broker_of, case, check, equal,
                     finish, json_report, main, own_pages_of_code, record_attached, run, start, start_ready, wait_for, workload, xsptrace)

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
    users = collections.Counter()
    for stack, ns in stacks.items():
        users[tuple(frame for frame in stack if not frame.endswith("_[k]"))] += ns
    kernel = collections.Counter()  # by system call; the clock of a CPU is asked by one as well
    for stack, ns in users.items():
        if "samples_reads" in stack and stack[-1].startswith("[kernel] "):
            kernel[stack[-1]] += ns
    check(sum(kernel.values()) > 0.8 * got["samples_reads"], "time in the kernel", kernel, stacks)
    check(kernel["[kernel] read"] > 0.65 * got["samples_reads"], "time in read", kernel, stacks)

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
    # the kernel's part depends on the machine
    whole = sum(ns for stack, ns in stacks.items() if not any(frame.startswith("[kernel]") for frame in stack))
    check(stacks[("spinner", "samples_round", "samples_c")] > 0.3 * whole, "both are spans", stacks)
    check(stacks[("spinner", "samples_round", "samples_b")] > 0.1 * whole, "one is", stacks)
    own = [[frame for frame in stack if not frame.endswith("_[k]")] for stack in stacks]  # the kernel's may be
    check(not any(len(s) > len(set(s)) for s in own), "a function is its own caller", stacks)

    xsptrace("export", "--weight", "samples", f"{folder}/s.xspt", "-o", f"{folder}/samples.folded")
    equal(stacks_of(f"{folder}/samples.folded"), stacks, "samples that were asked for")
    xsptrace("export", "--weight", "wall", f"{folder}/s.xspt", "-o", f"{folder}/wall.folded")
    equal({frame for stack in stacks_of(f"{folder}/wall.folded") for frame in stack},
          {"spinner", "samples_round", "samples_c"}, "spans that were asked for")
    xsptrace("-q", "--sample=off", "-e", "libc.so.6:getppid", "-o", f"{folder}/without.xspt", "--",
             sys.executable, "-c", "")
    done = xsptrace("export", "--weight", "samples", f"{folder}/without.xspt", "-o", f"{folder}/no.folded", status=2)
    check("--sample records it" in done.stderr, "does not say what records them", done.stderr)


@case
def split_code_of_a_file(folder):
    """A file whose code is mapped in two places: functions of the second one have their names, callers and shares."""
    done = xsptrace("-q", "--sample=499", "-o", f"{folder}/s.folded", "--", workload("segments"))
    truth, stacks = json.loads(done.stdout.splitlines()[0]), stacks_of(f"{folder}/s.folded")
    check(not any("[unknown]" in stack for stack in stacks), "a function without a name", stacks)
    whole = sum(stacks.values())
    for name, ns in truth.items():
        share = sum(got for stack, got in stacks.items() if "main" in stack and name in stack) / whole
        check(abs(share - ns / sum(truth.values())) < 0.12, name, share, truth, stacks)


@case
def functions_of_the_kernel(folder):
    """In their order, under the system call that they are of; their addresses stay with the privileged side."""
    record_attached(folder, [workload("samples"), "--seconds", 1], "--sample=499", "-o", f"{folder}/k.folded", "-o",
                    f"{folder}/k.xspt")
    reads = {stack: ns for stack, ns in stacks_of(f"{folder}/k.folded").items() if "[kernel] read" in stack}
    named = {stack: ns for stack, ns in reads.items() if any(re.match(r"(ksys|vfs)_read_\[k\]$", f) for f in stack)}
    check(sum(named.values()) > 0.5 * sum(reads.values()), "functions that each read goes through", *reads.items())
    for stack in named:
        below = stack[stack.index("[kernel] read") + 1:]
        check(all(f.endswith("_[k]") for f in below) and below[0].startswith(("entry_", "el0")), "their order", stack)


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
        ends = []
        # Wilson's interval: its ends are the shares from which this one is 1.96 deviations off
        for sign in (-1, 1):
            square = 1.96 ** 2 / samples
            root = math.sqrt(share * (1 - share) * square + square ** 2 / 4)
            ends.append(abs((share + square / 2 + sign * root) / (1 + square) - share))
        check(abs(float(error) - 100 * max(ends)) < 0.02, f"uncertainty of {name}", out)
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
    beyond = sum(ns for stack, ns in big.items() if stack[1] == "[stack beyond what is read of it]")
    # at its first instructions it does not have its variables yet, and its callers are there
    check(beyond > 0.98 * sum(big.values()), "stacks", *stacks.items())


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
    """It is at its own instruction, not after a call: after a push the rules of the instruction before differ."""
    record_attached(folder, [workload("samples"), "--seconds", 1.5, "--threads", 1, "SIGNALS"], "--sample=499", "-o",
                    f"{folder}/s.folded")
    stacks = {stack: ns for stack, ns in stacks_of(f"{folder}/s.folded").items() if "samples_handler" in stack}
    whole, found = sum(stacks.values()), holding(stacks, "interrupted") + holding(stacks, "main")
    check(whole > 20e6 and found > 0.98 * whole, f"{found} of {whole} ns with the callers", *stacks.items())


@case
def a_target_that_leaves_in_the_middle(folder):
    child = start_ready([workload("samples"), "--wait", "LEAVE"])
    with Recording(folder, "-p", child.pid, "--profile", "--weight", "samples", "-o", f"{folder}/l.folded") as recording:
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


def recorded(*arguments, status=OK):
    """As a user would: nothing is declined but what the arguments do (harness.py, AS_ASKED)."""
    done = run([XSPTRACE, *arguments])
    equal(done.returncode, status, f"status with {arguments}: {done.stderr}")
    return done


@case
def profile_declined_in_part(folder):
    """With --profile, and when it is the default; a recording without both fails before anything is loaded."""
    child = spinning()
    for profile in (["--profile"], []):
        for options, waits, samples in ((["--waits=off"], "off", " 99"), (["--sample=off"], "10000", "off"),
                                        (["--waits=off", "--sample=499"], "off", " 499"))[:3 if profile else 2]:
            done = run([XSPTRACE, *profile, *options, "-p", child.pid, "-d", 0.3, "-o", f"{folder}/d.xspt"])
            if not profile and "changes threads" in done.stderr:
                continue  # a busy machine: waits are no default there
            equal(done.returncode, OK, f"status with {profile} {options}: {done.stderr}")
            info = dict(re.findall(r"^(waits|samples) +(.*)$", xsptrace("info", f"{folder}/d.xspt").stdout, re.M))
            check(info["waits"] == waits and info["samples"].endswith(samples), "what is on", profile, options, info)
        done = recorded(*profile, "-p", child.pid, "--waits=off", "--sample=off", "-o", f"{folder}/n.xspt", status=USAGE)
        check(re.fullmatch(r"xsptrace: .*leave out .*\n", done.stderr), "one line that says what to do", done.stderr)
        check(not os.path.exists(f"{folder}/n.xspt"), "something was written")
    child.kill()


@case
def profile_without_python(folder):
    child = start(["/usr/bin/python3", "-c", "def spins():\n while True: pass\nprint('on', flush=True)\nspins()"], stdout=subprocess.PIPE)
    child.stdout.readline()
    for options, there in (([], True), (["--python=off"], False)):
        recorded("--profile", "--waits=off", *options, "-p", child.pid, "-d", 0.5, "-o", f"{folder}/p.folded")
        stacks = stacks_of(f"{folder}/p.folded")
        equal(any("spins" in frame for stack in stacks for frame in stack), there, f"Python with {options}: {stacks}")
        check(stacks, "samples with", options)
    child.kill()


@case
def profile_dry_run(folder):
    child = start_ready([workload("samples"), "--wait", "--seconds", 60])
    for options, why in ((["--profile"], False), ([], True)):
        done = recorded("--dry-run", *options, "-p", child.pid)
        check("would record 99 samples a second of each CPU; when threads run" in done.stdout, "what", done.stdout)
        check("nothing is attached to code" in done.stdout, "to what", done.stdout)
        equal("so this would be --profile" in done.stderr, why, f"why: {done.stderr}")
    done = recorded("--dry-run", "--profile", "--waits=off", "--sample=500", "-p", child.pid)
    check("would record 500 samples a second of each CPU; resident" in done.stdout, "what is left", done.stdout)
    recorded("--dry-run", "--waits=off", "--sample=off", "-p", child.pid, status=USAGE)
    recorded("--dry-run", "-p", child.pid, "-e", "samples:nothing_*", status=NO_MATCH)
    child.kill()


@case
def probes_only_where_functions_are(folder):
    """Where exceptions and longjmps land helps spans only: without any function nothing is attached to the libraries."""
    child = spinning()
    equal(own_pages_of_code(child.pid), 0, "before")
    for options, attached in ((["--sample"], False), (["--waits"], False), (["--sample", "-e", "samples:*"], True)):
        tracer = start([XSPTRACE, *options, "-p", child.pid, "-d", 30, "-o", f"{folder}/n.xspt"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for(lambda t=tracer: re.search(rb"tracing|profiling", t.stderr.readline()), 30, "the recording's beginning")
        equal(own_pages_of_code(child.pid) > 0, attached, f"with {options}")
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=30)
        info = xsptrace("info", f"{folder}/n.xspt").stdout
        equal("not known of the target's threads (no probes" in info, not attached, f"what is said of their cost\n{info}")
    child.kill()


@case
def profile_attaches_nothing(folder):
    """Not with the flag, and not where no provider finds anything: a bare -p."""
    child = spinning()
    with open(f"/proc/{child.pid}/maps", encoding="ascii") as f:
        before = [line for line in f if "[uprobes]" in line]
    equal(before, [], "nobody was here before")
    for options in (["--profile"], []):
        done = recorded(*options, "--max-overhead", 5, "-p", child.pid, "-d", 0.1, "-o", f"{folder}/b.xspt")
        check("whatever they cost" in done.stderr, "that there is no brake", done.stderr)
        done = recorded(*options, "--weight", "samples", "-p", child.pid, "-d", 0.7, "-o", f"{folder}/p.folded", "-o", f"{folder}/p.json")
        check("nothing" in done.stderr and "attached to code" in done.stderr, "what it says", done.stderr)
        check("profiling: samples and waits" in done.stderr, "what is recorded", done.stderr)
        check(("traces functions" in done.stderr) == (not options), "what else there is", done.stderr)
        trace = Trace(f"{folder}/p.json")
        equal(trace.spans, [], "spans")
        done = recorded(*options, "-p", child.pid, "-d", 0.3, "-o", f"{folder}/p.speedscope.json", "-o", f"{folder}/q.json")
        equal(re.findall(r"(\S+) is empty: it holds spans", done.stderr), [f"{folder}/p.speedscope.json"], "what has no place for samples")
        check(samples_in(trace) and trace.json["xsptrace_threads"], "samples and waits", done.stdout)
        with open(f"/proc/{child.pid}/maps", encoding="ascii") as f:
            equal([line for line in f if "[uprobes]" in line], [], "the kernel's page for breakpoints")
    for wrong in (["--profile", "-e", "x"], ["--sample=0"], ["--sample=x"]):
        xsptrace("-p", child.pid, *wrong, status=USAGE)
    xsptrace("-p", child.pid, "-e", "samples:nothing_*", status=NO_MATCH)
    child.kill()


@case
def launched_programs_that_no_provider_knows(folder):
    """They have samples and waits, as with a bare -p; stacks are of samples."""
    done = recorded("-o", f"{folder}/l.folded", "--", workload("orders"), 1.5)
    check("no call was seen" not in done.stderr, "nothing was to be seen", done.stderr)
    stacks = stacks_of(f"{folder}/l.folded")
    # 15 to 60 times as much where the machine is quiet; beside others a few samples stand for long waits for a CPU
    check(holding(stacks, "is_valid") > holding(stacks, "cost"), "is_valid takes most of it", stacks)


@case
def nothing_is_left_of_a_killed_recorder(folder):
    def events(pid):
        return [fd for fd in os.listdir(f"/proc/{pid}/fd")
                if "perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}")]

    child = spinning()
    with Recording(folder, "-p", child.pid, "--profile", "--weight", "samples", "-o", f"{folder}/k.folded") as recording:
        broker = broker_of(recording.process.pid)
        check(events(broker), "the broker holds them")
        recording.process.kill()
        recording.process.wait()
        wait_for(lambda: not alive(broker), 5, "the broker's end")
    child.kill()


# As much of an operator as of a loop, on whatever machine: the loop's length is found out first. Each turn is of another length, as
# samples come in step with what takes always the same. What each of them took it knows by its own CPU clock.
TRAIN = """
import json, random, sys, time
import torch
torch.set_num_threads(1)
def multiplies(a):
    return torch.mm(a, a)
def adds(count):
    n = 0
    for i in range(count):
        n += i
    return n
def timed(function, argument):
    begin = time.thread_time_ns()
    function(argument)
    return time.thread_time_ns() - begin
a, count = torch.rand(300, 300), 1000
for i in range(20): multiplies(a)
operator = min(timed(multiplies, a) for i in range(20))
while timed(adds, count) < operator: count += count // 4
print("ready", flush=True)
sys.stdin.readline()
spent, end = {"multiplies": 0, "adds": 0}, time.thread_time_ns() + 1_000_000_000
while time.thread_time_ns() < end:
    spent["multiplies"] += timed(multiplies, a)
    spent["adds"] += timed(adds, random.randrange(2 * count))
print(json.dumps(spent), flush=True)
sys.stdin.readline()
"""


@case
def lines_of_python_call_native_functions(folder):
    """Operators of PyTorch as well, where they are recorded."""
    script, hz = f"{folder}/train.py", 499
    with open(script, "w", encoding="utf-8") as f:
        f.write(TRAIN)
    child = start(["/usr/bin/python3", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdout.readline() != b"ready\n":
        raise Skip("no torch in /usr/bin/python3")
    with Recording(folder, "-p", child.pid, f"--sample={hz}", "-o", f"{folder}/t.folded", table=f"{folder}/table") as recording:
        child.stdin.write(b"\n")
        child.stdin.flush()
        spent = json.loads(child.stdout.readline())
        recording.stop()
        recording.wait()
    stacks = stacks_of(f"{folder}/t.folded")
    lines = TRAIN.split("\n")
    called = f"train.py:{lines.index('    function(argument)') + 1} timed"

    def seen(name, inner=""):
        caller = [i for i, text in enumerate(lines, 1) if f"timed({name}, " in text][-1]
        wanted = re.compile(rf"train\.py:{caller} <module>;{called};train\.py:\d+ {name}(;{inner}|$)")
        return sum(ns for stack, ns in stacks.items() if wanted.match(";".join(stack[1:])))

    got = {"multiplies": seen("multiplies", ".*"), "adds": seen("adds", ".*")}
    shares_are(got, spent, sum(spent.values()) * hz * 1e-9)
    check(seen("multiplies", "aten::mm(;|$)") > 0.9 * got["multiplies"], "an operator", stacks)
    check(sum(ns for stack, ns in stacks.items() if "train.py" in stack[1]) > 0.97 * sum(stacks.values()), "all have lines", stacks)
    with open(f"{folder}/table", encoding="utf-8") as f:
        out = f.read()
    # of an operator the time is that of native functions, and its line has what the interpreter does around it: little
    loop = lines.index("def adds(count):") + 2
    check(re.search(rf"train\.py:({loop + 1}|{loop + 2}) adds$", out, re.M), "lines", out)
    child.kill()


# Half of its time it touches pages that it has just got. What each time took it knows by its own CPU clock, whose price is taken
# off with that of touching them a second time. (What getrusage() has for the kernel's time is divided by ticks, which on some
# machines come hardly ever while the kernel works on a page fault.)
STORM = """
import mmap, time
pages = 1024
block = b"x" * pages
def fills():
    memory = mmap.mmap(-1, 4096 * pages, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    begin = time.thread_time_ns()
    memory[::4096] = block
    first = time.thread_time_ns()
    memory[::4096] = block
    return first - begin - (time.thread_time_ns() - first)
def computes(ns):
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        sum(range(2000))
spent, start = 0, time.thread_time_ns()
while time.thread_time_ns() < start + 1_000_000_000:
    took = fills()
    spent += took
    computes(took)
print("spent", spent, time.thread_time_ns() - start)
"""


@case
def storm_of_page_faults(folder):
    """Memory that is had anew each time: named by function, line and thread, with the share that the thread's own clock has of
    them. (What a hypervisor does at them is the program's own: perf sees that, too.)"""
    script = f"{folder}/storm.py"
    with open(script, "w", encoding="ascii") as f:
        f.write(STORM)
    hz = 499
    said = xsptrace("--profile", "--weight", "samples", f"--sample={hz}", "-o", f"{folder}/s.folded", "-o", f"{folder}/s.xspt", "--", "/usr/bin/python3",
                    script).stdout
    spent, whole = map(int, re.search(r"^spent (\d+) (\d+)$", said, re.M).groups())
    line = re.search(r"^page faults: .* on CPUs, ([\d.]+) % of it all; in (.*); from (.*); thread (.*)$", said, re.M)
    check(line, "they are named", said)
    share = spent / whole
    # on its way back from a page fault the kernel cannot be interrupted: a sample due then counts for the program
    error = DEVIATIONS * math.sqrt(share * (1 - share) / (hz * whole * 1e-9)) + 0.2 * share
    check(abs(float(line[1]) / 100 - share) < error, f"{100 * share:.1f} +- {100 * error:.1f} % expected", said)
    place = f"storm.py:{STORM.split(chr(10)).index('    memory[::4096] = block') + 1} fills"
    check(place in line[3] and "python3" in line[4], "line and thread", line[0])
    found = [f for f in json_report("analyze", f"{folder}/s.xspt")["findings"] if f["rule"] == "page-faults"]
    equal([f["subject"] for f in found], [place], "what analyze finds")
    of_cpu = found[0]["values"]["total_ns"] / whole
    check(abs(of_cpu - share) < error, f"{share:.2f} +- {error:.2f} expected", found)


# ---- names of code that a compiler in the process makes: its perf map ----

# Three functions of machine code, each a loop of so many turns; known by their addresses.
SCRIPT = """
import ctypes, json, mmap, os, sys, time
code = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
base = ctypes.addressof(ctypes.c_char.from_buffer(code))
spin = bytes.fromhex("554889e589f9ffc975fc5dc3")  # push %rbp; mov %rsp,%rbp; mov %edi,%ecx; 1: dec %ecx; jnz 1b; pop; ret
work = {"long": (0, 3000000), "short": (1024, 1000000), "nameless": (4096, 500000)}
functions = {}
for name, (at, _) in work.items():
    code[at:at + len(spin)] = spin
    functions[name] = ctypes.CFUNCTYPE(None, ctypes.c_int)(base + at)
print(f"{base:x}", flush=True)
for line in sys.stdin:
    spent, end = dict.fromkeys(work, 0), time.thread_time() + float(line)
    while time.thread_time() < end:
        for name, (_, turns) in work.items():
            before = time.thread_time_ns()
            functions[name](turns)
            spent[name] += time.thread_time_ns() - before
    print(json.dumps(spent), flush=True)
"""
BEFORE = "{0:x} 100 what was there before\n"
MAP = "{0:x} 400 long one\n{1:x} 400 short one\n"


class Compiled:
    """That program, and its map."""

    def __init__(self):
        self.child = start([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.base = int(self.child.stdout.readline(), 16)
        self.path = f"/tmp/perf-{self.child.pid}.map"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.remove()

    def remove(self):
        if os.path.isdir(self.path):
            os.rmdir(self.path)
        elif os.path.lexists(self.path):
            os.remove(self.path)

    def write(self, text, mode="w"):
        with open(self.path, mode, encoding="latin-1") as f:
            f.write(text.format(self.base, self.base + 1024))

    def ask(self, seconds):
        self.child.stdin.write(f"{seconds}\n")
        self.child.stdin.flush()

    def spent(self):
        return json.loads(self.child.stdout.readline())


def leaves(path):
    found = {}
    for stack, ns in stacks_of(path).items():
        found[stack[-1]] = found.get(stack[-1], 0) + ns
    return found


@case
def compiled_code_by_its_names(folder):
    """The program's options that name its code, if nothing names it."""
    with Compiled() as c:
        c.write(BEFORE + MAP)
        with Recording(folder, "-p", c.child.pid, "--sample=499", "-o", f"{folder}/s.folded") as recording:
            c.ask(1.5)
            spent = c.spent()
            recording.stop()
            recording.wait()
        got = leaves(f"{folder}/s.folded")
        names = {"long": "long one", "short": "short one", "nameless": "[generated code]"}
        taken = sum(spent.values()) * 499e-9
        shares_are({name: got.get(shown, 0) for name, shown in names.items()}, spent, taken)
        check("what was there before" not in got, "the map's last word holds", got)
        said = recording.output()
        check(re.search(r"and no perf map names: \d+\.\d %; start python \(3.12 and later\) with -X perf", said), said)


@case
def compiled_code_that_is_replaced(folder):
    """The time of a sample does not decide which name an address had: outputs have both."""
    with Compiled() as c:
        with Recording(folder, "-p", c.child.pid, "--sample=499", "-o", f"{folder}/s.folded") as recording:
            c.ask(0.5)
            c.spent()
            c.write(MAP)  # comes late
            c.ask(0.5)
            c.spent()
            c.write("{1:x} 400 another one\n", "a")
            c.ask(0.3)
            c.spent()
            recording.stop()
            recording.wait()
        got = leaves(f"{folder}/s.folded")
        check("long one" in got and "another one [earlier: short one]" in got and "short one" not in got, got)


@case
def compiled_names_that_lie(folder):
    """Links, FIFOs, folders, holes, others' files and stale ones: refused; names with escapes are harmless."""
    def record():
        with Recording(folder, "-p", c.child.pid, "--sample=499", "-o", f"{folder}/s.folded") as recording:
            c.ask(0.2)
            c.spent()
            recording.stop()
            said = recording.wait()
        check("\033[31m" not in said, "an escape", said)
        return leaves(f"{folder}/s.folded"), said

    def link():
        with open(f"{folder}/map", "w", encoding="ascii") as f:
            f.write(MAP.format(c.base, c.base + 1024))
        os.symlink(f"{folder}/map", c.path)

    def of_somebody_else():
        c.write(MAP)
        os.chown(c.path, 65534, 65534)

    def stale():
        c.write(MAP)
        os.utime(c.path, (time.time() - 86400, time.time() - 86400))

    refused = [link, lambda: os.mkfifo(c.path), lambda: os.mkdir(c.path), stale]
    if os.geteuid() == 0:
        refused.append(of_somebody_else)
    with Compiled() as c:
        for trap in refused:
            trap()
            got, _ = record()
            check(got.get("[generated code]", 0) > 0 and "long one" not in got, "it was read", got)
            c.remove()
        c.write(MAP + "0 ffffffffffffffff everything\n{0:x} 400 \033[31mred;one\n")
        os.truncate(c.path, 1 << 30)
        got, said = record()
        check(any("[31mred" in name for name in got) and "everything" not in got, got)
        check("perf maps" in said, "that it was not read to its end", said)


@case
def compiled_code_in_dump(_):
    with Compiled() as c:
        c.write(MAP)
        c.ask(20)
        for _ in range(20):
            said = xsptrace("dump", "-p", c.child.pid).stdout
            if re.search(r"^ +long one\+0x[0-9a-f]+ +\[generated code\]$", said, re.M):
                return
        check(False, "it is nearly always there", said)


NODE = """
function heavy(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function light(n) { let s = 1; for (let i = 0; i < n; i++) s = (s * 37 + i) | 0; return s; }
let spent = {heavy: 0, light: 0};
function timed(f, n, name) {
    const before = process.cpuUsage().user; f(n); spent[name] += (process.cpuUsage().user - before) * 1000; }
process.stdin.once("data", seconds => {
    const end = Date.now() + 1000 * seconds;
    while (Date.now() < end) { timed(heavy, 6e6, "heavy"); timed(light, 2e6, "light"); }
    console.log(JSON.stringify(spent));
    process.exit();
});
"""


def shares_of_node(folder, script, *flags):
    """Its functions have the shares of the samples that they have of its time by its own clock, whatever has compiled them."""
    child = start(["node", *flags, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder)
    with Recording(folder, "-p", child.pid, "--sample=499", "-o", f"{folder}/n.folded", "-o", f"{folder}/n.xspt") as recording:
        child.stdin.write("1.5")
        child.stdin.flush()
        spent = json.loads(child.stdout.readline())
        equal(finish(child), 0, "status")
        recording.wait()
    stacks = stacks_of(f"{folder}/n.folded")
    name = os.path.basename(script)
    with open(script, encoding="utf-8") as f:
        lines = f.read().splitlines()
    line = {w: next(i for i, l in enumerate(lines, 1) if f"{w}(n)" in l) for w in spent}
    got = {w: holding(stacks, f"{name}:{line[w]} {w}") for w in spent}
    shares_are(got, spent, sum(got.values()) * 499e-9)
    check(sum(got.values()) > 0.6 * sum(stacks.values()), "of all", stacks)  # node compiles and writes as well
    return stacks


@case
def functions_of_javascript(folder):
    """By what V8 says of itself: interpreted, compiled in a hurry, and well; of a module, and of another thread."""
    if not shutil.which("node"):
        raise Skip("no node")
    script, module, outside = f"{folder}/spin.js", f"{folder}/spin.mjs", f"{folder}/outside.js"
    with open(script, "w", encoding="ascii") as f:
        f.write(NODE)
    with open(module, "w", encoding="utf-8") as f:
        f.write("// \u0142: its source has two bytes a character\n" + NODE)
    for flags in (["--no-opt", "--no-sparkplug"], ["--no-opt", "--always-sparkplug"], ["--max-inlined-bytecode-size=0"]):
        stacks = shares_of_node(folder, script, *flags)
        check(holding(stacks, "[generated code]") < 0.1 * sum(stacks.values()), "code without a name", flags, stacks)
    shares_of_node(folder, module, "--no-opt")
    with open(outside, "w", encoding="ascii") as f:
        f.write("require('worker_threads').isMainThread ? new (require('worker_threads').Worker)(__filename) :\n"
                "(function busy() { for (let i = 0; i < 5e6; i++) JSON.stringify([1]); })()")
    xsptrace("-q", "--sample=199", "-o", f"{folder}/w.folded", "--", "node", outside, timeout=60)
    stacks = stacks_of(f"{folder}/w.folded")
    check(holding(stacks, "outside.js:2 busy") > 0.4 * sum(stacks.values()), "the worker's", stacks)
    said = xsptrace("analyze", f"{folder}/n.xspt").stdout
    check("spin.mjs:3 heavy" in said and "functions of node itself" not in said, "the first screen", said)


if __name__ == "__main__":
    sys.exit(main())
