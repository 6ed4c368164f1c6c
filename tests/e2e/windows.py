#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--windows: what is recorded is of the windows. Between them nothing of ours is in the target, and that time is nobody's.

The target's ranges are numbered: a step that is missing in a window is seen, and so is one that is recorded outside of all.
"""
import glob
import os
import re
import struct
import subprocess
import time

from harness import USAGE, WORKLOADS, Recording, Trace, broker_of, case, check, equal, json_report, main, start, wait_for, workload, xsptrace
from proc import wait_text_clean

RANGES = ["-e", "record_function", "-e", "numbered:numbered_dies"]
MS = 1000
EDGE = 20 * MS  # us, for what a window's beginning and end take on a busy machine


def numbered(folder):
    counters = f"{folder}/counters"
    process = start([workload("numbered"), counters])

    def begun():
        if not os.path.exists(counters):
            return False
        with open(counters, "rb") as f:
            data = f.read(16)
        return len(data) == 16 and min(struct.unpack("<2Q", data)) > 0
    wait_for(begun, 10, "the target's first steps")
    return process


def attached(recording):
    """Are the scheduler's programs in the kernel?"""
    for path in glob.glob(f"/proc/{broker_of(recording.process.pid)}/fdinfo/*"):
        try:
            with open(path, encoding="ascii") as f:
                if re.search(r"tp_name:\s*sched_switch", f.read()):
                    return True
        except FileNotFoundError:
            pass
    return False


def windows_of(trace):
    found = sorted((e["ts"], e["ts"] + e["dur"]) for e in trace.json["traceEvents"] if e.get("name") == "recorded" and e["ph"] == "X")
    check(found, "no windows in the trace")
    return found


def is_in(windows, start_us, end_us):
    return any(a - EDGE <= start_us and end_us <= b + EDGE for a, b in windows)


def check_figures(path, windows):
    """Sums are of the windows alone."""
    recorded = sum(b - a for a, b in windows) * 1000
    sections = json_report("analyze", path)["sections"]
    equal(sections["recording"]["values"]["windows"], len(windows), "windows")
    check(abs(sections["recording"]["values"]["recorded_ns"] - recorded) < 1e6, "recorded_ns", recorded)
    rows = sections["account"]["tables"]["rows"]["rows"]
    equal(sum(r["ns"] for r in rows), sections["account"]["values"]["ns"], "the account's rows add up")
    for thread in sections["threads"]["tables"]["threads"]["rows"]:
        check(abs(thread["time_ns"] - recorded) < 0.1 * recorded + 50e6, "a thread's time is that of the windows", thread, recorded)
        check(abs(thread["running_ns"] + thread["runnable_ns"] + thread["blocked_ns"] - thread["time_ns"]) < 1e6, "and adds up", thread)
    members = max(1, sections["account"]["values"].get("members") or 1)
    check(sections["account"]["values"]["ns"] < members * (1.1 * recorded + 50e6), "the account is of the windows", sections["account"]["values"])


@case
def parts_of_the_time(folder):
    target = numbered(folder)
    path = f"{folder}/a.xspt"
    with Recording(folder, "-p", target.pid, *RANGES, "--waits", "--sample", "--windows", "3x500ms", "--every", "3s", "-o", path) as r:
        wait_for(lambda: not attached(r), 10, "the first gap")
        wait_text_clean([target.pid], 1.5, "in a gap")
        check(not attached(r), "waits are out with the probes")
        wait_for(lambda: attached(r), 10, "the second window")
        r.wait()
    xsptrace("export", path, "-o", f"{folder}/a.json")
    trace = Trace(f"{folder}/a.json")
    windows = windows_of(trace)
    equal(len(windows), 3, "windows")
    for i, (begin, end) in enumerate(windows):
        check(450 * MS < end - begin < 1500 * MS, "how long they last", windows)
        late = (begin - windows[0][0]) - 3000 * MS * i
        check(-EDGE < late < 700 * MS, "when they begin", windows)
    for thread in "0", "1":
        for begin, end in windows:
            steps = sorted(int(m[1]) for s in trace.spans if begin <= s["ts"] <= end and (m := re.fullmatch(rf"{thread} step (\d+)", s["name"])))
            check(len(steps) > 20, "steps in a window", thread, steps)
            equal(steps, list(range(steps[0], steps[-1] + 1)), f"steps of thread {thread}")
    outside = [e for e in trace.json["traceEvents"] if e["ph"] == "X" and e.get("cat") not in ("Trace", None) and e["name"] != "recorded"
               and not is_in(windows, e["ts"], e["ts"] + e["dur"])]
    equal([e for e in outside if not e["name"].startswith(("PyTorch Profiler", "xsptrace"))], [], "what goes beyond a window")
    equal(trace.lost(), {}, "losses")
    check_figures(path, windows)
    info = xsptrace("info", path).stdout
    check(re.search(r"windows +3 of --windows, ", info) and re.search(r"schedule +3 of 500 ms, one every 3\.00 s", info), "info", info)
    screen = xsptrace("analyze", path).stdout
    check(" in 3 windows of " in screen and "recorded in windows (--windows)" in screen, "the first screen", screen)
    check(re.search(r"windows asked for +3 of 500 ms", xsptrace("analyze", "--full", path).stdout), "all figures")


@case
def ended_in_a_gap(folder):
    """Ctrl-C between two windows: the capture is complete, and nothing is left."""
    target = numbered(folder)
    path = f"{folder}/a.xspt"
    with Recording(folder, "-p", target.pid, *RANGES, "--waits", "--windows", "300ms", "--every", "20s", "-o", path) as r:
        wait_for(lambda: not attached(r), 10, "the first gap")
        time.sleep(0.3)
        r.stop()
        r.wait()
    wait_text_clean([target.pid])
    xsptrace("export", path, "-o", f"{folder}/a.json")
    windows = windows_of(Trace(f"{folder}/a.json"))
    equal(len(windows), 1, "windows")
    check("complete" in xsptrace("info", path).stdout, "how it ended")
    check_figures(path, windows)
    equal(target.poll(), None, "the target goes on")


@case(quiet="when windows begin")
def at_the_same_moment(folder):
    """With --start-at the windows begin by the clock, also the first one."""
    target = numbered(folder)
    with Recording(folder, "-p", target.pid, *RANGES, "--start-at", "/3s", "--windows", "2x200ms", "--every", "1500ms", "-o", f"{folder}/a.json") as r:
        r.wait()
    trace = Trace(f"{folder}/a.json")
    begin = trace.json["xsptrace_window"]["start_ns"]
    windows = windows_of(trace)
    first = begin / 1e9
    check(first % 3 < 0.15 or first % 3 > 2.9, "the first window's beginning", first % 3)
    apart = windows[1][0] - windows[0][0]
    check(abs(apart - 1500 * MS) < 150 * MS, "the second one's", apart)


@case
def a_sample(folder):
    """--sample-rate: windows of half a second. That its ranges are numbered makes none of them longer."""
    target = numbered(folder)
    with Recording(folder, "-p", target.pid, *RANGES, "--sample-rate", "0.2", "-d", "8", "-o", f"{folder}/a.json", "-o", f"{folder}/a.xspt") as r:
        r.wait()
    windows = windows_of(Trace(f"{folder}/a.json"))
    check(len(windows) >= 2, "windows", windows)
    check("longer where names are new" in xsptrace("info", f"{folder}/a.xspt").stdout, "info")
    share = sum(b - a for a, b in windows) / 8e6
    check(0.05 < share < 0.5, f"{100 * share:.0f} % of the time", windows)


ONE_AFTER_THE_OTHER = """
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for n in range(30):
    getattr(lib, f"many_0{n:02x}")(1)
    time.sleep(0.1)
while True:
    for n in range(30):
        getattr(lib, f"many_0{n:02x}")(1)
    time.sleep(0.01)
"""


@case
def first_calls(folder):
    """--sample-rate: for three seconds a function after the other is called for the first time, and each of these calls is there."""
    target = start(["/usr/bin/python3", "-c", ONE_AFTER_THE_OTHER, workload("libmany.so")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(target.stdout.readline(), "ready\n", "the script")
    with Recording(folder, "-p", target.pid, "-e", "libmany.so:many_00*", "-e", "libmany.so:many_01*", "--sample-rate", "0.1", "-o", f"{folder}/a.json") as r:
        target.stdin.write("go\n")
        target.stdin.flush()
        time.sleep(12)
        r.stop()
        r.wait()
    trace = Trace(f"{folder}/a.json")
    windows = windows_of(trace)
    check(windows[0][1] - windows[0][0] > 2900 * MS and len(windows) >= 2, "the first one lasts longer than those that follow", windows)
    check(all(b - a < 1500 * MS for a, b in windows[1:]), "which see nothing new", windows)
    first = [s["name"] for s in trace.spans if s["ts"] <= windows[0][1]][:30]
    equal(len(set(first)), 30, f"first calls {first}")


@case
def of_the_gpu(folder):
    """The agent's CUPTI is on in the windows, and what it saw beside them is in no figure."""
    agent = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")
    target = start([workload("gpu_train"), "--seconds", 100], env=dict(os.environ, CUDA_INJECTION64_PATH=agent))
    wait_for(lambda: "libxsptrace_agent" in open(f"/proc/{target.pid}/maps", encoding="utf-8", errors="replace").read(), 20, "the agent")
    with Recording(folder, "-p", target.pid, "--windows", "3x1s", "--every", "4s", "--max-overhead", "off", "-o", f"{folder}/a.json") as r:
        r.wait()
    trace = Trace(f"{folder}/a.json")
    windows = windows_of(trace)
    equal(len(windows), 3, "windows")
    kernels = [e for e in trace.json["traceEvents"] if e.get("cat") in ("kernel", "cuda_runtime", "gpu_memcpy") and e["ph"] == "X"]
    equal([e for e in kernels if not is_in(windows, e["ts"], e["ts"])], [], "GPU work between windows")
    for begin, end in windows[1:]:
        check(any(begin <= e["ts"] <= end for e in kernels), "a window without a kernel", begin, end)
    equal(trace.json["xsptrace_gpu"]["windows"], 3, "how often the agent began")


@case
def options(folder):
    target = start([workload("sleeper")])
    for words, says in ((["--windows", "5x2s"], "belong together"),
                        (["--every", "1m"], "belong together"),
                        (["--windows", "5x2s", "--every", "2s"], "200 ms more"),
                        (["--windows", "0x2s", "--every", "1m"], "5x2s"),
                        (["--windows", "often", "--every", "1m"], "5x2s"),
                        (["--sample-rate", "1.5"], "from 0.001 to 0.7"),
                        (["--windows", "2s", "--every", "1m", "-F"], "-F"),
                        (["--windows", "2s", "--every", "1m", "--memory"], "--memory")):
        done = xsptrace(*words, "-p", target.pid, "-o", f"{folder}/a.xspt", status=USAGE)
        check(says in done.stderr, f"{words}: {says}", done.stderr)


main(declined=["--waits=off", "--sample=off", "--python=off"])
