# SPDX-License-Identifier: BSD-2-Clause
"""torch_stepped.py STEPS: a training step, counted by torch.profiler. Prints its process id and NAME=CALLS of one step, and
makes so many steps once it gets a line."""
import collections
import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(8 * 36, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4))
lstm = torch.nn.LSTM(4, 8)
optimizer = torch.optim.SGD([*model.parameters(), *lstm.parameters()], lr=1e-3, momentum=0.9)
x, y = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))


def step():
    optimizer.zero_grad()
    out = model(x)
    sequence, _ = lstm(out.unsqueeze(0))
    with record_function("failing"):
        try:
            torch.mm(x[0, 0], x[0, 0, :3])
        except RuntimeError:
            pass
    loss = torch.nn.functional.cross_entropy(out, y) + sequence.mean()
    loss.backward()
    optimizer.step()


for _ in range(3):
    step()
with profile(activities=[ProfilerActivity.CPU]) as p:
    step()
names = collections.Counter(e.name for e in p.events())
print(os.getpid(), *(f"{k}={v}" for k, v in names.items() if " " not in k), flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    step()
print("done", flush=True)
sys.stdin.read()
