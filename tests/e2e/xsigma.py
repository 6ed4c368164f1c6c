#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""XSigma's scopes in each of their forms, and the ranges of NVTX and ITT: names, nesting and counts equal the program's own.

The programs (tests/workloads/xsigma_*) have XSigma's functions by their mangled names, built with
gcc and with clang, in a stripped library and in a static program.
"""
import collections
import os
import re
import signal
import subprocess
import sys
import time

from harness import (AS_ASKED, NO_BRAKE, TABLE, WORKLOADS, Recording, Trace, case, check, check_as_shipped, check_calls, equal, finish, main,
                     own_pages_of_code, record_attached, record_launched, start, start_ready, truth, wait_for, workload)

BUILDS = [b for b in ("gcc", "gcc_static", "clang", "clang_static")
          if b.startswith("gcc") or os.path.exists(f"{WORKLOADS}/xsigma_graph_clang")]

COLLECTOR = dict(os.environ, INTEL_LIBITTNOTIFY64=f"{WORKLOADS}/libtools_double.so")


def edges(trace):
    """How often which name lies directly in which, "" being nothing."""
    count = collections.Counter()
    threads = collections.defaultdict(list)
    for e in trace.spans:
        begin = round(e["ts"] * 1000)
        threads[e["pid"], e["tid"]].append((begin, -round(e["dur"] * 1000), e["name"]))
    for spans in threads.values():
        stack = []
        for begin, minus, name in sorted(spans):
            while stack and stack[-1][0] <= begin:
                stack.pop()
            count[f"{stack[-1][1] if stack else ''}>{name}"] += 1
            stack.append((begin - minus, name))
    return count


# RecordScope as the program (xsigma_scopes.cc) passes it; any other is a range
OPERATORS = ("one literal", "first", "second, longer", "even", "either odd", "either even", "crossed a",
             "crossed b", "dirty function")


def scope_of(name):
    if name in OPERATORS or name.startswith(("run time ", "[empty", "a name that is")):
        return "function"
    return "backward" if name == "dirty backward" else "user"


def check_scopes(trace):
    for e in trace.spans:
        if not e["name"].startswith("("):  # named by its function alone
            equal(e["args"].get("Scope"), scope_of(e["name"]), f"scope of {e}")


def check_all(trace, calls, nesting):
    trace.check_nothing_lost()
    equal(dict(trace.calls), dict(calls), "scopes by name")
    trace.check_nesting()
    equal(dict(edges(trace)), dict(nesting), "nesting")
    check_scopes(trace)
    for e in trace.spans:  # as in Kineto: what has another scope than the users' is an operator
        wanted = "user_annotation" if e["args"]["Scope"] == "user" else "cpu_op"
        equal(e["cat"], wanted, f"category of {e}")


def record(folder, program, *arguments, options=(), **process):
    return record_attached(folder, [workload(program), "--calls", 60, *arguments], *options,
                           name=program, **process)


@case
def branch_main(folder, *options, builds=BUILDS):
    for build in builds:
        trace, facts = record(folder, f"xsigma_main_{build}", options=options)
        check_as_shipped(trace, options)
        check_all(trace, facts["calls"], facts["edges"])


@case
def branch_main_bare(folder):
    branch_main(folder, *AS_ASKED, builds=BUILDS[:1])


BY_THE_AGENT = ("--inject", "-e", "xsigma", "--waits=off", "--sample=off")


@case
def by_the_agent(folder):
    """Scopes that come through slots have no probes: counts and nesting are the program's, also where RecordFunction of branch graph,
    which has probes, lies in between."""
    for program, how in (("main", []), ("graph", ["armed"])):
        for build in BUILDS[::2]:  # nothing is loaded into a static program
            name = f"xsigma_{program}_{build}"
            child = start_ready([workload(name), "--calls", 60, "--wait", "--out", f"{folder}/truth", *how])
            with Recording(folder, *BY_THE_AGENT, "-p", child.pid, "-o", f"{folder}/{name}.json", name=name) as r:
                check("records its regions, without probes" in r.output(), f"{name}: what was said", r.output())
                if program == "main":
                    equal(own_pages_of_code(child.pid, "libxsigma"), 0, f"{name}: pages of code with probes")
                child.send_signal(signal.SIGUSR1)
                equal(finish(child), 0, f"{name}: status")
                r.wait()
            facts = truth(f"{folder}/truth")
            check_all(Trace(f"{folder}/{name}.json"), facts["calls"], facts["edges"])


@case
def both_ways_at_once(folder):
    """Each scope is in both captures, equal in name, thread and nesting, and costs less by the agent."""
    for program in ("main", "graph"):
        child = start_ready([workload(f"xsigma_{program}_gcc"), "--calls", 60, "--wait", *(["armed"] if program == "graph" else [])])
        traces = {}
        with Recording(folder, "-p", child.pid, *BY_THE_AGENT[1:], "-o", f"{folder}/probes.json", name="probes") as probes:
            with Recording(folder, "-p", child.pid, *BY_THE_AGENT, "-o", f"{folder}/agent.json", name="agent") as agent:
                equal(own_pages_of_code(child.pid, "libxsigma") > 0, True, "probes of the first")
                child.send_signal(signal.SIGUSR1)
                equal(finish(child), 0, "status")
                for r in (agent, probes):
                    r.wait()
        for how in ("probes", "agent"):
            trace = traces[how] = Trace(f"{folder}/{how}.json")
            trace.check_nothing_lost()
        equal(*(collections.Counter((e["tid"], e["name"], e["args"]["Scope"]) for e in traces[how].spans) for how in ("agent", "probes")),
              f"{program}: scopes of threads")
        equal(*(dict(edges(traces[how])) for how in ("agent", "probes")), f"{program}: nesting")


@case
def branch_graph_with_a_profiler(folder):
    """before() is called: every name is known."""
    for build in BUILDS:
        trace, facts = record(folder, f"xsigma_graph_{build}", "armed")
        check_all(trace, facts["calls"], facts["edges"])


def by_function(name, callers):
    """A scope that no profiler names, by its function."""
    if name in callers:
        return f"({callers[name]})"
    call = re.fullmatch(r"\(anonymous namespace\)::(\w+)\+0x[0-9a-f]+", name)
    return f"({call[1]})" if call else name


@case
def branch_graph_without_a_profiler(folder):
    """before() is never called: a scope has its literal's name or its caller's, and never another
    scope's."""
    for build in BUILDS:
        trace, facts = record(folder, f"xsigma_graph_{build}")
        with open(f"{folder}/xsptrace.log", encoding="utf-8") as f:
            text = f.read()
        callers, dynamic = facts["callers"], facts["dynamic"]
        odd = [n for n in facts["calls"] if n.startswith(("[empty", "a name that is"))]
        literals = [n for n in trace.calls if n in callers or n in odd]
        check(not set(literals) & set(dynamic), f"{build}: names nobody can know", literals)
        for name in literals:
            equal(trace.calls[name], facts["calls"][name], f"{build}: scopes `{name}`")
        calls, nesting = collections.Counter(), collections.Counter()
        for name, count in facts["calls"].items():
            calls[by_function(name, callers)] += count
        for edge, count in facts["edges"].items():
            nesting[">".join(by_function(n, callers) for n in edge.split(">"))] += count
        for e in trace.spans:
            e["name"] = by_function(e["name"], callers)
        trace.calls = collections.Counter(e["name"] for e in trace.spans)
        check_all(trace, calls, nesting)
        equal(set(literals), (set(callers) - set(dynamic)) | set(odd), f"{build}: literals")
        unnamed, sites = map(int, re.search(r"name the code does not tell: (\d+) of (\d+) ",
                                            text).groups())
        check(unnamed < sites and sites - unnamed >= len(literals), f"{build}: {unnamed} of {sites}")
        equal(trace.json["xsptrace_capture"]["unnamed call sites"].split(" (")[0], f"{unnamed} of {sites}", "in the trace")
        # a destructor that calls end() is not probed as well: only the program's own second end() is a hit that ends nothing
        equal(trace.losses["silent_hits"], facts["calls"]["by hand"], f"{build}: second ends")


@case
def names_of_a_process_that_is_gone(folder):
    """It ends before the recorder looks at its first event."""
    for build in BUILDS:
        trace, facts = record_launched(folder, [workload(f"xsigma_graph_{build}"), "--calls", 1])
        check(not [n for n in trace.calls if n.startswith("0x")], "addresses", trace.calls)
        equal(sum(trace.calls.values()), sum(facts["calls"].values()), "scopes")


@case
def scopes_that_a_collector_is_told_of(folder):
    """XSigma reports its scopes to ITT: they are shown once, and so are the program's own tasks."""
    for build in BUILDS[::2]:
        for program, *mode in (("main",), ("graph", "armed"), ("graph", "observed")):
            trace, facts = record(folder, f"xsigma_{program}_{build}", *mode, env=COLLECTOR)
            check_all(trace, facts["calls"], facts["edges"])
            check(trace.timeline["relayed"] > 0, "no collector was told")


@case
def tasks_in_scopes_that_no_collector_is_told_of(folder):
    """Without an observer branch graph's RecordFunction reports nothing: a task of its name is another one."""
    for build in BUILDS[::2]:
        trace, facts = record(folder, f"xsigma_graph_{build}", env=COLLECTOR)
        trace.check_nothing_lost()
        for name in ("task", "in its scope"):
            equal(trace.calls[name], facts["calls"][name], f"{build}: `{name}`")


@case
def collector_alone(folder):
    """-e itt shows all calls of the collector, from any caller."""
    trace, facts = record(folder, "xsigma_main_gcc", options=("-e", "itt"), env=COLLECTOR)
    trace.check_nothing_lost()
    equal(dict(trace.calls), facts["calls"], "tasks")


@case
def chosen_by_name(folder):
    trace, facts = record(folder, "xsigma_main_gcc", options=("-e", "xsigma"))
    check_all(trace, facts["calls"], facts["edges"])


@case
def scope_of_each_call(folder):
    """Whatever else is or is not recorded; and --scopes chooses by it."""
    for build in BUILDS[::2]:
        for options in (["-e", "xsigma"], ["--min-duration", "1ns"], ["-e", "xsigma", "--max-depth", "9"]):
            trace, facts = record(folder, f"xsigma_graph_{build}", "armed", options=options)
            check_all(trace, facts["calls"], facts["edges"])
        for scope in ("function", "backward", "user"):
            trace, facts = record(folder, f"xsigma_graph_{build}", "armed",
                                  options=("-e", "xsigma", "--scopes", scope))
            trace.check_nothing_lost()
            equal(dict(trace.calls), {n: c for n, c in facts["calls"].items() if scope_of(n) == scope},
                  f"spans of scope {scope}")
            check_scopes(trace)


LATE = """
import ctypes, sys
print("waiting", flush=True)
sys.stdin.readline()
lib = ctypes.CDLL(sys.argv[1])
begin, end = lib._ZN6xsigma8profiler14RecordFunctionC1EPKc, lib._ZN6xsigma8profiler14RecordFunctionD1Ev
print("loaded", flush=True)
sys.stdin.readline()
room, name = ctypes.create_string_buffer(64), ctypes.create_string_buffer(b"late")
for i in range(30):
    begin(room, name)
    end(room)
"""


@case
def library_that_comes_later(folder):
    """-e xsigma waits for it, as for a launched program."""
    child = start([sys.executable, "-c", LATE, f"{WORKLOADS}/libxsigma_main_gcc.so"],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    with Recording(folder, "-p", child.pid, "-e", "xsigma", "-o", f"{folder}/t.json") as recording:
        check("nothing that -e xsigma knows is loaded" in recording.output(), "says that it waits")
        child.stdin.write(b"load\n")
        child.stdin.flush()
        child.stdout.readline()
        wait_for(lambda: own_pages_of_code(child.pid), 5, "probes in the library")
        time.sleep(0.1)  # in all of its functions
        child.stdin.write(b"call\n")
        child.stdin.flush()
        equal(child.wait(timeout=30), 0, "status")
        recording.wait()
    equal(Trace(f"{folder}/t.json").calls["late"], 30, "scopes")


@case
def functions_of_ranges_by_pattern_too(folder):
    """Those that a semaphore guards, and those that are not: the spans of both are all there."""
    trace, facts = record(folder, "annotated", options=(
        "-e", "record_function", "-e", "annotated:xsp_*", "-e", "libannotated.so:xsp_*"))
    ranges = sum(facts["calls"].values())
    for name, count in facts["calls"].items():
        equal(trace.calls[name], count, f"ranges `{name}`")
    for name in ("xsp_record_function_enter", "xsp_record_function_exit"):
        equal(trace.calls[name], ranges, f"calls of {name}")
    trace, facts = record(folder, "xsigma_main_gcc", options=(
        "-e", "xsigma", "-e", "libxsigma_main_gcc.so:*itt_range*"))
    guards = sum(facts["calls"].values())
    equal({n: c for n, c in trace.calls.items() if "itt" not in n}, facts["calls"], "scopes")
    equal(trace.calls["xsigma::profiler::itt_range_push"], guards, "calls that open a range")


@case
def nvtx_and_itt(folder):
    trace, facts = record(folder, "tool_ranges")
    check_all(trace, facts["calls"], facts["edges"])


@case
def nvtx_alone(folder):
    trace, facts = record(folder, "tool_ranges", options=("-e", "nvtx"))
    equal(dict(trace.calls), {k: v for k, v in facts["calls"].items() if k != "itt task"}, "ranges")


@case
def more_open_scopes_than_there_is_room_for(folder):
    """What the kernel forgets of open scopes is counted: so many have no end."""
    for calls, room in ((1000, True), (70000, False)):
        trace, facts = record_launched(folder, [workload("open_scopes"), "--calls", calls], "-e", "xsigma",
                                       "--buffer", "256M")
        check_calls(trace, facts)
        open_ones = sum(1 for e in trace.spans if e["args"].get("finished") is False or e["args"].get("exit lost"))
        print(f"  {calls} scopes: {open_ones} without an end, {trace.losses['untracked']} untracked")
        equal(trace.losses["untracked"], open_ones, "untracked")
        check((open_ones == 0) == room, f"{open_ones} of {calls} have no end")


@case
def end_that_is_lost(folder):
    """There is no room for a scope's end: that its destructor ends it again later does not give it a duration."""
    child = start_ready([workload("lost_end"), "--wait", "--calls", 20000], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def go():
        child.stdin.write(b"\n")
        child.stdin.flush()

    with Recording(folder, "-p", child.pid, "-e", "xsigma", "-e", "lost_end_flood", "--buffer", "64K",
                   "-o", f"{folder}/t.json") as recording:
        child.send_signal(signal.SIGUSR1)
        time.sleep(0.5)  # its beginning is read
        os.kill(recording.process.pid, signal.SIGSTOP)
        go()
        equal(child.stdout.readline(), b"ended\n", "the first end")
        os.kill(recording.process.pid, signal.SIGCONT)
        time.sleep(0.5)  # there is room again
        go()
        equal(finish(child), 0, "status")
        output = recording.wait()
    trace = Trace(f"{folder}/t.json")
    scope, = [e for e in trace.spans if e["name"] == "lost end"]
    check(scope["args"].get("finished") is False or scope["args"].get("exit lost"), "it has a duration", scope)
    equal(trace.timeline["exits"] + trace.losses["lost_exits"], 20001, "ends of calls and of the scope")
    check("exits" in output, "the summary", output)


main(declined=[*NO_BRAKE, TABLE])
