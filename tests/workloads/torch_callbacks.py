# SPDX-License-Identifier: BSD-2-Clause
"""torch_callbacks.py ROUNDS [plain]: operators that are called in all ways. Prints its process id, and as JSON how often PyTorch's
profiler counts each name in one round. Makes so many rounds once it gets a line, prints "done", and ends with its input.

plain: what probes see as well, as it is called by at::_ops; and in another thread, of which the profiler is not told."""
import collections
import contextlib
import json
import os
import sys
import threading

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.set_num_threads(1)
a = torch.ones(4, 4)
b = torch.ones(4, 4, requires_grad=True)
of_mine = torch.library.Library("mine", "DEF")
of_mine.define("triple(Tensor x) -> Tensor")
of_mine.impl("triple", lambda x: x * 3, "CPU")


class ANameThatIsLongerThanOnePartOfARecord(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Nested(torch.autograd.Function):
    """Runs a backward pass in its backward."""
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            inner = torch.ones(2, requires_grad=True)
            inner.exp().sum().backward()
        return gradient * 2


@torch.jit.script
def scripted(x, y):
    return torch.mm(x, y).relu() + 1


def ranges():
    with record_function("outer"):
        first, second = record_function("begins first and ends first"), record_function("inner")
        first.__enter__()
        second.__enter__()
        torch.mm(a, a)
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)


def caught():
    for _ in range(2):
        with contextlib.suppress(RuntimeError):
            torch.mm(a, torch.ones(3, 3))


def in_another_thread():
    thread = threading.Thread(target=lambda: torch.mm(a, b).sum().backward())
    thread.start()
    thread.join()


PLAIN = [lambda: torch.mm(a, a), lambda: torch.mm(a, b).sum().backward(), lambda: torch._foreach_add([a, a], 1), lambda: a[a > 0].sum().item(),
         lambda: Nested.apply(torch.mm(a, b)).sum().backward(), ranges, caught]
ELSE = [lambda: torch.ops.aten.mm(a, a), lambda: torch.ops.aten.mm.default(a, a), lambda: torch.ops.mine.triple(a), lambda: scripted(a, a),
        lambda: ANameThatIsLongerThanOnePartOfARecord.apply(torch.mm(a, b)).relu().sum().backward()]


def work():
    for way in [*PLAIN, in_another_thread] if "plain" in sys.argv else PLAIN + ELSE:
        way()


for _ in range(5):  # what is compiled, or set up on first use
    work()
with profile(activities=[ProfilerActivity.CPU]) as p:
    work()
print(os.getpid(), json.dumps(collections.Counter(e.name() for e in p.profiler.kineto_results.events())), flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    work()
print("done", flush=True)
sys.stdin.read()
