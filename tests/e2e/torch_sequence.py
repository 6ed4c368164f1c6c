#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--sequence where forward and backward pass run on different threads, and --scopes. What a training
run shows is held against PyTorch's own profiler in torch_metadata.py."""
import collections
import signal

from harness import (EXTRA, TORCH, USAGE, WHEN_TORCH_IS_TRACED, Recording, Trace, case, check, equal, finish, main, need_torch,
                     start_ready, truth, xsptrace)

PYTHON = TORCH

# Each thread builds a graph of its own kind; the main thread runs all of them backward. Numbers count
# the nodes that a thread has made, so they are known: i, i + 1, i + 2 after i others.
CROSSED = """
import json, sys, threading
import torch
torch.set_num_threads(1)
made, ready = {}, {}
def forward(i, function):
    x = torch.ones(3, requires_grad=True)
    for _ in range(i):
        x.exp()  # moves this thread's numbers on
    y = function(function(x)).sum()
    inner = y.grad_fn.next_functions[0][0]
    made[threading.get_native_id()] = [(inner.name(), i), (inner.name(), i + 1),
                                       (y.grad_fn.name(), i + 2)]
    ready[i] = y
functions = [torch.sin, torch.cos, torch.tanh, torch.sigmoid]
threads = [threading.Thread(target=forward, args=(i, f)) for i, f in enumerate(functions)]
for t in threads: t.start()
for t in threads: t.join()
for i in ready: ready[i].backward()
json.dump({"made": made, "main": threading.get_native_id()}, open(sys.argv[1], "w"))
"""


def traced(folder, script, *options):
    path = f"{folder}/script.py"
    with open(path, "w", encoding="ascii") as f:
        f.write(WHEN_TORCH_IS_TRACED + script)
    xsptrace(*EXTRA, *options, "-q", "-o", f"{folder}/t.json", "--", PYTHON, path, f"{folder}/truth",
             timeout=120)
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    return trace


@case
def backward_on_another_thread(folder):
    """An arrow starts on the thread that ran the operator, and ends on the one that ran the node."""
    need_torch()
    trace = traced(folder, CROSSED, "--sequence")
    facts = truth(f"{folder}/truth")
    starts = {(e["tid"], e["ts"]): e for e in trace.spans if "Sequence number" in e["args"]}
    ends = collections.defaultdict(dict)
    for e in trace.json["traceEvents"]:
        if e.get("cat") == "fwdbwd":
            ends[e["id"]][e["ph"]] = e
    seen = collections.defaultdict(list)
    forward_ids = collections.defaultdict(set)
    for both in ends.values():
        one, other = both["s"], both["f"]
        operator, node = starts[one["tid"], one["ts"]], starts[other["tid"], other["ts"]]
        equal(operator["args"]["Sequence number"], node["args"]["Sequence number"], "numbers of a pair")
        equal((operator["args"]["Fwd thread id"], other["tid"]), (0, facts["main"]), "thread of a node")
        forward_ids[one["tid"]].add(node["args"]["Fwd thread id"])
        seen[one["tid"]].append((node["name"].split(": ")[1], node["args"]["Sequence number"]))
    equal({t: sorted(v) for t, v in seen.items()},
          {int(t): sorted(map(tuple, v)) for t, v in facts["made"].items()}, "nodes by thread")
    check(all(len(ids) == 1 for ids in forward_ids.values()) and
          len(set.union(*forward_ids.values())) == len(forward_ids), "one id a thread", forward_ids)


TRAIN = """
import torch
x = torch.ones(4, requires_grad=True)
for _ in range(3):
    with torch.profiler.record_function("mine"):
        x.exp().sum().backward()
"""


@case
def scopes(folder):
    need_torch()
    everything = traced(folder, TRAIN)
    all_scopes = collections.Counter(e["args"]["Scope"] for e in everything.spans)
    equal((all_scopes["backward"], all_scopes["user"]), (9, 3), "nodes and ranges")
    check(all_scopes["function"] > 9, "too few operators", all_scopes)
    for chosen in ("function", "backward,user"):
        got = traced(folder, TRAIN, "--scopes", chosen)
        equal(collections.Counter(e["args"]["Scope"] for e in got.spans),
              collections.Counter({s: all_scopes[s] for s in chosen.split(",")}), f"--scopes {chosen}")
    done = xsptrace("--scopes", "kernel", "--", "true", status=USAGE)
    check("function,backward,user" in done.stderr, "does not say what can be given", done.stderr)


    # A range as a C++ caller makes it that sets only the low byte of the scope's register, as gcc does for a
# scope that it has computed: the ABI gives the rest no meaning.
LOW_BYTE = """
import ctypes, json, signal, sys
import torch
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", file=sys.stderr, flush=True)
signal.sigwait([signal.SIGUSR1])
lib = ctypes.CDLL(torch.__path__[0] + "/lib/libtorch_cpu.so")
class String(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("length", ctypes.c_size_t), ("here", ctypes.c_char * 16)]
create = lib._ZN3c106ivalue14ConstantString6createENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
begin, end = lib._ZN2at14RecordFunctionC1ENS_11RecordScopeE, lib._ZN2at14RecordFunctionD1Ev
made, object = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
for i in range(20):
    name = String(0, 5, b"range")
    name.text = ctypes.addressof(name) + String.here.offset
    create(ctypes.byref(made), ctypes.byref(name))
    begin(object, ctypes.c_uint32(0x5a5a5a07))
    end(object)
json.dump({"range": 20}, open(sys.argv[1], "w"))
"""


@case
def range_whose_scope_is_a_low_byte(folder):
    """Twenty calls are over within a millisecond, so they begin when the probes are there."""
    need_torch()
    child = start_ready([PYTHON, "-c", LOW_BYTE, f"{folder}/truth"])
    with Recording(folder, "-p", child.pid, "-e", "torch", "-o", f"{folder}/t.json") as recording:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status")
        recording.wait()
    trace = Trace(f"{folder}/t.json")
    trace.check_nothing_lost()
    equal(trace.calls["range"], truth(f"{folder}/truth")["range"], "ranges")


if __name__ == "__main__":
    main()
