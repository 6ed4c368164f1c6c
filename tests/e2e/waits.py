#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--waits against what the kernel tells each thread of itself (/proc/thread-self/schedstat, its CPU clock), and
against what the program made its threads wait for (tests/workloads/waits.c)."""
import collections
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

from harness import (EXTRA, ROOT, Recording, Skip, Trace, case, check, equal, main, record_launched, run,
                     start, start_ready, wait_for, workload, xsptrace)

MS = 1_000_000


def threads_of(trace):
    return {t["name"]: t for t in trace.json["xsptrace_threads"]}


def states_of(trace):
    """{tid of the thread: [(start, end, name, args)...]} in order, ns."""
    rows = {e["tid"]: int(re.match(r"thread (\d+)", e["args"]["name"])[1])
            for e in trace.json["traceEvents"]
            if e["ph"] == "M" and e["name"] == "thread_name" and e["args"]["name"].endswith(" states")}
    found = collections.defaultdict(list)
    for e in trace.json["traceEvents"]:
        if e["ph"] == "X" and e["cat"] == "thread_state":
            begin = round(e["ts"] * 1000)
            found[rows[e["tid"]]].append((begin, begin + round(e["dur"] * 1000), e["name"], e["args"]))
    return {tid: sorted(states, key=lambda s: s[:2]) for tid, states in found.items()}


def near(got, wanted, what, share=0.03, ns=3 * MS):
    check(abs(got - wanted) <= max(share * wanted, ns), f"{what}: {got / MS:.3f} ms, {wanted / MS:.3f} expected")


def stolen():
    """By a hypervisor, of all CPUs, ns: the kernel subtracts it from a thread's time; a clock does not."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * 10 * MS


def noise(switches, stolen_before):
    """The most that two clocks may differ: the kernel reads its own some us before and after it reports a switch."""
    return 3 * MS + 15_000 * switches + (stolen() - stolen_before) + 10 * MS


def untold(states):
    """Waits whose end was not told: the kernel of the development machine runs no program while some tasks of its own
    are on the CPU, and an interrupt may come just then. What of them was runnable nobody knows."""
    return sum(end - begin for begin, end, name, args in states
               if name.startswith("Blocked") and "woken by" not in args)


def check_sums(trace):
    for t in trace.json["xsptrace_threads"]:
        equal(t["running_ns"] + t["runnable_ns"] + sum(t["blocked_ns"].values()), t["time_ns"],
              f"running, runnable and blocked of {t['name']}")


def check_states(trace):
    """A row of states has no holes, overlaps nowhere, and comes to what the sums say."""
    by_tid = {t["tid"]: t for t in trace.json["xsptrace_threads"]}
    for tid, states in states_of(trace).items():
        for before, after in zip(states, states[1:]):
            check(abs(before[1] - after[0]) <= 2, f"states of {tid}", before, after)
        length = states[-1][1] - states[0][0]
        # the recording's window is a little longer than the time in which waits are recorded
        near(length, by_tid[tid]["time_ns"], f"states of {tid}", ns=30 * MS)


NAPS = """
import threading, time
def naps():
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        time.sleep(20e-6)
    own.append((threading.get_native_id(), time.thread_time_ns()))
own = []
threads = [threading.Thread(target=naps) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
for tid, ns in own: print(tid, ns)
"""


@case(quiet="CPU time against the thread's own clock")
def short_naps(folder):
    """The kernel counts a thread's CPU time from the wakeup that preempts another one, not from the switch."""
    out = f"{folder}/naps.json"
    done = xsptrace("-q", "--waits", "--sample=off", "-o", out, "--", sys.executable, "-c", NAPS)
    trace = Trace(out)
    found = {t["tid"]: t for t in trace.json["xsptrace_threads"]}
    check_sums(trace)
    naps = re.findall(r"(\d+) (\d+)", done.stdout)
    equal(len(naps), 2, "threads")
    for tid, own in naps:
        near(found[int(tid)]["running_ns"], int(own), f"thread {tid} on CPU", share=0.05)


@case(quiet="times against the thread's own clock")
def each_thread_as_it_knows_itself(folder):
    before = stolen()
    trace, truth = record_launched(folder, [workload("waits")], "--waits", "-e", "waits:waits_call")
    trace.check_nothing_lost()
    check_sums(trace)
    check_states(trace)
    threads, states = threads_of(trace), states_of(trace)
    for name, own in truth["threads"].items():
        t = threads[name]
        equal(t["tid"], own["tid"], f"tid of {name}")
        check(t["ended"], f"{name} has ended")
        either = noise(t["switches"], before)
        near(t["time_ns"], own["lived_ns"], f"life of {name}", ns=100 * MS + either)
        # it goes on for a while when it has read what the kernel says of it
        either += max(0, t["time_ns"] - own["lived_ns"])
        near(t["running_ns"], own["running_ns"], f"{name} on CPU", ns=either)
        near(t["runnable_ns"], own["runnable_ns"], f"{name} runnable", ns=either + untold(states[own["tid"]]))

    for name, why, wanted in (("w_sleeps", "sleep", 200 * MS), ("w_polls", "poll", 120 * MS),
                              ("w_reads", "pipe", truth["threads"]["w_reads"]["waited_ns"]),
                              ("w_locks", "lock", truth["threads"]["w_locks"]["waited_ns"]),
                              ("w_is_lied_to", "lock", 180 * MS)):
        # as the program sees it, it ends when the thread runs again
        got, runnable = threads[name]["blocked_ns"][why], threads[name]["runnable_ns"]
        check(wanted - runnable - 2 * MS <= got <= wanted + 20 * MS, f"{name} in {why}", got, wanted, runnable)

    spun = [threads[n] for n in ("w_spins", "w_spins2")]
    for t in spun:
        check(t["runnable_ns"] > 0.3 * t["time_ns"], "two on one CPU", t)

    def waits(name, kind):
        return [s for s in states[truth["threads"][name]["tid"]] if s[2] == f"Blocked: {kind}"]

    tids = {name: own["tid"] for name, own in truth["threads"].items()}
    for waiter, mutex in (("w_locks", "mutex"), ("w_robust", "robust")):
        locked = max((w for w in waits(waiter, "lock") if int(w[3]["address"], 16) == truth[mutex]),
                     key=lambda w: w[1] - w[0])
        equal(locked[3].get("held by"), tids["w_holds"], f"who held the {mutex}")
        equal(locked[3].get("woken by"), tids["w_holds"], f"who let the {mutex} go")
    read = max(waits("w_reads", "pipe"), key=lambda w: w[1] - w[0])
    equal(read[3].get("woken by"), tids["w_writes"], "who wrote")
    equal(read[3]["system call"], "read", "system call")
    for w in waits("w_sleeps", "sleep"):
        check(w[3].get("woken by") in ("interrupt", None), "who ends a sleep", w)
    check(any("woken by" in w[3] for n in ("w_sleeps", "w_holds", "w_writes") for w in waits(n, "sleep")),
          "nobody ends any sleep")
    for w in waits("w_is_lied_to", "lock"):
        check("held by" not in w[3], "a holder that is none", w)

    arrows = collections.defaultdict(dict)
    for e in trace.json["traceEvents"]:
        if e["ph"] in "sf" and e["name"] == "wakeup":
            arrows[e["id"]][e["ph"]] = e
    check(arrows and all(len(a) == 2 for a in arrows.values()), "arrows with both ends", arrows)


@case(quiet="times against the thread's own clock")
def cpu_time_of_spans(folder):
    """Of spans with long waits, and with hundreds that are too short for events."""
    for least in ("10us", "0", "1s"):
        before = stolen()
        trace, truth = record_launched(folder, [workload("waits")], f"--waits={least}", "-e",
                                       "waits:waits_call", name=f"least{least}")
        own = truth["threads"]["w_calls"]
        spans = trace.spans
        equal(len(spans), own["calls"], "spans")
        # absent if the kernel had not reported the thread's return yet
        known = [e for e in spans if "cpu_time (us)" in e["args"]]
        for e in known:
            check(e["args"]["cpu_time (us)"] <= e["dur"] + 0.001, "more CPU time than time", e)
        # each return that was not reported takes it from the span that ends next and from the one that begins then
        check(len(known) >= 0.5 * len(spans), "CPU time is known of few spans", len(known), len(spans))
        if len(known) == len(spans):
            near(sum(e["args"]["cpu_time (us)"] for e in spans) * 1000, own["cpu_ns"], f"CPU time, least {least}",
                 ns=noise(threads_of(trace)["w_calls"]["switches"], before))
        states = states_of(trace)[own["tid"]]
        if least == "1s":  # each is too short, and comes before an event of a span
            t = threads_of(trace)["w_calls"]
            near(sum(s[3].get("short waits (us)", 0) for s in states) * 1000, t["time_ns"] - t["running_ns"],
                 "short waits", share=0.1, ns=10 * MS)
        slept = [s for s in states if s[2] == "Blocked: sleep"]
        check((len(slept) == 0) == (least == "1s"), f"waits of at least {least}: {len(slept)}")


@case
def threads_that_were_there_before(folder):
    """They sleep through all of it, or run: each has its row, and its whole time."""
    child = start_ready([workload("sleeper"), "--threads", 3])
    xsptrace(*EXTRA, "--waits", "-e", "sleeper:sleeper_call", "-p", child.pid, "-d", 1, "-o",
             f"{folder}/t.json")
    trace = Trace(f"{folder}/t.json")
    check_sums(trace)
    check_states(trace)
    threads = trace.json["xsptrace_threads"]
    equal(len(threads), 4, "threads")
    for t in threads:
        near(t["time_ns"], trace.json["xsptrace_window"]["duration_ns"], "time", ns=50 * MS)
        check(not t["ended"], "it has not ended")
        # woken, they may wait for a CPU
        near(sum(t["blocked_ns"].values()) + t["runnable_ns"], t["time_ns"], "asleep", share=0.2)


EXECS = """
import os, threading, time
def work():
    print(threading.get_native_id(), flush=True)
    until = time.thread_time() + 0.3
    while time.thread_time() < until:
        pass
    os.execv("/bin/sleep", ["sleep", "0.3"])
threading.Thread(target=work).start()
time.sleep(100)
"""


@case
def exec_by_another_thread_than_the_first(folder):
    """It takes the first one's id; what it did before stays its own."""
    done = xsptrace(*EXTRA, "-q", "--waits", "-o", f"{folder}/e.xspt", "--", sys.executable, "-c", EXECS)
    tid = int(done.stdout.split()[0])
    threads = json.loads(xsptrace("export", f"{folder}/e.xspt", "--summary", "json").stdout)["threads"]
    worker, = [t for t in threads if t["tid"] == tid]
    first, last = [t for t in threads if t["tid"] == t["pid"]]
    check(300 * MS <= worker["running_ns"] < 450 * MS and worker["ended"], "the thread that worked", threads)
    check(first["ended"] and first["blocked_ns"]["sleep"] >= 290 * MS, "the first one slept meanwhile", threads)
    check(last["running_ns"] < 100 * MS and last["blocked_ns"]["sleep"] >= 290 * MS, "the next program slept", threads)
    for t in threads:
        equal(t["running_ns"] + t["runnable_ns"] + sum(t["blocked_ns"].values()), t["time_ns"], "a thread's sums")


@case
def stopped_in_the_middle_of_a_sleep(folder):
    """The kernel then goes on with a call without a name, which is none of another kind."""
    child = start(["sleep", "100"])
    wait_for(lambda: os.readlink(f"/proc/{child.pid}/exe").endswith(("sleep", "coreutils")), 5, "exec")
    with Recording(folder, "--waits", "-p", child.pid, "-o", f"{folder}/t.json") as recording:
        time.sleep(0.3)
        begun = time.monotonic_ns()
        child.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        child.send_signal(signal.SIGCONT)
        stopped = time.monotonic_ns() - begun
        time.sleep(0.2)
        recording.stop()
        recording.wait()
    thread, = Trace(f"{folder}/t.json").json["xsptrace_threads"]
    equal(set(thread["blocked_ns"]), {"sleep", "stopped"}, "what it waited for")
    near(thread["blocked_ns"]["stopped"], stopped, "stopped", ns=100 * MS)


@case
def times_although_events_are_lost(folder):
    """The ring has no room for the waits of two that play ping-pong; the sums are the kernel side's."""
    child = start(["/usr/bin/python3", "-c", "import os, threading\n"
                   "a, b = os.pipe(), os.pipe()\n"
                   "def play(get, put):\n while True: os.read(get, 1), os.write(put, b'x')\n"
                   "threading.Thread(target=play, args=(a[0], b[1]), daemon=True).start()\n"
                   "os.write(a[1], b'x')\nplay(b[0], a[1])"])
    time.sleep(0.3)
    with Recording(folder, "--waits=0", "--buffer", "64K", "-p", child.pid, "-d", 0.8, "-o",
                   f"{folder}/t.json") as recording:
        recording.process.send_signal(signal.SIGSTOP)  # it takes nothing out meanwhile
        time.sleep(0.3)
        recording.process.send_signal(signal.SIGCONT)
        recording.wait()
    trace = Trace(f"{folder}/t.json")
    check(trace.losses["lost_other"] > 0, "nothing was lost", trace.losses)
    check_sums(trace)
    equal(len(trace.json["xsptrace_threads"]), 2, "threads")


@case
def perfetto_reads_states(folder):
    """Each slice is there, and each arrow leads from a state in which one runs to another."""
    consumers = os.path.join(ROOT, "tests/consumers")
    fetched = run([f"{consumers}/fetch"], timeout=120)
    if fetched.returncode:
        raise Skip(fetched.stderr.strip() or "Perfetto's trace processor could not be had")
    trace, _ = record_launched(folder, [workload("waits")], "--waits", "-e", "waits:waits_call", name="t")
    told = run(["node", f"{consumers}/perfetto.mjs", f"{folder}/t.json",
                "select name, value from stats where severity != 'info' and value > 0",
                "select s.name, count(*) n from slice s join thread_track t on s.track_id = t.id group by 1",
                "select a.name a, b.name b, count(*) n from flow f join slice a on f.slice_out = a.id "
                "join slice b on f.slice_in = b.id group by 1, 2"],
               env=os.environ | {"XSPTRACE_CONSUMERS": fetched.stdout.strip()})
    rows = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    check(not [r for r in rows if "value" in r], "Perfetto's complaints", told.stdout, told.stderr)
    ours = collections.Counter(e["name"] for e in trace.json["traceEvents"]
                               if e["ph"] == "X" and e["cat"] == "thread_state")
    theirs = {r["name"]: r["n"] for r in rows if "name" in r and r["name"] in ours}
    equal(theirs, dict(ours), "states")
    arrows = sum(e["ph"] == "s" for e in trace.json["traceEvents"])
    equal([r for r in rows if "a" in r], [{"a": "Running", "b": "Running", "n": arrows}], "arrows")


def schedstat(tid):
    with open(f"/proc/{tid}/schedstat", encoding="ascii") as f:
        return [int(n) for n in f.read().split()]


@case(quiet="times against the server's own clock")
def redis_in_epoll(folder):
    if not os.path.exists("/usr/bin/redis-server"):
        raise Skip("redis-server is not installed")
    server = start(["/usr/bin/redis-server", "--port", 0, "--unixsocket", f"{folder}/s", "--save", "",
                    "--daemonize", "no"], stdout=subprocess.DEVNULL, cwd=folder)
    wait_for(lambda: os.path.exists(f"{folder}/s"), 5, "redis-server")
    with Recording(folder, "--waits", "-p", server.pid, "-o", f"{folder}/t.json",
                   table=f"{folder}/table") as recording:
        before, begun = schedstat(server.pid), time.monotonic_ns()
        time.sleep(1)
        after, ended = schedstat(server.pid), time.monotonic_ns()
        recording.stop()
        recording.wait()
    trace = Trace(f"{folder}/t.json")
    check_sums(trace)
    own = next(t for t in trace.json["xsptrace_threads"] if t["tid"] == server.pid)
    # the recording is a little longer than the time between the two looks
    idle, more = (ended - begun) - (after[0] - before[0]), own["time_ns"] - (ended - begun)
    # on a busy machine it has to wait for a CPU as well, once it is woken
    check(0.97 * idle - own["runnable_ns"] <= own["blocked_ns"]["poll"] <= idle + more, "epoll", own, idle)
    near(own["running_ns"], after[0] - before[0], "on CPU", share=0.2, ns=20 * MS)
    with open(f"{folder}/table", encoding="utf-8") as f:
        table = f.read()
    check(re.search(r"redis-server \(\d+\).* poll ", table), "the table of threads", table)


@case
def stacks_of_waits(folder):
    """Each function of the program that waits, and what called it; of waits that are long enough only."""
    trace, truth = record_launched(folder, [workload("waits")], "--wait-stacks=20ms", "-e", "waits:waits_call",
                                   "-o", f"{folder}/s.xspt")
    trace.check_nothing_lost()
    check_states(trace)
    states = states_of(trace)
    for name, kind in (("w_sleeps", "sleep"), ("w_polls", "poll"), ("w_reads", "pipe"), ("w_locks", "lock"),
                       ("w_holds", "sleep"), ("w_is_lied_to", "lock")):
        long = [s for s in states[truth["threads"][name]["tid"]] if s[2] == f"Blocked: {kind}" and s[1] - s[0] > 20 * MS]
        check(long, f"no long waits of {name}")
        for s in long:
            stack = s[3].get("Call stack", "").split(";")
            # the C library's own functions, as it likes; then the program's
            check(stack.index(name) >= 1 and stack[stack.index(name) + 1] == "run", f"stack of {name}", s)
            equal(stack.count(name), 1, f"{name} in its stack")
    if os.uname().machine == "x86_64":  # stacks that lie: they yield nothing, and missing ones are counted
        lies = [s for s in states[truth["threads"]["w_lies"]["tid"]] if s[2] == "Blocked: sleep"]
        equal([s[3]["Call stack"] for s in lies], ["w_lies", "w_lies"], "stacks of w_lies")
        check(trace.losses["wait_stacks_torn"] >= 1, "torn stacks", trace.losses)
    for own in states.values():
        for s, after in zip(own, own[1:]):  # it lasts until the thread runs again
            end = after[1] if after[2] == "Runnable" else s[1]
            check(end - s[0] > 19 * MS or "Call stack" not in s[3], "a short wait with a stack", s)
    table = xsptrace("export", f"{folder}/s.xspt").stdout
    check(re.search(r"lock 0x.* held by w_holds .*; waited for at w_locks \(in ", table), "the lock's line", table)
    # of the threads with most CPU time
    check(re.search(r"\n    [a-z]+ .* at w_[a-z]+ \(in ", table), "where threads waited", table)


def folded(path):
    """[(frames, ns)...]"""
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n").rsplit(" ", 1) for line in f]
    return [(stack.split(";"), int(ns)) for stack, ns in lines]


SENDS = """
import os, socket, sys, threading, time
folder, size = sys.argv[1], 24 << 20
def named(function):
    def run():
        with open("/proc/thread-self/comm", "w") as f: f.write(function.__name__)
        function()
    return run
@named
def opens(): open(f"{folder}/fifo", "rb").close()
@named
def sends():
    with open(f"{folder}/big", "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        at = 0
        while at < size: at += os.sendfile(here.fileno(), f.fileno(), at, size - at)
def drains():
    left = size
    while left: left -= len(there.recv(1 << 20))
os.mkfifo(f"{folder}/fifo")
with open(f"{folder}/big", "wb") as f:
    f.write(bytes(size))
    os.fsync(f.fileno())
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
here, there = socket.socketpair()
threads = [threading.Thread(target=t) for t in (opens, sends, drains)]
for t in threads: t.start()
time.sleep(0.2)
open(f"{folder}/fifo", "wb").close()
for t in threads: t.join()
"""


@case
def what_its_call_and_descriptor_do_not_tell(folder):
    """open() of a FIFO waits for its other end, sendfile() to a socket for the disk first: the kernel's function says so."""
    with open(f"{folder}/sends.py", "w", encoding="ascii") as f:
        f.write(SENDS)
    xsptrace(*EXTRA, "-q", "--waits", "--wait-stacks=0.05ms", "-e", "libc.so.6:sendfile*", "-o", f"{folder}/t.xspt", "--", "/usr/bin/python3", f"{folder}/sends.py",
             folder)
    threads = {t["name"]: t for t in json.loads(xsptrace("export", f"{folder}/t.xspt", "--summary", "json").stdout)["threads"]}
    opens = threads["opens"]["blocked_ns"]
    check(opens["file"] > 150 * MS and "disk" not in opens, "a FIFO", opens)
    places = threads["sends"]["places"]
    for p in places:
        # on its way to sleep there another one may take its CPU
        check(p["in"] in ("disk", "runnable") or not p.get("kernel", "").startswith(("folio_wait", "io_schedule")),
              "pages of a file", p)
        check(p["in"] != "disk" or not re.match("unix_|sock_", p.get("kernel", "")), "room in a socket", p)


ANSWERS = """
import os, socket, sys, threading, time
def serve(s):
    s.listen()
    print("up", flush=True)
    while True:
        c, _ = s.accept()
        threading.Thread(target=answer, args=(c,), daemon=True).start()
def answer(c):
    while c.recv(16):
        time.sleep(0.002)
        c.send(b"answer")
tcp = socket.socket()
tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
tcp.bind(("127.0.0.1", int(sys.argv[1])))
unix = socket.socket(socket.AF_UNIX)
unix.bind("socket")
for s in (tcp, unix): threading.Thread(target=serve, args=(s,), daemon=True).start()
try:
    while True:
        time.sleep(0.002)
        os.write(int(sys.argv[2]), b"x")
except BrokenPipeError: pass
"""
ASKS = """
import os, socket, subprocess, sys, time
port, (reads, writes) = int(sys.argv[1]), os.pipe()
server = subprocess.Popen(["./answerer", "answers.py", str(port), str(writes)], pass_fds=[writes], stdout=subprocess.PIPE)
os.close(writes)
for _ in range(2): server.stdout.readline()
tcp, polled = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
polled.settimeout(5)
unix = socket.socket(socket.AF_UNIX)
unix.connect("socket")
def ask(s):
    s.send(b"question")
    s.recv(16)
def asks(): ask(tcp)
def polls(): ask(polled)
def asks_unix():
    unix.send(b"question")
    unix.recv(16)
def takes(): os.read(reads, 1)
print(server.pid, flush=True)
sys.stdin.readline()
for function in (asks, polls, asks_unix, takes):
    until = time.monotonic() + 0.4
    while time.monotonic() < until: function()
time.sleep(1)  # what it did last has a name as long as it is there
"""


def process_at(port):
    """By ss: (name, number) of the process that has a connection from that port."""
    rows = [row.split() for row in run(["ss", "-tnpH", "state", "established"]).stdout.splitlines()]
    users = {row[-1] for row in rows if row[2] == f"127.0.0.1:{port}"}
    return re.match(r'users:\(\("(.*?)",pid=(\d+)', users.pop()).groups()


@case
def who_is_at_the_other_end(folder):
    """A wait for one descriptor says what it is of, and which process woke the thread, as ss has it."""
    if not shutil.which("ss"):
        raise Skip("there is no ss")
    for name, text in (("answers.py", ANSWERS), ("asks.py", ASKS)):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(text)
    os.symlink("/usr/bin/python3", f"{folder}/answerer")
    with socket.socket() as s:  # below those that the kernel gives to clients
        port = next(p for p in range(20000 + os.getpid() % 10000, 32000) if s.connect_ex(("127.0.0.1", p)) != 0)
    child = start(["/usr/bin/python3", "asks.py", port], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
    server = child.stdout.readline().decode().strip()
    equal(process_at(port), ("answerer", server), "ss")
    with Recording(folder, "--profile", "-p", child.pid, "-o", f"{folder}/t.xspt", "-o", f"{folder}/t.json") as recording:
        child.stdin.write(b"\n")
        child.stdin.flush()
        equal(child.wait(timeout=60), 0, "status of python")
        recording.wait()
    account = json.loads(xsptrace("analyze", "--format", "json", f"{folder}/t.xspt").stdout)["sections"]["account"]
    waits = {row["place"].split()[-1]: (row["reason"], row["peer"]) for row in account["tables"]["rows"]["rows"]
             if row["kind"] == "waiting" and row["share"] > 0.1 and row["reason"] != "sleep"}
    tcp = f"127.0.0.1:{port} (answerer)"
    equal(waits, {"ask": ("network", tcp), "asks_unix": ("network", "socket (answerer)"),
                  "takes": ("pipe", f"of answerer ({server})")}, "what it waits for")
    check(tcp in xsptrace("analyze", f"{folder}/t.xspt").stdout, "the first screen")
    said = collections.Counter((e["args"]["system call"], re.sub(r"\d{4,}", "N", e["args"]["for"]))
                               for e in Trace(f"{folder}/t.json").json["traceEvents"] if "for" in e.get("args", {}))
    for what in (("recvfrom", "127.0.0.1:N"), ("poll", "127.0.0.1:N"), ("recvfrom", "socket"), ("read", "pipe:[N]")):
        check(said[what] > 20, what, said)


MANY_WAITS = """
import sys, threading, time
def naps():
    end = time.monotonic() + 2
    while time.monotonic() < end:
        time.sleep(0.0012)
sys.stdin.readline()
threads = [threading.Thread(target=naps) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


def recorded_to_its_end(folder, child, *options, **how):
    """The trace of a python that waits for a line."""
    with Recording(folder, *options, "-p", child.pid, "-o", f"{folder}/t.json", **how) as recording:
        child.stdin.write(b"\n")
        child.stdin.flush()
        equal(child.wait(timeout=60), 0, "status of python")
        recording.wait()
    trace = Trace(f"{folder}/t.json")
    check_sums(trace)
    return trace


def waits_with_stacks(folder, *options):
    """(waits of at least 1 ms, those of them that say where) of threads that wait some thousand times a second."""
    trace = recorded_to_its_end(folder, start([sys.executable, "-c", MANY_WAITS], stdin=subprocess.PIPE), *options)
    waits = [s for states in states_of(trace).values() for s in states
             if s[2] == "Blocked: sleep" and s[1] - s[0] >= MS and s[3].get("finished") is not False]
    check(len(waits) > 2000, "too few waits to tell", len(waits))
    for w in waits:
        equal("Call stack" in w[3], "Native call stack" in w[3], "lines of Python beside functions")
    return len(waits), sum("Native call stack" in w[3] for w in waits)


@case
def stacks_without_being_asked_for(folder):
    """As many as cost little: of each CPU 500 a second. With --wait-stacks all, with =off none."""
    waits, stacks = waits_with_stacks(folder, "--profile")
    check(100 < stacks <= 3 * 500 * os.cpu_count(), "how many are kept", stacks, waits)
    waits, stacks = waits_with_stacks(folder, "--profile", "--wait-stacks")
    check(stacks >= 0.99 * waits, "each was asked for", stacks, waits)
    waits, stacks = waits_with_stacks(folder, "--profile", "--wait-stacks=off")
    equal(stacks, 0, "none was wanted")


@case(quiet="times against the thread's own clock")
def weights(folder):
    """Off-CPU stacks come to what the threads were off their CPUs, exactly, and CPU stacks to what spans had of it."""
    trace, truth = record_launched(folder, [workload("waits")], "--wait-stacks", "-e", "waits:waits_call",
                                   "--weight", "off-cpu", "-o", f"{folder}/w.xspt", "-o", f"{folder}/off.folded")
    trace.check_nothing_lost()
    threads = threads_of(trace)
    off = folded(f"{folder}/off.folded")
    equal(sum(ns for _, ns in off), sum(t["time_ns"] - t["running_ns"] for t in threads.values()), "off the CPU")
    for name, t in threads.items():
        for why, wanted in t["blocked_ns"].items():  # short ones have a frame of their own
            got = sum(ns for frames, ns in off if frames[0] == name and frames[-1] == f"[{why}]")
            check(got <= wanted and (wanted - got < MS or name == "w_calls"), f"{name} in {why}", got, wanted)
    for name, why in (("w_sleeps", "sleep"), ("w_locks", "lock"), ("w_polls", "poll")):
        stacks = [frames for frames, ns in off if frames[0] == name and frames[-1] == f"[{why}]" and ns > 50 * MS]
        equal(len(stacks), 1, f"stacks of {name}")
        equal(stacks[0][stacks[0].index("run"):][:2], ["run", name], f"stack of {name}")
    inside = [ns for frames, ns in off if "waits_call" in frames and frames[-1] == "[sleep]"]
    near(sum(inside), threads["w_calls"]["blocked_ns"]["sleep"], "sleep inside the span", share=0.1, ns=30 * MS)

    out = [part for kind in ("cpu.folded", "cpu.perf", "cpu.svg") for part in ("-o", f"{folder}/{kind}")]
    xsptrace("export", "--weight", "cpu", f"{folder}/w.xspt", *out)
    spans = sum(round(e["args"]["cpu_time (us)"] * 1000) for e in trace.spans)
    equal(sum(ns for _, ns in folded(f"{folder}/cpu.folded")), spans, "CPU time of spans")
    out = [part for kind in ("off.perf", "off.svg", "by.folded") for part in ("-o", f"{folder}/{kind}")]
    xsptrace("export", "--weight", "off-cpu", "--by", "thread", f"{folder}/w.xspt", *out)
    by = folded(f"{folder}/by.folded")
    for name, t in threads.items():
        # whatever it was named then
        equal(sum(ns for frames, ns in by if frames[0].endswith(f" ({t['tid']})")), t["time_ns"] - t["running_ns"], name)
    for kind, event, wanted in (("cpu", "self-cpu-ns", spans), ("off", "off-cpu-ns", sum(ns for _, ns in off))):
        with open(f"{folder}/{kind}.perf", encoding="utf-8") as f:
            equal(sum(int(n) for n in re.findall(rf" (\d+) {event}: ", f.read())), wanted, f"{event} in perf-script text")
    with open(f"{folder}/off.svg", encoding="utf-8") as f:
        check("Off-CPU flame graph" in f.read(), "the flame graph's title")

    xsptrace("-q", *EXTRA, "-e", "waits:waits_call", "-o", f"{folder}/without.xspt", "--", workload("waits"))
    for weight in ("cpu", "off-cpu"):
        done = xsptrace("export", "--weight", weight, f"{folder}/without.xspt", "-o", f"{folder}/no.folded", status=2)
        check("--waits records it" in done.stderr and not os.path.exists(f"{folder}/no.folded"), "what is said", done.stderr)
    done = xsptrace("--weight", "cpu", "-o", f"{folder}/no.folded", "--", workload("waits"), status=2)
    check("--waits" in done.stderr, "what is said", done.stderr)


@case
def summary_as_json(folder):
    """What the table says, as the trace of the same run has it."""
    xspt = f"{folder}/j.xspt"
    trace, truth = record_launched(folder, [workload("waits")], "-q", "--summary", "json", "--wait-stacks", "-e",
                                   "waits:waits_call", "-o", xspt)
    summary = json.loads(xsptrace("export", "--summary", "json", xspt).stdout)
    equal(json.loads(xsptrace("export", xspt, "--summary=json").stdout), summary, "the same again")
    equal(json.loads(xsptrace("export", xspt, "--summary", "json").stdout), summary, "and with the word at the end")
    equal([(n["name"], n["calls"], n["total_ns"]) for n in summary["names"]],
          [("waits_call", truth["calls"]["waits_call"], sum(round(e["dur"] * 1000) for e in trace.spans))], "names")
    equal(summary["names"][0]["cpu_ns"], sum(round(e["args"]["cpu_time (us)"] * 1000) for e in trace.spans), "CPU time")
    keys = ("name", "pid", "tid", "ended", "time_ns", "running_ns", "runnable_ns")
    equal([[t[k] for k in keys] for t in summary["threads"]],
          [[t[k] for k in keys] for t in trace.json["xsptrace_threads"]], "threads")
    for t in summary["threads"]:
        equal(t["running_ns"] + t["runnable_ns"] + sum(t["blocked_ns"].values()), t["time_ns"], f"sum of {t['name']}")
        if t["name"] in ("w_sleeps", "w_polls", "w_reads"):
            equal(next(p["at"] for p in t["places"] if p["in"] != "runnable"), t["name"], "where it waits")
    equal(summary["threads_with_spans"], 1, "threads with spans")
    lock = next(held for held in summary["locks"] if int(held["address"], 16) == truth["mutex"])
    equal([(lock["holders"][0]["name"], lock["wakers"][0]["name"], lock["places"][0]["at"])],
          [("w_holds", "w_holds", "w_locks")], "the mutex")
    equal(summary["losses"], trace.losses, "losses")
    equal(xsptrace("--summary=yaml", "--", "/bin/true", status=2).stdout, "", "a form that there is not")


LOCKS = """
import sys, threading, time
lock = threading.Lock()
def hold():
    for _ in range(4):
        with lock:
            time.sleep(0.1)
        time.sleep(0.02)
def want():
    for _ in range(4):
        time.sleep(0.01)
        with lock:
            pass
sys.stderr.write("ready\\n"); sys.stderr.flush(); sys.stdin.readline()
threads = [threading.Thread(target=f) for f in (hold, want)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


@case
def a_lock_of_python(folder):
    """A semaphore records no holder, so none is named; the waker, and the line of the wait, are known."""
    child = start([sys.executable, "-c", LOCKS], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    check(b"ready" in child.stderr.readline(), "not ready")
    trace = recorded_to_its_end(folder, child, "--wait-stacks", "--python", table=f"{folder}/table")
    waits = [s for states in states_of(trace).values() for s in states
             if s[2] == "Blocked: lock" and s[1] - s[0] > 50 * MS and "woken by" in s[3]]
    check(len(waits) >= 3, "waits for the lock", waits)
    for w in waits:
        check("held by" not in w[3], "a holder that nobody can know", w)
    lines = LOCKS.splitlines()
    where = f"<string>({lines.index('        with lock:', lines.index('def want():')) + 1}): want;"
    waited = [w for w in waits if w[3].get("Call stack", "").startswith(where)]
    check(len(waited) >= 2, f"waits on the line {where}", waits)
    with open(f"{folder}/table", encoding="utf-8") as f:
        table = f.read()
    check("whose holder it does not tell" in table and "; waited for at <string>:" in table, "the line on the lock",
          table)


READER = """
import os, sys
print("ready", file=sys.stderr, flush=True)
while os.read(0, 1):
    pass
"""


@case
def functions_of_the_kernel(folder):
    """Of a wait, as in /proc/PID/stack while it lasts: after the native ones and before the reason."""
    child = start_ready([sys.executable, "-c", READER], stdin=subprocess.PIPE)
    with Recording(folder, "--wait-stacks", "-p", child.pid, "-o", f"{folder}/k.xspt") as recording:
        for _ in range(5):
            child.stdin.write(b"x")
            child.stdin.flush()
            time.sleep(0.1)
        with open(f"/proc/{child.pid}/stack", encoding="ascii") as f:
            own = re.findall(r"\] ([\w.]+)\+", f.read())
        recording.stop()
        recording.wait()
    child.stdin.close()
    equal(child.wait(), 0, "status of the program")
    if not own:
        raise Skip("/proc/PID/stack tells nothing here")
    xsptrace("export", "--weight", "off-cpu", f"{folder}/k.xspt", "-o", f"{folder}/k.folded")
    with open(f"{folder}/k.folded", encoding="utf-8") as f:
        stacks = [line.rpartition(" ")[0].split(";") for line in f]
    # not of the one that had begun before
    told = [s for s in stacks if s[-1] == "[pipe]" and len(s) > 2]
    check(told, "no wait for the pipe", stacks)
    for stack in told:
        functions = [x[:-4] for x in stack if x.endswith("_[k]")]
        equal(functions[::-1], own, "functions of the kernel, the innermost first")
        check(not stack[stack.index(functions[0] + "_[k]") - 1].endswith("]"), "what stands before them", stack)
    summary = json.loads(xsptrace("export", "--summary", "json", f"{folder}/k.xspt").stdout)
    places = [p for t in summary["threads"] for p in t["places"] if p["in"] == "pipe"]
    equal({p["kernel"] for p in places}, {f"{own[0]}_[k]"}, "the innermost")


@case
def page_faults_as_each_thread_counts_them(folder):
    """... by getrusage(2), exactly; of one that was born and has ended meanwhile those of its last moments, too."""
    child = start_ready([workload("page_faults"), f"{folder}/pages"], stdout=-1)
    with Recording(folder, "--profile", "-p", child.pid, "-o", f"{folder}/faults.xspt") as recording:
        child.send_signal(signal.SIGUSR1)
        own = json.loads(child.stdout.readline())
        recording.stop()
        recording.wait()
    check(child.poll() is None, "the program has ended")
    child.kill()
    child.wait()
    summary = json.loads(xsptrace("export", "--summary", "json", f"{folder}/faults.xspt").stdout)
    found = {t["name"]: [t["minor_faults"], t["major_faults"]] for t in summary["threads"]}
    check(own["p_many"][0] >= 1000 and own["p_some"][0] >= 37 and own["p_none"] == [0, 0], "the program's own", own)
    minor, major = found.pop("p_late")
    check(own["p_late"][0] <= minor <= own["p_late"][0] + 20 and major >= own["p_late"][1], "born late", minor, major, own)
    for name in ("p_none", "p_some", "p_many", "p_file"):
        equal(found[name], own[name], f"minor and major page faults of {name}")
    xsptrace("export", f"{folder}/faults.xspt", "-o", f"{folder}/faults.db", "-o", f"{folder}/faults.json")
    equal({t["name"]: [t["minor_faults"], t["major_faults"]] for t in Trace(f"{folder}/faults.json").json["xsptrace_threads"]
           if t["name"] in own and t["name"] != "p_late"}, {k: v for k, v in own.items() if k != "p_late"}, "the Chrome trace's")
    rows = sqlite3.connect(f"{folder}/faults.db").execute("SELECT name, minor_faults, major_faults FROM threads WHERE name = 'p_many'")
    equal(rows.fetchall(), [("p_many", *own["p_many"])], "the database's")
    table = xsptrace("export", f"{folder}/faults.xspt").stdout
    check(re.search(r"spans +faults +in\n", table) and
          re.search(rf"p_many .* {sum(own['p_many']):,} ", table), "the table", table)
    if own["p_file"][1] > 0:
        check(f"{own['p_file'][1]} page fault" in table, "those that were read", table)


# Threads of a tenth of a second; and children of somebody else, of many page faults, whose memory in the kernel was theirs.
COMERS = """
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(0.1,)).start()
    time.sleep(0.001)
"""
BYSTANDERS = """
import mmap, os, time
while True:
    if os.fork() == 0:
        m = mmap.mmap(-1, 4096 * 4000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(m), 4096):
            m[at] = 1
        time.sleep(0.4)
        os._exit(0)
    time.sleep(0.002)
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass
"""


@case
def page_faults_of_who_has_just_ended(folder):
    """Its threads go on ending after the recording: a thread's figures are not those of a later one in its memory."""
    children = [start(["/usr/bin/python3", "-c", script]) for script in (COMERS, BYSTANDERS)]
    try:
        for i in range(4):
            xsptrace("--profile", "-p", children[0].pid, "-d", 0.8, "-o", f"{folder}/{i}.xspt")
            threads = json.loads(xsptrace("export", "--summary", "json", f"{folder}/{i}.xspt").stdout)["threads"]
            counts = sorted(t["minor_faults"] for t in threads if t.get("minor_faults") is not None and t["tid"] != children[0].pid)
            check(len(counts) > 5 and counts[-1] < 200, "threads of a few page faults each", len(counts), counts[-5:])
    finally:
        for child in children:
            child.kill()
            child.wait()


if __name__ == "__main__":
    main()
