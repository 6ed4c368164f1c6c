#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is on without being asked for (--waits, --python, --sample): where something is traced, as far as the budget allows, and not where others
would pay for it. Most other files run without (harness.py, AS_ASKED); those with main(declined=...) with it."""
import ctypes
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import time

from harness import (NO_BRAKE, NO_MATCH, OK, TABLE, XSPTRACE, Skip, Trace, alive, case, check, equal, main, need_torch, run,
                     start, start_ready, truth, wait_for, workload, xsptrace)

OFF = ["--waits=off", "--python=off", "--sample=off"]


def as_by_default(said):
    """Not where others that run here keep --waits off: not_where_bystanders_pay() has that."""
    if re.search(r"changes threads \d+ times a second", said):
        raise Skip("other programs change threads too often")
    return said


def record(*arguments, status=OK, busy=False, **options):
    """As a user would, with the table at the end."""
    done = run([XSPTRACE, TABLE, *arguments], **options)
    equal(done.returncode, status, f"status: {done.stderr}")
    if not busy:
        as_by_default(done.stderr)
    return done


def info_of(capture):
    """What it says of itself, by these keys."""
    keys = ("waits", "samples", "waits ended early", "lines of Python ended early", "samples ended early")
    return dict(re.findall(rf"^({'|'.join(keys)}) +(?!ended early)(.*)$", xsptrace("info", capture).stdout, re.M))


def states_of(trace):
    return [e for e in trace.json["traceEvents"] if e.get("cat") == "thread_state"]


@case(quiet="what is on where nothing else switches threads")
def waits_are_on(folder):
    """With a matching function; their figures are those of each thread itself. Options turn them on or off."""
    def waits(*options):
        facts = f"{folder}/facts"
        done = record(*NO_BRAKE, *options, "-e", "waits:waits_call", "-o", f"{folder}/t.json", "-o", f"{folder}/t.xspt", "--",
                      workload("waits"), "--out", facts)
        return done, Trace(f"{folder}/t.json"), truth(facts)

    done, trace, facts = waits()
    check("tracing 1 function of waits so far; waits and samples too" in done.stderr, "not said", done.stderr)
    threads = {t["name"]: t for t in trace.json["xsptrace_threads"]}
    for name, wanted in (("w_sleeps", 200e6), ("w_reads", facts["threads"]["w_reads"]["waited_ns"])):
        blocked = sum(threads[name]["blocked_ns"].values())
        check(wanted - threads[name]["runnable_ns"] - 2e6 <= blocked <= wanted + 100e6, name, threads[name], wanted)
    check(any("cpu_time (us)" in e["args"] for e in trace.spans), "no CPU time of spans")
    for options in (OFF, ["-q", *OFF]):
        done, trace, _ = waits(*options)
        check("--waits" not in done.stderr and not states_of(trace), "they are on all the same", done.stderr)
        equal(info_of(f"{folder}/t.xspt")["waits"], "off", "what the capture says")
    done, trace, _ = waits("--waits=1s")
    check("xsptrace_threads" in trace.json, "what was asked for", done.stderr)
    # each wait with an event has a stack, shorter ones have none; apart from threads' first and last, none is that long
    _, trace, facts = waits("--waits=1s", "--wait-stacks")
    told = [s for s in states_of(trace) if s["name"].startswith("Blocked")]
    check(len(told) <= 2 * len(facts["threads"]), "shorter waits than were asked for", len(told))


@case(quiet="what is on where nothing else switches threads")
def short_by_default(folder):
    """Threads without news have no row; one with spans that mostly waits has one."""
    def summary(*options):
        return record(*NO_BRAKE, *options, "-e", "hot:hot_*", "-o", f"{folder}/t.json", "--", workload("hot"), "--threads", 1,
                      "--calls", 300, "--rate", 1000, "frame").stdout

    check(not re.search(r"^(thread +time| *samples +on CPU)", summary(*OFF), re.M), "a table that was declined")
    rows = [r for r in re.findall(r"^hot.*\(\d+\) +\d.*$", summary(), re.M) if "busy thread" not in r]
    equal(len(rows), 1, f"rows of threads with something to say: {rows}")
    check("sleep" in rows[0], "what it waits for", rows)
    check(len(re.findall(r"^hot.*\(\d+\) +\d.*$", summary("--waits"), re.M)) > 1, "all of them if they are asked for")
    check(len(re.findall(r"^hot.*\(\d+\) +\d.*$", summary("--rows", "all"), re.M)) > 1, "all of them with --rows all", summary("--rows", "all"))


@case
def not_where_nothing_matches(folder):
    """Beside nothing there is nothing: the same errors, and samples alone where samples are asked for."""
    child = start_ready([workload("hot"), "--wait", "--threads", 1, "--calls", 1])
    record("-p", child.pid, "-e", "hot:nobody_*", "-o", f"{folder}/t.xspt", status=NO_MATCH)
    record("-e", "hot:nobody_*", "-o", f"{folder}/t.xspt", "--", workload("hot"), "--threads", 1, "--calls", 1, status=NO_MATCH)
    check(not os.path.exists(f"{folder}/t.xspt"), "something was written")
    done = record("--sample", "-p", child.pid, "-d", 0.2, "-o", f"{folder}/s.xspt")
    equal(info_of(f"{folder}/s.xspt")["waits"], "off", "beside --sample alone")
    check("profiling: samples;" in done.stderr, "said", done.stderr)


PAYS = 36000  # switches a second of each CPU from which on others would pay: --waits stays off (user/record/recording.c)


def switching(cpu):
    """Two threads that hand a byte to and fro, on one CPU: some 100,000 switches a second and more."""
    code = ("import os, threading\n"
            f"os.sched_setaffinity(0, {{{cpu}}})\n"
            "a, b, parent = os.pipe(), os.pipe(), os.getpid()\n"
            "if os.fork():\n while True: os.write(a[1], b'x'), os.read(b[0], 1)\n"
            "import ctypes; ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG, SIGKILL
            "if os.getppid() != parent: os._exit(0)\n"  # who had ended before
            "while True: os.read(a[0], 1), os.write(b[1], b'x')\n")
    return start([sys.executable, "-S", "-c", code])


def switches_a_second():
    def count():
        with open("/proc/stat", encoding="ascii") as f:
            return int(re.search(r"^ctxt (\d+)", f.read(), re.M)[1])
    begun, before = time.monotonic(), count()
    time.sleep(0.3)
    return (count() - before) / (time.monotonic() - begun) / os.cpu_count()


def switch_often(others):
    """A pair on every second CPU, else on each: far more than it takes, whatever has the CPUs beside. Some virtual machines cannot:
    there a switch of threads takes tens of microseconds."""
    cpus = sorted(os.sched_getaffinity(0))
    for some in (cpus[::2], cpus[1::2]):
        others += [switching(cpu) for cpu in some]
        for _ in range(4):
            if switches_a_second() > 2 * PAYS:
                return
    if switches_a_second() > 1.5 * PAYS:
        return
    raise Skip("the threads of this machine switch too slowly to bother others")


@case(quiet="the price of waits with 60,000 switches a second")
def not_where_bystanders_pay(folder):
    """A machine whose threads switch all the time, though not those that are recorded."""
    child = start_ready([workload("hot"), "--wait", "--threads", 1, "--calls", 100000, "--rate", 100])
    child.send_signal(signal.SIGUSR1)
    others = []
    switch_often(others)
    options = ["-p", child.pid, "-e", "hot:hot_*", "-d", 0.5, "-o", f"{folder}/t.json", "-o", f"{folder}/t.xspt"]
    done = record(*options, busy=True)
    check(re.search(r"changes threads \d+ times a second.*--waits asks for it", done.stderr), "not said", done.stderr)
    check("; waits" not in done.stderr, "said to be on all the same", done.stderr)
    equal(info_of(f"{folder}/t.xspt")["waits"], "off", "what the capture says")
    equal(states_of(Trace(f"{folder}/t.json")), [], "states")
    done = record(*options, "--waits")
    check("changes threads" not in done.stderr, "what was asked for is declined", done.stderr)
    check(states_of(Trace(f"{folder}/t.json")), "no states")
    # a bare -p that becomes --profile is no wish either; --profile is
    done = record("-p", child.pid, "-d", 0.5, "-o", f"{folder}/t.xspt", busy=True)
    check("samples alone are recorded" in done.stderr and "profiling: samples;" in done.stderr, "not said", done.stderr)
    info = info_of(f"{folder}/t.xspt")
    check(info["waits"] == "off" and info["samples"].endswith(" 99"), "what the capture says", info)
    done = record("--profile", "-p", child.pid, "-d", 0.5, "-o", f"{folder}/t.xspt")
    check("changes threads" not in done.stderr and info_of(f"{folder}/t.xspt")["waits"] != "off", "--profile", done.stderr)
    check(all(alive(o.pid) for o in others), "a bystander has ended")


@case(quiet="the price of waits with 60,000 switches a second", long="looks for where a limit lies")
def where_bystanders_begin_to_pay(folder):
    """They switch all the time from some moment of the recording on: then --waits ends, and the output says so; if asked for it stays."""
    child = start_ready([workload("hot"), "--wait", "--threads", 1, "--calls", 100000, "--rate", 100])
    child.send_signal(signal.SIGUSR1)
    others = []

    def recorded(until, *options):
        for o in others:
            o.send_signal(signal.SIGSTOP)
        wait_for(lambda: switches_a_second() < PAYS / 2, 10, "a quiet machine")
        with open(f"{folder}/said", "wb") as log:
            tracer = start([XSPTRACE, TABLE, *options, "-p", child.pid, "-e", "hot:hot_*", "-o", f"{folder}/t.json",
                            "-o", f"{folder}/t.xspt"], cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def said():
            with open(f"{folder}/said", encoding="utf-8") as f:
                return f.read()
        wait_for(lambda: "tracing" in said(), 20, "probes")
        if others:
            for o in others:
                o.send_signal(signal.SIGCONT)
        else:
            switch_often(others)
        until(said)
        time.sleep(0.7)
        for o in others:  # Linux 6.18 may leave its own workers no CPU beside them, and closing a link waits for one
            o.send_signal(signal.SIGSTOP)
        tracer.send_signal(signal.SIGINT)
        equal(tracer.wait(timeout=60), OK, said())
        return said()

    said = recorded(lambda said: wait_for(lambda: "ends after" in said(), 10, "the end of --waits"))
    check(re.search(r"--waits, which is on by default, ends after .*this machine changes threads \d+ times a second", said), "not said",
          said)
    check("this machine changes threads" in info_of(f"{folder}/t.xspt")["waits ended early"], "what the capture says")
    trace = Trace(f"{folder}/t.json")
    until = max(e["ts"] + e["dur"] for e in states_of(trace))
    check(until < max(e["ts"] for e in trace.spans) - 5e5, "states until the end")
    said = recorded(lambda _: time.sleep(2.5), "--waits")  # it looks once a second, and acts when it has seen them twice
    check("ends after" not in said, "what was asked for ends", said)
    check(all(alive(o.pid) for o in others), "a bystander has ended")


@case(quiet="the brake's budget")
def waits_go_before_functions(folder):
    """A thread that sleeps between its calls, with a budget that both do not fit into: first --waits ends, and that is said;
    what comes later has no time on a CPU, and what was before has."""
    facts, budget = f"{folder}/facts", 0.5
    command = ["-e", "hot:hot_*", "-o", f"{folder}/t.json", "-o", f"{folder}/t.xspt", "--", workload("hot"), "--threads", 1,
               "--seconds", 2.5, "--rate", 2000, "--out", facts, "frame", "naps"]
    done = record("-v", "--max-overhead", budget, *command)
    price = re.search(r"emulated ([\d.]+) us a call", done.stderr)
    if price and float(price[1]) > 5:
        raise Skip(f"a traced call takes {price[1]} us here: the functions alone do not fit into the budget")
    said = done.stderr.find("--waits, which is on by default, ends after")
    check(said >= 0, "not said", done.stderr)
    check("released after" not in done.stderr[:said], "a function went before", done.stderr)
    info = info_of(f"{folder}/t.xspt")
    check(re.match(r"after [\d.]+ m?s, as (thread|process) \d+ was slowed by (about|more than) [\d.]+ %.*--waits asks for it", info["waits ended early"]),
          "what the capture says", info)
    trace = Trace(f"{folder}/t.json")
    check("waits ended early" in trace.json["xsptrace_capture"], "the trace's metadata")
    until = max(e["ts"] + e["dur"] for e in states_of(trace))
    early = [e for e in trace.spans if e["ts"] + e["dur"] < until - 1000]
    late = [e for e in trace.spans if e["ts"] > until]
    check(early and any("cpu_time (us)" in e["args"] for e in early), "before they ended", len(early))
    check(late and not any("cpu_time (us)" in e["args"] for e in late), "after they ended", len(late))
    check("waits ended early: after" in done.stdout, "summary", done.stdout)
    # asked for, they stay
    done = record("--max-overhead", budget, "--waits", *command)
    check("--waits" not in done.stderr, "what was asked for", done.stderr)
    trace = Trace(f"{folder}/t.json")
    check(max(e["ts"] + e["dur"] for e in states_of(trace)) > max(e["ts"] for e in trace.spans) - 1e5, "states until the end")
    # and without a budget everything does
    done = record(*NO_BRAKE, *command)
    check("ends after" not in done.stderr, "without a budget", done.stderr)


def switchers(folder, budget, *options, mode=()):
    """Records it to its end; its threads existed before and hit nothing. Returns the output, and the threads by number."""
    child = start_ready([workload("switchers"), "--wait", "--seconds", 2.5, "--rate", 10, "--out", f"{folder}/facts", *mode])
    with open(f"{folder}/said", "wb") as log:
        tracer = start([XSPTRACE, TABLE, "-p", child.pid, "-e", "switchers:switchers_call", "--max-overhead", budget, *options,
                        "-o", f"{folder}/t.xspt"], cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def said():
        with open(f"{folder}/said", encoding="utf-8") as f:
            return f.read()
    wait_for(lambda: "tracing" in said(), 20, "probes")
    child.send_signal(signal.SIGUSR1)
    equal(tracer.wait(timeout=60), OK, said())
    return as_by_default(said()), {p["tid"]: p for p in truth(f"{folder}/facts")["players"]}


def slowed_most(said, players):
    """One of them, or their sum if it is their process, which waits as one thread does; and by how many percent."""
    worst = re.search(r"slowed most, estimated: (?:at least )?([\d.]+) % \((thread|process) (\d+);", said)
    check(worst and (worst[2] == "process" or int(worst[3]) in players), "they are not in it", said, players)
    of = list(players.values()) if worst[2] == "process" else [players[int(worst[3])]]
    player = {key: sum(p[key] for p in of) for key in of[0]}
    return player | {"lived_ns": of[0]["lived_ns"], "queued_ns": player["queued_ns"] / len(of)}, float(worst[1])


@case
def waits_of_threads_that_hit_nothing(folder):
    """Their own count of changes says what --waits takes of them, and a quarter of the time that they wait counts as their own:
    so much is in the estimate, and beyond the budget it ends."""
    said, players = switchers(folder, 1000)
    player, slowed = slowed_most(said, players)
    spare = player["lived_ns"] - player["queued_ns"] - player["cpu_ns"]
    cost, own = 700 * player["switches"], player["cpu_ns"] + 0.25 * spare
    least = 100 * cost / (own - cost)
    check(0.7 * least < slowed < 2 * least, "the estimate", slowed, least, player)
    check("waits ended early" not in info_of(f"{folder}/t.xspt"), "within the budget", said)
    said, players = switchers(folder, 0.1 * least)  # where caches are warm a change costs a third
    ended = info_of(f"{folder}/t.xspt").get("waits ended early", "")
    check(re.search(r"(thread|process) \d+ was slowed", ended), "not braked", said, players, least)


@case(quiet="the brake's budget")
def samples_of_threads_that_hit_nothing(folder):
    """They run all the time: what 99 samples a second take of them is in the estimate, and beyond the budget they end."""
    said, players = switchers(folder, 1000, "--waits=off", mode=["spin"])
    if slowed_most(said, players)[1] < 0.2:
        raise Skip("a sample costs less than what a budget can be")
    said, players = switchers(folder, 0.1, "--waits=off", mode=["spin"])
    ended = info_of(f"{folder}/t.xspt").get("samples ended early", "")
    check(re.search(r"(thread|process) \d+ was slowed", ended), "not braked", said, players)


@case
def samples_are_on(folder):
    """Beside spans, of which a flame graph is to be had as well; a short table."""
    def spin(*options):
        out = record(*NO_BRAKE, *options, "-e", "samples:samples_round", "-o", f"{folder}/t.folded", "-o", f"{folder}/t.xspt",
                     "--", workload("samples"), "--seconds", 1, busy=True)
        return out, info_of(f"{folder}/t.xspt")

    done, info = spin()
    check("waits and samples too" in done.stderr, "not said", done.stderr)
    check(re.match(r"(cycles|cpu-clock) 99", info["samples"]), "what the capture says", info)
    table = done.stdout[done.stdout.index("samples     on CPU"):]
    check(len(re.findall(r"^ +\d+ +[\d.]+ [mnu]?s +[\d.]+ %.*$", table, re.M)) <= 5, "a long table", done.stdout)
    xsptrace("export", f"{folder}/t.xspt", "-o", f"{folder}/w.folded", "--weight", "wall")
    with open(f"{folder}/w.folded", encoding="utf-8") as f:
        folded = f.read()
    check("[" not in folded and "samples_round" in folded, "a flame graph of spans", folded[:400])
    xsptrace("export", f"{folder}/t.xspt", "-o", f"{folder}/s.folded", "--weight", "samples")
    done, info = spin("--sample=off")
    equal(info["samples"], "off", "declined")
    check("samples     on CPU" not in done.stdout, "a table of none", done.stdout)
    done = record(*NO_BRAKE, "-e", "hot:hot_*", "-o", f"{folder}/n.xspt", "--", workload("hot"), "--threads", 1, "--calls", 1, busy=True)
    check("samples: 0," not in done.stdout, "nothing is said of no sample", done.stdout)


def no_perf_events():
    """In a child, before its exec: perf_event_open() is refused to it and its children from now on."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    # seccomp_data.nr; is it that? EPERM : go on (linux/filter.h, linux/seccomp.h)
    code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7fff0000)
    rows = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(rows))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(program, len(program))):
        raise OSError(ctypes.get_errno(), "seccomp")


@case(quiet="what is on where nothing else switches threads")
def what_the_kernel_refuses_is_left_out(folder):
    """Without perf events there are no samples: no error, and a line for who asks; but an error if samples are asked for."""
    command = ["-e", "hot:hot_*", "-o", f"{folder}/t.xspt", "--", workload("hot"), "--threads", 1, "--calls", 10]
    said = record("-v", *NO_BRAKE, *command, preexec_fn=no_perf_events).stderr
    check(re.search(r"does not have what --sample needs: left out", said), "not said with -v", said)
    check("; waits too" in said, "what is left", said)
    info = info_of(f"{folder}/t.xspt")
    equal((info["samples"], info["waits"]), ("off", "10000"), "what the capture says")
    said = record(*NO_BRAKE, *command, preexec_fn=no_perf_events).stderr
    check("left out" not in said and "--sample" not in said, "said to all", said)
    done = run([XSPTRACE, "--sample", *command], preexec_fn=no_perf_events)
    check(done.returncode not in (OK, NO_MATCH), "asked for, it is no error", done.returncode, done.stderr)


# ---- lines of Python ----

TORCH = "/usr/bin/python3"
# Many operators that do nothing; who calls them is written down.
SMALL = """
import json, sys, time, torch
torch.set_num_threads(1)
x = torch.ones(4)
print("ready", flush=True)
sys.stdin.readline()
def calls_it(n):
    for _ in range(n):
        x.add(1)
begun, n = time.monotonic(), 0
while time.monotonic() - begun < float(sys.argv[1]):
    burst = 100 if len(sys.argv) == 2 else 10  # with pauses it stays far below what the brake allows on any machine
    calls_it(burst)
    n += burst
    if len(sys.argv) > 2: time.sleep(float(sys.argv[2]))
print(n)
"""


def small(folder, seconds, pause=None, options=()):
    """Records it from when it is ready on; what xsptrace said, and how many operators it called."""
    need_torch()
    with open(f"{folder}/small.py", "w", encoding="ascii") as f:
        f.write(SMALL)
    child = start([TORCH, f"{folder}/small.py", seconds, *([pause] if pause else [])], stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    with open(f"{folder}/said", "wb") as log:
        tracer = start([XSPTRACE, TABLE, "-p", child.pid, *options, "-o", f"{folder}/t.json", "-o", f"{folder}/t.xspt"], cwd=folder,
                       stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def said():
        with open(f"{folder}/said", encoding="utf-8") as f:
            return f.read()
    wait_for(lambda: "tracing" in said(), 20, "probes")
    child.stdin.write("\n")
    child.stdin.flush()
    equal(tracer.wait(timeout=60), OK, said())
    return as_by_default(said()), int(child.stdout.readline())


@case(quiet="what is on where nothing else switches threads")
def python_is_on_for_torch(folder):
    """Each operator has the line that called it, and none if that is declined."""
    said, calls = small(folder, 1, 0.02)
    check("waits, samples and Python lines too" in said, "not said", said)
    trace = Trace(f"{folder}/t.json")
    adds = [e for e in trace.spans if e["name"] == "aten::add"]
    check(len(adds) >= 0.99 * calls, "operators", len(adds), calls)
    of_line = [e for e in adds if re.search(r"small.py\(\d+\): calls_it", e["args"].get("Call stack", ""))]
    if len(of_line) != len(adds):
        raise AssertionError(f"operators with the line that called them: {len(of_line)} of {len(adds)}\n"
                             f"{adds[0]}\n{adds[-1]}\n{said}\n{info_of(f'{folder}/t.xspt')}")
    check("ended early" not in "".join(info_of(f"{folder}/t.xspt")), "dropped", said)
    check("calls_it" in xsptrace("export", f"{folder}/t.xspt", "--summary", "--by", "line").stdout, "by line")
    said, _ = small(folder, 0.5, 0.02, OFF)
    check("--python" not in said, "said", said)
    check(not any("Call stack" in e["args"] for e in Trace(f"{folder}/t.json").spans), "declined")


@case(quiet="the brake's budget", long="12 s until all of it is off")
def python_goes_first(folder):
    """Operators that are called without pause: their lines are what goes, before windows begin; tables by line are of the
    time before. What is asked for stays."""
    said, _ = small(folder, 4)
    ends, windows = (said.find(w) for w in ("--python, which is on by default, ends after", "goes on in windows"))
    check(0 <= ends and (windows < 0 or ends < windows), "it does not go first", said)
    info = info_of(f"{folder}/t.xspt")
    check(re.match(r"after .*--python asks for it", info["lines of Python ended early"]), "what the capture says", info)
    trace = Trace(f"{folder}/t.json")
    begin = min(e["ts"] for e in trace.spans)
    lines = [e["ts"] for e in trace.spans if "Call stack" in e["args"]]
    none = [e["ts"] for e in trace.spans if "Call stack" not in e["args"] and e["name"] == "aten::add"]
    check(lines and none and max(lines) < max(none), "when they ended", len(lines), len(none))
    table = xsptrace("export", f"{folder}/t.xspt", "--summary", "--by", "line").stdout
    until = re.search(r"^of the first ([\d.]+) (m?s):$", table, re.M)
    check(until, "the table does not say of which time it is", table)
    seconds = float(until[1]) * (1 if until[2] == "s" else 1e-3)
    check(abs(seconds - (max(lines) - begin) * 1e-6) < 0.1, "when", until[0], max(lines) - begin)
    rows = re.findall(r"^ *([\d,]+) .*(calls_it|no line of Python)", table[until.end():].split("\n\n")[0], re.M)
    counted = {name: int(n.replace(",", "")) for n, name in rows}
    check(abs(counted["calls_it"] - sum(e["name"] == "aten::add" and "Call stack" in e["args"] for e in trace.spans)) <= 1,
          "calls by line", counted, len(lines))
    check(counted.get("no line of Python", 0) < 0.05 * counted["calls_it"] + 10, "later ones are in it", table)
    said, _ = small(folder, 2, options=["--python"])
    check("ends after" not in said.replace("--waits, which is on by default, ends after", ""), "what was asked for", said)
    check("lines of Python ended early" not in info_of(f"{folder}/t.xspt"), "what was asked for", said)


if __name__ == "__main__":
    main()
