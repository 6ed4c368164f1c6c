# SPDX-License-Identifier: BSD-2-Clause
"""The agent and the tracer together, where one of them or the program comes to a bad end: the
program does not notice. Simulated CUDA and CUPTI; the truth is the simulation's own."""
import json
import os
import random
import signal
import statistics
import subprocess
import time

from harness import (WORKLOADS, XSPTRACE, Recording, Trace, case, check, equal, finish, main, run,
                     start, start_ready, truth, wait_for, workload, xsptrace)

AGENT = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")


def with_agent(folder, tag="run"):
    path = os.path.join(folder, f"{tag}.truth")
    return dict(os.environ, CUDA_INJECTION64_PATH=AGENT, XSP_DOUBLE_TRUTH=path), path


def cupti(path):
    """What CUPTI's double counted, and that it was not misused and is off."""
    made = truth(path + ".cupti")
    equal((made["violations"], made["violation"]), (0, ""), "misuse of CUPTI")
    return made


def wait_on(path, seconds=10):
    """Until the agent has switched on all of CUPTI that it wants."""
    wait_for(lambda: os.path.exists(f"{path}.on"), seconds, "the agent to collect")


def gpu_of(trace):
    facts = trace.json["xsptrace_gpu"]
    equal((facts["lost_records"], facts["malformed"], facts["errors"]), (0, 0, 0), "GPU losses")
    return facts


def kernels(trace):
    return sum(e.get("cat") == "kernel" for e in trace.json["traceEvents"])


@case
def gpu_records(folder):
    """The least that must work everywhere: the counter rises, batches come, the last one too."""
    environment, path = with_agent(folder)
    command = [workload("gpu_sim"), "--wait", "--threads", "2", "--calls", "1500"]
    child = start_ready(command, env=environment, stdout=subprocess.DEVNULL)
    out = f"{folder}/all.json"
    with Recording(folder, "-p", child.pid, "--gpu-only", "-o", out) as recording:
        wait_on(path)
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status")
        recording.wait()
    made = cupti(path)
    equal(kernels(Trace(out)), made["made"]["kernel"], "kernels")
    equal(gpu_of(Trace(out))["windows_without_end"], 0, "windows without an end")


@case(long="many killed tracers")
def tracers_killed(folder):
    """20 tracers, each killed at a random moment of its work; then one that is not."""
    command = [workload("gpu_sim"), "--threads", "4", "--calls", "8000", "--rate", "1000"]
    alone = run(command, env=dict(os.environ), timeout=60)
    chance = random.Random(20)
    killed, runs = 0, 0
    while killed < 20:
        runs += 1
        environment, path = with_agent(folder, f"run{runs}")
        child = start(command, env=environment, stdout=subprocess.PIPE)
        while child.poll() is None and killed < 20:
            with open(os.path.join(folder, "killed.log"), "wb") as log:
                tracer = start([XSPTRACE, "-p", child.pid, "-o", f"{folder}/{killed}.xspt"],
                               stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.02, 0.4))
            tracer.kill()
            tracer.wait()
            killed += 1
        out, _ = child.communicate(timeout=60)
        equal((child.returncode, out.decode()), (0, alone.stdout), "the program's output")
        if os.path.exists(path + ".cupti"):  # else no tracer lived long enough
            equal(cupti(path)["kinds_on"], 0, "kinds that were left on")
    environment, path = with_agent(folder, "last")
    child = start(command, env=environment, stdout=subprocess.DEVNULL)
    for _ in range(3):
        tracer = start([XSPTRACE, "-q", "-p", child.pid, "-o", f"{folder}/before.xspt"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        tracer.kill()
        tracer.wait()
    xsptrace("-p", child.pid, "-d", "1", "-o", f"{folder}/last.json")
    check(kernels(Trace(f"{folder}/last.json")) > 1000, "the last tracer saw kernels")
    gpu_of(Trace(f"{folder}/last.json"))
    equal(finish(child), 0, "status")


@case(quiet="the CPU time of a round before and after", long="a program is timed twice")
def as_fast_as_before(folder):
    """Two seconds after the tracer was killed, the program runs as fast as before it came."""
    environment, path = with_agent(folder)
    environment["XSP_DOUBLE_KERNEL_NS"] = "100"  # the program is what takes time, not the GPU
    child = start([workload("gpu_sim"), "--threads", "1", "--seconds", "60", "rates", "plain"],
                  env=environment, stdout=subprocess.PIPE)
    time.sleep(1.5)
    with Recording(folder, "-p", child.pid, "-o", f"{folder}/killed.xspt") as recording:
        time.sleep(1.2)
        recording.stop(signal.SIGKILL)
        recording.process.wait()
    time.sleep(3.5)
    child.terminate()
    out, _ = child.communicate(timeout=60)
    rates = json.loads(out)["rates"]
    # CPU time a round, ten times a second: without other work of this machine
    before, after = (statistics.median(part) for part in (rates[3:13], rates[-14:-2]))
    print(f"CPU time a round: before {before} ns, traced up to {max(rates)} ns, after {after} ns")
    check(after < before * 1.5, "slower than before", rates)  # a trap that stays is five times as much
    equal(cupti(path)["kinds_on"], 0, "kinds that were left on")


@case
def two_tracers(folder):
    """Both see the kernels of their time with names; the first one's end is not the second's."""
    environment, path = with_agent(folder)
    child = start([workload("gpu_sim"), "--threads", "2", "--seconds", "60", "--rate", "1000"],
                  env=environment, stdout=subprocess.DEVNULL)
    with Recording(folder, "-p", child.pid, "--gpu-only", "-o", f"{folder}/a.json", name="a") as a:
        wait_on(path)
        with Recording(folder, "-p", child.pid, "--gpu-only", "-o", f"{folder}/b.json", name="b") as b:
            time.sleep(1)
            a.stop()
            a.wait()
            time.sleep(1)
            b.stop()
            b.wait()
    child.terminate()
    equal(finish(child), 0, "status")
    equal(cupti(path)["kinds_on"], 0, "kinds that were left on")
    traces = {name: Trace(f"{folder}/{name}.json") for name in "ab"}
    for name, trace in traces.items():
        check(kernels(trace) > 500, f"{name}: {kernels(trace)} kernels")
        equal(trace.json["xsptrace_gpu"]["kernels_without_name"], 0, f"{name}: without a name")
    of = {name: {e["args"]["correlation"] for e in trace.json["traceEvents"] if e.get("cat") == "kernel"} for name, trace in traces.items()}
    check(len(of["a"] & of["b"]) > 500 and of["b"] - of["a"], "both see the same", {name: len(ids) for name, ids in of.items()})


@case
def the_program_exits(folder):
    """exit() in the middle of launches: what CUPTI had made is there, to the last record."""
    for i in range(4):
        environment, path = with_agent(folder, f"exit{i}")
        environment["XSP_DOUBLE_FLUSH_MS"] = str(15 * i)
        out = f"{folder}/exit{i}.json"
        xsptrace("--gpu-only", "-o", out, "--", workload("gpu_sim"), "--threads", "2", "--seconds",
                 "0.6", "--rate", "2000", "quit", env=environment)
        facts = gpu_of(Trace(out))
        equal(facts["windows_without_end"], 0, "windows without an end")
        made = cupti(path)
        check(made["made"]["kernel"] > 200, "kernels", made)
        # those that completed while the process was on its way out, from when its agent had sent the last ones
        check(0 <= made["made"]["kernel"] - kernels(Trace(out)) < max(50, 0.1 * made["made"]["kernel"]), "kernels", made, facts)


@case
def the_program_is_killed(folder):
    """Nothing can be done about what CUPTI still had; the trace says that the end is missing."""
    environment, _ = with_agent(folder)
    child = start([workload("gpu_sim"), "--threads", "2", "--seconds", "60", "--rate", "1000"],
                  env=environment, stdout=subprocess.DEVNULL)
    out = f"{folder}/killed.json"
    with Recording(folder, "-p", child.pid, "--gpu-only", "-o", out) as recording:
        wait_on(environment["XSP_DOUBLE_TRUTH"])
        time.sleep(0.8)  # the agent asks CUPTI for what it has four times a second
        child.kill()
        recording.wait()
    check(kernels(Trace(out)) > 500, "kernels")
    equal(Trace(out).json["xsptrace_gpu"]["windows_without_end"], 1, "windows without an end")


@case
def forks_throws_and_signals(folder):
    environment, path = with_agent(folder, "fork")
    command = [workload("gpu_sim"), "--threads", "4", "--calls", "3000", "forkafter"]
    alone = run(command)
    done = run([XSPTRACE, "-q", "-o", f"{folder}/fork.json", "--", *command],
               env=environment)
    equal((done.returncode, done.stdout), (0, alone.stdout), "the program's output")
    equal(kernels(Trace(f"{folder}/fork.json")), truth(path)["kernels"], "kernels")
    cupti(path)

    environment, path = with_agent(folder, "throw")
    os.symlink(os.path.join(WORKLOADS, "cuda13"), os.path.join(folder, "lib64"))
    environment["CUDA_HOME"] = folder
    done = run([XSPTRACE, "-q", "-o", f"{folder}/throw.json", "--",
                workload("gpu_throw")], env=environment)
    equal((done.returncode, json.loads(done.stdout)), (0, {"caught": 1000, "cancelled": 1}),
          "the program's output")
    equal(kernels(Trace(f"{folder}/throw.json")), 3000, "kernels")
    cupti(path)


@case
def slow_cold_start(folder):
    """CUPTI is slow: the tracer reports it, and has the kernels that come later."""
    environment, path = with_agent(folder)
    environment["XSP_DOUBLE_COLD_MS"] = "1500"
    child = start_ready([workload("gpu_sim"), "--wait", "--threads", "2", "--seconds", "3.5",
                         "--rate", "1000"], env=environment, stdout=subprocess.DEVNULL)
    out = f"{folder}/cold.json"
    with Recording(folder, "-p", child.pid, "--gpu-only", "-o", out) as recording:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status")
        recording.wait()
    made = cupti(path)
    check(made["made"]["kernel"] > 1000, "kernels", made)
    equal(kernels(Trace(out)), made["made"]["kernel"], "kernels")
    gpu_of(Trace(out))


@case
def interrupted_cold_start(folder):
    """Ctrl-C while CUPTI is being loaded does not wait for it."""
    environment, path = with_agent(folder)
    environment["XSP_DOUBLE_COLD_MS"] = "12000"
    child = start([workload("gpu_sim"), "--threads", "2", "--seconds", "14", "--rate", "1000"],
                  env=environment, stdout=subprocess.DEVNULL)
    with Recording(folder, "-p", child.pid, "-o", f"{folder}/cold.json") as recording:
        time.sleep(1)
        begun = time.monotonic()
        recording.stop()
        recording.wait()
        check(time.monotonic() - begun < 10, "Ctrl-C took", time.monotonic() - begun)
    equal(finish(child), 0, "status")
    equal(cupti(path)["kinds_on"], 0, "kinds that were left on")


@case
def another_profiler(folder):
    """The one line that the user sees, and a program that is left alone."""
    environment, path = with_agent(folder)
    environment["XSP_DOUBLE_SUBSCRIBER"] = "Nsight Systems"
    child = start([workload("gpu_sim"), "--threads", "2", "--seconds", "60", "--rate", "1000"],
                  env=environment, stdout=subprocess.DEVNULL)
    done = xsptrace("-p", child.pid, "-d", "1", "-o", f"{folder}/held.json")
    check("Nsight Systems" in done.stderr + done.stdout, "the holder's name", done.stderr,
          done.stdout)
    child.terminate()
    equal(finish(child), 0, "status")
    made = cupti(path)
    equal((made["kinds_on"], made["made"]), (0, {}), "what CUPTI made")


@case
def many_processes(folder):
    """Each process has an agent of its own; a child that uses CUDA after exec, too."""
    children = []
    for i in range(3):
        environment, path = with_agent(folder, f"many{i}")
        children.append((start_ready([workload("gpu_sim"), "--wait", "--threads", "2", "--calls",
                                      "2000"], env=environment, stdout=subprocess.DEVNULL), path))
    out = f"{folder}/many.json"
    pids = ",".join(str(child.pid) for child, _ in children)
    with Recording(folder, "-p", pids, "--gpu-only", "-o", out) as recording:
        for _, path in children:
            wait_on(path)
        for child, _ in children:
            child.send_signal(signal.SIGUSR1)
        for child, _ in children:
            equal(finish(child), 0, "status")
        recording.wait()
    trace = Trace(out)
    equal(gpu_of(trace)["windows"], 3, "windows")
    equal(kernels(trace), sum(cupti(path)["made"]["kernel"] for _, path in children), "kernels")


if __name__ == "__main__":
    main()
