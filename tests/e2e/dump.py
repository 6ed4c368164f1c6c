#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""xsptrace dump against programs that know where they stand (tests/workloads/stuck.c), against Python's own
faulthandler, and against what targets may do to it, and it must not do to them."""
import errno
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import (LONG, XSPTRACE, Recording, Skip, alive, case, check, equal, main, need_torch, run, start, wait_for,
                     workload, xsptrace)

NO_TARGET, USAGE = 3, 2
SLEEP = {"x86_64": "230", "aarch64": "115"}.get(os.uname().machine)  # clock_nanosleep
SELECT = {"x86_64": "270", "aarch64": "72"}.get(os.uname().machine)  # pselect6: time.sleep() before Python 3.11


def dump(pid, *options, **how):
    """The process's object; how long the threads were stopped is checked in passing."""
    done = xsptrace("dump", "-p", str(pid), "--json", *options, **how)
    found = json.loads(done.stdout)["processes"][0]
    equal(found["pid"], pid, "pid")
    equal(found["stopped_ns"], sum(t["stopped_ns"] or 0 for t in found["threads"]), "stopped together")
    return found


def by_name(found):
    return {t["name"]: t for t in found["threads"]}


def functions(thread):
    return [f["function"] for f in thread["native"]]


def is_traced(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return "TracerPid:\t0" not in f.read()


def state_of(pid, tid=None):
    with open(f"/proc/{pid}/task/{tid or pid}/stat", encoding="ascii", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


def call_of(pid):
    """The number of the system call that its first thread waits in, "running", or "-1"."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
        return f.read().split()[0]


def call_of_thread(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
        return f.read().split()[0]


def wait_asleep(pid, but=()):
    """All threads, but those that never sleep."""
    wait_for(lambda: all(state_of(pid, t) in "SZ" for t in map(int, os.listdir(f"/proc/{pid}/task")) if t not in but), 5,
             "all threads to sleep")


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def stuck(*how):
    child = start([workload("stuck"), *how], stdout=subprocess.PIPE)
    truth = json.loads(child.stdout.readline())
    wait_for(lambda: all(waits_for_mutex(child.pid, truth[name]) for name in ("alpha", "beta", "gamma")), 2, "the deadlock")
    wait_asleep(child.pid, [truth["spin"]])  # and the others
    return child, truth


def waits_for_mutex(pid, tid):
    """In futex(2), for a word that is 2; at the barrier before it is another."""
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
        call = f.read().split()
    return call[0] == "202" and call[3] == "0x2"


def start_stuck(how):
    """Of `how`: the child, and the process that is to be looked at."""
    child = start([workload("stuck"), how], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return child, int(child.stderr.readline().split()[1])


def counts_of(child, pid):
    os.kill(pid, signal.SIGTERM)
    return json.loads(child.communicate(timeout=60)[0])


def check_counts(truth, rounds, mended=True):
    """mended: by a tracer that lived on for so long."""
    equal(truth["sigchld"], 1, "times the parent was told of its child")
    equal(truth["status"], 0, "status of the child")
    for name in ("nanosleep", "poll", "futex", "epoll_wait", "read", "select", "write", "timed_futex"):
        done, interrupted, wrong = truth[name]
        if name in ("futex", "read"):  # they wait for the same words, which the quicker one gets
            done = (truth["futex"][0] + truth["read"][0]) / 2
        check(done >= rounds, f"{name}: {done} rounds")
        if name == "epoll_wait" and not mended:
            continue
        equal((interrupted, wrong), (0, 0), f"calls of {name} that failed with EINTR, that were too short")


# ---- C -----------------------------------------------------------------------------------


def check_stuck(found, truth):
    threads = by_name(found)
    tids = {t["name"]: t["tid"] for t in found["threads"]}
    equal({n: tids[n] for n in tids if n != "stuck"},
          {n: t for n, t in truth.items() if isinstance(t, int)}, "threads")
    equal([set(d) for d in found["deadlocks"]], [{truth["alpha"], truth["beta"]}], "deadlocks")
    for waiter, lock, holder in (("alpha", "second", "beta"), ("beta", "first", "alpha"),
                                 ("gamma", "first", "alpha")):
        wait = threads[waiter]["wait"]
        equal((wait["class"], wait["call"], wait["held"]), ("lock", "futex", "mutex"), f"wait of {waiter}")
        equal((wait["argument"], wait["holder"], wait["timeout"]), (truth[lock], truth[holder], False),
              f"lock of {waiter}")
    equal((threads["join"]["wait"]["held"], threads["join"]["wait"]["holder"]), ("thread", truth["nap"]), "join")
    equal(threads["inherit"]["wait"]["holder"], truth["holder"], "holder of a mutex with priority inheritance")
    equal(threads["condition"]["wait"]["held"], None, "who holds a condition variable")
    for name, klass in (("poll", "poll"), ("epoll", "poll"), ("nap", "sleep"), ("read", "pipe")):
        equal(threads[name]["wait"]["class"], klass, f"wait of {name}")
    check(threads["read"]["wait"]["file"].startswith("pipe:["), threads["read"]["wait"])
    for name, chain in (("alpha", ["lock_second", "run_alpha", "start_thread"]), ("gamma", ["lock_first", "run_gamma"]),
                        ("nap", ["nap_in_a_frame_of_any_size", "run_nap", "start_thread"]),
                        ("poll", ["run_poll", "start_thread"]), ("epoll", ["run_epoll", "start_thread"]), ("spin", ["spin_here", "run_spin", "start_thread"])):
        at = functions(threads[name])
        first = at.index(chain[0])
        equal(at[first:first + len(chain)], chain, f"stack of {name}")
        equal(threads[name]["native_end"], None, f"end of the stack of {name}")
    equal(functions(threads["spin"])[0], "spin_here", "where spin is")
    check(threads["spin"]["running"] and threads["spin"]["wait"] is None, threads["spin"])


@case
def deadlock_and_waits(_):
    child, truth = stuck()
    check_stuck(dump(child.pid), truth)
    check(not is_traced(child.pid), "it is released")


@case
def main_thread_has_ended(folder):
    child, truth = stuck("leaves")
    wait_for(lambda: state_of(child.pid) == "Z", 2, "the end of the main thread")
    found = dump(child.pid)
    equal([t["state"] for t in found["threads"] if t["tid"] == child.pid], ["Z"], "state of the main thread")
    check_stuck(found, truth)
    check_python(folder, "/usr/bin/python3", leaves=True)


@case
def deadlock_whoever_was_stopped(_):
    """A thread that was stopped for a look may wait for a processor before it sleeps again, one dump in ten."""
    for _ in range(12):
        child, truth = stuck()
        equal([set(d) for d in dump(child.pid)["deadlocks"]], [{truth["alpha"], truth["beta"]}], "deadlocks")
        child.kill()


@case
def as_text(_):
    child, truth = stuck()
    text = xsptrace("dump", "-p", str(child.pid)).stdout
    check(re.search(r'deadlock: "alpha" \(%d\) waits for\n +mutex %s, held by "beta" \(%d\)\n'
                    r' +"beta" \(%d\) waits for\n +mutex %s, held by "alpha" \(%d\)\n'
                    % (truth["alpha"], truth["second"], truth["beta"], truth["beta"], truth["first"],
                       truth["alpha"]), text), text)
    check("spin_here+0x" in text and "waits for pipe, in read of descriptor" in text, text)
    check(max(len(line) for line in text.splitlines() if "held by" in line) <= 80, text)


@case
def asleep_since(_):
    """At least nearly as long as it did sleep, and no longer: by a clock that knows nothing of it."""
    if not os.path.exists("/proc/self/sched"):
        raise Skip("the kernel has no /proc/PID/sched")
    begun = time.monotonic_ns()
    child = start(["sleep", "1000"])
    wait_for(lambda: call_of(child.pid) == SLEEP, 5, "its sleep")
    time.sleep(0.5)
    asleep = dump(child.pid)["threads"][0]["asleep_ns"]
    took = time.monotonic_ns() - begun
    check(asleep is not None and 0.45e9 <= asleep <= took, f"{asleep} ns, at most {took}")


@case
def nothing_is_stopped(_):
    child, truth = stuck()
    found = dump(child.pid, "--no-stop")
    threads = by_name(found)
    equal(found["stopped_ns"], 0, "time that it was stopped")
    check(all(t["stopped_ns"] is None for t in found["threads"]), found)
    equal(threads["gamma"]["wait"]["holder"], truth["alpha"], "holder")
    equal(len(found["deadlocks"]), 1, "deadlocks")
    check("lock_first" in functions(threads["gamma"]), threads["gamma"])
    equal(functions(threads["spin"]), [], "native stack of what runs")
    check("stopping" in threads["nap"]["native_end"], threads["nap"])


@case
def calls_go_on_as_if_nothing_had_been(_):
    """One dump after the other; no call of the target fails or ends early, and its parent learns nothing."""
    child, pid = start_stuck("count")
    end, times = time.monotonic() + 1.5, 0 # the longest calls are of a tenth of a second
    while times < (200 if LONG else 25) or time.monotonic() < end:
        found = dump(pid)
        equal(len(found["threads"]), 9, "threads")
        times += 1
    check(not is_traced(pid), "it is released")
    check_counts(counts_of(child, pid), 10)


@case
def timeouts_of_sockets_do_not_begin_anew(_):
    """The kernel ends such a call with EINTR, and one that is made once more has all of its time again."""
    child, pid = start_stuck("timeouts")
    for _ in range(3):
        time.sleep(0.7)
        found = dump(pid)
        equal(found["stopped_ns"], 0, "time that threads were stopped")
        check("begin anew" in str([t["note"] for t in found["threads"]]), "why they were not", found)
    took = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in child.communicate(timeout=20)[0].splitlines()}
    equal({name: error for name, (_, error) in took.items()}, {b"recv": errno.EAGAIN, b"connect": errno.EAGAIN}, "errors")
    # with all of its time again after the last dump it would take 2,100 ms more
    check(all(3000 <= ms < 5000 for ms, _ in took.values()), "their timeouts are 3,000 ms", took)


@case(long="many stops")
def calls_go_on_where_processors_are_busy(_):
    """A thread that is asked to stop stands in line for one, for longer than is waited for what sleeps for good. Each
    ends if its call comes back."""
    hogs = [start([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    child = start(["nice", "-n", "10", workload("stuck")], stdout=subprocess.PIPE)
    json.loads(child.stdout.readline())
    time.sleep(0.5)
    for _ in range(3):
        dump(child.pid)
    for hog in hogs:
        hog.kill()
    time.sleep(0.2)
    equal(len(dump(child.pid)["threads"]), 13, "threads that still stand")


@case
def killed_in_the_middle(_):
    child, pid = start_stuck("count")
    begun = time.monotonic()
    for i in range(20):
        tracer = subprocess.Popen([XSPTRACE, "dump", "-p", str(pid)], stdout=subprocess.DEVNULL)
        time.sleep(0.003 * i)
        tracer.kill()
        tracer.wait()
    wait_for(lambda: not is_traced(pid), 2, "all threads to be released")
    check(alive(pid), "it lives")
    before = time.monotonic()
    while time.monotonic() - before < 0.3:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            check(not re.search(r"State:\s+[tT]", f.read()), "it runs")
    time.sleep(max(0.3, begun + 1.7 - time.monotonic()))  # the longest calls are of a tenth of a second
    check_counts(counts_of(child, pid), 10, mended=False)


@case
def the_stopper_killed_alone(_):
    """The stopper dies: the dump says so, and the thread goes on."""
    child, pid = start_stuck("count")
    begun = time.monotonic()
    for _ in range(5):
        tracer = subprocess.Popen([XSPTRACE, "dump", "-p", str(pid), "-p", str(pid), "--json"],
                                  stdout=subprocess.PIPE, text=True)
        end = time.monotonic() + 5
        while tracer.poll() is None and time.monotonic() < end:
            for name in os.listdir("/proc"):
                try:
                    with open(f"/proc/{name}/comm", encoding="ascii", errors="replace") as f:
                        if name.isdigit() and f.read() == "xsp-stopper\n" and \
                                tracer.pid in (parent := parent_of(name), parent_of(parent)):
                            os.kill(int(name), signal.SIGKILL)
                except OSError:
                    pass
        shown = tracer.communicate(timeout=20)[0]
        equal(len(json.loads(shown)["processes"]), 2, "processes shown")
    check(not is_traced(pid), "it is released")
    time.sleep(max(0.3, begun + 1.7 - time.monotonic()))  # it goes on
    check_counts(counts_of(child, pid), 5, mended=False)


# ---- Python ------------------------------------------------------------------------------

PYTHON = r'''
import faulthandler, os, select, sys, threading, time
first, second = threading.Lock(), threading.Lock()
first.acquire(); second.acquire()
class Waiter:
    def lock(self):
        first.acquire()
    def generate(self):
        yield second.acquire()
    def through_a_generator(self):
        for _ in self.generate(): pass
def recursive(n):
    if n == 0:
        threading.Event().wait()
    recursive(n - 1)
def in_a_comprehension():
    return [time.sleep(x) for x in (1000,)]
def poller():
    select.poll().poll()
def epoller():
    select.epoll().poll()
def sorts():
    sorted([2, 1], key=lambda x: time.sleep(1000))
class Built:
    def __init__(self, seconds): time.sleep(seconds)
def builds():
    for i in range(30): Built(1000 if i == 29 else 0)
w = Waiter()
for work in (builds, w.lock, w.through_a_generator, lambda: recursive(20), in_a_comprehension, poller, epoller, sorts):
    threading.Thread(target=work, daemon=True).start()
%s
def clocks():
    """None while a thread runs, or waits for a processor."""
    found = {}
    for tid in map(int, os.listdir("/proc/self/task")):
        with open(f"/proc/self/task/{tid}/stat") as f:
            if tid != os.getpid() and f.read().rpartition(")")[2].split()[0] == "R": return None
        with open(f"/proc/self/task/{tid}/schedstat") as f:
            if tid != os.getpid(): found[tid] = f.read()
    return found
before = None
while before is None or before != clocks():
    before = clocks()
    time.sleep(0.1)
faulthandler.dump_traceback(open(sys.argv[1], "w"), all_threads=True)
os.rename(sys.argv[1], sys.argv[1] + ".done")
time.sleep(1000)
'''


def stacks_of_faulthandler(path):
    """[[(file, line, function)...] a thread], the innermost first, but for the main thread's line."""
    with open(path, encoding="utf-8") as f:
        blocks = re.split(r"\n\n", f.read())
    return [[(m[1], int(m[2]), m[3]) for m in re.finditer(r'File "(.*)", line (\d+) in (.*)', b)] for b in blocks]


def lines_of(thread):
    """As faulthandler has them: names without their classes."""
    return [(f["file"], f["line"], f["function"].rpartition(".")[2]) for f in thread["python"]]


def check_python(folder, python, preamble="", options=(), leaves=False):
    script = os.path.join(folder, "threads.py")
    text = PYTHON % preamble
    if leaves:
        text = text.removesuffix("time.sleep(1000)\n") + "import ctypes; ctypes.CDLL(None).syscall(60, 0)\n"  # exit(2)
    with open(script, "w", encoding="utf-8") as f:
        f.write(text)
    path = os.path.join(folder, "truth")
    child = start([python, script, path])
    wait_for(lambda: os.path.exists(path + ".done"), 30, "faulthandler")
    wait_for(lambda: state_of(child.pid) == "Z" if leaves else call_of(child.pid) in (SLEEP, SELECT), 5, "the main thread's end or sleep")
    truth = stacks_of_faulthandler(path + ".done")
    found = dump(child.pid, *options)
    ours = [lines_of(t) for t in found["threads"] if t["python"]]
    check(all(t["python_end"] is None for t in found["threads"]), "all stacks are whole", found)
    # the main thread went on from the one call to the next lines
    main_thread = [s for s in ours if s[-1][2] == "<module>"]
    equal([s[0][1] for s in main_thread], [] if leaves else [len(text.splitlines())], "line of the main thread")
    equal(sorted(s for s in ours if s not in main_thread), sorted(s for s in truth if s[-1][2] != "<module>"),
          "stacks")
    return found


@case
def python_equals_faulthandler(folder):
    found = check_python(folder, "/usr/bin/python3")
    check(any("clock_nanosleep" in functions(t) for t in found["threads"]), "native stacks beside them")


@case
def python_without_stopping(folder):
    found = check_python(folder, "/usr/bin/python3", options=["--no-stop"])
    equal(found["stopped_ns"], 0, "time that it was stopped")


@case(long="fetches interpreters", quiet="how soon threads get where they are to be")
def python_of_all_versions(folder):
    """Those that pyenv has built here, and Debian's."""
    home = os.path.expanduser("~/.pyenv/versions")
    versions = [v for v in sorted(os.listdir(home)) if re.match(r"3\.(9|1\d)\.", v)] if os.path.isdir(home) else []
    if not versions:
        raise Skip("no Python but Debian's")
    for version in versions:
        try:
            check_python(folder, f"{home}/{version}/bin/python3")
            check_gil(f"{home}/{version}/bin/python3")
        finally:
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))


@case(long="loads PyTorch")
def python_with_torch(folder):
    need_torch()
    check_python(folder, "/usr/bin/python3", "import torch; torch.ones(2) @ torch.ones(2)")


@case
def python_that_runs(folder):
    """Deep in a loop that calls and returns: each stack of it is one that it can have."""
    script = os.path.join(folder, "runs.py")
    with open(script, "w", encoding="ascii") as f:
        f.write("def leaf(): pass\ndef a(): leaf()\ndef b(): a(); leaf()\ndef loop():\n    while True: b(); a()\nloop()\n")
    child = start(["/usr/bin/python3", script])
    wait_for(lambda: any(f["function"] == "loop" for f in dump(child.pid)["threads"][0]["python"] or []), 5, "its loop")
    possible = {"loop", "b loop", "a loop", "a b loop", "leaf a loop", "leaf a b loop", "leaf b loop"}
    stacks, torn = set(), []
    for _ in range(20):
        thread = dump(child.pid)["threads"][0]
        if thread["python_end"] is None:
            stacks.add(" ".join(f["function"] for f in thread["python"][:-1]))
        else:
            torn.append(thread["python_end"])
    check(len(torn) <= 1, "whole, as the thread was stopped, but where that was in the middle of a call or a return", torn)
    check(stacks <= possible and len(stacks) > 1, stacks)
    for _ in range(10):
        thread = dump(child.pid, "--no-stop")["threads"][0]
        check(not thread["running"] or thread["native"] == [], thread)
        if thread["python_end"] is None:
            check(" ".join(f["function"] for f in thread["python"][:-1]) in possible, thread["python"])


GIL = r"""
import ctypes, threading, time, sys
libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(40)
holds_gil = ctypes.PyDLL(None)
def native():
    # without the GIL it takes the mutex, and comes back for the GIL
    libc.pthread_mutex_lock(mutex)
    print("native", threading.get_native_id(), flush=True)
    libc.usleep(600000)
def python():
    time.sleep(0.2)
    print("python", threading.get_native_id(), flush=True)
    holds_gil.pthread_mutex_lock(mutex)
threading.Thread(target=native, daemon=True).start()
threading.Thread(target=python, daemon=True).start()
time.sleep(1000)
"""


def check_gil(python):
    child = start([python, "-c", GIL], stdout=subprocess.PIPE, text=True)
    truth = dict(child.stdout.readline().split() for _ in range(2))
    native, holder = int(truth["native"]), int(truth["python"])

    def both_wait():  # who waits for the GIL wakes up each 5 ms to ask for it
        d = dump(child.pid)
        return d["deadlocks"] and all(t["wait"] for t in d["threads"] if t["tid"] in (native, holder)) and d

    found = wait_for(both_wait, 10, "the deadlock")
    threads = {t["tid"]: t for t in found["threads"]}
    equal([set(d) for d in found["deadlocks"]], [{native, holder}], "deadlocks")
    equal((found["gil"], threads[native]["wait"]["held"], threads[native]["wait"]["holder"],
           threads[native]["wait"]["timeout"]), (holder, "GIL", holder, False), "who waits for the GIL")
    equal((threads[holder]["wait"]["held"], threads[holder]["wait"]["holder"]), ("mutex", native),
          "who waits for the mutex")


OTHER_LOCK = r"""
import ctypes, struct, threading, time
# as Rust's: 2 while somebody waits, then the program's data, here a number that a thread has
data = ctypes.create_string_buffer(struct.pack("10I", 2, 0, threading.get_native_id(), 1, 0, 0, 42, 0, 0, 0))
threading.Thread(target=lambda: ctypes.CDLL(None).syscall(202, data, 128, 2, None, None, 0), daemon=True).start()
print("waits", flush=True)
time.sleep(1000)
"""


@case
def a_lock_that_is_no_mutex_of_glibcs(_):
    child = start(["/usr/bin/python3", "-c", OTHER_LOCK], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    wait = wait_for(lambda: next((t["wait"] for t in dump(child.pid)["threads"] if (t["wait"] or {}).get("class") == "lock"), None),
                    10, "who waits for it")
    equal((wait["call"], wait["held"], wait["holder"]), ("futex", None, None), "who holds it")


@case
def deadlock_with_the_gil(_):
    """A thread with a mutex of C's that comes back for the GIL, and one with the GIL that takes the mutex."""
    check_gil("/usr/bin/python3")


@case
def python_frames_that_lie(folder):
    """tests/workloads/python_liar.c with each of its lies: a bounded time, nothing false."""
    program = workload("python_liar")
    honest = [("honest_name.py", "honest_name.py")] * 3
    torn, names = 0, {}
    for lie in run([program, "--list"]).stdout.split():
        child = start([program, f"{folder}/truth", 1, lie], stdout=subprocess.PIPE)
        equal(child.stdout.readline(), b"ready\n", lie)
        begun = time.monotonic()
        thread = dump(child.pid)["threads"][0]
        check(time.monotonic() - begun < 5, f"{lie}: in a bounded time")
        check(alive(child.pid) and not is_traced(child.pid), f"{lie}: it lives, and is released")
        names[lie] = [(f["function"], f["file"]) for f in thread["python"] or []]
        torn += thread["python_end"] is not None
        child.kill()
    for lie in ("honest", "wild_state", "wild_key", "threads_in_a_circle", "interpreters_in_a_circle",
                "instructions_elsewhere"):
        equal(names[lie], honest, lie)
    for lie in ("no_frames", "circle_of_one", "circle_of_three", "another_thread", "wild_cframe"):
        equal(names[lie], [], lie)
    equal(names["wild_frame"], honest[:2], "frames before a wild one")
    equal(len(names["too_long"]), 256, "frames that are shown")
    check(torn >= 5, torn)
    known = {*honest, ("[Python frame not readable]", "")}
    strange = {n for lie, found in names.items() if lie != "names_for_terminals" for n in found} - known
    equal(strange, set(), "names made up")


# ---- targets as they come ----------------------------------------------------------------


@case
def stacks_that_lie(_):
    child, pid = start_stuck("liar")
    for options in ((), ("--no-stop",)):
        begun = time.monotonic()
        threads = by_name(dump(pid, *options))
        check(time.monotonic() - begun < 5, "in a bounded time")
        check(len(threads["circle"]["native"]) <= 2, threads["circle"])
        check(len(threads["nowhere"]["native"]) <= 2, threads["nowhere"])
    check(alive(pid) and not is_traced(pid), "it lives and is released")
    child.kill()


@case
def asleep_in_the_kernel(_):
    """vfork(2): state D."""
    child, pid = start_stuck("uninterruptible")
    wait_for(lambda: state_of(pid) == "D", 5, "its vfork(2)")
    thread = dump(pid)["threads"][0]
    equal(thread["state"], "D", "state")
    check("uninterruptible" in functions(thread) or "vfork" in str(functions(thread)), thread)
    check(alive(pid) and not is_traced(pid), "it lives and is released")
    child.kill()


@case
def traced_by_another(_):
    child, truth = stuck()
    seize = f"import ctypes, time; print(ctypes.CDLL(None).ptrace(0x4206, {child.pid}, 0, 0), flush=True); time.sleep(20)"
    debugger = start([sys.executable, "-c", seize], stdout=subprocess.PIPE, text=True)
    equal(debugger.stdout.readline(), "0\n", "PTRACE_SEIZE")
    found = dump(child.pid)
    check("traces it" in found["note"], found["note"])
    equal(found["stopped_ns"], 0, "time that it was stopped")
    equal(by_name(found)["gamma"]["wait"]["holder"], truth["alpha"], "holder")
    check(is_traced(child.pid), "the other one still traces it")
    debugger.kill()
    debugger.wait()


@case
def in_a_namespace(folder):
    """Its threads have other numbers there, by which mutexes name their holders."""
    if run(["unshare", "-f", "-p", "true"]).returncode:
        raise Skip("no unshare")
    with open(f"{folder}/truth", "w+", encoding="ascii") as f:
        child = start(["unshare", "-f", "-p", "--kill-child", workload("stuck")], stdout=f)
        wait_for(lambda: os.path.getsize(f"{folder}/truth"), 10, "the program")
        f.seek(0)
        truth = json.loads(f.read())
    with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="ascii") as f:
        pid = int(f.read())
    found = wait_for(lambda: (lambda d: d["deadlocks"] and d)(dump(pid)), 2, "the deadlock")
    threads = by_name(found)
    equal([{t["ns_tid"] for t in found["threads"] if t["tid"] in d} for d in found["deadlocks"]],
          [{truth["alpha"], truth["beta"]}], "deadlock, as the process sees it")
    equal(threads["join"]["wait"]["holder"], threads["nap"]["tid"], "as we see it")


@case
def stopped_by_its_job(_):
    child = start(["sleep", "1000"])
    wait_for(lambda: call_of(child.pid) == SLEEP, 5, "its sleep")
    os.kill(child.pid, signal.SIGSTOP)
    wait_for(lambda: state_of(child.pid) == "T", 5, "its stop")
    thread = dump(child.pid)["threads"][0]
    equal((thread["state"], thread["wait"]["class"]), ("T", "stopped"), "state and wait")
    with open(f"/proc/{child.pid}/stat", encoding="ascii") as f:
        equal(f.read().split()[2], "T", "state afterwards")
    os.kill(child.pid, signal.SIGCONT)
    wait_for(lambda: dump(child.pid)["threads"][0]["state"] == "S", 2, "it goes on")


@case
def those_that_are_gone(_):
    child = start(["true"])
    wait_for(lambda: state_of(child.pid) == "Z", 5, "its end")
    done = xsptrace("dump", "-p", str(child.pid), status=NO_TARGET)  # a zombie
    equal(done.stderr.count("\n"), 1, "lines")
    child.wait()
    done = xsptrace("dump", "-p", str(child.pid), status=NO_TARGET)
    equal((done.stdout, done.stderr.count("\n")), ("", 1), "what is said")
    done = xsptrace("dump", "-p", "2", status=NO_TARGET)  # a kernel thread
    check("kernel" in done.stderr, done.stderr)
    xsptrace("dump", status=USAGE)
    xsptrace("dump", "-p", "no_process_is_called_so", status=NO_TARGET)
    sleeper = start(["sleep", "100"])  # the others are shown
    wait_for(lambda: call_of(sleeper.pid) == SLEEP, 5, "its sleep")
    done = xsptrace("dump", "-p", f"{child.pid},{sleeper.pid}", "--json", status=NO_TARGET)
    equal([p["pid"] for p in json.loads(done.stdout)["processes"]], [sleeper.pid], "processes")


@case
def those_that_go_meanwhile(_):
    """Threads that come and go, and processes that end in the middle: shown or said, never a hang."""
    for i in range(12):
        child = start([workload("threadstorm"), "--seconds", "20"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
        time.sleep(0.05)
        tracer = subprocess.Popen([XSPTRACE, "dump", "-p", str(child.pid)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
        time.sleep(0.005 * i)
        child.kill()
        said = tracer.communicate(timeout=20)[1]
        check(tracer.returncode in (0, NO_TARGET) and said.count(b"\n") <= 1, tracer.returncode, said)
        child.wait()


@case
def names_on_a_terminal(_):
    child = start(["/usr/bin/python3", "-c", "import time; open('/proc/self/comm', 'w').write('\\x1b[2Jx'); "
                   "time.sleep(100) #\x1b[31m\x07"])
    wait_for(lambda: call_of(child.pid) == SLEEP, 5, "its sleep")
    done = xsptrace("dump", "-p", str(child.pid))
    check("\x1b" not in done.stdout and "\x07" not in done.stdout, done.stdout)
    equal(by_name(dump(child.pid))["\x1b[2Jx"]["tid"], child.pid, "in JSON as it is")


# ---- real programs -----------------------------------------------------------------------


@case
def redis(folder):
    server = shutil.which("redis-server")
    if not server and shutil.which("redis-check-rdb"):  # the same program
        server = f"{folder}/redis-server"
        os.symlink(shutil.which("redis-check-rdb"), server)
    if not server:
        raise Skip("no redis")
    child = start([server, "--port", "0", "--save", "", "--unixsocket", f"{folder}/s"], stdout=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists(f"{folder}/s"), 10, "its socket")
    # ten times a second it does something
    threads = wait_for(lambda: (lambda t: (t.get("redis-server") or {}).get("wait") and t)(by_name(dump(child.pid))), 10, "its sleep")
    first = threads["redis-server"]
    equal((first["wait"]["class"], first["wait"]["call"]), ("poll", "epoll_wait"), "wait of the main thread")
    check("main" in functions(first) or "__libc_start_main" in functions(first) or "stopping" in first["native_end"], "its stack",
          first)
    others = [t for n, t in threads.items() if n.startswith("bio_")]
    check(len(others) >= 3 and all("start_thread" in functions(t) for t in others), threads)


RANGES = """
import sys, time, torch
from torch.profiler import record_function
print("ready", flush=True)
sys.stdin.readline()
with record_function("over"):
    torch.ones(2).add(1)
with record_function("step"):
    torch.ones(2).add(1)
    with record_function("stuck in here"):
        print(time.monotonic_ns(), flush=True)
        time.sleep(1000)
"""


@case
def open_spans_of_a_recording(folder):
    """PyTorch's open ranges, with their beginnings; a process that is not recorded has none."""
    child = start(["/usr/bin/python3", "-c", RANGES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if child.stdout.readline() != b"ready\n":
        raise Skip("no PyTorch")
    with Recording(folder, "-e", "torch", "-p", child.pid, "-o", f"{folder}/t.json") as recording:
        child.stdin.write(b"\n")
        child.stdin.flush()
        began_ns = int(child.stdout.readline())
        time.sleep(1)
        thread = by_name(dump(child.pid))["python3"]
        ago_ns = time.monotonic_ns() - began_ns
        equal([s["name"] for s in thread["open"]], ["stuck in here", "step"], "what is open")
        check(1e9 < thread["open"][0]["began_ago_ns"] < ago_ns + 1e8, "since when", thread["open"], ago_ns)
        text = xsptrace("dump", "-p", str(child.pid)).stdout
        ago = re.search(r"open in the recording.*:\n    stuck in here +began (\d\.\d+) s ago\n    step ", text)
        check(ago and ago_ns * 1e-9 - 0.1 < float(ago[1]) < (time.monotonic_ns() - began_ns) * 1e-9 + 0.1, text, ago_ns)
        sleeper = start(["sleep", "100"])
        equal(dump(sleeper.pid)["threads"][0]["open"], [], "what is open of another process")
        found = dump(child.pid)
        check(0 <= found["open_age_ns"] < 3e9 and found["open_note"] is None, "how old", found)
        equal(dump(sleeper.pid)["open_age_ns"], None, "how old it is of a process that nobody records")
        recording.stop()
        recording.wait()
    equal(by_name(dump(child.pid))["python3"]["open"], [], "what is open when nobody records")


FORGER = """
import ctypes, os, sys, time
capture = open(sys.argv[1], "r+b")
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # it goes with its parent
    ctypes.CDLL(None).prctl(15, b"xsp-broker", 0, 0, 0)
    print("ready", flush=True)
time.sleep(1000)
"""


@case
def captures_that_nobody_records(folder):
    """Of a process whose recorder was killed, put forward by a process of root's that calls itself its broker."""
    child = start(["/usr/bin/python3", "-c", RANGES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if child.stdout.readline() != b"ready\n":
        raise Skip("no PyTorch")
    capture = f"{folder}/t.xspt"
    recording = Recording(folder, "-e", "torch", "-p", child.pid, "-o", capture).wait_live()
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()
    wait_for(lambda: len(by_name(dump(child.pid))["python3"]["open"]) == 2, 5, "open spans")
    for held in glob.glob(f"/proc/{recording.process.pid}/fd/*"):
        if os.path.isfile(held) and os.lstat(held).st_mode & 0o200:  # open for writing
            with open(held, "rb") as file:
                if file.read(8)[1:5] == b"XSPT":
                    shutil.copy(held, f"{folder}/cut.xspt")
    recording.process.kill()
    recording.process.wait()
    forger = start([sys.executable, "-c", FORGER, f"{folder}/cut.xspt"], stdout=subprocess.PIPE)
    forger.stdout.readline()
    found = dump(child.pid)
    equal((by_name(found)["python3"]["open"], found["open_age_ns"]), ([], None), "what a forged broker puts forward")


@case
def node(_):
    if not shutil.which("node"):
        raise Skip("no node")
    child = start(["node", "-e", "function hot() { for (let i = 0; ; i++) if (i % 1e9 == -1) return i; } hot()"])

    def in_its_code():  # and not in the interpreter's own, which has no names
        d = dump(child.pid)
        return len(d["threads"]) > 5 and functions(d["threads"][0])[:1] == ["hot"] and d

    found = wait_for(in_its_code, 10, "code that it has made")
    first = found["threads"][0]
    check(first["running"] and len(first["native"]) > 5, "where it runs", first)
    equal((first["native"][0]["function"], first["native"][0]["module"]), ("hot", "[eval]:1"), "the function of JavaScript")
    check(any("node::Start" in (f or "") for f in functions(first)), "through generated code", functions(first))
    check(not is_traced(child.pid), "it is released")


LOCKS = """import sys, threading
locks, both = [threading.Lock(), threading.Lock()], threading.Barrier(2)
def takes(first, second):
    with locks[first]:
        both.wait()
        with locks[second]:
            pass
threads = [threading.Thread(target=takes, args=a) for a in ((0, 1), (1, 0))]
for t in threads: t.start()
for t in threads: t.join(*map(float, sys.argv[1:]))
"""


@case
def locks_without_a_holder(folder):
    """Python's locks name no holder. If every thread waits for one, nobody can release it; not if one of them will go on."""
    with open(f"{folder}/locks.py", "w", encoding="ascii") as f:
        f.write(LOCKS)
    for timeout, deadlock in (([], True), (["1000"], False)):
        child = start(["/usr/bin/python3", f"{folder}/locks.py", *timeout])
        wait_for(lambda pid=child.pid: len(os.listdir(f"/proc/{pid}/task")) == 3, 10, "its threads")
        wait_asleep(child.pid)
        wait_for(lambda pid=child.pid: all(call_of_thread(pid, t) == "202" for t in os.listdir(f"/proc/{pid}/task")), 10, "they wait")
        found = dump(child.pid)
        equal("a deadlock: every thread waits" in (found["note"] or ""), deadlock, f"with a timeout {timeout}: {found['note']}")
        equal("a deadlock: every thread waits" in xsptrace("dump", "-p", str(child.pid)).stdout, deadlock, "as text")


if __name__ == "__main__":
    main()
