#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--python: programs that write down, at each call, the lines that they are in (sys._getframe()). Each span must
have exactly these, on every CPython of which there is one here.
"""
import collections
import glob
import os
import re
import signal

from harness import (EXTRA, USAGE, Recording, Skip, Trace, case, check, equal, finish, main, run, start_ready,
                     truth, workload, xsptrace)

TORCH = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")


def pythons():
    """Interpreters from 3.9 on, one a version."""
    found = {}
    for path in ["/usr/bin/python3"] + glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")):
        done = run([path, "-c", "import sys; print(*sys.version_info[:3])"])
        version = tuple(int(n) for n in done.stdout.split()) if done.returncode == 0 else (0,)
        if version >= (3, 9):
            found.setdefault(version, path)
    return sorted(found.items())


# `mark(); op()` on one line: the mark writes down who called it, by thread.
HEAD = """
import collections, functools, json, os, signal, sys, threading, time
op = os.getppid
marks = collections.defaultdict(list)
def line_of(f):
    return [f.f_code.co_filename, f.f_lineno, getattr(f.f_code, "co_qualname", f.f_code.co_name)]
def mark():
    f, stack = sys._getframe(1), []
    while f:
        stack.append(line_of(f))
        f = f.f_back
    marks[threading.get_native_id()].append(stack)
def done():
    with open(sys.argv[1], "w") as f:
        json.dump(marks, f)
    time.sleep(0.1)  # the recorder reads what is new every 10 ms
"""

# Frames of every kind that stand between a program and what it calls.
SHAPES = HEAD + """
def leaf(): mark(); op()
def recursion(n):
    if n: recursion(n - 1)
    else: leaf()
def numbers():
    for i in range(2):
        mark(); op()
        yield i
        leaf()
class Thing:
    def method(self): mark(); op()
    @classmethod
    def of_class(cls): leaf()
    @property
    def value(self): mark(); op(); return 1
    def __enter__(self): mark(); op(); return self
    def __exit__(self, *how): mark(); op()
    def __lt__(self, other): mark(); op(); return False
    def __getattr__(self, name): mark(); op(); return name
    def __del__(self): mark(); op()
async def coroutine(n):
    mark(); op()
    if n: await coroutine(n - 1)
def raises():
    try:
        mark(); op(); raise ValueError
    except ValueError:
        mark(); op()
    finally:
        mark(); op()
def decorated(f):
    @functools.wraps(f)
    def inner(*args): mark(); op(); return f(*args)
    return inner
@decorated
def plain(x): mark(); op(); return x
def run_all():
    leaf(); recursion(20); list(numbers()); sum(numbers())
    thing = Thing()
    thing.method(); thing.of_class(); thing.value; thing.missing
    with thing: mark(); op()
    sorted([Thing(), Thing(), Thing()])
    sorted(range(3), key=lambda x: (mark(), op()))
    list(map(lambda x: (mark(), op()), range(2)))
    functools.reduce(lambda a, b: (mark(), op()), range(3))
    [(mark(), op()) for i in range(2)]
    {i: (mark(), op()) for i in range(2)}
    try: coroutine(3).send(None)
    except StopIteration: pass
    raises(); plain(1)
    exec(MADE, globals())
    eval(SMALL)
    n\u00e4me = lambda: (mark(), op()); n\u00e4me()
    del thing
# what is gone at once cannot be read: kept
MADE = compile("def made():\\n\\n    mark(); op()\\nmade()", "<made>", "exec")
SMALL = compile("(mark(), op())", "<small>", "eval")
time.sleep(0.05)
for i in range(3): run_all()
threads = [threading.Thread(target=run_all) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
done()
"""


def write(folder, script, name="script.py"):
    path = f"{folder}/{name}"
    with open(path, "w", encoding="utf-8") as f:
        f.write("# -*- coding: utf-8 -*-\n" + script)
    return path


def shown(line):
    path, number, function = line
    return f"{path}({number}): {function}"


def stacks(trace, name):
    """By thread, in the order of time: call stacks of a function's spans."""
    found = collections.defaultdict(list)
    for e in sorted((e for e in trace.spans if e["name"] == name), key=lambda e: e["ts"]):
        found[e["tid"]].append(e["args"].get("Call stack", "").split(";"))
    return found


def check_stacks(trace, name, marks):
    got = stacks(trace, name)
    want = {int(t): [[shown(line) for line in stack] for stack in s] for t, s in marks.items()}
    equal({t: len(s) for t, s in got.items()}, {t: len(s) for t, s in want.items()}, "calls by thread")
    for thread, expected in want.items():
        for mine, theirs in zip(got[thread], expected):
            equal(mine, theirs, f"lines of a call of {name} in thread {thread}")


def record(folder, python, script, *options, name="script.py"):
    out = f"{folder}/t.json"
    xsptrace(*EXTRA, "-q", "--python", *options, "-o", out, "-o", f"{folder}/t.folded", "-o", f"{folder}/t.xspt",
             "--", python, write(folder, script, name), f"{folder}/truth", timeout=120)
    trace = Trace(out)
    trace.check_nothing_lost()
    equal(trace.losses["python_stacks_torn"], 0, "torn stacks")
    return trace


@case
def every_shape_of_frame(folder):
    """On every version here, by a function of libc."""
    for version, python in pythons():
        trace = record(folder, python, SHAPES, "-e", "libc.so.6:getppid")
        try:
            check_stacks(trace, "getppid", truth(f"{folder}/truth"))
        except AssertionError as error:
            raise AssertionError(f"Python {version}: {error}") from error


@case
def callers_in_folded_stacks(folder):
    record(folder, TORCH, SHAPES, "-e", "libc.so.6:getppid")
    counts = collections.Counter()
    for stacks_of_thread in truth(f"{folder}/truth").values():
        for stack in stacks_of_thread:
            counts[";".join(f"{os.path.basename(f)}:{n} {c}" for f, n, c in reversed(stack)) + ";getppid"] += 1
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        got = {line.rpartition(" ")[0].partition(";")[2] for line in f}
    # blanks and signs that the format has no place for are others there: docs/formats.md
    equal(got, set(counts), "folded stacks")


OPERATORS = HEAD + """
import torch
torch.set_num_threads(1)
a, b = torch.ones(4), torch.ones(4, requires_grad=True)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        mark(); x = torch.mul(x, 2)
        return self.inner(x)
class Inner(torch.nn.Module):
    def forward(self, x):
        for i in range(2):
            mark(); x = x * i
        return sum(part(x))
def part(x):
    mark(); yield torch.mul(x, x)
model = Model()
def work():
    for i in range(20):
        with torch.profiler.record_function("step"):
            model(a)
        try:
            mark(); torch.mul(torch.ones(2), torch.ones(3))
        except RuntimeError:
            mark(); torch.mul(
                a,
                b)
time.sleep(0.1)
work()
threads = [threading.Thread(target=work) for i in range(2)]
for t in threads: t.start()
for t in threads: t.join()
with torch.no_grad():
    torch.jit.script(lambda x: x) if False else None
done()
"""


def need_torch():
    if not os.path.exists(TORCH) or run([TORCH, "-c", "import torch"]).returncode != 0:
        raise Skip(f"{TORCH} has no torch (Debian: python3-torch)")


@case
def operators(folder):
    need_torch()
    trace = record(folder, TORCH, OPERATORS)
    check_stacks(trace, "aten::mul", truth(f"{folder}/truth"))
    # a range has no caller that was only there to open it
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        text = f.read()
    check(re.search(r"script.py:\d+ work;step;script.py:\d+ work;module.py:\d+ Module._call_impl;"
                    r"script.py:\d+ Model.forward;aten::mul ", text), "the way to an operator in a range", text)


# Blocks that are alike, shared, in lists, one in itself; who is called is what `self` is in _call_impl.
MODULES = HEAD + """
import torch
torch.set_num_threads(1)
a = torch.ones(4)
chains = []
def mark():
    f, chain = sys._getframe(1), []
    while f:
        if f.f_code.co_name == "_call_impl":
            module = f.f_locals["self"]
            chain.insert(0, [type(module).__name__, id(module)])
        f = f.f_back
    chains.append(chain)
class Scale(torch.nn.Module):
    def forward(self, x):
        mark(); return torch.mul(x, 2)
class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        x = self.inner(x)
        mark(); return torch.mul(x, 3)
shared = Scale()
model = torch.nn.Sequential(Block(shared), Block(Scale()), Block(Block(shared)),
                            torch.nn.ModuleList([Scale()])[0])
time.sleep(0.1)
for i in range(30):
    model(a)
    mark(); torch.mul(a, a)
    time.sleep(0.01)
marks = chains
done()
"""


@case
def modules(folder):
    need_torch()
    trace = record(folder, TORCH, MODULES, "-e", "torch:aten::mul")
    spans = sorted((e for e in trace.spans if e["name"] == "aten::mul"), key=lambda e: e["ts"])
    chains = truth(f"{folder}/truth")
    equal(len(spans), len(chains), "calls")
    names = collections.defaultdict(set)  # of each object
    shown_first = next(i for i, s in enumerate(spans) if "Module Hierarchy" in s["args"])
    check(shown_first < len(spans) / 3, "it took too long to find out what a module's call is", shown_first)
    for span, chain in list(zip(spans, chains))[shown_first:]:
        got = span["args"].get("Module Hierarchy", "").split(".")
        equal([name.rpartition("_")[0] for name in got], [c for c, _ in chain] or [""], "classes of a call")
        for name, (_, module) in zip(got, chain):
            names[module].add(name)
    check(all(len(n) == 1 for n in names.values()), "a module with two names", names)
    equal(len(set.union(*names.values())), len(names), "names of as many modules")


MODULES_THAT_GO = HEAD + """
import torch
x = torch.ones(2)
class Stays(torch.nn.Module):
    def forward(self, x): return torch.mul(x, 2)
def once():
    class Local(torch.nn.Module):
        def forward(self, x): return torch.mul(x, 2)
    Local()(x)
stays = Stays()
for i in range(60):
    once(); stays(x); [object() for _ in range(500)]
f = compile("def f(): torch.mul(x, 2)", "a;b;c.py", "exec")
exec(f); globals()["f"]()
done()
"""


@case
def modules_that_go(folder):
    """A class that is gone when its name is wanted has none; nor can a name that holds the separator forge frames."""
    need_torch()
    trace = record(folder, TORCH, MODULES_THAT_GO, "-e", "torch:aten::mul")
    shown = collections.Counter(e["args"].get("Module Hierarchy", "") for e in trace.spans)
    check(all(re.fullmatch(r"((Local|Stays)_\d+)?", name) for name in shown), "names of modules", shown)
    check(shown["Stays_0"] >= 40, "the one that stays", shown)
    forged, = (e for e in trace.spans if "a,b,c.py" in e["args"].get("Call stack", ""))
    equal(forged["args"]["Call stack"].split(";")[0], "a,b,c.py(1): f", "its innermost frame")


DEEP = HEAD + """
def down(n): return down(n - 1) if n else [mark(), op()]
time.sleep(0.05)
for n in (10, 15, 16, 17, 100, 500): down(n)
done()
"""


@case
def deeper_than_the_limit(folder):
    for limit in (1, 16, 128):
        trace = record(folder, TORCH, DEEP, f"--python={limit}", "-e", "libc.so.6:getppid")
        marks = truth(f"{folder}/truth")
        check_stacks(trace, "getppid", {t: [s[:limit] for s in all] for t, all in marks.items()})
    for wrong in ("0", "129", "x"):
        done = xsptrace(f"--python={wrong}", "--", "true", status=USAGE)
        check("1 to 128" in done.stderr, "does not say what can be given", done.stderr)


WAITS = HEAD + """
go = threading.Event()
def in_thread():
    go.wait()
    for i in range(50): mark(); op()
t = threading.Thread(target=in_thread); t.start()
signal.signal(signal.SIGUSR1, lambda *a: go.set())
print("ready", file=sys.stderr, flush=True)
while not go.is_set(): time.sleep(0.01)
for i in range(50): mark(); op()
t.join()
done()
"""


@case
def attached_to(folder):
    child = start_ready([TORCH, write(folder, WAITS), f"{folder}/truth"])
    with Recording(folder, "-p", child.pid, "--python", "-e", "libc.so.6:getppid", "-o", f"{folder}/t.json") as r:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status")
        r.wait()
    check_stacks(Trace(f"{folder}/t.json"), "getppid", truth(f"{folder}/truth"))


EXECS = HEAD + """
time.sleep(0.05)
for i in range(20): mark(); op()
done()
if len(sys.argv) == 3:
    os.execv(sys.argv[2], [sys.argv[2], sys.argv[0], sys.argv[1] + "2"])
"""


@case
def another_program_after_exec(folder):
    """Of another version, if there is one: what was known of the first is of no use."""
    out, script = f"{folder}/t.json", write(folder, EXECS)
    other = pythons()[-1][1]
    xsptrace(*EXTRA, "-q", "--python", "-e", "libc.so.6:getppid", "-o", out, "--", TORCH, script,
             f"{folder}/truth", other)
    first, second = truth(f"{folder}/truth"), truth(f"{folder}/truth2")
    check_stacks(Trace(out), "getppid", {t: first[t] + second[t] for t in first})


# Code that is made, and gone, again and again, at the same addresses.
ANEW = HEAD + """
def make(name):
    scope = {"op": op, "mark": mark}
    exec(compile(f"def {name}():\\n    mark(); op()\\n", f"{name}.py", "exec"), scope)
    return scope[name]
time.sleep(0.05)
for i in range(12):
    f = make(f"function_{i:02}")
    end = time.monotonic() + 0.25
    while time.monotonic() < end:
        f(); time.sleep(0.002)
    del f
done()
"""


@case
def addresses_used_anew(folder):
    """For a tenth of a second a name may be that of the object that was there before; not longer."""
    trace = record(folder, TORCH, ANEW, "-e", "libc.so.6:getppid")
    (marks,), (got,) = truth(f"{folder}/truth").values(), stacks(trace, "getppid").values()
    equal(len(got), len(marks), "calls")
    wrong = sum(mine[0] != shown(theirs[0]) for mine, theirs in zip(got, marks))
    check(wrong < len(marks) * 0.45, f"{wrong} of {len(marks)} calls are of another function")
    last = collections.defaultdict(list)
    for mine, theirs in zip(got, marks):
        last[theirs[0][2]].append(mine[0] == shown(theirs[0]))
    for name, right in last.items():
        check(all(right[len(right) * 3 // 5:]), f"{name} is still called by another name", right)


@case
def frames_that_lie(folder):
    """tests/workloads/python_liar.c: nothing is harmed, nothing is believed, what is torn is counted."""
    program, calls = workload("python_liar"), 20
    plain = run([program, f"{folder}/truth", calls]).stdout
    done = xsptrace(*EXTRA, "--no-summary", "--python", "-e", "python_liar:leaf", "-o", f"{folder}/t.json", "-o",
                    f"{folder}/t.folded", "-o", f"{folder}/t.svg", "-o", f"{folder}/t.perf", "--", program,
                    f"{folder}/truth", calls)
    equal(done.stdout, plain, "output of the traced program")
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    equal(trace.calls["leaf"], truth(f"{folder}/truth")["calls"]["leaf"], "calls")
    # circles, wild frames, states and keys: each of them, each time
    check(trace.losses["python_stacks_torn"] >= 8 * calls, "torn stacks are not counted", trace.losses)
    texts = {e["args"].get("Call stack", "") for e in trace.spans}
    names = {line for text in texts for line in text.split(";") if line}
    check("honest_name.py(2): honest_name.py" in names, "the honest one", names)
    for text in texts:
        check(text.count(";") < 64, "more frames than the limit", text)
        check(not re.search(r"[\x00-\x1f]", text), "control characters", text)


@case
def no_interpreter(folder):
    done = xsptrace(*EXTRA, "--no-summary", "--python", "-e", "callers:leaf", "-o", f"{folder}/t.json", "--",
                    workload("callers"), 5)
    check("no interpreter" in done.stderr, "is not said", done.stderr)
    equal(Trace(f"{folder}/t.json").calls["leaf"], 6, "calls")


@case
def with_every_flag(folder):
    """The programs load with all that they can do, and what is read of a span stays right."""
    need_torch()
    trace = record(folder, TORCH, OPERATORS, "--stacks=127", "--shapes=all", "--inputs=values", "--sequence",
                   "--flops", "--counters", "page-faults,task-clock")
    check_stacks(trace, "aten::mul", truth(f"{folder}/truth"))
    check(all("Native call stack" in e["args"] for e in trace.spans if e["name"] == "aten::mul"), "native stacks")


if __name__ == "__main__":
    main()
