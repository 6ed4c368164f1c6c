#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Operators that the agent in the process records, in the recorder's capture. rings_double is a program that is its own
agent, honest or not; agent_calls.py has the agent alone."""
import collections
import json
import os
import re
import sqlite3
import statistics
import subprocess
import time

from inject import filter_of
from harness import (EXTRA, LONG, READY, SCRIPTS, TORCH, WORKLOADS, XSPTRACE, Recording, Trace, case, check, equal, finish, main, need_torch,
                     own_pages_of_code, run, start, torch_roots, torch_script, wait_for, workload, xsptrace)

AGENT_LIBRARY = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")
DOUBLE = os.path.join(WORKLOADS, "rings_double", "rings_double")
MM, ADD = "at::_ops::mm::call", "at::_ops::add_Tensor::call"
CALLS = 2000
AS_USUAL = "have probes, as usual: "
BY_AGENT = "the agent in process %d records 2 of 2 operators, without probes"
QUIET = ["--waits=off", "--sample=off"]


def waiting(command):
    """A program that says that it is ready, and waits for a line: go()."""
    child = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(child.stdout.readline(), "ready\n", "what the program says first")
    return child


def go(child):
    child.stdin.write("\n")
    child.stdin.flush()


class Double:
    def __init__(self, mode, calls=CALLS):
        self.child = start([DOUBLE, mode, calls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.child.stdout.readline())

    def go(self):
        """Makes its calls; how many of them found the ring full."""
        go(self.child)
        return int(self.child.stdout.readline().split()[1])

    def end(self):
        self.child.stdin.close()
        equal(finish(self.child), 0, "status of the target")


def record(folder, mode, calls=CALLS, *options):
    """The trace of the double's calls, what the recording said, and how many calls the ring had no room for."""
    double = Double(mode, calls)
    out = f"{folder}/{mode}.json"
    with Recording(folder, "--inject", *QUIET, *options, "-p", double.pid, "-o", out, name=mode) as r:
        lost = double.go()
        time.sleep(0.1)
        r.stop()
        r.wait()
    double.end()
    with open(f"{folder}/{mode}.log", encoding="utf-8") as f:
        return Trace(out), f.read(), lost, double.pid


def nested(trace):
    """How many calls of add lie in one of mm."""
    around, inside = {"ts": 0, "dur": 0}, 0
    for span in sorted(trace.spans, key=lambda e: (e["ts"], -e["dur"])):
        if span["name"] == MM:
            around = span
        else:
            inside += span["ts"] + span["dur"] <= around["ts"] + around["dur"] + 0.001
    return inside


@case
def counts_of_the_double(folder):
    trace, said, lost, pid = record(folder, "honest")
    check(BY_AGENT % pid in said, "what was said", said)
    equal((lost, dict(trace.calls)), (0, {MM: CALLS, ADD: CALLS}), "calls")
    equal(nested(trace), CALLS, "those of add that lie in one of mm")
    equal(trace.json["xsptrace_overhead"]["probes_cost_ns"], 4 * CALLS * 10, "what the records cost, at 10 ns each")


@case
def regions_of_the_double(folder):
    """Operators in regions with a value, all by the agent."""
    trace, said, lost, pid = record(folder, "regions")
    check(BY_AGENT % pid in said, "what was said", said)
    equal((lost, dict(trace.calls)), (0, {MM: CALLS, ADD: CALLS, "region": CALLS}), "calls")
    equal(nested(trace), CALLS, "those of add that lie in one of mm")
    values = [v for e in trace.json["traceEvents"] if e["ph"] == "C" and e["name"] == "region" for v in e["args"].values()]
    equal(sorted(values), [float(n) for n in range(CALLS)], "values")


@case
def what_the_agent_does_not_record(folder):
    """Of two operators the agent has one; the other one keeps its probes, and no call is there twice."""
    trace, said, _, pid = record(folder, "half")
    check(f"the agent in process {pid} records 1 of 2 operators" in said, "what was said", said)
    equal(dict(trace.calls), {MM: CALLS, ADD: CALLS}, "calls")
    equal(nested(trace), CALLS, "those of add, by probes, that lie in one of mm, by the agent")


@case
def files_that_are_no_agents(folder):
    """The probes stay, with the reason, and see all calls."""
    for mode, why in (("small", "it has another size"), ("unsealed", "it could become smaller"),
                      ("version", "of another version"), ("clock", "of another version"),
                      ("refused", "lead to functions of another tool")):
        trace, said, _, pid = record(folder, mode)
        check(re.search(f"operators of process {pid} {AS_USUAL}.*{why}", said), f"{mode}: what was said", said)
        equal(dict(trace.calls), {MM: CALLS, ADD: CALLS}, f"{mode}: calls")


@case(long="an agent that does not begin is waited for")
def agents_that_do_not_begin(folder):
    for mode in ("unnamed", "idle"):
        trace, said, _, pid = record(folder, mode)
        check(f"operators of process {pid} {AS_USUAL}the agent has not begun within a second" in said, "what was said", said)
        equal(dict(trace.calls), {MM: CALLS, ADD: CALLS}, f"{mode}: calls")


@case
def what_needs_probes(folder):
    """What the agent does not read is said, and operators have probes."""
    for options, why in ((["--stacks"], "read results, values, stacks"), (["--max-depth", "5"], "choose calls by")):
        trace, said, _, _ = record(folder, "honest", CALLS, *options)
        check(f"operators keep their probes: the agent cannot yet {why}" in said, "what was said", said)
        equal(set(trace.calls), {MM, ADD}, "calls")


@case
def a_full_ring(folder):
    """Nothing is lost unsaid: recorded and lost calls are all."""
    calls = 300000
    trace, said, lost, _ = record(folder, "honest", calls)
    equal(trace.calls[MM] + lost, calls, "recorded and lost")
    equal(trace.calls[ADD], trace.calls[MM], "both")
    counted = trace.json["xsptrace_losses"]
    equal((counted["lost_entries"], counted["lost_exits"], counted["lost_other"]), (lost, lost, 0), "lost, as the capture says")
    equal("found the agent's memory full" in said, lost > 0, "what was said")


@case
def forged_memory(folder):
    """A thread writes over all of the memory while it is read: what cannot be is counted, and both go on to their ends."""
    trace, said, _, _ = record(folder, "forged", 20000)
    check(trace.json["xsptrace_losses"]["lost_other"] > 0, "nothing was found")
    check("records of the agent could not be" in said, "what was said", said)


@case
def killed_while_it_writes(folder):
    """What the ring held is in the capture; then the recorder dies, and the next recording works."""
    double = Double("honest", 20000)
    out = f"{folder}/target.json"
    with Recording(folder, "--inject", *QUIET, "-p", double.pid, "-o", out, name="target") as r:
        lost = double.go()
        double.child.kill()
        r.wait()
    equal(Trace(out).calls[MM], 20000 - lost, "calls of the killed target")
    double = Double("honest")
    with Recording(folder, "--inject", *QUIET, "-p", double.pid, "-o", f"{folder}/dies.json", name="dies") as r:
        r.process.kill()
        r.process.wait()
    out = f"{folder}/next.json"
    with Recording(folder, "--inject", *QUIET, "-p", double.pid, "-o", out, name="next") as r:
        double.go()
        time.sleep(0.1)
        r.stop()
        r.wait()
    double.end()
    equal(dict(Trace(out).calls), {MM: CALLS, ADD: CALLS}, "calls of the next recording")


@case
def two_recorders(folder):
    """The second one has probes, says so, and both have all calls."""
    double = Double("honest")
    outs = [f"{folder}/{n}.json" for n in ("first", "second")]
    with Recording(folder, "--inject", *QUIET, "-p", double.pid, "-o", outs[0], name="first") as first:
        with Recording(folder, "--inject", *QUIET, "-p", double.pid, "-o", outs[1], name="second") as second:
            double.go()
            time.sleep(0.1)
            second.stop()
            second.wait()
        first.stop()
        first.wait()
    double.end()
    with open(f"{folder}/second.log", encoding="utf-8") as f:
        said = f.read()
    check("another recording reads what the agent records" in said, "what was said", said)
    for out in outs:
        equal(dict(Trace(out).calls), {MM: CALLS, ADD: CALLS}, f"calls in {out}")


# ---- a program that xsptrace starts ----

LATE = """import ctypes, os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
library = ctypes.CDLL(sys.argv[1])
sys.stdin.readline()
for _ in range(20):
    assert library.all(1) == 151
"""


AGENT = "records 150 of 150 operators, without probes"


def a_torch(folder, how, more=""):
    """A library called libtorch_cpu.so with 150 operators, which all() calls, and more."""
    names = [f"_ZN2at4_ops{len(str(n)) + 1}f{n}4callEl" for n in range(150)]
    os.makedirs(f"{folder}/{how}")
    with open(f"{folder}/{how}/many.c", "w", encoding="ascii") as f:
        for n, name in enumerate(names):
            f.write(f'long f{n}(long) __asm__("{name}");\nlong f{n}(long a) {{ return a + 1; }}\n')
        f.write(f"long all(long a) {{ {' '.join(f'a = f{n}(a);' for n in range(150))} return a; }}\n{more}")
    library = f"{folder}/{how}/libtorch_cpu.so"
    equal(run(["cc", "-O1", "-fPIC", "-shared", f"-Wl,{how}", "-o", library, f"{folder}/{how}/many.c"]).returncode, 0, "cc")
    return library


def wait_for_probes(pid):
    """Until the process's own pages of PyTorch's code are no more than they were half a second ago: nobody says which was the last."""
    seen = collections.deque(maxlen=6)

    def settled():
        seen.append(own_pages_of_code(pid, "libtorch_cpu.so"))
        time.sleep(0.1)
        return len(seen) == seen.maxlen and seen[0] == seen[-1] > 0
    wait_for(settled, 20, "probes")


def launch(folder, name, said, *command, options=()):
    """Runs a command that waits for a line before it loads PyTorch, and for one when it has. The trace, and what was said."""
    out, log = f"{folder}/{name}.json", f"{folder}/{name}.log"
    with open(log, "wb") as to:
        child = start([XSPTRACE, *EXTRA, *options, "-o", out, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=to, text=True)
    pid = int(child.stdout.readline())

    def output():
        with open(log, encoding="utf-8") as f:
            return f.read()
    probes = None if said == AGENT else said
    for line in (READY, said):
        wait_for(lambda: re.search(line, output()), 20, f"{line}: {output()}")  # pylint: disable=cell-var-from-loop
        if line is probes:
            wait_for_probes(pid)
        go(child)
    child.stdin.close()
    equal(finish(child), 0, output())
    return Trace(out), output()


@case
def launched(folder):
    """PyTorch appears late: the agent is loaded then, and has all calls. Where it cannot record, or is not to, probes have them."""
    calls = {f"at::_ops::f{n}::call": 20 for n in range(150)}
    for name, how, said, options in (("agent", "-z,now", AGENT, ()), ("symbolic", "-Bsymbolic", AS_USUAL + "the agent has not begun", ()),
                                     ("refused", "-z,norelro", "operators of process [0-9]+ " + AS_USUAL + ".*seccomp", ()),
                                     ("off", "-z,lazy", "tracing", ("--agent=off",))):
        library = a_torch(folder, how)
        # no thread may end there
        begin = "import ctypes\nlibc = ctypes.CDLL(None)\n" + filter_of((60, 1 << 31)) if name == "refused" else ""
        trace, log = launch(folder, name, said, "/usr/bin/python3", "-c", begin + LATE, library, options=options)
        equal("agent" in log.replace("agent.json", ""), name in ("agent", "symbolic"), f"{name}: what was said: {log}")
        # nobody says when the last probes are in
        check(dict(trace.calls) == calls if name == "agent" else trace.calls and trace.calls.keys() <= calls.keys(), f"{name}: calls", trace.calls)


STORM = """import ctypes, sys, threading, time
library, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
close = libc.dlclose
close.argtypes = [ctypes.c_void_p]
over, wrong, rounds = threading.Event(), [], [0] * 16


def work(n):
    while not over.is_set():
        rounds[n] += 1
        if n % 4 == 3:  # the loader
            close(ctypes.CDLL("libz.so.1")._handle)
        elif n % 4 == 2:
            libc.free(libc.malloc(1000 * n))
        elif library.all(n) != 150 + n:
            wrong.append(n)


threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
for t in threads:
    t.start()
print("ready", flush=True)
sys.stdin.readline()
before = rounds[:]
while any(now < then + 2 for now, then in zip(rounds, before)):
    time.sleep(0.001)
print("called", flush=True)
sys.stdin.readline()
over.set()
for t in threads:
    t.join()
sys.exit(len(wrong))
"""


@case(long="a hundred processes are injected into")
def injected_in_a_storm(folder):
    """While 16 threads call operators, malloc, dlopen and dlclose: a hundred times of a hundred."""
    library = a_torch(folder, "-z,now")
    for n in range(100 if LONG else 20):
        child = waiting(["/usr/bin/python3", "-c", STORM, library])
        out = f"{folder}/{n}.json"
        with Recording(folder, "--inject", *QUIET, "-p", child.pid, "-o", out, name=str(n)) as r:
            check(AGENT in r.output(), f"time {n}: what was said", r.output())
            go(child)
            equal(child.stdout.readline(), "called\n", f"time {n}: the program")
            r.stop()
            r.wait()
        # each of eight threads has made a whole round at least
        check(min(Trace(out).calls[f"at::_ops::f{k}::call"] for k in range(150)) >= 8, f"time {n}: operators", r.output())
        os.unlink(out)
        go(child)
        child.stdin.close()
        equal(finish(child), 0, f"time {n}: status")


ENDING = """import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
def work():
    while True:
        library.all(1)
def deeper(n):
    return deeper(n - 1) if n else work()
for n in range(3):
    threading.Thread(target=deeper, args=(20 * n,), daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""


@case(long="half a minute for each program that ends")
def interpreters_that_end(folder):
    """It frees the frames of threads that are in operators, and go on there: whoever reads these frames must not fall."""
    library = a_torch(folder, "-z,now")
    for n in range(20 if LONG else 4):
        child = waiting(["/usr/bin/python3", "-c", ENDING, library])
        out = f"{folder}/{n}.json"
        with Recording(folder, "--inject", *QUIET, "--python", "--attach-limit=120", "-p", child.pid, "-o", out, name=str(n)) as r:
            time.sleep(0.5)  # the threads go on meanwhile
            go(child)
            equal(finish(child), 0, f"time {n}: status")
            r.wait()
        with open(f"{folder}/{n}.log", encoding="utf-8") as f:
            check(AGENT in f.read(), f"time {n}: what was said")
        lines = [e["args"].get("Call stack", "") for e in Trace(out).spans]
        check(sum(": work" in text for text in lines) > 100, f"time {n}: calls with lines", len(lines), lines[:3])


# ---- PyTorch ----


STEPS = 40


def read_counts(child):
    """What torch_stepped.py says once it waits: counts of one step by torch.profiler."""
    line = child.stdout.readline()
    check(line, "the script has not begun")
    return collections.Counter({k: int(v) for k, v in (x.split("=") for x in line.split()[1:])})


def stepped(folder, root, *options):
    """Records its steps, from when it waits. torch.profiler's counts, and what lies in what."""
    child = start(torch_script(folder, root, f"{SCRIPTS}/torch_stepped.py", STEPS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expected, out = read_counts(child), f"{folder}/stepped.db"
    with Recording(folder, *options, "--max-overhead=off", "--attach-limit=120", "-p", child.pid, "-o", out, name=options[0].strip("-")) as r:
        go(child)
        child.stdout.readline()
        time.sleep(0.2)
        r.stop()
        r.wait()
    child.stdin.close()
    equal(finish(child), 0, "status")
    return expected, calls_in(out)


def stepped_from_start(folder, root):
    """The same of a program that xsptrace starts: by the agent."""
    out, log = f"{folder}/launched.db", f"{folder}/launched.log"
    with open(log, "wb") as to:
        child = start([XSPTRACE, *EXTRA, "--attach-limit=120", "-o", out, "--", *torch_script(folder, root, f"{SCRIPTS}/torch_stepped.py", STEPS)],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=to, text=True)
    expected = read_counts(child)
    with open(log, encoding="utf-8") as f:
        wait_for(lambda: "operators, without probes" in f.read(), 20, "the agent")
    # only what follows the line is looked at: the profiled step came before
    from_ns = time.time_ns()
    go(child)
    child.stdout.readline()
    child.stdin.close()
    equal(finish(child, 120), 0, "status")
    return expected, calls_in(out, from_ns)


def calls_in(out, from_ns=0):
    """(name, name around, ending): how many, of a recording that has lost nothing."""
    with sqlite3.connect(f"file:{out}?mode=ro", uri=True) as db:
        lost = dict(db.execute("SELECT name, value FROM losses WHERE name LIKE 'lost%'"))
        equal(set(lost.values()), {0}, "losses")
        return collections.Counter(db.execute("SELECT a.name, b.name, a.ending FROM calls a LEFT JOIN calls b ON a.parent_id = b.id "
                                              "WHERE a.start_ns + (SELECT start_ns FROM runs) >= ?", (from_ns,)))


@case(long="each PyTorch of this machine is loaded, and profiled, three times")
def counts_of_pytorch(folder):
    """Operators are those that torch.profiler counts; nodes and ranges by probes lie around them as in a recording by probes alone."""
    for root in torch_roots(True):
        around = {}
        for how in ("--inject", "--python=off", "--"):
            expected, around[how] = stepped_from_start(folder, root) if how == "--" else stepped(folder, root, how)
            got = collections.Counter()
            for (name, _, _), count in around[how].items():
                got[name] += count
            # what an operator calls again by itself (mean, sum) the profiler does not show; probes and agent agree on it, see below
            others = {k: (got[k], STEPS * v) for k, v in expected.items() if k.startswith("aten::") and got[k] != STEPS * v}
            check(len(others) <= 5 and all(more > less for more, less in others.values()), f"{root} {how}: other counts than torch.profiler's",
                  others)
            equal(around[how][("aten::mm", "failing", "unwound")], STEPS, "calls that an exception left")
        equal(around["--inject"], around["--python=off"], f"{root}: what lies in what")
        equal(around["--"], around["--python=off"], f"{root}: what lies in what, of a program that xsptrace starts")


# ---- the same run by the agent and by probes ----

Span = collections.namedtuple("Span", "id parent tid name start end ending")


def spans_of(out):
    """{tid: [Span]} of operators, by start; ns of CLOCK_MONOTONIC."""
    with open(f"{out}.json", encoding="utf-8") as f:
        begun = json.load(f)["xsptrace_window"]["monotonic_start_ns"]
    found = collections.defaultdict(list)
    with sqlite3.connect(f"file:{out}.db?mode=ro", uri=True) as db:
        for row in db.execute("SELECT s.id, s.parent_id, t.tid, n.name, s.start_ns, s.end_ns, s.ending FROM spans s JOIN names n ON s.name_id = n.name_id "
                              "JOIN threads t ON s.thread_id = t.thread_id ORDER BY s.start_ns, s.depth"):
            span = Span(*row)
            found[span.tid].append(span._replace(start=span.start + begun, end=span.end + begun))
    return found


def pairs_of(agent, probes):
    """{id by the agent: (its span, the probes' span)}: of the same name, in it; a thunk begins before its function and ends after it,
    but that an exception has passed a function shows later."""
    waiting, pairs = collections.defaultdict(collections.deque), {}
    for span in probes:
        waiting[span.name].append(span)
    for span in agent:
        others = waiting[span.name]
        while others and others[0].start < span.start - CLOCKS_NS:
            others.popleft()
        if others and (others[0].start if span.ending == UNWOUND else others[0].end) <= span.end + CLOCKS_NS:
            pairs[span.id] = (span, others.popleft())
    return pairs


def around(span, by_id, kept):
    """The nearest span around it that both have."""
    span = by_id.get(span.parent)
    while span and span.id not in kept:
        span = by_id.get(span.parent)
    return span.id if span else None


UNWOUND, POINT = 1, 5  # of the table endings
CLOCKS_NS = 2000  # how far the two clocks may be apart


def both_agree(folder, child, act, is_operator):
    """Two recordings at once: what the agent has, the probes have too. What only they have, by name; and the medians by which the
    agent's spans begin earlier and end later."""
    outs = [f"{folder}/{name}" for name in ("agent", "probes")]
    options = [[*QUIET, "--attach-limit=120", "-p", child.pid, "-o", f"{out}.db", "-o", f"{out}.json"] for out in outs]
    with Recording(folder, "--inject", *options[0], name="agent") as first, Recording(folder, *options[1], name="probes") as second:
        act()
        time.sleep(0.2)
        for recording in (first, second):
            recording.stop()
        for recording in (first, second):
            recording.wait()
    by_agent, by_probes = (spans_of(out) for out in outs)
    only, early, late, matched = collections.Counter(), [], [], 0
    for tid, agent in by_agent.items():
        probes = by_probes[tid]
        mine, theirs = ([s for s in spans if is_operator(s.name)] for spans in (agent, probes))
        pairs = pairs_of(mine, theirs)
        check(len(pairs) == len(mine), f"thread {tid}: spans of the agent that no probe has",
              [s for s in mine if s.id not in pairs][:20], len(mine), len(theirs))
        back = {other.id: span.id for span, other in pairs.values()}
        only.update(s.name for s in theirs if s.id not in back)
        agents, others = ({s.id: s for s in spans} for spans in (agent, probes))
        for span, other in pairs.values():
            if other.ending != POINT:  # of a function of a few instructions a probe has no end
                equal(span.ending, other.ending, f"how {span.name} ended")
            equal(around(span, agents, pairs), back.get(around(other, others, back)), f"what is around {span}")
            early.append(other.start - span.start)
            if span.ending == other.ending != UNWOUND:
                late.append(span.end - other.end)
        matched += len(pairs)
    return matched, only, statistics.median(early), statistics.median(late or [0])


@case
def both_at_once(folder):
    """Each call is there twice: the same name, thread, end and surroundings, and the agent's lies around the probes'."""
    for what, number in (("exceptions", 200), ("recursion", 200), ("threads", 20)):
        child = waiting([workload("operators"), AGENT_LIBRARY, what, number])

        def act():
            go(child)  # pylint: disable=cell-var-from-loop
            child.communicate()  # pylint: disable=cell-var-from-loop

        matched, only, early, late = both_agree(folder, child, act, lambda name: "at::_ops::" in name)
        print(f"  {what}: {matched} calls; the agent begins {early} ns earlier and ends {late} ns later; by probes only: {dict(only)}")
        check(matched >= number and not only, f"{what}: calls", matched, only)


@case(long="each PyTorch of this machine is loaded, and recorded by two at once")
def both_at_once_of_pytorch(folder):
    """The same of PyTorch, also beside torch.profiler. What libraries call without a slot is by probes only."""
    for root, how in [(root, how) for root in torch_roots(True) for how in ([], ["profiled"])]:
        child = start(torch_script(folder, root, f"{SCRIPTS}/torch_various.py", "3", *how), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(int(child.stdout.readline()), child.pid, "the script")

        def act():
            go(child)  # pylint: disable=cell-var-from-loop
            equal(child.stdout.readline(), "done\n", "the script")  # pylint: disable=cell-var-from-loop

        matched, only, early, late = both_agree(folder, child, act, lambda name: name.startswith(("aten::", "autograd::")))
        child.stdin.close()
        equal(finish(child), 0, "status")
        print(f"  {root or 'here'} {how}: {matched} calls; the agent begins {early} ns earlier and ends {late} ns later; by probes only: {dict(only)}")
        check(matched > 1000 and sum(only.values()) < matched / 20, "too many by probes only", matched, only)


SHAPES = """import sys, torch
from torch.nn import functional as f
torch.set_num_threads(1)
x, y, seven = torch.randn(4, 5), torch.randn(5, 6), torch.zeros(2, 1, 2, 1, 2, 1, 3)
image, kernel, at = torch.randn(1, 2, 8, 8), torch.randn(3, 2, 3, 3), torch.tensor([0, 2])
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[1])):
    z = torch.add(torch.mm(x, y), 1.5, alpha=n)
    all_of_it = torch.cat([z, z[1:], z[n % 4:]])
    all_of_it.sum(), all_of_it.sum(0), all_of_it.sum((0, 1), keepdim=True), torch.logsumexp(z, [0])
    seven.transpose(0, 6), f.conv2d(image, kernel), f.conv2d(image, kernel, kernel.new_zeros(3), stride=2)
    f.layer_norm(z, (6,)), f.batch_norm(image, None, None, training=True), torch.clamp(z, max=1.0), torch.clamp(z, -1, n)
    torch.empty(n, 4, dtype=torch.float64), torch.arange(n), z[at], z[:, None], torch.stack([x] * 40), z.chunk(2), z.to(torch.half)
    x.t().contiguous(), z.to_sparse().to_dense(), torch._foreach_add([x, y], 1), torch.tensor(3.0) * 2, torch.zeros(0, n) @ torch.zeros(n, 2)
    torch.linalg.norm(z), torch.quantize_per_tensor(z, 0.1, 0, torch.qint8).dequantize(), torch.complex(z, z).abs(), torch.einsum("ij,jk", x, y)
"""


LINES = """import sys, threading, torch
from torch.nn import functional as f
from torch.profiler import record_function
torch.set_num_threads(1)
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient.mul(2)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.second(f.relu(self.first(x)))
net = torch.nn.Sequential(Block(), torch.nn.Sequential(Block(), torch.nn.LayerNorm(4)))
def deep(n, x):
    return deep(n - 1, x) if n else torch.add(x, x)
def numbers(x):
    for n in range(3):
        yield torch.mul(x, n)
made = [compile("torch.exp(x)", f"made {n}", "exec") for n in range(3)]
def work(rounds):
    for n in range(rounds):
        x = torch.ones(3, 4, requires_grad=True)
        y = net(x)
        with record_function("a range"):
            y = Twice.apply(y)
        y.sum().backward()
        deep(n % 7, x), deep(100, x), [torch.neg(z) for z in numbers(x)], list(map(lambda z: z.t(), numbers(x)))
        sorted(range(3), key=lambda k: torch.sub(x, k).sum().item())
        exec(made[n % 3], {"torch": torch, "x": x})
        try:
            torch.mm(x, x)
        except RuntimeError:
            torch.cos(x)
work(1)
print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=work, args=(int(sys.argv[1]),)) for _ in range(3)]
for t in threads:
    t.start()
work(int(sys.argv[1]))
for t in threads:
    t.join()
"""


def spans_shown(out, keys):
    """{tid: [Span with what is shown of it in place of its ending]}, by start."""
    found, trace = collections.defaultdict(list), Trace(out)
    window = trace.json["xsptrace_window"]
    zero_ns = trace.json["baseTimeNanoseconds"] - window["start_ns"] + window["monotonic_start_ns"]
    for n, e in enumerate(sorted(trace.spans, key=lambda e: e["ts"])):
        start_ns = round(e["ts"] * 1000) + zero_ns
        found[e["tid"]].append(Span(n, None, e["tid"], e["name"], start_ns, start_ns + round(e["dur"] * 1000),
                                    {k: v for k, v in e["args"].items() if keys.match(k)}))
    return found


def shown_both_ways(folder, child, keys, *options):
    """Records what the program does once it gets a line, until its end, by the agent and by probes at once: {name: [what the agent shows
    of each call]}, each as the probes show it, and how many the probes alone have."""
    outs = [f"{folder}/{name}.json" for name in ("agent", "probes")]
    options = [*QUIET, *options, "--attach-limit=120", "--max-overhead=off", "-p", child.pid, "-o"]
    with Recording(folder, "--inject", *options, outs[0], name="agent") as first, Recording(folder, *options, outs[1], name="probes") as second:
        go(child)
        equal(finish(child), 0, "status")
        for recording in (first, second):
            recording.wait()
    with open(f"{folder}/agent.log", encoding="utf-8") as f:
        said = f.read()
    check(re.search(r"records [\d,]+ of [\d,]+ operators, without probes", said), "what was said", said)
    by_agent, by_probes = (spans_shown(out, keys) for out in outs)
    shown, only = collections.defaultdict(list), collections.Counter()
    for tid, spans in by_agent.items():
        for name in {s.name for s in [*spans, *by_probes[tid]]}:
            mine, theirs = ([s for s in of if s.name == name] for of in (spans, by_probes[tid]))
            # a range that a callback of PyTorch sees does not lie around that of the probes
            pairs = {m.id: (m, t) for m, t in zip(mine, theirs)} if len(mine) == len(theirs) else pairs_of(mine, theirs)
            check(len(pairs) == len(mine), f"thread {tid}: {name} of the agent that no probe has", [s for s in mine if s.id not in pairs][:20])
            for span, other in pairs.values():
                equal(span.ending, other.ending, f"what is shown of {name}")
                shown[name].append(span.ending)
            only[name] += len(theirs) - len(mine)
    return shown, +only


@case
def shapes_both_ways(folder):
    """Sizes, strides and types of tensors, and which optional arguments have values: of each call by the agent as by probes. New
    sizes come in each round, and sizes that were met."""
    need_torch()
    rounds = 6
    child = waiting([TORCH, "-c", SHAPES, rounds])
    all_shown, only = shown_both_ways(folder, child, re.compile("Input"), "--python=off", "--shapes")
    agent = {name: shown for name, shown in all_shown.items() if name.startswith("aten::")}
    calls = sum(map(len, agent.values()))
    shown = [a["Input Dims"] for all_of_them in agent.values() for a in all_of_them if "Input Dims" in a]
    print(f"  {calls} calls, {len(shown)} with arguments; by probes only: {dict(only)}")
    check(len(shown) > 0.95 * calls > 40 * rounds, "calls with arguments", calls, len(shown))
    equal(agent["aten::mm"][0]["Input Dims"], [[4, 5], [5, 6]], "sizes of mm")


def lines_agree(folder, root, rounds):
    script = f"{folder}/lines.py"
    with open(script, "w", encoding="ascii") as f:
        f.write(LINES)
    child = waiting(torch_script(f"{folder}/as", root, script, rounds))
    shown, only = shown_both_ways(folder, child, re.compile("Call stack|Module Hierarchy|Input"), "--python", "--shapes")
    calls = [args for of_name in shown.values() for args in of_name]
    lines = [args["Call stack"] for args in calls if "Call stack" in args]
    print(f"  {root or 'here'}: {len(calls)} calls, {len(lines)} with {len(set(lines))} stacks; by probes only: {dict(only)}")
    check(len(lines) > 0.9 * len(calls) > 100 * rounds, "calls with lines", len(calls), len(lines))
    # the program's own count: a frame each, and the module
    deepest = max(shown["aten::add"], key=lambda args: args["Call stack"].count(": deep;"))
    equal(deepest["Call stack"].count("lines.py("), 64, "frames of a deep stack, which is cut")
    check({args.get("Module Hierarchy", "").split(".")[-1] for args in shown["aten::linear"]} >= {"first", "second"}, "modules", shown["aten::linear"][:3])
    for name in ("a range", "autograd::engine::evaluate_function: TwiceBackward"):
        check(name in shown and all("work" in args["Call stack"] for args in shown[name]), f"lines of {name}", shown.get(name))


@case
def lines_both_ways(folder):
    """Lines of Python and modules: of each call, node and range by the agent as by probes, in threads, generators, and code that goes."""
    need_torch()
    os.mkdir(f"{folder}/as")
    lines_agree(folder, None, 6)


@case(long="each PyTorch of this machine is loaded, and recorded by two at once")
def lines_both_ways_of_pytorch(folder):
    os.mkdir(f"{folder}/as")
    for root in torch_roots(True):
        lines_agree(folder, root, 20)


NODES = """import sys, torch
from torch.profiler import record_function
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2
class ANameThatIsLongerThanOnePartOfARecord(Twice):
    pass
x = torch.ones(3, requires_grad=True)
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[1])):
    with record_function("outer"):
        first, second = record_function("a range that begins first and ends first"), record_function(f"inner {n % 2}")
        first.__enter__()
        second.__enter__()
        y = ANameThatIsLongerThanOnePartOfARecord.apply(Twice.apply(x))
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    y.relu().sum().backward()
"""


@case
def nodes_and_ranges(folder):
    """Nodes in C++ and in Python, and ranges, by their names and what they lie in, without any probe: each as often as it was made."""
    need_torch()
    out, around = f"{folder}/nodes.db", {}
    for how, options in (("agent", ["--inject"]), ("probes", [])):
        child = waiting([TORCH, "-c", NODES, 20])
        with Recording(folder, *options, *QUIET, "--max-overhead=off", "--attach-limit=120", "-p", child.pid, "-o", out,
                       "-o", f"{folder}/nodes.json", name=how) as r:
            go(child)
            equal(finish(child), 0, "status")
            r.wait()
        around[how], trace = calls_in(out), Trace(f"{folder}/nodes.json")
        by_agent = 2 * 10 * sum(around[how].values())  # 10 ns each
        equal(trace.json["xsptrace_overhead"]["probes_cost_ns"] == by_agent, how == "agent", f"{how}: no event is of a probe")
    counts = collections.Counter()
    for (name, _, _), count in around["agent"].items():
        counts[name.replace("autograd::engine::evaluate_function: ", "node ")] += count
    equal({k: v for k, v in counts.items() if not k.startswith("aten::")},
          {"node TwiceBackward": 20, "node ANameThatIsLongerThanOnePartOfARecordBackward": 20, "node ReluBackward0": 20, "node SumBackward0": 20,
           "node torch::autograd::AccumulateGrad": 20, "outer": 20, "a range that begins first and ends first": 20, "inner 0": 10, "inner 1": 10},
          "nodes and ranges")
    equal(around["agent"], around["probes"], "what lies in what")


# As much of PyTorch as its ranges need. A range of the scope 6 is one that the agent did not ask for.
RANGES = """
struct callback { void *(*start)(void **, char *); void (*end)(char *, void *); double probability; char scopes[16]; };
struct string { const char *text; unsigned long length; };
static struct callback added;
static int there;
static void *context;
unsigned long add(struct callback) __asm__("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
unsigned long add(struct callback c) { added = c; there = 1; return 1; }
void removed(unsigned long) __asm__("_ZN2at14removeCallbackEm");
void removed(unsigned long handle) { there = 0; }
const char *name(char *) __asm__("_ZNK2at14RecordFunction4nameEv");
const char *name(char *range) { return *(char **)range; }
void since(void) __asm__("_ZN2at14RecordFunctionC1EONS_13StepCallbacksE");
void since(void) { }
void string(void **, struct string *)
    __asm__("_ZN3c106ivalue14ConstantString6createENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
__attribute__((noinline)) void string(void **to, struct string *from) { *to = (void *)from->text; }
void begin(char *, int) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
__attribute__((noinline)) void begin(char *range, int scope) { if (there) added.start(&context, range); }
void end(char *) __asm__("_ZN2at14RecordFunction3endEv");
__attribute__((noinline)) void end(char *range) { if (there) added.end(range, context); }
int has_callback(void) { return there; }
void range(const char *text, int scope)
{
    struct string s = {text, __builtin_strlen(text)};
    char range[320] = "";
    range[96] = scope;
    string((void **)range, &s);
    begin(range, 7);
    end(range);
}
"""

RANGED = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.range.argtypes = [ctypes.c_char_p, ctypes.c_int]
print("ready", flush=True)
for line in sys.stdin:
    name, times, scope = line.split()
    for _ in range(int(times)):
        library.range(name.encode(), int(scope))
    library.all(1)
    print(library.has_callback(), flush=True)
"""


@case
def ranges_given_up(folder):
    """Callbacks of PyTorch are not what the agent knows: it says so, and probes go on, also in the next recording."""
    child = waiting(["/usr/bin/python3", "-c", RANGED, a_torch(folder, "-z,now", RANGES)])

    def ranges(name, times, scope=7):
        child.stdin.write(f"{name} {times} {scope}\n")
        child.stdin.flush()
        return int(child.stdout.readline())

    def recorded(name, *act):
        out, log = f"{folder}/{name}.json", f"{folder}/{name}.log"
        with Recording(folder, "--inject", *QUIET, "-p", child.pid, "-o", out, name=name) as r:
            for a in act:
                a(log)
            time.sleep(0.1)
            r.stop()
            r.wait()
        with open(log, encoding="utf-8") as f:
            said = f.read()
        equal((said.count("has given up record_function ranges"), said.count(AGENT)), (int(name == "first"), 1), f"what was said: {said}")
        return {k: v for k, v in Trace(out).calls.items() if "::" not in k}

    def given_up(log):
        ranges("strange", 1, 6)
        with open(log, encoding="utf-8") as f:
            wait_for(lambda: "has given up" in f.read(), 20, "it was not given up")
        wait_for_probes(child.pid)
    got = recorded("first", lambda _: equal(ranges("agent", 20), 1, "the agent's callback is there"), given_up,
                   lambda _: equal(ranges("probes", 30), 0, "the agent's callback is gone"))
    equal(got, {"agent": 20, "probes": 30}, "ranges")
    equal(recorded("second", lambda _: equal(ranges("again", 40), 0, "the agent's callback stays away")), {"again": 40}, "ranges of the next recording")
    child.stdin.close()
    equal(finish(child), 0, "status")


@case(long="PyTorch is loaded; a long recording")
def twenty_deaths(folder):
    """The tracer dies at any moment, also while it injects: the target goes on, and the next recording works."""
    need_torch()
    child = start([TORCH, f"{SCRIPTS}/torch_loop.py", "--seconds", "300"], stdout=subprocess.DEVNULL)
    time.sleep(3)
    for n in range(20):
        recording = start([XSPTRACE, *EXTRA, "--inject", "-p", child.pid, "-o", f"{folder}/k.json"], stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL)
        time.sleep(0.1 * n)
        recording.kill()
        recording.wait()
        check(child.poll() is None, "the target ended")
    out = f"{folder}/after.json"
    said = xsptrace("--inject", "-p", child.pid, "-d", "4", "-o", out).stderr
    check(re.search(r"records [\d,]+ of [\d,]+ operators, without probes", said), "what was said", said)
    check(sum(Trace(out).calls.values()) > 100, "operators after that", said)
    child.kill()
    child.wait()


if __name__ == "__main__":
    main()
