#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The flight recorder (-F): each snapshot is a capture, complete in itself, of the latest events without a gap.

The target's ranges are numbered, and it counts them itself: what is missing is seen.
"""
import collections
import glob
import os
import re
import select
import signal
import struct
import subprocess
import time

from harness import (NO_BRAKE, OUTPUT, USAGE, WORKLOADS, Recording, Trace, broker_of, case, check, equal, finish, json_report, main, start, start_ready, truth, wait_for,
                     workload, xsptrace)
from proc import COUNTERS, NOBODY, Tool, Witness, status, wait_text_clean

RANGES = ["-e", "record_function", "-e", "numbered:numbered_dies"]


class Numbered:
    """The target."""

    def __init__(self, folder):
        self.counters = f"{folder}/counters"
        self.process = start([workload("numbered"), self.counters])
        self.pid = self.process.pid
        wait_for(lambda: os.path.exists(self.counters) and min(self.counts()) > 0, 5, "the target's first steps")

    def counts(self):
        with open(self.counters, "rb") as f:
            data = f.read(16)
        return struct.unpack("<2Q", data) if len(data) == 16 else (0, 0)

    def wait_more(self, steps):
        until = min(self.counts()) + steps
        wait_for(lambda: min(self.counts()) >= until, 15, f"{steps} more steps")


def snapshots(folder, reason="*"):
    return sorted(glob.glob(f"{folder}/xsptrace.*.{reason}*.xspt"), key=os.path.getmtime)


def wait_snapshot(folder, count, reason="sigusr2"):
    return wait_for(lambda: len(snapshots(folder, reason)) >= count and snapshots(folder, reason), 10,
                    f"{count} snapshots: {os.listdir(folder)}")


def steps_of(path):
    """By thread: the numbers of its steps, which have no gap; and the trace."""
    trace = Trace(convert(path))
    found = collections.defaultdict(list)
    for span in trace.spans:
        if step := re.fullmatch(r"(\d) step (\d+)", span["name"]):
            found[int(step[1])].append(int(step[2]))
    for thread, numbers in found.items():
        equal(sorted(numbers), list(range(min(numbers), max(numbers) + 1)), f"steps of thread {thread} in {path}")
    equal(trace.lost(), {}, "losses")
    return found, trace


def convert(path):
    out = path.replace(".xspt", ".json")
    done = xsptrace("export", path, "-o", out, "-q")
    equal(done.stderr, "", "complaints about the capture")
    return out


def account_of(path):
    """The values of its account, whose rows add up."""
    section = json_report("analyze", path)["sections"]["account"]
    rows = section["tables"]["rows"]["rows"]
    equal(sum(r["ns"] for r in rows), section["values"]["ns"], "the rows add up")
    equal([r for r in rows if r["ns"] < 0], [], "rows that are less than nothing")
    return section["values"]


@case
def the_latest_part(folder):
    """More than AGE has passed: the snapshot at the target's end has the last steps, AGE of them and not many more."""
    target = Numbered(folder)
    with Recording(folder, "--flight-record=500ms", "-p", target.pid, *RANGES, "--waits") as recording:
        target.wait_more(1800)
        target.process.terminate()
        finish(target.process)
        recording.wait()
    path, = snapshots(folder)
    check(path.endswith(".end.xspt"), path)
    steps, trace = steps_of(path)
    for thread in (0, 1):
        equal(max(steps[thread]), target.counts()[thread], f"the last step of thread {thread}")
        check(min(steps[thread]) > 200, "the first steps are not there", min(steps[thread]))
    check(trace.timeline["orphan_exits"] <= 2, "one step of each thread may have begun before", trace.timeline)
    values = account_of(path)
    check(0.5e9 <= values["duration_ns"] < 5e9, "0.5 s, and up to two marks more", values["duration_ns"])


@case
def while_it_goes_on(folder):
    """Two are asked for and one at the end: nothing is lost meanwhile, and each is complete."""
    target = Numbered(folder)
    hook = f"{folder}/hook"
    with Recording(folder, "-F", "-p", target.pid, *RANGES, "--on-snapshot", f"echo >> {hook}", table=f"{folder}/screens") as recording:
        for count in 1, 2:
            target.wait_more(300)
            recording.process.send_signal(signal.SIGUSR2)
            wait_snapshot(folder, count)
        target.wait_more(300)
        recording.stop()
        recording.wait()
    first, second, last = [steps_of(p)[0] for p in snapshots(folder)]
    for thread in (0, 1):
        equal({min(s[thread]) for s in (first, second, last)}, {min(first[thread])}, "where each begins")
        check(max(first[thread]) < max(second[thread]) < max(last[thread]), "each goes on for longer", max(last[thread]))
        check(max(last[thread]) <= target.counts()[thread], "the last")
    wait_for(lambda: os.path.exists(hook) and len(open(hook, encoding="utf-8").readlines()) == 3, 5, "three runs of --on-snapshot")
    with open(hook, encoding="utf-8") as f:
        equal(sorted(f.read().split()), sorted(os.path.basename(p) for p in snapshots(folder)), "what it was run with")
    with open(f"{folder}/screens", encoding="utf-8") as f:
        equal(len(re.findall(r"^snapshot: sig", f.read(), re.M)), 3, "first screens")
    check(target.process.poll() is None, "the target goes on")


def last_stacks_at_a_crash(folder):
    """Of the main thread (True) and of the one that dies."""
    os.mkdir(folder)
    target = Numbered(folder)
    with Recording(folder, "-F", "-p", target.pid, *RANGES, "--sample=19") as recording:
        target.wait_more(200)
        target.process.send_signal(signal.SIGUSR1)
        equal(finish(target.process), -signal.SIGSEGV, "the target's end")
        recording.wait()
    path, = snapshots(folder, "sigsegv")
    steps, trace = steps_of(path)
    died, = [s for s in trace.spans if s["name"] == "numbered_dies"]
    equal(died["args"].get("finished"), False, f"numbered_dies returned: {died}")
    equal(max(steps[1]), target.counts()[1], "the last step before it")
    check("sigsegv: in numbered_dies (numbered)" in xsptrace("info", path).stdout, "where", xsptrace("info", path).stdout)
    return {e["tid"] == target.pid: e["args"]["stack"].split(";") for e in trace.json["traceEvents"]
            if e.get("cat") == "sample" and e["args"]["weight (ns)"] == 0}


@case
def crash(folder):
    """The snapshot is named by the signal and says where it came. The call that dies is open in it, and each thread has its last stack.
    (In the middle of a probe the callers are not known: it may be there, but not each time.)"""
    for i in range(3):
        last = last_stacks_at_a_crash(f"{folder}/{i}")
        check(last[False][-1] == "numbered_dies", "the stack of the thread that dies", last)
        if "main" in last[True]:
            return
    check(False, "the stack of the other one", last)


@case
def an_end_is_no_crash(folder):
    """Its other threads are killed by its exit(), and nothing is said of where they were."""
    target = start([workload("sleeper"), "--threads", 2], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with Recording(folder, "-F", "-p", target.pid, "--profile") as recording:
        target.send_signal(signal.SIGTERM)
        equal(finish(target), 0, "the target's end")
        recording.wait()
    path, = snapshots(folder)
    equal(re.findall("^snapshot +(.*)", xsptrace("info", path).stdout, re.M), ["end"], "why")


def figures_of(pid):
    """Seconds of CPU time, KiB of memory, descriptors."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), int(status(pid)["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd"))


def times_of(pid):
    """How long each of its threads has run, waited for a CPU, and how often: by the scheduler."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
            found[thread] = f.read()
    return found


@case
def an_idle_process(folder):
    """Being armed costs a process nothing that does nothing: not a nanosecond by the scheduler's count."""
    target = start([workload("sleeper")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: "S" in status(target.pid)["State"], 5, "the target to sleep")
    before = times_of(target.pid)
    with Recording(folder, "-F", "-p", target.pid, "--profile", "--trigger", "rss>1G", "-d", "3") as recording:
        recording.wait()
    equal(times_of(target.pid), before, "times of its threads")


def count_all(folder, pid, events, go, lost_by_target, *options):
    """Records the program from go() until it waits: what came, and what it has lost itself, are its own counts; what came is in the snapshot, or was dropped as
    too old. Memory and descriptors stay as they are once the ring is full."""
    begun, rows = time.monotonic(), []
    with Recording(folder, "--flight-record=30s,64M", "-v", *NO_BRAKE, "-p", pid, *options) as recording:
        processes = [recording.process.pid, broker_of(recording.process.pid)]
        ends = go()
        while not ends():
            rows.append((time.monotonic() - begun, [figures_of(p) for p in processes]))
            time.sleep(1)
        seconds = time.monotonic() - begun
        lost_there = lost_by_target()
        recording.wait(seconds=120)
    came, dropped, lost = (int(x) for x in re.search(r"of (\d+), (\d+) were older and are dropped, (\d+) more were lost", recording.output()).groups())
    path, = snapshots(folder)
    kept = 2 * int(re.search(r"^([\d,]+) spans? of", xsptrace("export", path, "--summary").stdout, re.M)[1].replace(",", ""))
    print(f"  {events} events in {seconds:.0f} s, {events / seconds:.0f} a second: {came} came, {dropped} of them were dropped, {kept} are in the snapshot; "
          f"{lost_there} found no room, {lost} are said to be lost")
    for row in rows[::max(1, len(rows) // 20)]:
        print(f"  {row[0]:6.0f} s", *(f"  {cpu:8.2f} s of CPU, {kib >> 10:5} MiB, {fds:3} descriptors" for cpu, kib, fds in row[1]))
    check(0 <= came - (events - lost_there) < 20, "what came", came, events, lost_there)  # threads begin and end, too
    check(0 <= came - dropped - kept < came / seconds * 5, "what was not dropped is in the snapshot, or older than its first mark", came, dropped, kept)
    full, later = rows[len(rows) // 4:len(rows) // 2], rows[len(rows) // 2:]
    for i in 0, 1:
        equal({r[1][i][2] for r in later}, {r[1][i][2] for r in full}, "descriptors")
        before, after = (max(r[1][i][1] for r in some) for some in (full, later))
        check(after <= 1.05 * before + 2048, "memory at most, in KiB", before, after)
    return lost


EVENTS = int(float(os.environ.get("XSP_EVENTS", 2e7)))
CALLS = 50 * EVENTS  # by the agent: two spans each, of which some in a hundred find room


@case(long="twenty million events")
def at_full_speed(folder):
    """By probes. XSP_EVENTS: how many."""
    target = start_ready([workload("hot"), "--wait", "--threads", 1, "--calls", EVENTS // 2, "--out", f"{folder}/truth"])

    def go():
        target.send_signal(signal.SIGUSR1)
        return lambda: target.poll() is not None
    equal(count_all(folder, target.pid, EVENTS // 2 * 2, go, lambda: 0, "-e", "hot:hot_frame"), 0, "lost")
    equal(truth(f"{folder}/truth")["calls"]["hot_frame"], EVENTS // 2, "calls")


@case(long="hundreds of millions of events")
def at_an_agents_full_speed(folder):
    """By the agent's memory, into which it writes faster than anybody reads: a call that finds no room is counted."""
    target = start([f"{WORKLOADS}/rings_double/rings_double", "honest", CALLS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid, said = int(target.stdout.readline()), []

    def go():
        target.stdin.write("\n")
        target.stdin.flush()
        return lambda: bool(select.select([target.stdout], [], [], 0)[0])

    def lost():
        said.append(int(target.stdout.readline().split()[1]))
        time.sleep(1)  # what is in its memory is read
        target.stdin.close()
        return 4 * said[0]
    # of each call an entry and an exit of one function are said to be lost, as the other is in it
    equal(count_all(folder, pid, CALLS * 4, go, lost, "--inject", "--waits=off", "--sample=off"), 2 * said[0], "lost")


@case
def exec_and_folder(folder):
    """A snapshot of the program that is gone, in the folder that was asked for."""
    os.mkdir(f"{folder}/there")
    ready, go = f"{folder}/ready", f"{folder}/go"
    script = f"""
import os, time
def wait(): time.sleep(0.001)
open({ready!r}, "w")
while not os.path.exists({go!r}): wait()
os.execv("/bin/sleep", ["sleep", "60"])
"""
    target = start(["/usr/bin/python3", "-c", script])
    wait_for(lambda: os.path.exists(ready), 10, "the script")
    with Recording(folder, "-F", "-p", target.pid, "--profile", "-o", f"{folder}/there/") as recording:
        with open(go, "w", encoding="utf-8"):
            wait_snapshot(f"{folder}/there", 1, "exec")
        recording.stop()
        recording.wait()
    before, after = snapshots(f"{folder}/there")
    check(".exec." in before and ".sigint." in after, "names", before, after)
    check(f"process {target.pid} became another program: sleep" in xsptrace("info", before).stdout, "why")
    equal(snapshots(folder), [], "none is anywhere else")


@case
def recorder_killed(folder):
    """What was written is complete, nothing else is left, and the target goes on."""
    target = Witness(folder, "target", [workload("libc_caller"), COUNTERS])
    tool = Tool(folder)
    tool.start("--flight-record=10s,32M", "-p", str(target.pid), "-e", "libc.so:mem*", "--max-overhead", "off")
    tool.wait_live(20)
    for count in 1, 2, 3:
        tool.process.send_signal(signal.SIGUSR2)
        if count < 3:
            wait_snapshot(tool.folder, count)
    tool.process.kill()  # while the third one may be written
    tool.wait_gone()
    wait_text_clean([target.pid])
    target.check_right("the recorder was killed")
    for path in snapshots(tool.folder):
        convert(path)
    left = [n for n in os.listdir(tool.folder) if n.startswith(".xsptrace")]
    equal(left, [], "files without a name")


@case
def of_the_user(folder):
    """Files and --on-snapshot are the user's who called sudo."""
    target = Numbered(folder)
    place, hook = f"{folder}/place", f"{folder}/place/hook"
    os.mkdir(place)
    os.chmod(folder, 0o755)
    os.chown(place, NOBODY, NOBODY)
    with Recording(folder, "-F", "-p", target.pid, *RANGES, "-o", f"{place}/", "--user", NOBODY, "--on-snapshot", f"id -u > {hook}; :") as recording:
        target.wait_more(100)
        recording.stop()
        recording.wait()
    path, = snapshots(place)
    equal((os.stat(path).st_uid, os.stat(path).st_mode & 0o777), (NOBODY, 0o600), "owner and mode")
    wait_for(lambda: os.path.exists(hook) and os.path.getsize(hook) > 0, 5, "--on-snapshot")
    with open(hook, encoding="utf-8") as f:
        equal(f.read().split(), [str(NOBODY)], "who ran it")


@case
def disarmed(folder):
    """-d is over and nothing happened: nothing is written."""
    target = Numbered(folder)
    with Recording(folder, "-F", "-p", target.pid, *RANGES, "-d", "0.3") as recording:
        recording.wait()
    equal(snapshots(folder), [], "files")
    check("disarmed after" in recording.output(), recording.output())
    check(target.process.poll() is None, "the target goes on")


@case
def options(folder):
    """What cannot be meant is refused, before anything is recorded."""
    for words, says in ((["-F", "-o", f"{folder}/x.json"], "-o FOLDER/"),
                        (["-o", f"{folder}/", "-o", f"{folder}/x.json"], "leave out one -o"),
                        (["--on-snapshot", "true"], "-F"),
                        (["--flight-record=30s,1M"], "8M"),
                        (["--flight-record=often"], "30s,512M")):
        done = xsptrace(*words, "--", "/bin/true", status=USAGE)
        check(says in done.stderr, f"{words}: {says}", done.stderr)
    done = xsptrace("-F", "-o", f"{folder}/no/such/", "--profile", "--", "/bin/true", status=OUTPUT)
    check("cannot create" in done.stderr, "the folder", done.stderr)
    for words in ["--flight-record=0,0"], ["--flight-record=,64M"], ["--flight-record=5"]:
        xsptrace(*words, "-q", "--profile", "-o", f"{folder}/", "--", "/bin/true")
    equal(len(snapshots(folder, "end*")), len(snapshots(folder)), "reasons")


main(declined=["--waits=off", "--sample=off", "--python=off"])
