# SPDX-License-Identifier: BSD-2-Clause
"""Operators that are called in other ways than from C++: each way in a round of its own.

    torch_boxed.py --out FILE [--profile]

The ways: nothing, python, packet (torch.ops.aten.mm), overload (torch.ops.aten.mm.default), script (TorchScript), backward, foreach, index.
The rounds of each are a range `way NAME`; or with --profile they run under PyTorch's profiler, and {way: {operator: calls}} is written.
"""
import argparse
import json

import torch

ROUNDS = 3

a = torch.ones(4, 4)
b = torch.ones(4, 4, requires_grad=True)


@torch.jit.script
def scripted(x, y):
    return torch.mm(x, y).relu() + 1


WAYS = {
    "nothing": lambda: None,  # what the range itself calls
    "python": lambda: torch.mm(a, a),
    "packet": lambda: torch.ops.aten.mm(a, a),
    "overload": lambda: torch.ops.aten.mm.default(a, a),
    "script": lambda: scripted(a, a),
    "backward": lambda: torch.mm(a, b).sum().backward(),
    "foreach": lambda: torch._foreach_add([a, a], 1),
    "index": lambda: a[a > 0].sum().item(),
}

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--profile", action="store_true")
options = parser.parse_args()
calls = {}
for way, call in WAYS.items():
    for _ in range(3):  # what is compiled or set up on first use
        call()
    counted = calls[way] = {}
    with torch.autograd.profiler.profile() if options.profile else torch.autograd.profiler.record_function(f"way {way}") as profile:
        for _ in range(ROUNDS):
            call()
    for event in profile.kineto_results.events() if options.profile else ():
        counted[event.name()] = counted.get(event.name(), 0) + 1
with open(options.out, "w", encoding="ascii") as f:
    json.dump(calls, f)
