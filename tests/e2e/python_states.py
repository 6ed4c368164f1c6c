#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which state a thread of Python runs with, and what is named although it is gone: several interpreters in a process,
the last calls of a script, the first ones after an attach, modules that are made and dropped at one address."""
import collections
import json
import os
import re
import signal
import subprocess

from harness import EXTRA, TORCH, Recording, Trace, case, check, equal, finish, main, start, start_ready, wait_for, xsptrace
from python import HEAD, MODULES, pythons, write, write_stand_in

# own: a thread makes an interpreter and runs it; lent: the main thread made it, so its state names that one; idle: it
# is there; swapped: the main thread runs it, as uWSGI does for its second application; gone: who made it has ended.
# time.sleep() calls without the GIL, clock_nanosleep since 3.11, select before; getppid is called with it.
SEVERAL = """
import os, sys, threading, time
try: import _interpreters as I
except ImportError: import _xxsubinterpreters as I
how, times = sys.argv[1], int(sys.argv[2])
CODE = '''
import os, time
def sub_leaf():
    os.getppid()
    time.sleep(0.002)
for i in range(%d): sub_leaf()
''' % times
def main_leaf():
    os.getppid()
    time.sleep(0.002)
made = []
def make(): made.append(I.create())
if how == "gone":
    t = threading.Thread(target=make); t.start(); t.join()
else:
    make()
def run(): I.run_string(I.create() if how == "own" else made[0], CODE)
t = threading.Thread(target=run, daemon=True)
time.sleep(0.1)
if how in ("own", "lent", "gone"): t.start()
print("ready", file=sys.stderr, flush=True)
if how == "swapped": run()
for i in range(times): main_leaf()
if how in ("own", "lent", "gone"): t.join()
"""
PROBES = [a for f in ("getppid", "clock_nanosleep", "select") for a in ("-e", f"libc.so.6:{f}")]
WAYS = ("own", "lent", "idle", "swapped", "gone")
MAIN, SUB = ["main_leaf", "<module>"], ["sub_leaf", "<module>"]


def each(folder):
    script = write(folder, SEVERAL)
    for version, python in pythons():
        if version < (3, 14):  # no module for it with this interface
            for how in WAYS:
                if how == "gone" and version[:2] == (3, 11):
                    continue  # stands for ever, untraced as well
                yield version, python, how, script


def calls_by_lines(folder, python, script, how, what):
    """How often each function was called, by name, main thread or not, and lines; and what xsptrace said."""
    done = xsptrace(*EXTRA, "--summary=none", "--python", *PROBES, "-o", f"{folder}/t.json", "--", python, script, how, 40)
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    found = collections.Counter()
    for e in trace.spans:
        stack = e["args"].get("Call stack", "")
        if "[Python frame not readable]" in stack:  # the script was over before its names were read, and that is counted
            check(trace.losses["python_stacks_not_named"] > 0, f"{what}: not counted", trace.losses)
            stack = stack.replace("[Python frame not readable]", "<module>")
        functions = tuple(line.rpartition(" ")[2] for line in stack.split(";")) if stack else ()
        found["getppid" if e["name"] == "getppid" else "sleep", e["tid"] == e["pid"], functions] += 1
    return found, done.stderr


def without_imports(found, name):
    return {k[1:]: n for k, n in found.items() if k[0] == name and k[2][:1] != ("<module>",)}


@case
def spans_of_several_interpreters(folder):
    """Each call's lines are its own thread's, with the GIL and without. 3.9 does not say which thread runs which: there
    are none, and it is said. (On a busy machine a script may be over before its interpreters were found: not three times.)"""
    for version, python, how, script in each(folder):
        what = f"Python {version}, {how}"
        of_sub = (how == "swapped", tuple(SUB))
        expected = {(True, tuple(MAIN)): 40} | ({of_sub: 40} if how != "idle" else {})
        for _ in range(3):
            found, said = calls_by_lines(folder, python, script, how, what)
            whole = all(without_imports(found, name) == expected for name in ("getppid", "sleep"))
            if ("several interpreters" in said) if version < (3, 10) else whole:
                break
        for name in ("getppid", "sleep"):
            rows = without_imports(found, name)
            if version < (3, 10):
                equal({k[1] for k in rows}, {()}, f"{what}: lines that are not known")
            else:
                equal(rows, expected, f"{what}: calls of {name} by main thread and lines")
        equal("several interpreters" in said, version < (3, 10), f"{what}: it is said")


def whole(version, how, pid, options):
    """Each thread is where it must be; False: one is on its way there, or was in the middle of a call."""
    threads = json.loads(xsptrace("dump", "-p", str(pid), "--json", *options).stdout)["processes"][0]["threads"]
    what = f"Python {version}, {how}, {options}"
    leaves = []
    for t in threads:
        functions = [f["function"].rpartition(".")[2] for f in t["python"] or []]
        if version < (3, 10):
            check("several interpreters" in (t["python_end"] or ""), what, t)
        other = "main_leaf" if how == "swapped" or t["tid"] != pid else "sub_leaf"
        check(other not in functions, f"{what}: {t['tid']} of {pid} is said to be in {other}", functions)
        check(len(functions) < 3 or t["python_end"] is not None or functions[0] not in ("main_leaf", "sub_leaf"), what, functions)
        leaves += functions[:1]
    if version < (3, 10):
        return True
    return collections.Counter(leaves) == ({"sub_leaf": 1} if how == "swapped" else {"main_leaf": 1} if how == "idle"
                                           else {"main_leaf": 1, "sub_leaf": 1})


@case
def dump_of_several_interpreters(folder):
    for version, python, how, script in each(folder):
        child = start_ready([python, script, how, "1000000"])
        for options in ((), ("--no-stop",)):
            wait_for(lambda: whole(version, how, child.pid, options), 5, f"Python {version}, {how}: its stacks")
        child.kill()
        child.wait()


# As many stacks as lines, and then its code is gone.
ENDS = """
import os, time
op = os.getppid
def leaf(): op()
time.sleep(SLEEP)
""" + "leaf()\n" * 1500


def ends(folder, python, sleep):
    xsptrace(*EXTRA, "-q", "--summary=none", "--python", "-e", "libc.so.6:getppid", "-o", f"{folder}/t.json", "--", python,
             write(folder, ENDS.replace("SLEEP", str(sleep))))
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    stacks = [e["args"].get("Call stack", "") for e in trace.spans]
    equal(len(stacks), 1500, "calls")
    outermost = collections.Counter(s.split(";")[-1].rpartition(" ")[2] for s in stacks)
    unread = sum("not readable" in s for s in stacks)
    return outermost, unread, trace


@case
def last_calls_of_a_script(folder):
    """Its module's code is gone at once: the calls have its name, as it was seen to live; what has not is marked and
    counted."""
    for version, python in pythons():
        outermost, unread, trace = ends(folder, python, 0.2)
        equal(set(outermost) - {"<module>", "readable]"}, set(), f"Python {version}: outermost frames")
        check(outermost["<module>"] > 900, f"Python {version}: frames that were not named", outermost)
        equal(trace.losses.get("python_stacks_not_named", 0) > 0, unread > 0, f"Python {version}: it is said")


@case
def calls_of_a_script_that_is_over_at_once(folder):
    """It may be gone before any of it was read."""
    for version, python in pythons():
        outermost, unread, trace = ends(folder, python, 0)
        equal(set(outermost) - {"<module>", "readable]"}, set(), f"Python {version}: outermost frames")
        equal(trace.losses.get("python_stacks_not_named", 0) > 0, unread > 0, f"Python {version}: it is said")


ATTACHED = MODULES[:MODULES.index("class Many")] + """
net = Block(Scale())
go = threading.Event()
signal.signal(signal.SIGUSR1, lambda *a: go.set())
print("ready", file=sys.stderr, flush=True)
while not go.is_set(): time.sleep(0.01)
for i in range(50): net(1)
done()
"""


@case
def modules_of_the_first_calls(folder):
    """What a module's call is, is known before the first one."""
    write_stand_in(folder, True)
    child = start_ready([TORCH, write(folder, ATTACHED), f"{folder}/truth"])
    with Recording(folder, "-p", child.pid, "--python", "-e", "libc.so.6:getppid", "-o", f"{folder}/t.json") as r:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status")
        r.wait()
    found = collections.Counter(e["args"].get("Module Hierarchy", "") for e in Trace(f"{folder}/t.json").spans)
    equal(found, {"Block_0": 50, "Block_0.inner": 50}, "modules")


# Objects of two classes in turn at one address, some called more than once; the truth is the class.
SHORT_LIVED = MODULES[:MODULES.index("class Block")] + """
def mark(): marks["class"].append(type(sys._getframe(2).f_locals["self"]).__name__)
class Scale(Module):
    def forward(self, x): mark(); op()
class Shift(Module):
    def forward(self, x): mark(); op()
class Outer(Module):
    def forward(self, x):
        for i in range(300):
            for kind in (Scale, Shift):
                inner = kind()
                for n in range(1 + i % 3): inner(x)
                seen.add(id(inner)); del inner
            if i % 20 == 0: time.sleep(0.03)
seen = set()
time.sleep(0.1)
Outer()(1)
marks["addresses"] = len(seen)
done()
"""


@case
def modules_at_one_address(folder):
    write_stand_in(folder, True)
    xsptrace(*EXTRA, "-q", "--summary=none", "--python", "-e", "libc.so.6:getppid", "-o", f"{folder}/t.json", "--", TORCH,
             write(folder, SHORT_LIVED), f"{folder}/truth")
    with open(f"{folder}/truth", encoding="ascii") as f:
        marks = json.load(f)
    check(marks["addresses"] < 100, "they had addresses of their own", marks["addresses"])
    spans = sorted((e for e in Trace(f"{folder}/t.json").spans), key=lambda e: e["ts"])
    equal(len(spans), len(marks["class"]), "calls")
    wrong = collections.Counter()
    for e, kind in zip(spans, marks["class"]):
        name = e["args"].get("Module Hierarchy", "").rpartition(".")[2]
        wrong[re.sub(r"_\d+$", "", name) == kind] += 1
    equal(wrong[False], 0, "calls with the name of another class")


if __name__ == "__main__":
    main()
