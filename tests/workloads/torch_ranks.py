#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_ranks.py FOLDER RANKS STEPS [SLOW LATE]: a job of torch.distributed over gloo on 127.0.0.1, one process a rank.

Each step: products of matrices, all_reduce, barrier. Rank SLOW computes more products, rank LATE sleeps before the
barrier. Says "ready" with the ranks' process numbers, begins when FOLDER/go is there, and leaves in FOLDER/N.json what
rank N's clock said: before and behind a barrier at the beginning, then of each step before and behind all_reduce,
before and behind the barrier."""
import ctypes
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

FOLDER, RANKS, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SLOW, LATE = (int(sys.argv[4]), int(sys.argv[5])) if len(sys.argv) > 4 else (-1, -1)
PRODUCTS, MORE, NAP = 4, 150, 0.03
PR_SET_PDEATHSIG = 1
clock = time.monotonic_ns


def work(rank):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=rank, world_size=RANKS)
    a, gradient = torch.ones(64, 64), torch.ones(1000)
    dist.barrier()
    with open(f"{FOLDER}/there.{rank}", "wb"):
        pass
    while not os.path.exists(f"{FOLDER}/go"):
        time.sleep(0.01)
    times = [[clock()]]
    dist.barrier()
    times[0].append(clock())
    for step in range(STEPS):
        with torch.profiler.record_function(f"ProfilerStep#{step}"):
            for _ in range(PRODUCTS + (MORE if rank == SLOW else 0)):
                torch.mm(a, a)
            row = [clock()]
            dist.all_reduce(gradient)
            row.append(clock())
            if rank == LATE:
                time.sleep(NAP)
            row.append(clock())
            dist.barrier()
            row.append(clock())
        times.append(row)
    with open(f"{FOLDER}/{rank}.json", "w", encoding="ascii") as f:
        json.dump(times, f)
    dist.destroy_process_group()


def main():
    children = []
    for rank in range(RANKS):
        child = os.fork()  # PyTorch is loaded once
        if child == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            work(rank)
            sys.stdout.flush()
            os._exit(0)
        children.append(child)
    while not all(os.path.exists(f"{FOLDER}/there.{rank}") for rank in range(RANKS)):
        time.sleep(0.01)
    print("ready", *children, flush=True)
    sys.exit(any(os.waitpid(child, 0)[1] for child in children))


if __name__ == "__main__":
    main()
