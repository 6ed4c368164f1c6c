#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Provider torch: the operators that xsptrace sees are those that PyTorch's own profiler sees, to
the last call; differences are named here one by one, and explained in docs/providers.md.

A traced run is one process, with its set-up; the profiler is started behind it. So a count is the
difference of two runs, with steps and without; or it is what lies in a range."""
import collections
import json
import os
import re

from harness import (AS_ASKED, EXTRA, NO_BRAKE, TABLE, NO_MATCH, SCRIPTS, TORCH, USAGE, XSPTRACE, Skip,
                     Trace, case, check, check_as_shipped, equal, main, need_torch, run, start, torch_when_traced, truth, wait_for, xsptrace)
from python import PROBED

PYTHON = TORCH
TRAIN = f"{SCRIPTS}/torch_train.py"
BOXED = f"{SCRIPTS}/torch_boxed.py"


def operators(counter):
    """Operators only, and only those that were called."""
    return {k: v for k, v in sorted(counter.items()) if k.startswith("aten::") and v != 0}


def difference(some, none):
    counter = collections.Counter(some)
    counter.subtract(none)
    return {k: v for k, v in sorted(counter.items()) if v}


def traced(folder, name, command, *options):
    """A launched program."""
    out = f"{folder}/{name}.json"
    xsptrace(*EXTRA, *options, "-q", "-o", out, "--", *torch_when_traced(*command), timeout=240)
    trace = Trace(out)
    trace.check_nothing_lost()
    trace.check_nesting()
    equal({e["cat"] for e in trace.spans if e["name"].startswith("aten::")}, {"cpu_op"},
          "categories of operators")
    return trace


def untraced_run(command):
    done = run([PYTHON, *command], timeout=240)
    equal(done.returncode, 0, f"status of {command}\n{done.stderr}")


# Backward nodes, and the ranges that torch's own Python code names.
BESIDE_OPERATORS = {"autograd::engine::evaluate_function: ": "cpu_op", "Optimizer.": "user_annotation"}


@case
def same_calls_as_the_profiler(folder):
    """Conv, linear, embedding, batch norm, attention, optimizer and cross entropy on two threads: operators, backward nodes, ranges."""
    need_torch()
    losses = {n: f"{folder}/{n}.losses" for n in ("plain", "traced", "profiled", "none")}
    untraced_run([TRAIN, "--losses", losses["plain"]])
    untraced_run([TRAIN, "--losses", losses["profiled"], "--profile", f"{folder}/calls"])
    some = traced(folder, "some", [TRAIN, "--losses", losses["traced"]])
    none = traced(folder, "none", [TRAIN, "--losses", losses["none"], "--steps", 0])
    # what making an optimizer calls (PyTorch 2.6 imports much then) is in neither difference
    untraced_run([TRAIN, "--losses", losses["none"], "--steps", 0, "--profile", f"{folder}/calls0"])
    got, wanted = difference(some.calls, none.calls), difference(truth(f"{folder}/calls"), truth(f"{folder}/calls0"))
    check(sum(operators(wanted).values()) > 5000 and len(operators(wanted)) > 60, "the script does too little", wanted)
    for name in ("conv2d", "linear", "embedding", "batch_norm", "bmm", "softmax", "add_",
                 "cross_entropy_loss", "convolution_backward"):
        check(f"aten::{name}" in wanted, f"the script does not call {name}")
    equal(operators(got), operators(wanted), "calls by operator")
    for name in ("AddmmBackward0", "ConvolutionBackward0", "torch::autograd::AccumulateGrad"):
        check(f"autograd::engine::evaluate_function: {name}" in wanted, f"the script runs no {name}", wanted)
    check("Optimizer.step#SGD.step" in wanted, "no ranges", wanted)
    for prefix, category in BESIDE_OPERATORS.items():
        equal(*({k: v for k, v in calls.items() if k.startswith(prefix)} for calls in (got, wanted)), f"calls of {prefix}*")
        for trace in (some, none):
            equal({e["cat"] for e in trace.spans if e["name"].startswith(prefix)} - {category}, set(), f"category of {prefix}*")
    # bit by bit
    plain = truth(losses["plain"])
    check(all(len(set(thread)) == 5 for thread in plain), "losses do not change", plain)
    equal(truth(losses["traced"]), plain, "losses traced")
    equal(truth(losses["profiled"]), plain, "losses under the profiler")


# Calls a round that one of the two sees and the other does not: traced minus profiled.
DIFFERENCES = {
    "python": {},
    "backward": {},
    "foreach": {},
    "index": {},
    # torch.ops goes from Python to the boxed kernel: at::_ops::mm::call is passed by. What the
    # kernel calls in its turn is seen.
    "packet": {"aten::mm": -1},
    "overload": {"aten::mm": -1},
    # so does TorchScript's interpreter; from PyTorch 2 on it calls the other two as C++ does
    "script": {"aten::mm": -1, "aten::relu": -1, "aten::add": -1},
}
SCRIPT_FROM_2 = {"aten::mm": -1}


@case
def other_ways_to_call_operators(folder, *options):
    need_torch()
    version = run([PYTHON, "-c", "import torch; print(torch.__version__)"]).stdout
    untraced_run([BOXED, "--out", f"{folder}/calls", "--profile"])
    trace = traced(folder, "boxed", [BOXED, "--out", f"{folder}/nothing"], *options)
    check_as_shipped(trace, options)

    def inside(way):
        around, = (e for e in trace.spans if e["name"] == f"way {way}")
        return collections.Counter(e["name"] for e in trace.spans if around["ts"] <= e["ts"] <= around["ts"] + around["dur"])

    for way, differences in DIFFERENCES.items():
        if way == "script" and int(version.split(".")[0]) >= 2:
            differences = SCRIPT_FROM_2
        wanted = operators(truth(f"{folder}/calls")[way])
        check(wanted, f"{way}: the profiler saw nothing")
        got = difference(inside(way), inside("nothing"))
        equal(operators(difference(got, wanted)), operators({k: 3 * v for k, v in differences.items()}),
              f"{way}: traced minus profiled")


WAITING = """
import sys, time, torch
a = torch.ones(4, 4)
print("ready", flush=True)
while True:
    torch.mm(a, a)
    torch.addmm(a, a, a)
    torch.empty(3)
    time.sleep(0.002)
"""


def waiting(folder):
    log = open(f"{folder}/waiting", "wb")
    child = start([PYTHON, "-c", WAITING], stdout=log)
    log.close()
    wait_for(lambda: os.path.getsize(f"{folder}/waiting"), 60, "torch is imported")
    return child


# Nodes that are written in Python, of two classes; the node of a scripted function, whose C++ class has no symbol;
# complex numbers beside tensors. The truth is PyTorch's profiler, in the same process after the calls that are traced.
NODES = """
import json, sys, time, warnings
""" + PROBED + """
warnings.filterwarnings("ignore")
import torch
class Times(torch.autograd.Function):
    @staticmethod
    def forward(c, x, k): c.k = k; return x * k
    @staticmethod
    def backward(c, g): return g * c.k, None
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(c, x): y = x.exp(); c.save_for_backward(y); return y
    @staticmethod
    def backward(c, g): return g * c.saved_tensors[0]
@torch.jit.script
def scripted(x, y): return (torch.mm(x, y).relu() + 1).sum()
z = torch.ones(3, dtype=torch.complex64)
def work():
    for i in range(5):
        x = torch.randn(3, 3, requires_grad=True)
        (Exp.apply(Times.apply(x, 2.5)).sum() + Exp.apply(x).sum()).backward()
        scripted(x, torch.ones(3, 3)).backward()
        torch.add(z, z, alpha=3 - 1j); torch.add(z, z, alpha=0.5 + 2.25j)
wait_probed("/libtorch_cpu.so")
work()
with torch.autograd.profiler.record_function("traced"): work()
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p: work()
p.export_chrome_trace(sys.argv[1])
"""
NODE = "autograd::engine::evaluate_function: "


def within(trace, name):
    (outer,) = (e for e in trace.spans if e["name"] == name)
    return [e for e in trace.spans if outer["ts"] <= e["ts"] < outer["ts"] + outer["dur"]]


@case
def names_of_nodes_and_complex_numbers(folder, *options):
    need_torch()
    path = f"{folder}/nodes.py"
    with open(path, "w", encoding="ascii") as f:
        f.write(NODES)
    got = within(traced(folder, "nodes", [path, f"{folder}/truth.json"], "--inputs", *options), "traced")
    with open(f"{folder}/truth.json", encoding="utf-8") as f:
        wanted = json.load(f)
    # without Kineto, as Debian's 1.13 is built, it is a list
    wanted = [e for e in (wanted if isinstance(wanted, list) else wanted["traceEvents"]) if e["ph"] == "X"]

    def nodes(events):
        return collections.Counter(e["name"][len(NODE):] for e in events if e["name"].startswith(NODE))

    equal(nodes(got), nodes(wanted), "nodes")
    check({"TimesBackward", "ExpBackward"} <= set(nodes(got)), "nodes that are written in Python", nodes(got))
    numbers = collections.Counter(e["args"]["Concrete Inputs"][2] for e in got if e["name"] == "aten::add"
                                  and "j" in (e["args"].get("Concrete Inputs") or ["", "", ""])[2])
    equal(numbers, {"3.-1.j": 5, "0.5+2.25j": 5}, "complex numbers")


@case
def names_of_nodes_and_complex_numbers_bare(folder):
    names_of_nodes_and_complex_numbers(folder, *AS_ASKED)


@case
def selection_by_shown_name(folder):
    need_torch()
    child = waiting(folder)
    both = {"aten::mm", "aten::addmm"}
    for patterns, wanted in (
            (["torch:aten::*mm"], both),
            (["torch:aten::*mm", "!torch:aten::add*"], {"aten::mm"}),
            (["torch", "!torch:aten::e*"], both),
            (["!torch:aten::e*"], both),  # the providers are tried, less these
            (["torch:aten::mm", "libtorch_cpu.so:at::_ops::empty_memory_format::call"],
             {"aten::mm", "at::_ops::empty_memory_format::call"})):
        out = f"{folder}/selected.json"
        xsptrace(*EXTRA, "-p", child.pid, "-d", "0.3", "-q", *[x for p in patterns for x in ("-e", p)],
                 "-o", out)
        names = {n for n in Trace(out).calls if not n.startswith("aten::expand")}
        check(names >= wanted, f"{patterns}: {names}")
        # addmm calls others
        equal({n for n in names if re.search(r"mm|empty", n)}, wanted, f"names by {patterns}")


@case
def wrong_names(folder):
    """The usual errors, with names of the provider's own."""
    need_torch()
    child = waiting(folder)
    err = xsptrace("-p", child.pid, "-e", "torch:aten::conv2_d", status=NO_MATCH).stderr
    check("aten::conv2d" in err, "no suggestion", err)
    err = xsptrace("-p", child.pid, "-e", "torch:0x1000", status=USAGE).stderr
    check("provider" in err, "the address is not refused", err)
    err = xsptrace("-p", child.pid, "-e", "record_function:x", status=USAGE).stderr
    check("record_function" in err, "the pattern is not refused", err)
    # a library of that name can still be meant
    err = xsptrace("-p", child.pid, "-e", "torch.so:x", status=NO_MATCH).stderr
    check("library" in err, "torch.so is no library's pattern", err)


# c10::ObservedOperators: PyTorch's dispatcher shows these to no profiler
UNOBSERVED = ("aten::size", "aten::is_leaf", "aten::output_nr", "aten::_version", "aten::is_complex")


@case
def names_are_pytorchs_own(folder):
    """Every name in the list is that of a schema that PyTorch has registered; every function
    at::_ops has one."""
    need_torch()
    child = waiting(folder)
    done = run([PYTHON, "-c", "import json, torch\n"
                "print(json.dumps([s.name for s in torch._C._jit_get_all_schemas()]))"])
    registered = set(json.loads(done.stdout))
    listed = xsptrace("list", "-p", child.pid, "-e", "torch:aten::*").stdout
    names = re.findall(r"^(aten::\S+)", listed, re.M)
    libraries = [m for m in open(f"/proc/{child.pid}/maps", encoding="utf-8").read().split()
                 if "/libtorch_cpu.so" in m]
    symbols = run(["nm", "-D", "--defined-only", libraries[0]]).stdout
    functions = re.findall(r" _ZN2at4_ops\d+\w+4callE\w*", symbols)
    hidden = [f for f in functions
              if re.match(r" _ZN2at4_ops\d+"
                          "(size_int|size_Dimname|is_leaf|output_nr|_version|is_complex)4call", f)]
    equal(len(names), len(functions) - len(hidden), "operators in the list")
    equal(sorted(set(names) & set(UNOBSERVED)), [], "what PyTorch hides from profilers")
    equal(sorted(set(names) - registered), [], "names that PyTorch does not know")


@case
def sites_are_those_that_one_process_chooses(folder):
    """A large file's functions are shared out to as many processes as there are processors."""
    need_torch()
    if os.cpu_count() == 1:
        raise Skip("one processor")
    child = waiting(folder)

    def listed(*prefix):
        done = run([*prefix, XSPTRACE, "list", "-p", str(child.pid), "-e", "torch", "-e", "libtorch_cpu.so:at::native::a*"])
        equal(done.returncode, 0, done.stderr)
        # what a site costs is measured each time
        return [re.sub(r"\s+[\d.]+ [nu]s$", "", x) for x in done.stdout.splitlines() if " 0x" in x]
    alone, shared = listed("taskset", "-c", "0"), listed()
    check(len(alone) > 3000, f"{len(alone)} functions")
    equal(shared, alone, "sites")


if __name__ == "__main__":
    main(declined=[*NO_BRAKE, TABLE])
