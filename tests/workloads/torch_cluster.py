#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_cluster.py FOLDER STEPS SLOW LATE: one rank of a job over gloo, as its launcher's environment says. Each step: products of
matrices, all_reduce, barrier; rank SLOW makes more products on a line of its own, rank LATE sleeps on one. Says in FOLDER/there.N that
it is there, begins when FOLDER/go is, and leaves in FOLDER/N.json for how many ns its clock was on those two lines."""
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

FOLDER, STEPS, SLOW, LATE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
PRODUCTS, MORE, NAP = 4, 600, 0.3
RANK, SIZE = (int(next(os.environ[n] for n in names if n in os.environ))
              for names in (("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"), ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")))


def planted(a):
    for _ in range(MORE):
        torch.mm(a, a)  # the slow line


def forgotten():
    time.sleep(NAP)  # the late line


def step(a, gradient):
    """How long the planted lines took."""
    for _ in range(PRODUCTS):
        torch.mm(a, a)
    begun = time.monotonic_ns()
    if RANK == SLOW:
        planted(a)
    took = time.monotonic_ns() - begun
    dist.all_reduce(gradient)
    begun = time.monotonic_ns()
    if RANK == LATE:
        forgotten()
    took += time.monotonic_ns() - begun
    dist.barrier()
    return took


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=RANK, world_size=SIZE)
    a, gradient, spent = torch.ones(64, 64), torch.ones(1000), 0
    dist.barrier()
    with open(f"{FOLDER}/there.{RANK}", "w", encoding="ascii") as f:
        f.write(f"{socket.gethostname()} {os.getpid()}")
    while not os.path.exists(f"{FOLDER}/go"):
        time.sleep(0.01)
    for i in range(STEPS):
        with torch.profiler.record_function(f"ProfilerStep#{i}"):
            spent += step(a, gradient)
    with open(f"{FOLDER}/{RANK}.json", "w", encoding="ascii") as f:
        json.dump({"planted_ns": spent}, f)
    dist.destroy_process_group()


main()
