# SPDX-License-Identifier: BSD-2-Clause
"""Operators that are called in other ways than from C++: each way in a round of its own.

    torch_boxed.py WAY --out FILE [--profile] [--rounds N]

WAY: python, packet (torch.ops.aten.mm), overload (torch.ops.aten.mm.default), script
(TorchScript), backward, foreach, index. Writes {operator: calls} of PyTorch's profiler.
"""
import argparse
import json

import torch

a = torch.ones(4, 4)
b = torch.ones(4, 4, requires_grad=True)


@torch.jit.script
def scripted(x, y):
    return torch.mm(x, y).relu() + 1


WAYS = {
    "python": lambda: torch.mm(a, a),
    "packet": lambda: torch.ops.aten.mm(a, a),
    "overload": lambda: torch.ops.aten.mm.default(a, a),
    "script": lambda: scripted(a, a),
    "backward": lambda: torch.mm(a, b).sum().backward(),
    "foreach": lambda: torch._foreach_add([a, a], 1),
    "index": lambda: a[a > 0].sum().item(),
}

parser = argparse.ArgumentParser()
parser.add_argument("way", choices=WAYS)
parser.add_argument("--out", required=True)
parser.add_argument("--profile", action="store_true")
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()
for _ in range(3):  # what is compiled or set up on first use
    WAYS[options.way]()
calls = {}
if options.profile:
    with torch.autograd.profiler.profile() as profile:
        for _ in range(options.rounds):
            WAYS[options.way]()
    for event in profile.kineto_results.events():
        calls[event.name()] = calls.get(event.name(), 0) + 1
else:
    for _ in range(options.rounds):
        WAYS[options.way]()
with open(options.out, "w", encoding="ascii") as f:
    json.dump(calls, f)
