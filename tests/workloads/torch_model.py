# SPDX-License-Identifier: BSD-2-Clause
"""A training run whose operators take arguments of every kind that profilers record.

    torch_model.py --losses FILE [--profile FOLDER] [--steps N] [--threads N]

Two threads train a model each (SGD, Adam), the same each time; every thread's work lies in a range
named "work N". Writes the exact losses (float.hex). With --profile each thread works under PyTorch's
own profiler, one after the other, with shapes and FLOPs: FOLDER/N.json, in Kineto's format.

Runs on PyTorch 1.13 to 2.14.
"""
import argparse
import json
import threading
import time

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        x, _ = self.heads(x, x, x)
        if not hasattr(F, "scaled_dot_product_attention"):
            return x
        q = x.unsqueeze(1)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True).squeeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(17, 8, padding_idx=0)
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)  # no bias: an undefined tensor
        self.norm = nn.BatchNorm2d(4)
        self.layer = nn.LayerNorm(8)
        self.attention = Attention()
        self.out = nn.Linear(8 * 6 + 4 * 3, 5)

    def forward(self, words):
        x = self.layer(self.attention(self.embedding(words)))
        y = F.max_pool2d(F.relu_(self.norm(self.conv(x.unsqueeze(1)))), (2, 2))
        y = F.adaptive_avg_pool2d(y, (3, 1))
        return self.out(F.gelu(torch.cat([x.flatten(1), y.flatten(1)], dim=1)))


def many_kinds(x):
    """Arguments that the model does not have: lists, optional tensors, many dims, none."""
    seven = x[:2, :4].reshape(1, 2, 1, 2, 1, 2, 1).expand(3, 2, 1, 2, 1, 2, 1)
    total = seven.permute(6, 5, 4, 3, 2, 1, 0).contiguous().sum((1, -1), keepdim=True).sum()
    total = total + torch.stack([x, x * 2, x.add(x, alpha=3)], dim=-1).mean()
    total = total + torch.stack(list(torch.split(x, [1, 2, x.shape[0] - 3]))[0:1]).sum()
    total = total + torch.cat([x[:0], x]).abs().clamp(min=0.25, max=None).sum() / 7
    total = total + sum(t.sum() for t in torch.meshgrid(x[0, :2], x[0, :3], indexing="ij"))
    total = total + x[torch.tensor([0, 1]), torch.tensor([1, 0])].sum()
    total = total + torch.einsum("ij,kj->ik", x[:2], x[:3]).sum() * True
    total = total + torch.where(x > 0, x, torch.zeros((), dtype=x.dtype)).to(torch.float64).sum().float()
    total = total + F.conv1d(x[:2, :4].unsqueeze(0), torch.ones(2, 1, 2), stride=2, dilation=1,
                             groups=2).norm(2, dim=-1).sum()
    total = total + torch.complex(x[0], x[1]).abs().sum()
    total = total + torch.empty(0, 3).sum() + torch.arange(0, 6, 2, dtype=torch.int16).sum()
    total = total + torch.div(x, 0.5, rounding_mode="floor").sum() * 1e-3
    total = total + (x.detach().to(torch.bfloat16) + 1).float().mean() + x.detach().half().float().var(0).sum()
    y = x.detach().clone()
    y[1:].mul_(2).add_(1.5)
    y.masked_fill_(y > 1, 0)[0, ::2] = 4
    return total + torch.nan_to_num(y, nan=0.5).sum()


def step(net, optimizer, generator):
    words = torch.randint(0, 17, (4, 6), generator=generator)
    wanted = torch.randint(0, 5, (4,), generator=generator)
    optimizer.zero_grad()
    scores = net(words)
    loss = F.cross_entropy(scores, wanted, label_smoothing=0.1) + many_kinds(scores) * 1e-3
    loss.backward()
    optimizer.step()
    return loss.item()


def work(number, steps, losses):
    generator = torch.Generator().manual_seed(number)
    with torch.profiler.record_function(f"work {number}"):
        for _ in range(steps):
            losses.append(step(nets[number], optimizers[number], generator).hex())


def own_events(profile):
    """Kineto's events from the profiler's own results: Debian builds 1.13 without Kineto."""
    events = []
    for e in profile.profiler.kineto_results.events():
        arguments = {"Input Dims": e.shapes(), "Input type": e.dtypes()}
        if e.sequence_nr() >= 0:
            arguments |= {"Sequence number": e.sequence_nr(), "Fwd thread id": e.fwd_thread_id()}
        events.append({"ph": "X", "cat": "user_annotation" if e.scope() == 7 else "cpu_op",
                       "name": e.name(), "tid": e.start_thread_id(), "ts": e.start_us(),
                       "dur": e.duration_us(), "args": arguments})
    return events


def profiled(number, folder, *arguments):
    """Each thread has a profiler of its own: it records the thread that starts it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                with_flops=True) as profile:
        work(number, *arguments)
    profile.export_chrome_trace(f"{folder}/{number}.json")
    with open(f"{folder}/{number}.json", encoding="utf-8") as f:
        kineto = json.load(f)
    own = isinstance(kineto, list)
    flops = {}
    for e in profile.profiler.kineto_results.events():
        if e.flops() > 0:
            counts = flops.setdefault(e.name(), {})
            counts[e.flops()] = counts.get(e.flops(), 0) + 1
    with open(f"{folder}/{number}.json", "w", encoding="ascii") as f:
        json.dump({"kineto": not own, "flops": flops,
                   "traceEvents": own_events(profile) if own else kineto["traceEvents"]}, f)


def main(options):
    results = [[] for _ in range(options.threads)]
    threads = []
    for number in range(options.threads):
        arguments = (number, options.steps, results[number])
        if options.profile:
            arguments = (number, options.profile, *arguments[1:])
        threads.append(threading.Thread(target=profiled if options.profile else work, args=arguments))
        threads[-1].start()
        if options.profile:
            threads[-1].join()  # there is one profiler in a process
    for thread in threads:
        thread.join()
    with open(options.losses, "w", encoding="ascii") as f:
        json.dump({"torch": torch.__version__, "losses": results}, f)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", required=True)
    parser.add_argument("--profile")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    OPTIONS = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    nets = [Net() for _ in range(OPTIONS.threads)]
    optimizers = [torch.optim.SGD(nets[i].parameters(), lr=0.1, momentum=0.9) if i % 2 == 0 else
                  torch.optim.Adam(nets[i].parameters(), lr=0.01) for i in range(OPTIONS.threads)]
    if not OPTIONS.profile:
        time.sleep(0.7)  # a tracer that has launched us attaches to the library that was just imported
    main(OPTIONS)
