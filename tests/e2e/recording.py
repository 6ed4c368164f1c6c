#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ways to start, to end and to look at a recording; containers; every output format."""
import collections
import csv
import json
import mmap
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

from harness import (EXTRA, XSPTRACE, Recording, Skip, Trace, broker_of, case, check, check_calls, equal, finish, main, run,
                     start, start_ready, truth, wait_for, workload, xsptrace)


def looping(*options, path=None, **how):
    return start([path or workload("hot"), "--threads", 1, "--rate", 2000, "--seconds", 60, "--out",
                  "/dev/null", *options], **how)


@case
def begins_at_a_time_of_the_clock(folder):
    """The same moment on all hosts: a multiple of two seconds by the real-time clock."""
    child = looping()
    asked = time.time()
    done = xsptrace(*EXTRA, "-p", child.pid, "--start-at", "/2s", "-d", "0.1", "-e", "hot_*", "-o", f"{folder}/t.json")
    due = (int(asked) // 2 + 1) * 2
    begun = Trace(f"{folder}/t.json").json["xsptrace_window"]["start_ns"]
    check(due * 10**9 <= begun, "it began before", due, begun)
    # the tool may have looked at the clock after the first of them
    said = [time.strftime("begins at %H:%M:%S", time.localtime(t)) for t in (due, due + 2)]
    check(any(one in done.stderr for one in said), "it is said", done.stderr, said)
    for wrong in ("25:00", "12:60", "+0", "/0s", "noon", "+2d", "12:30pm"):
        xsptrace("-p", child.pid, "--start-at", wrong, status=2)
    child.kill()


@case
def default_outputs(folder):
    """The capture and a Chrome trace in the current folder, owned by the user who called sudo."""
    child = looping()
    os.chown(folder, 65534, 65534)
    xsptrace("-p", child.pid, "-d", "0.5", "-e", "hot_*", cwd=folder,
             env={**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"})
    files = sorted(os.listdir(folder))
    for name, ending in zip(files, (".json.gz", ".xspt")):
        check(re.fullmatch(rf"xsptrace\.hot\.{child.pid}\.\d{{8}}-\d{{6}}{re.escape(ending)}", name),
              "files", files)
    equal(len(files), 2, f"files {files}")
    for name in files:
        equal(os.stat(f"{folder}/{name}").st_uid, 65534, f"owner of {name}")
    check(Trace(f"{folder}/{files[0]}").calls["hot_frame"] > 100, "too few spans")


@case(quiet="how soon a recording ends")
def ways_to_end(folder):
    """Ctrl-C, SIGTERM, -d and the target's end each leave complete outputs."""
    for how in (signal.SIGINT, signal.SIGTERM, "duration", "target"):
        child = looping()
        out = f"{folder}/{how}.json"
        options = ["-d", "0.6"] if how == "duration" else []
        begun = time.monotonic()
        with Recording(folder, "-p", child.pid, "-e", "hot_*", *options, "-o", out,
                       name=str(how)) as r:
            time.sleep(0.4)
            if how == "target":
                child.terminate()
            elif not options:
                r.stop(how)
            r.wait(seconds=10)
        check(time.monotonic() - begun < 8, f"{how}: took {time.monotonic() - begun:.1f} s")
        trace = Trace(out)
        equal(trace.json["xsptrace_capture"]["end"], "complete", f"end by {how}")
        check(trace.calls["hot_frame"] > 100, f"{how}: too few spans")
        child.kill()


@case
def every_format_at_once(folder):
    child = looping("nested")
    names = ["t.json", "t.json.gz", "t.perf", "t.folded", "t.svg", "t.xspt", "t.csv", "t.speedscope.json", "t.pb.gz",
             "t.pftrace", "t.db"]
    xsptrace("-p", child.pid, "-d", "0.5", "-e", "hot_*",
             *[x for n in names for x in ("-o", f"{folder}/{n}")])
    trace = Trace(f"{folder}/t.json")
    spans = trace.calls
    check(spans["hot_nested"] > 100, "too few spans", spans)
    equal(Trace(f"{folder}/t.json.gz").calls, spans, "spans of .json.gz")
    # folded: "frames count", leaf last
    stacks = {}
    with open(f"{folder}/t.folded", encoding="utf-8") as f:
        for line in f:
            stack, _, weight = line.rstrip("\n").rpartition(" ")
            stacks[stack] = stacks.get(stack, 0) + int(weight)
    leaf = [s for s in stacks if s.endswith("hot_nested;hot_leaf")]
    check(leaf, "no stack hot_nested;hot_leaf", stacks)
    # perf script: a sample header, frames "address name (module)", a blank line
    with open(f"{folder}/t.perf", encoding="utf-8") as f:
        text = f.read()
    check(re.search(r"^\s+[0-9a-f]+ hot_leaf.*\n\s+[0-9a-f]+ hot_nested", text, re.M),
          "no sample with hot_leaf under hot_nested", text[:1000])
    svg = xml.parse(f"{folder}/t.svg").getroot()
    check(svg.tag.endswith("svg") and "hot_nested" in open(f"{folder}/t.svg", encoding="utf-8").read(),
          "not the flame graph", svg.tag)
    with sqlite3.connect(f"file:{folder}/t.db?mode=ro", uri=True) as db:
        equal(dict(db.execute("SELECT name, calls FROM operators").fetchall()), dict(spans), "spans of .db")
    with open(f"{folder}/t.csv", encoding="utf-8", newline="") as f:
        equal(collections.Counter(row["name"] for row in csv.DictReader(f)), spans, "spans of .csv")
    # what they hold: tables.py and tests/consumers
    check(all(os.path.getsize(f"{folder}/{n}") > 100 for n in ("t.speedscope.json", "t.pb.gz", "t.pftrace")), "empty files")
    # the same capture, exported later, is the same trace
    xsptrace("export", f"{folder}/t.xspt", "-o", f"{folder}/later.json", "-o", f"{folder}/later.folded")
    later = Trace(f"{folder}/later.json")
    equal(later.spans, trace.spans, "spans exported later")
    with open(f"{folder}/later.folded", encoding="utf-8") as a, \
            open(f"{folder}/t.folded", encoding="utf-8") as b:
        equal(a.read(), b.read(), "folded stacks exported later")
    info = xsptrace("info", f"{folder}/t.xspt").stdout
    check("hot" in info and str(child.pid) in info, "info does not name the process", info)


@case
def several_processes(folder):
    a, b = looping(), looping()
    out = f"{folder}/two.json"
    xsptrace("-p", f"{a.pid},{b.pid}", "-d", "0.5", "-e", "hot_frame", "-o", out)
    equal({e["pid"] for e in Trace(out).spans}, {a.pid, b.pid}, "processes in the trace")


@case
def threads_by_name(folder):
    """--comm: another name sees nothing, its own sees all."""
    child = looping()
    for name, some in (("nobody", False), ("hot", True), ("ho*", True)):
        out = f"{folder}/comm.json"
        xsptrace("-p", child.pid, "-d", "0.3", "-e", "hot_*", "--comm", name, "-o", out)
        equal(bool(Trace(out).spans), some, f"spans with --comm {name}")


@case
def calls_that_a_filter_holds_back(folder):
    """They are counted by call, not by hit."""
    calls = 700
    done = xsptrace("-e", "hot_frame", "--comm", "nobody", "--max-overhead", "off", "-o", "/dev/null", "--",
                    workload("hot"), "--threads", 1, "--calls", calls)
    truth_calls = json.loads([l for l in done.stdout.splitlines() if l.startswith("{")][0])["calls"]
    check(f"held back by filters: {truth_calls['hot_frame']:,}\n" in done.stdout, truth_calls, done.stdout)


@case
def dry_run_touches_nothing(folder):
    child = looping()
    xsptrace("-p", child.pid, "-e", "hot_*", "--dry-run", "-o", f"{folder}/x.json", cwd=folder)
    equal(os.listdir(folder), [], "files")


@case
def listing(folder):
    """What would be traced, where, and at what cost; classes as objdump shows the instructions."""
    child = looping()
    text = xsptrace("list", "-p", child.pid, "-e", "hot_*").stdout
    for word in ("hot_frame", "hot_leaf", "hot_nested", "emulated", "single-step"):
        check(word in text, f"no {word} in the list", text)
    check(not re.search(r"\bmain\b", text), "lists what was not asked for", text)
    without = xsptrace("list", "-p", child.pid, "-e", "hot_*", "-e", "!hot_leaf").stdout
    check("hot_leaf" not in without and "hot_frame" in without, "! does not leave out", without)


@case
def by_address(folder):
    """LIBRARY:0xADDRESS as nm shows it."""
    child = looping()
    done = run(["nm", workload("hot")])
    address = re.search(r"^0*([0-9a-f]+) T hot_frame$", done.stdout, re.M)[1]
    out = f"{folder}/address.json"
    xsptrace("-p", child.pid, "-d", "0.3", "-e", f"hot:0x{address}", "-o", out)
    check(Trace(out).calls["hot_frame"] > 50, "too few spans", Trace(out).calls)


@case(quiet="how soon a library has its probes")
def late_library(folder):
    """A library loaded while the recording runs is picked up within 100 ms."""
    facts, out = f"{folder}/truth", f"{folder}/late.json"
    child = start_ready([workload("dlopener"), "--wait", "--out", facts, "--calls", 6, 100000])
    with Recording(folder, "-p", child.pid, "-e", "plugin_*", "-e", "dlopener:main", "-o", out) as r:
        child.send_signal(signal.SIGUSR1)
        finish(child)
        r.wait()
    check_calls(Trace(out), truth(facts))


@case
def library_called_at_once(folder):
    """Calls of a library before it is attached to are not seen, and the output says so."""
    facts, out = f"{folder}/truth", f"{folder}/late.json"
    child = start_ready([workload("dlopener"), "--wait", "--out", facts, "--seconds", 1])
    with Recording(folder, "-p", child.pid, "-e", "plugin_*", "-e", "dlopener:main", "-o", out) as r:
        child.send_signal(signal.SIGUSR1)
        finish(child)
        r.wait()
    trace, calls = Trace(out), truth(facts)["calls"]
    check(0 <= calls["plugin_work"] - trace.calls["plugin_work"] <= calls["plugin_work"], "more than there are")
    said = trace.json["xsptrace_capture"]["libraries"]
    check(re.match(r"libplugin_[ab]\.so was attached to [0-9.]+ ms after it was loaded", said), "not said", said)
    check(f"libraries: {said}" in r.output(), "not in the summary", r.output())


@case
def library_of_a_short_life(folder):
    """A program loads a library, calls it and ends: the output says what was not seen, whenever the end came."""
    program = "import ctypes\nplugin = ctypes.CDLL({!r})\nfor _ in range({}): plugin.plugin_work(1)"
    for calls in (10, 1000):
        out = f"{folder}/{calls}.json"
        run([XSPTRACE, *EXTRA, "-q", "--summary=none", "-e", "plugin_work", "-o", out, "--", sys.executable, "-S", "-c",
             program.format(workload("libplugin_a.so"), calls)])
        trace = Trace(out) if os.path.exists(out) else None  # without a module that matches nothing is written
        check(trace is None or trace.calls["plugin_work"] == calls or "libraries" in trace.json["xsptrace_capture"],
              "calls that were not seen, and nothing says so", calls, trace and trace.calls)


@case
def breakpoints_that_the_program_drops(folder):
    """A page of code that the program drops comes back without its breakpoints: calls are missing, and the output says so."""
    facts, out = f"{folder}/truth", f"{folder}/t.json"
    child = start_ready([workload("drops_code"), "--wait", "--hold", "--out", facts])
    with Recording(folder, "-p", child.pid, "-e", "drops_code:*_work", "-o", out) as r:
        child.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(facts) and os.path.getsize(facts) > 0, 10, "the program's end")
        r.stop()
        r.wait()
    child.terminate()
    finish(child)
    trace, calls = Trace(out), truth(facts)["calls"]
    equal(trace.calls["kept_work"], calls["kept_work"], "calls whose page stayed")
    equal(trace.calls["dropped_work"], calls["dropped_work"] // 2, "calls before the page was dropped")
    said = trace.json["xsptrace_capture"]["breakpoints gone"]
    check(re.match(r"1 of functions.*missing; first: dropped_work$", said), "not said", said)
    equal(trace.json["xsptrace_losses"]["breakpoints_gone"], 1, "in the losses")
    check(f"breakpoints gone: {said}" in r.output(), "not in the summary", r.output())
    check("has dropped pages of its code" in r.output(), "not said at once", r.output())


@case
def what_is_missing_is_in_the_capture(folder):
    """An unreadable file, and threads without counters: the trace reports them."""
    bad = f"{folder}/bad.so"
    with open(bad, "wb") as f:
        f.write(b"\x7fELF" + bytes(8188))
    child = start_ready([sys.executable, "-c", f"""if True:
        import mmap, os, sys, threading, time
        with open({bad!r}, "rb") as f:
            mapped = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        print("ready", file=sys.stderr, flush=True)
        sys.stdin.readline()
        for i in range(3):
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        os.getppid()
        time.sleep(30)"""], stdin=subprocess.PIPE)
    with Recording(folder, "-p", child.pid, "-e", "libc.so.6:getppid", "--counters", "task-clock",
                   "-o", f"{folder}/t.json", "-o", f"{folder}/t.svg", "-o", f"{folder}/t.xspt") as recording:
        resource.prlimit(broker_of(recording.process.pid), resource.RLIMIT_NOFILE, (3, 4096))
        child.stdin.write(b"\n")
        child.stdin.flush()
        time.sleep(0.5)
        recording.stop()
        recording.wait()
    trace, info = Trace(f"{folder}/t.json"), xsptrace("info", f"{folder}/t.xspt").stdout
    told = trace.json["xsptrace_capture"]
    equal((trace.losses["files_left_out"], trace.losses["threads_not_counted"]), (1, 3), "counts")
    check(bad in told["files left out"] and "Too many open files" in told["threads not counted"], "why", told)
    check(re.search(rf"files left out +1 .*{bad}", info) and re.search(r"threads not counted +3 ", info), "info", info)
    check("files left out: 1, threads not counted: 3" in open(f"{folder}/t.svg", encoding="utf-8").read(), "the picture")


@case
def side_records_that_are_lost(folder):
    """While the recorder is stopped, one CPU maps more files than its ring of 256 KiB has room for."""
    def map_files(count):
        for _ in range(count):
            mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()

    child, cpus = start_ready([workload("hot"), "--wait", "--calls", "1"]), os.sched_getaffinity(0)
    with open(f"{folder}/mapped", "w+b") as file, \
            Recording(folder, "-p", child.pid, "-e", "hot:hot_*", "-o", f"{folder}/t.json", "-o", f"{folder}/t.xspt") as recording:
        file.write(bytes(4096))
        file.flush()
        os.sched_setaffinity(0, {min(cpus)})
        recording.process.send_signal(signal.SIGSTOP)
        map_files(6000)  # a record takes 96 bytes and more (perf_event_open(2))
        recording.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        map_files(1)  # where it finds room the kernel says how many did not
        os.sched_setaffinity(0, cpus)
        time.sleep(0.3)
        recording.stop()
        output = recording.wait()
    trace, info = Trace(f"{folder}/t.json"), xsptrace("info", f"{folder}/t.xspt").stdout
    lost = trace.losses["side_records_lost"]
    check(lost > 6000 - 262144 / 96 - 100, "lost", lost)
    check(re.match(f"{lost} of the kernel's", trace.json["xsptrace_capture"]["side records lost"]), "why", trace.json["xsptrace_capture"])
    check(re.search(rf"side records lost +{lost} of", info), "info", info)
    check(f"side records lost: {lost} of" in output, "summary", output)


@case
def pid_namespace(folder):
    """The target's own ids in the output: in its namespace it is number 1."""
    if run(["unshare", "-pf", "--mount-proc", "true"]).returncode:
        raise Skip("no pid namespaces here")
    shell = start(["unshare", "-pf", "--mount-proc", workload("hot"), "--threads", 1, "--rate", 500,
                   "--seconds", 60, "--out", "/dev/null"], stderr=subprocess.DEVNULL)
    children = f"/proc/{shell.pid}/task/{shell.pid}/children"
    inner = int(wait_for(lambda: open(children, encoding="ascii").read().split(), 5, "a child")[0])
    wait_for(lambda: os.readlink(f"/proc/{inner}/exe").endswith("/hot"), 5, "exec")
    try:
        out = f"{folder}/ns.json"
        xsptrace("-p", inner, "-d", "0.5", "-e", "hot_*", "-o", out)
        trace = Trace(out)
        check(trace.calls["hot_frame"] > 50, "too few spans")
        equal({(e["pid"], e["tid"]) for e in trace.spans}, {(1, 2)}, "process and thread ids")
    finally:
        os.kill(inner, signal.SIGKILL)


@case
def signals_that_were_ignored(folder):
    """A script starts `xsptrace ... &` with SIGINT ignored: it ends the recording all the same. SIGHUP's stays, as nohup wants it."""
    child = looping()
    script = 'trap "" HUP; "$@" & echo $!; wait $!; echo $? >&2'
    shell = start(["sh", "-c", script, "sh", XSPTRACE, "-p", child.pid, "-q", "-e", "hot_*", "-o", f"{folder}/i.xspt"],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(shell.stdout.readline())
    time.sleep(2)
    os.kill(pid, signal.SIGHUP)
    time.sleep(0.3)
    check(shell.poll() is None, "SIGHUP ended it")
    os.kill(pid, signal.SIGINT)
    equal(shell.communicate(timeout=30)[1].split()[-1], b"0", "status")
    check(os.path.getsize(f"{folder}/i.xspt") > 0, "nothing is recorded")


@case
def file_that_only_the_target_sees(folder):
    """The program lies in a mount namespace of its own, where xsptrace sees another file."""
    place = f"{folder}/place"
    os.mkdir(place)
    shutil.copy("/bin/true", f"{place}/hot")
    script = f'mount -t tmpfs none {place} && cp "$0" {place}/hot && exec {place}/hot "$@"'
    child = start(["unshare", "-m", "sh", "-c", script, workload("hot"), "--threads", 1, "--rate",
                   500, "--seconds", 60, "--out", "/dev/null"], stderr=subprocess.PIPE)
    time.sleep(0.5)
    if child.poll() is not None:
        raise Skip(f"no mount namespace: {child.stderr.read()}")
    out = f"{folder}/mnt.json"
    xsptrace("-p", child.pid, "-d", "0.5", "-e", "hot_*", "-o", out)
    check(Trace(out).calls["hot_frame"] > 50, "too few spans")


@case
def deleted_program(folder):
    """Replaced on disk while it runs, as an upgrade does."""
    path = f"{folder}/hot"
    shutil.copy(workload("hot"), path)
    child = looping(path=path)
    wait_for(lambda: os.readlink(f"/proc/{child.pid}/exe") == path, 5, "exec")
    os.unlink(path)
    out = f"{folder}/deleted.json"
    xsptrace("-p", child.pid, "-d", "0.5", "-e", "hot_*", "-o", out)
    check(Trace(out).calls["hot_frame"] > 50, "too few spans")


@case
def libraries_that_came_too_late(folder):
    """The program ends while they are being looked at: not that nothing matched, or that nothing was called."""
    unlooked = "what was loaded in the last [\\d.]+ ms of a process, or of the recording, was not looked at"
    for options in (["-e", "plugin_work"], ["-e", "plugin_work", "-e", "dlopener:ma?n"]):
        done = xsptrace(*options, "-o", f"{folder}/t.json", "--", workload("dlopener"), "--calls", 1, status=None)
        said = done.stdout + done.stderr
        check(re.search(unlooked, said) or "calls in between" in said, "why its calls are not there", said)


@case(quiet="how soon a recording ends")
def ends_in_time_where_nothing_was_called(folder):
    """To find out why looks at stacks of many threads, after the end."""
    child = start(["/usr/bin/python3", "-c", "import threading\n"
                   "for i in range(300): threading.Thread(target=threading.Event().wait).start()"])
    wait_for(lambda: len(os.listdir(f"/proc/{child.pid}/task")) > 300, 10, "threads")
    out = f"{folder}/idle.json"
    done = xsptrace("-p", child.pid, "-d", "0.5", "-e", "libc.so.6:getppid", "-o", out)
    check("no call began" in done.stderr, "does not say why", done.stderr)
    check(Trace(out).json["xsptrace_window"]["duration_ns"] < 0.9e9, "it went on", done.stderr)


@case
def launched_from_the_path(folder):
    """-- COMMAND is found as a shell finds it, gets its arguments and standard input."""
    out = f"{folder}/cat.json"
    done = xsptrace("-q", "-e", "libc.so.6:read", "-o", out, "--", "cat", "-", input="through\n",
                    stdin=None)
    check("through" in done.stdout, "standard output of the command", done.stdout)
    check(Trace(out).calls, "no spans")


main()
