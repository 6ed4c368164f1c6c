# SPDX-License-Identifier: BSD-2-Clause
"""Operators whose results and numbers are known: torch_shapes.py FILE writes {name: {what: value}}
of the last call of each, as PyTorch itself says it."""
import json
import sys
import time

import torch
from torch.nn import functional as F

known = {}
time.sleep(0.7)  # a tracer that has launched us attaches to the library that was just imported


def outputs(name, result):
    """A tensor, a tuple of them, or a list (which is one result)."""
    if isinstance(result, list):
        dims = [[list(t.shape) for t in result]]
    else:
        dims = [list(t.shape) for t in (result if isinstance(result, tuple) else (result,))]
    known.setdefault(name, {})["Output Dims"] = dims


a = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 4
with torch.no_grad():
    torch.roll(torch.arange(5), 2)
    outputs("aten::mm", torch.mm(a, a.t()))
    outputs("aten::max", tuple(torch.max(a, 1)))
    outputs("aten::topk", tuple(torch.topk(a, 2)))
    outputs("aten::unbind", list(torch.unbind(a)))
    outputs("aten::split", list(torch.split(a, 3, 1)))
    outputs("aten::cat", torch.cat([a] * 40))
    outputs("aten::add_", torch.zeros(2, 3).add_(1))
    outputs("aten::squeeze", torch.squeeze(torch.zeros(2, 1, 3), 1))
    outputs("aten::conv2d", F.conv2d(torch.zeros(2, 4, 9, 8), torch.zeros(6, 2, 3, 2), stride=(2, 1),
                                     padding=(1, 0), groups=2))
    outputs("aten::conv_transpose2d",
            F.conv_transpose2d(torch.zeros(2, 4, 5, 5), torch.zeros(4, 3, 2, 2), stride=2))
    outputs("aten::mul", torch.mul(torch.zeros(3, 1, 4), torch.zeros(5, 1)))
    outputs("aten::mv", torch.mv(a, torch.zeros(4)))
    outputs("aten::sum", torch.ones(1, 2, 3, 1, 2, 3, 1).sum((1, 4)))
    torch.clamp_min(a, 0.5)
known["aten::cat"]["List lengths"] = [40]
known["aten::roll"] = {"Input Values": {"self": "[0, 1, 2, 3, 4]"},
                       "Named Inputs": {"shifts": "[2]", "dims": "[0]"}}  # of the flattened one
known["aten::clamp_min"] = {"Concrete Inputs": ["", "0.5"], "Named Inputs": {"min": "0.5"},
                            "Input Values": {"self": "[0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, "
                                                     "2.5, 2.75]"}}
known["aten::conv2d"]["Named Inputs"] = {"stride": "[2, 1]", "padding": "[1, 0]",
                                         "dilation": "[1, 1]", "groups": "2"}
# 2 for a multiplication and an addition; output 5 x 7, 2 of 4 channels in each group
known["aten::conv2d"]["FLOPs"] = 2 * 2 * 6 * 5 * 7 * (4 // 2) * 3 * 2
known["aten::conv_transpose2d"]["FLOPs"] = 2 * 2 * 4 * 5 * 5 * 3 * 2 * 2
known["aten::mm"]["FLOPs"] = 2 * 3 * 4 * 3
known["aten::mv"]["FLOPs"] = 2 * 3 * 4
known["aten::mul"]["FLOPs"] = 3 * 5 * 4
with open(sys.argv[1], "w", encoding="ascii") as f:
    json.dump(known, f)
