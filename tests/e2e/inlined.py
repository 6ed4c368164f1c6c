#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions that the compiler inlined are places as if they had been called, where debug information says so.

The truth is the design of tests/workloads/inlined.c and inlined_cc.cc, and nm: what they do is in functions without symbols.
"""
import collections
import os
import re
import signal
import subprocess

from harness import NO_BRAKE, XSPTRACE, Recording, case, check, equal, finish, json_report, main, run, start, wait_for, xsptrace

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../workloads")
ROUNDS = 250
# of the program in C, and of that in C++
INLINED = {"inlined.c": ("step_here", "work_here", "ask_here", "rest_here", "lock_here", "keep_here"),
           "inlined_cc.cc": ("shop::Cart::heat", "shop::(anonymous namespace)::pay", "shop::(anonymous namespace)::nap")}
CALLED = {"inlined.c": "leaf", "inlined_cc.cc": "shop::checkout"}


def built(folder, source, *options):
    """A program of which none of these functions is a symbol."""
    program = f"{folder}/{source.split('.')[0]}"
    done = run(["g++" if source.endswith("cc") else "gcc", "-O2", "-pthread", *options, f"{SOURCES}/{source}", "-o", program])
    equal(done.returncode, 0, done.stderr)
    symbols = re.findall(r"^\w+ [tT] (\S+?)(?:\(.*)?$", run(["nm", "-C", program]).stdout, re.M)
    check("main" in symbols and CALLED[source] in symbols, "symbols", symbols)
    equal(set(symbols) & set(INLINED[source]), set(), "inlined, and yet a symbol")
    return program


def recorded(folder, program, *options):
    """As a user would where nobody else has much to do; the first screen, and what the report says."""
    capture = f"{program}.xspt"
    xsptrace("--sample=499", "--waits", "-o", capture, *options, "--", program, ROUNDS, timeout=120)
    return xsptrace("analyze", capture).stdout, json_report("analyze", capture)


def places_of(report, *kinds):
    """By place of the main thread's account: ns."""
    tables = report["sections"]["account"]["tables"]
    found = collections.Counter()
    for row in tables["rows"]["rows"]:
        if row["kind"] in kinds and row["place"]:
            found[row["place"]] += row["ns"]
    return found


def stacks_of(capture):
    """Folded: by the functions' names."""
    folded = capture.replace(".xspt", ".folded")
    xsptrace("export", capture, "-o", folded)
    with open(folded, encoding="utf-8") as f:
        return [line.rpartition(" ")[0].split(";") for line in f]


def follows(stacks, *names):
    """Is there a stack in which these functions stand one below the other?"""
    n = len(names)
    return any(tuple(s[i:i + n]) == names for s in stacks for i in range(len(s)))


@case
def places_in_c(folder):
    # four hundred samples: of forty, one run in ten is outside these bounds by chance
    screen, report = recorded(folder, built(folder, "inlined.c", "-g"), "--sample=999")
    cpu, waits = places_of(report, "on CPU"), places_of(report, "waiting")
    work = cpu["work_here"] + cpu["step_here"]
    check(0.55 < work / sum(cpu.values()) < 0.78, "two thirds of the computing are in work_here()", cpu)
    check(cpu["main"] < 0.05 * sum(cpu.values()), "main itself does nothing", cpu)
    check(0.002 * ROUNDS < 1e-9 * waits["rest_here"], "it sleeps there", waits)
    check(waits["lock_here"] > 0 and waits["main"] < 0.15 * waits["lock_here"], "it waits for the lock there", waits)
    for name in ("_here", "leaf", "rest_here"):
        check(name in screen, f"the first screen does not say {name}", screen)
    stacks = stacks_of(f"{folder}/inlined.xspt")
    check(follows(stacks, "main", "ask_here", "leaf"), "a function that an inlined one calls", stacks)
    check(follows(stacks, "main", "work_here", "step_here"), "one inlined into another", stacks)


@case
def places_in_cxx(folder):
    """Namespaces and members as their symbols would be; without what comes from headers of the system."""
    screen, report = recorded(folder, built(folder, "inlined_cc.cc", "-g"))
    cpu, waits = places_of(report, "on CPU"), places_of(report, "waiting")
    check(0.2 < cpu["shop::Cart::heat"] / sum(cpu.values()) < 0.9, "it computes in heat()", cpu)
    check(not any("operator[]" in p for p in cpu) and cpu["main"] < 0.05 * sum(cpu.values()), "whose place", cpu)
    check(0.002 * ROUNDS < 1e-9 * waits["shop::(anonymous namespace)::nap"], "it sleeps in nap()", waits)
    check("shop::Cart::heat" in screen, "the first screen", screen)
    stacks = stacks_of(f"{folder}/inlined_cc.xspt")
    check(follows(stacks, "main", "shop::(anonymous namespace)::pay", "shop::checkout"), "what it calls", stacks)


@case
def without_debug_information(folder):
    """Their caller stands for them, as before."""
    _, report = recorded(folder, built(folder, "inlined.c", "-g0"))
    cpu, waits = places_of(report, "on CPU"), places_of(report, "waiting")
    check(0.55 < cpu["main"] / sum(cpu.values()) < 0.78, "two thirds are in main()", cpu)
    check(waits["main"] > 0, "it waits in main()", waits)
    check(not any("_here" in p for p in [*cpu, *waits]), "guessed", cpu, waits)
    check(not any("_here" in name for s in stacks_of(f"{folder}/inlined.xspt") for name in s), "in stacks")


@case
def a_traced_function_is_there_once(folder):
    """Its span is not doubled by what is inlined into it."""
    recorded(folder, built(folder, "inlined.c", "-g"), "-e", "inlined:main", "-e", "inlined:leaf", "--sample", "--stacks", *NO_BRAKE)
    stacks = stacks_of(f"{folder}/inlined.xspt")
    check(follows(stacks, "main", "ask_here", "leaf"), "the span of what an inlined function calls", stacks)
    check(all(s.count("main") <= 1 for s in stacks), "main twice", stacks)


@case
def memory_has_them(folder):
    program = built(folder, "inlined.c", "-g")
    xsptrace("-q", "--memory=malloc:1", "-o", f"{program}.xspt", "--", program, 50, timeout=120)
    sites = json_report("analyze", f"{program}.xspt")["sections"]["memory"]["tables"]["sites"]["rows"]
    names = [s["name"] for s in sites]
    with open(f"{SOURCES}/inlined.c", encoding="ascii") as f:
        line = next(i for i, text in enumerate(f, 1) if "malloc(" in text)
    check(any(f"keep_here (inlined.c:{line}) <- main" in n for n in names), "where it allocates", names)


@case
def snapshots_have_them(folder):
    """Those of a flight recorder, before the end of the recording."""
    program = built(folder, "inlined.c", "-g")
    child = start([program, 100000], stdout=subprocess.DEVNULL)
    with Recording(folder, "-F", "-p", child.pid, "--profile") as recording:
        wait_for(lambda: recording.process.poll() is None and child.poll() is None, 1, "both run")
        run(["sleep", "1"])
        recording.process.send_signal(signal.SIGUSR2)
        snapshot = lambda: [f"{folder}/{f}" for f in os.listdir(folder) if "sigusr2" in f and f.endswith(".xspt")]
        path = wait_for(snapshot, 20, "a snapshot")[0]
        check(any("step_here" in s for s in stacks_of(path)), "the snapshot", os.listdir(folder))
        recording.stop()
        recording.wait()
    child.kill()


@case
def top_has_them(folder):
    """Where a thread ran, while it still does."""
    program = built(folder, "inlined.c", "-g")
    child = start([program, 1000000, "computes"], stdout=subprocess.DEVNULL)
    tool = start([XSPTRACE, "top", "-p", child.pid, "-i", "200ms"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    seen = []
    for line in tool.stdout:
        seen.append(line)
        if re.search(r"(work|step)_here", line) or len(seen) > 1000:
            break
    check(seen and "_here" in seen[-1], "top", "".join(seen[-60:]))
    tool.send_signal(signal.SIGINT)
    tool.stdout.read()
    finish(tool)
    child.kill()


main(declined=[])
