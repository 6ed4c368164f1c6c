#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--agent=callbacks: operators, nodes and ranges by PyTorch's own callbacks (user/agent/callbacks/). What is true is what
torch.profiler counts, and what a recording by probes says of the same calls."""
import collections
import json
import os
import subprocess
import time

from harness import (EXTRA, SCRIPTS, XSPTRACE, Recording, Trace, case, check, equal, finish, main, start, torch_roots, torch_script, wait_for,
                     xsptrace)
from operators_by_agent import QUIET, a_torch, calls_in, go, waiting

CALLBACKS = ["--agent=callbacks", "--max-overhead=off", "--attach-limit=120"]
BY_CALLBACKS = "records operators, nodes and record_function ranges by PyTorch's callbacks, without probes"
ROUNDS = 20
EVALUATES = "autograd::engine::evaluate_function: "
# of other scopes than operators, nodes and ranges: what TorchScript has compiled
OTHERS = {"scripted", "fused_relu_add"}


def started(folder, root, *arguments):
    """The script, which waits, and its profiler's counts of one round."""
    child = start(torch_script(folder, root, f"{SCRIPTS}/torch_callbacks.py", ROUNDS, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                  text=True)
    line = ""
    while "{" not in line:
        line = child.stdout.readline()
        check(line, "the script has not begun")
    return child, collections.Counter(json.loads(line[line.index("{"):]))


def act(child):
    go(child)
    while "done" not in child.stdout.readline():
        pass
    time.sleep(0.2)


def recorded(folder, child, name, *options):
    """Records the script's rounds: what was said."""
    with Recording(folder, *options, *QUIET, "-p", child.pid, "-o", f"{folder}/{name}.db", "-o", f"{folder}/{name}.json", name=name) as r:
        act(child)
        r.stop()
        r.wait()
    child.stdin.close()
    equal(finish(child), 0, "status of the script")
    with open(f"{folder}/{name}.log", encoding="utf-8") as f:
        return f.read()


def counted(profiled):
    """What callbacks are to see of what the profiler has counted: of a node its evaluation, but not its own range in that."""
    nodes = {name[len(EVALUATES):] for name in profiled if name.startswith(EVALUATES)}
    return {name: ROUNDS * n for name, n in profiled.items() if name not in nodes | OTHERS}


def agrees_with_the_profiler(folder, root):
    child, profiled = started(folder, root)
    said = recorded(folder, child, "callbacks", "--inject", *CALLBACKS)
    check(BY_CALLBACKS in said, "what was said", said)
    got, unwound = collections.Counter(), 0
    for (name, _, ending), n in calls_in(f"{folder}/callbacks.db").items():
        got[name] += n
        unwound += n if ending == "unwound" else 0
    equal({k: v for k, v in got.items() if k not in OTHERS}, counted(profiled), f"{root}: calls, and those of torch.profiler")
    equal(unwound, 2 * ROUNDS, f"{root}: calls that an exception has left")
    equal(got["mine::triple"], ROUNDS, f"{root}: of an operator of one's own")


@case
def counts_of_the_profiler(folder):
    """By name, also of custom and boxed operators and of TorchScript, which have no slot, and of calls that an exception leaves."""
    agrees_with_the_profiler(folder, torch_roots(False)[0])


@case(long="the other PyTorches")
def counts_of_all_profilers(folder):
    for root in torch_roots(True):
        agrees_with_the_profiler(folder, root)


def numbers_in(out):
    """{main thread?: [(name, number, thread of the forward call)]} of what autograd numbers, in their order. PyTorch gives threads their
    numbers as it meets them, the agent's as well: here by when they come."""
    found, threads = collections.defaultdict(list), {}
    for span in sorted(Trace(out).spans, key=lambda e: (e["ts"], -e["dur"])):
        if "Sequence number" in span["args"]:
            thread = span["args"]["Fwd thread id"]
            found[span["tid"] == span["pid"]].append((span["name"], span["args"]["Sequence number"], threads.setdefault(thread, len(threads))))
    return found


def agrees_with_probes(folder, root):
    around, numbers = {}, {}
    for how, options in (("callbacks", ["--inject", *CALLBACKS]), ("probes", ["--agent=off", "--python=off", *CALLBACKS[1:]])):
        child, _ = started(folder, root, "plain")
        said = recorded(folder, child, how, "--sequence", *options)
        equal(BY_CALLBACKS in said, how == "callbacks", f"what was said: {said}")
        around[how], numbers[how] = calls_in(f"{folder}/{how}.db"), numbers_in(f"{folder}/{how}.json")
    # a range in aten::detach, and those in which Python has called back
    only = {name for name, _, _ in around["callbacks"]} - {name for name, _, _ in around["probes"]}
    equal(only, {"detach", "Nested"}, f"{root}: what only callbacks tell of")
    outside = {"Nested": None}  # of which what lies in it is in nothing
    seen = collections.Counter()
    for (name, parent, ending), n in around["callbacks"].items():
        if name not in only:
            seen[name, outside.get(parent, parent), ending] += n
    equal(seen, around["probes"], f"{root}: what lies in what")
    equal({t: [x for x in them if x[0] not in only] for t, them in numbers["callbacks"].items()}, numbers["probes"], f"{root}: autograd's numbers")
    check(len(numbers["probes"][True]) > 10 * ROUNDS, "autograd's numbers", numbers["probes"])


@case
def the_same_as_probes(folder):
    """What lies in what and how it ended, the numbers of operators and nodes, and the threads of the forward calls."""
    agrees_with_probes(folder, torch_roots(False)[0])


@case(long="the other PyTorches")
def the_same_as_probes_of_all(folder):
    for root in torch_roots(True):
        agrees_with_probes(folder, root)


@case
def launched(folder):
    """A program that xsptrace starts, which loads PyTorch late."""
    root, out, log = torch_roots(False)[0], f"{folder}/launched.db", f"{folder}/launched.log"
    with open(log, "wb") as to:
        child = start([XSPTRACE, *EXTRA, *CALLBACKS, *QUIET, "-o", out, "--", *torch_script(folder, root, f"{SCRIPTS}/torch_callbacks.py", ROUNDS)],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=to, text=True)
    line = child.stdout.readline()
    with open(log, encoding="utf-8") as f:
        wait_for(lambda: BY_CALLBACKS in f.read(), 60, "the agent")
    # only what follows the line is looked at: the profiled round came before
    from_ns = time.time_ns()
    act(child)
    child.stdin.close()
    equal(finish(child, 120), 0, "status")
    got = collections.Counter()
    for (name, _, _), n in calls_in(out, from_ns).items():
        got[name] += n
    equal({k: v for k, v in got.items() if k not in OTHERS}, counted(json.loads(line[line.index("{"):])), "calls, and those of torch.profiler")


# ---- a PyTorch that is none ----

# As much of it as callbacks need. Its RecordFunction is made as that of 1.13, unless MORE bytes are written; name() says another
# name than the one there is if LIES.
DOUBLE = """
#include <string.h>
struct callback { void *(*start)(void **, char *); void (*end)(char *, void *); double probability; char scopes[16]; };
struct context { void (**functions)(struct context *); };
static struct callback added;
static int there, adds, made;
unsigned long add(struct callback) __asm__("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
unsigned long add(struct callback c) { added = c; there = 1; adds++; return 1; }
void removed(unsigned long) __asm__("_ZN2at14removeCallbackEm");
void removed(unsigned long handle) { there = 0; }
const char *name(char *) __asm__("_ZNK2at14RecordFunction4nameEv");
const char *name(char *f) { return LIES ? "another" : *(char **)(f + 160); }
unsigned long peek(void) __asm__("_ZN2at15sequence_number4peekEv");
unsigned long peek(void) { return 7; }
unsigned long thread(void) __asm__("_ZN2at14RecordFunction15currentThreadIdEv");
unsigned long thread(void) { return 1; }
void since(void) __asm__("_ZN2at14RecordFunctionC1EONS_13StepCallbacksE");
__attribute__((noinline)) void since(void) { }
void make(char *, int) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
__attribute__((noinline)) void make(char *f, int scope)
{
    memset(f, 0, 281 + MORE);
    f[96] = scope;
    *(char **)(f + 160) = f + 176;
    *(long *)(f + 200) = *(long *)(f + 272) = -1;
    made++;
}
void destroy(char *) __asm__("_ZN2at14RecordFunctionD1Ev");
void destroy(char *f) { made--; }
void evaluate(void) __asm__("_ZN5torch8autograd6Engine17evaluate_functionEv");
void evaluate(void) { }
/* one that calls another, `deep` times; of a scope, and named by itself */
void call(const char *text, int scope, int deep)
{
    char f[512];
    void *context = 0;
    int told = there && added.scopes[scope];
    make(f, scope);
    *(const char **)(f + 160) = text;
    *(long *)(f + 168) = strlen(text);
    if (told)
        added.start(&context, f);
    if (deep > 1)
        call(text, scope, deep - 1);
    if (told)
        added.end(f, context);
    if (context)
        ((struct context *)context)->functions[1](context);
    destroy(f);
}
int scopes(void) { return there ? added.scopes[0] | added.scopes[1] << 1 | added.scopes[7] << 7 : 0; }
int how_often(void) { return adds; }
int left(void) { return made; }
"""

PROGRAM = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.call.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
print("ready", flush=True)
for line in sys.stdin:
    name, scope, deep, times = line.split()
    for _ in range(int(times)):
        library.call(name.encode(), int(scope), int(deep))
    print(library.scopes(), library.how_often(), library.left(), flush=True)
"""
ALL = 1 | 1 << 1 | 1 << 7


class Double:
    def __init__(self, folder, how="-z,now", **values):
        values = {"MORE": 0, "LIES": 0, **values}
        library = a_torch(folder, how, "".join(f"#define {k} {v}\n" for k, v in values.items()) + DOUBLE)
        self.child = waiting(["/usr/bin/python3", "-c", PROGRAM, library])
        self.pid = self.child.pid

    def call(self, name, scope=0, deep=1, times=1):
        """Which scopes are called back for; how often a callback was added; and how many RecordFunctions are left."""
        self.child.stdin.write(f"{name} {scope} {deep} {times}\n")
        self.child.stdin.flush()
        return tuple(int(n) for n in self.child.stdout.readline().split())

    def end(self):
        self.child.stdin.close()
        equal(finish(self.child), 0, "status")


def record(folder, double, name, *options, work=lambda log: None):
    out, log = f"{folder}/{name}.json", f"{folder}/{name}.log"
    with Recording(folder, "--inject", *QUIET, *options, "-p", double.pid, "-o", out, name=name) as r:
        work(log)
        time.sleep(0.1)
        r.stop()
        r.wait()
    with open(log, encoding="utf-8") as f:
        return Trace(out), f.read()


@case
def on_and_off(folder):
    """The callback is there while it is asked for, for three scopes, and away afterwards; without being asked for, for ranges only."""
    double = Double(folder)
    for turn in range(1, 4):
        trace, said = record(folder, double, f"turn{turn}", "--agent=callbacks",
                             work=lambda _: equal(double.call("an::operator", deep=3, times=50), (ALL, turn, 0), "callbacks"))
        check(BY_CALLBACKS in said, "what was said", said)
        equal(dict(trace.calls), {"an::operator": 150}, "calls")
        spans = trace.spans
        equal(sum(any(o["ts"] <= s["ts"] and s["ts"] + s["dur"] <= o["ts"] + o["dur"] and o is not s for o in spans) for s in spans), 100, "in another")
        equal(double.call("nobody::sees"), (0, turn, 0), "callbacks afterwards")
    record(folder, double, "slots", work=lambda _: equal(double.call("nobody::sees"), (1 << 7, 4, 0), "callbacks without being asked for"))
    double.end()


@case
def windows(folder):
    """Between windows nobody calls back."""
    double, seen = Double(folder), collections.Counter()

    def work(_):
        end = time.monotonic() + 4
        while time.monotonic() < end:
            seen[double.call("an::operator")[0]] += 1
            time.sleep(0.002)
    trace, _ = record(folder, double, "windows", "--agent=callbacks", "--windows=3x300ms", "--every=1s", work=work)
    double.end()
    equal(set(seen), {0, ALL}, "scopes")
    print(f"  {seen}, recorded: {dict(trace.calls)}")
    check(0 < trace.calls["an::operator"] <= seen[ALL], "calls", dict(trace.calls), seen)


def keeps_probes(folder, double, name, *options, why):
    def work(_):
        for n in range(20):
            equal(double.call("an::operator", times=5)[0] & 3, 0, "callbacks for operators")
    _, said = record(folder, double, name, "--agent=callbacks", *options, work=work)
    check(why in said, f"{name}: what was said", said)


@case
def unknown_versions(folder):
    """A RecordFunction of which one more byte is written than any known one has: nothing is added. One whose name() says another name
    than the one that is read: it is taken out, and that is said; and not added again."""
    unknown = "this PyTorch makes its callbacks in a way that is not known"
    double = Double(folder, MORE=1)
    for n in range(2):
        keeps_probes(folder, double, f"unknown{n}", why=f"operators of process {double.pid} have probes, as usual: {unknown}")
    double.end()
    os.rename(f"{folder}/-z,now", f"{folder}/unknown")
    double = Double(folder, LIES=1)

    def work(log):
        double.call("an::operator")
        with open(log, encoding="utf-8") as f:
            wait_for(lambda: "has given up operators, nodes and record_function ranges" in f.read(), 20, "it was not given up")
        equal(double.call("an::operator")[:2], (0, 1), "callbacks")
    trace, _ = record(folder, double, "lies", "--agent=callbacks", work=work)
    equal(trace.calls["an::operator"], 0, "calls whose names are not known")
    keeps_probes(folder, double, "again", why=unknown)
    double.end()


@case
def what_callbacks_do_not_read(folder):
    """Operators have probes then, and it is said why."""
    double = Double(folder)
    for n, (options, why) in enumerate(((["--shapes"], "read arguments, results"), (["--stacks"], "read arguments, results"),
                                        (["-e", "torch:aten::*"], "choose operators by name"), (["--max-depth=3"], "choose calls by"))):
        keeps_probes(folder, double, f"reads{n}", *options, why=f"operators keep their probes: the agent cannot yet {why}")
    double.end()


@case
def bad_words(folder):
    said = xsptrace("--agent=slots", "--", "true", status=None)
    check("nothing, callbacks or off" in said.stderr, "what was said", said.stderr)


if __name__ == "__main__":
    main()
