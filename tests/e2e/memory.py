#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Memory: of processes, against the kernel's own high-water mark and what the program touches; --memory, against
programs that count what PyTorch allocates for them (tests/workloads/torch_memory.py), and PyTorch's profiler."""
import bisect
import collections
import json
import os
import re
import signal
import statistics
import struct

from captures import MEMORY, PROCESS_MEMORY, Made
from harness import (SCRIPTS, TORCH, USAGE, Recording, Trace, case, check, equal, finish, main, need_torch,
                     own_pages_of_code, run, start, start_ready, truth, xsptrace)

PYTHON = TORCH
PROGRAM = f"{SCRIPTS}/torch_memory.py"
MIB = 1 << 20

# Touches memory in three moments: some that it keeps, much that it gives back at once, some less.
TOUCHES = """
import mmap, os, signal, sys, time
os.getppid()
print("ready", file=sys.stderr, flush=True)
signal.sigwait({signal.SIGUSR1})
def touch(mib):
    m = mmap.mmap(-1, mib << 20)
    for at in range(0, len(m), 4096): m[at] = 1
    return m
kept = touch(64)
time.sleep(0.25)
touch(200).close()
time.sleep(0.25)
print("done", file=sys.stderr, flush=True)
signal.pause()
"""


def status_of(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(rf"^{key}:\s+(\d+) kB", f.read(), re.M)[1]) * 1024


def counters(trace, name):
    """[(ts, bytes)] of a track."""
    return [(e["ts"], e["args"]["bytes"]) for e in trace.json["traceEvents"] if e["ph"] == "C" and e["name"] == name]


def summary_of(capture):
    return json.loads(xsptrace("export", "--summary", "json", capture).stdout)


@case
def processes_by_the_kernels_own_figures(folder):
    child = start(["python3", "-c", "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
                   + TOUCHES], stderr=-1)
    check(b"ready" in child.stderr.readline(), "not ready")
    before = {key: status_of(child.pid, key) for key in ("VmRSS", "RssAnon")}
    with Recording(folder, "-p", child.pid, "-e", "libc.so.6:getppid", "-o", f"{folder}/m.json", "-o",
                   f"{folder}/m.xspt") as recording:
        child.send_signal(signal.SIGUSR1)
        check(b"done" in child.stderr.readline(), "not done")
        after = {key: status_of(child.pid, key) for key in ("VmRSS", "RssAnon", "VmHWM")}
        ours = 1024 * own_pages_of_code(child.pid)
        recording.stop()
        recording.wait()
    resident, = summary_of(f"{folder}/m.xspt")["processes"]
    equal(resident["pid"], child.pid, "process")
    equal((resident["resident"]["peak_bytes"], resident["resident"]["end_bytes"]), (after["VmHWM"], after["VmRSS"]),
          "resident, at most and at the end")
    # a page with a breakpoint is a copy, which the program has not asked for
    check(ours > 0, "pages with breakpoints", ours)
    equal(resident["anonymous"]["end_bytes"], after["RssAnon"] - ours, "anonymous at the end")
    equal(resident["anonymous"]["start_bytes"], before["RssAnon"], "anonymous at the start")
    # the kernel adds up three counters, each late by so many pages a CPU (percpu_counter_batch)
    late = 3 * os.cpu_count() * max(32, 2 * os.cpu_count()) * 4096
    check(abs(resident["resident"]["start_bytes"] - before["VmRSS"]) <= late, "resident at the start", resident, before)

    track = counters(Trace(f"{folder}/m.json"), "resident memory")
    equal((track[0][1], track[-1][1]), (resident["resident"]["start_bytes"], after["VmRSS"]), "first and last")
    check(any(abs(b - before["VmRSS"] - 64 * MIB) < 8 * MIB for _, b in track), "what was kept", track)
    equal([t for t, _ in track], sorted(t for t, _ in track), "times")
    check(len(counters(Trace(f"{folder}/m.json"), "anonymous memory")) == len(track), "anonymous memory")

    table = xsptrace("export", f"{folder}/m.xspt").stdout
    check(re.search(rf"memory of process {child.pid} \(python3[^)]*\): .* resident at the start, .* at most, .* at the "
                    r"end; of it anonymous", table), "no line in the summary", table)


@case
def memory_at_the_end(folder):
    """A process that ends has none from then on; but the track of one whose end ends the recording keeps what it had last."""
    made = Made()
    probe = made.probe("f")
    for pid in (500, 600):
        made.process(pid)
        made.thread(pid, pid, "program")
    for ms, pid, mib in ((10, 500, 64), (10, 600, 32), (400, 600, 0), (990, 500, 80), (999.9, 500, 0)):
        made.event(MEMORY, int(ms * 1e6), (pid, pid), sections=[(PROCESS_MEMORY, 0, struct.pack("<6Q", *[mib * MIB] * 2, 0, 0, 0, 80 * MIB))])
    made.point(1_000_000_000 - 1, (500, 500), probe, 1 << 40)
    made.finish(f"{folder}/m.xspt", 0, 1_000_000_000)
    xsptrace("export", "-q", f"{folder}/m.xspt", "-o", f"{folder}/m.json")
    tracks = collections.defaultdict(list)
    for e in Trace(f"{folder}/m.json").json["traceEvents"]:
        if e["ph"] == "C" and e["name"] == "resident memory":
            tracks[e["pid"]].append(e["args"]["bytes"] // MIB)
    equal(dict(tracks), {500: [64, 80], 600: [32, 0]}, "tracks")


def summarised(folder, mode, *options, seconds=1.5):
    """The summary and the program's own counts; the capture is MODE.xspt."""
    facts = f"{folder}/{mode}.truth"
    child = start_ready([PYTHON, PROGRAM, mode, "--wait", "--out", facts, "--seconds", seconds])
    with Recording(folder, "-p", child.pid, "--memory", *options, "-o", f"{folder}/{mode}.xspt") as r:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child, 60), 0, "status of the program")
        r.wait(seconds=60)
    summary = summary_of(f"{folder}/{mode}.xspt")
    # records of mappings are those of the whole machine: that some were lost may be of others
    equal({k: v for k, v in summary["losses"].items() if "lost" in k and k != "side_records_lost" and v}, {}, "losses")
    return summary, truth(facts)


def recorded(folder, mode, *options):
    """The trace, too."""
    summary, facts = summarised(folder, mode, *options)
    xsptrace("export", "-q", f"{folder}/{mode}.xspt", "-o", f"{folder}/{mode}.json")
    trace = Trace(f"{folder}/{mode}.json")
    trace.check_nothing_lost()
    return trace, summary, facts


def instants(trace):
    return [e for e in trace.json["traceEvents"] if e["ph"] == "i" and e["name"] == "[memory]"]


@case
def allocations_as_the_program_counts_them(folder):
    need_torch()
    trace, summary, facts = recorded(folder, "known", "--python")
    allocations = summary["allocations"]
    equal(allocations["lost"], 0, "lost")
    pool, = allocations["pools"]
    equal((pool["device_type"], pool["allocations"], pool["frees"], pool["unknown_frees"]),
          (0, facts["allocations"], facts["frees"], 0), "allocations and frees")
    equal((pool["allocated_bytes"], pool["end_bytes"], pool["peak_bytes"]),
          (facts["bytes"], facts["alive"], facts["peak"]), "bytes: allocated, alive, peak")
    for site in allocations["sites"]:
        equal(site["name"], "aten::empty", "operator")
        check("make_here" in site["at"], "line", site)
        equal(site["only_grows"], False, site)
    # the tracks and Kineto's events agree
    events = instants(trace)
    equal(len(events), facts["allocations"] + facts["frees"], "events")
    equal(sum(e["args"]["Bytes"] for e in events), facts["alive"], "bytes in all events")
    equal(max(e["args"]["Total Allocated"] for e in events), facts["peak"], "most that was allocated")
    track = counters(trace, "PyTorch host memory")
    check([b for _, b in track] == [e["args"]["Total Allocated"] for e in events], "track", track[:9], events[:9])
    equal({(e["args"]["Device Type"], e["args"]["Device Id"], e["args"]["Total Reserved"]) for e in events},
          {(0, -1, 0)}, "device")
    by_address = collections.Counter()
    for e in events:
        by_address[e["args"]["Addr"]] += e["args"]["Bytes"]
        check(by_address[e["args"]["Addr"]] >= 0, "freed before it was allocated", e)
    ids = {e["args"]["External id"]: e["name"] for e in trace.spans}
    equal({ids[e["args"]["External id"]] for e in events if e["args"]["Bytes"] > 0}, {"aten::empty"}, "operators")
    equal(len({e["tid"] for e in events}), 2, "threads")
    equal({e["tid"] for e in events if e["args"]["Bytes"] > 0}, {e["pid"] for e in events}, "who allocated")


@case
def the_same_as_pytorchs_profiler(folder):
    """Its sizes, in its order, on a program that does the same each time. It sees its own thread only."""
    need_torch()
    trace, _, _ = recorded(folder, "known", "-e", "!torch")
    done = run([PYTHON, PROGRAM, "known", "--out", f"{folder}/facts", "--profile", f"{folder}/profile"])
    equal(done.returncode, 0, done.stderr)
    got, wanted = [e["args"]["Bytes"] for e in instants(trace) if e["tid"] == e["pid"]], truth(f"{folder}/profile")
    check(len(wanted) > 1000 and got == wanted, "bytes of each allocation and free", len(got), len(wanted))
    check(all("External id" not in e["args"] for e in instants(trace)), "no operators were asked for")


def grown(summary):
    return [s for s in summary["allocations"]["sites"] if s["only_grows"]]


def bytes_a_second(facts):
    """By least squares over the program's own times, without the eighth in which it starts and the sixteenth in which it ends:
    on a busy machine it keeps its tensors at no even pace."""
    kept, points = facts["kept_at"], 64
    piece = (facts["ends_at"] - kept[0]) / points
    at = range(points // 8, points - points // 16)
    bytes_by_then = [facts["alive"] / len(kept) * bisect.bisect_left(kept, kept[0] + i * piece) for i in at]
    return statistics.linear_regression(at, bytes_by_then).slope / piece


@case
def a_leak_is_named_with_its_line(folder):
    need_torch()
    for seconds in (4, 8):  # its end, in which nothing grows, takes 0.5 s and on a busy machine more
        summary, facts = summarised(folder, "leak", "--python", seconds=seconds)
        if grown(summary):
            break
    leak, = grown(summary)
    equal(leak["at"], facts["lines"]["leak"], "line")
    equal(leak["alive_bytes"], facts["alive"], "bytes that it has leaked")
    slope = bytes_a_second(facts)
    check(abs(leak["bytes_a_second"] - slope) < 0.15 * slope, "slope", leak, slope)
    check(leak["bytes_a_second_low"] < leak["bytes_a_second"] < leak["bytes_a_second_high"], "interval", leak)
    table = xsptrace("export", f"{folder}/leak.xspt").stdout
    check(re.search(rf"^leak\? only grows: aten::\S+ at {re.escape(leak['at'])}, by .* a second \(.* to .*\): .* in .*"
                    r"blocks are alive$", table, re.M), "does not name it", table)


@case
def a_clean_program_leaks_nothing(folder):
    need_torch()
    summary, _ = summarised(folder, "clean", "--python")
    equal(grown(summary), [], "what only grows")
    check(summary["allocations"]["pools"][0]["allocations"] > 1000, "the program does too little", summary)
    table = xsptrace("export", f"{folder}/clean.xspt").stdout
    check("only grows" not in table and "PyTorch's host memory, allocated since the recording began" in table,
          "summary", table)


@case
def memory_of_devices_by_what_their_allocator_reports(folder):
    need_torch()
    trace, summary, _ = recorded(folder, "device")
    pool, = summary["allocations"]["pools"]
    equal({k: v for k, v in pool.items() if k != "pid"}, {"device_type": 1, "device": 2, "peak_bytes": 4608, "end_bytes": 512, "allocated_bytes": 4608,
                 "allocations": 2, "frees": 1, "unknown_frees": 1}, "pool")
    equal([(e["args"]["Bytes"], e["args"]["Addr"], e["args"]["Total Allocated"], e["args"]["Total Reserved"],
            e["args"]["Device Type"], e["args"]["Device Id"]) for e in instants(trace)],
          [(4096, 0x7000, 10096, 20000, 1, 2), (512, 0x9000, 10608, 20000, 1, 2),
           (-4096, 0x7000, 6512, 20000, 1, 2)], "events")
    equal([b for _, b in counters(trace, "PyTorch device memory 2")], [10096, 10608, 6512], "track")


@case
def what_is_not_known_is_not_told(folder):
    """With lost events, and with windows of the brake, the output says that it is not known what is alive."""
    need_torch()
    child = start_ready([PYTHON, PROGRAM, "leak", "--wait", "--out", f"{folder}/facts", "--seconds", 3])
    with Recording(folder, "-p", child.pid, "--memory", "--max-overhead", "1", "-o", f"{folder}/w.xspt") as r:
        child.send_signal(signal.SIGUSR1)
        finish(child, 60)
        r.wait(seconds=60)
    allocations = summary_of(f"{folder}/w.xspt")["allocations"]
    check(all("end_bytes" not in p and "peak_bytes" not in p for p in allocations["pools"]), "pools", allocations)
    check(not any(s["only_grows"] or "alive" in s for s in allocations["sites"]), "sites", allocations)
    table = xsptrace("export", "--summary", f"{folder}/w.xspt", "-o", f"{folder}/w.json").stdout
    check("what is alive is not known: between the windows of --max-overhead" in table, "not said", table)
    equal(counters(Trace(f"{folder}/w.json"), "PyTorch host memory"), [], "a track of what is not known")


@case
def wrong_use(folder):
    done = xsptrace("-p", os.getpid(), "--memory", "--profile", status=USAGE)
    check("--profile attaches nothing" in done.stderr, "message", done.stderr)
    done = xsptrace("-p", os.getpid(), "--memory", "--min-duration", "1ms", status=USAGE)
    check("--memory" in done.stderr, "message", done.stderr)
    done = xsptrace("-p", os.getpid(), "--memory", "--comm", "python3", status=USAGE)
    check("--memory needs all threads" in done.stderr, "message", done.stderr)


MODULES = """
import signal, sys, time, torch
kept = []
class Keeper(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
    def forward(self, x):
        kept.append(torch.empty(self.size, dtype=torch.uint8))
        return x
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.small = Keeper(1000)
        self.layers = torch.nn.ModuleList([Keeper(5000), Keeper(9000)])
    def forward(self, x):
        for layer in (self.small, *self.layers):
            x = layer(x)
        return x
net = Net()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", file=sys.stderr, flush=True)
signal.sigwait({signal.SIGUSR1})
for i in range(40):
    net(torch.empty(4))
    time.sleep(0.02)
import os
os._exit(0)
"""


@case
def alive_by_module(folder):
    """One line of Python, called by three modules, each of which keeps what it makes."""
    need_torch()
    with open(f"{folder}/modules.py", "w", encoding="utf-8") as f:
        f.write(MODULES)
    child = start_ready([PYTHON, f"{folder}/modules.py"])
    with Recording(folder, "-p", child.pid, "--memory", "--python", "-o", f"{folder}/m.xspt") as r:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child, 60), 0, "status of the program")
        r.wait(seconds=60)
    sites = [s for s in summary_of(f"{folder}/m.xspt")["allocations"]["sites"] if "Keeper.forward" in s.get("at", "")]
    # the first stacks of an object's are met before its names are known
    equal(sum(s["alive"] for s in sites), 3 * 40, "alive")
    by_module = {s["module"]: s for s in sites if "module" in s}
    equal(set(by_module), {"Net_0.small", "Net_0.layers.0", "Net_0.layers.1"}, "modules")
    for module, size in (("Net_0.small", 1000), ("Net_0.layers.0", 5000), ("Net_0.layers.1", 9000)):
        site = by_module[module]
        check(20 <= site["alive"] <= 40 and site["alive_bytes"] == size * site["alive"], module, sites)
    table = xsptrace("export", f"{folder}/m.xspt").stdout
    check(re.search(r"aten::empty at modules.py:\d+ Keeper.forward in Net_0.layers.1\n", table), "the table", table)


if __name__ == "__main__":
    main()
