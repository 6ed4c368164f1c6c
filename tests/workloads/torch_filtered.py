#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ranges and backward nodes, short and long. Prints what the clock said around each range, and inside and
around each backward pass with a node that waits."""
import json
import sys
import time

import torch
from torch.profiler import record_function

clock = time.monotonic_ns
inside = []


class Waits(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x * 2

    @staticmethod
    def backward(_, gradient):
        begun = clock()
        time.sleep(0.004)
        inside.append((begun, clock()))
        return gradient * 2


def main():
    torch.set_num_threads(1)
    weight = torch.ones(4, requires_grad=True)
    times = {"short": [], "long": [], "backward": []}
    for _ in range(int(sys.argv[1])):
        for name, wait in (("short", 0), ("long", 0.004)):
            around = [clock()]
            with record_function(name):
                around.append(clock())
                (weight.detach() + 1).relu()
                if wait:
                    time.sleep(wait)
                around.append(clock())
            around.append(clock())
            times[name].append(around)
        with record_function("pass"):
            loss = Waits.apply(weight * 3).sum()
            before = clock()
            loss.backward()
            times["backward"].append([before, *inside.pop(), clock()])
    print(json.dumps(times))


main()
