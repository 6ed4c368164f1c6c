#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A training loop (convolution and MLP) with a fixed seed: prints each loss and the steps.

With --steps the output depends on the options alone, so a traced run must print the same bytes.
With --seconds it runs until then, or until SIGTERM, and prints the steps a second at the end.
"""
import argparse
import signal
import sys
import time

import torch
from torch import nn


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--print-every", type=int, default=10)
    parser.add_argument("--annotate", action="store_true", help="torch.profiler.record_function")
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.first = nn.Linear(4 * 8 * 8, 32)
        self.second = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.convolution(x)), 2)
        return self.second(torch.relu(self.first(x.flatten(1))))


def step(net, optimizer, data, target):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(data), target)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    o = options()
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    torch.manual_seed(1)
    torch.set_num_threads(o.threads)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data = torch.randn(16, 1, 16, 16)
    target = torch.randint(0, 10, (16,))
    print("ready", file=sys.stderr, flush=True)
    begun = time.monotonic()
    n = 0
    while not stopped:
        if o.seconds and time.monotonic() - begun >= o.seconds or not o.seconds and n >= o.steps:
            break
        if o.annotate:
            with torch.profiler.record_function(f"step {n % 10}"):
                loss = step(net, optimizer, data, target)
        else:
            loss = step(net, optimizer, data, target)
        if not o.seconds and n % o.print_every == 0:
            print(f"step {n} loss {loss:.9f}", flush=True)
        n += 1
    took = time.monotonic() - begun
    if o.seconds:
        print(f"steps {n} us_a_step {took / max(n, 1) * 1e6:.1f}", flush=True)
    else:
        print(f"steps {n} loss {loss:.9f}", flush=True)


if __name__ == "__main__":
    main()
