#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_counted.py FOLDER counts|cost: PyTorch's operators with the agent of FOLDER recording them. Prints "equal", or what differs.

counts: a training loop and other work, counted by torch.profiler and by the agent at once.
cost: what a call takes with the agent and without, and a training step of 168 operators."""
import collections
import ctypes
import os
import re
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

import torch_loop

# getters that no profiler shows
UNOBSERVED = {"aten::size", "aten::is_leaf", "aten::output_nr", "aten::_version", "aten::is_complex"}
agent = ctypes.CDLL(f"{sys.argv[1]}/libxsptrace_agent.so")
wanted = ctypes.c_ushort.in_dll(agent, "xsp_agent_want_operators_semaphore")
rings = []


def active():
    if not rings:
        with open("/proc/self/maps", encoding="utf-8") as f:
            rings.extend(int(line.split("-")[0], 16) for line in f if "/memfd:xsptrace-rings" in line)
    return bool(rings) and ctypes.c_uint32.from_address(rings[0] + 16).value != 0


def want(on):
    wanted.value = on
    while active() != bool(on):
        time.sleep(0.001)


def reader():
    made = subprocess.Popen([f"{sys.argv[1]}/ring_reader", str(os.getpid())], stdout=subprocess.PIPE, text=True)
    assert made.stdout.readline() == "ready\n"
    return made


def names():
    """{NAME_OVERLOAD as in at::_ops: the operator's name}."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        key = schema.name.rpartition("::")[2] + ("_" + schema.overload_name if schema.overload_name else "")
        if schema.name.startswith("aten::") or key not in found:
            found[key.replace(".", "_")] = schema.name
    return found


def read_counts(made):
    """{name: calls} of the agent, and the line of totals."""
    made.terminate()
    lines = made.communicate()[0].splitlines()
    known, counts = names(), collections.Counter()
    for line in lines[:-1]:
        entries, exits, _, symbol = line.split()
        assert entries == exits, line
        operator = re.match(r"_ZN2at4_ops(\d+)(\w+)", symbol)
        if operator:  # others are nodes
            length, rest = operator.groups()
            counts[known.get(rest[:int(length)], rest[:int(length)])] += int(entries)
    return counts, lines[-1]


def make_step():
    """A training step of small operators: forward, backward, optimiser."""
    torch.manual_seed(1)
    net = torch_loop.Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data, target = torch.randn(16, 1, 16, 16), torch.randint(0, 10, (16,))
    return lambda: torch_loop.step(net, optimizer, data, target)


def other_work():
    torch.manual_seed(2)
    lstm, layer = nn.LSTM(8, 8), nn.TransformerEncoderLayer(16, 2, 32)
    lstm(torch.randn(3, 2, 8))[0].sum().backward()
    layer(torch.randn(3, 2, 16)).sum().backward()
    nn.Conv2d(3, 4, 3)(torch.randn(1, 3, 8, 8)).relu().mean().backward()
    torch.linalg.svd(torch.randn(4, 4))
    torch.randn(5, 5).sort(0)[0].cumsum(1).std()
    torch.pinverse(torch.randn(4, 3))
    for wrong in range(20):
        try:
            torch.mm(torch.ones(2, 3), torch.ones(2, 3 + wrong % 2))
        except RuntimeError:
            pass


def counts():
    torch.set_num_threads(1)
    step = make_step()
    step()
    want(True)
    want(False)
    made = reader()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        want(True)
        for _ in range(20):
            step()
        other_work()
        want(False)
    # profile.events() merges an operator with one of its name that it calls
    called = [e.name() for e in profile.profiler.kineto_results.events()]
    truth = collections.Counter(name for name in called if name.startswith("aten::") and name not in UNOBSERVED)
    got, totals = read_counts(made)
    different = {name: (truth[name], got[name]) for name in sorted({*truth, *got}) if truth[name] != got[name]}
    print(totals)
    print(sum(truth.values()), "operators by torch.profiler,", sum(got.values()), "by the agent")
    print(different or "equal")


def thread_ns():
    return time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID)


def timed(function, times):
    start = thread_ns()
    for _ in range(times):
        function()
    return (thread_ns() - start) / times


def cost():
    torch.set_num_threads(1)
    a, out = torch.ones(2, 2), torch.ones(2, 2)
    step = make_step()
    work = {"empty": (lambda: torch.empty(2), 2000), "add": (lambda: torch.add(a, a, out=out), 2000), "mm": (lambda: torch.mm(a, a, out=out), 2000),
            "t": (a.t, 2000), "view": (lambda: a.view(4), 2000), "step": (step, 60)}
    want(True)
    made = reader()
    for function, times in work.values():
        timed(function, times)
    ns = {name: ([], []) for name in work}
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 15):
        for on in (False, True):
            want(on)
            time.sleep(0.03)
            for name, (function, times) in work.items():
                ns[name][on].append(timed(function, times))
    want(False)
    _, totals = read_counts(made)
    print(totals)
    for name, (without, with_) in ns.items():
        ratio = statistics.median(w / o for w, o in zip(with_, without))
        print(f"{name:6} {statistics.median(without):9.1f} ns, with {statistics.median(with_):9.1f}: x {ratio:.4f}, added {statistics.median(w - o for w, o in zip(with_, without)):7.1f}")


if __name__ == "__main__":
    assert agent.xsp_agent_start() == 0
    {"counts": counts, "cost": cost}[sys.argv[2]]()
