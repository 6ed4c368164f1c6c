#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent and the recorder together, for long and often: a hundred million operators of PyTorch, and whoever of the two is killed at a
hundred moments. The programs count and check themselves."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from agent_calls import active, slots_of
from harness import (LONG, READY, TORCH, XSPTRACE, Recording, broker_of, case, check, equal, finish, main, need_torch, start, wait_for, workload,
                     xsptrace)
from operators_by_agent import AGENT as ALL_RECORDED
from operators_by_agent import AGENT_LIBRARY, QUIET, STORM, a_torch, go, waiting
from proc import COUNTERS, Tool, Witness, random_from_clock, read_counters, signal_to, status, wait_text_clean

TIMES = 100 if LONG else 6
BY_AGENT = r"records [\d,]+ of [\d,]+ operators, without probes"
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)


def summary_of(capture):
    return json.loads(xsptrace("export", capture, "--summary", "json", timeout=2400).stdout)


def wait_said(recording, what):
    wait_for(lambda: re.search(what, recording.output()), 20, f"{what}: {recording.output()}")


# ---- a hundred million ----

CALLS = int(float(os.environ.get("XSP_CALLS", 1e8)))
MANY = """import collections, sys, torch
torch.set_num_threads(1)
matrix = torch.ones(2, 3)
matrix.t()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    matrix.t()
names = collections.Counter(e.name() for e in profile.profiler.kineto_results.events() if e.name().startswith("aten::"))
print(*(f"{k}={n}" for k, n in names.items()), flush=True)
sys.stdin.readline()
made = 0
for _ in range(int(sys.argv[1]) // names.total()):
    matrix.t()
    made += 1
print(made, flush=True)
sys.stdin.readline()
"""


@case(long="a hundred million operators of PyTorch")
def a_hundred_million(folder):
    """Those in the capture, and those that the capture says were lost, are those that were made. Memory of recorder, broker and target
    stays as it is. XSP_CALLS: how many."""
    need_torch()
    target = start([TORCH, "-c", MANY, CALLS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    each = {k: int(n) for k, n in (x.split("=") for x in target.stdout.readline().split())}
    capture, rows = f"{folder}/many.xspt", []
    with Recording(folder, "--inject", "--sample", "--waits", "-p", target.pid, "-o", capture) as recording:
        wait_said(recording, BY_AGENT)
        processes = {"recorder": recording.process.pid, "broker": broker_of(recording.process.pid), "target": target.pid}
        begun = time.monotonic()
        go(target)
        os.set_blocking(target.stdout.fileno(), False)
        while not (made := target.stdout.readline()):
            rows.append({who: int(status(pid)["VmRSS"].split()[0]) for who, pid in processes.items()})
            time.sleep(1)
        seconds = time.monotonic() - begun
        time.sleep(1)  # what is in the rings is read
        recording.stop()
        recording.wait(seconds=300)
    target.stdin.close()
    equal(finish(target), 0, "status")
    summary, made = summary_of(capture), int(made)
    got = {row["name"]: row["calls"] for row in summary["names"] if row["name"] in each}
    losses = summary["losses"]
    expected = made * sum(each.values())
    print(f"  {expected} operators in {seconds:.0f} s: {sum(got.values())} recorded, {losses['lost_entries']} lost; "
          f"{os.path.getsize(capture) >> 20} MiB; {got}")
    for n in range(0, len(rows), max(1, len(rows) // 10)):
        print(f"  {n:6} s", *(f" {who} {kib >> 10} MiB" for who, kib in rows[n].items()))
    equal(sum(got.values()) + losses["lost_entries"], expected, "recorded and lost")
    equal((losses["lost_exits"], losses["lost_other"]), (losses["lost_entries"], 0), "losses")
    for who in processes:
        early, late = (max(r[who] for r in some) for some in (rows[len(rows) // 4:len(rows) // 2], rows[len(rows) // 2:]))
        check(late <= 1.05 * early + 2048, f"memory of the {who} at most, in KiB", early, late)


# ---- the tracer dies ----


def kill_one_of(tool, random):
    """A process of the tool, or the tool itself, by a signal."""
    how, pid = random.choice(SIGNALS), random.choice(tool.processes() or [tool.process.pid])
    what = f"{how.name} to {status(pid).get('Name')}"
    signal_to(pid, how)
    time.sleep(0.2)
    if tool.process.poll() is None:
        tool.process.send_signal(signal.SIGINT)
    tool.wait_gone(what=what)
    return what


def seconds_of(tool, *arguments):
    """How long a recording in peace takes; the agent records in it."""
    begun = time.monotonic()
    tool.start(*arguments)
    equal(finish(tool.process, 120), 0, f"status in peace\n{tool.output()}")
    check(re.search(BY_AGENT, tool.output()), "what was said", tool.output())
    return time.monotonic() - begun


@case
def tracers_killed(folder):
    """While threads call, throw, begin, end, fork, start programs, load and unload: when the tracer is gone, the slots are as they were."""
    tool, random = Tool(folder), random_from_clock()
    agent = shutil.copy(AGENT_LIBRARY, folder)
    target = Witness(folder, "target", [workload("operators"), agent, "witnessed", COUNTERS], stdout=subprocess.DEVNULL)
    arguments = ["--inject", *QUIET, "-d", "0.3", "-p", target.pid, "-o", f"{folder}/out.xspt"]
    whole = seconds_of(tool, *arguments)
    wait_for(lambda: not active(target.pid), 5, "the agent to end")
    for n in range(TIMES):
        tool.start(*arguments)
        moment = random.uniform(0, whole)
        time.sleep(moment)
        what = f"after kill {n}, {kill_one_of(tool, random)} at {moment:.2f} of {whole:.2f} s"
        wait_text_clean([target.pid], 5, what)
        wait_for(lambda: not active(target.pid), 5, f"the agent to end {what}")  # pylint: disable=cell-var-from-loop
        target.check_right(what)
    seconds_of(tool, *arguments)
    calls = {row["name"]: row["calls"] for row in summary_of(f"{folder}/out.xspt")["names"]}
    check(calls.get("at::_ops::small::call", 0) > 0, "the last recording", calls)
    target.check_right("at the end")
    print(f"  {TIMES} tracers killed")


@case(long="a hundred tracers die while they inject")
def injectors_killed(folder):
    """The same of a process that has no agent yet, in which 16 threads call operators, malloc, dlopen and dlclose."""
    tool, random = Tool(folder), random_from_clock()
    shutil.copy(AGENT_LIBRARY, folder)
    library, whole = a_torch(folder, "-z,now"), None
    for n in range(TIMES):
        if n % 4 == 0:
            child = waiting(["/usr/bin/python3", "-c", STORM, library])
        arguments = ["--inject", *QUIET, "-d", "0.2", "-p", child.pid, "-o", f"{folder}/out.xspt"]
        if whole is None:
            whole = seconds_of(tool, *arguments)
            continue
        tool.start(*arguments)
        moment = random.uniform(0, whole)
        time.sleep(moment)
        what = f"after kill {n}, {kill_one_of(tool, random)} at {moment:.2f} of {whole:.2f} s"
        equal(child.poll(), None, f"the program {what}")
        wait_text_clean([child.pid], 5, what)
        if n % 4 == 3:
            time.sleep(6)  # the bytes of a dead tracer's stub count as in use for so long
            seconds_of(tool, *arguments)
            go(child)
            child.stdin.close()
            equal(finish(child), 0, f"status of the program {what}")
    print(f"  {TIMES} tracers killed")


# ---- the target dies ----


@case
def targets_killed(folder):
    """At most the record in progress is missing."""
    random, counters = random_from_clock(), f"{folder}/counters"
    for n in range(TIMES):
        with open(counters, "wb") as f:
            f.write(bytes(16))
        target = start([workload("operators"), AGENT_LIBRARY, "paced", counters], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        capture, moment = f"{folder}/{n}.xspt", random.uniform(0, 0.3)
        with Recording(folder, "--inject", *QUIET, "-p", target.pid, "-o", capture) as recording:
            wait_said(recording, BY_AGENT)
            go(target)
            time.sleep(moment)
            target.kill()
            target.wait()
            recording.wait()
        made, summary = read_counters(counters)[0], summary_of(capture)
        os.unlink(capture)
        found = sum(row["calls"] for row in summary["names"]) + summary["losses"]["lost_entries"]
        check(made <= found <= made + 1, f"killed after {moment:.3f} s: {found} calls recorded or lost, {made} ended", summary["losses"])
    print(f"  {TIMES} targets killed, the last after {made} calls")


@case(long="a hundred targets die in the middle of everything")
def busy_targets_killed(folder):
    """The recorder ends in order, with what it had."""
    random = random_from_clock()
    for n in range(TIMES):
        target = Witness(folder, f"target{n}", [workload("operators"), AGENT_LIBRARY, "witnessed", COUNTERS], stdout=subprocess.DEVNULL)
        capture, moment = f"{folder}/{n}.xspt", random.uniform(0, 0.5)
        with Recording(folder, "--inject", *QUIET, "-p", target.pid, "-o", capture) as recording:
            time.sleep(moment)
            target.process.kill()
            target.process.wait()
            recording.wait()
        summary = summary_of(capture)
        os.unlink(capture)
        equal((summary["complete"], summary["losses"]["lost_other"]), (True, 0), f"killed after {moment:.3f} s")
        check(summary["spans"] > 0 or moment < 0.2, f"killed after {moment:.3f} s: no spans")
    print(f"  {TIMES} targets killed")


# ---- another program ----

BECOMES = """import ctypes, os, sys
left, library = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
print(os.getpid(), flush=True)
sys.stdin.readline()
for _ in range(20):
    assert library.all(1) == 151
if left > 0:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:3], str(left - 1), sys.argv[2]])
"""


@case
def becomes_another_program(folder):
    """exec() while the agent records: it is there again in the next program."""
    log, capture, library, programs = f"{folder}/exec.log", f"{folder}/exec.xspt", a_torch(folder, "-z,now"), 3
    with open(log, "wb") as to:
        child = start([XSPTRACE, *QUIET, "-o", capture, "--", "/usr/bin/python3", "-c", BECOMES, programs - 1, library], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, stderr=to, text=True)

    def said():
        with open(log, encoding="utf-8") as f:
            return f.read()
    for n in range(programs):
        check(child.stdout.readline().strip().isdigit(), f"program {n}", said())
        wait_for(lambda: said().count(ALL_RECORDED) > n, 20, f"the agent in program {n}")  # pylint: disable=cell-var-from-loop
        go(child)
    equal(finish(child), 0, said())
    calls = {row["name"]: row["calls"] for row in summary_of(capture)["names"]}
    equal(calls, {f"at::_ops::f{n}::call": 20 * programs for n in range(150)}, "calls")


if __name__ == "__main__":
    main()
