#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that pass garbage to functions with the names of PyTorch's operators: xsptrace counts every
call, shows no shape that is not there, and lives. The truth is the program's own log, call by call
(tests/workloads/torch_fuzz.cc), in the layouts of PyTorch 1.13, 2.6 and 2.14."""
import collections

from harness import (Trace, case, check, check_calls, equal, main, record_attached,
                     workload, xsptrace)

LAYOUTS = (1, 2, 3)
EVERY_FLAG = ["--shapes=all", "--inputs=values", "--sequence", "--scopes", "function,backward,user",
              "--stacks", "--counters", "task-clock,page-faults", "--flops"]
NODE = "autograd::engine::evaluate_function"
UNREADABLE = "[name not readable]"  # of a node's class


def program(layout):
    return workload(f"torch_fuzz_{layout}/torch_fuzz")


def record(folder, layout, arguments, options, name):
    trace, facts = record_attached(folder, [program(layout), *arguments], *options, name=name)
    # names of nodes at addresses that cannot be read are lost, and counted
    equal({k: v for k, v in trace.lost().items() if k != "lost_names"}, {}, "losses")
    trace.check_nesting()
    expected = dict(facts["calls"])
    nodes = expected.pop(NODE)
    check_calls(trace, {"calls": expected}, name)
    equal(sum(n for k, n in trace.calls.items() if k.startswith((NODE, UNREADABLE))), nodes,
          f"{name}: nodes")
    return trace, facts


def by_thread(trace):
    """{tid: spans in the order of their calls}; none lies in another."""
    rows = collections.defaultdict(list)
    for e in trace.spans:
        rows[str(e["tid"])].append(e)
    for spans in rows.values():
        spans.sort(key=lambda e: e["ts"])
    return rows


def wrong(dims, kind, truth):
    """What is wrong with the shape that is shown for one argument, or None."""
    if truth == "any":
        return None
    if truth is None or truth is False:
        if dims != [] or kind in ("float", "double", "long int", "bool", "c10::BFloat16"):
            return f"invented: {dims} {kind}"
        return None
    if truth[0] == "maybe":
        return None if (dims, kind) in (([], ""), (truth[2], truth[1])) else f"neither nothing nor {truth}"
    if truth[0] == "list":
        if dims == []:
            return None
        if len(dims) > len(truth) - 1:
            return f"a list of {len(truth) - 1} has {len(dims)}"
        # the types of a list's tensors are not shown: only the dims count
        bad = [w for d, t in zip(dims, truth[1:]) if (w := wrong_item(d, t))]
        return bad[0] if bad else None
    return None if [kind, dims] == truth else f"not {truth}"


def wrong_item(dims, truth):
    if truth == "any" or dims == []:
        return None
    if truth is None:
        return f"invented in a list: {dims}"
    return None if dims == truth[-1] else f"in a list: {dims}, not {truth}"


def check_node(span, number):
    check(span["name"].startswith((NODE, UNREADABLE)), "the order of calls", span)
    shown = span["args"].get("Sequence number")
    check(shown is None or shown == number, f"sequence number of a node with {number}", span)


# Their other arguments are always right.
MUST_BE_SHOWN = ("aten::relu_", "aten::linear", "aten::stack", "aten::view")


def is_good(truth):
    """A tensor, a list of nothing else, or no tensor's place."""
    if not isinstance(truth, list):
        return truth is False
    if truth[0] == "list":
        return all(isinstance(t, list) and is_good(t) for t in truth[1:])
    return truth[0] != "maybe"


def check_result(span, truth):
    dims, types = span["args"].get("Output Dims"), span["args"].get("Output type")
    if dims is None or types is None:
        check(dims is None, "dims without types", span)
        return
    equal((len(dims), len(types)), (1, 1), "results")
    said = wrong(dims[0], types[0], truth)
    check(said is None, f"{span['name']}: result: {said}", span, truth)


def compare(trace, facts, from_start=True):
    """(spans with shapes, spans with tensors): no shape is wrong, and the garbage of one call does not
    take the shapes from another."""
    shown = total = 0
    rows = by_thread(trace)
    for tid, calls in facts["log"].items():
        spans = rows[tid]
        equal(len(spans), len(calls), f"spans of thread {tid}")
        for span, (name, arguments, result) in zip(spans, calls):
            if name == NODE:
                check_node(span, arguments[0])
                continue
            equal(span["name"], name, "the order of calls")
            check_result(span, result)
            dims, types = span["args"].get("Input Dims"), span["args"].get("Input type")
            total += 1
            if dims is None or types is None:
                check(dims is None, "dims without types", span)
                check(name not in MUST_BE_SHOWN or not all(is_good(t) for t in arguments) or not from_start,
                      "good tensors that are not shown", span, arguments)
                continue
            shown += 1
            check(len(dims) == len(types) == len(arguments), "arguments", span, arguments)
            for d, t, truth in zip(dims, types, arguments):
                said = wrong(d, t, truth)
                check(said is None, f"{name}: {said}", span, arguments)
    return shown, total


@case
def counts_and_names(folder):
    """With no flag: whatever the arguments are, the calls are counted."""
    for layout in LAYOUTS:
        record(folder, layout, ["--calls", "3000"], [], f"counts{layout}")


@case
def good_tensors(folder):
    """Every one is shown, exactly: so a case with bad ones can fail."""
    for layout in LAYOUTS:
        trace, facts = record(folder, layout, ["--calls", "2000", "fine"], ["--shapes=all"],
                              f"fine{layout}")
        shown, total = compare(trace, facts)
        equal(shown, total, f"layout {layout}: spans with shapes")
        equal(sum("Output Dims" in e["args"] for e in trace.spans), total, f"layout {layout}: results")
        full = [e for e in trace.spans if e["name"] == "aten::cat" and e["args"]["Input Dims"][0]]
        check(len(full) > 50, "no lists of tensors", len(full))


@case
def sequence_numbers(folder):
    """Each backward node in the log has the number of the operator before it."""
    for layout in LAYOUTS:
        trace, facts = record(folder, layout, ["--calls", "2000", "fine"], ["--sequence"], f"numbers{layout}")
        for tid, calls in facts["log"].items():
            made = 0
            for span, (name, arguments, _) in zip(by_thread(trace)[tid], calls):
                if name == NODE:
                    equal(span["args"].get("Sequence number"), arguments[0], f"layout {layout}: a node's number")
                elif name == "aten::add":
                    equal(span["args"].get("Sequence number"), made, f"layout {layout}: an operator's number")
                    made += 1


@case
def garbage(folder):
    for layout in LAYOUTS:
        trace, facts = record(folder, layout, ["--calls", "6000"], EVERY_FLAG, f"garbage{layout}")
        shown, total = compare(trace, facts)
        print(f"layout {layout}: {shown} of {total} operators with shapes")


@case(quiet="how soon a wrong layout is noticed")
def another_layout(folder):
    """The likely layout is the wrong one: it is noticed, and the right one is found."""
    trace, facts = record(folder, 5, ["--calls", "40000", "fine"], ["--shapes"], "another")
    shown, total = compare(trace, facts, from_start=False)
    check(shown > total / 2, "few shapes", shown, total)


@case
def no_known_layout(folder):
    """One message, and not a single shape."""
    out, facts = f"{folder}/none.json", f"{folder}/facts"
    done = xsptrace("--shapes=all", "-o", out, "--", program(4), "--calls", 40000,
                    "--out", facts, "fine")
    equal(done.stderr.count("not laid out as in any PyTorch"), 1, "messages")
    trace = Trace(out)
    check(sum(trace.calls.values()) > 30000, "spans are still there", trace.calls)
    wrong = [e for e in trace.spans if "Input Dims" in e["args"] or "Output Dims" in e["args"]]
    check(not wrong, "shapes of an unknown layout", *wrong[:3])


if __name__ == "__main__":
    main()
