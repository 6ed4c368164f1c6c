# SPDX-License-Identifier: BSD-2-Clause
"""GPU time from a Chrome trace, by the definitions of Holistic Trace Analysis (docs/analyze.md), in whole ns.

Written from the definitions and not from user/analysis/: what `xsptrace analyze` says of the same capture must be
the same. tests/consumers/hta.py holds both against HTA itself.
"""
import collections

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
KERNEL_WAIT = 30000  # ns
FULL = 1024


def ns(microseconds):
    return round(microseconds * 1000)


def union(intervals):
    """Sorted, disjoint."""
    out = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def length(intervals):
    return sum(b - a for a, b in intervals)


def both(one, other):
    out, i, k = [], 0, 0
    while i < len(one) and k < len(other):
        start, end = max(one[i][0], other[k][0]), min(one[i][1], other[k][1])
        if start < end:
            out.append([start, end])
        if one[i][1] < other[k][1]:
            i += 1
        else:
            k += 1
    return out


def kind_of(event):
    if event["cat"] != "kernel":
        return "memory"
    name = event["name"]
    return "communication" if name.startswith(("nccl", "rccl", "hccl")) or "ncclKernel" in name else "compute"


class Times:
    def __init__(self, events):
        self.calls, self.work = {}, []
        for e in events:
            if e.get("ph") != "X":
                continue
            if e["cat"] in CALLS and "correlation" in e.get("args", {}):
                self.calls[e["args"]["correlation"]] = (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"], "cut" in e["args"])
            elif e["cat"] in WORK:
                a = e["args"]
                self.work.append({"start": ns(e["ts"]), "end": ns(e["ts"]) + ns(e["dur"]), "kind": kind_of(e),
                                  "name": e["name"], "cat": e["cat"], "device": a["device"], "stream": a["stream"],
                                  "graph": a.get("graph id", 0), "bytes": a.get("bytes"),
                                  "correlation": a["correlation"], "cut": "cut" in a})
        self.work.sort(key=lambda w: w["start"])

    def devices(self):
        """{device: figures}: unions, and not sums."""
        out = {}
        for device in {w["device"] for w in self.work}:
            mine = [w for w in self.work if w["device"] == device]
            by = {k: union([(w["start"], w["end"]) for w in mine if w["kind"] == k])
                  for k in ("compute", "communication", "memory")}
            busy = union([(w["start"], w["end"]) for w in mine])
            compute_or_communication = union([*by["compute"], *by["communication"]])
            out[device] = {
                "span_ns": busy[-1][1] - busy[0][0],
                "busy_ns": length(busy),
                "idle_ns": busy[-1][1] - busy[0][0] - length(busy),
                "compute_ns": length(by["compute"]),
                "communication_ns": length(compute_or_communication) - length(by["compute"]),
                "memory_ns": length(busy) - length(compute_or_communication),
                "union_ns": length(by["communication"]),
                "hidden_ns": length(both(by["communication"], by["compute"])),
                "streams": len({w["stream"] for w in mine}),
            }
        return out

    def streams(self):
        """{(device, stream): figures}."""
        groups = collections.defaultdict(list)
        for w in self.work:
            groups[w["device"], w["stream"]].append(w)
        return {key: self._stream(mine) for key, mine in groups.items()}

    def _stream(self, mine):
        idle = collections.Counter()
        for last, w in zip(mine, mine[1:]):
            gap = w["start"] - last["end"]
            if gap <= 0:
                continue
            call = self.calls.get(w["correlation"])
            if call is None:
                idle["unknown_ns"] += gap
            elif call[0] > last["end"]:
                idle["host_wait_ns"] += gap
            else:
                idle["kernel_wait_ns" if gap < KERNEL_WAIT else "other_ns"] += gap
        return {"activities": len(mine), "busy_ns": length(union([(w["start"], w["end"]) for w in mine])),
                **{k: idle[k] for k in ("host_wait_ns", "kernel_wait_ns", "other_ns", "unknown_ns")},
                **self._queue(mine)}

    def launched(self, w):
        """Launches that HTA counts: no graphs, no copies that their call waits for."""
        call = self.calls.get(w["correlation"])
        if call is None or w["graph"]:
            return None
        return call if w["cat"] == "kernel" or "Async" in call[2] else None

    def _queue(self, mine):
        changes = []
        for w in mine:
            call = self.launched(w)
            if call:
                changes += [(call[0], 0, 1), (w["start"], 1, -1)]
        changes.sort()
        queued = most = full = 0
        for at, (now, _, by) in enumerate(changes):
            queued += by
            most = max(most, queued)
            if queued >= FULL and at + 1 < len(changes):
                full += changes[at + 1][0] - now
        return {"queued_most": most, "queue_full_ns": full}

    def launches(self):
        """{(device, kind): figures}, without those that reach beyond the part."""
        out = collections.defaultdict(collections.Counter)
        kinds = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "sets"}
        for w in self.work:
            call = self.launched(w)
            if not call or call[3] or w["cut"]:
                continue
            c, duration = out[w["device"], kinds[w["cat"]]], call[1] - call[0]
            delay = max(0, w["start"] - call[1])
            c["count"] += 1
            c["call_ns"] += duration
            c["delay_ns"] += delay
            c["delay_max_ns"] = max(c["delay_max_ns"], delay)
            c["long_calls"] += duration > 50000
            c["long_delays"] += delay > 100000
            c["shorter"] += w["end"] - w["start"] < duration
        return out

    def names(self):
        """{name: figures} of kernels, copies and sets."""
        out = collections.defaultdict(collections.Counter)
        for w in self.work:
            c, duration = out[w["name"]], w["end"] - w["start"]
            c["count"] += 1
            c["total_ns"] += duration
            c["max_ns"] = max(c["max_ns"], duration)
            c["bytes"] += w["bytes"] or 0
        return out
