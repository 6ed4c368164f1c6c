# SPDX-License-Identifier: BSD-2-Clause
"""Holistic Trace Analysis on our Chrome trace, beside `xsptrace analyze` on the same capture.

    hta.py HTA TRACE.json REPORT.json     HTA: a checkout of facebookresearch/HolisticTraceAnalysis

By hand: HTA comes from its repository alone. Debian: python3-pandas python3-networkx python3-plotly python3-ijson
python3-pydantic python3-psutil. REPORT.json is `xsptrace analyze CAPTURE --format json` without a cut, of one
process and device, and of the runtime's calls. Exit status 1: a figure differs. docs/analyze.md says what is left out here, and why.
"""
import json
import os
import sys
import tempfile

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # times are rounded to microseconds otherwise
sys.path.insert(0, sys.argv[1])
from hta.trace_analysis import TraceAnalysis  # noqa: E402


def for_hta(path, folder):
    """HTA takes the time of a wait (cuda_sync) for work of the GPU's stream; and of launches, it knows four names."""
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") != "cuda_sync"]
    kernels = {e["args"]["correlation"] for e in trace["traceEvents"]
               if e.get("cat") == "kernel" and not e["args"].get("graph id")}
    for e in trace["traceEvents"]:
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]:
            if e["args"]["correlation"] in kernels:
                e["name"] = "cudaLaunchKernel"
            elif e["name"].startswith(("cudaMemcpy", "cudaMemset")) and "Async" in e["name"]:
                e["name"] = e["name"][:10] + "Async"
    out = os.path.join(folder, "trace.json")
    with open(out, "w", encoding="utf-8") as f:
        json.dump(trace, f)
    return out


def main():
    with open(sys.argv[3], encoding="utf-8") as f:
        tables = json.load(f)["sections"]["gpu"]["tables"]
    with tempfile.TemporaryDirectory() as folder:
        analysis = TraceAnalysis(trace_files={0: for_hta(sys.argv[2], folder)}, include_last_profiler_step=True)
        rows = list(compared(analysis, {k: v["rows"] for k, v in tables.items()}))
    wrong = 0
    for what, theirs, ours, tolerance in rows:
        bad = abs(theirs - ours) > tolerance
        wrong += bad
        print(f"{'DIFFERS' if bad else 'same':8}{what:50}{theirs:18.3f}{ours:18.3f}")
    return 1 if wrong else 0


def compared(analysis, tables):
    """What, HTA's figure, ours, the difference that is none. Times in us."""
    device = tables["devices"][0]
    b = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    yield "breakdown: first to last", b["kernel_time(us)"], device["span_ns"] / 1e3, 1
    yield "breakdown: idle", b["idle_time(us)"], device["idle_ns"] / 1e3, 1
    yield "breakdown: compute", b["compute_time(us)"], device["compute_ns"] / 1e3, 1
    yield ("breakdown: not compute", b["non_compute_time(us)"],
           (device["communication_ns"] + device["memory_ns"]) / 1e3, 1)
    if tables.get("communication"):
        yield ("overlap of communication, %",
               analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"],
               tables["communication"][0]["hidden_share"] * 100, 0.006)
    yield from idle(analysis, tables["streams"])
    yield from launches(analysis, tables["launches"])
    yield from queues(analysis, tables["streams"])
    yield from bandwidths(analysis, tables["copies"])


def idle(analysis, streams):
    found = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    for s in streams:
        of = found[found.stream == s["stream"]].set_index("idle_category").idle_time
        for category, ours in (("host_wait", s["host_wait_ns"]), ("kernel_wait", s["kernel_wait_ns"]),
                               ("other", s["other_ns"] + s["unknown_ns"])):
            yield f"stream {s['stream']}: {category}", of.get(category, 0.0), ours / 1e3, 0.02


def launches(analysis, ours):
    # without graphs, as HTA: cudaLaunchKernel, cudaLaunchKernelExC, cudaMemcpyAsync, cudaMemsetAsync
    found = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
    count = sum(r["count"] for r in ours)

    def total(key):
        return sum(r["count"] * r[key] for r in ours) / 1e3

    yield "launches", len(found), count, 0
    yield "launches: delay, sum", found.launch_delay.sum(), total("delay_mean_ns"), count * 0.001
    yield "launches: call, sum", found.cpu_duration.sum(), total("call_mean_ns"), count * 0.001
    yield "launches: delay over 100 us", (found.launch_delay > 100).sum(), sum(r["long_delays"] for r in ours), 0
    yield "launches: call over 50 us", (found.cpu_duration > 50).sum(), sum(r["long_calls"] for r in ours), 0
    yield ("launches: shorter than their call", (found.gpu_duration < found.cpu_duration).sum(),
           sum(r["shorter"] for r in ours), 0)


def queues(analysis, streams):
    found = analysis.get_queue_length_summary(ranks=[0])
    for s in streams:
        if (0, s["stream"]) in found.index:
            q = found.loc[(0, s["stream"])]["queue_length"]
            yield f"stream {s['stream']}: queued at most", q["max"], s["queued_most"], 0
            yield f"stream {s['stream']}: queued, mean of changes", q["mean"], s["queued_mean"], 1e-6


    full = analysis.get_time_spent_blocked_on_full_queue(analysis.get_queue_length_time_series(ranks=[0]))
    blocked = {} if full is None else dict(zip(full.stream, full.duration_at_max_queue_length))
    for s in streams:
        yield (f"stream {s['stream']}: 1,024 or more queued", blocked.get(s["stream"], 0.0), s["queue_full_ns"] / 1e3,
               0.02)


def bandwidths(analysis, copies):
    # HTA's kinds have no memory in their name, and it adds up what runs at the same time: one that never does
    found = analysis.get_memory_bw_summary(ranks=[0])
    for (_, kind), row in found.iterrows():
        ours = [c for c in copies if c["name"].startswith(kind)]
        count = sum(c["count"] for c in ours)
        row = row["memory_bw_gbps"]
        if row["count"] == count:
            mean = sum(c["mean_bandwidth"] * c["count"] for c in ours) / count / 1e9
            yield f"{kind}: mean bandwidth, GB/s", row["mean"], mean, 1e-3 * mean
            yield f"{kind}: most, GB/s", row["max"], max(c["max_bandwidth"] for c in ours) / 1e9, 1e-3 * mean


sys.exit(main())
