#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do no harm: a traced program gives the bytes and the status that an untraced one gives."""
import os
import random
import signal
import subprocess
import time

from harness import (AS_ASKED, LONG, NO_BRAKE, TABLE, SCRIPTS, TORCH, XSPTRACE, Recording, Trace, alive, case, check,
                     check_as_shipped, check_calls, equal, finish, main, need_torch, run, start, start_ready, truth,
                     untraced, wait_for, workload, xsptrace)

ROUNDS = 100 if LONG else 12

# Everything in the program itself, not only functions named for tracing.
COMMANDS = {
    "demo": ["demo", "--calls", "200"],
    "fibers": ["fibers", "--calls", "500"],
    "sigaltstack": ["sigaltstack", "--calls", "500"],
    "threadstorm": ["threadstorm", "--calls", "1000"],
    "forker": ["forker", "--calls", "20"],
    "execer": ["execer", "--calls", "200", "3"],
    "dlopener": ["dlopener", "--calls", "40"],
    "annotated": ["annotated", "--calls", "200"],
    "valued": ["valued", "--calls", "200"],
    "tool_values": ["tool_values"],
    "cuda_wrapper": ["cuda_wrapper", "--calls", "300"],
}


def same_output(folder, name, *patterns, declined=()):
    command = [workload(COMMANDS[name][0]), *COMMANDS[name][1:]]
    expected = untraced(command)
    options = [x for p in patterns for x in ("-e", p)]
    out = f"{folder}/trace.json"
    # -q: standard output is the target's alone
    done = xsptrace("-q", *declined, *options, "-o", out, "--", *command)
    equal(done.stdout, expected, f"standard output of {name} traced")
    equal(done.stderr, "", "standard error")
    trace = Trace(out)
    check(trace.spans, "nothing was traced", done.stderr)
    check_as_shipped(trace, declined)


@case
def exceptions_longjmp_tail_calls(folder):
    same_output(folder, "demo", "demo:*")


@case
def exceptions_longjmp_tail_calls_bare(folder):
    same_output(folder, "demo", "demo:*", declined=AS_ASKED)


@case
def cxx_runtime_itself(folder):
    """The unwinder and the exception machinery are traced while they throw."""
    same_output(folder, "demo", "libstdc++*:__cxa_*", "libgcc_s*:_Unwind_*", "demo:*")


@case
def stack_switches(folder):
    same_output(folder, "fibers", "fibers:*", "libc.so.6:*context*")


@case
def signal_stacks(folder):
    same_output(folder, "sigaltstack", "sigaltstack:*")


@case
def thread_storms(folder):
    same_output(folder, "threadstorm", "threadstorm:*", "libc.so.6:pthread_*")


@case
def forks(folder):
    same_output(folder, "forker", "forker:*", "libc.so.6:*fork*", "libc.so.6:*spawn*",
                "libc.so.6:exec*")


@case
def execs(folder):
    same_output(folder, "execer", "execer:*")


@case
def exec_of_another_program(folder):
    """A shell that becomes the program: its file is found after the exec."""
    out = f"{folder}/exec.json"
    command = [workload("hot"), "--threads", "1", "--rate", "1000", "--calls", "1000", "--out",
               "/dev/null"]
    xsptrace("-q", "-e", "hot:hot_*", "-o", out, "--", "/bin/sh", "-c", 'exec "$@"', "sh", *command)
    # 1,000 calls, and 100 ms to find the file
    check(Trace(out).calls["hot_frame"] > 700, "too few spans", Trace(out).calls)


@case
def libraries_unloaded(folder):
    same_output(folder, "dlopener", "libplugin_*:*", "dlopener:*")


@case
def annotated_scopes(folder):
    same_output(folder, "annotated", "annotated:*", "libannotated.so:*")


@case
def values(folder):
    """Pointers that lead nowhere are given, too."""
    same_output(folder, "valued", "record_function", "valued:*")
    same_output(folder, "tool_values", "nvtx", "itt", "tool_values:*")


@case
def throwing_wrappers_of_cuda(folder):
    """The provider's return probes are for NVIDIA's libraries: on these functions they would kill."""
    same_output(folder, "cuda_wrapper", "cuda", "cuda_wrapper:main")
    events = Trace(f"{folder}/trace.json").json["traceEvents"]
    equal(sum(e["name"] == "cudaMalloc" for e in events), 300, "calls of cudaMalloc")


@case
def allocator(folder):
    """malloc and free of a program that uses both on every thread."""
    same_output(folder, "demo", "libc.so.6:malloc", "libc.so.6:free", "libc.so.6:mem*")


@case
def python_exceptions_through_torch(folder):
    """A return probe on these functions kills the process: 'terminate called'."""
    need_torch()
    script = [TORCH, f"{SCRIPTS}/torch_exceptions.py", "--rounds", "200"]
    expected = untraced(script)
    out, text = f"{folder}/torch.json", f"{folder}/stdout"
    with open(text, "wb") as stdout:
        child = start_ready([*script, "--wait"], stdin=subprocess.PIPE, stdout=stdout)
        with Recording(folder, "-p", child.pid, "-e", "libtorch_cpu.so:at::_ops::*::call", "-o",
                       out) as recording:
            child.stdin.write(b"go\n")
            child.stdin.close()
            equal(finish(child), 0, "status of the script")
            recording.wait()
    with open(text, encoding="utf-8") as f:
        equal(f.read(), expected, "standard output of the traced script")
    trace = Trace(out)
    trace.check_nothing_lost()
    mm = [e for e in trace.spans if "mm::call" in e["name"] and "addmm" not in e["name"]]
    # 200 that throw and 200 that return
    equal(len(mm), 400, "spans of at::_ops::mm::call")
    equal(sum(1 for e in mm if e["args"].get("unwound")), 200, "of these unwound")


def loop(folder, name="demo", *options):
    """A workload that goes on until SIGTERM; process and the file of its truth."""
    facts = f"{folder}/{name}.truth"
    child = start([workload(name), "--out", facts, "--seconds", 120, *options])
    wait_for(lambda: alive(child.pid), 5, name)
    return child, facts


def end_loop(child, facts):
    check(child.poll() is None, f"the target ended early: {child.returncode}")
    child.terminate()
    equal(finish(child), 0, "status of the target")
    return truth(facts)


@case
def tracer_killed_again_and_again(folder):
    """SIGKILL at a random moment of attaching, recording or writing. The target goes on, nothing
    stays in it, and what was captured can be read."""
    seed = int(time.time())
    random.seed(seed)
    print(f"  seed {seed}")
    child, facts = loop(folder, "demo", "--rate", 50)
    readable = 0
    for i in range(max(8, ROUNDS // 5)):
        capture = f"{folder}/{i}.xspt"
        r = Recording(folder, "-p", child.pid, "-e", "demo_*", "-o", capture, name=f"r{i}")
        time.sleep(random.uniform(0.01, 1.2))
        r.stop(signal.SIGKILL)
        r.wait(status=None)
        check(child.poll() is None, f"the target died with tracer {i}: {child.returncode}")
        if os.path.exists(capture) and os.path.getsize(capture):
            info = xsptrace("info", capture, status=None)
            readable += info.returncode == 0
    # the last one as a whole: the probes work as ever
    out = f"{folder}/last.json"
    xsptrace("-p", child.pid, "-d", "1", "-e", "demo_leaf", "-o", out)
    check(Trace(out).calls["demo_leaf"] > 0, "no spans after the killed tracers")
    end_loop(child, facts)
    print(f"  {readable} captures readable")
    check(readable > 0, "no capture of a killed tracer could be read")


@case
def captures_of_killed_tracers_are_readable(folder):
    """After 2.5 s of recording at least the first second is in the file, and exports."""
    child, facts = loop(folder, "hot", "--threads", 1, "--rate", 2000)
    capture = f"{folder}/killed.xspt"
    with Recording(folder, "-p", child.pid, "-e", "hot_*", "-o", capture) as r:
        time.sleep(2.5)
        r.stop(signal.SIGKILL)
        r.wait(status=-signal.SIGKILL)
    done = xsptrace("export", capture, "-o", f"{folder}/killed.json", status=None)
    check(os.path.exists(f"{folder}/killed.json"), "not exported", done.stderr)
    check(Trace(f"{folder}/killed.json").calls["hot_frame"] > 1000, "too little was kept")
    end_loop(child, facts)


@case
def target_killed(folder):
    for how in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
        child, _ = loop(folder, "demo", "--rate", 50)
        out = f"{folder}/{how}.json"
        with Recording(folder, "-p", child.pid, "-e", "demo_*", "-o", out, name=str(how)) as r:
            time.sleep(0.4)
            child.send_signal(how)
            finish(child)
            r.wait(seconds=10)
        check(Trace(out).calls["demo_leaf"] > 0, f"no spans of a target ended by {how}")


@case
def target_crashes(folder):
    """The status is passed on and the output is complete, whatever way the program ends."""
    for how in ("segv", "abort", "kill", "overflow", "exit", "quick"):
        facts, out = f"{folder}/{how}.truth", f"{folder}/{how}.json"
        command = [workload("crasher"), "--out", facts, how]
        plain = run(command)
        expected = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
        xsptrace("-e", "crasher_work", "-e", "crasher_die", "-o", out, "--", *command,
                 status=expected)
        check_calls(Trace(out), truth(facts))


@case
def two_tracers_at_once(folder):
    facts = f"{folder}/truth"
    child = start_ready([workload("demo"), "--wait", "--out", facts, "--calls", 200])
    outs = [f"{folder}/{i}.json" for i in range(2)]
    tracers = [Recording(folder, "-p", child.pid, "-e", "demo_*", "-o", out, name=f"t{i}")
               for i, out in enumerate(outs)]
    for tracer in tracers:
        tracer.wait_live()
    child.send_signal(signal.SIGUSR1)
    equal(finish(child), 0, "status of the target")
    expected = truth(facts)
    expected["calls"] = {k: v for k, v in expected["calls"].items() if k.startswith("demo_")}
    for tracer, out in zip(tracers, outs):
        tracer.wait()
        check_calls(Trace(out), expected)


@case
def attach_and_detach_again_and_again(folder):
    """ROUNDS times each by two tracers that do not wait for each other. They see calls (on a busy
    machine a target may get no time for 50 ms); the target's memory map does not grow."""
    child, facts = loop(folder, "hot", "--threads", 1, "--rate", 5000)
    # the first one lets the target start its threads, and leaves [uprobes], which stays
    xsptrace("-q", "-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", f"{folder}/first.json")
    with open(f"/proc/{child.pid}/maps", encoding="utf-8") as f:
        before = f.read().count("\n")
    script = """
        for i in $(seq "$3"); do
            "$0" -q -p "$1" -d 0.05 -e 'hot_*' -o "$2" || exit
            grep -q '"ph":"X".*"name":"hot_frame"' "$2" || echo "round $i is empty"
        done"""
    both = [start(["bash", "-c", script, XSPTRACE, child.pid, f"{folder}/{i}.json", ROUNDS],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(2)]
    for one in both:
        said, errors = one.communicate(timeout=200)
        equal((one.returncode, errors), (0, b""), "status and errors of a round")
        print(" ", said)
        check(said.count(b"\n") <= ROUNDS // 4, "too many empty recordings", said)
    check(child.poll() is None, f"the target died: {child.returncode}")
    with open(f"/proc/{child.pid}/maps", encoding="utf-8") as f:
        after = f.read()
    equal(after.count("\n"), before, f"mappings of the target\n{after}")
    end_loop(child, facts)


@case
def other_processes_are_left_alone(folder):
    """A second process of the same program is not slowed by more than noise."""
    def speed(child_options):
        facts = f"{folder}/speed.truth"
        equal(run([workload("hot"), "--out", facts, "--threads", 1, *child_options]).returncode, 0,
              "status")
        return truth(facts)["ns_a_call"]

    target, facts = loop(folder, "hot", "--threads", 1, "--rate", 100)
    alone = speed(["--seconds", 0.5])
    with Recording(folder, "-p", target.pid, "-e", "hot_*", "-o", f"{folder}/x.json") as r:
        beside = speed(["--seconds", 0.5])
        r.stop()
        r.wait()
    end_loop(target, facts)
    print(f"  {alone} ns a call alone, {beside} beside a traced process of the same program")
    # a breakpoint trap that is not ours would cost 500 ns and more
    check(beside < alone + 600, f"{beside} ns a call while another process is traced")


main(declined=[*NO_BRAKE, TABLE])
