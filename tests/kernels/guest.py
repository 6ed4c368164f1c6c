#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside the guest: what is worth checking on every kernel. The larger part are cases of
tests/e2e, by name, once for each way to attach that the kernel has."""
import glob
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["XSPTRACE"] = f"{HOME}/build/xsptrace"
os.environ["WORKLOADS"] = f"{HOME}/build/workloads"
sys.path.insert(0, f"{HOME}/tests/e2e")

# pylint: disable=wrong-import-position
from harness import (EXTRA, KERNEL, USAGE, Recording, Skip, Trace, alive, case, check, equal, finish, main,
                     check_calls, check_unwound, record_attached, start, start_ready, truth, wait_for, workload, xsptrace)

RELEASE = tuple(int(x) for x in re.findall(r"\d+", platform.release())[:2])
OLDEST = (5, 15)
ARM = platform.machine() == "aarch64"

# Where a feature came (user/broker/kernel/kernel.h): doctor must find it by trying.
FEATURES = {
    "attach cookies": (5, 15),
    # 6.6 has them, but they filter by thread until 6.10
    "uprobe_multi": (6, 10),
    "cheap 5-byte nop": (6, 18),
}

# Cases of tests/e2e: file, names, with the fallback forced too?
EXISTING = (
    ("exactness", ("demo_attached", "annotated_by_default"), True),
    ("values", ("payloads_counters_and_metadata",), True),
    ("exactness", ("demo_launched", "fibers", "forks_followed", "libraries_that_come_and_go"), False),
    ("hostile_pages", ("literals_*",), False),
    ("survival", ("exceptions_longjmp_tail_calls",), False),
    ("stacks", ("with_frame_pointers", "without_frame_pointers"), False),
    ("counters", ("what_the_machine_cannot_count",), False),
    ("waits", ("threads_that_were_there_before", "stacks_of_waits"), False),
)
# For a kernel that each run of tools/test boots: one of each kind of program that its verifier reads. The others wait for a
# change of what attaches (tests/paths).
QUICK = (
    ("values", ("payloads_counters_and_metadata",), False),
    ("waits", ("stacks_of_waits",), False),
)


@case
def doctor(_):
    """Says of each feature what the kernel's version lets expect."""
    done = xsptrace("doctor", status=None)
    print(re.sub("(?m)^", "  ", done.stdout.rstrip()))
    equal(done.returncode, 0 if RELEASE >= OLDEST else KERNEL, "status of doctor")
    for feature, since in FEATURES.items():
        line = re.search(rf"(?m)^ +(ok|NO) +{feature}", done.stdout)
        check(line, f"doctor has no line on {feature}")
        equal(line[1], "ok" if RELEASE >= since else "NO", feature)


@case
def too_old(folder):
    """One clear line, a status of its own, no output; the target does not notice."""
    if RELEASE >= OLDEST:
        return
    out, facts = f"{folder}/out.json", f"{folder}/truth"
    child = start_ready([workload("demo"), "--wait", "--calls", 5, "--out", facts])
    for command in (["-p", child.pid], ["--", workload("demo"), "--calls", 1]):
        done = xsptrace("-o", out, *command, status=KERNEL)
        line = done.stderr.splitlines()[0]
        print("  " + line)
        check("too old" in line and "5.15" in line and platform.release() in line,
              "the message does not say why", done.stderr)
        check(not os.path.exists(out), "there is an output")
        if command[0] == "-p":
            equal(done.stderr, line + "\n", "the message")
    child.send_signal(signal.SIGUSR1)
    equal(finish(child), 0, "status of the target")


# A row of docs/install.md's table: what is recorded, and a case that counts it.
PARTS = {
    "spans": ("exactness", "demo_attached"),
    "exits": ("survival", "exceptions_longjmp_tail_calls"),
    "children": ("follow", "children_are_counted_exactly_bare"),
    "waits": ("waits", "stacks_of_waits"),
    "samples": ("samples", "shares_as_the_program_counts_them"),
    "Python": ("python", "callers_in_folded_stacks"),
    "memory": ("heap", "every_block_is_counted"),
    "brake": ("brake", "hot_leaf_is_let_go"),
    "flight": ("flight", "the_latest_part"),
    "regions": ("exactness", "annotated_by_default"),
}
MOVES = (("unusual", ("moves_its_code", "moves_its_code_after_unmapping_it"), False),)
# Where nobody has another machine to see them on.
ARM64 = (
    ("survival", ("cxx_runtime_itself", "stack_switches", "signal_stacks", "target_killed", "captures_of_killed_tracers_are_readable"), False),
    ("samples", ("shares_as_the_program_counts_them", "spans_are_frames_of_samples", "functions_of_the_kernel"), False),
    ("values", ("to_the_bit",), False),
    ("waits", ("functions_of_the_kernel",), False),
    ("python", ("every_shape_of_frame", "attached_to"), False),
)


GPU = (("agent_live", ("gpu_records",), True),)
PYTHON = (("python", ("callers_in_folded_stacks",), True),)


def run_existing(extra, cases=EXISTING):
    failed = []
    for file, names, fallback in cases:
        if extra and not fallback:
            continue
        done = subprocess.run([sys.executable, f"{HOME}/tests/e2e/{file}.py", *names], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace",
                              env=os.environ | {"XSPTRACE_EXTRA": extra})
        print(re.sub("(?m)^", "  ", done.stdout[-6000:].rstrip()), flush=True)
        # 77 as well: nothing passes by not running
        if done.returncode:
            failed.append(f"{file}.py: {done.returncode}")
    equal(failed, [], f"failed {extra}")


@case
def cases_of_e2e(_):
    if RELEASE >= OLDEST:
        run_existing("")


@case
def each_part(_):
    """Only if it is named: emulated, all takes some minutes."""
    if "each_part" not in sys.argv:
        raise Skip("not named")
    failed = []
    for part, (file, name) in PARTS.items():
        try:
            run_existing("", ((file, (name,), False),))
        except AssertionError:
            failed.append(part)
    print(f"parts: {', '.join(p + (' FAILED' if p in failed else '') for p in PARTS)}")
    equal(failed, [], "parts that failed")


@case
def code_that_moves(_):
    """Each kernel's own tree of mappings is read (bpf/mappings.h)."""
    if RELEASE >= (6, 1) and not ARM:
        run_existing("", MOVES)


@case
def cases_of_e2e_for_arm64(_):
    if ARM:
        run_existing("", ARM64)


@case
def branch_protection(folder):
    """Spans are exact with signed return addresses and without. Armv8.3's own returns, which authenticate, cannot be probed."""
    if not ARM:
        return
    for name in ("demo", "demo_bare", "demo_retaa"):
        trace, facts = record_attached(folder, [workload(name), "--threads", 2, "--calls", 50], "-e", "demo_*", "-e", "demo::*", "-e", "*hidden*")
        trace.check_nothing_lost()
        check_calls(trace, facts)
        check_unwound(trace, facts)
        print(f"  {name}: {sum(facts['calls'].values())} calls, each a span")


@case
def injection_is_refused(folder):
    """One clear line; the target goes on."""
    if not ARM:
        return
    child = start_ready([workload("gpu_sim"), "--wait", "--out", f"{folder}/out", "--threads", 2, "--calls", 20])
    done = xsptrace(*EXTRA, "--inject", "-o", f"{folder}/out.json", "-p", child.pid, "-d", 1, status=None)
    print(f"  status {done.returncode}: {done.stderr.strip()}")
    check("x86-64 only" in done.stderr, "the message does not say why", done.stderr)
    child.send_signal(signal.SIGUSR1)
    equal(finish(child), 0, "status of the target")


@case
def quick_cases_of_e2e(_):
    """Only if it is named: cases_of_e2e has them too."""
    if "quick_cases_of_e2e" not in sys.argv:
        raise Skip("not named")
    run_existing("", QUICK)


@case
def cases_of_e2e_with_the_fallback(_):
    if RELEASE >= FEATURES["uprobe_multi"]:
        run_existing("--attach=tracefs")


@case
def python(_):
    """Other verifiers, the same frames. Two minutes under emulation: only if it is named."""
    if "python" not in sys.argv:
        raise Skip("not named")
    if RELEASE >= OLDEST:
        run_existing("", PYTHON)


@case
def gpu(_):
    """Semaphores and batches of the agent: what they need of the kernel is old, but untested alone."""
    if RELEASE >= OLDEST:
        run_existing("", GPU)
    if RELEASE >= FEATURES["uprobe_multi"]:
        run_existing("--attach=tracefs", GPU)


@case
def programs_that_read_arguments_and_filter(folder):
    """This kernel's verifier takes them; there is no PyTorch in here."""
    if RELEASE < OLDEST:
        return
    out = f"{folder}/arguments.json"
    done = xsptrace("--shapes=all", "--inputs=values", "--sequence", "-e", "demo_leaf", "-o", out,
                    "--", workload("demo"), "--calls", 2, timeout=200, status=USAGE if ARM else 0)
    if ARM:
        check("x86-64 only" in done.stderr, "the message does not say why", done.stderr)
    else:
        check(os.path.getsize(out) > 0, "no trace")
    for others in (["--memory=malloc"], ["--sample"], ["--python", "--wait-stacks"]):
        xsptrace(*others, "-o", out, "--", workload("demo"), "--calls", 2, timeout=200)
    xsptrace("--min-duration", "1ns", "--max-depth", "50", "-o", out, "--", workload("annotated"),
             "--calls", 20, timeout=200)
    equal(Trace(out).calls["c++ outer"], 40, "ranges past the filters")


@case
def tracer_killed(folder):
    """SIGKILL at any moment: the target goes on, unharmed, and can be traced again."""
    if RELEASE < OLDEST:
        return
    facts, out = f"{folder}/truth", f"{folder}/last.json"
    child = start([workload("demo"), "--out", facts, "--threads", 2, "--seconds", 100, "--rate", 20])
    wait_for(lambda: alive(child.pid), 5, "demo")
    for i in range(4):
        tracer = Recording(folder, "-p", child.pid, "-e", "demo_*", "-o", f"{folder}/{i}.xspt")
        if i % 2:
            tracer.wait_live(40)
        time.sleep(random.uniform(0.05, 0.6))
        tracer.stop(signal.SIGKILL)
        tracer.wait(status=None)
        check(child.poll() is None, f"the target died with tracer {i}: {child.returncode}")
    xsptrace(*EXTRA, "-p", child.pid, "-d", "1", "-e", "demo_leaf", "-o", out)
    check(Trace(out).calls["demo_leaf"] > 0, "no spans after the killed tracers")
    equal(glob.glob("/sys/kernel/tracing/events/xsptrace_*"), [], "what killed tracers left in tracefs")
    child.terminate()
    equal(finish(child), 0, "status of the target")
    check(truth(facts)["calls"]["demo_leaf"] > 0, "the target did nothing")


@case
def kernel_is_content(_):
    """The last case: neither a warning of the kernel nor a crashed program."""
    log = subprocess.run(["dmesg"], stdout=subprocess.PIPE, errors="replace", check=True).stdout
    bad = [line for line in log.splitlines()
           if re.search(r"WARNING: |BUG: |Oops|segfault|traps: ", line) and "soft lockup" not in line]
    check(not bad, "in the kernel's log:", *bad)


def arguments():
    """cases=A,B on the kernel's command line"""
    with open("/proc/cmdline", encoding="ascii") as f:
        found = re.search(r"\bcases=([\w,*]+)", f.read())
    return found[1].split(",") if found else []


sys.argv[1:] = arguments()
main(traces=False)
