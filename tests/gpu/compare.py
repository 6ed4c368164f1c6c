#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares two Chrome traces of the same steps: what the GPU did between the first and the last range
named measured#N, and which operator launched it.

    compare.py REFERENCE OURS [--durations PERCENT]

Prints each difference; exit status 1 if there is any. `compare.py --self-test` shows that it finds
what it is there to find.
"""
import argparse
import collections
import copy
import gzip
import json
import sys

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
API = ("cuda_runtime", "cuda_driver")


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)["traceEvents"]


def measured_window(events):
    spans = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("measured#")]
    if not spans:
        raise SystemExit("no range named measured#N in the trace")
    return min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans)


def launching_ops(events):
    """External id -> name of the innermost operator or range that has it."""
    return {e["args"]["External id"]: e["name"] for e in events
            if e.get("cat") in ("cpu_op", "user_annotation") and "External id" in e.get("args", {})}


def outermost(name):
    """PyTorch's dispatcher shows some operators to its own profiler only, and some to us only: both are
    compared by the aten name without the step's number."""
    return name.split("#")[0]


class Gpu:
    """What the GPU did in the measured steps."""

    def __init__(self, events):
        start, end = measured_window(events)
        calls = {e["args"]["correlation"]: e for e in events
                 if e.get("cat") in API and e.get("args", {}).get("correlation")}
        ops = launching_ops(events)
        self.names = collections.Counter()
        self.bytes = collections.Counter()
        self.streams = collections.defaultdict(collections.Counter)
        self.ops = collections.Counter()
        self.time = collections.Counter()
        self.uncorrelated = 0
        for e in events:
            if e.get("cat") not in GPU or e.get("ph") != "X":
                continue
            args = e["args"]
            call = calls.get(args.get("correlation"))
            at = call["ts"] if call else e["ts"]
            if not start <= at <= end:
                continue
            self.uncorrelated += call is None
            name = e["name"]
            self.names[name] += 1
            self.time[name] += e["dur"]
            self.bytes[name] += args.get("bytes", 0)
            self.streams[args["stream"]][name] += 1
            self.ops[name, outermost(ops.get(args.get("External id"), "none"))] += 1

    def by_stream(self):
        """Stream ids differ between runs: the multiset of what each stream did."""
        return collections.Counter(tuple(sorted(c.items())) for c in self.streams.values())


def differ(what, reference, ours):
    lines = []
    for key in sorted(set(reference) | set(ours), key=str):
        if reference[key] != ours[key]:
            lines.append(f"{what}: {key}: {reference[key]} in the reference, {ours[key]} in ours")
    return lines


def check_links(events):
    """Each arrow begins once, at an API call, and ends at GPU slices that it names."""
    begun = collections.Counter(e["id"] for e in events if e.get("ph") == "s" and e["cat"] == "ac2g")
    lines = [f"flow {i} begins {n} times" for i, n in begun.items() if n > 1]
    lines += [f"flow {e['id']} ends but never begins" for e in events
              if e.get("ph") == "f" and e["cat"] == "ac2g" and e["id"] not in begun]
    return lines[:10]


def check_rows(events):
    """No two slices of a stream's row overlap, as readers want it."""
    rows = collections.defaultdict(list)
    for e in events:
        if e.get("cat") in GPU and e.get("ph") == "X":
            rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
    bad = 0
    for slices in rows.values():
        slices.sort()
        for before, after in zip(slices, slices[1:]):
            bad += after[0] < before[1] - 0.0015  # ns are rounded to a thousandth of a microsecond
    return [f"{bad} slices overlap on a stream's row"] if bad else []


def compare(reference, ours, percent):
    a, b = Gpu(reference), Gpu(ours)
    lines = differ("count", a.names, b.names) + differ("bytes", a.bytes, b.bytes)
    lines += differ("launched by", a.ops, b.ops)
    if a.by_stream() != b.by_stream():
        lines.append(f"streams: {len(a.streams)} in the reference, {len(b.streams)} in ours, or other work on them")
    if b.uncorrelated:
        lines.append(f"{b.uncorrelated} GPU records without their API call")
    total, mine = sum(a.time.values()), sum(b.time.values())
    if total and abs(mine - total) / total * 100 > percent:
        lines.append(f"GPU time: {total:.1f} us in the reference, {mine:.1f} us in ours")
    return lines + check_links(ours) + check_rows(ours)


def synthetic():
    events = [{"ph": "X", "cat": "user_annotation", "name": "measured#0", "pid": 1, "tid": 1, "ts": 0.0,
               "dur": 100.0, "args": {"External id": 1}}]
    for i in range(4):
        events += [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0 * i + 1, "dur": 8.0,
             "args": {"External id": 10 + i}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
             "ts": 10.0 * i + 2, "dur": 3.0, "args": {"External id": 10 + i, "correlation": 100 + i}},
            {"ph": "s", "id": 100 + i, "pid": 1, "tid": 1, "ts": 10.0 * i + 2, "cat": "ac2g", "name": "ac2g"},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.0 * i + 6, "dur": 5.0,
             "args": {"External id": 10 + i, "correlation": 100 + i, "stream": 7}},
            {"ph": "f", "id": 100 + i, "pid": 0, "tid": 7, "ts": 10.0 * i + 6, "cat": "ac2g", "name": "ac2g",
             "bp": "e"}]
    return events


def self_test():
    good = synthetic()

    def spoiled(change):
        bad = copy.deepcopy(good)
        change(bad)
        return compare(good, bad, 1)

    def kernel(events, n=0):
        return [e for e in events if e.get("cat") == "kernel"][n]

    spoils = {
        "a kernel is missing": lambda ev: ev.remove(kernel(ev)),
        "another name": lambda ev: kernel(ev).update(name="other"),
        "another launching op": lambda ev: kernel(ev)["args"].update({"External id": 1}),
        "another correlation": lambda ev: kernel(ev)["args"].update(correlation=999),
        "another stream": lambda ev: kernel(ev)["args"].update(stream=8),
        "2 % longer": lambda ev: [e.update(dur=5.1) for e in ev if e.get("cat") == "kernel"],
        "an arrow begins twice": lambda ev: ev.append(dict(next(e for e in ev if e["ph"] == "s"))),
        "an arrow has no beginning": lambda ev: ev.remove(next(e for e in ev if e["ph"] == "s")),
        "slices overlap": lambda ev: kernel(ev, 1).update(ts=kernel(ev)["ts"] + 1),
    }
    failed = [what for what, change in spoils.items() if not spoiled(change)]
    if compare(good, copy.deepcopy(good), 1):
        failed.append("two equal traces differ")
    print("not found: " + "; ".join(failed) if failed else f"{len(spoils)} kinds of difference are found")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", nargs="?")
    parser.add_argument("ours", nargs="?")
    parser.add_argument("--durations", type=float, default=1, help="percent that GPU time may differ")
    parser.add_argument("--self-test", action="store_true")
    o = parser.parse_args()
    if o.self_test:
        return self_test()
    if not o.ours:
        parser.error("two traces are wanted")
    lines = compare(load(o.reference), load(o.ours), o.durations)
    print("\n".join(lines) or "the same")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
