#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--memory=malloc: against a program that counts what it allocates (tests/workloads/heap.cc), and against what the C
library and programs that nobody here wrote count of themselves. With a sample in every byte all is counted; with others
the figures lie within the error that Poisson sampling has, computed here from the program's own counts."""
import glob
import json
import math
import os
import random
import re
import shutil
import signal
import time

from harness import (NO_BRAKE, USAGE, Recording, Skip, case, check, equal, json_report, libc_path, main, start_ready, workload,
                     xsptrace)

BLOCK = 1000
CALLS = 11  # of heap.cc's balance_here() and leak_here(), a round
SIZES = [BLOCK] * 10 + [3 * BLOCK]


def summary_of(capture):
    return json.loads(xsptrace("export", "--summary", "json", capture).stdout)


def own_libraries(folder):
    """An environment in which a program has malloc() and new for itself. Where another process's malloc() has a return probe, the
    kernel puts its trampoline on the stacks of all that have a probe of any kind there, and their callers are [uprobes]."""
    for path in (libc_path(), os.path.join(os.path.dirname(libc_path()), "libstdc++.so.6")):
        if os.path.exists(path):
            shutil.copy(path, folder)
    return {"LD_LIBRARY_PATH": folder}


def attached(folder, command, *options, **environment):
    """The summary's allocations, and what the program prints."""
    child = start_ready(command, stdout=-1, env={**os.environ, **own_libraries(folder), **environment})
    with Recording(folder, "-p", child.pid, *options, "-o", f"{folder}/heap.xspt") as recording:
        child.send_signal(signal.SIGUSR1)
        printed = child.communicate(timeout=120)[0]
        equal(child.returncode, 0, "status of the program")
        recording.wait(seconds=60)
    return summary_of(f"{folder}/heap.xspt"), json.loads(printed)


def at(sites, function):
    """Sums over the sites of a function of the program."""
    return {key: sum(s[key] for s in sites if s.get("at", "").split(" ")[0] == function)
            for key in ("alive_bytes", "alive", "allocated_bytes", "allocations")}


def check_all(folder, *options, threads=3, rounds=200, **environment):
    summary, facts = attached(folder, [workload("heap"), rounds, threads, BLOCK, "--wait"], *NO_BRAKE, "--memory=malloc:1",
                              *options, **environment)
    allocations = summary["allocations"]
    equal(allocations["lost"], 0, "lost")
    leak, balance = at(allocations["sites"], "leak_here"), at(allocations["sites"], "balance_here")
    equal(leak, {"alive_bytes": facts["kept_bytes"], "alive": facts["kept_blocks"], "allocated_bytes": facts["kept_bytes"],
                 "allocations": facts["kept_blocks"]}, "leak_here")
    equal(balance, {"alive_bytes": 0, "alive": 0, "allocated_bytes": facts["allocated"] - facts["kept_bytes"],
                    "allocations": facts["allocations"] - facts["kept_blocks"]}, "balance_here")
    equal(at(allocations["sites"], "empty_here"),
          {"alive_bytes": 0, "alive": 0, "allocated_bytes": 3, "allocations": 3}, "blocks of no bytes")
    for site in allocations["sites"]:
        if site["at"].startswith("leak_here"):
            check(site["at"].startswith(f"leak_here (heap.cc:{facts['leak_line']}) <- work <- "), "callers", site)
        equal(site["alive_error_bytes"], 0, site)
    pool, = allocations["pools"]
    equal(pool["end_error_bytes"], 0, "error of what is counted")
    return allocations, facts


@case
def every_block_is_counted(folder):
    allocations, facts = check_all(folder)
    pool, = allocations["pools"]
    others = [s for s in allocations["sites"] if not re.match("leak_here|balance_here", s["at"])]
    equal(pool["allocations"], facts["allocations"] + sum(s["allocations"] for s in others), "allocations")
    equal(pool["end_bytes"], facts["alive"] + sum(s["alive_bytes"] for s in others), "alive")
    table = xsptrace("export", f"{folder}/heap.xspt").stdout
    check(re.search(r"heap, allocated since the recording began, as estimated from a sample: ", table), "the sum", table)
    check(re.search(r"heap \(estimated\), by where\n +\S+ \w+ .* leak_here \(heap\.cc:\d+\) <- work", table), "the table", table)


@case
def lines_of_the_source(folder):
    """... as __LINE__ has them: of a call, and of one that the compiler has put there from a header. Told in every form."""
    allocations, facts = check_all(folder, rounds=20)
    lines = {(s["at"].split(" ")[0], os.path.basename(s["file"]), s["line"]) for s in allocations["sites"] if "line" in s}
    for function in ("leak", "contain"):
        equal({x for x in lines if x[0] == f"{function}_here"}, {(f"{function}_here", "heap.cc", facts[f"{function}_line"])},
              "lines")
    check(len({x for x in lines if x[0] == "balance_here"}) >= 8, "each call is a place of its own", lines)
    table = json_report("analyze", f"{folder}/heap.xspt")["sections"]["memory"]["tables"]["sites"]
    check(any(row["source"] == f"{s['file']}:{s['line']}" for row in table["rows"]
              for s in allocations["sites"] if s["at"].startswith("leak_here")), "the report's", table)


@case
def what_was_there_before_exec_is_gone(folder):
    """Ten megabytes of a program that then becomes heap.cc's."""
    python = f"import os; kept = [bytearray(100000) for i in range(100)]; os.execv({workload('heap')!r}, ['heap', '5', '1', '1000'])"
    done = xsptrace(*NO_BRAKE, "--memory=malloc:1", "-o", f"{folder}/heap.xspt", "--", "/usr/bin/python3", "-c", python)
    facts = json.loads(done.stdout.splitlines()[0])
    allocations = summary_of(f"{folder}/heap.xspt")["allocations"]
    equal(at(allocations["sites"], "leak_here")["alive_bytes"], facts["kept_bytes"], "leak_here")
    pool, = allocations["pools"]
    check(pool["allocated_bytes"] > 10 ** 7, "the first program", pool)
    # and what the C library has for itself
    check(facts["alive"] <= pool["end_bytes"] < facts["alive"] + 10 ** 6, "alive", pool, facts)
    equal(pool["end_bytes"], sum(s["alive_bytes"] for s in allocations["sites"]), "in all places")


@case
def through_sites_instead_of_return_probes(folder):
    """--exit=site: what glibc hands on by a jump ends where that returns. Not what calloc() hands on to the memset() of this
    machine, which is known at run time only: that is counted, and nothing else is missing."""
    summary, facts = attached(folder, [workload("heap"), 200, 2, BLOCK, "--wait"], *NO_BRAKE, "--memory=malloc:1",
                              "--exit=site")
    allocations = summary["allocations"]
    seen = sum(at(allocations["sites"], f)["allocations"] for f in ("leak_here", "balance_here"))
    missing = facts["allocations"] - seen
    check(0 <= missing <= allocations["lost"] < missing + 20, "missing, lost", missing, allocations["lost"])


@case
def an_allocator_of_its_own(folder):
    """jemalloc's operator new, through which exceptions pass, hands on by a jump what its cache cannot give."""
    library = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
    if library is None:
        raise Skip("jemalloc is not installed (Debian: libjemalloc2)")
    check_all(folder, LD_PRELOAD=library)
    check_all(folder, "--exit=site", LD_PRELOAD=library)


@case
def a_malloc_that_throws(folder):
    """The program's own: no return probe is put there, which would kill it. What it refuses is no block, and neither is what it
    allocates for the exception. What is handed on to a function that nobody knows is counted, and not blamed on anything else."""
    rounds, block = 300, 500
    summary, facts = attached(folder, [workload("heap_own"), rounds, block, "--wait"], *NO_BRAKE, "--memory=malloc:1")
    equal((facts["refused"], facts["caught"], facts["kept_blocks"]), (rounds, rounds, 6 * rounds), "the program's own")
    allocations = summary["allocations"]
    equal(at(allocations["sites"], "keep_here"),
          {"alive_bytes": facts["kept_bytes"], "alive": facts["kept_blocks"], "allocated_bytes": facts["kept_bytes"],
           "allocations": facts["kept_blocks"]}, "keep_here")
    equal(at(allocations["sites"], "ask_for_too_much")["allocations"], 0, "blocks that were refused")
    check(rounds - 1 <= allocations["lost"] <= rounds, "those whose end nobody sees", allocations["lost"])
    done = xsptrace("export", f"{folder}/heap.xspt")
    text = done.stdout + done.stderr
    check(f"allocations unseen: {allocations['lost']} of the sample, as their calls ended in a jump" in text, "why", text)
    check("--buffer" not in text, "blames the buffers", text)


def deviation(sizes, count, period):
    """Of the sum of blocks that are taken with the probability size / period, each counted as period then."""
    return math.sqrt(count * sum(s * (period - s) for s in sizes if s < period))


@case
def sampled_within_the_error(folder):
    """Twenty times the program's error would be 2 in a thousand million: what fails here is no chance."""
    period, rounds, threads = 16384, 20000, 2
    summary, facts = attached(folder, [workload("heap"), rounds, threads, BLOCK, "--wait"], *NO_BRAKE,
                              f"--memory=malloc:{period}")
    allocations = summary["allocations"]
    equal((allocations["lost"], allocations["heap_sample_bytes"]), (0, period), "lost, period")
    leak, balance = at(allocations["sites"], "leak_here"), at(allocations["sites"], "balance_here")
    calls = rounds * threads
    equal(facts["allocations"], calls * CALLS, "the program's own")
    for got, true, sizes, what in (
            (leak["alive_bytes"], facts["kept_bytes"], [BLOCK], "alive of leak_here"),
            (leak["allocated_bytes"], facts["kept_bytes"], [BLOCK], "allocated in leak_here"),
            (balance["allocated_bytes"], facts["allocated"] - facts["kept_bytes"], SIZES[1:], "allocated in balance_here")):
        check(abs(got - true) < 5 * deviation(sizes, calls, period), what, got, true, deviation(sizes, calls, period))
        check(got % period == 0 and got != true, "it is a sample", what, got)
    equal((balance["alive_bytes"], balance["alive"]), (0, 0), "alive of balance_here")
    check(abs(leak["alive"] / (leak["alive_bytes"] / BLOCK) - 1) < 0.01, "blocks", leak)
    pool, = allocations["pools"]
    told = pool["end_error_bytes"] / 1.96
    check(abs(told / deviation([BLOCK], calls, period) - 1) < 0.1, "the error that is told", told,
          deviation([BLOCK], calls, period))


@case
def what_only_grows_is_named(folder):
    attached(folder, [workload("heap"), 1500, 1, 32768, "--wait", "--pause", 1000], *NO_BRAKE, "--memory=malloc:64K")
    sites = {s["at"].split(" ")[0]: s["only_grows"] for s in summary_of(f"{folder}/heap.xspt")["allocations"]["sites"]}
    equal((sites["leak_here"], sites["balance_here"]), (True, False), "only grows")
    text = xsptrace("export", f"{folder}/heap.xspt")
    check(re.search(r"leak\? only grows: leak_here .* <- work ", text.stdout + text.stderr), "the warning", text)
    findings = xsptrace("analyze", "--full", f"{folder}/heap.xspt").stdout
    check("memory of leak_here (heap.cc:" in findings and "memory of balance_here" not in findings, "the rule", findings)


@case
def the_target_survives_killed_tracers(folder):
    """SIGKILL at a random moment of attaching, recording or writing: the program, which aborts where an allocation or a
    failing realloc() is not what it must be, ends with its own sums; and a tracer after those sees all there is."""
    rounds = 100000
    child = start_ready([workload("heap"), rounds, 2, 500, "--wait", "--pause", 50], stdout=-1,
                        env={**os.environ, **own_libraries(folder)})
    child.send_signal(signal.SIGUSR1)
    for i in range(6):
        r = Recording(folder, "-p", child.pid, "--memory=malloc:4K", "-o", f"{folder}/{i}.xspt", name=f"r{i}")
        time.sleep(random.uniform(0.01, 0.7))
        r.stop(signal.SIGKILL)
        r.wait(status=None)
        check(child.poll() is None, f"the target died with tracer {i}: {child.returncode}")
    xsptrace(*NO_BRAKE, "-p", child.pid, "--memory=malloc:4K", "-d", "0.5", "-o", f"{folder}/last.xspt")
    sites = summary_of(f"{folder}/last.xspt")["allocations"]["sites"]
    check(at(sites, "leak_here")["allocations"] > 0, "nothing seen after the killed tracers", sites)
    facts = json.loads(child.communicate(timeout=120)[0])
    equal((child.returncode, facts["allocations"], facts["kept_blocks"]), (0, 2 * rounds * CALLS, 2 * rounds), "the program")


@case
def a_hot_allocator_goes_on_in_windows(folder):
    """The brake limits its cost; then it is not known what is alive, and the output says so."""
    child = start_ready([workload("heap"), 10 ** 9, 1, 64, "--wait"])
    with Recording(folder, "-p", child.pid, "--memory=malloc", "--max-overhead", "20%", "-d", "2.5", "-o",
                   f"{folder}/heap.xspt") as recording:
        child.send_signal(signal.SIGUSR1)
        recording.wait(seconds=60)
    check(child.poll() is None, "the target has ended")
    child.kill()
    child.wait()
    allocations = summary_of(f"{folder}/heap.xspt")["allocations"]
    check(all("end_bytes" not in pool for pool in allocations["pools"]), "alive", allocations["pools"])
    text = xsptrace("export", f"{folder}/heap.xspt")
    check("the totals are of" in text.stdout + text.stderr, "share of the time", text)
    check("what is alive is not known" in text.stdout + text.stderr, "said", text)


PYTHON = """
import ctypes, signal, sys
class Info(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Info
used = lambda: (lambda i: i.uordblks + i.hblkhd)(mallinfo2())
used()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", file=sys.stderr, flush=True)
signal.sigwait({signal.SIGUSR1})
before = used()
kept = []
for i in range(4000):
    kept.append(bytearray(700 + i % 3000))
    bytearray(20000)
after = used()
print('{"grown": %d}' % (after - before), flush=True)
import os
os._exit(0)
"""


@case
def python_by_the_c_librarys_own_count(folder):
    """glibc counts the blocks with their heads, 8 bytes and what rounds them up to 16."""
    for period in (1, 4096):
        summary, facts = attached(folder, ["/usr/bin/python3", "-c", PYTHON], *NO_BRAKE, f"--memory=malloc:{period}")
        pool, = summary["allocations"]["pools"]
        equal(summary["allocations"]["lost"], 0, "lost")
        error = 4 * pool["end_error_bytes"] / 1.96
        heads = 24 * pool["allocations"] - 24 * pool["frees"]
        check(facts["grown"] - heads - error - 65536 < pool["end_bytes"] < facts["grown"] + error + 65536,
              f"alive, by one sample in {period} bytes", pool, facts)


@case
def sqlite_by_its_own_count(folder):
    """Its memory at most, as it counts it: each block with 8 bytes in front; the shell's buffers come on top."""
    if shutil.which("sqlite3") is None:
        raise Skip("sqlite3 is not installed")
    period = 65536
    with open(f"{folder}/in.sql", "w", encoding="utf-8") as f:
        f.write("CREATE TABLE t(a,b);\nWITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<100000) "
                "INSERT INTO t SELECT x, hex(randomblob(200)) FROM c;\n.stats on\nSELECT count(*) FROM t;\n")
    with open(f"{folder}/in.sql", encoding="utf-8") as statements:
        done = xsptrace(*NO_BRAKE, f"--memory=malloc:{period}", "-o", f"{folder}/sqlite.xspt", "--", "sqlite3", ":memory:",
                        stdin=statements)
    most = int(re.search(r"Memory Used: +\d+ \(max (\d+)\)", done.stdout)[1])
    allocations = summary_of(f"{folder}/sqlite.xspt")["allocations"]
    pool, = allocations["pools"]
    equal(allocations["lost"], 0, "lost")
    check(abs(pool["peak_bytes"] - most) < 4 * pool["peak_error_bytes"] / 1.96 + 0.02 * most, "at most", pool, most)


@case
def what_is_refused(folder):
    del folder
    for options, words in ((["--memory=heap"], "malloc:BYTES"), (["--memory=malloc:0"], "malloc:BYTES"),
                           (["--memory=malloc:2G"], "malloc:BYTES"), (["--memory=malloc4"], "malloc:BYTES"),
                           (["--memory", "--memory=malloc"], "count twice"), (["--memory=malloc", "--profile"], "--profile"),
                           (["--memory=malloc", "-t", os.getpid()], "all threads")):
        done = xsptrace("-p", os.getpid(), *options, status=USAGE)
        check(words in done.stderr, "what is said", options, done.stderr)


if __name__ == "__main__":
    main()
