#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How large a capture may become, and in how many files."""
import glob
import os
import re
import signal
import time

from harness import (NO_BRAKE, OUTPUT, USAGE, XSPTRACE, Recording, Trace, case, check, check_calls, equal, main,
                     record_attached, run, start, wait_for, workload, xsptrace)
from proc import random_from_clock


def calling():
    """A call after the other, for as long as it takes."""
    return start([workload("hot"), "--threads", 1, "--seconds", 100, "--out", "/dev/null"])


def exported(folder, *captures):
    xsptrace("export", "-q", *captures, "-o", f"{folder}/exported.json")
    return Trace(f"{folder}/exported.json")


@case
def max_size(folder):
    """The recording ends by itself, in order, when the capture is that large; the program goes on."""
    child = calling()
    done = xsptrace(*NO_BRAKE, "-p", child.pid, "-e", "hot:hot_frame", "--max-size", "128K", "-o", f"{folder}/a.xspt")
    check("(--max-size): the recording ends here" in done.stderr, "why it ended", done.stderr)
    size = os.stat(f"{folder}/a.xspt").st_size
    check(128 << 10 <= size <= 8 << 20, f"its size: {size}")
    check("complete" in xsptrace("info", f"{folder}/a.xspt").stdout, "how it ended")
    equal(child.poll(), None, "the program's status")
    xsptrace("-p", child.pid, "--max-size", "12", "-o", f"{folder}/b.xspt", status=USAGE)
    # packed: an event of 32 bytes takes three or so
    trace = exported(folder, f"{folder}/a.xspt")
    check(size < 16 * len(trace.spans), f"{size} bytes for {len(trace.spans)} spans")


# In a file system of its own, which nobody else sees. What is left there is copied.
SMALL = 'mount -t tmpfs -o size={size} tmpfs {folder}/small && { "$@"; s=$?; cp {folder}/small/*.xspt {folder} || exit 99; exit $s; }'


def record_on_small(folder, size, pid, *options):
    os.mkdir(f"{folder}/small")
    script = SMALL.replace("{size}", size).replace("{folder}", folder)
    done = run(["unshare", "-m", "sh", "-c", script, "sh", XSPTRACE, *NO_BRAKE, "-p", pid, "-e", "hot:hot_frame", *options,
                "-o", f"{folder}/small/a.xspt"])
    os.rmdir(f"{folder}/small")
    return done


@case
def min_free(folder):
    """It ends before the disk is full, and does not begin on one that is."""
    child = calling()
    done = record_on_small(folder, "1M", child.pid, "--min-free", "800K")
    equal(done.returncode, 0, f"status\n{done.stderr}")
    check("(--min-free): the recording ends here" in done.stderr, "why it ended", done.stderr)
    check("complete" in xsptrace("info", f"{folder}/a.xspt").stdout, "how it ended")
    check(exported(folder, f"{folder}/a.xspt").spans, "nothing is in it")
    done = xsptrace(*NO_BRAKE, "-p", child.pid, "-e", "hot:hot_frame", "--min-free", "900T", "-o", f"{folder}/b.xspt",
                    status=OUTPUT)
    check("--min-free wants" in done.stderr and not os.path.exists(f"{folder}/b.xspt"), "a full disk", done.stderr)
    equal(child.poll(), None, "the program's status")


@case
def full_disk(folder):
    """Without that it ends at the full disk, says so, and what came before can be read."""
    child = calling()
    done = record_on_small(folder, "256K", child.pid)
    equal(done.returncode, OUTPUT, f"status\n{done.stderr}")
    check("No space left on device" in done.stderr, "why it ended", done.stderr)
    check(exported(folder, f"{folder}/a.xspt").spans, "nothing is in it")
    equal(child.poll(), None, "the program's status")


@case
def split(folder):
    """Each file is whole in itself, and all together are the recording: what goes over an edge comes once, and whole."""
    command = [workload("hot"), "--threads", 2, "--rate", 10000, "--calls", 12000, "nested"]
    whole, facts = record_attached(folder, command, *NO_BRAKE, "-e", "hot:hot_nested", "-e", "hot:hot_leaf", "-e", "hot:run",
                                   "--split", "250ms", "-o", f"{folder}/a.xspt")
    check_calls(whole, facts, "what the recording has written")
    parts = sorted(glob.glob(f"{folder}/a.*.xspt"))
    check(len(parts) >= 4, "files", parts)
    equal(parts, [f"{folder}/a.{i + 1:03}.xspt" for i in range(len(parts))], "names")

    together = exported(folder, *reversed(parts))
    check_calls(together, facts, "all parts")
    equal(together.calls["run"], 2, "calls over all edges")
    equal(total_not_returned(together), 0, "calls without an end")
    equal(len(together.spans), len(whole.spans), "spans")

    alone = [exported(folder, p) for p in parts]
    spans = sum(t.calls["hot_leaf"] for t in alone)
    check(facts["calls"]["hot_leaf"] - 2 * len(parts) <= spans <= facts["calls"]["hot_leaf"] + 2 * len(parts),
          f"{spans} spans in single parts", facts)
    check(all(t.calls["hot_leaf"] > 0 for t in alone[:-1]), "an empty part", [t.calls for t in alone])
    equal([t.calls["run"] for t in alone[1:]], [0] * (len(parts) - 1), "a call that began before the part")
    equal(alone[0].not_returned["run"], 2, "a call that ended after the part")
    xsptrace("analyze", parts[0])
    check("of a recording in several files" in xsptrace("info", *parts).stdout, "info")
    check("part 2 of the recording is missing" in xsptrace("analyze", parts[0], parts[2], status=None).stderr, "a gap")


def total_not_returned(trace):
    return sum(trace.not_returned.values())


@case
def split_by_size(folder):
    """By size; killed in the middle of it, all parts are readable."""
    child = calling()
    with Recording(folder, *NO_BRAKE, "-p", child.pid, "-e", "hot:hot_frame", "--split", "64K", "-o", f"{folder}/a.xspt") as r:
        wait_for(lambda: len(glob.glob(f"{folder}/a.*.xspt")) >= 3, 30, "three files")
        r.stop(signal.SIGKILL)
        r.process.wait()
    parts = sorted(glob.glob(f"{folder}/a.*.xspt"))
    for part in parts[:-1]:
        check("complete" in xsptrace("info", part).stdout, part)
    check(exported(folder, *parts).calls["hot_frame"] > 0, "nothing is in them")
    xsptrace("-p", child.pid, "--split", "60", "-o", f"{folder}/b.xspt", status=USAGE)
    done = xsptrace("-p", child.pid, "--split", "60s", "-o", f"{folder}/b.json", status=USAGE)
    check("-o NAME.xspt" in done.stderr, "no capture to split", done.stderr)


# What the recorder may be doing when it is killed: writing file after file, near the end of its own, or snapshots.
AT_WORK = (("--split", "64K", "-o", "{folder}/a.xspt"), ("--split", "100ms", "-o", "{folder}/a.xspt"),
           ("--max-size", "256K", "-o", "{folder}/a.xspt"), ("--flight-record=1s,32M", "-o", "{folder}/"))


def steps_of(trace):
    """By thread the numbers of its steps, of which none is missing."""
    for thread in "01":
        numbers = sorted(int(m[1]) for s in trace.spans if (m := re.fullmatch(rf"{thread} step (\d+)", s["name"])))
        equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))) if numbers else [], f"steps of thread {thread}")
    return len(trace.spans)


def kill_at_work(folder, child, options, seconds):
    """Returns how many files there are, and spans in them: each file alone, and then all parts together."""
    os.mkdir(folder)
    options = [o.replace("{folder}", folder) for o in options]
    with Recording(folder, *NO_BRAKE, "-p", child.pid, "-e", "record_function", *options) as r:
        end = time.monotonic() + seconds
        while time.monotonic() < end and r.process.poll() is None:
            if options[-1].endswith("/"):
                r.stop(signal.SIGUSR2)
            time.sleep(min(0.02, max(0, end - time.monotonic())))
        r.stop(signal.SIGKILL)
        r.process.wait()
    files = sorted(glob.glob(f"{folder}/*.xspt"))
    spans = sum(steps_of(exported(folder, f)) for f in files if "is empty" not in xsptrace("info", f, status=None).stderr)
    if "--split" in options and len(files) > 1:
        steps_of(exported(folder, *files))
    equal([n for n in os.listdir(folder) if n.startswith(".xsptrace")], [], "files without a name")
    return len(files), spans


@case(long="200 kills")
def killed_at_work(folder):
    """Whenever it is killed, what is on the disk can be read, and no step is missing in it."""
    child = start([workload("numbered"), f"{folder}/counters"])
    random, files, spans = random_from_clock(), 0, 0
    for i in range(200):
        more = kill_at_work(f"{folder}/{i}", child, AT_WORK[i % len(AT_WORK)], random.uniform(0, 1.2))
        files, spans = files + more[0], spans + more[1]
    check(files > 200 and spans > 4000, "files and spans", files, spans)
    equal(child.poll(), None, "the program's status")
    print(f"  {files} files, {spans} spans")


if __name__ == "__main__":
    main()
