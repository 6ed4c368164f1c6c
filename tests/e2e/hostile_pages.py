#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names on missing pages: a reader that waits for one that never arrives would hold up all others.
The truth is the program's own counts, and the clock."""
import os
import signal
import time

from harness import (EXTRA, Recording, Skip, Trace, case, check, equal, finish, main, record_launched,
                     start_ready, truth, workload, xsptrace)

UNREADABLE = "[name not readable]"


def faulting(folder, *options):
    """Waits for SIGUSR1; then one thread names a range by a page that never comes, one by a page that
    comes after a second, and two count ranges."""
    command = [workload("faulting"), "--wait", "--out", f"{folder}/truth", *options]
    try:
        return start_ready(command)
    except AssertionError as e:
        if "no userfaultfd" in str(e):
            raise Skip("no userfaultfd here") from e
        raise


def ranges(folder, name="trace.json"):
    trace = Trace(f"{folder}/{name}")
    return trace, dict(trace.calls)


@case(quiet="a third of a second, which is what the small buffer holds")
def others_lose_nothing(folder):
    """A small buffer is full after a fraction of a second without a reader."""
    child = faulting(folder)
    with Recording(folder, "-p", child.pid, "--buffer", "1m", "-o", "trace.json") as recording:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status of faulting")
        output = recording.wait()
    trace, calls = ranges(folder)
    facts = truth(f"{folder}/truth")
    equal(calls, facts["calls"] | {UNREADABLE: facts["unreadable"]}, "ranges by name")
    equal(trace.lost(), {"lost_names": facts["unreadable"]}, "losses")
    check(f"lost: {facts['unreadable']} names" in output, "the summary does not count them", output)


@case
def page_that_arrives(folder):
    """Not known before, and known after it has come."""
    child = faulting(folder)
    with Recording(folder, "-p", child.pid, "-o", "trace.json") as recording:
        child.send_signal(signal.SIGUSR1)
        finish(child)
        recording.wait()
    spans = [s for s in ranges(folder)[0].spans if s["name"] in (UNREADABLE, "arrived late")]
    by_time = [s["name"] for s in sorted(spans, key=lambda s: s["ts"])]
    equal(by_time, [UNREADABLE, UNREADABLE, "arrived late"], "ranges in the order of time")


@case
def ends_in_time(folder):
    """-d is over, and the program goes on with a thread at a page that never comes."""
    child = faulting(folder, "--seconds", 8)
    with Recording(folder, "-p", child.pid, "-d", 2, "-o", "trace.json") as recording:
        begun = time.monotonic()
        child.send_signal(signal.SIGUSR1)
        recording.wait()
        took = time.monotonic() - begun
    check(child.poll() is None, "the program was to outlive the recording")
    # writing the trace is in it, and a loaded machine
    check(took < 6, f"-d 2 took {took:.1f} s")
    check(ranges(folder)[1]["busy"] > 1000, "nothing was recorded", recording.output())
    equal(finish(child), 0, "status of faulting")


@case
def literals_nobody_has_touched(folder):
    """The recorder reads them in the file: 40 pages of a program that ends right after it names them."""
    # it lives long enough for its library to be noticed on a loaded machine
    trace, facts = record_launched(folder, [workload("annotated"), "--calls", 300, "--rate", 600])
    trace.check_nothing_lost()
    equal(dict(trace.calls), {k: v for k, v in facts["calls"].items() if v}, "ranges by name")


@case
def literals_thrown_out_again(folder):
    """One name, read sometimes in memory and sometimes in the file, is one row of the summary."""
    done = xsptrace(*EXTRA, "-o", f"{folder}/trace.json", "--", workload("evicted"), "--out",
                    f"{folder}/truth")
    trace, calls = ranges(folder)
    trace.check_nothing_lost()
    equal(calls, truth(f"{folder}/truth")["calls"], "ranges by name")
    rows = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("thrown out")]
    equal(len(rows), 1, f"rows in the summary:\n{done.stdout}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
