#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A healthy training loop in which something goes wrong late, once.

    torch_planted.py FAULT SECONDS TRUTH

FAULT after SECONDS: "slow": a step in which cleanup() computes for a second; "leak": from then on keep() keeps 2 MiB in
each step; "crash": the process dies in crash(); "none". It ends half as long later, or after 8 seconds if that is more.
"ready" is printed after the first steps. TRUTH gets a line: how many steps there were, their median and the longest one in seconds.
"""
import ctypes
import statistics
import sys
import time

import torch
from torch import nn

kept = []


def cleanup(seconds):
    end, total = time.process_time() + seconds, 0
    while time.process_time() < end:
        total += sum(i * i for i in range(1000))
    return total


def keep():
    kept.append(bytearray(b"x" * (2 << 20)))


def crash():
    ctypes.string_at(0)


def step(net, optimizer, data, fault):
    optimizer.zero_grad()
    net(data).square().mean().backward()
    optimizer.step()
    if fault == "slow":
        cleanup(1)
    elif fault == "leak":
        keep()
    elif fault == "crash":
        crash()


def main():
    fault, seconds, truth = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data, took, begun = torch.randn(64, 128), [], time.monotonic()
    while (now := time.monotonic()) - begun < seconds + max(8, seconds / 2):
        due = fault if now - begun > seconds else "none"
        step(net, optimizer, data, due)
        if due == "slow":
            fault = "none"
        took.append(time.monotonic() - now)
        if len(took) == 20:
            print("ready", flush=True)
        time.sleep(0.02)
    with open(truth, "w", encoding="utf-8") as f:
        print(len(took), statistics.median(took), max(took), file=f)


main()
