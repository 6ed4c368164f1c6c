#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which share of the calls of a library goes through slots, and could be recorded by the agent's thunks: libslots.c counts both,
without xsptrace. The agent takes a library's functions only where that is all of them, whatever the program; docs/agent.md says
what came of it. Each case prints its table."""
import os
import re
import sys

from harness import TORCH, Skip, case, check, equal, main, need_torch, run, truth, workload

CUDART = "/usr/local/cuda/lib/libcudart.so.13"  # NVIDIA's own
HEAP = ["malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "_Znwm", "_Znam", "_ZdlPv", "_ZdlPvm"]


def exported(path, pattern):
    return sorted({line.split()[-1] for line in run(["nm", "-D", "--defined-only", path]).stdout.splitlines()
                   if line.split()[-2] == "T" and re.match(pattern, line.split()[-1])})


def shares(folder, title, symbols, command, **environment):
    """{symbol: (calls, calls through slots)}. The command begins by itself if it is Python, else with the program."""
    path = f"{folder}/{re.sub('[^a-z0-9]+', '_', title.lower())}"
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(s + "\n" for s in symbols))
    library = workload("libslots.so")
    if "-c" in command:
        command = [*command, library, path, folder]
    else:
        environment |= {"LD_PRELOAD": library, "XSP_SLOTS": path}
    done = run(command, env=dict(os.environ, **environment), timeout=120)
    equal((done.returncode, done.stderr), (0, ""), title)
    with open(path + ".counts", encoding="ascii") as f:
        counts = {words[0]: (int(words[1]), int(words[2])) for words in map(str.split, f)}
    all_calls = sum(c for c, _ in counts.values())
    print(f"{title}: {sum(s for _, s in counts.values())}{f' of {all_calls}' if all_calls else ''} calls through slots")
    for symbol, (calls, slots) in counts.items():
        print(f"  {calls:8} {slots:8}  {symbol}")
    return counts


def check_all(counts):
    equal({s: c for s, c in counts.items() if c[0] != c[1]}, {}, "calls that came otherwise")


def of_cuda(library, pattern):
    return exported(workload(f"cuda13/{library}"), pattern)


@case
def cuda_doubles(folder):
    """The doubles' runtime is linked with their driver, so all calls go through slots: as many as the doubles count themselves."""
    symbols = of_cuda("libcuda.so.1", "cu[A-Z]") + of_cuda("libcudart.so.13", "(__)?cuda[A-Z]")
    for how in ([], ["runtime"]):
        facts = f"{folder}/truth"
        counts = shares(folder, "CUDA's doubles " + "".join(how), ["=" + s for s in symbols],
                        [workload("gpu_sim"), "--threads", "2", "--calls", "50", *how], XSP_DOUBLE_TRUTH=facts)
        made = {re.sub(r"_v\d{4,}$", "", k): v for k, v in truth(facts)["calls"].items()}
        both = {k: (counts[k][1], v) for k, v in made.items() if k in counts}
        check("cuLaunchKernel" in both and "cuGraphLaunch" in both, "launches", both)
        equal({k: v for k, v in both.items() if v[0] != v[1]}, {}, "calls (through slots, made)")


REAL = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
driver, runtime = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("%s")
library.slots_begin(sys.argv[2].encode())
at = ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(at), 64)
library.slots_end()
"""


@case
def cuda_of_nvidia(folder):
    """NVIDIA's own runtime asks the driver for its functions' addresses: none of its calls goes through a slot. Nor does one of a
    program that looks up the runtime's functions, as Python's ctypes does."""
    if not os.path.exists(CUDART):
        raise Skip(f"no {CUDART}")
    symbols = of_cuda("libcuda.so.1", "cu(Init|Get|Driver|Device)") + ["cudaMalloc"]
    counts = shares(folder, "NVIDIA's runtime", symbols, ["/usr/bin/python3", "-c", REAL % CUDART],
                    LD_LIBRARY_PATH=os.path.dirname(workload("cuda13/libcuda.so.1")))
    equal(counts.pop("cudaMalloc"), (1, 0), "the call by its looked-up address")
    check(counts and all(c[1] == 0 for c in counts.values()), "calls of the driver", counts)


@case
def nccl_double(folder):
    counts = shares(folder, "NCCL's double", exported(workload("nccl/libnccl.so.2"), "nccl"), [workload("nccl_job"), "10"])
    equal(counts["ncclAllReduce"][0], 10, "calls")
    check_all(counts)


GLOO = """import ctypes, os, sys
import torch, torch.distributed as dist
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
library = ctypes.CDLL(sys.argv[1])
library.slots_begin(sys.argv[2].encode())
dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}/store", rank=0, world_size=1)
for _ in range(10):
    dist.all_reduce(torch.ones(4))
    dist.broadcast(torch.ones(4), 0)
    dist.barrier()
library.slots_end()
"""


@case
def collectives(folder):
    """What a program calls are virtual functions: no slot leads to them."""
    need_torch()
    torch = run([TORCH, "-c", "import importlib.util as i; print(i.find_spec('torch').submodule_search_locations[0])"]).stdout.strip()
    symbols = exported(f"{torch}/lib/libtorch_cpu.so", "_ZN4c10d(16ProcessGroupGloo(9allreduce|9broadcast|7barrier|7enqueue|9AsyncWork7execute)E|4Work4wait)")
    counts = shares(folder, "c10d", symbols, [TORCH, "-c", GLOO])
    asked = [c for s, c in counts.items() if re.search("(allreduce|broadcast|barrier)E", s)]
    equal(asked, [(10, 0)] * 3, "collectives that the program asks for")


@case
def heap(folder):
    """Libraries call the C library's functions through slots, also from inside libstdc++. Its own functions call each other directly,
    and so does the loader: realloc(NULL, n) is a malloc."""
    counts = shares(folder, "heap of a C++ program", HEAP, [workload("heap"), "100", "2", "64"])
    check(counts["malloc"][1] < counts["malloc"][0], "malloc", counts)
    made, through = counts["_Znwm"]
    check(abs(made - through) <= 2, "operator new, but for calls as the counting begins and ends", counts)


if __name__ == "__main__":
    if os.uname().machine != "x86_64":
        print("SKIP: slots are counted on x86-64")
        sys.exit(77)
    main(traces=False)
