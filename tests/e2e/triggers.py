#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The flight recorder's triggers: what goes wrong in a healthy loop is in the snapshot that its trigger wrote; else there is none."""
import glob
import os
import re
import subprocess
import time

from harness import NO_BRAKE, NO_MATCH, ROOT, USAGE, Recording, Trace, case, check, equal, json_report, main, start, wait_for, workload, xsptrace

TRIGGER = 13  # the exit status of an expression that is none
TRACED = ["-e", "planted:planted_*", "-e", "record_function"]


class Planted:
    """The target."""

    def __init__(self):
        self.process = start([workload("planted")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        equal(self.process.stdout.readline(), "ready\n", "the first steps")

    def plant(self, fault):
        self.process.stdin.write(f"{fault}\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


def snapshots(folder, reason):
    return sorted(glob.glob(f"{folder}/xsptrace.*.{reason}*.xspt"))


def recording(folder, target, *triggers, age="2s", delay="800ms", options=()):
    words = [x for t in triggers for x in ("--trigger", t)]
    return Recording(folder, f"--flight-record={age},64M", "-p", target.pid, *NO_BRAKE, *TRACED, "--waits", *words,
                     "--trigger-delay", delay, *options)


def why(path):
    lines = [x for x in xsptrace("info", path).stdout.splitlines() if x.startswith("snapshot ")]
    equal(len(lines), 1, f"why {path} was written")
    return lines[0]


def fires(folder, fault, trigger, reason, says, *others, age="2s", delay="800ms", healthy=0):
    """Nothing until the fault is planted; then one snapshot, which has it."""
    target = Planted()
    with recording(folder, target, trigger, *others, age=age, delay=delay) as r:
        target.plant("nothing")
        wait_for(lambda: "armed" in r.output(), 10, "armed")
        time.sleep(healthy)  # steps are known once some have ended
        equal(snapshots(folder, "*"), [], "snapshots of a healthy loop")
        target.plant(fault)
        wait_for(lambda: snapshots(folder, reason), 15, f"a snapshot by {trigger}: {r.output()}")
        if fault != "stall":
            target.end()
            r.wait()
        else:
            target.process.kill()
            r.wait(status=None)
    path = snapshots(folder, reason)[0]
    check(says in why(path), f"why, of {trigger}", why(path))
    equal(len(snapshots(folder, reason)), 1, f"snapshots by {trigger}")
    return path


@case
def a_slow_step_and_call(folder):
    """Two triggers for one moment: one snapshot, which has the slow call whole, and what was before and after it."""
    path = fires(folder, "slow", "planted_step>1s", "s[pt]*", "planted_step", "step>1s", age="6s", delay="2s", healthy=2)
    text = why(path)
    check("planted_step>1s: " in text and " step>1s: " in text, "both are named", text)
    screen = xsptrace("analyze", path).stdout
    check(re.search(r"^in that time: planted_step +waits: sleep 1\.[4-9]", screen, re.M), "where that time went", screen)
    xsptrace("export", "-q", path, "-o", f"{folder}/a.json")
    spans = [s for s in Trace(f"{folder}/a.json").spans if s["name"] == "planted_step"]
    slow = [s for s in spans if s["dur"] > 1.4e6]
    equal(len(slow), 1, "slow calls in it")
    check(any(s["ts"] > slow[0]["ts"] for s in spans) and any(s["ts"] < slow[0]["ts"] for s in spans), "before and after", spans)


@case
def a_step_that_is_slow_beside_others(folder):
    """Its thread's first steps are warm-up, so it may take more than one."""
    target = Planted()
    with recording(folder, target, "step>20x") as r:
        for _ in range(20):
            target.plant("slow")
            time.sleep(1.7)  # it takes 1.5
            if snapshots(folder, "step"):
                break
        target.end()
        r.wait()
    check("times the median" in why(snapshots(folder, "step")[0]), "why", os.listdir(folder))


@case
def what_never_ends(folder):
    """A call that does not return, and so no step ends."""
    fires(folder, "stall", "planted_step>1s", "span", "has not returned for")


@case
def calls_that_come_too_often(folder):
    fires(folder, "often", "planted_call/s>300", "rate", "calls of planted_call in a second")


@case
def a_lock(folder):
    fires(folder, "lock", "wait:lock>400ms", "wait", "(lock)")


@case
def memory(folder):
    fires(folder, "grow", "rss>48M", "rss", "of memory", "rss+40M/s")


@case
def an_end_with_a_status(folder):
    target = Planted()
    with recording(folder, target, "exit!=0") as r:
        target.plant("fail")
        r.wait()
    equal(len(snapshots(folder, "exit")), 1, f"snapshots: {os.listdir(folder)}")
    check("ended with status 3" in why(snapshots(folder, "exit")[0]), "why", why(snapshots(folder, "exit")[0]))


@case
def so_many_and_no_more(folder):
    """--max-snapshots: the oldest goes, and that is said."""
    target = Planted()
    with recording(folder, target, "planted_step>1s", age="200ms", delay="100ms", options=("--max-snapshots", 1)) as r:
        for n in range(2):
            target.plant("slow")
            wait_for(lambda n=n: r.output().count("wrote ") > n, 15, f"snapshot {n + 1}: {r.output()}")
        wait_for(lambda: "is removed: there are more than 1 snapshots" in r.output(), 15, f"the oldest goes: {r.output()}")
        target.end()
        r.wait()
    equal(len(snapshots(folder, "span")), 1, "snapshots that stay")


@case
def none_fires(folder):
    """--trigger-timeout: the recording ends, and the program goes on."""
    target = Planted()
    with recording(folder, target, "lost>1000000", options=("--trigger-timeout", "300ms")) as r:
        said = r.wait()
    check("no trigger has fired for 300 ms" in said, "what was said", said)
    equal((snapshots(folder, "*"), target.process.poll()), ([], None), "snapshots, and the program's status")
    target.end()


@case
def what_is_no_trigger(folder):
    for words, status, says in ((["-F", "--trigger", "slow"], TRIGGER, "it is one of NAME>50ms"),
                                (["-F", "--trigger", "f>50"], TRIGGER, "with its unit"),
                                (["--trigger", "step>2x"], USAGE, "add -F"),
                                (["-F", "--profile", "--trigger", "step>2x"], USAGE, "--profile")):
        done = xsptrace(*words, "-p", os.getpid(), status=status)
        check(says in done.stderr and done.stderr.count("\n") == 1, " ".join(words), done.stderr)
    # nothing has steps there: a profile, which a bare -p would take, never fires
    done = xsptrace("-F", "--trigger", "step>2x", "-p", start([workload("sleeper")]).pid, status=NO_MATCH)
    check("say what to trace" in done.stderr, "a trigger that cannot fire", done.stderr)


if __name__ == "__main__":
    main()
