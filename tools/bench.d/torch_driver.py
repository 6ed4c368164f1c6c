#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/workloads/torch_loop.py's training step, on orders from stdin (as target.c does).

    run STEPS       prints "done STEPS" and the microseconds of wall time of each step, then "|" and
                    those of this thread's CPU time
    profile[:OPTION,...] STEPS   the same steps inside torch.autograd.profiler.profile(OPTION=True, ...)
    large, large-profile[:OPTION,...]   the same of a step whose operators take 50 us and more each
    threads N       the same of the first operator of each of N threads, which begin one after another and end together
    hot N, python N  the same, but ns of one call: of is_same_size in a loop of hot.c, and of add from Python, N calls each
"""
import ctypes
import importlib.util
import sys
import threading
import time

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("torch_loop", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_large():
    """A step of 20 operators that call no others and take 50 us and more each."""
    x, y, out = (torch.randn(500_000) for _ in range(3))
    u, v = torch.randn(150_000), torch.randn(150_000)

    def step():
        with torch.no_grad():
            for _ in range(4):
                torch.add(x, y, alpha=2, out=out)
                torch.mul(x, y, out=out)
                torch.exp(u, out=v)
                torch.sigmoid(u, out=v)
                torch.tanh(u, out=v)
    return step


def make_hot(path):
    """hot.c's loop, for the libtorch_cpu.so that is loaded: it has a slot for its operator."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        ctypes.CDLL(next(line.split()[-1] for line in f if "libtorch_cpu.so" in line), ctypes.RTLD_GLOBAL)
    loop = ctypes.CDLL(path).hot
    loop.restype, loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_long]
    x = torch.ones(2)
    # an object of Python's, then at::Tensor: MaybeOwned has a flag before it
    return lambda n: loop(id(x) + 24, n)


def from_python(n):
    x, out = torch.ones(2, 2), torch.ones(2, 2)
    begin = time.thread_time_ns()
    for _ in range(n):
        torch.add(x, x, out=out)
    return (time.thread_time_ns() - begin) / n


def threads(n):
    x, wall, cpu, over = torch.ones(2), [], [], threading.Event()

    def thread(begun):
        w, c = time.perf_counter_ns(), time.thread_time_ns()
        x.neg()
        cpu.append((time.thread_time_ns() - c) / 1e3)
        wall.append((time.perf_counter_ns() - w) / 1e3)
        begun.set()
        over.wait()
    all_of_them = []
    for _ in range(n):
        begun = threading.Event()
        all_of_them.append(threading.Thread(target=thread, args=(begun,)))
        all_of_them[-1].start()
        begun.wait()
    over.set()
    for t in all_of_them:
        t.join()
    return wall, cpu


def main():
    loop = load(sys.argv[1])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = loop.Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data = torch.randn(16, 1, 16, 16)
    target = torch.randint(0, 10, (16,))

    large = make_large()
    hot = make_hot(sys.argv[2])

    def steps(n, step=lambda: loop.step(net, optimizer, data, target)):
        wall, cpu = [], []
        for _ in range(n):
            w, c = time.perf_counter_ns(), time.thread_time_ns()
            step()
            cpu.append((time.thread_time_ns() - c) / 1e3)
            wall.append((time.perf_counter_ns() - w) / 1e3)
        return wall, cpu

    steps(50)
    print("ready", flush=True)
    for line in sys.stdin:
        what, n = line.split()[:2]
        what, _, flags = what.partition(":")
        arguments = (int(n), large) if what.startswith("large") else (int(n),)
        if what == "threads":
            wall, cpu = threads(int(n))
        elif what in ("hot", "python"):
            wall = cpu = [(hot if what == "hot" else from_python)(int(n))]
        elif what.endswith("profile"):
            with torch.autograd.profiler.profile(**{flag: True for flag in flags.split(",") if flag}):
                wall, cpu = steps(*arguments)
        else:
            wall, cpu = steps(*arguments)
        print("done", n, *(f"{x:.2f}" for x in wall), "|", *(f"{x:.2f}" for x in cpu), flush=True)


main()
