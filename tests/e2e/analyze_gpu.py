# SPDX-License-Identifier: BSD-2-Clause
"""`xsptrace analyze`, the section of GPUs, on the simulated GPU: its figures are those that the definitions give on
the Chrome trace of the same capture (gpu_times.py)."""
import json
import os
import re

from gpu_times import Times, ns
from harness import EXTRA, case, check, equal, json_report, main, workload, xsptrace

LONG = 30000000  # ns: a kernel that is longer than what a busy machine does to a thread


def recorded(folder, *arguments, options=(), program="gpu_train", env=None):
    capture = f"{folder}/run.xspt"
    xsptrace(*EXTRA, *options, "--summary=none", "-o", capture, "--", workload(program), *arguments, timeout=120,
             env=dict(os.environ, XSP_DOUBLE_TRUTH=f"{folder}/truth", **(env or {})))
    return capture


def analyzed(folder, capture, *cut):
    trace = f"{folder}/trace.json"
    xsptrace("export", capture, *cut, "-o", trace)
    with open(trace, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    return json_report("analyze", capture, *cut), Times(events)


def beginning(folder):
    """Of the recording, as the trace counts."""
    with open(f"{folder}/trace.json", encoding="utf-8") as f:
        trace = json.load(f)
    return trace["xsptrace_window"]["start_ns"] - trace["baseTimeNanoseconds"]


def rows(report, table):
    return report["sections"]["gpu"]["tables"].get(table, {"rows": []})["rows"]


def same(row, expected, what):
    for key, value in expected.items():
        if key in row:
            equal(row[key], value, f"{what}: {key}")


def check_devices(report, times):
    expected = times.devices()
    equal({r["device"] for r in rows(report, "devices")}, set(expected), "devices")
    communication = {r["device"]: r for r in rows(report, "communication")}
    for r in rows(report, "devices"):
        want = expected[r["device"]]
        same(r, want, "a device")
        check(r["idle_host_ns"] <= r["idle_ns"], "idle for the host's sake", r)
        if want["union_ns"] > 0:
            c = communication[r["device"]]
            equal((c["communication_ns"], c["hidden_ns"]), (want["union_ns"], want["hidden_ns"]), "communication")


def check_streams(report, times):
    expected = times.streams()
    equal({(r["device"], r["stream"]) for r in rows(report, "streams")}, set(expected), "streams")
    for r in rows(report, "streams"):
        same(r, expected[r["device"], r["stream"]], f"stream {r['stream']}")


def check_launches(report, times):
    expected = times.launches()
    equal({(r["device"], r["kind"]) for r in rows(report, "launches")}, set(expected), "launches of")
    for r in rows(report, "launches"):
        want = expected[r["device"], r["kind"]]
        same(r, {k: want[k] for k in ("count", "long_calls", "long_delays", "shorter", "delay_max_ns")}, r["kind"])
        equal((r["call_mean_ns"], r["delay_mean_ns"]),
              (want["call_ns"] // want["count"], want["delay_ns"] // want["count"]), f"means of {r['kind']}")


def check_names(report, times):
    expected = times.names()
    got = {r["name"]: r for r in rows(report, "kernels") + rows(report, "copies")}
    equal(set(got), set(expected), "names")
    for name, want in expected.items():
        same(got[name], {"total_ns": want["total_ns"]}, name)
        if "bytes" in got[name]:
            same(got[name], {"bytes": want["bytes"], "count": want["count"]}, name)
            check(abs(got[name]["bandwidth"] - want["bytes"] * 1e9 / want["total_ns"]) <= 1e-6 * got[name]["bandwidth"],
                  "bandwidth", got[name], want)
        else:
            same(got[name], {"launches": want["count"]}, name)


def check_all(report, times):
    check(len(times.work) > 50, "work of the GPU", len(times.work))
    check_devices(report, times)
    check_streams(report, times)
    check_launches(report, times)
    check_names(report, times)


@case
def training_loop(folder):
    # kernels that are long enough for two streams to meet
    capture = recorded(folder, "--calls", "40", env={"XSP_DOUBLE_KERNEL_NS": "200000"})
    report, times = analyzed(folder, capture)
    check_all(report, times)
    units = {c["unit"] for t in report["sections"]["gpu"]["tables"].values() for c in t["columns"] if c["key"] in ("pid", "device")}
    equal(units, {"number"}, "numbers of processes are not how many there are")
    check(rows(report, "communication")[0]["hidden_ns"] > 0, "communication beside compute", rows(report, "overlaps"))
    host = rows(report, "host")
    idle = report["sections"]["gpu"]["values"]["host_idle_ns"]
    inside = sum(r["idle_ns"] for r in host)
    check(inside <= idle and inside > idle / 2, "idle time in spans of the launching threads", inside, idle, host)
    waited = {r["work"] for r in rows(report, "waits")}
    check(any("Memcpy DtoH" in w for w in waited if w), "the loss is read back: what its wait is for", waited)


@case
def program_that_another_one_becomes(folder):
    """`env PROGRAM`, of root's: its libraries have their probes late. Findings of calls say so where that is of some weight."""
    for calls in (60, 600):
        path = f"{folder}/{calls}.xspt"
        xsptrace(*EXTRA, "-q", "-o", path, "--", "env", "XSP_DOUBLE_KERNEL_NS=300000", workload("gpu_train"), "--calls", calls)
        report = json_report("analyze", path)
        recording = report["sections"]["recording"]
        late = [float(ms) for note in recording["notes"] for ms in re.findall(r"^libraries: .* was attached to ([0-9.]+) ms", note)]
        late = late or [0.0]  # it stood when they were loaded, or they were there in time
        said = {"probes came up to" in (f["uncertain"] or "") for f in report["findings"] + report["hot_operation"] if f["rule"] in ("sync", "hot-operation")}
        equal(said, {late[0] * 1e6 >= recording["values"]["recorded_ns"] / 100}, f"of {calls} calls, late {late[0]} ms")


@case
def unordered_records(folder):
    capture = recorded(folder, "--threads", "4", "--calls", "150", "runtime", program="gpu_sim",
                       env={"XSP_DOUBLE_SHUFFLE": "64"})
    check_all(*analyzed(folder, capture))


@case
def a_part_of_it(folder):
    """From the middle of a launch, whose kernel is whole, to the middle of a kernel, whose launch is."""
    capture = recorded(folder, "--calls", "200", env={"XSP_DOUBLE_KERNEL_NS": "200000"})
    _, times = analyzed(folder, capture)
    begin = beginning(folder)
    later = [(w, call) for w in times.work if (call := times.launched(w)) and w["cat"] == "kernel" and w["start"] > call[1]]
    _, first = later[len(later) // 3]
    last, _ = later[len(later) * 2 // 3]
    report, part = analyzed(folder, capture, "--from", f"{(first[0] + first[1]) // 2 - begin}ns",
                            "--to", f"{(last['start'] + last['end']) // 2 - begin}ns")
    cuts = {(w["cut"], call[3]) for w in part.work if (call := part.launched(w))}
    check(cuts >= {(False, True), (True, False)}, "activities and calls that the cut met", cuts)
    check_all(report, part)


def path_of_steps(folder, capture):
    """Each step's length, from the Chrome trace, and the critical path: its parts add up to that."""
    report, trace = json_report("analyze", capture), f"{folder}/trace.json"
    xsptrace("export", capture, "-o", trace)
    with open(trace, encoding="utf-8") as f:
        steps = {int(e["name"].split("#")[1]): ns(e["dur"]) for e in json.load(f)["traceEvents"]
                 if e.get("ph") == "X" and e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation"}
    for r in rows(report, "path_steps"):
        equal(r["time_ns"], steps[r["step"]], f"step {r['step']}")
        equal(sum(v for k, v in r.items() if k.endswith("_ns") and k not in ("at_ns", "time_ns")), r["time_ns"],
              f"the parts of step {r['step']}")
    kinds = {r["kind"]: r["total_ns"] for r in rows(report, "path")}
    equal(sum(kinds.values()), sum(r["total_ns"] for r in rows(report, "path_names")), "by kind and by name")
    return report, steps, kinds


def long_kernels(folder):
    """Kernels of 30 ms: their number, that of the steps, and what the critical path has, by kind."""
    capture = f"{folder}/run.xspt"
    said = xsptrace(*EXTRA, "--gpu", "events", "--waits", "--summary=none", "-o", capture, "--", workload("gpu_train"),
                    "--calls", "5", timeout=120, env=dict(os.environ, XSP_DOUBLE_KERNEL_NS=str(LONG))).stdout
    links = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["links"]
    report, steps, kinds = path_of_steps(folder, capture)
    equal(report["sections"]["gpu"]["values"]["path_steps"], len(steps), "steps")
    equal(sum(kinds.values()), sum(steps.values()), "the time of all steps")
    equal([n for n in report["sections"]["gpu"]["notes"] if "critical path" in n], [], "doubts")
    return sum(n for key, n in links.items() if key.split("|")[1].startswith("_ZN")), kinds


@case(quiet="kernels of 30 ms between threads")
def critical_path(folder):
    """Each kernel waits for the one before it: all of them are on the path, but for the all-reduce beside the backward pass. How
    many there were the program says."""
    kernels, kinds = long_kernels(folder)
    equal(kinds["kernels"], LONG * kernels, "kernels on the path")
    check("communication" not in kinds and "not known" not in kinds, "what is on no path", kinds)


@case
def critical_path_of_the_host(folder):
    """Short kernels, without --waits and --gpu events: the report says what is not known."""
    report, steps, kinds = path_of_steps(folder, recorded(folder, "--calls", "10"))
    check(kinds["host"] > sum(kinds.values()) / 2 and steps, "the host's", kinds)
    check(any("--waits" in n for n in report["sections"]["gpu"]["notes"]), "threads that wait for each other",
          report["sections"]["gpu"]["notes"])


@case
def critical_path_without_steps(folder):
    capture = recorded(folder, "--threads", "1", "--calls", "20", "runtime", program="gpu_sim")
    report = json_report("analyze", capture)
    equal(rows(report, "path"), [], "paths")
    check(any("--step" in n for n in report["sections"]["gpu"]["notes"]), "said", report["sections"]["gpu"]["notes"])


@case
def nothing_of_a_gpu(folder):
    capture = f"{folder}/run.xspt"
    xsptrace(*EXTRA, "--summary=none", "-e", "demo_leaf", "-o", capture, "--", workload("demo"))
    xsptrace("analyze", capture, "--format", "json", "-o", f"{folder}/report.json")
    with open(f"{folder}/report.json", encoding="utf-8") as f:
        check("gpu" not in json.load(f)["sections"], "no section of GPUs")


main()
