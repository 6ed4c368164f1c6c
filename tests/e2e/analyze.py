#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""xsptrace analyze on real programs with planted faults, and on the same without them: what is found is what the programs
counted themselves, and in the others nothing of it. tests/unit/test_rules_*.c have each rule."""
import csv
import io
import json
import os
import subprocess

from harness import (EXTRA, SCRIPTS, TORCH, Recording, Skip, case, check, equal, json_report, main, record_attached,
                     start, workload, xsptrace)

PYTHON = TORCH
FOUND = 10
MS = 1_000_000


def analyzed(capture, *options):
    made = json_report("analyze", capture, *options)
    return made, {f["rule"]: f for f in reversed(made["findings"] + made["hot_operation"] + made["notes"])}


def recorded(folder, how, *options):
    """Of the workload: (report, findings, what it printed)."""
    done = xsptrace(*EXTRA, "-q", *options, "-o", f"{folder}/{how}.xspt", "--", workload("faults"), how, timeout=120)
    return *analyzed(f"{folder}/{how}.xspt"), json.loads(done.stdout)


def trained(folder, how):
    if not os.path.exists(PYTHON):
        raise Skip(f"no {PYTHON}")
    child = start([PYTHON, f"{SCRIPTS}/torch_faults.py", how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdout.readline() != b"ready\n":
        raise Skip(f"{PYTHON} has no torch (Debian: python3-torch)")
    with Recording(folder, "-p", child.pid, "-e", "torch", "--python", "-o", f"{folder}/{how}.xspt") as r:
        facts = json.loads(child.communicate(b"\n", timeout=120)[0])
        r.wait()
    return *analyzed(f"{folder}/{how}.xspt"), facts


def near(got, wanted, what, share=0.1):
    check(abs(got - wanted) <= share * wanted + 3 * MS, f"{what}: {got / MS:.3f} ms, {wanted / MS:.3f} by the program")


@case
def lock_of_another_thread(folder):
    """A real mutex: as long as the thread saw itself; on mutexes of their own, nothing."""
    _, found, truth = recorded(folder, "lock", "-e", "faults:*_it", "--waits", "--wait-stacks")
    lock = found.get("lock")
    check(lock, "no lock was found", list(found))
    near(lock["values"]["total_ns"], truth["waited_ns"], "waited for the lock")
    check(lock["values"]["holder"].startswith("f_holds ("), "who holds it", lock["values"])
    check("want_it" in lock["subject"], "where", lock["subject"])
    equal(lock["severity"], "high" if truth["waited_ns"] > 0.35 * truth["ns"] else lock["severity"], "severity")
    done = xsptrace("analyze", f"{folder}/lock.xspt", "--fail-on", "low", status=FOUND)
    check("f_wants" in done.stdout and " 1  HIGH" in done.stdout, "the screen", done.stdout)
    check("Findings: " in xsptrace("analyze", "--full", f"{folder}/lock.xspt").stdout, "the whole text")
    _, found, _ = recorded(folder, "own_locks", "-e", "faults:*_it", "--waits", "--wait-stacks")
    check("lock" not in found, "a lock of its own", found)


# What it stood in line for a CPU meanwhile, as the kernel counts it, is no part of how long it waited for the lock. (Each thread
# stays on one: else some kernels take its sleep for that; tests/workloads/waits.c.)
FIGHT = """
import json, logging, os, sys, threading, time
class Slow:
    def write(self, text): time.sleep(0.003)
    def flush(self): pass
how, waited, lock = sys.argv[1], [0, 0, 0], threading.Lock()
logging.basicConfig(stream=Slow())
def work(me):
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[me % len(cpus)]})
    schedstat = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    in_line = lambda: 1e-9 * int(os.pread(schedstat, 100, 0).split()[1])
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        line, before = in_line(), time.monotonic()
        if how == "logging":
            logging.error("x")
            waited[me] += time.monotonic() - before - 0.003 - (in_line() - line)
        else:
            with lock:
                waited[me] += time.monotonic() - before - (in_line() - line)
                time.sleep(0.003)
        time.sleep(0.0005)
threads = [threading.Thread(target=work, args=(i,)) for i in range(len(waited))]
print("ready", flush=True)
sys.stdin.readline()
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps(sum(waited)))
"""
# Threads that wait as long, at locks as well, because they have nothing to do.
IDLE = """
import json, queue, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from queue import Queue, SimpleQueue
def stage(a, b):
    while a.get():
        time.sleep(0.002)
        b.put(1)
def feed(a, b, n):
    while time.monotonic() < end:
        a.put(1)
        b.get()
    [a.put(0) for _ in range(n)]
def signals(a, b):
    while time.monotonic() < end:
        a.acquire()
        time.sleep(0.001)
        b.release()
def pool():
    with ThreadPoolExecutor(3) as p:
        while time.monotonic() < end:
            list(p.map(lambda n: time.sleep(0.002), range(6)))
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + 1.5
threads = [threading.Thread(target=pool)]
for kind, n in ((Queue, 3), (SimpleQueue, 2)):
    a, b = kind(), kind()
    threads += [threading.Thread(target=stage, args=(a, b)) for _ in range(n)]
    threads += [threading.Thread(target=feed, args=(a, b, n))]
a, b = threading.Lock(), threading.Lock()
a.acquire()
threads += [threading.Thread(target=signals, args=p, daemon=True) for p in ((a, b), (b, a))]
[t.start() for t in threads]; [t.join() for t in threads if not t.daemon]
print(json.dumps(0), flush=True)
import os; os._exit(0)
"""


def locked(folder, name, text, *arguments):
    """With the defaults, and without traced functions."""
    script = f"{folder}/{name}.py"
    with open(script, "w", encoding="utf-8") as f:
        f.write(text)
    child = start([PYTHON, script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.stdout.readline(), b"ready\n", "what it says first")
    with Recording(folder, "-p", child.pid, "--waits", "--sample", "-o", f"{folder}/{name}.xspt") as r:
        waited = json.loads(child.communicate(b"\n", timeout=60)[0])
        r.wait()
    return *analyzed(f"{folder}/{name}.xspt"), waited


@case(quiet="shares of waits, which idle threads have as well where nobody gives them a CPU")
def locks_of_python(folder):
    """Nothing says who holds them, but who lets them go has waited for them, too. On the program's line, also where a package
    (logging) takes it; nothing of threads that wait for work."""
    for how, place in (("lock", "with lock:"), ("logging", "logging.error(")):
        _, found, waited = locked(folder, "fight", FIGHT, how)
        lock = found.get("lock")
        check(lock, f"no lock was found ({how})", list(found))
        near(lock["values"]["total_ns"], waited * 1e9, f"waited ({how})", 0.15)
        line = [i for i, text in enumerate(FIGHT.split("\n"), 1) if text.strip().startswith(place)][0]
        equal(lock["subject"], f"fight.py:{line} work", f"where ({how})")
        check("python" in lock["values"]["holder"], "who lets it go", lock["values"])
    report, found, _ = locked(folder, "idle", IDLE)
    check("lock" not in found and "gil" not in found, "threads that have nothing to do", found)
    rows = report["sections"]["threads"]["tables"]["threads"]["rows"]
    check(len(rows) >= 9, "there were some", rows)


# The same sums of NumPy's own numbers, and of Python's objects.
ARRAYS = """
import json, sys, time
import numpy as np
values = np.array([None if i == 7 else i * 0.5 for i in range(2000)])
values[7] = 1.0
if sys.argv[1] == "float64": values = values.astype(float)
def smooth(): return (values * 0.5 + values * values - 1.0).max()  # here
print("ready", flush=True)
sys.stdin.readline()
while time.process_time() < 0.9: smooth()
print(json.dumps(values.dtype.name), flush=True)
"""


@case
def arrays_of_objects(folder):
    """What NumPy asks Python to compute for each element is found on the program's line; numbers of its own are not."""
    line = [i for i, text in enumerate(ARRAYS.split("\n"), 1) if "# here" in text][0]
    for kind in ("object", "float64"):
        _, found, dtype = locked(folder, "arrays", ARRAYS, kind)
        equal(dtype, kind, "what it computed with")
        dear = found.get("dear-call")
        if kind == "float64":
            check(not dear or "objects" not in dear["title"], "numbers", dear)
            continue
        check(dear and "arrays of Python's objects" in dear["title"], "objects", list(found), dear)
        equal(dear["subject"], f"arrays.py:{line} smooth", "where")


# One waits for answers, programs, a reader, or itself; beside it one waits for requests, and there is nothing else to do.
ASK = """
import json, os, select, socket, subprocess, sys, threading, time
how, waited = sys.argv[1], 0.0
def answer():
    for _ in iter(lambda: there.recv(100), b""):
        time.sleep(0.02)
        there.sendall(b"x")
here, there = socket.socketpair()
server = os.fork()
if server == 0:
    here.close()
    answer()
    os._exit(0)
there.close()
out, full = os.pipe()
reader = os.fork()
if reader == 0:
    here.close(); os.close(full)
    while os.read(out, 65536): time.sleep(0.02)
    os._exit(0)
os.close(out)
def ask():
    here.sendall(b"q")
    here.recv(100)                                  # here
def child(): subprocess.run(["sleep", "0.02"])      # here
def pipe(): os.write(full, b"x" * 65536)            # here
def nap(): time.sleep(0.02)                         # here
def polls():
    here.sendall(b"q")
    select.select([here], [], [])
    here.recv(100)
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
while time.monotonic() < begun + 1.2:
    before = time.monotonic()
    {"network": ask, "child": child, "pipe": pipe, "sleep": nap, "polls": polls}[how]()
    waited += time.monotonic() - before
    sum(range(20000))
print(json.dumps(waited / (time.monotonic() - begun)), flush=True)
here.close(); os.close(full)
"""


@case
def waits_for_others(folder):
    """By the defaults: which line waits, for what, and for how long by the program's own clock. Of who asks, a launcher, a slow
    reader and sleep nobody knows whether they should be held up; what polls is no finding."""
    lines = {name: i for i, text in enumerate(ASK.split("\n"), 1) if "# here" in text
             for name in ("ask", "child", "pipe", "nap") if f"def {name}()" in ASK.split("\n")[i - 1] or
             (name == "ask" and "here.recv(100)  " in text)}
    for how, function, words in (("network", "ask", "waits for the network"),
                                 ("child", "child", "waits for programs that it started"),
                                 ("pipe", "pipe", "waits for what is at the other end of a pipe"),
                                 ("sleep", "nap", "sleeps")):
        report, found, waited = locked(folder, "ask", ASK, how)
        waiting = found.get("waiting")
        check(waiting, f"nothing waits ({how})", list(found))
        check(words in waiting["title"], how, waiting)
        equal(waiting["severity"], "note", how)
        near(waiting["share"], waited, f"its share ({how})", 0.2)
        # subprocess.run() waits in lines of its own; the report has the program's
        equal(waiting["subject"], f"ask.py:{lines[function]} {function}", f"where ({how})")
        rows = report["sections"]["threads"]["tables"]["threads"]["rows"]
        check(any((row["longest_at"] or "").endswith(waiting["subject"]) for row in rows), "in the table", rows)
    _, found, waited = locked(folder, "ask", ASK, "polls")
    check(waited > 0.5 and "waiting" not in found, "what polls", waited, found)


@case
def hot_operation(folder):
    """Time on a CPU by the thread's own clock; as long a sleep is no hot operation with --waits."""
    report, found, truth = recorded(folder, "hot", "-e", "faults:burn", "-e", "faults:rest", "--waits")
    hot = found.get("hot-operation")
    # little, where other programs have the CPUs; its start is recorded as well
    share = truth["cpu_ns"] / report["sections"]["recording"]["values"]["recorded_ns"]
    if share > 0.12:
        check(hot, "no hot operation", list(found))
    if hot:
        equal(hot["subject"], "burn", "what is hot")
        near(hot["values"]["self_ns"], truth["cpu_ns"], "its own time")
        check(abs(hot["share"] - share) < 0.2 * share, "its share", hot["share"], share)
    rows = {row["name"]: row for row in report["sections"]["operations"]["tables"]["operations"]["rows"]}
    equal((rows["burn"]["calls"], rows["rest"]["calls"]), (60, 60), "calls")
    _, found, _ = recorded(folder, "cool", "-e", "faults:burn", "-e", "faults:rest", "--waits")
    # on a busy machine it has to wait for its CPU, and that is so
    equal(sorted(set(found) - {"runnable", "waiting"}), [], "rules that found something in a program that sleeps")


@case
def loop_of_python(folder):
    """300 calls a step from one line; one call instead of them, and nothing is found."""
    report, found, truth = trained(folder, "loop")
    loop = found.get("python-loop")
    check(loop, "no loop was found", list(found))
    check(loop["subject"].startswith("aten::mul at torch_faults.py:") and "loop" in loop["subject"], "where", loop)
    equal(loop["values"]["calls_per_step"], truth["calls"], "calls a step")
    equal(report["sections"]["recording"]["values"]["lost_entries"], 0, "lost")
    _, found, _ = trained(folder, "batched")
    check("python-loop" not in found, "no loop", found)


@case
def starved_loader(folder):
    """As long as the program fetched; a loader that has its data at hand is not starved."""
    _, found, truth = trained(folder, "starved")
    loader = found.get("loader")
    check(loader, "no starved loader", list(found))
    near(loader["values"]["total_ns"], truth["fetching_ns"], "fetching")
    equal(loader["values"]["calls"], 12, "batches")
    _, found, truth = trained(folder, "fed")
    check("loader" not in found or truth["fetching_ns"] > 0.08 * truth["ns"], "a loader that is fed", found, truth)


@case
def hot_function(folder):
    """A program without frame pointers that counts in which of its functions its CPU time goes: half of it in one, a tenth in
    another; the interval holds the true share. One that sleeps has none."""
    _, truth = record_attached(folder, [workload("samples"), "--seconds", 2, "--threads", 1], "--sample=499", "-o",
                               f"{folder}/hot.xspt")
    # a share of the time, of which others may take some
    _, found = analyzed(f"{folder}/hot.xspt", "--threshold", "hot-function=4")
    hot = found.get("hot-function")
    check(hot, "no hot function", list(found))
    equal(hot["subject"], "samples_c (samples)", "which")
    share = truth["cpu_ns"]["samples_c"] / sum(truth["cpu_ns"].values())
    values = hot["values"]
    # its 95 %, and twice that: not by chance in one run of twenty
    low, high = (values["cpu_share"] + 2 * (values[key] - values["cpu_share"])
                 for key in ("cpu_share_low", "cpu_share_high"))
    check(low <= share <= high, "its share of the CPU time", share, values)
    check("samples_round" in values["caller"] or "spin" in values["caller"], "who calls it", values)
    xsptrace(*EXTRA, "-q", "--sample=499", "-o", f"{folder}/cool.xspt", "--", workload("faults"), "cool")
    _, found = analyzed(f"{folder}/cool.xspt")
    check("hot-function" not in found, "a program that sleeps", found)


# Most of the time is that of a package, in many small functions, for one line; or that of the program itself.
PACKAGES = """
import io, json, logging, sys, time
how, asked = sys.argv[1], 0.0
log = logging.getLogger("x")
log.addHandler(logging.StreamHandler(io.StringIO()))
log.setLevel(logging.DEBUG)
def own(): return sum(i * i for i in range(3000))
print("ready", flush=True)
sys.stdin.readline()
begun = time.thread_time()
while time.thread_time() < begun + 1.5:
    before = time.thread_time()
    if how == "logging":
        for i in range(20): log.debug("price %d of %s", i, how)   # here
        asked += time.thread_time() - before
    own()
    if how == "own": log.debug("done")
print(json.dumps(asked / (time.thread_time() - begun)))
"""


@case
def work_of_packages(folder):
    """No function of logging takes much: the report has the program's line that calls it, with its share by the thread's own clock."""
    line = next(i for i, text in enumerate(PACKAGES.split("\n"), 1) if "# here" in text)
    report, found, asked = locked(folder, "packages", PACKAGES, "logging")
    hot = [f for f in report["hot_operation"] if f["rule"] == "hot-function" and f["title"].startswith("what packages do for ")]
    equal([f["subject"] for f in hot], [f"packages.py:{line} <module>"], f"what asks for it {list(found)}")
    check(asked > 0.3, "the program's own figure", asked)
    low, high = hot[0]["values"]["cpu_share_low"], hot[0]["values"]["cpu_share_high"]
    check(low - 0.05 < asked < high + 0.05, "its share of the time on CPUs", asked, hot[0]["values"])
    report, found, _ = locked(folder, "packages", PACKAGES, "own")
    check("hot-function" in found, "the program's own work", list(found))
    check(not any("packages do" in f["title"] for f in report["hot_operation"]), "little is asked for", report["hot_operation"])


def of_threads(folder, how):
    """Of python_gil.py: (findings, what each of its threads counted, all that waited for a lock)."""
    child = start([PYTHON, f"{SCRIPTS}/python_gil.py", how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.stdout.readline(), b"ready\n", "what it says first")
    with Recording(folder, "-p", child.pid, "--profile", "-o", f"{folder}/{how}.xspt") as r:
        facts = json.loads(child.communicate(b"\n", timeout=120)[0])
        r.wait()
    return analyzed(f"{folder}/{how}.xspt")[1], facts


@case(quiet="waits against the program's clock")
def lock_of_python(folder):
    """Four threads that count: as long as each was neither on a CPU nor could have been, by its own count. Threads without work,
    and those that wait for a lock of the program's, do not want Python's, but where who has it has no CPU, which is said."""
    found, facts = of_threads(folder, "fight")
    gil = found.get("gil")
    check(gil, "threads that fight are not found", list(found))
    check("lock" not in found, "it is told as another lock, too", found)
    equal(gil["values"]["threads"], len(facts), "threads")
    near(gil["values"]["total_ns"], sum(t["ns"] - t["cpu_ns"] - t["runnable_ns"] for t in facts.values()),
         "waited for Python's lock")
    check("python_gil.py:" in gil["values"]["holds_at"], "who has it, and where that is", gil["values"])
    table = xsptrace("export", f"{folder}/fight.xspt").stdout
    check("Python's lock (GIL) 0x" in table and "; let go of by python3 (" in table, "the summary", table)
    hot = found.get("hot-function")
    check(hot and hot["subject"] == "count (python_gil.py)", "what is hot", found)
    found, _ = of_threads(folder, "idle")
    check("lock" not in found, "threads without work", found)
    check("gil" not in found, "threads without work", found)
    equal(found["hot-function"]["subject"], "count (python_gil.py)", "what is hot")
    found, _ = of_threads(folder, "lock")
    check("gil" not in found, "a lock of the program's own", found)


@case
def formats_and_statuses(folder):
    """The ending chooses; all three say the same; wrong use gets one line."""
    path = f"{folder}/cool.xspt"
    recorded(folder, "cool", "-e", "faults:rest")
    made, _ = analyzed(path)
    xsptrace("analyze", path, "-o", f"{folder}/r.json", "-o", f"{folder}/r.json", "-q")
    with open(f"{folder}/r.json", encoding="utf-8") as f:
        equal(json.load(f), made, "what -o wrote")
    lines = list(csv.DictReader(io.StringIO(xsptrace("analyze", path, "--format=csv").stdout)))
    calls = [row["value"] for row in lines if row["section"] == "operations" and row["key"] == "calls"]
    equal(calls, ["60"], "calls in CSV")
    text = xsptrace("analyze", path, "-o", "/dev/stdout").stdout
    check("Findings: " in text and "rest" in text, "text", text)
    xsptrace("analyze", path, "--fail-on", "high", "--threshold", "hot-operation=100", "--threshold", "overhead=1000")
    for options, part in ((("--threshold", "nothing=1"), "--threshold wants RULE=VALUE"),
                          (("--threshold", "lock=much"), "--threshold wants a number"),
                          (("--threshold", "leak=10%"), "--threshold wants a number"),
                          (("--fail-on", "all"), "--fail-on wants hot, low, medium or high"),
                          (("--format", "xml"), "--format wants text, json or csv"),
                          (("-o", f"{folder}/r.xls"), "the ending must be .txt, .json or .csv"),
                          (("--rows", "0"), "--rows wants a number, or all"),
                          (("--from", "9000"), "is not in the recording"), ((path,), "the same capture")):
        done = xsptrace("analyze", path, *options, status=2)
        check(part in done.stderr and done.stderr.count("\n") == 1, "what is said", options, done.stderr)
    done = xsptrace("analyze", "/bin/true", status=9)
    equal(done.stderr.count("\n"), 1, "lines on what is no capture")
    xsptrace("analyze", path, "-e", "nothing_is_called_so", status=6)


main()
