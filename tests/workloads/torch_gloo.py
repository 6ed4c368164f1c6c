#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_gloo.py FOLDER [profile]: two processes, in each a few of each collective of gloo, and ranges among operators that get
strings. With `profile` under torch.profiler;
leaves in FOLDER/N.json what rank N's profiler called the ranges of scope USER_SCOPE, how often."""
import collections
import json
import os
import sys

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function

FOLDER, PROFILE = sys.argv[1], sys.argv[2:] == ["profile"]
RANKS, ROUNDS = 2, 3


@torch.jit.script
def compiled(x):
    with torch.autograd.profiler.record_function("scripted"):
        return torch.div(x, 3.0, rounding_mode="floor")


def collectives(rank):
    both = [torch.zeros(4) for _ in range(RANKS)]
    dist.all_reduce(torch.ones(4))
    dist.broadcast(torch.ones(4), 0)
    dist.reduce(torch.ones(4), 0)
    dist.all_gather(both, torch.ones(4))
    dist.gather(torch.ones(4), both if rank == 0 else None, 0)
    dist.scatter(torch.zeros(4), both if rank == 0 else None, 0)
    dist.all_to_all_single(torch.zeros(4), torch.ones(4))
    (dist.send if rank == 0 else dist.recv)(torch.ones(4), 1 - rank)
    torch.ops.aten.div(torch.ones(4), torch.ones(4), rounding_mode="floor")  # a string that is no name
    with record_function("around", "its arguments"):
        dist.all_reduce(torch.ones(4), async_op=True).wait()
    torch.ops.aten.div(torch.ones(4), torch.ones(4), rounding_mode="trunc")
    compiled(torch.ones(4))
    dist.barrier()


def work(rank):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=rank, world_size=RANKS)
    if not PROFILE:
        for _ in range(ROUNDS):
            collectives(rank)
        return
    with profile(activities=[ProfilerActivity.CPU]) as p:
        for _ in range(ROUNDS):
            collectives(rank)
    names = collections.Counter(e.name for e in p.events() if e.name.startswith(("gloo:", "around", "scripted")))
    with open(f"{FOLDER}/{rank}.json", "w", encoding="ascii") as f:
        json.dump(names, f)


def main():
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child == 0:
            work(rank)
            os._exit(0)
        children.append(child)
    sys.exit(any(os.waitpid(child, 0)[1] for child in children))


if __name__ == "__main__":
    main()
