#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the metadata flags show of a training run is what PyTorch's own profiler shows of an
identical one: shapes, types, inputs, sequence numbers, flows. Every difference is a row of a table
here, with its reason.

Both runs are held against each other inside the ranges "work N" of tests/workloads/torch_model.py,
one a thread. TORCH_ROOT: a root folder with another PyTorch (tests/torch/fetch-torch); it then runs
inside, traced from outside (torch_versions.py)."""
import collections
import functools
import json
import os
import re
import tempfile

import harness
import shared
from harness import EXTRA, ROOT, SCRIPTS, TORCH, Trace, case, check, equal, main, run, truth, xsptrace

INSIDE = os.environ.get("TORCH_ROOT")
PYTHON = TORCH
MODEL = "torch_model.py"
THREADS = 2

# Everything that reads the target, at once.
ALL_FLAGS = ["--shapes=all", "--inputs=values", "--sequence", "--scopes", "function,backward,user",
             "--stacks", "--counters", "task-clock,page-faults,context-switches", "--flops"]


# ---- running the model ----------------------------------------------------------------


def command(folder, *arguments):
    """The command that runs the model, with `folder` as its place for files."""
    if not INSIDE:
        return [PYTHON, f"{SCRIPTS}/{MODEL}", *[a.replace("@", folder) for a in arguments]]
    link = f"{folder}/{MODEL}"
    if not os.path.exists(link):
        with open(f"{SCRIPTS}/{MODEL}", "rb") as f, open(link, "wb") as copy:
            copy.write(f.read())
    return [f"{ROOT}/tests/torch/enter", INSIDE, folder, "/usr/bin/python3", f"/mnt/shared/{MODEL}",
            *[a.replace("@", "/mnt/shared") for a in arguments]]


def need_torch():
    if not INSIDE:
        harness.need_torch()


@functools.cache
def oracle():
    """PyTorch's own view, the same for every case (the_oracle_is_sound)."""
    def make():
        with tempfile.TemporaryDirectory(prefix="xsptrace-oracle-") as folder:
            return profiler_says(folder, "profiled")

    return profiles(make() if INSIDE else shared.once("torch_model", [f"{SCRIPTS}/{MODEL}"], make))


def profiles(said):
    """[trace of a thread], and the losses."""
    traces, losses = said
    return [Profile(trace, i) for i, trace in enumerate(traces)], losses


def profiled(folder, name, steps=3):
    return profiles(profiler_says(folder, name, steps))


def profiler_says(folder, name, steps=3):
    os.mkdir(f"{folder}/{name}")
    done = run(command(folder, "--losses", f"@/{name}.losses", "--profile", f"@/{name}", "--steps",
                       str(steps)), timeout=240)
    equal(done.returncode, 0, f"status of {MODEL}\n{done.stderr}")
    return [truth(f"{folder}/{name}/{i}.json") for i in range(THREADS)], truth(f"{folder}/{name}.losses")


def traced(folder, *options, name="traced", steps=3):
    """xsptrace's view: the same, and what xsptrace said."""
    out = f"{folder}/{name}.json"
    done = xsptrace(*EXTRA, *options, "-o", out, "--", *command(folder, "--losses", f"@/{name}.losses",
                                                               "--steps", str(steps)), timeout=240)
    trace = Trace(out)
    trace.check_nothing_lost()
    trace.check_nesting()
    return ([Profile(trace.json, i) for i in range(THREADS)], truth(f"{folder}/{name}.losses"),
            done.stderr)


class Profile:
    """What happened in the range "work N" of a trace in Kineto's format."""

    def __init__(self, trace, number):
        self.kineto = trace.get("kineto", True)
        self.torch_flops = trace.get("flops")
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"
                 and e.get("cat") in ("cpu_op", "user_annotation")]
        ranges = [e for e in spans if e["name"] == f"work {number}"]
        equal(len(ranges), 1, f"ranges named work {number}")
        begin, end = ranges[0]["ts"], ranges[0]["ts"] + ranges[0]["dur"]
        self.thread = ranges[0]["tid"]
        inside = [e for e in spans if e["tid"] == self.thread and begin <= e["ts"] < end]
        # microseconds are too coarse for an order; the profiler's results have one
        self.events = inside if not self.kineto else sorted(inside, key=lambda e: (e["ts"], -e["dur"]))
        self.operators = [e for e in self.events if e["name"].startswith("aten::")]
        self.flows = self.linked(trace) if self.kineto else self.linked_by_rule()

    def linked(self, trace):
        """(forward operator, backward node) of each flow."""
        ends = collections.defaultdict(dict)
        for e in trace["traceEvents"]:
            if e["ph"] in "sf" and e.get("cat") == "fwdbwd" and e["tid"] == self.thread:
                check(e["ph"] not in ends[e["id"]], f"a second {e['ph']} of flow {e['id']}")
                ends[e["id"]][e["ph"]] = e["ts"]
        at = collections.defaultdict(list)
        for e in self.events:
            at[e["ts"]].append(e)
        flows = collections.Counter()
        for flow, both in ends.items():
            equal(sorted(both), ["f", "s"], f"ends of flow {flow}")
            if not at[both["s"]] or not at[both["f"]]:
                check(not at[both["s"]] and not at[both["f"]], f"one end of flow {flow} hangs in the air")
                continue  # outside of the range
            # two spans can begin at the same nanosecond: the flow belongs to the inner one
            flows[at[both["s"]][-1]["name"], node(at[both["f"]][-1]["name"])] += 1
        return flows

    def linked_by_rule(self):
        """The same by the rule of PyTorch's profiler (reference: torch/csrc/profiler/kineto_shim.cpp,
        collection.cpp): for each sequence number the forward operator that began last, and the first
        backward node."""
        forward, flows = {}, collections.Counter()
        for e in self.events:
            number = e["args"].get("Sequence number", -1)
            if number < 0:
                continue
            if not e["args"].get("Fwd thread id"):
                forward[number] = e["name"]
            elif number in forward and not e["name"].startswith("autograd::"):
                flows[forward.pop(number), node(e["name"])] += 1
        return flows


def node(name):
    return name.removeprefix("autograd::engine::evaluate_function: ")


# ---- holding one against the other ----------------------------------------------------


def differences(got, wanted, limit=12):
    """Lines for what one multiset has and the other has not."""
    lines = []
    for sign, counter in (("only traced", got - wanted), ("only profiled", wanted - got)):
        lines += [f"{sign} ({n}x): {key}" for key, n in sorted(counter.items(), key=str)[:limit]]
        if len(counter) > limit:
            lines.append(f"{sign}: {len(counter) - limit} more")
    return lines


def compare(got, wanted, what):
    lines = differences(got, wanted)
    check(not lines, f"{what}:", *lines)


def frozen(x):
    return json.dumps(x)


# Torch 1.13's own profiler lacks this, so there is nothing to compare: the type of
# scalar lists, the shapes inside of tensor lists.
def as_before_2(dims, types):
    types = ["" if t == "ScalarList" else t for t in types]
    return [[] if t == "TensorList" else d for d, t in zip(dims, types)], types


# What PyTorch's profiler shows and xsptrace does not: {pattern of names: reason}.
ONLY_PROFILED = {
    # Node::operator() has a range of its own inside of each autograd::engine::evaluate_function, of
    # the same name and number; nothing runs between the two.
    r"\w+Backward\d*|torch::autograd::\w+": "the inner range of a backward node",
    # aten::detach's autograd kernel opens a range of its own (VariableTypeManual.cpp), armed:
    # without a profiler its name is never passed.
    r"detach_?": "a range inside of aten::detach",
}


def names(profile):
    return collections.Counter(e["name"] for e in profile.events
                               if not any(re.fullmatch(p, e["name"]) for p in ONLY_PROFILED))


def shapes(profile, old):
    """Multiset of (name, dims, types)."""
    rows = collections.Counter()
    for e in profile.operators:
        dims, types = e["args"].get("Input Dims"), e["args"].get("Input type")
        if dims is not None and types is not None and old:
            dims, types = as_before_2(dims, types)
        rows[e["name"], frozen(dims), frozen(types)] += 1
    return rows


def keyed(profile, key):
    return collections.Counter((e["name"], frozen(e["args"].get(key))) for e in profile.operators)


# ---- the cases ------------------------------------------------------------------------


def same_events(one, two):
    """The profiler's own trace twice: everything, in order."""
    def row(e):
        return e["name"], *[e["args"].get(key) for key in (
            "Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Sequence number")]
    equal(len(one.events), len(two.events), "events of two profiled runs")
    for a, b in zip(one.events, two.events):
        equal(row(a), row(b), "an event of two profiled runs")


@case
def the_oracle_is_sound(folder):
    """Two profiled runs are the same, and an unprofiled one computes the same: so a difference that
    the cases below find is xsptrace's. (Torch's ids of threads differ.)"""
    need_torch()
    one, losses = profiled(folder, "one")
    two, again = profiled(folder, "two")
    equal(losses, again, "losses")
    check(all(len(set(thread)) == 3 for thread in losses["losses"]), "losses do not change", losses)
    for a, b in zip(one, two):
        same_events(a, b)
        equal(a.flows, b.flows, "flows")
        if a.kineto:
            equal(a.flows, a.linked_by_rule(), "flows by the rule of linked_by_rule()")
        names = {e["name"].removeprefix("aten::") for e in a.operators}
        check(names >= {"conv2d", "linear", "embedding", "batch_norm", "layer_norm", "bmm", "softmax",
                        "cross_entropy_loss", "cat", "stack", "einsum", "index", "clamp", "conv1d",
                        "convolution_backward", "masked_fill_", "nan_to_num", "expand"}, "too few operators", names)
        seven = [e for e in a.operators if any(len(d) > 5 for d in e["args"]["Input Dims"])]
        check(len(seven) > 5, "no tensors of many dims")
        check(len(a.operators) > 1500 and sum(a.flows.values()) > 300, "the script does too little")


@case
def same_operators_nodes_and_ranges(folder):
    """By name and count, with no flag at all."""
    need_torch()
    wanted, losses = oracle()
    got, traced_losses, _ = traced(folder)
    equal(traced_losses, losses, "losses")
    for g, w in zip(got, wanted):
        compare(names(g), names(w), "operators, nodes and ranges")


@case
def shapes_and_types(folder):
    need_torch()
    wanted, losses = oracle()
    got, traced_losses, _ = traced(folder, "--shapes")
    equal(traced_losses, losses, "losses")
    for g, w in zip(got, wanted):
        old = not w.kineto
        compare(shapes(g, old), shapes(w, old), "operators by name, dims and types")
        if w.kineto:
            compare(keyed(g, "Input Strides"), keyed(w, "Input Strides"), "strides")


# Concrete Inputs that differ: (operator's argument by pattern) -> the reason.
@case
def concrete_inputs(folder):
    need_torch()
    wanted, losses = oracle()
    got, traced_losses, _ = traced(folder, "--inputs")
    equal(traced_losses, losses, "losses")
    for g, w in zip(got, wanted):
        with_inputs = [e for e in g.operators if "Concrete Inputs" in e["args"]]
        check(len(with_inputs) > len(g.operators) / 2, "few operators have Concrete Inputs",
              len(with_inputs), len(g.operators))
        if w.kineto:
            got_inputs, wanted_inputs = without_floats(*[
                keyed(p, "Concrete Inputs") for p in (g, w)])
            compare(got_inputs, wanted_inputs, "concrete inputs")
        else:
            known_inputs(g)


# Arguments of type `float` (not Scalar) travel in vector registers, which a probe does not see:
# (operator, position). Beyond these every value must be the same.
IN_VECTOR_REGISTERS = {
    ("aten::batch_norm", 6), ("aten::batch_norm", 7), ("aten::_batch_norm_impl_index", 6),
    ("aten::_batch_norm_impl_index", 7), ("aten::native_batch_norm", 6), ("aten::native_batch_norm", 7),
    ("aten::native_batch_norm_backward", 8), ("aten::layer_norm", 4), ("aten::native_layer_norm", 4),
    ("aten::cross_entropy_loss", 5), ("aten::scaled_dot_product_attention", 4),
    ("aten::_scaled_dot_product_attention_math", 4), ("aten::_scaled_dot_product_flash_attention_for_cpu", 3),
    ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", 6),
    ("aten::nan_to_num", 1), ("aten::dropout", 1),
}


def without_floats(got, wanted):
    def blank(counted):
        out = collections.Counter()
        for (name, inputs), count in counted.items():
            values = json.loads(inputs) or []
            out[name, frozen(["" if (name, i) in IN_VECTOR_REGISTERS else v
                              for i, v in enumerate(values)])] += count
        return out
    return blank(got), blank(wanted)


# torch 1.13's profiler records no values: what the script wrote is known.
KNOWN = {
    "aten::max_pool2d": {("[2, 2]", "[]", "[0, 0]", "[1, 1]", "False")},
    "aten::conv1d": {("[2]", "[0]", "[1]", "2")},
    # momentum and eps travel in vector registers, which a probe does not see
    "aten::batch_norm": {("True", "True")},
}


def known_inputs(profile):
    for name, wanted in KNOWN.items():
        rows = {tuple(v for v in e["args"].get("Concrete Inputs", []) if v) for e in profile.operators
                if e["name"] == name}
        check(rows and rows <= wanted, f"Concrete Inputs of {name}", rows)


@case
def sequence_numbers_and_flows(folder):
    """The same forward operators are tied to the same backward nodes."""
    need_torch()
    wanted, losses = oracle()
    got, traced_losses, _ = traced(folder, "--sequence")
    equal(traced_losses, losses, "losses")
    for g, w in zip(got, wanted):
        compare(g.flows, w.flows, "flows (forward operator, backward node)")
        # the numbers themselves: a thread's count from 0
        compare(backward_numbers(g), backward_numbers(w), "numbers of backward nodes")
        for e in g.events:
            if e["name"].startswith("autograd::engine") and "Sequence number" in e["args"]:
                check("Fwd thread id" in e["args"], "a backward node without its forward thread", e)


def backward_numbers(profile):
    return collections.Counter(
        (node(e["name"]), e["args"].get("Sequence number")) for e in profile.events
        if e["name"].startswith("autograd::engine::evaluate_function: "))


@case
def flops(folder):
    """As PyTorch's formulas have it, for the operators that it has formulas for."""
    need_torch()
    wanted, _ = oracle()
    got, _, _ = traced(folder, "--flops")
    for g, w in zip(got, wanted):
        ours = collections.defaultdict(collections.Counter)
        for e in g.operators:
            value = e["args"].get("FLOPs", e["args"].get("flops"))
            if value is not None:
                ours[e["name"]][int(value)] += 1
        for name in ("aten::mm", "aten::addmm", "aten::bmm", "aten::conv2d"):
            theirs = collections.Counter({int(k): v for k, v in w.torch_flops.get(name, {}).items()})
            if theirs:
                compare(ours[name], theirs, f"FLOPs of {name}")
        check(w.torch_flops.get("aten::mm"), "the profiler has no FLOPs", w.torch_flops)


@case
def losses_with_every_flag(folder):
    """Bit by bit the same numbers, traced and not, and the operators are still all there."""
    need_torch()
    done = run(command(folder, "--losses", "@/plain.losses"), timeout=240)
    equal(done.returncode, 0, f"status of {MODEL}\n{done.stderr}")
    plain, wanted = truth(f"{folder}/plain.losses"), oracle()[0]
    got, losses, said = traced(folder, *ALL_FLAGS)
    equal(losses, plain, "losses")
    check(not re.search(r"(?i)switched off|does not check out", said), "a feature was off", said)
    for g, w in zip(got, wanted):
        old = not w.kineto
        compare(shapes(g, old), shapes(w, old), "operators by name, dims and types, every flag on")
        compare(g.flows, w.flows, "flows, every flag on")


if __name__ == "__main__":
    main()
