#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A training step on the GPU, the same each time: convolution, linear layers, attention, two
streams, a CUDA graph, copies from pinned memory, two threads. Prints each loss exactly.

The steps that count stand inside record_function("measured#N"), with the GPU idle before and after;
--profile FILE records them with PyTorch's own profiler. --wait PATH: warms up, creates PATH.ready
and waits until PATH appears, so that a tracer can attach or inject before the measured steps.
"""
import argparse
import os
import threading
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile")
    parser.add_argument("--wait")
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 16, 3, padding=1)
        self.inner = nn.Linear(16 * 16 * 16, 256)
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.out = nn.Linear(256, 10)

    def forward(self, x):
        x = torch.relu(self.convolution(x)).flatten(1)
        x = torch.relu(self.inner(x)).view(-1, 4, 64)
        x, _ = self.attention(x, x, x)
        return self.out(x.reshape(-1, 256))


class Worker:
    """One thread's model, stream, graph and data."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.net = Net().cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)
        self.host = torch.randn(32, 3, 16, 16).pin_memory()
        self.target = torch.randint(0, 10, (32,)).cuda()
        self.stream = torch.cuda.Stream()
        self.result = torch.empty(32, 10).pin_memory()
        self.static = torch.randn(256, 256, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            product = self.static @ self.static
            self.product = torch.relu(product) + 1
        self.losses = []

    def step(self):
        with torch.cuda.stream(self.stream):
            x = self.host.to("cuda", non_blocking=True)
            self.optimizer.zero_grad(set_to_none=False)
            y = self.net(x)
            loss = nn.functional.cross_entropy(y, self.target)
            loss.backward()
            self.optimizer.step()
            self.result.copy_(y.detach(), non_blocking=True)
            self.graph.replay()
        self.stream.synchronize()
        self.losses.append(loss.item())


def run(workers, steps, name):
    """The threads take turns: which of them comes first must not decide what is launched."""
    for i in range(steps):
        for worker in workers:
            def body(worker=worker, i=i):
                with record_function(f"{name}#{i}"):
                    worker.step()
            thread = threading.Thread(target=body)
            thread.start()
            thread.join()
    torch.cuda.synchronize()


def main():
    o = options()
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    workers = [Worker(seed) for seed in (1, 2)]
    run(workers, 3, "warm")
    if o.wait:
        open(o.wait + ".ready", "w").close()
        deadline = time.time() + 120
        while not os.path.exists(o.wait) and time.time() < deadline:
            run(workers[:1], 1, "waiting")  # an agent starts at CUDA calls, and nobody is idle
            time.sleep(0.01)
        workers = [Worker(seed) for seed in (1, 2)]
        run(workers, 3, "warm")
    for worker in workers:
        worker.losses.clear()
    if o.profile:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            run(workers, o.steps, "measured")
        p.export_chrome_trace(o.profile)
    else:
        run(workers, o.steps, "measured")
    for n, worker in enumerate(workers):
        print(n, " ".join(loss.hex() for loss in worker.losses), flush=True)


main()
