#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Syscall User Dispatch (Wine): the process gets no system calls that are ours, and all is counted.

From Linux 6.18 on a 5-byte nop under a probe becomes a call to code that makes a system call. The
truth is the workload's SIGSYS handler (tests/workloads/dispatched.c).
"""
import json
import os
import platform
import re
import signal

import harness as h

FUNCTIONS = "dispatched:traced_nop5*"


def command(*arguments):
    return [h.workload("dispatched"), *arguments]


def check_unharmed(trace, facts):
    h.equal(facts["caught"], 0, "system calls that the process did not make")
    trace.check_nothing_lost()
    h.check_calls(trace, facts)


def needs_calls_for_nops():
    if [int(n) for n in re.findall(r"\d+", platform.release())[:2]] < [6, 18]:
        raise h.Skip("the kernel leaves a nop5 a trap: nothing is to be avoided")
    if "not used: forked children" in h.run([h.XSPTRACE, "doctor"]).stdout:
        raise h.Skip("the kernel lets forked children crash at a nop5: none is used anywhere")


@h.case
def recorded_exactly(folder):
    check_unharmed(*h.record_attached(folder, command("dispatch"), "-e", FUNCTIONS))


@h.case
def without_return_probes(folder):
    """Ends of malloc() have such sites, harmlessly; here the ends of 1,000 calls are seen elsewhere, or counted as lost."""
    # its own C library: the kernel has every process that traces one function return through the probes of any of them
    h.private_libc(folder)
    trace, facts = h.record_attached(folder, command("dispatch"), "--memory=malloc:1", "-o", f"{folder}/heap.xspt",
                                     env=os.environ | {"LD_LIBRARY_PATH": folder})
    h.equal(facts["caught"], 0, "system calls that the process did not make")
    del trace
    summary = json.loads(h.xsptrace("export", "--summary", "json", f"{folder}/heap.xspt").stdout)["allocations"]
    seen = sum(pool["allocations"] for pool in summary["pools"])
    h.check(seen + summary["lost"] >= 1000, "seen and lost", summary)


@h.case
def listed_without_nop5(folder):
    """The list shows the sites that would be taken; those of another process stay as cheap."""
    needs_calls_for_nops()
    for what, nop5 in (("dispatch", 0), ("none", 2)):
        child = h.start_ready(command("--wait", what))
        said = h.xsptrace("list", "-p", child.pid, "-e", FUNCTIONS).stdout
        h.check(f"({nop5} nop5" in said, f"{nop5} sites on a nop5 ({what})", said)


@h.case
def beside_another_process(folder):
    """Two processes share their sites: refused if those are chosen already, without harm."""
    needs_calls_for_nops()
    for first, second, status in (("dispatch", "none", h.OK), ("none", "dispatch", h.TARGET)):
        children = [h.start_ready(command("--wait", "--out", f"{folder}/{what}", what))
                    for what in (first, second)]
        recording = h.Recording(folder, "-p", children[0].pid, "-p", children[1].pid, "-e",
                                FUNCTIONS, "-o", f"{folder}/o.json")
        if status == h.OK:
            recording.wait_live()
        else:
            said = recording.wait(status)
            h.check("Syscall User Dispatch" in said, "the reason", said)
        for child in children:
            child.send_signal(signal.SIGUSR1)
            h.equal(h.finish(child), 0, "status")
        if status == h.OK:
            recording.wait()
            trace = h.Trace(f"{folder}/o.json")
            h.equal(dict(trace.calls), {"traced_nop5": 2000, "traced_nop5_only": 2000}, "calls")
        h.equal(h.truth(f"{folder}/dispatch")["caught"], 0, "bogus system calls")


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("SKIP: the 5-byte nop is one of x86-64")
        raise SystemExit(77)
    h.main()
