#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--python: programs that write down, at each call, the lines that they are in (sys._getframe()). Each span must
have exactly these, on every CPython of which there is one here.
"""
import collections
import glob
import json
import os
import re
import signal
import subprocess

from harness import (EXTRA, TORCH, USAGE, Recording, Skip, Trace, case, check, equal, finish, json_report, main, need_torch, run,
                     start, start_ready, truth, workload, xsptrace)



def pythons():
    """Interpreters from 3.9 on, one a version: Debian's, pyenv's, and what XSP_PYTHONS names (separated by `:`)."""
    found, named = {}, filter(None, os.environ.get("XSP_PYTHONS", "").split(":"))
    for path in ["/usr/bin/python3", *named, *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))]:
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
    time.sleep(0.1)  # the recorder reads new objects every 10 ms
"""

# Frames of every kind between a program and its callees.
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
class Built:
    def __init__(self): mark(); op()
def build():
    for i in range(20): Built()  # soon the interpreter calls it by itself
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
    raises(); plain(1); build()
    exec(MADE, globals())
    eval(SMALL)
    n\u00e4me = lambda: (mark(), op()); n\u00e4me()
    del thing
# short-lived objects cannot be read: keep it
MADE = compile("def made():\\n\\n    mark(); op()\\nmade()", "<made>", "exec")
SMALL = compile("(mark(), op())", "<small>", "eval")
time.sleep(0.05)
for i in range(3): run_all()
threads = [threading.Thread(target=run_all) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
done()
"""


CALLS = """
import gc, json, sys, time, zlib
objects, text, blob = [[i] for i in range(100000)], "x" * 1000000, b"abc" * 100000
class Packer:
    def __init__(self): self.pack = zlib.compress
    def packs(self): self.pack(
        blob[0:], [*[9]][0])
def collects(): gc.collect()
def sorts(work=sorted): work(objects, key=None, reverse=bool(0))
def lowers(): text.upper().lower()
def sums(): sum(range(500000))
def adds(): objects + objects
def holds(): "nothing" in objects
sys.stdin.readline()
for function in (Packer().packs, collects, sorts, lowers, sums, adds, holds):
    until = time.thread_time() + 0.12
    while time.thread_time() < until: function()
"""


@case
def functions_of_c_are_named_by_their_calls(folder):
    """An interpreter without symbols has no names for them; the line that calls them does."""
    children = []
    for version, python in {version[:2]: python for version, python in reversed(pythons())}.items():
        if version < (3, 15):
            path = write(folder, CALLS, f"of_{version[1]}.py")
            children.append((os.path.basename(path), start([python, path], stdin=subprocess.PIPE)))
    pids = ",".join(str(child.pid) for _, child in children)
    with Recording(folder, "--profile", "--sample=999", "-p", pids, "-o", f"{folder}/t.xspt", "-o", f"{folder}/t.folded") as recording:
        for _, child in children:
            child.stdin.write(b"\n")
            child.stdin.flush()
        for _, child in children:
            equal(child.wait(timeout=60), 0, "status of python")
        recording.wait()
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        stacks = [line.rsplit(" ", 1) for line in f if "[runnable]" not in line]
    wanted = {"packs": {"self.pack"}, "collects": {"gc.collect"}, "sorts": {"work"}, "lowers": {"text.upper", "lower"},
              "sums": {"sum"}, "adds": set(), "holds": {"in"}}
    for name, _ in children:
        for function, calls in wanted.items():
            if function == "holds" and name == "of_14.py":  # the number of that instruction is not in the recorder's table
                continue
            called = collections.Counter()
            for stack, ns in stacks:
                found = re.search(rf";{re.escape(name)}:\d+ (?:Packer\.)?{function}(?:;([^;]*)|$)", stack)
                if found:
                    called[found[1] if found[1] in set.union(*wanted.values()) else None] += int(ns)
            share = sum(called[c] for c in calls) / sum(called.values())
            check(share > 0.8 if calls else set(called) == {None}, f"{function} in {name}", called)
            check(all(called[c] > 0.2 * sum(called.values()) for c in calls), f"{function} in {name}", called)


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


def rows_of(trace):
    """By thread: slices of the rows of lines, as (start, end, name), ns, those around others first."""
    threads = {(e["pid"], e["tid"]): int(m[1]) for e in trace.json["traceEvents"] if e.get("name") == "thread_name"
               and (m := re.fullmatch(r"thread (\d+) \(.*\) Python, as seen at spans", e["args"]["name"]))}
    found = collections.defaultdict(list)
    for e in trace.json["traceEvents"]:
        if e.get("cat") == "python_function":
            start = round(e["ts"] * 1000)
            found[threads[e["pid"], e["tid"]]].append((start, start + round(e["dur"] * 1000), e["name"]))
    return {t: sorted(slices, key=lambda s: (s[0], -s[1])) for t, slices in found.items()}


def lines_at(slices, begin, end):
    """The slices around a span, the innermost first, which must be all that overlap it."""
    over = [s for s in slices if s[0] < end and s[1] > begin]
    check(all(s[0] <= begin and s[1] >= end for s in over), "a slice sticks out", over, (begin, end))
    return [s[2] for s in reversed(over)]


@case
def rows_of_lines(folder):
    """Around each call are the slices of the lines that the program had on its stack then, and no others; a line that
    calls again and again is one slice."""
    version, python = pythons()[0]
    trace = record(folder, python, SHAPES, "--python=rows", "-e", "libc.so.6:getppid")
    rows, marks = rows_of(trace), truth(f"{folder}/truth")
    equal({str(t) for t in rows}, set(marks), f"threads of Python {version}")
    for thread, expected in marks.items():
        spans = sorted((round(e["ts"] * 1000), e["dur"]) for e in trace.spans
                       if e["name"] == "getppid" and e["tid"] == int(thread))
        equal(len(spans), len(expected), "calls")
        for (begin, us), lines in zip(spans, expected):
            equal(lines_at(rows[int(thread)], begin, begin + round(us * 1000)), [shown(line) for line in lines],
                  f"lines of a call in thread {thread}")
        slices = rows[int(thread)]
        for i, (start, end, name) in enumerate(slices):  # of recursion
            inner = [s for s in slices[i + 1:] if s[0] < end]
            check(all(s[1] <= end for s in inner), "not within", name, inner)
    repeated = [s for s in rows[min(rows)] if "run_all" in s[2]]
    check(len(repeated) < len([s for m in marks.values() for s in m]) / 2, "each call has slices of its own", repeated)
    xsptrace("export", f"{folder}/t.xspt", "-q", "--python=rows", "-o", f"{folder}/again.json")
    equal(rows_of(Trace(f"{folder}/again.json")), rows, "what export writes")
    xsptrace("export", f"{folder}/t.xspt", "-q", "-o", f"{folder}/without.json")
    equal(rows_of(Trace(f"{folder}/without.json")), {}, "without the option")


@case
def callers_in_folded_stacks(folder):
    record(folder, TORCH, SHAPES, "-e", "libc.so.6:getppid")
    counts = collections.Counter()
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    most = 24 if release < (5, 17) else None  # README: there is no bpf_loop() yet
    for stacks_of_thread in truth(f"{folder}/truth").values():
        for stack in stacks_of_thread:
            counts[";".join(f"{os.path.basename(f)}:{n} {c}" for f, n, c in reversed(stack[:most])) + ";getppid"] += 1
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        got = {line.rpartition(" ")[0].partition(";")[2] for line in f}
    # blanks and signs that the format has no place for are others there: docs/formats.md
    equal(got, set(counts), "folded stacks")


def summary(folder):
    return json.loads(xsptrace("export", "--summary", "json", f"{folder}/t.xspt").stdout)


@case
def summary_by_line(folder):
    """Who called how often, and who was among the callers, is what the program wrote down; for how long, what its
    spans say."""
    trace = record(folder, TORCH, SHAPES, "-e", "libc.so.6:getppid")
    marks = [[tuple(line) for line in stack] for thread in truth(f"{folder}/truth").values() for stack in thread]
    lines = {(row["file"], row["line"], row["function"]): row for row in summary(folder)["lines"]}
    equal(set(lines), {line for stack in marks for line in stack}, "lines")
    equal({k: r["calls"] for k, r in lines.items() if r["calls"]}, collections.Counter(s[0] for s in marks), "calls")
    own, total = collections.Counter(), collections.Counter()
    for e in trace.spans:
        stack = e["args"]["Call stack"].split(";")
        own[stack[0]] += e["dur"] * 1000
        total.update({line: e["dur"] * 1000 for line in set(stack)})
    for line, row in lines.items():
        for key, expected in (("self_ns", own), ("total_ns", total)):
            check(abs(row.get(key, 0) - expected[shown(line)]) < 2 * len(marks), f"{key} of {line}", row,
                  expected[shown(line)])
    table = xsptrace("export", "--by", "line", "--rows", "3", f"{folder}/t.xspt").stdout
    most, _ = own.most_common(1)[0]
    place, function = most.rsplit(": ", 1)
    name = f"{os.path.basename(place).replace('(', ':').rstrip(')')} {function}"
    check(re.search(rf"^ +[\d,]+ .* {re.escape(name)}$", table, re.M), f"{name} is not in the table", table)
    check("... and" in table and "p99" not in table, "the table", table)
    for wrong in (["--by", "row", "--python"], ["--by", "line"], ["--by", "module"]):
        check("--by" in xsptrace(*wrong, "--", "true", status=USAGE).stderr, "what is wrong is not said", wrong)


# Waits until the breakpoints in a library's code, which make pages of the process's own, have become no more for a while.
PROBED = """
def private_kilobytes(library):
    found, code = 0, False
    with open("/proc/self/smaps") as f:
        for line in f:
            words = line.split()
            if words[0] == "Anonymous:":
                found += code * int(words[1])
            elif not words[0].endswith(":"):
                code = "x" in words[1] and library in words[-1]
    return found
def wait_probed(library):
    before, now, end = 0, 0, time.monotonic() + 60
    while not 0 < now == before and time.monotonic() < end:
        time.sleep(0.3)
        before, now = now, private_kilobytes(library)
"""

OPERATORS = HEAD + PROBED + """
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
wait_probed("/libtorch_cpu.so")
work()
threads = [threading.Thread(target=work) for i in range(2)]
for t in threads: t.start()
for t in threads: t.join()
with torch.no_grad():
    torch.jit.script(lambda x: x) if False else None
done()
"""


@case(long="loads PyTorch often")
def operators(folder):
    need_torch()
    trace = record(folder, TORCH, OPERATORS)
    check_stacks(trace, "aten::mul", truth(f"{folder}/truth"))
    # a range has no caller that was only there to open it
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        text = f.read()
    # _wrapped_call_impl: since PyTorch 2.1
    check(re.search(r"script.py:\d+ work;step;script.py:\d+ work;(module.py:\d+ Module._wrapped_call_impl;)?"
                    r"module.py:\d+ Module._call_impl;script.py:\d+ Model.forward;aten::mul ", text),
          "the way to an operator in a range", text)


# What PyTorch's class does of what matters here, where there is no PyTorch. TOUCHED: __dict__ is asked for, as
# PyTorch does; without, attributes stay where the interpreter first puts them.
STAND_IN = """
import collections
TOUCHED = True
WRAPPED = False
class Module:
    def __init__(self):
        for name in ("_parameters", "_buffers", "_modules"):
            super().__setattr__(name, collections.OrderedDict() if TOUCHED else {})
    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self._modules[name] = value
        else:
            super().__setattr__(name, value)
    def __getattr__(self, name):
        modules = self.__dict__["_modules"] if TOUCHED else object.__getattribute__(self, "_modules")
        if name not in modules:
            raise AttributeError(name)
        return modules[name]
    def __delattr__(self, name):
        del self._modules[name]
    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)
    if WRAPPED:  # as since 2.4
        def _call_impl(self, *args):
            def in_a_cell():
                return self
            return self.forward(*args)
        def _wrapped_call_impl(self, *args):
            return self._call_impl(*args)
        __call__ = _wrapped_call_impl
    else:
        def _call_impl(self, *args):
            return self.forward(*args)
        __call__ = _call_impl
class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        for i, module in enumerate(modules):
            setattr(self, str(i), module)
    def __getitem__(self, i):
        return list(self._modules.values())[i]
    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x
class ModuleList(Sequential):
    def __init__(self, modules):
        super().__init__(*modules)
"""

# Blocks that are alike, shared, in lists and dictionaries, one in itself, called by others than their parents. The
# truth: who is `self` in each _call_impl, and what named_modules() of the outermost one calls that; of several names
# that by which those around it have it.
MODULES = HEAD + """
import torch.nn.modules.module as base
Module = base.Module
try: from torch.nn import ModuleList, Sequential
except ImportError: from torch.nn.modules.module import ModuleList, Sequential
def names_of(root):
    names = collections.defaultdict(list)
    for name, module in root.named_modules(remove_duplicate=False): names[id(module)].append(name)
    return names
def path_of(chain):
    names, paths = names_of(chain[0]), [""]
    for module in chain[1:]:
        inside = [[n for n in names[id(module)] if not around or n.startswith(around + ".")] for around in paths]
        nearest = [sorted(found, key=lambda n: n.count(".")) for found in reversed(inside) if found]
        paths.append(nearest[0][0] if nearest else type(module).__name__)
    return type(chain[0]).__name__ + "_0" + ("." + paths[-1] if paths[-1] else "")
def mark():
    f, chain = sys._getframe(1), []
    while f:
        if f.f_code.co_name == "_call_impl": chain.insert(0, f.f_locals["self"])
        f = f.f_back
    marks[threading.get_native_id()].append(path_of(chain) if chain else "")
class Scale(Module):
    def forward(self, x):
        mark(); op()
        return x
class Block(Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        x = self.inner(x)
        mark(); op()
        return x
class Many(Module):
    def __init__(self):
        super().__init__()
        for i in range(60): setattr(self, f"number_{i}", i)
        self.größe_µ = Scale()
        self.漢字 = Scale()
        for i in range(200): setattr(self, f"scale_{i}", Scale())
    def forward(self, x):
        return self.scale_199(self.漢字(self.größe_µ(x)))
class Of(Module):
    def forward(self, other): return other(1)
class Net(Module):
    def __init__(self):
        super().__init__()
        shared = Scale()
        self.a, self.b = Block(shared), Block(Scale())
        self.c = Block(Block(shared))
        self.encoder = Sequential(Block(Scale()), Sequential(Scale(), Scale()))
        self.layers = ModuleList([Block(Scale()), Scale(), ModuleList([Scale()])])
        self.many, self.of = Many(), Of()
        self.nothing = Scale(); self.nothing = None
    def forward(self, x):
        self.a(x); self.b(x); self.c(x); self.encoder(x); self.many(x)
        for i in range(2): self.layers[i](x)
        self.layers[2][0](x)
        self.encoder[1][1](x); self.b.inner(x); self.of(self.c.inner); self.of(self.layers[2][0])
        mark(); op()
class Alone(Scale): pass
net, alone = Net(), Alone()
time.sleep(0.1)
for i in range(20):
    net(1); alone(1)
    mark(); op()
    time.sleep(0.01)
done()
"""


def write_stand_in(folder, touched, wrapped=False):
    """A module torch.nn.modules.module in the folder of the script."""
    path = folder
    for name in ("torch", "nn", "modules"):
        path += f"/{name}"
        os.makedirs(path, exist_ok=True)
        with open(f"{path}/__init__.py", "w", encoding="ascii"):
            pass
    with open(f"{path}/module.py", "w", encoding="ascii") as f:
        f.write(STAND_IN.replace("TOUCHED = True", f"TOUCHED = {touched}").replace("WRAPPED = False",
                                                                                   f"WRAPPED = {wrapped}"))


def check_modules(folder, trace):
    """Each call has the path that the program says; in its first calls there may be none."""
    spans = sorted((e for e in trace.spans if e["name"] == "getppid"), key=lambda e: e["ts"])
    (marks,) = truth(f"{folder}/truth").values()
    equal(len(spans), len(marks), "calls")
    got = [s["args"].get("Module Hierarchy", "") for s in spans]
    first = next((i for i, path in enumerate(got) if path), len(got))
    check(first < len(got) / 3, "it took too long to find out what a module's call is", first)
    wrong = collections.Counter((mine, theirs) for mine, theirs in list(zip(got, marks))[first:] if mine != theirs)
    check(not wrong, "other paths than the program's own", dict(wrong))
    check(len(set(marks)) > 20, "too few of them", set(marks))
    rows = summary(folder)
    calls = {m["path"]: m["calls"] for m in rows["modules"] if m["calls"]} | {"": rows["without_module"]["calls"]}
    equal(calls, collections.Counter(got), "calls by module in the summary")


@case
def module_paths(folder):
    need_torch()
    check_modules(folder, record(folder, TORCH, MODULES, "-e", "libc.so.6:getppid"))


@case(long="every PyTorch that can be had")
def module_paths_of_every_version(folder):
    """With a replacement of PyTorch's class; with and without an instance's dictionary; in its old and new form."""
    for version, python in {version[:2]: python for version, python in pythons()}.items():
        instances = (True,) if version < (3, 11) else (False,) if version < (3, 13) else (True, False)
        for touched, wrapped in [(t, w) for t in instances for w in (False, True)]:
            sub = f"{folder}/{'.'.join(map(str, version))}.{touched}.{wrapped}"
            os.mkdir(sub)
            write_stand_in(sub, touched, wrapped)
            try:
                check_modules(sub, record(sub, python, MODULES, "-e", "libc.so.6:getppid"))
            except AssertionError as error:
                raise AssertionError(f"Python {version}, {touched}, {wrapped}: {error}") from error


RENAMED = MODULES[:MODULES.index("class Alone")] + """
net = Block(Scale())
net.forward = lambda x: next(iter(net._modules.values()))(x)
def calls(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        net(1); time.sleep(0.01)
calls(0.5)
inner = net.inner
del net.inner
net.last = inner
calls(3.5)
done()
"""


@case
def modules_renamed(folder):
    """A new name is noticed within some seconds, also where nothing else changes."""
    write_stand_in(folder, True)
    trace = record(folder, TORCH, RENAMED, "-e", "libc.so.6:getppid")
    spans = sorted((e for e in trace.spans if e["name"] == "getppid"), key=lambda e: e["ts"])
    (marks,) = truth(f"{folder}/truth").values()
    got = [s["args"].get("Module Hierarchy", "") for s in spans]
    equal(len(got), len(marks), "calls")
    equal(set(got[-20:]), {"Block_0.last"}, "its last name")
    wrong = [(spans[i]["ts"], pair) for i, pair in enumerate(zip(got, marks)) if pair[0] != pair[1] and pair[0]]
    check(not wrong or wrong[-1][0] - wrong[0][0] < 2.5e6, "an old name stayed too long", wrong[-1:], len(wrong))


# Module trees in circles, dictionaries that are none, or endless, and names that are none.
MODULES_THAT_LIE = MODULES[:MODULES.index("class Many")] + """
class Own(dict): pass
class Times(Module):
    def forward(self, other):
        for i in range(20): other(1)
inner, circle, times = Scale(), Block(Scale()), Times()
circle.inner.outer = circle
circle.itself = circle
lies = [None, 7, "text", [inner], (inner,), {"a.b": inner}, {"": inner}, {7: inner}, {None: inner}, {b"x": inner},
        {"\\x1b[2J;\\n": inner}, {"x" * 1000: inner}, {f"n{i}": None for i in range(10000)} | {"end": inner},
        Own(own=inner), collections.defaultdict(list, d=inner), {i: i for i in range(5000)}, object, Block,
        {"circle": circle, "times": times}, {"n" + str(i): circle for i in range(3000)}]
def flip():
    while not stop:
        for lie in lies: object.__setattr__(times, "_modules", lie)
stop = False
times(inner)
time.sleep(0.1)
for lie in lies:
    object.__setattr__(times, "_modules", lie)
    # another stack each time, so that it is asked for anew
    exec(f"def called(n):\\n  if n: return called(n - 1)\\n  times(inner)\\ncalled({lies.index(lie)})\\n")
    time.sleep(0.02)
thread = threading.Thread(target=flip); thread.start()
for i in range(20): times(inner); circle(1); time.sleep(0.01)
stop = True; thread.join()
with open(sys.argv[1], "w") as f: json.dump(sum(map(len, marks.values())), f)
time.sleep(0.1)
"""


@case
def modules_that_lie(folder):
    """Nothing is harmed, and no name is made up: each is one that was in a dictionary of names, or a number."""
    write_stand_in(folder, True)
    trace = record(folder, TORCH, MODULES_THAT_LIE.replace("mark(); op()", "marks[0].append(0); op()"), "-e",
                   "libc.so.6:getppid")
    shown = collections.Counter(e["args"].get("Module Hierarchy", "") for e in trace.spans)
    equal(sum(shown.values()), truth(f"{folder}/truth"), "calls")
    expected = {"", "Block_0.inner", "Scale_0"} | {
        f"Times_0.{name}" for name in ("Scale_0", "?[2J;?", "own", "d", "circle.inner")}
    check(set(shown) - {"Block_0"} <= expected, "other names", shown)


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
    if i < 10: time.sleep(0.02)  # by then it is known what a module's call is
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


@case(long="thousands of frames")
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
    """Another version, if there is one: what is known of the first does not apply."""
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


@case(long="a minute of calls")
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
    """tests/workloads/python_liar.c: does no harm, is not believed, and torn stacks are counted."""
    program, calls = workload("python_liar"), 20
    plain = run([program, f"{folder}/truth", calls]).stdout
    done = xsptrace(*EXTRA, "--summary=none", "--python", "-e", "python_liar:leaf", "-o", f"{folder}/t.json", "-o",
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


# Eight coroutines share two connections. Their own clocks: how long they wait for one, and with it.
AWAITS = """
import asyncio, json, sys, time
spent = {"taken": 0, "slept": 0}
class Pool:
    def __init__(self):
        self.free = asyncio.Queue()
        for i in range(2): self.free.put_nowait(i)
    async def take(self):
        return await self.free.get()
async def query(pool):
    begun = time.monotonic()
    one = await pool.take()
    taken = time.monotonic()
    await asyncio.sleep(0.02)
    spent["slept"] += time.monotonic() - taken
    spent["taken"] += taken - begun
    pool.free.put_nowait(one)
async def worker(pool):
    while time.monotonic() < end: await query(pool)
async def main():
    pool = Pool()
    await asyncio.gather(*[worker(pool) for i in range(8)])
end = time.monotonic() + 4
asyncio.run(main())
json.dump(spent, open(sys.argv[1], "w"))
"""


def awaits_of(capture):
    places = json_report("analyze", capture)["sections"]["account"]["tables"]["places"]["rows"]
    return next((p["awaits"] for p in places if p["awaits"]), None)


@case
def coroutines_that_wait(folder):
    """The event loop waits; what for, its coroutines say."""
    script = write(folder, AWAITS)
    for version, python in pythons():
        if not (3, 11) <= version < (3, 14):
            continue
        xsptrace("-q", "--profile", "-o", f"{folder}/t.xspt", "--", python, script, f"{folder}/spent", timeout=60)
        said = awaits_of(f"{folder}/t.xspt")
        found = re.fullmatch(r"Pool\.take:10 Queue\.get (\d+) %, query:15 sleep (\d+) %", said or "")
        check(found, f"{version}: {said}")
        spent = truth(f"{folder}/spent")
        own = 100 * spent["taken"] / sum(spent.values())
        check(abs(int(found[1]) - own) < 8, f"{version}: {said}; {own:.0f} % by their own clocks")
        screen = xsptrace("analyze", f"{folder}/t.xspt").stdout
        check(f"      awaits {said}" in screen.splitlines(), "the first screen", screen)


# Coroutines that never go on: their frames' tops, what these have there, their code, and the set of all tasks become wild.
LYING_COROUTINES = """
import asyncio, ctypes, gc, os, threading, time
gc.disable()
def number(at): return ctypes.c_int.from_address(at)
def word(at): return ctypes.c_uint64.from_address(at)
async def sleeps(): await asyncio.sleep(100)
def lie(loop):
    time.sleep(1)
    coroutines = [t.get_coro() for t in asyncio.all_tasks(loop)]
    for i, c in enumerate(coroutines):
        frame = id(c) + 80
        top = number(frame + 64).value
        if i % 5 == 0: number(frame + 64).value = 1 << 30
        if i % 5 == 1: word(frame + 72 + 8 * (top - 1)).value = id(c)
        if i % 5 == 2: word(frame + 72 + 8 * (top - 1)).value = 0x414141414141
        if i % 5 == 3: word(frame + 32).value = 0x414141414141
    time.sleep(1)
    word(id(asyncio.tasks._all_tasks.data) + 32).value = 1 << 40
    time.sleep(1)
    os._exit(7)
async def main():
    threading.Thread(target=lie, args=[asyncio.get_running_loop()], daemon=True).start()
    await asyncio.gather(*[sleeps() for i in range(50)])
asyncio.run(main())
"""


@case
def coroutines_that_lie(folder):
    """They are not believed, do no harm to the recorder, and it none to them."""
    python = next((path for version, path in pythons() if (3, 11) <= version < (3, 12)), None)
    if python is None:
        raise Skip("no Python 3.11 here")
    done = xsptrace("-q", "--profile", "-o", f"{folder}/t.xspt", "--", python, write(folder, LYING_COROUTINES), status=7, timeout=60)
    equal(done.stderr, "", "what it says of it")
    said = awaits_of(f"{folder}/t.xspt")
    check(said and all(re.fullmatch(r"sleeps:7( sleep)? \d+ %", one) for one in said.split(", ")), "what it says", said)


@case
def no_interpreter(folder):
    done = xsptrace(*EXTRA, "--summary=none", "--python", "-e", "callers:leaf", "-o", f"{folder}/t.json", "--",
                    workload("callers"), 5)
    check("no interpreter" in done.stderr, "is not said", done.stderr)
    equal(Trace(f"{folder}/t.json").calls["leaf"], 6, "calls")


@case(long="each flag is a recording")
def with_every_flag(folder):
    """The BPF programs load with everything on, and a span's sections stay right."""
    need_torch()
    trace = record(folder, TORCH, OPERATORS, "--stacks=127", "--shapes=all", "--inputs=values", "--sequence",
                   "--flops", "--counters", "page-faults,task-clock")
    check_stacks(trace, "aten::mul", truth(f"{folder}/truth"))
    check(all("Native call stack" in e["args"] for e in trace.spans if e["name"] == "aten::mul"), "native stacks")


if __name__ == "__main__":
    main()
