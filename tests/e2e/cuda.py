# SPDX-License-Identifier: BSD-2-Clause
"""CUDA calls, GPU activity, and the arrows between them, on simulated CUDA and CUPTI (tests/doubles)
with the real agent. The truth: what the simulated driver counted itself; and what the program puts
into each launch (gpu_sim.c): the op's kernel, the thread in the grid's second dimension."""
import collections
import json
import os
import re
import shutil
import signal

from harness import (EXTRA, ROOT, WORKLOADS, Recording, Skip, Trace, case, check, equal,
                     finish, json_report, main, run, start_ready, truth, wait_for, workload, xsptrace)

AGENT = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")
# op → its kernel, demangled
KERNEL_OF = {"sim::gemm": "gemm(float*, float*, int)",
             "sim::axpy": "axpy(float, float const*, float*)",
             "sim::softmax": "softmax(float*, int)",
             "sim::reduce": "void reduce<float>(float*, int)",
             "sim::dropout": "nn::dropout(float*, float)",
             "sim::gather": "gather_kernel",
             "sim::graph": "graph_node(float*, int)"}
MANGLED = {"_Z4gemmPfS_i": "sim::gemm", "_Z4axpyfPKfPf": "sim::axpy", "_Z7softmaxPfi": "sim::softmax",
           "_Z6reduceIfEvPT_i": "sim::reduce", "_ZN2nn7dropoutEPff": "sim::dropout",
           "gather_kernel": "sim::gather", "_Z10graph_nodePfi": "sim::graph"}
APIS = ("cuda_driver", "cuda_runtime")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def launched(folder, *arguments, program="gpu_sim", options=(), env=None, timeout=120, tag="run"):
    """xsptrace OPTIONS -- gpu_sim ARGUMENTS: the trace, the driver's truth, what xsptrace said."""
    out, facts = f"{folder}/{tag}.json", f"{folder}/{tag}.truth"
    done = xsptrace(*EXTRA, *options, "-o", out, "--", workload(program), *arguments,
                    timeout=timeout, env=dict(os.environ, XSP_DOUBLE_TRUTH=facts, **(env or {})))
    return Trace(out), truth(facts), done.stdout + done.stderr


class Gpu:
    """The CUDA part of a trace, by ids."""

    def __init__(self, trace):
        events = trace.json["traceEvents"]
        self.json = trace.json
        self.by = collections.defaultdict(list)
        for e in events:
            if e["ph"] == "X":
                self.by[e["cat"]].append(e)
        self.ops = {e["args"]["External id"]: e for c in ("cpu_op", "user_annotation")
                    for e in self.by[c]}
        self.calls = collections.defaultdict(list)
        for c in APIS:
            for e in self.by[c]:
                if "correlation" in e["args"]:
                    self.calls[e["args"]["correlation"]].append(e)
        self.starts = [e for e in events if e["ph"] == "s" and e["cat"] == "ac2g"]
        self.ends = [e for e in events if e["ph"] == "f" and e["cat"] == "ac2g"]

    def counted(self):
        return collections.Counter(e["name"] for c in APIS for e in self.by[c])


def check_counts(gpu, made):
    equal(len(gpu.by["kernel"]), made["kernels"], "kernels")
    equal(len(gpu.by["gpu_memcpy"]), made["memcpys"], "copies")
    equal(len(gpu.by["gpu_memset"]), made["memsets"], "sets")
    equal(sum(e["args"]["bytes"] for e in gpu.by["gpu_memcpy"]), made["memcpys_bytes"], "bytes")
    kinds = collections.Counter(e["args"]["cuda_sync_kind"] for e in gpu.by["cuda_sync"])
    equal((kinds["Stream Sync"], kinds["Context Sync"]), (made["sync_stream"], made["sync_context"]),
          "waits")
    names = collections.Counter(e["name"] for e in gpu.by["kernel"])
    equal(names, collections.Counter({KERNEL_OF[MANGLED[k]]: v for k, v in made["names"].items()
                                      if v}), "kernels by name")
    equal(sum(1 for e in gpu.by["kernel"] + gpu.by["gpu_memset"] if e["args"]["graph id"]),
          made["in_graphs"], "work of graphs")


def check_calls(gpu, made):
    """Each call that the simulated driver had has its row, and no other."""
    want = {re.sub(r"_v\d{4,}$", "", k): v for k, v in made["calls"].items()}
    got = gpu.counted()
    wrong = {k: (got[k], v) for k, v in want.items() if k in got and got[k] != v}
    equal(wrong, {}, "calls (got, made)")
    for name in ("cuLaunchKernel", "cuMemAlloc_v2", "cuGraphLaunch", "cuStreamSynchronize"):
        equal(got[name], want[name], name)


def inside(inner, outer):
    return (inner["pid"], inner["tid"]) == (outer["pid"], outer["tid"]) and \
        outer["ts"] <= inner["ts"] + 0.001 and \
        inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.002


def check_links(gpu):
    """Every activity has its call, and the op that launched it, on the thread that did."""
    thread_of = {}
    for e in gpu.by["kernel"]:
        args = e["args"]
        calls = gpu.calls[args["correlation"]]
        # one: readers join by the key (HTA asserts it), so a runtime call and not the driver's in it
        equal([c["cat"] for c in calls if c["cat"] == "cuda_runtime"][:1] or ["cuda_driver"],
              [c["cat"] for c in calls], "calls of a kernel")
        op = gpu.ops.get(args.get("External id"))
        check(op, "a kernel without an op", e)
        equal(e["name"], KERNEL_OF[op["name"]], "the op's kernel")
        for call in calls:
            check(inside(call, op), "the call lies in the op", call, op)
            equal(call["args"]["External id"], args["External id"], "the call's op")
        # the grid has the launching thread
        equal(thread_of.setdefault(args["grid"][1], op["tid"]), op["tid"], "thread of a launch")
        if op["name"] != "sim::graph":
            equal({tuple(c["args"]["grid"]) for c in calls}, {tuple(args["grid"])}, "grid")
            equal({tuple(c["args"]["block"]) for c in calls}, {tuple(args["block"])}, "block")
    for cat in ("gpu_memcpy", "gpu_memset"):
        for e in gpu.by[cat]:
            check(gpu.calls[e["args"]["correlation"]], f"{cat} without a call", e)
            check(gpu.ops.get(e["args"].get("External id"), {}).get("name") in
                  ("sim::copies", "sim::graph"), f"{cat}'s op", e)


def check_arrows(gpu, all_there=True):
    starts = collections.Counter(e["id"] for e in gpu.starts)
    ends = collections.Counter(e["id"] for e in gpu.ends)
    equal([i for i, n in starts.items() if n != 1], [], "arrows that begin twice")
    equal(set(ends), set(starts), "ids of beginnings and ends")
    slices = {(e["pid"], e["tid"], e["ts"]) for c in APIS for e in gpu.by[c]}
    lost = [e for e in gpu.starts if (e["pid"], e["tid"], e["ts"]) not in slices]
    equal(lost, [], "arrows that begin nowhere")
    slices = {(e["pid"], e["tid"], e["ts"]) for c in (*WORK, "cuda_sync") for e in gpu.by[c]}
    equal([e for e in gpu.ends if (e["pid"], e["tid"], e["ts"]) not in slices], [],
          "arrows that end nowhere")
    if not all_there:
        return
    equal(sum(ends.values()), sum(len(gpu.by[c]) for c in (*WORK, "cuda_sync")) -
          sum(1 for e in gpu.by["cuda_sync"] if e["args"]["correlation"] not in starts),
          "an arrow to each activity")


def check_rows(gpu):
    """Each range on the GPU encloses its launches; streams have names."""
    ranges = {(e["args"]["External id"], e["pid"], e["tid"]): e
              for e in gpu.by["gpu_user_annotation"]}
    for c in WORK:
        for e in gpu.by[c]:
            r = ranges[e["args"]["External id"], e["pid"], e["tid"]]
            check(r["ts"] <= e["ts"] and e["ts"] + e["dur"] <= r["ts"] + r["dur"] + 0.002,
                  "a range that does not enclose its kernels", r, e)
    named = {(e["pid"], e["tid"]) for e in gpu.json["traceEvents"] if e["name"] == "thread_name"}
    for c in (*WORK, "cuda_sync"):
        for e in gpu.by[c]:
            check((e["pid"], e["tid"]) in named, "a row without a name", e)


def check_clock(gpu):
    clock, facts = gpu.json["xsptrace_gpu_clock"], gpu.json["xsptrace_gpu"]
    check(clock["calls_compared"] > 0 and clock["start_after_entry_least_ns"] >= 0 and
          clock["end_before_exit_least_ns"] >= 0, "CUPTI's record lies inside the probes' span", clock)
    equal((facts["lost_records"], facts["dropped_records"], facts["malformed"], facts["unlinked"],
           facts["kernels_without_name"]), (0, 0, 0, 0, 0), "losses")


def check_all(trace, made):
    trace.check_nothing_lost()
    gpu = Gpu(trace)
    check_counts(gpu, made)
    check_calls(gpu, made)
    check_links(gpu)
    check_arrows(gpu)
    check_rows(gpu)
    check_clock(gpu)
    return gpu


# ---- all of it -----------------------------------------------------------------------


@case
def driver_api(folder):
    trace, made, said = launched(folder, "--threads", "8", "--calls", "400")
    gpu = check_all(trace, made)
    equal({e["name"] for e in gpu.by["cuda_runtime"]}, {"__cudaGetKernel"}, "runtime calls")
    check("not collected" not in said, "says that nothing was collected", said)
    device = gpu.json["deviceProperties"][0]
    equal((device["name"], device["numSms"]), ("Simulated GPU 0", 132), "device")


@case
def runtime_api(folder):
    trace, made, _ = launched(folder, "--threads", "8", "--calls", "400", "runtime")
    gpu = check_all(trace, made)
    # a runtime call encloses its driver call: both have the id, the outer one the arrow
    outer = {(e["pid"], e["tid"], e["ts"]) for e in gpu.by["cuda_runtime"]}
    check(sum((e["pid"], e["tid"], e["ts"]) in outer for e in gpu.starts) > len(gpu.starts) * 0.9,
          "arrows begin at runtime calls")


@case
def training_loop(folder):
    """PyTorch's operators around the calls, autograd's thread, two streams, a graph: the program
    itself counts which operator launched what."""
    trace, _, said = launched(folder, "--calls", "60", program="gpu_train")
    links = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["links"]
    names = run(["c++filt", *(k.split("|")[1] for k in links)]).stdout.splitlines()
    made = collections.Counter({(k.split("|")[0], name): links[k] for k, name in zip(links, names)})
    gpu = Gpu(trace)
    got = collections.Counter()
    for cat in WORK:
        for e in gpu.by[cat]:
            op = gpu.ops[e["args"]["External id"]]
            what = {"kernel": e["name"], "gpu_memset": "memset"}.get(cat, e["name"].split()[1:2])
            got["graph" if op["name"] == "graph_replay" else op["name"],
                what[0] if isinstance(what, list) else what] += 1
    equal(got, made, "what each operator launched")
    check_arrows(gpu)


@case
def two_processes_on_one_gpu(folder):
    """Both launch on the same streams: each has rows of its own, which say whose they are, in the trace and in what is made of it
    when it is read back; how many activities each has, it tells itself."""
    out, back = f"{folder}/t.json", f"{folder}/back.json"
    commands = " & ".join(f"{workload('gpu_train')} --calls {n}" for n in (20, 30))
    done = xsptrace(*EXTRA, "-f", "-q", "-o", out, "--", "sh", "-c", f"{commands} & wait", timeout=120)
    told = sorted(sum(json.loads(line)["links"].values()) for line in done.stdout.splitlines() if line.startswith("{"))
    xsptrace("export", out, "-o", back)
    for path in (out, back):
        trace = Trace(path)
        labels = {e["pid"]: e["args"]["labels"] for e in trace.json["traceEvents"] if e["name"] == "process_labels"}
        of_call = {(e["pid"], e["args"]["correlation"]) for e in trace.json["traceEvents"]
                   if e.get("cat") == "cuda_runtime" and "correlation" in e["args"]}
        counts, rows = collections.Counter(), collections.defaultdict(list)
        for e in trace.json["traceEvents"]:
            if e["ph"] != "X" or e.get("cat") not in WORK:
                continue
            pid = int(re.fullmatch(r"GPU 0 \(process (\d+)\)", labels[e["pid"]])[1])
            check((pid, e["args"]["correlation"]) in of_call, "not of that process", e, pid)
            counts[pid] += 1
            rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        equal(sorted(counts.values()), told, f"activities of each process in {path}")
        for row, times in rows.items():
            times.sort()
            check(all(a[1] <= b[0] + 1e-3 for a, b in zip(times, times[1:])), f"activities of {row} overlap")


@case
def cuda_12(folder):
    trace, made, _ = launched(folder, "--threads", "4", "--calls", "300", "runtime",
                              program="gpu_sim12")
    check_all(trace, made)


@case
def attached(folder):
    """The process has had the agent from its start, idle; xsptrace comes and goes."""
    facts, out = f"{folder}/truth", f"{folder}/out.json"
    env = dict(os.environ, XSP_DOUBLE_TRUTH=facts, CUDA_INJECTION64_PATH=AGENT)
    child = start_ready([workload("gpu_sim"), "--wait", "--threads", "4", "--calls", "300"],
                        env=env)
    with Recording(folder, "-p", child.pid, "-o", out) as recording:
        wait_for(lambda: os.path.exists(f"{facts}.on"), 10, "the agent to collect")
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status")
        recording.wait()
    gpu = Gpu(Trace(out))
    check_counts(gpu, truth(facts))
    check_links(gpu)
    check_arrows(gpu)
    check_clock(gpu)


@case
def unordered_records(folder):
    trace, made, _ = launched(folder, "--threads", "8", "--calls", "300", "runtime",
                              env={"XSP_DOUBLE_SHUFFLE": "64"})
    check_all(trace, made)


@case
def drops_are_told(folder):
    """CUPTI drops each 50th record: each is counted; the others are right."""
    trace, made, said = launched(folder, "--threads", "4", "--calls", "1000",
                                 env={"XSP_DOUBLE_DROP": "50"})
    cupti = truth(f"{folder}/run.truth.cupti")
    gpu = Gpu(trace)
    equal(gpu.json["xsptrace_gpu"]["dropped_records"], cupti["dropped"], "dropped")
    check(cupti["dropped"] > 0, "nothing was dropped")
    equal(len(gpu.by["kernel"]), made["kernels"] - cupti["dropped_by_kind"].get("kernel", 0),
          "kernels")
    check("dropped in the target" in said, "not in the summary", said)
    check_arrows(gpu, all_there=False)


BAD = {"time": "without_time", "backwards": "end_before_begin", "clock": "other_clock",
       "early": "before_launch", "at-once": "at_once_on_stream"}


@case
def times_that_cannot_be_true(folder):
    """Each tenth kernel has such times: they are counted by kind, and in nothing else. An overlap as by programmatic
    launch is real: both kernels are there, and the device is busy for no longer than it is recorded."""
    for bad in (*BAD, "overlap"):
        trace, made, said = launched(folder, "--threads", "4", "--calls", "300", "runtime", tag=bad,
                                     env={"XSP_DOUBLE_BAD": bad, "XSP_DOUBLE_KERNEL_NS": "20000"}, options=("-o", f"{folder}/{bad}.xspt"))
        gpu = Gpu(trace)
        spoiled = truth(f"{folder}/{bad}.truth.cupti")["bad_kernels"]
        check(spoiled > 0 or bad in ("at-once", "overlap"), "nothing was spoiled", bad)
        facts = {key: gpu.json["xsptrace_gpu"][key] for key in BAD.values()}
        if bad == "at-once" and 0.9 * spoiled <= facts[BAD[bad]] <= spoiled:
            spoiled = facts[BAD[bad]]  # a thread may have stood still between two: then they are not at once
        equal(facts, dict(dict.fromkeys(BAD.values(), 0), **({BAD[bad]: spoiled} if bad in BAD else {})), f"{bad}: counted")
        equal(len(gpu.by["kernel"]), made["kernels"] - (spoiled if bad in BAD else 0), f"{bad}: kernels with times")
        check(("cannot be true" in said) == (bad in BAD and spoiled > 0), f"{bad}: said", said)
        report = json_report("analyze", f"{folder}/{bad}.xspt")
        recorded = report["sections"]["recording"]["values"]["duration_ns"]
        for row in report["sections"]["gpu"]["tables"]["devices"]["rows"]:
            check(row["span_ns"] <= recorded and row["busy_ns"] + row["idle_ns"] + row["unrecorded_ns"] == row["span_ns"],
                  f"{bad}: the device's time adds up within the recording", row, recorded)


@case
def tiny_ring_buffer(folder):
    """Batches that found no room: counted by their records' numbers."""
    trace, made, said = launched(folder, "--threads", "8", "--calls", "12000",
                                 options=("--buffer", "64K"))
    gpu = Gpu(trace)
    facts = gpu.json["xsptrace_gpu"]
    got = len(gpu.by["kernel"])
    check(got <= made["kernels"], "more kernels than there were")
    check(got == made["kernels"] or facts["lost_records"] >= made["kernels"] - got,
          "lost kernels that were not counted", got, made["kernels"], facts)
    check(facts["lost_records"] > 0 and "lost on the way" in said, "nothing was lost", facts, said)
    check_arrows(gpu, all_there=False)


@case
def errors_of_the_api(folder):
    out, facts = f"{folder}/e.json", f"{folder}/truth"
    done = xsptrace(*EXTRA, "-o", out, "--", workload("gpu_sim"), "--threads", "1", "--calls", "10",
                    status=None, env=dict(os.environ, XSP_DOUBLE_TRUTH=facts,
                                          XSP_DOUBLE_FAIL="cuMemAlloc_v2:1"))
    bad = [e for e in Trace(out).json["traceEvents"] if "error" in e.get("args", {})]
    equal([e["name"] for e in bad], ["cuMemAlloc_v2"], "calls with an error")
    check(bad[0]["args"]["error"].startswith("CUDA_ERROR_"), "its name", bad)
    check(re.search(r"cuMemAlloc_v2: CUDA_ERROR_\w+ \d+, 1 time", done.stdout),
          "in the summary", done.stdout)


@case
def without_the_agent(folder):
    """Calls and their arguments from outside; one line says what is missing and how to get it."""
    trace, made, said = launched(folder, "--threads", "2", "--calls", "200", "runtime",
                                 env={"CUDA_INJECTION64_PATH": "/nonexistent.so"})
    gpu = Gpu(trace)
    check_calls(gpu, made)
    equal(gpu.by["kernel"] + gpu.starts + gpu.ends, [], "activity out of nothing")
    check("is left so" in said, "the variable was set", said)
    equal(said.count("GPU activity was not collected"), 1, "the line")
    launches = [e for c in APIS for e in gpu.by[c] if "Launch" in e["name"] and "grid" in e["args"]]
    check(len(launches) > 700, "launches with a grid", len(launches))
    equal({e["args"]["block"][0] for e in launches if "Graph" not in e["name"]} - {64}, {128}, "block")
    # a runtime call encloses its driver call
    rows = collections.defaultdict(list)
    for e in gpu.by["cuda_runtime"]:
        rows[e["tid"]].append(e)
    for e in gpu.by["cuda_driver"]:
        if e["name"] == "cuLaunchKernelEx":
            check(any(inside(e, r) for r in rows[e["tid"]]), "a driver call outside", e)


@case
def gpu_off_and_apis(folder):
    trace, made, said = launched(folder, "--threads", "1", "--calls", "100", "runtime",
                                 options=("--gpu=off", "--cuda-api", "runtime"))
    gpu = Gpu(trace)
    equal((len(gpu.by["cuda_driver"]), len(gpu.by["kernel"])), (0, 0), "driver calls, kernels")
    equal(gpu.counted()["cudaLaunchKernel"], made["calls"]["cudaLaunchKernel_v7000"], "launches")
    check("not collected" not in said, "asked not to", said)


@case(quiet="the first milliseconds of a program, in which the agent gets ready")
def gpu_only(folder):
    """No call is a span. CUPTI's records of calls may begin after the first launches, but not each time."""
    for _ in range(3):
        trace, made, _ = launched(folder, "--threads", "2", "--calls", "200", "runtime", options=("--gpu-only",))
        gpu = Gpu(trace)
        check_counts(gpu, made)
        check_arrows(gpu)
        equal(gpu.ops, {}, "ops")
        if gpu.counted()["cudaLaunchKernel"] == made["calls"]["cudaLaunchKernel_v7000"]:
            return
    check(False, "calls, as CUPTI tells them", gpu.counted()["cudaLaunchKernel"], made["calls"])


@case
def kernel_names_from_outside(folder):
    """Without CUPTI: by the host functions' symbols, and by handles as calls gave them out."""
    op_of = list(KERNEL_OF)
    for api in ("driver", "runtime"):
        trace, made, _ = launched(folder, "--threads", "4", "--calls", "200", api, tag=api,
                                  options=("--gpu=off",))
        gpu = Gpu(trace)
        launches = [e for c in APIS for e in gpu.by[c]
                    if "Launch" in e["name"] and "Graph" not in e["name"]]
        wrong = []
        for e in launches:
            op = gpu.ops.get(e["args"].get("External id"))
            name = e["args"]["kernel"]
            # gpu_sim's host functions are called stub_0 ...; outside of ops a graph is captured
            wanted = {KERNEL_OF[op["name"]], f"stub_{op_of.index(op['name'])}"} if op else \
                {KERNEL_OF["sim::graph"]}
            if name not in wanted:
                wrong.append((e["name"], name, wanted))
        check(not wrong, "kernels under wrong names", *wrong[:5])
        check(len(launches) >= sum(made["names"].values()) - made["in_graphs"], "launches")


MEMORY = r"""
import ctypes, json, sys, threading, time
def own_pages_of_code(library):  # breakpoints make pages the process's own: probes come a moment after a library
    kib, code = 0, False
    for line in open("/proc/self/smaps"):
        words = line.split()
        if words[0] == "Anonymous:": kib += code * int(words[1])
        elif not words[0].endswith(":"): code = "x" in words[1] and library in words[-1]
    return kib
rt = ctypes.CDLL(sys.argv[1] + "/cuda13/libcudart.so.13")
cu = ctypes.CDLL(sys.argv[1] + "/cuda13/libcuda.so.1")
before = None
while before is None or before != [own_pages_of_code(l) for l in ("/libcudart.so", "/libcuda.so")] or 0 in before:
    before = [own_pages_of_code(l) for l in ("/libcudart.so", "/libcuda.so")]
    time.sleep(0.2)
now, peak, host, made = 0, 0, 0, []
lock = threading.Lock()
def count(n, pinned=False):
    global now, peak, host
    if pinned:
        host += n
        return
    now += n
    peak = max(peak, now)
    made.append(n)
def alloc(name, size, *more):
    p = ctypes.c_void_p()
    with lock:  # the order of the counts is that of the calls
        r = getattr(cu if name.startswith("cu") and not name.startswith("cuda") else rt, name)(
            ctypes.byref(p), ctypes.c_size_t(size), *more)
        assert r == 0, (name, r)
        count(size, "Host" in name)
    return p, size
def free(name, p, *more):
    with lock:
        r = getattr(cu if name.startswith("cu") and not name.startswith("cuda") else rt, name)(
            p[0], *more)
        assert r == 0, (name, r)
        count(-p[1], "Host" in name)
assert cu.cuInit(0) == 0
assert rt.cudaSetDevice(0) == 0
a = alloc("cudaMalloc", 1 << 20)
b = alloc("cudaMalloc", 3 << 20)
h = alloc("cudaMallocHost", 12345)
free("cudaFree", a)
c = alloc("cudaMallocAsync", 777216, None)
free("cudaFreeAsync", c, None)
kept = alloc("cudaMallocManaged", 64 << 10, ctypes.c_uint(1))
def other():  # allocated on one thread, freed on another
    assert rt.cudaSetDevice(0) == 0
    for i in range(50):
        block = alloc("cudaMalloc", 4096 * (i + 1))
        t = threading.Thread(target=free, args=("cudaFree", block))
        t.start()
        t.join()
t = threading.Thread(target=other)
t.start()
t.join()
free("cudaFree", b)
json.dump({"now": now, "peak": peak, "host": host, "made": made}, open(sys.argv[2], "w"))
"""


@case
def memory(folder):
    """Bytes in use from the calls' arguments and results: to the byte, at every moment."""
    script, facts, out = f"{folder}/memory.py", f"{folder}/facts", f"{folder}/m.json"
    with open(script, "w", encoding="utf-8") as f:
        f.write(MEMORY)
    done = xsptrace(*EXTRA, "-e", "cuda", "-o", out, "--", "/usr/bin/python3", script, WORKLOADS,
                    facts)
    made, events = truth(facts), Trace(out).json["traceEvents"]
    used = [e for e in events if e["ph"] == "C" and e["name"] == "GPU memory 0"]
    check(used, "no track of device 0", {e["name"] for e in events if e["ph"] == "C"})
    used.sort(key=lambda e: e["ts"])
    want, total = [], 0
    for n in made["made"]:
        total += n
        want.append(total)
    equal([e["args"]["bytes"] for e in used], want, "bytes in use after each call")
    equal((max(want), want[-1]), (made["peak"], made["now"]), "the program's own sums")
    marks = sorted((e for e in events if e["name"] == "[memory]"), key=lambda e: e["ts"])
    equal([e["args"]["Bytes"] for e in marks if e["args"]["Device Type"] == 1], made["made"],
          "[memory] events")
    host = [e["args"]["bytes"] for e in events if e["ph"] == "C" and "host" in e["name"]]
    equal(host, [12345], "pinned memory of the host")
    check(re.search(r"GPU memory of device 0, .* at most, 64\.0 KiB at its end", done.stdout),
          "in the summary", done.stdout)


def perfetto(trace, *queries):
    program = os.path.join(ROOT, "tests/consumers/perfetto.mjs")
    if shutil.which("node") is None:
        raise Skip("no node")
    done = run(["node", program, trace, *queries], timeout=100)
    if done.returncode != 0 and ("ENOENT" in done.stderr or "skipped: npm" in done.stderr):
        raise Skip("Perfetto's engine is not there (tests/consumers/fetch)")
    equal(done.returncode, 0, f"perfetto: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@case
def perfetto_draws_the_arrows(folder):
    trace, made, _ = launched(folder, "--threads", "4", "--calls", "200", "runtime")
    rows = perfetto(f"{folder}/run.json",
                    "select s.category as a, e.category as b, count(*) as n from flow f "
                    "join slice s on f.slice_out = s.id join slice e on f.slice_in = e.id "
                    "group by 1, 2",
                    "select count(*) as n from slice where category = 'kernel'",
                    "select name, value from stats where severity = 'error' and value > 0 and "
                    "name like '%flow%'",
                    "select count(*) as n from slice s where category = 'gpu_user_annotation'")
    flat = [r for part in rows for r in (part if isinstance(part, list) else [part])]
    arrows = {(r["a"], r["b"]): r["n"] for r in flat if "a" in r}
    equal(sum(n for (a, b), n in arrows.items() if b == "kernel"), made["kernels"],
          "arrows to kernels")
    check(all(a in APIS for a, _ in arrows), "where arrows begin", arrows)
    check({"n": made["kernels"]} in flat, "kernels in Perfetto", flat)
    equal([r for r in flat if "value" in r], [], "Perfetto's errors about flows")


@case(long="a million launches")
def a_million(folder):
    """1,000,000 kernels on 8 streams from 8 threads, with graphs."""
    facts, out = f"{folder}/truth", f"{folder}/out.json"
    xsptrace("--buffer", "512M", "-o", out, "--summary=none", "--", workload("gpu_sim"), "--threads",
             "8", "--calls", "80000", "--rate", "40000", timeout=300,
             env=dict(os.environ, XSP_DOUBLE_TRUTH=facts))
    made = truth(facts)
    check(made["kernels"] >= 1000000, "a million", made["kernels"])
    names, wrong, unlinked, last = collections.Counter(), 0, 0, {}
    ops = {}
    with open(out, encoding="utf-8") as f:
        for line in f:  # an event a line: the whole does not fit into memory
            if line.startswith('{"ph":"X","cat":"user_annotation"'):
                e = json.loads(line.rstrip(",\n"))
                ops[e["args"]["External id"]] = e["name"]
            elif line.startswith('"xsptrace_gpu"'):
                last = json.loads("{" + line.rstrip(",\n") + "}")["xsptrace_gpu"]
    with open(out, encoding="utf-8") as f:
        for line in f:
            if not line.startswith('{"ph":"X","cat":"kernel"'):
                continue
            e = json.loads(line.rstrip(",\n"))
            names[e["name"]] += 1
            op = ops.get(e["args"].get("External id"))
            unlinked += op is None
            wrong += op is not None and KERNEL_OF[op] != e["name"]
    equal(sum(names.values()), made["kernels"], "kernels")
    equal((wrong, unlinked), (0, 0), "kernels of the wrong op, of none")
    equal((last["lost_records"], last["unlinked"]), (0, 0), "losses")


@case
def more_calls_that_do_not_return_than_there_is_room_for(folder):
    """What a call writes is read when it returns. Where the table that keeps the pointer is full, as many are
    counted as have no address; threads that ended in a call take no room."""
    room = 8192
    for stay, others in (([], room + 800), (["stay"], 100), (["stay"], room + 100)):
        out, facts = f"{folder}/t.json", f"{folder}/truth"
        done = xsptrace(*EXTRA, "-e", "cuda", "-o", out, "--", workload("leavers"), "--calls", others, "--out", facts,
                        *stay)
        trace = Trace(out)
        calls = [e for e in trace.json["traceEvents"] if e["ph"] == "X" and e["name"] == "cudaMalloc"]
        untracked = max(0, others + 10 - room) if stay else 0
        equal(len(calls), truth(facts)["calls"]["cudaMalloc"], "calls")
        equal(sum("address" in e["args"] for e in calls), 0 if untracked else 10, "calls with an address")
        equal(trace.lost(), {"untracked": untracked} if untracked else {}, "losses")
        check(not untracked or f"lost: {untracked} calls not followed (table full)" in done.stdout, "the summary",
              done.stdout)


main()
