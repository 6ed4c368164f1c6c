#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--max-overhead: no thread of the target is slowed by more than it may be. Functions that cost most are
released, everything else in their library stays exact; providers go on in windows."""
import json
import os
import re
import resource
import signal
import statistics
import time

from harness import (SANITIZED, SCRIPTS, USAGE, XSPTRACE, Recording, Skip, Trace, broker_of, case, check, check_calls,
                     equal, finish, main, need_torch, run, start_ready, total, truth, wait_for, workload, xsptrace)

# Of the target's CPU time, so that a busy machine does not matter much: the 100 ms, and as much again.
LET_GO_WITHIN, DETACHED_WITHIN = (1, 2) if SANITIZED else (0.2, 0.4)
STEADY = "brake_steady_*"


def code_of(pid, path):
    """Bytes of the process's code that differ from its file: offsets."""
    different = []
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as memory, \
            open(path, "rb") as file:
        for line in maps:
            span, rights, offset, _, _, *name = line.split()
            if "x" not in rights or not name or name[0] != os.path.realpath(path):
                continue
            first, last = (int(x, 16) for x in span.split("-"))
            memory.seek(first)
            file.seek(int(offset, 16))
            mapped, kept = memory.read(last - first), file.read(last - first)
            different += [int(offset, 16) + i for i in range(len(kept)) if mapped[i] != kept[i]]
    return different


def wait_windows(pid, path, clean, count, seconds):
    """Until its code has been as it was before so often, each time after a window."""
    out, outs = True, 0

    def enough():
        nonlocal out, outs
        now = code_of(pid, path) == clean
        outs += now and not out
        out = now
        return outs >= count
    wait_for(enough, seconds, f"{count} windows")


def cpu_seconds(pid):
    """Of all threads of a process."""
    total_ns = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total_ns += int(f.read().split()[0])
    return total_ns * 1e-9


def let_go_of(trace):
    return {row["name"]: row for row in trace.json["xsptrace_let_go"]}


@case(quiet="how soon the brake works")
def hot_leaf_is_let_go(folder):
    """Tens of millions of calls a second: named, and out of the target's code again."""
    child = start_ready([workload("hot"), "--wait", "--threads", "1", "--seconds", "60",
                         "--out", f"{folder}/truth", "leaf"])
    with Recording(folder, "-p", child.pid, "-e", "hot:hot_*", "--max-overhead", "20",
                   "-o", f"{folder}/t.json") as recording:
        before = code_of(child.pid, workload("hot"))
        child.send_signal(signal.SIGUSR1)
        begun, used = time.monotonic(), cpu_seconds(child.pid)
        while "released after" not in recording.output():
            check(time.monotonic() - begun < 4, "not released", recording.output())
            time.sleep(0.005)
        named, cpu = time.monotonic() - begun, cpu_seconds(child.pid) - used
        check(cpu < LET_GO_WITHIN, f"released after {cpu:.3f} s of CPU time")
        while len(code_of(child.pid, workload("hot"))) == len(before):  # hot_frame and hot_nested keep theirs
            check(cpu_seconds(child.pid) - used < DETACHED_WITHIN, "sites are still there", before)
            time.sleep(0.005)
        detached = time.monotonic() - begun
        check(code_of(child.pid, workload("hot")), "others were taken out as well")
        time.sleep(0.5)  # of calls without a probe
        child.terminate()
        equal(finish(child), 0, "status")
        output = recording.wait()
    check(re.search(r"hot_leaf: [\d,]+ calls/s even under the probe, released after \d.*--max-overhead off", output),
          "not named", output)
    check(re.search(r"hot_leaf.*\(until \d+\.\d\d s\)", output), "its totals are not marked as partial", output)
    trace = Trace(f"{folder}/t.json")
    row = let_go_of(trace)["hot_leaf"]
    seen, called = trace.calls["hot_leaf"], truth(f"{folder}/truth")["calls"]["hot_leaf"]
    check(0 < seen < called / 100, f"{seen} spans of {called} calls")
    check(row["calls_per_second"] > 1000, "its rate", row)
    last = max(e["ts"] for e in trace.spans) - min(e["ts"] for e in trace.spans)
    print(f"  named after {named * 1e3:.0f} ms, out of the code after {detached * 1e3:.0f} ms; "
          f"{cpu * 1e3:.0f} ms of its CPU time; events over {last / 1e3:.0f} ms; {seen} of {called} calls")


@case(quiet="how soon the brake works")
def others_stay_exact(folder):
    """Four functions go one after the other; of sixteen others in the same links each call is there once. (If one becomes
    hot before the last one's debt is paid, all are out for a while, and where hits are cheap for a moment a turn is over first: not in
    three recordings.)"""
    facts = f"{folder}/truth"
    for _ in range(3):
        done = xsptrace("-q", "--max-overhead", "200", "-e", "brake:brake_*", "-o", f"{folder}/t.json", "--",
                        workload("brake"), "--threads", "3", "--out", facts, "500")
        trace, expected = Trace(f"{folder}/t.json"), truth(facts)
        gone = let_go_of(trace)
        late = [n for n in gone if trace.calls[n] == expected["calls"][n]]  # its turn may have been over just then
        if not trace.json["xsptrace_windows"]["windows"] and len(late) <= 1 < len(gone):
            break
    steady = {n: c for n, c in expected["calls"].items() if n.startswith("brake_steady") and n not in gone}
    check(any(n.startswith("brake_hot") for n in gone), "nothing was released", done.stderr)
    check(len(steady) > 8, "too many were released", gone)
    check_calls(trace, {"calls": steady})
    check_calls(trace, {"calls": {n: trace.calls[n] for n in steady}})
    trace.check_nesting()
    check(len(late) <= 1 < len(gone), f"{late} were released too late", gone)
    print(f"  {len(gone)} released; {sum(steady.values())} calls of {len(steady)} others, all there once")


@case
def off_keeps_everything(folder):
    facts = f"{folder}/truth"
    done = xsptrace("--max-overhead", "off", "--buffer", "256M", "-e", "hot:hot_*", "-o", f"{folder}/t.json", "--",
             workload("hot"), "--threads", "1", "--calls", "300000", "--out", facts, "frame")
    trace = Trace(f"{folder}/t.json")
    equal(trace.json["xsptrace_let_go"], [], "released")
    equal(trace.json["xsptrace_windows"]["windows"], 0, "windows")
    check_calls(trace, truth(facts))
    # a function of some nanoseconds: nearly all its time is the probes'
    marked = sum("mostly probes (us)" in e["args"] for e in trace.spans)
    check(marked > len(trace.spans) / 2, f"{marked} of {len(trace.spans)} are marked as mostly probes")
    check(re.search(r"^hot_frame \*", done.stdout + done.stderr, re.M), "no mark in the table", done.stdout)


@case
def what_to_expect_is_said(folder):
    """Before anything is attached, and in the first lines of a recording."""
    expected = r"emulated [\d.]+ [un]s a call, at most [\d,]+ calls/s a thread within 5 %"
    child = start_ready([workload("hot"), "--wait", "--threads", "1", "--calls", "1"])
    options = ["--max-overhead", "5", "-p", child.pid, "-e", "hot:hot_frame"]
    for done in (xsptrace("list", *options), xsptrace(*options, "--dry-run"),
                 xsptrace("-v", *options, "-d", "0.1", "-o", f"{folder}/t.json")):
        check(re.search(expected, done.stdout + done.stderr), "not said", done.stdout, done.stderr)
    off = xsptrace("list", "--max-overhead", "off", "-p", child.pid, "-e", "hot:hot_frame").stdout
    check("a call" in off and "within" not in off, "without a budget", off)


def in_windows(folder, count, *arguments, seconds=15, also=()):
    """Records it from its first moment on, until there were so many windows: its counts, and the output."""
    child = start_ready([workload("brake"), "--wait", "--threads", "1", "--seconds", "60", "--out", f"{folder}/truth", *arguments])
    clean = code_of(child.pid, workload("brake"))
    with Recording(folder, "-p", child.pid, "--max-overhead", "20", *also, "-o", f"{folder}/t.json") as recording:
        child.send_signal(signal.SIGUSR1)
        wait_windows(child.pid, workload("brake"), clean, count, seconds)
        child.terminate()
        equal(finish(child), 0, "status")
        output = recording.wait()
    return truth(f"{folder}/truth"), output


@case
def provider_goes_on_in_windows(folder):
    """Regions of record_function.h, too many: all on, all off, and the summary says of how much."""
    facts, output = in_windows(folder, 2, "ranges", "500")
    trace = Trace(f"{folder}/t.json")
    windows = [e for e in trace.json["traceEvents"] if e["ph"] == "X" and e["name"] == "recorded"]
    told = trace.json["xsptrace_windows"]
    check(len(windows) > 1 and told["windows"] == len(windows), "windows", told, output)
    equal(trace.json["xsptrace_let_go"], [], "parts of a provider")
    share = told["recorded_ns"] / told["of_ns"]
    check(0.005 < share < 0.6, f"on for {100 * share:.1f} %", output)
    said = re.search(r"the totals are of ([\d.]+) % of the time", output)
    check(said and abs(float(said[1]) - 100 * share) < 1, "the summary says another share", output)
    # every span in one window; none goes beyond
    edges = sorted((e["ts"], e["ts"] + e["dur"]) for e in windows)
    for e in trace.spans:
        check(any(a - 1 <= e["ts"] and e["ts"] + e["dur"] <= b + 1 for a, b in edges),
              "a span outside of the windows", e, edges)
    cut = [e for e in trace.spans if e["args"].get("finished") is False]
    # one at each window's end, and the thread's last
    check(len(cut) <= len(windows) + 1, "more spans are cut than windows end", len(cut), len(windows))
    seen, called = trace.calls["brake_range"], facts["calls"]["brake_range"]
    check(0 < seen < 0.8 * called, f"{seen} of {called} calls")
    print(f"  {len(windows)} windows, {100 * share:.1f} % of the time, {seen} of {called} calls")


@case(quiet="shares of the time in windows", long="windows of two long calls, and the pauses between them")
def long_calls_in_windows(folder):
    """Steps of some 300 ms, half of which is one call, and the rest 65,536 short ones: some steps are seen whole, and the share
    of the call, which the program knows, lies within the error."""
    facts, output = in_windows(folder, 7, "steps", "3000", seconds=60, also=("--summary", "json"))
    names = {n["name"]: n for n in json.loads(output[output.index("{"):output.rindex("}") + 1])["names"]}
    quiet, step = names["brake_quiet"], names["brake_step"]
    windows = [e for e in Trace(f"{folder}/t.json").json["traceEvents"] if e["ph"] == "X" and e["name"] == "recorded"]
    lengths = sorted(e["dur"] / 1e6 for e in windows)
    print(f"  {step['measured']} steps of {step['mean_ns'] / 1e6:.0f} ms whole; windows {lengths}; "
          f"share {quiet['share']:.3f} +-{quiet['share_error']:.3f}; {facts['calls']}")
    check(step["measured"] >= 2, "whole steps", step)
    check(lengths[-1] >= 2 * step["mean_ns"] / 1e9, "the longest window", lengths, step["mean_ns"])
    check(abs(quiet["share"] - 0.5) <= quiet["share_error"] < 0.4, "the share of half", quiet)


@case
def born_between_windows(folder):
    """Threads that are born and give themselves a name while everything is out have that name in the next window."""
    facts, output = in_windows(folder, 2, "births")
    trace, named = Trace(f"{folder}/t.json"), facts["born"]
    check(trace.json["xsptrace_windows"]["windows"] > 1, "no windows", output)
    rows = {str(e["tid"]): e["args"]["name"] for e in trace.json["traceEvents"] if e["name"] == "thread_name"}
    seen = {str(e["tid"]) for e in trace.spans} & set(named)
    check(len(seen) > 10, "too few of them were seen", len(seen), len(named), output)
    wrong = {tid: (rows.get(tid), named[tid]) for tid in seen if named[tid] not in rows.get(tid, "")}
    equal(wrong, {}, f"names of {len(seen)} threads")


@case(quiet="when the next window begins")
def a_window_that_cannot_begin(folder):
    """The kernel refuses to put the sites in again: that ends the recording's windows, and the capture says so."""
    child = start_ready([workload("brake"), "--wait", "--threads", "1", "--seconds", "30", "ranges", "500"])
    clean = code_of(child.pid, workload("brake"))
    with Recording(folder, "-p", child.pid, "--max-overhead", "20", "-o", f"{folder}/t.json",
                   "-o", f"{folder}/t.xspt") as r:
        broker = broker_of(r.process.pid)
        child.send_signal(signal.SIGUSR1)
        wait_for(lambda: "goes on in windows" in r.output(), 3, r.output())
        resource.prlimit(broker, resource.RLIMIT_NOFILE, (3, 4096))
        wait_for(lambda: "nothing more is recorded" in r.output(), 6, r.output())
        wait_for(lambda: code_of(child.pid, workload("brake")) == clean, 2, "sites are still there")
        check(child.poll() is None, "the target ended")
        r.stop()
        output = r.wait()
    said = "the sites cannot be put in again (Too many open files)"
    check(said in output, "why", output)
    trace = Trace(f"{folder}/t.json")
    check(said in trace.json["xsptrace_capture"]["ended early"], "the trace's metadata", trace.json["xsptrace_capture"])
    check(f"ended early      {said}" in xsptrace("info", f"{folder}/t.xspt").stdout, "info")
    check(f"ended early: {said}" in output, "summary", output)
    equal(trace.json["xsptrace_windows"]["windows"], 1, "windows")


@case(quiet="the length of windows")
def nobody_holds_the_brake(folder):
    """The recorder is stopped, as Ctrl-Z does it, when a hot function begins to be called: its sites come out all the same, and
    in again when it goes on. What is recorded is of the windows, and none is of the time between."""
    hot = start_ready([workload("hot"), "--wait", "--threads", "1", "--seconds", "60", "leaf"])
    slow = start_ready([workload("hot"), "--wait", "--threads", "1", "--seconds", "60", "--rate", "500", "frame"])
    clean = code_of(hot.pid, workload("hot"))
    with Recording(folder, "-p", hot.pid, "-p", slow.pid, "-e", "hot:hot_*", "--max-overhead", "20",
                   "-o", f"{folder}/t.json") as recording:
        slow.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        recording.process.send_signal(signal.SIGSTOP)
        hot.send_signal(signal.SIGUSR1)
        check(code_of(hot.pid, workload("hot")) != clean, "nothing was put in")
        for child in (hot, slow):
            wait_for(lambda c=child: not code_of(c.pid, workload("hot")), 3, "sites are still there")
        time.sleep(1)
        recording.process.send_signal(signal.SIGCONT)
        wait_for(lambda: code_of(slow.pid, workload("hot")), 3, "the sites to be put in again")
        time.sleep(0.2)
        recording.process.send_signal(signal.SIGSTOP)
        time.sleep(1.3)  # the broker waits for longer: nothing is taken out
        recording.process.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        for child in (hot, slow):
            check(child.poll() is None, "a target ended")
        recording.stop()
        output = recording.wait()
    equal(len(re.findall(r"did not hold the brake: its probes were out of the target for \d", output)), 1, f"times that it is said: {output}")
    check("hot_leaf: " in output and "released after" in output, "the hot one", output)
    trace = Trace(f"{folder}/t.json")
    windows = [(e["ts"], e["ts"] + e["dur"]) for e in trace.json["traceEvents"] if e["ph"] == "X" and e["name"] == "recorded"]
    check(len(windows) in (2, 3), f"windows: {windows}")  # the hot one's debt may take another pause
    check(windows[1][0] - windows[0][1] > 0.9e6, "the time between", windows)
    for e in trace.spans:
        check(any(a - 1 <= e["ts"] and e["ts"] + e["dur"] <= b + 1 for a, b in windows), "a span outside of the windows", e)
    of_slow = [e["ts"] for e in trace.spans if e["name"] == "hot_frame"]
    last = sum(windows[1][0] <= ts for ts in of_slow) / (windows[1][1] - windows[1][0]) * 1e6
    check(last > 300, f"{last:.0f} calls a second of the slow one in the last window, 500 expected", output)


@case(quiet="the length of windows")
def libraries_that_come_between_windows(folder):
    """However often everything was taken out and put in again, there is room for what comes later."""
    hot = start_ready([workload("brake"), "--wait", "--threads", "1", "--seconds", "30", "ranges", "2000"])
    late = start_ready([workload("dlopener"), "--wait", "--calls", "100000", "20000"])
    clean = code_of(hot.pid, workload("brake"))
    with Recording(folder, "-p", hot.pid, "-p", late.pid, "-e", "record_function", "-e", "plugin_*", "-e", "dlopener:main",
                   "--max-overhead", "20", "-o", f"{folder}/t.json") as recording:
        hot.send_signal(signal.SIGUSR1)
        for what in ("out", "in", "out again", "in again", "out a third time"):
            wait_for(lambda: (code_of(hot.pid, workload("brake")) == clean) == what.startswith("out"), 5, what)
        late.send_signal(signal.SIGUSR1)
        time.sleep(1)
        recording.stop()
        output = recording.wait()
    trace = Trace(f"{folder}/t.json")
    check("out of file descriptors" not in output, "a library was not attached to", output)
    equal(trace.losses["files_left_out"], 0, "libraries")


@case(long="14 s of windows", quiet="the length of windows")
def room_after_many_windows(folder):
    """Links that are closed and made again take the room of one: what comes later finds its own."""
    hot = start_ready([workload("brake"), "--wait", "--threads", "1", "--seconds", "60", "ranges", "8000"])
    late = start_ready([workload("dlopener"), "--wait", "--calls", "100000", "20000"])
    clean = code_of(hot.pid, workload("brake"))
    with Recording(folder, "-p", hot.pid, "-p", late.pid, "-e", "record_function", "-e", "plugin_*", "-e", "dlopener:main",
                   "--max-overhead", "25", "-o", f"{folder}/t.json",
                   under=("prlimit", "--nofile=90:90")) as recording:  # it has room for some links more
        hot.send_signal(signal.SIGUSR1)
        wait_windows(hot.pid, workload("brake"), clean, 14, 15)
        late.send_signal(signal.SIGUSR1)
        time.sleep(4)  # a window and the pause before it
        recording.stop()
        output = recording.wait()
    trace = Trace(f"{folder}/t.json")
    windows = trace.json["xsptrace_windows"]["windows"]
    print(f"  {windows} windows")
    check(windows > 12, "too few windows", output)
    check("out of file descriptors" not in output, "a library was not attached to", output)
    equal(trace.losses["files_left_out"], 0, "libraries")
    check(any(n.startswith("plugin_") for n in trace.calls) or SANITIZED, "nothing of the library was seen", trace.calls, output, trace.json["xsptrace_windows"])


def slots_of(folder, functions, *arguments, settled=True):
    """For how many seconds a call took over twice its own CPU time, and the output. `settled`: from 0.3 s after the recording's
    beginning on, as until then sites are put in; else in all of it."""
    child = start_ready([workload("brake"), "--wait", "--seconds", 60, "--out", f"{folder}/truth", *arguments])
    child.send_signal(signal.SIGUSR1)
    time.sleep(1)
    with Recording(folder, "-p", child.pid, "-e", functions, "--max-overhead", 20, "-o", f"{folder}/t.json") as recording:
        time.sleep(2)
        recording.stop()
        output = recording.wait()
    child.terminate()
    equal(finish(child), 0, "status")
    facts = truth(f"{folder}/truth")
    slots, own = facts["cpu_ns_a_call"], statistics.median(facts["cpu_ns_a_call"][:8])
    begun = (Trace(f"{folder}/t.json").json["xsptrace_window"]["monotonic_start_ns"] - facts["begun_ns"]) / 1e9
    over = sum(slot > 2 * own for slot in slots[int(10 * (begun + 0.3)) + 1 if settled else 0:-1]) / 10
    print(f"  own {own:.1f} ns a call; over twice that for {over} s; begun after {begun:.1f} s; {[round(s / own, 1) for s in slots]}")
    return over, output


@case(quiet="how long calls take")
def many_threads_that_nap(folder):
    """Threads of which none is on a CPU for long, but together they are: they are judged as one process, in wall time. Where they
    are a crowd, each would wait for the others at its first hit, for seconds: samples show the functions before they are probed."""
    threads = 3 * os.cpu_count()
    over, output = slots_of(folder, "brake:brake_hot_*", "--threads", threads, "naps")
    check(re.search(r"brake_hot_\d: [\d,]+ calls/s", output), "not released", output)
    check(over <= 0.1, "over the budget for too long", output)
    over, output = slots_of(folder, "brake:brake_hot_*", "--threads", 100 * os.cpu_count(), "naps", settled=False)
    rows = let_go_of(Trace(f"{folder}/t.json"))
    check(re.search(r"too often for a probe, by samples: brake_hot_", output) and rows, "not left out", output, rows)
    check(over <= 0.3, "over the budget for too long", output)


@case(quiet="how long calls take")
def hot_functions_that_take_turns(folder):
    """Each of twenty functions is hot for 0.2 s: what was overrun is paid, and then those go that were not called yet."""
    over, output = slots_of(folder, "brake:brake_*", "--threads", 1, "turns")
    check(over <= 0.2, "over the budget for too long", output)


@case(quiet="how soon the brake works", long="12 s of one estimate; others of the brake are shorter")
def many_threads_on_few_processors(folder):
    """What sites cost on their way in and out is counted where it is paid: the estimate for the slowest of 16 threads
    agrees with how much longer its rounds take."""
    def round_ns(seconds, *traced):
        done = run([*traced, workload("brake"), "--threads", 16, "--seconds", seconds, "--out", f"{folder}/truth",
                    "ranges", 1000])
        equal(done.returncode, 0, done.stderr)
        return truth(f"{folder}/truth")["cpu_ns_a_round"], done.stdout + done.stderr

    alone = [round_ns(2)[0], round_ns(2)[0]]
    traced, output = round_ns(4, XSPTRACE, "--summary=text", "--max-overhead", 10, "-o", f"{folder}/t.json", "--")
    alone += [round_ns(2)[0], round_ns(2)[0]]
    slowed = 100 * (traced / min(alone) - 1)  # a virtual machine's processors are slower for seconds at a time
    said = float(re.search(r"slowed most, estimated: ([\d.]+) %", output)[1])
    print(f"  slowed by {slowed:.1f} %, estimated {said:.1f} %")
    check(said < slowed + 15, "the estimate is far above", output)


@case
def windows_with_a_least_duration(folder):
    """What --min-duration holds back at a window's end is asked for, and the recording goes on."""
    done = xsptrace("--min-duration", "1us", "--max-overhead", "20", "-d", "2", "-o", f"{folder}/t.json", "--",
                    workload("brake"), "--threads", "2", "--seconds", "2", "ranges", "500", timeout=60)
    check("ended unexpectedly" not in done.stderr, "the privileged process is gone", done.stderr)
    windows = [e for e in Trace(f"{folder}/t.json").json["traceEvents"] if e.get("name") == "recorded"]
    check(windows, "no window", done.stderr)
    check(Trace(f"{folder}/t.json").json["xsptrace_window"]["duration_ns"] > 1.5e9, "it ended before", done.stderr)


@case
def within_the_budget_nothing_is_lost(folder):
    """A program that pays little is recorded whole, by default."""
    facts = f"{folder}/truth"
    done = run([XSPTRACE, "--summary", "-e", "hot:hot_*", "-o", f"{folder}/t.json", "--", workload("hot"), "--threads", "2",
                "--calls", "2000", "--rate", "1000", "--out", facts, "frame"])
    equal(done.returncode, 0, done.stderr)
    check("slowed most" not in done.stdout or "of at most 20 %" in done.stdout, "the default", done.stdout)
    trace = Trace(f"{folder}/t.json")
    check_calls(trace, truth(facts))
    equal(total(trace.calls, "hot_frame"), 4000, "calls")


@case
def what_filters_drop_costs_as_well(folder):
    """No event ever comes: the kernel's own count of such hits finds the function."""
    done = xsptrace("--max-overhead", "20", "--min-duration", "10s", "-e", "hot:hot_*", "-o", f"{folder}/t.json",
                    "--", workload("hot"), "--threads", "1", "--seconds", "2", "frame")
    check("hot_frame" in let_go_of(Trace(f"{folder}/t.json")), "not released", done.stderr)


@case(quiet="how many calls there are in a second and a half")
def what_many_filtered_calls_cost(folder):
    """Of 8,192 pairs of thread and function at one look, none is forgotten: what they cost together is what their
    number says."""
    children = [start_ready([workload("many"), "--wait", "--seconds", "8"]) for _ in range(2)]
    pids = [word for child in children for word in ("-p", child.pid)]
    with Recording(folder, *pids, "--min-duration", "10s", "--max-overhead", "100000", "-e", "many_*", "-v",
                   "-o", f"{folder}/t.json", "-o", f"{folder}/t.xspt") as recording:
        os.kill(recording.process.pid, signal.SIGSTOP)  # the broker goes on, for two seconds
        for child in children:
            child.send_signal(signal.SIGUSR1)
        time.sleep(1.5)
        os.kill(recording.process.pid, signal.SIGCONT)
        recording.stop()
        output = recording.wait()
    info = xsptrace("info", f"{folder}/t.xspt").stdout
    prices = {kind: int(ns) for kind, ns in re.findall(r"([\w-]+) (\d+) ns", info)}
    sites = re.search(r"sites: ([^;\n]*)", output)[1]
    a_call = sum(int(n.replace(",", "")) * prices.get(kind, 0) / 4096
                 for n, kind in re.findall(r"(\d[\d,]*) ([\w-]+)", sites))
    trace = Trace(f"{folder}/t.json")
    cost, calls = trace.json["xsptrace_overhead"]["probes_cost_ns"], trace.losses["filtered"]
    check(calls > 8192, f"{calls} calls")
    check(0.98 < cost / (calls * a_call) < 1.02, f"{cost} ns for {calls} calls of {a_call:.0f} ns", sites, prices)


@case
def silent_sites_cost_as_well(folder):
    """Threads that are not recorded hit the sites all the same."""
    done = xsptrace("--max-overhead", "20", "--comm", "nobody", "-e", "hot:hot_*", "-o", f"{folder}/t.json",
                    "--", workload("hot"), "--threads", "1", "--seconds", "2", "frame")
    check("hot_frame" in let_go_of(Trace(f"{folder}/t.json")), "not released", done.stderr)


@case
def more_hits_without_events_than_there_is_room_for(folder):
    """Of 16 threads in 4,096 functions the table has room for an eighth; all of them have their price, which
    xsptrace says before it begins."""
    done = xsptrace("-v", "--max-overhead", "1000000", "--comm", "nobody", "-e", "many_*", "-o", f"{folder}/t.json",
                    "--", workload("many"), "--threads", 16, "--calls", 1)
    number, unit = re.search(r"([0-9.]+) (ns|us) a call", done.stderr).groups()
    price = float(number) * (1000 if unit == "us" else 1)
    calls = json.loads(re.search(r"^{.*}$", done.stdout, re.M)[0])["calls"]["many_*"]
    trace = Trace(f"{folder}/t.json").json
    equal(trace["xsptrace_losses"]["filtered"], calls, "calls")
    cost = trace["xsptrace_overhead"]["probes_cost_ns"]
    print(f"  {calls} calls of {price:.0f} ns: {cost / calls:.0f} ns each")
    check(abs(cost / calls / price - 1) < 0.02, f"{cost} ns for {calls} calls of {price} ns", done.stderr)


@case
def without_uprobe_multi(folder):
    """One event of many sites cannot lose one of them: the brake releases everything, and says so."""
    child = start_ready([workload("hot"), "--wait", "--threads", "1", "--seconds", "30", "leaf"])
    clean = code_of(child.pid, workload("hot"))
    with Recording(folder, "--attach=tracefs", "-p", child.pid, "-e", "hot:hot_*", "--max-overhead", "20",
                   "-o", f"{folder}/t.json") as recording:
        child.send_signal(signal.SIGUSR1)
        wait_for(lambda: "nothing more is recorded" in recording.output(), 3, recording.output())
        wait_for(lambda: code_of(child.pid, workload("hot")) == clean, 2, "sites are still there")
        equal(child.poll(), None, "status")
        child.kill()
        recording.wait()


@case(long="many pauses")
def what_a_pause_takes_out_is_not_lost(folder):
    """1,000 scopes are open when a window ends: the kernel has not forgotten them for want of room."""
    done = xsptrace("--max-overhead", "150", "-e", "xsigma", "--buffer", "64M", "-o", f"{folder}/t.json", "--",
                    workload("open_scopes"), "--calls", 1000, "--seconds", 20)
    trace = Trace(f"{folder}/t.json")
    windows, seen = trace.json["xsptrace_windows"]["windows"], len(trace.spans)
    print(f"  {windows} windows, {seen} scopes")
    if windows < 2 or seen <= 32768:  # it looks for forgotten ones when its table of 65,536 has been half full
        raise Skip("too few windows or scopes on this machine")
    equal(trace.lost(), {}, done.stdout)


@case(quiet="what hits cost")
def what_hits_cost_in_the_target(folder):
    """Programs that do nothing but hit probes: their CPU time is what the hits cost, by samples in them, whatever their kind."""
    for name, function, mode in (("brake", "record_function", ("ranges", 1)), ("brake", "brake:brake_hot_0", ("leaf",)),
                                 ("hot", "hot:hot_leaf", ("leaf",))):
        child = start_ready([workload(name), "--wait", "--threads", 1, "--seconds", 60, *mode])
        with Recording(folder, "-p", child.pid, "-e", function, "--max-overhead", "off", "--sample=499",
                       "-o", f"{folder}/t.xspt") as recording:
            child.send_signal(signal.SIGUSR1)
            wait_for(lambda c=child: cpu_seconds(c.pid) > 1.2, 30, "its CPU time")
            child.send_signal(signal.SIGSTOP)
            spent = cpu_seconds(child.pid)
            recording.stop()
            recording.wait()
            child.kill()
        info = xsptrace("info", f"{folder}/t.xspt").stdout
        there, error = re.search(r"^hit costs there *(.* all \+-([\d.]+))$", info, re.M).groups()
        cost = float(re.search(r"^cost *([\d.]+) s", info, re.M)[1])
        print(f"  {function}: {cost:.3f} s for {spent:.3f}; {there}")
        check(float(error) < 0.15, "the error", there)
        check(abs(cost / spent - 1) < 0.15, f"{cost} s for {spent} s", info)


@case(long="two estimates of one machine are compared: minutes", quiet="what hits cost")
def what_is_read_has_its_price(folder):
    """Shapes and values of tensors cost several times what the calibration's section does (README, "What it
    costs"): it is the time that the programs take here that counts."""
    need_torch()

    def estimate(*flags):
        out = f"{folder}/t.xspt"
        done = xsptrace(*flags, "-o", out, "--", "/usr/bin/python3", f"{SCRIPTS}/torch_loop.py", "--steps", 800,
                        timeout=120)
        ms, unit = re.search(r"estimated: ([0-9.]+) (m?s) in probes", done.stderr + done.stdout).groups()
        return float(ms) * (1 if unit == "ms" else 1000)

    bare, read = (min(estimate(*flags) for _ in range(2)) for flags in ([], ["--shapes=all", "--inputs=values"]))
    print(f"  {bare:.0f} ms in probes, {read:.0f} ms with shapes and values")
    check(read > 1.6 * bare, "what is read is not priced")


@case
def bad_values(folder):
    for value in ("0", "-1", "many", "20x", "1e9", ""):
        xsptrace("--max-overhead", value, "-p", str(os.getpid()), status=USAGE)
    done = run([workload("hot"), "--calls", "1"])
    equal(done.returncode, 0, folder)


if __name__ == "__main__":
    main()
