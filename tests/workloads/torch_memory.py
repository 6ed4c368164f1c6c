#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program that knows what PyTorch allocates for it, by line: `torch_memory.py --wait --out FILE MODE [--seconds N]`.

known   tensors of known sizes, some kept, some freed, some of them by another thread
leak    a training loop that keeps one tensor of each step
clean   the same loop without it; a cache is filled in its first third
device  what the allocator of a GPU would report, by the function that it would call

It ends by _exit(), so what it has kept is alive at its end.
"""
import argparse
import ctypes
import json
import os
import queue
import signal
import sys
import threading
import time

import torch

FLOAT = 4
counts = {"allocations": 0, "bytes": 0, "frees": 0, "alive": 0, "peak": 0, "lines": {}, "kept_at": [], "ends_at": 0}


def make(floats):
    counts["allocations"] += 1
    counts["bytes"] += floats * FLOAT
    counts["alive"] += floats * FLOAT
    counts["peak"] = max(counts["peak"], counts["alive"])
    line = f"torch_memory.py:{sys._getframe(1).f_lineno} {sys._getframe(1).f_code.co_name}"
    counts["lines"][line] = counts["lines"].get(line, 0) + floats * FLOAT
    return line, floats * FLOAT, make_here(floats)


def make_here(floats):
    return torch.empty(floats)


def drop(made):
    line, size, _ = made
    counts["frees"] += 1
    counts["alive"] -= size
    counts["lines"][line] -= size


def known(_):
    kept, others = [], queue.Queue()

    def freer():
        while (made := others.get()) is not None:
            given.acquire()  # whoever puts it holds it until put() returns
            drop(made)
            del made
            done.release()

    given, done = threading.Semaphore(0), threading.Semaphore(0)
    thread = threading.Thread(target=freer)
    thread.start()
    for i in range(1, 301):
        kept.append(make(100 * i))
        temporary = make(1000)
        drop(temporary)
        del temporary
        others.put(make(777))
        given.release()
        done.acquire()
    others.put(None)
    thread.join()
    for made in kept[100:]:
        drop(made)
    del kept[100:], made
    return kept


def train(seconds, leaks):
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    kept, cache, losses = [], [], []
    begun = time.monotonic()
    while (spent := time.monotonic() - begun) < seconds:
        # so many a second, on a busy machine too: what grows does so steadily
        time.sleep(max(0, 0.004 * len(losses) - spent))
        optimizer.zero_grad()
        loss = net(torch.randn(32, 64)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if spent < seconds / 3:
            cache.append(torch.zeros(500))
        if leaks:
            kept.append(torch.full((1000,), losses[-1]))
            counts["lines"]["leak"] = f"torch_memory.py:{sys._getframe().f_lineno - 1} train"
            counts["kept_at"].append(time.monotonic())
    counts["alive"] = 1000 * FLOAT * len(kept)
    return kept, cache, net, optimizer


def device(_):
    with open("/proc/self/maps", encoding="utf-8") as f:
        library = next(line.split()[-1] for line in f if "libc10.so" in line)
    functions = ctypes.CDLL(library)
    report = next(getattr(functions, name) for name in (f"_ZN3c1027reportMemoryUsageToProfilerEPvl{sizes}NS_6DeviceE"
                                                        for sizes in ("ll", "mm")) if hasattr(functions, name))
    report.argtypes = [ctypes.c_void_p] + [ctypes.c_long] * 3 + [ctypes.c_uint16]
    cuda_2 = 1 | 2 << 8  # c10::Device: type, index
    report(0x7000, 4096, 10096, 20000, cuda_2)
    report(0x9000, 512, 10608, 20000, cuda_2)
    report(0x7000, -4096, 6512, 20000, cuda_2)
    report(0x1000, -6000, 512, 20000, cuda_2)  # from before
    report(0x8000, 64, 64, 64, 0)  # of the CPU: New has told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["known", "leak", "clean", "device"])
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--profile", help="what torch.profiler sees: bytes of each event, in order")
    o = parser.parse_args()
    torch.set_num_threads(1)
    work = {"known": lambda: known(o), "device": lambda: device(o), "leak": lambda: train(o.seconds, True),
            "clean": lambda: train(o.seconds, False)}[o.mode]
    if o.mode in ("leak", "clean"):
        train(0.001, False)  # PyTorch 2.6 imports for seconds at an optimizer's first step
        counts.update(alive=0)
    if o.wait:
        signal.signal(signal.SIGUSR1, lambda *_: None)
        print("ready", file=sys.stderr, flush=True)
        signal.pause()
    if o.profile:
        with torch.profiler.profile(profile_memory=True, record_shapes=False) as profile:
            kept = work()
        with open(o.profile, "w", encoding="utf-8") as f:
            json.dump([e.nbytes() for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"], f)
    else:
        kept = work()
    counts["ends_at"] = time.monotonic() + 0.5
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump(counts, f)
    time.sleep(0.5)  # a tracer on a busy machine reads the lines meanwhile
    os._exit(0 if kept is not None or o.mode == "device" else 1)


if __name__ == "__main__":
    main()
