# SPDX-License-Identifier: BSD-2-Clause
"""torch_various.py STEPS [profiled]: calls operators in many ways. Prints its process id, makes STEPS steps once it gets a line
(profiled: under torch.profiler), prints "done", and ends with its input."""
import contextlib
import os
import sys
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return 2 * x * gradient


@torch.jit.script
def scripted(x, n: int):
    for _ in range(n):
        x = torch.tanh(x) + 1
    return x


net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.GELU(), nn.LayerNorm(8))
net[0].register_forward_hook(lambda module, inputs, output: output.abs().sum() and None)
recurrent = nn.LSTM(8, 8)
attention = nn.TransformerEncoderLayer(8, 2, 16)
everything = [*net.parameters(), *recurrent.parameters(), *attention.parameters()]
optimizer = torch.optim.Adam(everything, lr=1e-3)
data = DataLoader(TensorDataset(torch.randn(8, 1, 8, 8)), batch_size=4, num_workers=0)


def train():
    for x, in data:
        optimizer.zero_grad()
        out = net(x)
        sequence, _ = recurrent(attention(out.unsqueeze(0)))
        loss = Square.apply(sequence).mean() + scripted(out, 3).sum()
        loss.backward()
        optimizer.step()


def catch():
    for _ in range(3):
        with contextlib.suppress(RuntimeError):
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))


def in_threads():
    def work():
        x = torch.ones(4, 4, requires_grad=True)
        for _ in range(5):
            (x @ x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def in_a_child():
    child = os.fork()
    if child == 0:
        torch.ones(3).add_(1)
        os._exit(0)
    os.waitpid(child, 0)
    torch.ones(3).mul_(2)


def step():
    train()
    catch()
    in_threads()
    in_a_child()
    with torch.no_grad():
        torch.linalg.svd(torch.randn(4, 4))
        torch.sparse.mm(torch.eye(4).to_sparse(), torch.ones(4, 4))
        torch.randn(16)[torch.randint(0, 16, (4,))].sort()


step()
print(os.getpid(), flush=True)
sys.stdin.readline()
with torch.profiler.profile() if "profiled" in sys.argv else contextlib.nullcontext():
    for _ in range(int(sys.argv[1])):
        step()
print("done", flush=True)
sys.stdin.read()
