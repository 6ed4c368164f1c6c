#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program's own numbers: record_function.h's XSP_RECORD_VALUE, NVTX's payloads, ITT's counters and metadata.
The truth is the programs' own output, bit by bit."""
import collections
import contextlib
import csv
import json
import math
import re
import signal
import sqlite3
import struct
import subprocess

from harness import (EXTRA, Recording, Trace, case, check, equal, finish, json_report, main, record_attached,
                     record_launched, start_ready, workload, xsptrace)


def double(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def bits_of(value):
    """As the programs say it; of NaN there is one."""
    return struct.pack(">d", value).hex() if value == value else "nan"


def told(path):
    """By process, thread and name: the values in order of time, from tracks and, where they are no number, marks."""
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as f:
        events = json.load(f, parse_int=float)["traceEvents"]  # "-0" is no integer
    for e in sorted((e for e in events if e.get("cat") == "value"), key=lambda e: e["ts"]):
        value = e["args"]["value"]
        equal((e["ph"], isinstance(value, str)), ("C", False) if isinstance(value, float) else ("i", True), "kind of event")
        found[e["pid"], e["tid"], e["name"]].append(float(value))
    return found


def by_name(path):
    names = collections.defaultdict(list)
    for (_, _, name), values in told(path).items():
        names[name] += values
    return names


def expected_of(facts):
    """By thread and name, as bits; NaN is NaN."""
    return sorted(sorted((name, [bits_of(double(b)) for b in bits]) for name, bits in thread.items())
                  for thread in facts["values"])


@case
def to_the_bit(folder):
    """Of C and C++, from several threads, with names that are gone right after."""
    _, facts = record_attached(folder, [workload("valued"), "--calls", 200])
    threads = collections.defaultdict(list)
    for (_, tid, name), values in told(f"{folder}/attached.json").items():
        threads[tid].append((name, [bits_of(v) for v in values]))
    equal(sorted(sorted(t) for t in threads.values()), expected_of(facts), "values by thread and name")
    trace = Trace(f"{folder}/attached.json")
    trace.check_nothing_lost()
    equal(trace.timeline["values_unread"], 0, "values that could not be read")
    equal(dict(trace.calls), {"step": 400}, "regions beside them")


def figures(facts):
    """name: (how many, how many are numbers, least, mean, most)."""
    result = {}
    for name in {n for t in facts["values"] for n in t}:
        values = [double(b) for t in facts["values"] for b in t.get(name, ())]
        finite = [v for v in values if math.isfinite(v)]
        result[name] = (len(values), len(finite), min(finite), math.fsum(v / len(finite) for v in finite), max(finite))
    return result


@case
def figures_of_the_summary(folder):
    """One thread, so that the last value is known."""
    command = [workload("valued"), "--threads", 1, "--calls", 100]
    _, facts = record_launched(folder, command, "-o", f"{folder}/run.xspt")
    wanted = figures(facts)
    summary = json.loads(xsptrace("export", "-q", f"{folder}/run.xspt", "--summary", "json").stdout)
    rows = {r["name"]: r for r in summary["values"]}
    equal(set(rows), set(wanted), "names")
    for name, (count, finite, least, mean, most) in wanted.items():
        r = rows[name]
        equal((r["count"], r["not_finite"], r["min"], r["max"]), (count, count - finite, least, most), name)
        check(math.isclose(r["mean"], mean, rel_tol=1e-9), f"mean of {name}: {r['mean']}, not {mean}")
        equal(bits_of(r["last"]), facts["values"][0][name][-1], f"last of {name}")
    text = xsptrace("export", "-q", f"{folder}/run.xspt", "--summary", "text").stdout
    line = next(l for l in text.splitlines() if l.startswith("batch_size "))
    equal(line.split(), ["batch_size", "100", "32", "32", "32.99", "34"], "row of the table")
    line = next(l for l in text.splitlines() if l.startswith("loss "))
    check("3 not finite" in line, "the summary does not say that some are no numbers", line)


@case
def rows_of_the_table(folder):
    """.csv, to the bit, and where the time is cut."""
    _, facts = record_launched(folder, [workload("valued"), "--threads", 1, "--calls", 50], "-o", f"{folder}/run.xspt")
    xsptrace("export", "-q", f"{folder}/run.xspt", "-o", f"{folder}/run.csv")
    with open(f"{folder}/run.csv", encoding="utf-8", newline="") as f:
        rows = [r for r in csv.DictReader(f, strict=True) if r["category"] == "value"]
    found = collections.defaultdict(list)
    for r in rows:
        equal((r["start_ns"], r["id"], r["duration_ns"]), (r["end_ns"], "", ""), "a moment")
        found[r["name"]].append(bits_of(float(r["value"])))
    equal({k: v for k, v in found.items()}, dict(expected_of(facts)[0]), "values")
    xsptrace("export", "-q", f"{folder}/run.xspt", "-o", f"{folder}/run.db")
    with contextlib.closing(sqlite3.connect(f"{folder}/run.db")) as db:
        told_to = collections.defaultdict(list)
        for name, value in db.execute("SELECT name, value FROM program_values JOIN names USING (run, name_id) ORDER BY time_ns"):
            told_to[name].append(value)
    equal(told_to, {k: [double(b) if b != "nan" and math.isfinite(double(b)) else None for b in v] for k, v in expected_of(facts)[0]}, "values in SQLite")
    xsptrace("export", "-q", f"{folder}/run.xspt", "-e", "record_function:queue*", "-o", f"{folder}/cut.json")
    equal({n for _, _, n in told(f"{folder}/cut.json")}, {f"queue {i}" for i in range(4)}, "those that -e chooses")


@case
def samples_a_second(folder):
    """analyze: steps a second times the value, whatever its name."""
    _, facts = record_launched(folder, [workload("valued"), "--threads", 1, "--calls", 300, "--rate", 2000], "-o", f"{folder}/run.xspt")
    wanted = figures(facts)

    def analyze(*options):
        return json_report("analyze", "-q", f"{folder}/run.xspt", "--step", "step", *options)["sections"]
    for name, *options in (("batch_size",), ("queue 1", "--batch-size", "queue 1")):
        sections = analyze(*options)
        steps, mean = sections["steps"]["values"], wanted[name][3]
        check(math.isclose(steps["samples_per_step"], mean, rel_tol=1e-9), f"{name} a step", steps, mean)
        check(math.isclose(steps["samples_per_second"], mean * 1e9 / steps["mean_ns"], rel_tol=1e-9), f"{name} a second", steps)
    check("samples_per_second" not in analyze("--batch-size", "none")["steps"]["values"], "of no value")
    rows = {r["name"]: r for r in sections["values"]["tables"]["values"]["rows"]}
    equal({n: (r["count"], r["count"] - r["not_finite"], r["min"], r["max"]) for n, r in rows.items()},
          {n: (count, finite, least, most) for n, (count, finite, least, _, most) in wanted.items()}, "rows")


@case
def payloads_counters_and_metadata(folder):
    trace, facts = record_launched(folder, [workload("tool_values")], "-e", "nvtx", "-e", "itt")
    n = facts["calls"]["rounds"]
    moved = [b + d for b in range(0, -n, -1) for d in (1, 2, -1)]
    single = lambda v: struct.unpack("f", struct.pack("f", v))[0]
    wanted = {
        "nvtx u64": range(n), "nvtx s64": [-i for i in range(n)], "nvtx double": [i / 3 for i in range(n)],
        "nvtx u32": [i + 4000000000 for i in range(n)], "nvtx s32": [-i for i in range(n)],
        "nvtx float": [single(i / 4) for i in range(n)], "nvtxDomainMark": range(n),
        "itt u64": range(n), "itt s16": [-i for i in range(n)], "itt double": [i / 3 for i in range(n)],
        "itt moved": moved, "itt change": [i * (i + 1) // 2 for i in range(1, n + 1)],
        "itt float": [single(i / 8) for i in range(n)], "itt u32": range(n), "[name not readable]": range(n),
    }
    equal({k: v for k, v in by_name(f"{folder}/launched.json").items()},
          {k: [float(v) for v in values] for k, values in wanted.items()}, "values")
    equal(trace.timeline["values_unread"], n, "values behind pointers that lead nowhere")
    equal(dict(trace.calls), {"nvtx u64": n, "nvtx none": n, "nvtx s64": n, "nvtx s32": n}, "ranges")


def semaphore(pid, path):
    symbols = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    at = int(next(l.split()[0] for l in symbols.splitlines() if l.endswith(" xsp_record_function_semaphore")), 16)
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(min(int(l.split("-")[0], 16) for l in maps if l.rstrip().endswith(path)) + at)
        return int.from_bytes(memory.read(2), "little")


@case
def nobody_traces_it(folder):
    """Other functions of the program are traced: no values, and then all of them."""
    program = workload("valued")
    child = start_ready([program, "--wait", "--seconds", 60, "--rate", 200, "--out", f"{folder}/truth"])
    equal(semaphore(child.pid, program), 0, "semaphore")
    with Recording(folder, "-p", child.pid, "-e", "valued:valued_*", "-d", 1, "-o", "other.json") as recording:
        equal(semaphore(child.pid, program), 0, "semaphore, while others are traced")
        child.send_signal(signal.SIGUSR1)
        recording.wait()
    equal(dict(told(f"{folder}/other.json")), {}, "values")
    check(Trace(f"{folder}/other.json").calls["valued_batch"] > 0, "the program did not run")
    # regions and values are there, however short what holds back functions is
    with Recording(folder, "-p", child.pid, "-e", "record_function", "--min-duration", "1s", "-d", 1, "-o", "all.json") as recording:
        check(semaphore(child.pid, program) > 0, "the semaphore was not raised")
        recording.wait()
    check(len(by_name(f"{folder}/all.json")["loss"]) > 10, "values are held back")
    equal(semaphore(child.pid, program), 0, "semaphore, afterwards")
    child.terminate()
    equal(finish(child), 0, "status")


@case
def names_that_are_hostile(folder):
    source = f"{folder}/evil.c"
    with open(source, "w", encoding="ascii") as f:
        f.write('#include "xsptrace/record_function.h"\n'
                "int main(void)\n{\n"
                '\tXSP_RECORD_VALUE("quote\\" \\\\ line\\n \\033[31m \\377", 1);\n'
                '\tXSP_RECORD_VALUE("", 2);\n'
                "\tXSP_RECORD_VALUE((const char *)16, 3);\n"
                "\tXSP_RECORD_VALUE((const char *)-4096, 4);\n"
                "\treturn 0;\n}\n")
    include = re.sub(r"/tests/e2e/.*", "/include", __file__)
    subprocess.run(["gcc", f"-I{include}", source, "-o", f"{folder}/evil"], check=True)
    done = xsptrace(*EXTRA, "-o", f"{folder}/evil.json", "-o", f"{folder}/evil.csv", "-o", f"{folder}/evil.pftrace",
                    "--", f"{folder}/evil")
    check("\033[31m" not in done.stdout + done.stderr, "control characters reach the terminal", done.stdout)
    names = by_name(f"{folder}/evil.json")
    equal(names.pop("quote\" \\ line\n \033[31m \ufffd"), [1.0], "name")
    equal(names.pop("[empty name]"), [2.0], "no name")
    equal(dict(names), {"[name not readable]": [3.0, 4.0]}, "names nowhere")


if __name__ == "__main__":
    main()
