#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The account of the time: each row against the program's own clocks."""
import json
import os
import re
import shutil
import subprocess

from harness import TORCH as PYTHON, Recording, Skip, case, check, equal, json_report, main, start, workload, xsptrace

# Its parts by its own clocks: CPU time of each function, wall time of each wait.
PROGRAM = """
import json, os, sys, threading, time
spent = {}
def timed(clock):
    def around(function):
        def run(*arguments):
            begun = clock()
            function(*arguments)
            spent[function.__name__] = spent.get(function.__name__, 0) + clock() - begun
        return run
    return around
@timed(time.thread_time)
def large():
    for i in range(60000): i * i
@timed(time.thread_time)
def middle():
    sum(i * i for i in range(20000))
@timed(time.thread_time)
def small():
    json.loads(text)
@timed(time.monotonic)
def sleeps():
    time.sleep(0.002)
@timed(time.monotonic)
def reads():
    ask.write(b"x"); ask.flush()
    answer.read(1)
def answers():
    while True:
        if not there.read(1): return
        time.sleep(0.001)
        back.write(b"y"); back.flush()
def pipe():
    r, w = os.pipe()
    return os.fdopen(r, "rb", 0), os.fdopen(w, "wb", 0)
text = json.dumps(list(range(8000)))
there, ask = pipe()
answer, back = pipe()
threading.Thread(target=answers, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
while time.monotonic() - begun < 3:
    large(); middle(); small(); sleeps(); reads()
    spent["rounds"] = spent.get("rounds", 0) + 1
spent["all"] = time.monotonic() - begun
print(json.dumps(spent), flush=True)
sys.stdin.readline()
"""


def recorded(folder, *options):
    script = f"{folder}/parts.py"
    with open(script, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    child = start([PYTHON, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.stdout.readline(), b"ready\n", "what it says first")
    with Recording(folder, "-p", child.pid, "--waits", "--sample=499", "--python", *options, "-o", f"{folder}/a.xspt") as r:
        child.stdin.write(b"\n")
        child.stdin.flush()
        spent = json.loads(child.stdout.readline())
        child.communicate(b"\n", timeout=60)
        r.wait()
    return spent, json_report("analyze", f"{folder}/a.xspt")


def account_of(report):
    section = report["sections"]["account"]
    return section["values"], {key: table["rows"] for key, table in section["tables"].items()}


def is_in(row, function):
    """Also in a generator expression of it."""
    return (row["place"] or "").split(".<locals>.<")[0].endswith(f" {function}")


def of_function(rows, function, *kinds):
    return 1e-9 * sum(r["ns"] for r in rows if is_in(r, function) and r["kind"] in kinds)


@case
def each_row_by_the_programs_own_clocks(folder):
    spent, report = recorded(folder)
    values, tables = account_of(report)
    equal(sum(r["ns"] for r in tables["rows"]), values["ns"], "the rows add up")
    equal(sum(r["ns"] for r in tables["places"] if r["part"] is None), values["ns"], "the places add up")
    error = {p["what"].split("  ")[0].split(" ")[-1]: (p["error_share"] or 0) * 1e-9 * values["ns"] for p in tables["places"]}
    for function in ("large", "middle", "small"):
        got, own = of_function(tables["rows"], function, "on CPU", "span"), spent[function]
        allowed = 2 * error.get(function, 0) + 0.1 * own + 0.03
        check(abs(got - own) < allowed, f"{function}: {got:.3f} s on CPU, {own:.3f} by its own clock, +- {allowed:.3f}", tables["places"])
    for function, reason, least in (("sleeps", "sleep", 0.002), ("reads", "pipe", 0.0009)):
        got = of_function(tables["rows"], function, "waiting")
        reasons = {r["reason"] for r in tables["rows"] if is_in(r, function) and r["kind"] == "waiting"}
        check(reason in reasons, f"{function} waits for something else", reasons)
        # it also stands in line for a CPU, and runs, within its own clock
        check(0.95 * least * spent["rounds"] < got <= spent[function] + 0.02, f"{function}: waits {got:.3f} s of {spent[function]:.3f}")


SHORT_WAITS = """
#include <time.h>
#include <unistd.h>
#define NAPS __attribute__((noinline))
NAPS void often(void) { for (int i = 0; i < 3; i++) usleep(150); __asm__ volatile(""); }
NAPS void seldom(void) { usleep(150); __asm__ volatile(""); }
int main(void)
{
	for (time_t end = time(NULL) + 3; time(NULL) < end;) { often(); seldom(); }
}
"""


@case
def short_waits_have_places(folder):
    """None is as long as a wait whose stack is read (1 ms): the places are a sample of the time, three to one."""
    with open(f"{folder}/naps.c", "w", encoding="ascii") as f:
        f.write(SHORT_WAITS)
    equal(subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", f"{folder}/naps.c", "-o", f"{folder}/naps"], check=False).returncode, 0, "gcc")
    xsptrace("-q", "--waits", "--sample", "-o", f"{folder}/n.xspt", "--", f"{folder}/naps", timeout=60)
    values, tables = account_of(json_report("analyze", f"{folder}/n.xspt"))
    ns = {f: sum(r["ns"] for r in tables["rows"] if r["kind"] == "waiting" and r["place"] == f) for f in ("often", "seldom")}
    check(sum(ns.values()) > 0.9 * sum(r["ns"] for r in tables["rows"] if r["kind"] == "waiting"), "waits have places", tables["rows"])
    check(0.65 < ns["often"] / sum(ns.values()) < 0.85, f"three of four waits are in often(): {ns}", values)


@case
def sums_are_the_kernels(folder):
    """Of every thread: running, ready, blocked, as the scheduler counts them."""
    _, report = recorded(folder)
    _, tables = account_of(report)
    threads = report["sections"]["threads"]["tables"]["threads"]["rows"]
    families = tables["families"]
    for mine, kernels in (("cpu_ns", "running_ns"), ("ready_ns", "runnable_ns")):
        got, expected = sum(f[mine] for f in families), sum(t[kernels] for t in threads)
        check(abs(got - expected) <= 0.005 * max(expected, 1) + 1e6, f"{mine}: {got}, the kernel says {expected}", families, threads)
    equal(sum(f["ns"] for f in families), sum(t["time_ns"] for t in threads), "the time of all threads")


def limited_group():
    """A control group for a fifth of a CPU, by version 1 or 2, and the file that takes processes; skips where neither can be made."""
    for root, limit, text, tasks in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000", "tasks"),
                                     ("/sys/fs/cgroup", "cpu.max", "20000 100000", "cgroup.procs")):
        group = f"{root}/xsptrace-test-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/{limit}", "w", encoding="ascii") as f:
                f.write(text)
            return group, f"{group}/{tasks}"
        except OSError:
            os.rmdir(group)
    raise Skip("no control group for CPU time can be made here")


@case
def a_control_group_at_its_limit(folder):
    """A program that computes, in a group that may use a fifth of a CPU: the first screen names the limit, as the kernel counts it."""
    group, tasks = limited_group()
    child = start([PYTHON, "-c", "while True: sum(range(10000))"])
    try:
        with open(tasks, "w", encoding="ascii") as f:
            f.write(str(child.pid))
        xsptrace("--profile", "-p", child.pid, "-d", "2", "-o", f"{folder}/limit.xspt")
        with open(f"{group}/cpu.stat", encoding="ascii") as f:
            counts = dict(line.split() for line in f)
    finally:
        child.kill()
        child.wait()
        os.rmdir(group)
    said = xsptrace("analyze", f"{folder}/limit.xspt").stdout
    flat = " ".join(said.split())
    found = re.search(r"HIGH thread python3 could run and had no CPU for ([\d.]+) % of the time do: its control group may use 0\.2 CPUs, "
                      r"and was stopped in (\d+) of (\d+) periods", flat)
    check(found, "the limit is not named", said)
    check(65 < float(found[1]) < 85, "its share of the time", said)
    check(15 <= int(found[2]) <= int(counts["nr_throttled"]), "how often it was stopped", said, counts)


@case
def one_screen_of_80_by_24(folder):
    recorded(folder)
    for done in (xsptrace("analyze", f"{folder}/a.xspt"), xsptrace("analyze", "-q", f"{folder}/a.xspt", "--from", "0.5")):
        lines = done.stdout.splitlines()
        check(len(lines) <= 24 and all(len(l) <= 80 for l in lines), "larger than a screen", done.stdout)
        check("large" in done.stdout and " was lost" in done.stdout, "what it says", done.stdout)
    check(len(xsptrace("analyze", "--full", f"{folder}/a.xspt").stdout.splitlines()) > 40, "--full says no more")


@case
def functions_of_a_program_in_c(folder):
    """By samples alone: what the program's own functions take, not those of the libraries that they call."""
    done = xsptrace("-q", "--waits", "--sample=499", "-o", f"{folder}/c.xspt", "--", workload("faults"), "hot", timeout=60)
    check(done.returncode == 0, "it ended", done)
    values, tables = account_of(json_report("analyze", f"{folder}/c.xspt"))
    equal(sum(r["ns"] for r in tables["rows"]), values["ns"], "the rows add up")
    check("burn" in tables["places"][0]["what"], "the first place", tables["places"])


# Two functions go through the same two helpers; their own clocks tell the share of each.
HELPERS = """
import json, sys, time
spent = {}
def computes(n):
    for i in range(n): i * i
def helper(n):
    computes(n)
def goes_through(function, n):
    begun = time.thread_time()
    helper(n)
    spent[function] = spent.get(function, 0) + time.thread_time() - begun
def often():
    goes_through("often", 90000)
def seldom():
    goes_through("seldom", 40000)
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
while time.monotonic() - begun < 3:
    often(); seldom()
print(json.dumps(spent), flush=True)
"""


@case
def callers_up_to_where_they_differ(folder):
    with open(f"{folder}/helpers.py", "w", encoding="ascii") as f:
        f.write(HELPERS)
    child = start([PYTHON, f"{folder}/helpers.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.stdout.readline(), b"ready\n", "what it says first")
    with Recording(folder, "-p", child.pid, "--profile", "--sample=499", "-o", f"{folder}/h.xspt") as r:
        out, _ = child.communicate(b"\n", timeout=60)
        r.wait()
    spent = json.loads(out)
    _, tables = account_of(json_report("analyze", f"{folder}/h.xspt"))
    said = next(p["from"] for p in tables["places"] if p["what"].endswith(" computes"))
    found = re.fullmatch(r"helper:7 < goes_through:10 < often:13 (\d+) %, seldom:15 (\d+) %", said or "")
    check(found, "who calls it", said, tables["places"])
    own = 100 * spent["often"] / sum(spent.values())
    check(abs(int(found[1]) - own) < 10 and 99 <= int(found[1]) + int(found[2]) <= 101, f"{said}; {own:.0f} % by its own clock")
    screen = xsptrace("analyze", f"{folder}/h.xspt").stdout
    check(f"      from {said}" in screen.splitlines(), "the first screen", screen)


@case
def what_runs_a_script_is_no_place(folder):
    """Samples find the functions of perl alone: the screen says so once. Those of JavaScript are named."""
    script = "for (1..4000) { $n += length($_ . $n) for 1..1000 }"
    if shutil.which("perl") is None:
        raise Skip("no perl here")
    xsptrace("-q", "--profile", "-o", f"{folder}/s.xspt", "--", "perl", "-e", script, timeout=60)
    said = " ".join(xsptrace("analyze", f"{folder}/s.xspt").stdout.split())
    equal(said.count("places are functions of perl itself: nothing names Perl's subroutines"), 1, f"what it says of perl: {said}")
    script = "function pack(n) { return JSON.stringify([n.length]); }\nfor (let i = 0, n = ''; i < 2e6; i++, n = n.slice(-99)) n += pack(n);"
    if shutil.which("node") is not None:
        xsptrace("-q", "--profile", "-o", f"{folder}/s.xspt", "--", "node", "--no-opt", "-e", script, timeout=60)
        said = xsptrace("analyze", f"{folder}/s.xspt").stdout
        check(" eval:1 pack " in said and "itself:" not in said, "places of JavaScript", said)


main()
