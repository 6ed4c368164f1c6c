#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_everything.py --wait --out FILE [--steps N]: a training loop in which there is something to see for every option of a
recording of PyTorch, for the one that many cases read (tests/e2e/shared.py): modules, an optimizer, a backward pass, memory that is kept,
products that come from one line, and a thread that waits for a lock.

It ends with the line that multiplies and how often, how many nodes the backward passes had that an operator made (by PyTorch's
own graph), and how many floats it has kept.
"""
import argparse
import json
import signal
import sys
import threading
import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.second = nn.Linear(32, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def multiplies(a):
    return torch.mm(a, a)


def keeps(floats):
    return torch.empty(floats)


def nodes_behind(result):
    """Of the graph of a result: all but those that add to a gradient, which no operator made."""
    seen, todo = set(), [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [n for n, _ in node.next_functions]
    return sum("AccumulateGrad" not in n.name() for n in seen)


def train(net, optimizer, steps, lock):
    facts, kept, a = {"multiplied": 0, "nodes": 0, "kept_floats": 0}, [], torch.ones(8, 8)
    for i in range(steps):
        optimizer.zero_grad()
        loss = net(torch.ones(4, 16)).exp().sum()
        facts["nodes"] += nodes_behind(loss)
        loss.backward()
        optimizer.step()
        for _ in range(3):
            multiplies(a)
            facts["multiplied"] += 1
        kept.append(keeps(1000 * (i + 1)))
        facts["kept_floats"] += 1000 * (i + 1)
        with lock:
            pass
    return facts, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=8)
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net, lock, over = Net(), threading.Lock(), threading.Event()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9)
    train(net, optimizer, 1, lock)  # what is done once only, and takes long, is over
    if o.wait:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # one that comes too early waits
        print("ready", file=sys.stderr, flush=True)
        signal.sigwait({signal.SIGUSR1})

    def holds():
        while not over.is_set():
            with lock:
                time.sleep(0.004)
            time.sleep(0.001)

    holder = threading.Thread(target=holds)
    holder.start()
    facts, kept = train(net, optimizer, o.steps, lock)
    over.set()
    holder.join()
    line = multiplies.__code__.co_firstlineno + 1
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump({**facts, "kept": len(kept), "line": line, "function": multiplies.__name__, "steps": o.steps}, f)


if __name__ == "__main__":
    main()
