# SPDX-License-Identifier: BSD-2-Clause
"""The agent in the target, on simulated CUDA and CUPTI, without BPF: a preloaded library stands in
for the kernel and the tracer (tests/doubles/gpu_collect.c). The truth: what the simulated driver
and CUPTI counted themselves."""
import ctypes
import glob
import json
import os
import re
import subprocess
import time

from harness import (ROOT, WORKLOADS, Skip, case, check, equal, main, run, start, truth, wait_for,
                     workload)

AGENT = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")
COLLECT = os.path.join(WORKLOADS, "libgpu_collect.so")
CUPTI_HEADER = "/usr/local/cuda/include/cupti.h"


class Run:
    """One run of a program with the agent; `plan`: see gpu_collect.c."""

    def __init__(self, folder, command, plan=None, want="", agent=True, wait=True, timeout=120,
                 tag="run", **environment):
        self.out = os.path.join(folder, f"{tag}.batches")
        self.truth_path = os.path.join(folder, f"{tag}.truth")
        self.environment = dict(os.environ, XSP_DOUBLE_TRUTH=self.truth_path,
                                XSP_COLLECT_OUT=self.out, XSP_COLLECT_WANT=want,
                                LD_PRELOAD=COLLECT)
        if plan:
            self.environment["XSP_COLLECT_PLAN"] = plan
        if agent:
            self.environment["CUDA_INJECTION64_PATH"] = AGENT
        self.environment.update({k: str(v) for k, v in environment.items()})
        self.command = [str(c) for c in command]
        if wait:
            self.done = run(self.command, env=self.environment, timeout=timeout)

    def ended_well(self):
        equal(self.done.returncode, 0, f"status of {' '.join(self.command)}\n{self.done.stderr}")
        return self

    def got(self):
        """What arrived."""
        done = run([workload("gpu_check"), self.out])
        equal(done.returncode, 0, "gpu_check")
        self.check = json.loads(done.stdout)
        equal(self.check["bad"], 0, "bad batches")
        equal(self.check["lost"], 0, "records lost between the batches")
        equal(self.check["backwards"], 0, "spans that end before they start")
        check(self.check["biggest"] <= 8152, "a batch that is too big", self.check["biggest"])
        return self.check

    def driver(self):
        return truth(self.truth_path)

    def cupti(self):
        made = truth(self.truth_path + ".cupti")
        equal((made["violations"], made["violation"]), (0, ""), "misuse of CUPTI")
        return made


def sim(*arguments, cuda=13):
    return [workload("gpu_sim" if cuda == 13 else "gpu_sim12"), *arguments]


PLAIN = ("--threads", "4", "--calls", "4000")
KINDS = {"kernels": "kernel", "memcpys": "memcpy", "memsets": "memset", "syncs": "sync"}


def check_all_there(r, graphs=True):
    """Every record that CUPTI made arrived, and every kernel that ran has one, under its name."""
    got, made, ran = r.got(), r.cupti(), r.driver()
    dropped = made["dropped_by_kind"]
    for mine, theirs in KINDS.items():
        equal(got[mine], made["made"].get(theirs, 0) - dropped.get(theirs, 0), mine)
    equal(got["dropped_cupti"], made["dropped"], "dropped by CUPTI")
    if not made["dropped"]:
        equal(got["by_name"], ran["names"], "kernels by name")
        equal(got["copied"], ran["memcpys_bytes"] + ran["memcpys_p2p_bytes"], "bytes copied")
        equal(got["set"], ran["memsets_bytes"], "bytes set")
        equal(got["orphans"], 0, "work without its call")
        if graphs:
            equal(got["graph_nodes"], ran["in_graphs"] * 10 // 11, "kernels of graphs")
    return got, made, ran


# ---- all of it -----------------------------------------------------------------------


def million(folder, api):
    # per 8 rounds: 7 launches and a graph of 10 kernels
    r = Run(folder, sim("--threads", "8", "--calls", "58824", api, "streams=8", "graphs=8")
            ).ended_well()
    got, _, ran = check_all_there(r)
    check(got["kernels"] >= 1000000, "fewer than a million kernels", got["kernels"])
    # each launch has its call: by function, as the simulated driver counted them
    for name, count in got["by_call"].items():
        equal(count, ran["calls"][name], f"calls of {name}")
    equal(got["malformed"], 0, "malformed")
    equal(got["states"], ["active", "exiting"], "states")
    # the agent sends names once a second, not with each kernel
    check(got["names"] < 400, "names told", got["names"])
    equal(got["first_ns"] > time.monotonic_ns() - 200e9, True, "the clock is CLOCK_MONOTONIC")
    check(got["last_ns"] < time.monotonic_ns(), "the clock is CLOCK_MONOTONIC")


@case
def million_kernels_driver(folder):
    million(folder, "driver")


@case
def million_kernels_runtime(folder):
    million(folder, "runtime")


@case
def unordered_records(folder):
    check_all_there(Run(folder, sim(*PLAIN, "runtime"), XSP_DOUBLE_SHUFFLE=3000).ended_well())


@case
def dropped_records(folder):
    r = Run(folder, sim(*PLAIN), XSP_DOUBLE_DROP=97).ended_well()
    got, made, _ = check_all_there(r)
    check(made["dropped"] > 100, "nothing was dropped")
    equal(got["dropped_cap"] + got["malformed"], 0, "other drops")


@case
def cuda_12(folder):
    got, _, _ = check_all_there(Run(folder, sim(*PLAIN, "runtime", cuda=12)).ended_well())
    equal((got["api_version"], got["runtime_version"]), (28, 12000), "versions")


@case
def record_versions(folder):
    """Kernel records from the first that is read to the newest, by CUPTI's version."""
    for api, size in ((24, 144), (26, 176), (27, 208), (130001, 216), (139999, 248)):
        r = Run(folder, sim(*PLAIN), tag=f"v{size}", XSP_DOUBLE_CUPTI_API=api,
                XSP_DOUBLE_KERNEL_SIZE=size).ended_well()
        # the graph's id comes after the end of the oldest record
        got, _, _ = check_all_there(r, graphs=size > 144)
        equal(got["graph_nodes"] > 0, size > 144, f"graph ids in records of {size} bytes")


@case
def optional_kinds(folder):
    r = Run(folder, sim(*PLAIN, "runtime"), want="memory,latency,all_api").ended_well()
    got, made, ran = check_all_there(r)
    equal(got["memory"], made["made"]["memory"], "memory records")
    equal(got["allocated"], got["released"], "allocated and released")
    equal(got["latency"], got["kernels"], "kernels with queued and submitted times")
    check("cuModuleGetFunction" in got["by_call"], "calls that start nothing", got["by_call"])
    r = Run(folder, sim(*PLAIN), want="graphs", tag="graphs").ended_well()
    equal(r.got()["graphs"], r.driver()["graph_launches"], "graph launches")
    r = Run(folder, sim(*PLAIN), tag="none").ended_well()
    got = r.got()
    equal((got["memory"], got["graphs"], got["events"], got["latency"]), (0, 0, 0, 0), "kinds")
    check("cuModuleGetFunction" not in got["by_call"], "calls that start nothing", got["by_call"])


@case
def several_devices(folder):
    r = Run(folder, sim(*PLAIN, "devices=3"), XSP_DOUBLE_DEVICES=4).ended_well()
    got, _, _ = check_all_there(r)
    equal(got["devices"], [f"{i}:Simulated GPU {i}:9.0:132:85899345920" for i in range(4)],
          "devices")
    equal(got["contexts"], 3, "contexts")


@case
def failing_calls(folder):
    """A launch that fails has its call with the error, and no kernel."""
    r = Run(folder, sim(*PLAIN, "graphs=0", "plain"), XSP_DOUBLE_FAIL="cuLaunchKernelEx:100")
    r.ended_well()
    got, _, ran = check_all_there(r)
    check(ran["errors"]["cuLaunchKernelEx"] > 100, "calls did not fail", ran["errors"])
    equal(got["by_call"]["cuLaunchKernelEx"], ran["calls"]["cuLaunchKernelEx"], "calls")


# ---- on and off ----------------------------------------------------------------------


@case
def windows(folder):
    """Raised and lowered three times: each time all of it is there, and between nothing is on."""
    command = sim("--threads", "3", "--seconds", "3", "--rate", "4000")
    r = Run(folder, command, plan="300:800,1200:1700,2100:2600").ended_well()
    got, made = r.got(), r.cupti()
    equal(got["windows"], 3, "windows")
    equal(got["states"], ["starting", "active", "stopped"] * 3, "states")
    equal(got["kernels"], made["made"]["kernel"], "kernels")
    equal(got["orphans"], 0, "kernels without a call")
    equal(made["kinds_on"], 0, "kinds left on")
    check(0.2 < got["kernels"] / r.driver()["kernels"] < 0.8, "a part of the run", got["kernels"])


@case
def launched_program_waits(folder):
    """The tracer is a moment late: with XSPTRACE_GPU_WAIT_MS the first kernel is not missed, and
    without a tracer the program goes on."""
    r = Run(folder, sim(*PLAIN), plan="400:0", XSPTRACE_GPU_WAIT_MS=5000).ended_well()
    check_all_there(r)
    begun = time.monotonic()
    r = Run(folder, sim(*PLAIN), plan="90000:0", tag="late", XSPTRACE_GPU_WAIT_MS=500).ended_well()
    check(0.5 < time.monotonic() - begun < 30, "waited", time.monotonic() - begun)


@case
def tracer_killed(folder):
    """The counters fall all at once, at any moment: the program does not notice."""
    command = sim("--threads", "4", "--calls", "20000")
    expected = Run(folder, command, agent=False, tag="alone").ended_well().done.stdout
    for i in range(20):
        r = Run(folder, command, plan=f"{1 + 7 * i}:{12 + 14 * i},{200 + 9 * i}:{300 + 10 * i}",
                tag=f"killed{i}", XSP_COLLECT_KILL=1, XSP_DOUBLE_SHUFFLE=100).ended_well()
        equal(r.done.stdout, expected, "the program's output")
        if os.path.exists(r.truth_path + ".cupti"):
            r.cupti()


@case
def idle_after_the_window(folder):
    """When the window is over, the program is as fast as before it (rounds in the same time)."""
    r = Run(folder, sim("--threads", "2", "--seconds", "60"), plan="300:1300", wait=False)
    child = start(r.command, env=r.environment, stdout=subprocess.DEVNULL)
    before = cpu_of_agent(child.pid)
    time.sleep(1.3)
    check(cpu_of_agent(child.pid) > before, "the agent did nothing")

    def idle():
        begun = cpu_of_agent(child.pid)
        time.sleep(1)
        return cpu_of_agent(child.pid) - begun < 2_500_000
    # on a busy machine the last flush takes its time
    wait_for(idle, 15, "an agent that is idle again")
    child.terminate()
    equal(child.wait(10), 0, "status")
    made = r.cupti()
    equal(made["kinds_on"], 0, "kinds left on")
    equal(r.got()["kernels"], made["made"]["kernel"], "kernels")


def agent_thread(pid):
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(f"{task}/comm", encoding="ascii") as f:
                if f.read().strip() == "xsptrace-agent":
                    return task
        except OSError:
            pass
    return None


def cpu_of_agent(pid):
    """ns that the agent's thread has run."""
    task = wait_for(lambda: agent_thread(pid), 5, "the agent's thread")
    with open(f"{task}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


@case
def idle_cost(folder):
    """Nobody traces: a wake-up each 100 ms and nothing else."""
    r = Run(folder, sim("--threads", "2", "--seconds", "30", "--rate", "1000"), plan="90000:0",
            wait=False)
    child = start(r.command, env=r.environment, stdout=subprocess.DEVNULL)
    task = wait_for(lambda: agent_thread(child.pid), 5, "the agent's thread")
    time.sleep(0.3)
    before, begun = cpu_of_agent(child.pid), time.monotonic()
    time.sleep(2)
    spent, seconds = cpu_of_agent(child.pid) - before, time.monotonic() - begun
    print(f"idle agent: {spent * 1e-7 / seconds:.4f}% of one core")
    check(spent < 2_000_000 * seconds, f"{spent / 1e6} ms in {seconds:.1f} s")
    with open(f"{task}/status", encoding="ascii") as f:
        status = f.read()
    # all but SIGKILL, SIGSTOP and the two that the C library keeps for itself
    blocked = int(re.search(r"SigBlk:\s*([0-9a-f]+)", status)[1], 16)
    equal(blocked | 1 << 8 | 1 << 18 | 3 << 31, 0xffffffffffffffff, "blocked signals")
    with open(f"/proc/{child.pid}/maps", encoding="ascii") as f:
        check("libcupti" not in f.read(), "libcupti was loaded though nobody asked")
    child.kill()


# ---- trouble -------------------------------------------------------------------------


@case
def slow_cold_start(folder):
    r = Run(folder, sim("--threads", "2", "--seconds", "2.5", "--rate", "2000"), plan="300:0",
            XSP_DOUBLE_COLD_MS=1000).ended_well()
    got = r.got()
    equal(got["states"], ["starting", "active", "exiting"], "states")
    check(got["start_cost_ns"] > 1e9, "the cost of the start is told", got["start_cost_ns"])
    check(got["kernels"] > 1000, "kernels after the start", got["kernels"])


@case
def exit_during_cold_start(folder):
    begun = time.monotonic()
    r = Run(folder, sim("--threads", "2", "--seconds", "1", "--rate", "2000"), plan="500:0",
            XSP_DOUBLE_COLD_MS=2000).ended_well()
    check(time.monotonic() - begun < 20, "the exit took too long")
    r.cupti()
    equal(r.got()["states"], ["starting", "exiting"], "states")


@case
def exit_in_the_middle(folder):
    """exit() while threads launch and a flush is under way."""
    for i in range(12):
        r = Run(folder, sim("--threads", "4", "--seconds", f"0.{i}5", "quit"), tag=f"quit{i}",
                XSP_DOUBLE_FLUSH_MS=20 * (i % 4)).ended_well()
        equal(r.done.stdout, '{"quit":true}\n', "the program's output")
        r.cupti()
        equal(r.got()["states"][-1], "exiting", "last state")


@case
def hanging_flush(folder):
    """A driver that never answers does not keep the program from its exit."""
    begun = time.monotonic()
    r = Run(folder, sim("--threads", "1", "--calls", "1000"), XSP_DOUBLE_FLUSH_MS=30000)
    r.ended_well()
    check(time.monotonic() - begun < 25, "the exit waited for ever")


@case
def fork_after_start(folder):
    r = Run(folder, sim(*PLAIN, "forkafter")).ended_well()
    got, _, _ = check_all_there(r)
    equal(got["windows"], 1, "windows: the child's agent is idle")


@case
def another_profiler(folder):
    for cuda, name in ((13, "CUPTI for Nsight Systems"), (12, "")):
        r = Run(folder, sim(*PLAIN, cuda=cuda), tag=f"held{cuda}",
                XSP_DOUBLE_SUBSCRIBER="Nsight Systems").ended_well()
        got, made = r.got(), r.cupti()
        equal(got["errors"], [f"4:39:fatal:{name}"], "errors")
        equal(got["states"], ["failed", "exiting"], "states")
        equal((got["kernels"], made["kinds_on"], made["made"]), (0, 0, {}), "collected")
    r = Run(folder, sim(*PLAIN), tag="shared", want="shared",
            XSP_DOUBLE_SUBSCRIBER="Nsight Systems").ended_well()
    check_all_there(r)


@case
def cupti_says_no(folder):
    for function, code, state, words in (
            ("cuptiActivityEnable", 35, "failed", "INSUFFICIENT_PRIVILEGES"),
            ("cuptiActivityRegisterCallbacks", 1, "failed", "cuptiActivityRegisterCallbacks"),
            ("cuptiActivityRegisterTimestampCallback", 1, "failed", "Timestamp"),
            ("cuptiSetThreadIdType", 27, "failed", "cuptiSetThreadIdType"),
            ("cuptiActivityEnableRuntimeApi", 999, "active", "runtime API"),
            ("cuptiActivityFlushAll", 999, "active", None),
            ("cuptiActivityGetNumDroppedRecords", 999, "active", None),
            ("cuptiActivityGetNextRecord", 999, "active", None)):
        r = Run(folder, sim(*PLAIN), tag=function, XSP_DOUBLE_CUPTI_FAIL=f"{function}:{code}")
        r.ended_well()
        got = r.got()
        equal(got["states"][0], state, f"state when {function} fails")
        equal(any(words in e for e in got["errors"]) if words else not got["errors"], True,
              f"{function}: errors {got['errors']}")
        equal(r.cupti()["kinds_on"], 0, "kinds left on")


@case
def no_cupti(folder):
    """The process has no libcupti (the machine's own does not help: it is loaded, and reports its end)."""
    for name in ("gpu_sim", "cuda13/libcuda.so.1", "cuda13/libcudart.so.13"):
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        done = run(["cp", os.path.join(WORKLOADS, name), target])
        equal(done.returncode, 0, "cp")
    r = Run(folder, [os.path.join(folder, "gpu_sim"), *PLAIN]).ended_well()
    got = r.got()
    check(got["kernels"] == 0 and got["states"] in (["failed"], ["failed", "exiting"]), "collected", got)
    check(got["errors"][0].split(":")[0] in "136", "error", got["errors"])


@case
def malformed_records(folder):
    r = Run(folder, sim(*PLAIN), XSP_DOUBLE_GARBAGE=5000).ended_well()
    check_all_there(r)


@case
def incomplete_records(folder):
    """What is still running at the end hides nothing before it, and is counted."""
    r = Run(folder, sim(*PLAIN), XSP_DOUBLE_INCOMPLETE=1).ended_well()
    got, _, _ = check_all_there(r)
    check(got["malformed"] >= 1, "malformed", got["malformed"])


@case
def buffers_at_their_limit(folder):
    """2 MiB of buffers and a slow reader: what does not fit is counted by CUPTI, to the last one;
    a CUPTI that would crash without a buffer gets one."""
    command = sim("--threads", "8", "--calls", "20000", "plain")
    r = Run(folder, command, XSPTRACE_GPU_BUFFER_MB=2, XSP_DOUBLE_SLOTS=8).ended_well()
    got, made, _ = check_all_there(r)
    check(made["refused"] and made["dropped"], "the limit was not reached", made)
    check(got["buffer_bytes"] < 3 << 20, "memory", got["buffer_bytes"])
    r = Run(folder, command, tag="old", XSPTRACE_GPU_BUFFER_MB=2, XSP_DOUBLE_SLOTS=8,
            XSP_DOUBLE_CUPTI_API=24, XSP_DOUBLE_KERNEL_SIZE=208).ended_well()
    _, made, _ = check_all_there(r)
    equal((made["refused"], made["dropped"]), (0, 0), "refused, dropped")


@case
def exceptions_and_signals(folder):
    # it has no runtime library: libcupti is found by the toolkit's folder
    os.symlink(os.path.join(WORKLOADS, "cuda13"), os.path.join(folder, "lib64"))
    r = Run(folder, [workload("gpu_throw")], CUDA_HOME=folder).ended_well()
    got, _, _ = check_all_there(r, graphs=False)
    equal(json.loads(r.done.stdout)["caught"], 1000, "exceptions caught")
    check(got["kernels"] > 1000, "kernels", got["kernels"])


# ---- the library itself --------------------------------------------------------------


@case
def what_the_library_exports(folder):
    done = run(["readelf", "-dW", AGENT])
    equal(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout), ["libc.so.6"], "needed")
    check("NODELETE" in done.stdout, "the library may be unloaded", done.stdout)
    names = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", AGENT]
                                              ).stdout.splitlines()}
    wants = ["activity", "memory", "events", "markers", "graphs", "latency", "all_api", "shared"]
    expected = {"InitializeInjection", "xsp_agent_start", "xsp_gpu_batch", "xsp_gpu_batch_semaphore",
                "xsp_agent_want_callbacks", "xsp_agent_want_callbacks_semaphore",
                "xsp_agent_want_operators", "xsp_agent_want_operators_semaphore", "xsp_agent_want_regions",
                "xsp_agent_want_regions_semaphore"}
    for want in wants:
        expected |= {f"xsp_gpu_want_{want}", f"xsp_gpu_want_{want}_semaphore"}
    equal(names, expected, "exports")
    if os.uname().machine != "x86_64":
        return
    for function in expected:
        if function.startswith("xsp_") and not function.endswith(("semaphore", "start")):
            code = run(["objdump", "-d", f"--disassemble={function}", AGENT]).stdout
            check("0f 1f 44 00 00" in code.split(f"<{function}>:")[1].splitlines()[1],
                  f"{function} does not begin with the 5-byte nop", code)


@case
def started_by_hand(folder):
    """The way of --inject: the library is loaded later, and xsp_agent_start called."""
    copy = os.path.join(folder, "libxsptrace_agent.so")
    equal(run(["cp", AGENT, copy]).returncode, 0, "cp")
    code = ("import ctypes, sys, time\n"
            "a = ctypes.CDLL(sys.argv[1])\n"
            "print(a.xsp_agent_start(), a.xsp_agent_start(), a.InitializeInjection())\n"
            "time.sleep(0.3)\n"
            "names = [open(f'/proc/self/task/{t}/comm').read().strip()\n"
            "         for t in __import__('os').listdir('/proc/self/task')]\n"
            "print(names.count('xsptrace-agent'))\n"
            "print(ctypes.CDLL(sys.argv[2]).xsp_agent_start())\n")
    done = run(["/usr/bin/python3", "-c", code, AGENT, copy], env=dict(os.environ))
    # a second copy from another file says EALREADY
    equal(done.stdout, "0 0 1\n1\n-114\n", f"entry points {done.stderr}")


@case
def real_headers(folder):
    """Layouts and numbers against NVIDIA's own headers, where there are any."""
    if not os.path.exists(CUPTI_HEADER):
        raise Skip("no CUDA headers here")
    for source, extra in (("check_headers.c", []), ):
        done = run(["cc", "-std=gnu17", "-fsyntax-only", "-Wall", "-Werror",
                    f"-I{os.path.dirname(CUPTI_HEADER)}", f"-I{ROOT}/include", f"-I{ROOT}/user",
                    *extra, f"{ROOT}/tests/doubles/{source}"])
        equal(done.returncode, 0, f"{source}\n{done.stderr}")


@case
def real_libcupti(folder):
    """The calls that are chosen, by the names that NVIDIA's library has for them."""
    path = "/usr/local/cuda/lib/libcupti.so.13"
    if not os.path.exists(path):
        raise Skip("no libcupti here")
    library = ctypes.CDLL(path)
    names = {1: [], 2: []}
    for domain in names:
        for cbid in range(2048):
            text = ctypes.c_char_p()
            if library.cuptiGetCallbackName(domain, cbid, ctypes.byref(text)) == 0 and text.value:
                names[domain].append(text.value.decode())
    check(len(names[1]) > 700 and len(names[2]) > 400, "names", len(names[1]), len(names[2]))
    with open(f"{ROOT}/user/agent/apis.c", encoding="utf-8") as f:
        prefixes = re.findall(r'"((?:__)?cu\w+)"', f.read())
    chosen = [n for d in names for n in names[d] if n.startswith(tuple(prefixes))]
    for prefix in prefixes:
        check(any(n.startswith(prefix) for n in chosen), f"{prefix} chooses nothing")
    # every way to launch, copy and set, and no more than half of all
    for n in names[1] + names[2]:
        if re.match(r"(__)?cu(da)?(Launch(?!HostFunc)|GraphLaunch|Memcpy|Memset)", n):
            check(n in chosen, f"{n} is not chosen")
    check(len(chosen) < (len(names[1]) + len(names[2])) / 2, "too many are chosen", len(chosen))


if __name__ == "__main__":
    for needed in (AGENT, COLLECT):
        check(os.path.exists(needed), f"{needed} is not built")
    main(traces=False)
