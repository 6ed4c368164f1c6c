#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--follow: records children, leaves bystanders alone, and leaves nothing in place."""
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess

from harness import (AS_ASKED, ATTACH, EXTRA, NO_BRAKE, OK, TABLE, USAGE, Recording, Trace, case, check, check_as_shipped, equal, finish,
                     main, says_no_loss, start, wait_for, workload, xsptrace)

FAMILY = ["-e", "family:family_call"]
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def spans_by_process(path):
    counts = {}
    for e in Trace(path).spans:
        counts[e["args"].get("pid", e["pid"])] = counts.get(e["args"].get("pid", e["pid"]), 0) + 1
    return counts


def leaves(path, count):
    """{pid: calls}, once so many leaves have reported."""
    def read():
        with open(path, encoding="ascii") as f:
            lines = f.read().splitlines()
        return lines if len(lines) == count else None
    lines = wait_for(lambda: os.path.exists(path) and read(), 30, f"{count} leaves")
    return {int(a): int(b) for a, b in (line.split() for line in lines)}


def descendants(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
            for child in f.read().split():
                found += [int(child)] + descendants(int(child))
    return found


def changed_text(pid, path):
    """Bytes of the file's mapped text that differ in the memory of the process."""
    changed = 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        maps = [re.match(r"(\w+)-(\w+) ..x. (\w+) \S+ \d+ +(.*)", line) for line in f]
    for m in maps:
        if m is None or m[4] != path:
            continue
        begin, end, offset = (int(m[i], 16) for i in (1, 2, 3))
        with open(f"/proc/{pid}/mem", "rb") as mem, open(path, "rb") as file:
            mem.seek(begin)
            file.seek(offset)
            there = file.read(end - begin)
            changed += sum(a != b for a, b in zip(mem.read(len(there)), there))
    return changed


def program(folder):
    """A copy that no other process maps."""
    path = f"{folder}/family"
    shutil.copy(workload("family"), path)
    return path


def begin(shell):
    """It has waited for a line, until it was attached to."""
    shell.stdin.write(b"go\n")
    shell.stdin.flush()


@case
def bystanders_are_left_alone(folder):
    """A process that maps the same C library keeps its bytes and its speed, while children of the
    traced one are followed."""
    libc, out = f"{folder}/libc.so.6", f"{folder}/b.xspt"
    shutil.copy(os.path.realpath(LIBC), libc)
    environment = {**os.environ, "LD_LIBRARY_PATH": folder}
    bystander = start([workload("family"), "loop"], env=environment, stdout=subprocess.PIPE)
    before = statistics.median(float(bystander.stdout.readline()) for _ in range(20))
    parent = start([workload("family"), f"{folder}/leaves", 4, 0, 0, 50], env=environment)
    wait_for(lambda: len(descendants(parent.pid)) == 4, 10, "children")
    with Recording(folder, "-p", parent.pid, "--follow", "-e", f"{libc}:*rand_r*", "-o", out) as r:
        check(changed_text(parent.pid, libc) > 0, "the traced process has no probe")
        equal(changed_text(bystander.pid, libc), 0, "bytes changed in the bystander")
        during = statistics.median(float(bystander.stdout.readline()) for _ in range(20))
        for pid in descendants(parent.pid):
            os.kill(pid, signal.SIGUSR1)
        equal(finish(parent), 0, "status")
        r.wait()
    print(f"  a call of the bystander: {before} ns before, {during} ns during")
    check(during < 10 * before + 100, f"{before} ns before, {during} ns during")


@case
def children_are_counted_exactly(folder, *options):
    """Children that sleep for 600 ms before they call: each call of each is there."""
    out, file = f"{folder}/c.json", f"{folder}/leaves"
    done = xsptrace(*EXTRA, *options, "--follow", *FAMILY, "-o", out, "--", program(folder), file, 12, 0, 600, 100)
    check(not says_no_loss(done.stdout) and "no event was lost; calls of children" in done.stdout,
          "what was not seen is no loss", done.stdout)
    equal(sum(leaves(file, 12).values()), 1200, "calls")
    trace = Trace(out)
    trace.check_nothing_lost()
    equal(dict(trace.calls), {"family_call": 1200}, "spans")
    said = trace.json["xsptrace_capture"]["children"]
    check(re.match(r"12 born, 12 attached to [\d.]+ ms \(median\) after their birth, [\d.]+ ms at "
                   r"most; calls in between are not seen$", said), said)
    median, most = (float(x) for x in re.findall(r"([\d.]+) ms", said))
    print(f"  {said}")
    check(median <= most < 600, said)
    check_as_shipped(trace, options)


@case
def children_are_counted_exactly_bare(folder):
    children_are_counted_exactly(folder, *AS_ASKED)


@case
def stopped_children_miss_nothing(folder):
    """--follow=stop: the first call of a child, and of what it execs, is seen."""
    out, file = f"{folder}/s.json", f"{folder}/leaves"
    path = program(folder)
    done = xsptrace(*EXTRA, "--follow=stop", *FAMILY, "-o", out, "--", "sh", "-c",
                    f"i=0; while [ $i -lt 20 ]; do {path} {file} 1 0 1 10; i=$((i+1)); done",
                    status=None)
    if "needs Linux 6.13" in done.stderr:
        return
    equal(done.returncode, OK, f"status: {done.stderr}")
    check(says_no_loss(done.stdout), "a loss", done.stdout)
    equal(sum(leaves(file, 20).values()), 200, "calls")
    equal(dict(Trace(out).calls), {"family_call": 200}, "spans")


@case
def ended_while_a_child_is_stopped(folder):
    """The recording ends while a new program is stopped at its exec and examined."""
    program = os.path.realpath("/usr/bin/python3")
    # it closes our pipes, for whose end we wait
    loop = (f"exec >/dev/null 2>&1; i=0; while [ -e {folder}/on ]; do i=$((i+1)); cp {program} {folder}/fresh$i; {folder}/fresh$i -Sc pass; "
            f"rm {folder}/fresh$i; done")
    for seconds in (0.3, 0.35, 0.4, 0.45, 0.5, 0.55):
        with open(f"{folder}/on", "wb"):
            pass
        done = xsptrace(*EXTRA, "--follow=stop", "-d", seconds, "-e", "fresh*:*", "-e", "libc.so.6:getppid", "-o", f"{folder}/t.xspt", "--",
                        "sh", "-c", loop, status=None)
        if "needs Linux 6.13" in done.stderr:
            return
        equal(done.returncode, OK, f"status\n{done.stderr}")
        check("complete" in xsptrace("info", f"{folder}/t.xspt").stdout, "its end")
        pid = int(re.search(r"goes on as process (\d+)", done.stdout + done.stderr)[1])
        os.unlink(f"{folder}/on")
        wait_for(lambda p=pid: not os.path.exists(f"/proc/{p}"), 20, "the loop to end: was somebody left standing?")


@case
def ends_are_seen_from_the_first_call_on(folder):
    """Probes go one by one into children that call what they are for all the time: no call is seen to begin of which the end is not."""
    # each makes blocks, and gives others back, for 100 ms of CPU time: the probes come meanwhile
    script = 'while ((times)[0] + (times)[1] < 0.1) { for (1 .. 50) { $h{$_} = [1 .. 5] } }'
    out = f"{folder}/t.json"
    xsptrace(*EXTRA, "-q", "-f", "-e", "libc.so.6:*alloc*", "-o", out, "--", "/bin/sh", "-c", "for i in 1 2 3 4 5 6; do perl -e '%s'; done" % script)
    trace = Trace(out)
    equal(trace.lost(), {}, "losses")
    check(trace.spans, "no call was seen")
    equal(trace.json["xsptrace_timeline"]["exit_lost"], 0, "ends that were not seen")


@case
def a_killed_recorder_leaves_nobody_stopped(folder):
    file = f"{folder}/leaves"
    script = f"for i in 1 2 3 4 5 6 7 8; do {program(folder)} {file} 8 0 1 10; done"
    shell = start(["sh", "-c", f"read go; {script}; exit 7"], stdin=subprocess.PIPE)
    with Recording(folder, "-p", shell.pid, "--follow=stop", "-e", "family_call", "-e",
                   "libc.so.6:rand_r", "-o", f"{folder}/k.xspt") as r:
        begin(shell)
        wait_for(lambda: os.path.exists(file), 20, "the first leaf")
        r.stop(signal.SIGKILL)
        r.process.wait()
    equal(finish(shell, 30), 7, "status of the shell")
    leaves(file, 64)


@case
def those_that_were_there_before(folder):
    """-p PID --follow: the whole tree below it, grandchildren too."""
    out, file = f"{folder}/p.json", f"{folder}/leaves"
    parent = start([program(folder), file, 3, 4, 0, 25])
    wait_for(lambda: len(descendants(parent.pid)) == 15, 10, "the tree")
    with Recording(folder, "-p", parent.pid, "--follow", *FAMILY, "-o", out) as r:
        for pid in descendants(parent.pid):
            if not descendants(pid):
                os.kill(pid, signal.SIGUSR1)
        equal(finish(parent), 0, "status")
        r.wait()
    equal(sum(leaves(file, 12).values()), 300, "calls")
    equal(dict(Trace(out).calls), {"family_call": 300}, "spans")


@case
def ended_children_of_another_user(folder):
    """Zombies: they have ended, and the kernel still allows a look."""
    script = f"{folder}/parent.py"
    with open(script, "w", encoding="ascii") as f:
        f.write("import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setuid(65534)\n        os._exit(0)\n"
                "time.sleep(0.2)\nprint('ready', flush=True)\ntime.sleep(60)\n")
    parent = start(["/usr/bin/python3", script], stdout=subprocess.PIPE)
    try:
        parent.stdout.readline()
        done = xsptrace("-p", parent.pid, "--follow", "--profile", "-d", "0.3", "-o", f"{folder}/z.xspt")
        check("permission" not in done.stderr, "they have ended", done.stderr)
    finally:
        parent.kill()
        parent.wait()


@case
def exec_in_the_same_process(folder):
    """env and its like: every call of what they exec, also without --follow."""
    path = program(folder)
    for option in ([], ["--follow"]):
        for before in (["env", "X=1"], ["nice", "env"], ["sh", "-c", 'exec "$@"', "sh"]):
            out = f"{folder}/e.json"
            xsptrace(*EXTRA, *option, "-e", f"{path}:main", "-o", out, "--", *before, path,
                     f"{folder}/l", 0, 0, 1, 1)
            equal(dict(Trace(out).calls), {"main": 1}, f"{option} {before}: spans")
            if not ATTACH and tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 13):
                # it stood there until its probes were in
                equal(Trace(out).json["xsptrace_capture"].get("execs"), None, f"{option} {before}: calls not seen")


@case
def parents_of_what_execs(folder):
    """A shell starts a shell that becomes the program: by then it has been two programs, and its parent is who its $PPID is."""
    path, kin = program(folder), f"{folder}/kin"
    xsptrace(*EXTRA, "--follow", "-e", f"{path}:family_call", "-o", f"{folder}/p.db", "--", "sh", "-c",
             f"sh -c 'echo $$ $PPID >{kin}; sleep 0.3; exec {path} {folder}/leaves 1 0 300 1'; true")
    with open(kin, encoding="ascii") as f:
        child, parent = map(int, f.read().split())
    (leaf,) = leaves(f"{folder}/leaves", 1)
    db = sqlite3.connect(f"{folder}/p.db")
    told = dict(db.execute("SELECT p.pid, q.pid FROM processes p LEFT JOIN processes q ON q.process_id = p.parent_id"))
    db.close()
    equal({p: told.get(p) for p in (parent, child, leaf)}, {parent: None, child: parent, leaf: child}, "parents")


@case
def shells_and_launchers(folder):
    """A program that somebody else starts, as a child."""
    path, out = program(folder), f"{folder}/l.json"
    with open(f"{folder}/launcher.py", "w", encoding="ascii") as f:
        f.write("import subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n")
    for before in (["sh", "-c", '"$@"; true', "sh"], ["python3", f"{folder}/launcher.py"]):
        file = f"{folder}/leaves"
        xsptrace(*EXTRA, "--follow", "-e", f"{path}:family_call", "-o", out, "--", *before, path,
                 file, 2, 0, 600, 40)
        leaves(file, 2)
        os.unlink(file)
        equal(dict(Trace(out).calls), {"family_call": 80}, f"{before[0]}: spans")


@case
def fork_storm(folder):
    """500 short processes: each is followed or counted as missed, the links of the dead go, and the text of
    the shell is as it was."""
    path, out, file = program(folder), f"{folder}/f.json", f"{folder}/leaves"
    script = (f"i=0; while [ $i -lt 250 ]; do {path} {file} 1 0 1 2; i=$((i+1)); done;"
              "kill -USR1 $$; read nothing")  # a sleep would outlive the shell, with our output
    shell = start(["sh", "-c", f"trap 'done=1' USR1; read go; {script}"], stdin=subprocess.PIPE)
    libc = os.path.realpath(LIBC)
    with Recording(folder, "-p", shell.pid, "--follow", "-e", "family_call", "-e", "libc.so.6:rand_r",
                   "-o", out) as r:
        check(changed_text(shell.pid, libc) > 0, "the shell has no probe")
        begin(shell)
        leaves(file, 250)
        with open(f"/proc/{r.process.pid}/stat", encoding="ascii") as f:
            check(f.read().split()[2] != "Z", "xsptrace ended")
        folder_of_it = f"/proc/{r.process.pid}/fd"
        most = len(os.listdir(folder_of_it))
        # each closes after a grace period of the kernel's
        wait_for(lambda: len(os.listdir(folder_of_it)) < 150, 20, f"links of the dead to go: {most}")
        r.stop()
        r.wait()
    print(f"  {most} descriptors when the last had ended")
    said = Trace(out).json["xsptrace_capture"]["children"]
    print(f"  {said}")
    born = int(said.split()[0])
    told = sum(int(x) for x in re.findall(r"(\d+) (?:attached|had ended|could not|were not reached)", said))
    equal(told, born, f"followed and missed: {said}")
    check(born >= 500, said)
    equal(changed_text(shell.pid, libc), 0, "bytes changed in the shell")


def children_cpu(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        pids = f.read().split()
    ticks = 0
    for child in pids:
        with open(f"/proc/{child}/stat", encoding="ascii") as f:
            ticks += sum(int(x) for x in f.read().rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


@case
def a_launcher_is_said(folder):
    """A process that only waits for its child, which works: that is said at the start, and -f=stop records both."""
    parent = start(["/bin/sh", "-c", f"{workload('samples')} --seconds 100 --out /dev/null & wait"], start_new_session=True)
    try:
        wait_for(lambda: children_cpu(parent.pid) > 0.3, 20, "the child works")
        said = xsptrace("--profile", "-p", parent.pid, "-d", "0.2", "-o", f"{folder}/p.xspt").stderr
        check(re.search(r"1 child holds the work, and -f records them", said), "not said", said)
        said = xsptrace("--profile", "-f", "-p", parent.pid, "-d", "0.2", "-o", f"{folder}/f.xspt").stderr
        check("holds the work" not in said, "said with -f", said)
        processes = xsptrace("info", f"{folder}/f.xspt").stdout
        check("samples" in processes, "the child is not recorded", processes)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
    refused = xsptrace("-f=halt", "--", "/bin/true", status=USAGE).stderr
    check("--follow" in refused and "halt" in refused, "a way to follow that there is not", refused)


main(declined=[*NO_BRAKE, TABLE])
