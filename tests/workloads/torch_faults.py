#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_faults.py loop|batched|starved|fed: twelve steps of a small training with a fault, or without it. Says "ready" and waits
for a line; then prints as JSON how often a line was run in each step, and how long fetching the batches took."""
import json
import sys
import time

import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

STEPS = 12


class Rows(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return STEPS * 4

    def __getitem__(self, index):
        if self.slow:
            time.sleep(0.005)
        return torch.ones(16)


def loop(rows):
    return [row.mul(2) for row in rows]


def compute(size):
    a = torch.ones(size, size)
    for _ in range(4):
        a = a.mm(a)
    return a


def main():
    how = sys.argv[1]
    torch.set_num_threads(1)
    rows = torch.ones(300, 16)
    batches = iter(DataLoader(Rows(how == "starved"), batch_size=4))
    print("ready", flush=True)
    sys.stdin.readline()
    begin, fetching = time.monotonic_ns(), 0
    for i in range(STEPS):
        with record_function(f"ProfilerStep#{i}"):
            before = time.monotonic_ns()
            next(batches)
            fetching += time.monotonic_ns() - before
            if how == "loop":
                loop(rows)
            else:
                rows.mul(2)
                compute(32 if how == "starved" else 200)
    print(json.dumps({"ns": time.monotonic_ns() - begin, "fetching_ns": fetching, "calls": len(rows)}))


if __name__ == "__main__":
    main()
