# SPDX-License-Identifier: BSD-2-Clause
"""A small training run that uses what real ones use, on two threads, the same each time.

    torch_train.py --losses FILE [--profile FILE] [--steps N]

Writes the bits of every loss. With --profile it runs under PyTorch's own profiler, in each thread,
and writes how often each operator was called: {name: calls}.
"""
import argparse
import copy
import json
import struct
import threading

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(17, 12)
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.query, self.key, self.value = (nn.Linear(12, 12) for _ in range(3))
        self.out = nn.Linear(12 * 6, 5)

    def forward(self, words, generator):
        x = self.embedding(words)
        q, k, v = self.query(x), self.key(x), self.value(x)
        x = torch.matmul(F.softmax(q @ k.transpose(-2, -1) / 12 ** 0.5, -1), v)
        x = F.max_pool2d(F.relu(self.norm(self.conv(x.unsqueeze(1)))), (2, 1))
        x = x.mean(1).repeat(1, 2, 1).flatten(1)
        # dropout itself draws from the one default generator, in no fixed order of threads
        keep = torch.empty_like(x).bernoulli_(0.9, generator=generator)
        return self.out(F.dropout(x * keep, 0.1, training=False))


def train(seed, steps, losses):
    generator = torch.Generator().manual_seed(seed)
    net = nets[seed]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        words = torch.randint(0, 17, (8, 6), generator=generator)
        wanted = torch.randint(0, 5, (8,), generator=generator)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(words, generator), wanted)
        loss.backward()
        optimizer.step()
        losses.append(struct.pack("<f", loss.item()).hex())


def profiled(function, *arguments):
    with torch.autograd.profiler.profile() as profile:
        function(*arguments)
    calls = {}
    # not profile.function_events: they leave out an only child of its parent's name
    # (EventList._remove_dup_nodes), such as aten::div(Tensor, Tensor) in aten::div(Tensor, Scalar)
    for event in profile.kineto_results.events():
        calls[event.name()] = calls.get(event.name(), 0) + 1
    return calls


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", required=True)
    parser.add_argument("--profile")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    nets = [Net(), Net()]
    results = [[], []]
    calls = {}

    # PyTorch 2.6 sometimes computes NaN where two threads use an operator for the first time at once, traced or not
    for net in nets:
        one = torch.Generator().manual_seed(9)
        words, wanted = (torch.randint(0, n, size, generator=one) for n, size in ((17, (8, 6)), (5, (8,))))
        F.cross_entropy(copy.deepcopy(net)(words, one), wanted).backward()

    def work(seed):
        if options.profile:
            for name, n in profiled(train, seed, options.steps, results[seed]).items():
                calls[name] = calls.get(name, 0) + n
        else:
            train(seed, options.steps, results[seed])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
        if options.profile:
            thread.join()  # there is one profiler in a process
    for thread in threads:
        thread.join()
    with open(options.losses, "w", encoding="ascii") as f:
        json.dump(results, f)
    if options.profile:
        with open(options.profile, "w", encoding="ascii") as f:
            json.dump(calls, f, indent=1, sort_keys=True)
