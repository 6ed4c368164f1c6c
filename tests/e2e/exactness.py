#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Spans equal calls, to the last one."""
import os
import platform
import re
import signal
import subprocess

from harness import (AS_ASKED, EXTRA, LONG, NO_BRAKE, TABLE, Recording, Skip, Trace, case, check, check_as_shipped, check_calls, check_unwound, equal, finish, main,
                     record_attached, record_launched, run, says_no_loss, start_ready, total, truth, workload,
                     xsptrace)

SECONDS = 10 if LONG else 2  # of highest_rate

DEMO = ["-e", "demo_*", "-e", "demo::*", "-e", "*hidden*"]


def check_all(trace, facts):
    trace.check_nothing_lost()
    check_calls(trace, facts)
    check_unwound(trace, facts)
    trace.check_nesting()


@case
def demo_launched(folder, *options):
    """Every shape of entry and exit, from the first instruction on, on 4 threads."""
    trace, facts = record_launched(folder, [workload("demo"), "--threads", 4, "--calls", 300], *DEMO, *options)
    check_all(trace, facts)
    check_as_shipped(trace, options)


@case
def demo_launched_bare(folder):
    demo_launched(folder, *AS_ASKED)


@case
def demo_attached(folder):
    check_all(*record_attached(folder, [workload("demo"), "--threads", 4, "--calls", 300], *DEMO))


@case
def fibers(folder):
    check_all(*record_launched(folder, [workload("fibers")], "-e", "fiber_*"))


@case
def sigaltstack(folder):
    trace, facts = record_launched(folder, [workload("sigaltstack")], "-e", "signal_*")
    check_all(trace, facts)
    # its stack is on the heap, below the thread's: the handler is inside the function that it interrupts
    equal({e["tid"] for e in trace.spans}, {e["pid"] for e in trace.spans}, "rows")


@case
def threadstorm(folder):
    check_all(*record_launched(folder, [workload("threadstorm")], "-e", "storm_*"))


@case
def functions_others_jump_into(folder):
    """mempcpy jumps into memmove, strcasecmp runs into strcasecmp_l: whoever comes to the first
    instruction of a function calls it, nobody else does."""
    if platform.machine() != "x86_64":
        raise Skip("assembly of x86-64")
    trace, facts = record_launched(folder, [workload("jumped"), "--calls", 300], "-e", "jumped_*", "-e",
                                   "falls_*")
    del facts["calls"]["pointer_jumped"]  # where it leaves to is not known
    check_calls(trace, facts)
    check_unwound(trace, facts)
    equal(trace.lost(), {}, "losses")


@case
def functions_of_no_size(folder):
    """_init and _fini, whose symbols have none: each is called once, and what follows in the file, the jumps of the PLT, is
    nobody's end."""
    trace, _ = record_launched(folder, [workload("hot"), "--calls", 10], "-e", "hot:_init", "-e", "hot:_fini")
    equal(dict(trace.calls), {"_init": 1, "_fini": 1}, "calls")
    equal(trace.json["xsptrace_timeline"]["orphan_exits"], 0, "ends without a beginning")


@case
def annotated_by_default(folder):
    """No -e: the provider record_function finds the header's functions, in the program and in the
    library; all names arrive, those on untouched pages too."""
    trace, facts = record_attached(folder, [workload("annotated"), "--calls", 500])
    trace.check_nothing_lost()
    equal(dict(trace.calls), {k: v for k, v in facts["calls"].items() if v}, "ranges by name")
    trace.check_nesting()
    cats = {e["cat"] for e in trace.spans}
    equal(cats, {"user_annotation"}, "categories")


@case
def many_functions(folder):
    """4,096 functions, attached while the program runs."""
    trace, facts = record_attached(folder, [workload("many"), "--calls", 5], "-e", "many_*")
    check_all(trace, facts)
    equal(len(trace.calls), 4096, "names")
    equal(set(trace.calls.values()), {5}, "calls of each")


@case
def forks(folder):
    """Without --follow: the process alone."""
    trace, facts = record_attached(folder, [workload("forker"), "--calls", 20], "-e", "forker_*")
    trace.check_nothing_lost()
    check_calls(trace, facts)


@case
def forks_followed(folder):
    """The children call at once, and are stopped until their probes are in place."""
    if tuple(int(x) for x in re.findall(r"\d+", platform.release())[:2]) < (6, 13):
        raise Skip("--follow=stop needs Linux 6.13")
    trace, facts = record_attached(folder, [workload("forker"), "--calls", 20], "--follow=stop",
                                   "-e", "forker_*")
    both = {"calls": {k: v + facts["children"][k] for k, v in facts["calls"].items()}}
    check_calls(trace, both, "calls of parent and children")


@case
def execs(folder):
    """The process replaces its program four times; probes of the same file stay."""
    trace, facts = record_launched(folder, [workload("execer"), "--calls", 500, "4"], "-e",
                                   "execer_*")
    check_calls(trace, facts)


@case
def libraries_that_come_and_go(folder):
    """dlopen after attach is seen within 100 ms where the machine has the time; here the first call comes a second after
    it. `main` is there from the start: a pattern that matches nothing at all is refused."""
    trace, facts = record_attached(folder, [workload("dlopener"), "--calls", 4, 1000000], "-e",
                                   "plugin_*", "-e", "dlopener:main")
    check_calls(trace, facts)


@case
def tiny_ring_buffer(folder):
    """Events are lost, and every one is accounted for."""
    trace, facts = record_attached(folder, [workload("hot"), "--threads", 2, "--calls", 50000],
                                   "-e", "hot_*", "--buffer", "64K")
    check_calls(trace, facts)
    calls = facts["calls"]["hot_frame"]
    check(trace.losses["lost_entries"] > 0, "nothing was lost", trace.losses)
    equal(trace.timeline["entries"] + trace.losses["lost_entries"], calls, "entries + lost")
    equal(trace.timeline["exits"] + trace.losses["lost_exits"], calls, "exits + lost")
    print(f"  {calls} calls = {trace.calls['hot_frame']} spans + {trace.losses['lost_entries']} lost")


@case(quiet="a recorder that keeps up")
def highest_rate(folder):
    """Two threads call as fast as they can: nothing lost."""
    capture, facts = f"{folder}/hot.xspt", f"{folder}/hot.truth"
    child = start_ready([workload("hot"), "--wait", "--out", facts, "--threads", 2, "--seconds", SECONDS])
    with Recording(folder, "-p", child.pid, "-e", "hot_frame", "-o", capture) as recording:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status of hot")
        recording.wait()
    expected = truth(facts)["calls"]["hot_frame"]
    xsptrace("export", capture, "-o", f"{folder}/hot.json", timeout=120)
    os.unlink(capture)
    # one span a line; millions: counted, not loaded
    done = subprocess.run(["grep", "-c", '^{"ph":"X".*"name":"hot_frame"', f"{folder}/hot.json"],
                          stdout=subprocess.PIPE, check=False)
    spans = int(done.stdout)
    with open(f"{folder}/hot.json", encoding="utf-8") as f:
        head = f.read(20000)
    losses = re.search(r'"xsptrace_losses":(\{[^}]*\})', head)
    check(losses, "no losses in the trace's head", head[:2000])
    for key in ("lost_entries", "lost_exits", "missed_hits"):
        check(re.search(rf'"{key}":0\b', losses[1]), f"{key} is not 0", losses[1])
    print(f"  {expected} calls in {SECONDS} s, {spans} spans")
    equal(spans, expected, "spans")


@case
def filters_in_the_probe(folder):
    """--max-depth keeps the outermost spans; --min-duration drops the short ones."""
    demo = [workload("demo"), "--threads", 1, "--calls", 50]
    trace, facts = record_launched(folder, demo, *DEMO, "--max-depth", 1, name="depth")
    # and the destructor of a static object, at exit
    equal(dict(trace.calls), {"demo_thread": 1, "demo::square::~square": 1}, "spans at depth 1")
    trace, facts = record_launched(folder, demo, "-e", "demo_leaf", "--max-depth", 1, name="leaves")
    equal(trace.calls["demo_leaf"], facts["calls"]["demo_leaf"], "spans at depth 1 that are seen at one instruction")
    trace, facts = record_launched(folder, demo, *DEMO, "--min-duration", "10s", name="long")
    equal(sum(trace.calls.values()), 0, "spans of 10 s and more")
    check(trace.losses["filtered"] > 0, "the filtered ones are not counted", trace.losses)


@case
def long_calls_that_never_return(folder):
    """--min-duration shows those that a thread ends in, that the process ends in, and that another thread than
    the first execs in: each once, on its thread, with the time it took."""
    spans = []
    for name, calls, arguments in (("exec", {"leaver_thread": 4, "leaver_exec": 1}, []),
                                   ("exit", {"leaver_exit": 1}, ["exit"])):
        xsptrace("--min-duration", "50ms", "-e", "leaver_*", "-o", f"{folder}/{name}.json", "--",
                 workload("leaver"), "--threads", 4, "--calls", 10, *arguments)
        trace = Trace(f"{folder}/{name}.json")
        trace.check_nothing_lost()
        equal(dict(trace.calls), calls, "spans")
        equal(trace.losses["filtered"], 10 * sum(calls.values()), "short ones")
        spans += trace.spans
    for e in spans:
        how = "unwound" if e["name"] == "leaver_exec" else "finished"
        equal(e["args"].get(how), how == "unwound", f"{e['name']}: {how}")
        equal(e["tid"] == e["pid"], e["name"] == "leaver_exit", f"{e['name']}: in the main thread")
        check(99e3 < e["dur"] < 2e6, f"{e['name']}: {e['dur']} us")


@case
def one_thread_only(folder):
    """-t: the main thread of `hot` calls nothing, so nothing is seen and nothing is lost."""
    facts, out = f"{folder}/truth", f"{folder}/t.json"
    child = start_ready([workload("hot"), "--wait", "--out", facts, "--calls", 1000])
    with Recording(folder, "-p", child.pid, "-t", child.pid, "-e", "hot_*", "-o", out) as recording:
        child.send_signal(signal.SIGUSR1)
        finish(child)
        recording.wait()
    trace = Trace(out)
    equal(total(trace.calls, "hot_*"), 0, "spans of other threads")
    equal(trace.lost(), {}, "losses")


@case
def returns_that_the_kernel_does_not_probe(folder):
    """The kernel follows 64 nested return probes of a thread; the exits beyond are said to be missed."""
    deepest = 64  # MAX_URETPROBE_DEPTH, kernel/events/uprobes.c
    for depth, missed in ((40, False), (100, True)):
        out = f"{folder}/{depth}.json"
        done = xsptrace(*EXTRA, "--exit=return", "-e", "callers:recursion", "-o", out, "--", workload("callers"), depth)
        trace = Trace(out)
        calls = trace.calls["recursion"]
        check(calls in (depth, depth + 1), f"{calls} calls of a recursion {depth} deep")
        equal(trace.losses["missed_hits"], calls - deepest if missed else 0, f"missed hits of {calls} nested calls")
        check(("missed by the kernel" in done.stdout) == missed, "the summary", done.stdout)
        check(says_no_loss(done.stdout) != missed, "the summary", done.stdout)


DESTRUCTORS = """
#include <cstdio>
#include <stdexcept>
volatile long sink;
struct Held { long v; __attribute__((noinline)) Held(long x) : v(x) { sink = sink + x; } __attribute__((noinline)) ~Held() { sink = sink - v; } };
__attribute__((noinline)) long throws(long n) { if (n % 3 == 0) throw std::runtime_error("no"); sink = sink + n; return n; }
__attribute__((noinline)) long holds(long n) { Held a(n), b(n + 1); return throws(n) + a.v + b.v; }
__attribute__((noinline)) long catches(long n) { Held c(n); try { return holds(n) + c.v; } catch (std::runtime_error &) { return 1; } }
int main() { long caught = 0; for (long i = 0; i < 300; i++) caught += catches(i) == 1; printf("%ld", caught); }
"""


@case
def destructors_that_an_exception_runs(folder):
    """The landing pad calls them from where its function called what has thrown, before anybody sees that it has landed."""
    for level in ("-O0", "-O1", "-O2"):
        program, out = f"{folder}/d", f"{folder}/d.json"
        made = run(["g++", level, "-xc++", "-", "-o", program], input=DESTRUCTORS, stdin=None, text=True)
        equal(made.returncode, 0, made.stderr)
        xsptrace(*EXTRA, *(w for n in ("throws", "holds", "catches", "Held::*") for w in ("-e", f"d:{n}")), "-o", out, "--", program)
        trace = Trace(out)
        trace.check_nothing_lost()
        equal([e["name"] for e in trace.spans if "exit lost" in e["args"]], [], "ends not seen")
        for name, calls, unwound in (("throws", 300, 100), ("holds", 300, 100), ("catches", 300, 0), ("Held::~Held", 900, 0)):
            equal((trace.calls[name], trace.not_returned[name]), (calls, unwound), f"{level}: calls of {name}, and those that an exception left")


main(declined=[*NO_BRAKE, TABLE])
