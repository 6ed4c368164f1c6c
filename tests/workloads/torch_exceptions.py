#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""C++ exceptions through PyTorch's ops, caught in Python, many times; prints the counts.

A tracer that swaps return addresses kills this program.
"""
import argparse
import sys

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--wait", action="store_true", help="wait for a line on standard input")
    o = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    a, b, c = torch.randn(3, 4), torch.randn(5, 6), torch.randn(4, 3)
    print("ready", file=sys.stderr, flush=True)
    if o.wait:
        sys.stdin.readline()
    caught, fine, total = 0, 0, 0.0
    for i in range(o.rounds):
        for bad in (lambda: torch.mm(a, b), lambda: a.view(7, 7), lambda: torch.cat([a, b]),
                    lambda: torch.randn(3)[5], lambda: a + b):
            try:
                bad()
            except (RuntimeError, IndexError):
                caught += 1
        total += float(torch.mm(a, c).sum())
        fine += 1
    print(f"caught {caught} fine {fine} total {total:.6f}", flush=True)


main()
