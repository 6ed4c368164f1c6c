#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/workloads/torch_loop.py's training step, on orders from stdin (as target.c does).

    run STEPS       prints "done STEPS" and the microseconds of wall time of each step, then "|" and
                    those of this thread's CPU time
    profile STEPS   the same steps inside torch.autograd.profiler.profile() with its defaults
"""
import importlib.util
import sys
import time

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("torch_loop", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    loop = load(sys.argv[1])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = loop.Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data = torch.randn(16, 1, 16, 16)
    target = torch.randint(0, 10, (16,))

    def steps(n):
        wall, cpu = [], []
        for _ in range(n):
            w, c = time.perf_counter_ns(), time.thread_time_ns()
            loop.step(net, optimizer, data, target)
            cpu.append((time.thread_time_ns() - c) / 1e3)
            wall.append((time.perf_counter_ns() - w) / 1e3)
        return wall, cpu

    steps(50)
    print("ready", flush=True)
    for line in sys.stdin:
        what, n = line.split()[:2]
        if what == "profile":
            with torch.autograd.profiler.profile():
                wall, cpu = steps(int(n))
        else:
            wall, cpu = steps(int(n))
        print("done", n, *(f"{x:.2f}" for x in wall), "|", *(f"{x:.2f}" for x in cpu), flush=True)


main()
