#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A healthy training loop in which something goes wrong late, once.

    torch_planted.py FAULT SECONDS TRUTH

FAULT after SECONDS: "slow": a step in which cleanup() computes for a second; "leak": from then on keep() keeps 2 MiB in
each step; "lock": a step waits for a mutex that save() holds for 3 s; "gpu": load_batch() keeps a step waiting for 4 s, and the
(simulated) GPU, which else works in each step, has nothing to do; "crash": the process dies in crash(); "none". It ends half as long later, or
after 8 seconds if that is more. "ready" is printed after the first steps. TRUTH gets a line: how many steps there were, their median and the longest one in seconds.
"""
import ctypes
import statistics
import sys
import threading
import time

import torch
from torch import nn

kept = []
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)


def cleanup(seconds):
    end, total = time.process_time() + seconds, 0
    while time.process_time() < end:
        total += sum(i * i for i in range(1000))
    return total


def keep():
    kept.append(bytearray(b"x" * (2 << 20)))


def crash():
    ctypes.string_at(0)


def save(held):
    libc.pthread_mutex_lock(mutex)
    held.set()
    time.sleep(3)
    libc.pthread_mutex_unlock(mutex)


def wait_for_save():
    held = threading.Event()
    threading.Thread(target=save, args=[held]).start()
    held.wait()
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_unlock(mutex)


def load_batch():
    time.sleep(4)


class Gpu:
    """By the driver's calls, as there is no PyTorch for the simulated one."""

    def __init__(self):
        self.runtime = ctypes.CDLL("libcudart.so.13")  # beside it is the CUPTI that the agent takes
        self.cuda, context, module, self.kernel = ctypes.CDLL("libcuda.so.1"), *(ctypes.c_void_p() for _ in range(3))
        self.cuda.cuInit(0)
        self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.cuda.cuCtxSetCurrent(context)
        self.cuda.cuModuleLoadData(ctypes.byref(module), b"image")
        self.cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"_Z4gemmPfS_i")

    def multiply(self):
        none = ctypes.c_void_p()
        self.cuda.cuLaunchKernel(self.kernel, 1, 1, 1, 64, 1, 1, 0, none, none, none)
        self.cuda.cuCtxSynchronize()


def step(net, optimizer, data, fault, gpu):
    if fault == "gpu":
        load_batch()
    optimizer.zero_grad()
    if gpu:
        gpu.multiply()
    net(data).square().mean().backward()
    optimizer.step()
    if fault == "slow":
        cleanup(1)
    elif fault == "leak":
        keep()
    elif fault == "lock":
        wait_for_save()
    elif fault == "crash":
        crash()


def main():
    fault, seconds, truth = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    gpu = Gpu() if fault == "gpu" else None
    data, took, begun = torch.randn(64, 128), [], time.monotonic()
    while (now := time.monotonic()) - begun < seconds + max(8, seconds / 2):
        due = fault if now - begun > seconds else "none"
        step(net, optimizer, data, due, gpu)
        if due in ("slow", "lock", "gpu"):
            fault = "none"
        took.append(time.monotonic() - now)
        if len(took) == 20:
            print("ready", flush=True)
        time.sleep(0.02)
    with open(truth, "w", encoding="utf-8") as f:
        print(len(took), statistics.median(took), max(took), file=f)


main()
