#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_steps.py optimizer|profiler STEPS: a training loop whose steps are marked by torch.optim, or by torch.profiler's step() as well.
Says "ready" and waits for a line; then prints what the clock said at each optimizer.step()'s end, or around both ends of each
ProfilerStep#N, and how many linear layers each step called: one, step 5 four."""
import json
import sys
import time

import torch
from torch import nn

clock = time.monotonic_ns


def train(steps, stepped):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.ones(8, 64)
    ends = []
    for i in range(steps):
        for _ in range(4 if i == 5 else 1):
            loss = net(x).sum()
        if i == 5:
            time.sleep(0.02)
        optimizer.zero_grad()
        loss.backward()
        before = clock()
        optimizer.step()
        ends.append([before, clock()])
        stepped()
    return ends


def main():
    steps = int(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    if sys.argv[1] == "optimizer":
        print(json.dumps(train(steps, lambda: None)))
        return
    around = [[clock()]]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as profile:
        around[-1].append(clock())

        def stepped():
            before = clock()
            profile.step()
            after = clock()
            around[-1] += [before, after]
            around.append([before, after])

        train(steps, stepped)
    print(json.dumps(around[:-1]))


if __name__ == "__main__":
    main()
