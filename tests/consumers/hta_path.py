# SPDX-License-Identifier: BSD-2-Clause
"""Holistic Trace Analysis's critical path of each step, beside that of `xsptrace analyze` on the same trace.

    hta_path.py HTA XSPTRACE TRACE.json [STEP]     HTA: a checkout of facebookresearch/HolisticTraceAnalysis

TRACE.json: what xsptrace exported, or torch.profiler wrote; STEP marks a step (ProfilerStep). What HTA comes with: hta.py. HTA's
longest chain ends anywhere, and counts dependencies as nothing. Here it is the longest one of its graph to the last thing that the
step's thread did, and each edge is the time between its ends: so both paths have each moment of a step once. Exit status 1: one
differs by more than a hundredth of the step. docs/analyze-gpu.md says how.
"""
import collections
import gzip
import json
import logging
import os
import subprocess
import sys
import tempfile

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # times are rounded to microseconds otherwise
sys.path.insert(0, sys.argv[1])
import networkx  # noqa: E402
from hta.analyzers.critical_path_analysis import CPEdgeType  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

logging.disable(logging.WARNING)
KINDS = {"host": "host_ns", "launch": "launch_ns", "kernels": "compute_ns", "communication": "communication_ns",
         "copies": "memory_ns", "gap": "gap_ns", "sync": "sync_ns", "off": "off_cpu_ns", "unknown": "unknown_ns"}


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def for_hta(trace):
    """Of calls that wait HTA knows the runtime's, and takes the driver's inside for work of the host: they are left out. It looks for
    what an event stands for by the correlation of its record, which CUPTI does not tell: by its id here."""
    events = trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") != "cuda_driver"]
    calls = {e["args"]["correlation"]: e["ts"] for e in events
             if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    records = collections.defaultdict(list)
    for e in events:
        if e.get("cat") == "cuda_event" and e["args"]["correlation"] in calls:
            records[e["args"]["event_id"]].append((calls[e["args"]["correlation"]], e["args"]))
    for e in events:
        args = e.get("args", {})
        if e.get("cat") != "cuda_sync" or args.get("wait_on_cuda_event_record_corr_id", 0) != -1:
            continue
        before = [r for r in records[args["wait_on_cuda_event_id"]] if r[0] < calls.get(args["correlation"], 0)]
        if before:
            record = max(before, key=lambda r: r[0])[1]
            args.update(wait_on_stream=record["stream"], wait_on_cuda_event_record_corr_id=record["correlation"])
    return trace


def kind_of(graph, edge):
    """Of the time between the ends of an edge."""
    source, target = graph.node_list[edge.begin], graph.node_list[edge.end]
    of = graph.trace_df.loc[target.ev_idx]
    on_gpu = [graph.trace_df.loc[n.ev_idx].stream != -1 for n in (source, target)]
    if edge.type == CPEdgeType.KERNEL_LAUNCH_DELAY:
        return "launch", None
    if edge.type == CPEdgeType.KERNEL_KERNEL_DELAY or (all(on_gpu) and source.ev_idx != target.ev_idx):
        return "gap", None
    if on_gpu[0] and not on_gpu[1]:
        return "sync", None
    if not on_gpu[0]:
        return "host", None
    name = graph.symbol_table.get_sym_table()[of["name"]]
    if name.startswith(("Memcpy", "Memset")):
        return "copies", name
    return ("communication" if "nccl" in name.lower() else "kernels"), name


def waited(graph, u, v):
    """HTA takes work that had ended before a call that synchronises for something that the call waited for."""
    source, target = graph.node_list[u], graph.node_list[v]
    if graph.edges[u, v]["object"].type != CPEdgeType.SYNC_DEPENDENCY or graph.trace_df.loc[target.ev_idx].stream != -1:
        return True
    return source.ts > graph.node_list[graph.event_to_start_node_map[target.ev_idx]].ts


def theirs(graph, start, end, tid):
    """ns by kind, and by name of the GPU's work, of the longest chain to the last thing that the thread did."""
    kinds, names = collections.Counter(), collections.Counter()
    df = graph.trace_df
    last = max((n for n in graph.node_list if n.idx in graph and n.ts <= end
                and (df.loc[n.ev_idx].stream, df.loc[n.ev_idx].tid) == (-1, tid)), key=lambda n: (n.ts, n.idx)).idx
    before = networkx.ancestors(graph, last) | {last}
    plain = networkx.DiGraph()
    plain.add_edges_from((u, v, d) for u, v, d in graph.edges(data=True) if u in before and v in before and waited(graph, u, v))
    plain.add_edge(last, -1, weight=1e12)  # that is where it ends, and not at what weighs as much
    *chain, _ = networkx.dag_longest_path(plain, weight="weight")
    nodes = [graph.node_list[n] for n in chain]
    for a, b in zip(nodes, nodes[1:]):
        kind, name = kind_of(graph, graph.edges[a.idx, b.idx]["object"])
        ns = round(1000 * (min(max(b.ts, start), end) - min(max(a.ts, start), end)))
        kinds[kind] += ns
        if name and ns:
            names[name] += ns
    kinds["host"] += round(1000 * (max(0, nodes[0].ts - start) + end - nodes[-1].ts))
    return kinds, names


def steps_of(trace, marker):
    """{number: (begin, end, thread, the how many-th)}, numbered as xsptrace does."""
    found = sorted(((e["ts"], e) for e in trace["traceEvents"]
                   if e.get("ph") == "X" and e.get("cat") in ("user_annotation", "cpu_op")
                   and (e["name"] == marker or e["name"].rstrip("0123456789").rstrip("#") == marker)), key=lambda f: f[0])
    return {int(e["name"].split("#")[1]) if e["name"] != marker else i: (ts, ts + e["dur"], e["tid"], i)
            for i, (ts, e) in enumerate(found)}


def main():
    xsptrace, path, marker = sys.argv[2], sys.argv[3], (sys.argv[4:] or ["ProfilerStep"])[0]
    trace = for_hta(load(path))
    report = json.loads(subprocess.run(
        [xsptrace, "analyze", path, "--format", "json"] + (["--step", marker] if len(sys.argv) > 4 else []),
        check=True, stdout=subprocess.PIPE).stdout)
    gpu = report["sections"]["gpu"]
    ours = {r["step"]: r for r in gpu["tables"].get("path_steps", {"rows": []})["rows"]}
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/trace.json", "w", encoding="utf-8") as f:
            json.dump(trace, f)
        analysis = TraceAnalysis(trace_files={0: f"{folder}/trace.json"}, include_last_profiler_step=True)
    df, kinds = analysis.t.get_trace(0), None
    symbols = analysis.t.symbol_table.get_sym_table()
    # in HTA's order, to which the GPU's belong as well
    instances = [(symbols[row.cat], row.ts) for row in df.itertuples() if marker in symbols[row.name]]
    wrong, on_path = 0, collections.Counter()
    for number, (start, end, tid, at) in sorted(steps_of(trace, marker).items()):
        if number not in ours:
            print(f"step {number}: not among ours")
            continue
        begin, cat = sorted((ts, cat) for cat, ts in instances if cat != "gpu_user_annotation")[at]
        graph, good = analysis.critical_path_analysis(rank=0, annotation=marker, instance_id=instances.index((cat, begin)))
        if not good:
            print(f"step {number}: HTA finds no path")
            continue
        kinds, names = theirs(graph, begin, begin + end - start, tid)
        on_path.update(names)
        if any(e.get("name", "").startswith("cudaGraphLaunch") and start <= e["ts"] < end for e in trace["traceEvents"]):
            print(f"step {number}: launches a graph, of whose kernels HTA knows one")
            continue
        row = ours.pop(number)
        print(f"step {number}, {row['time_ns'] / 1e3:.3f} us (HTA's own length "
              f"{sum(e.weight for e in graph.critical_path_edges_set):.3f})")
        for kind, key in KINDS.items():
            if kinds[kind] == 0 and row[key] == 0:
                continue
            bad = abs(kinds[kind] - row[key]) > row["time_ns"] / 100
            wrong += bad
            print(f"  {'DIFFERS' if bad else 'same':8}{kind:16}{kinds[kind] / 1e3:14.3f}{row[key] / 1e3:14.3f}")
    # which work is on them, where all of them were compared
    gpu_steps = sum(r["total_ns"] for r in gpu["tables"].get("path", {"rows": []})["rows"])
    for r in gpu["tables"].get("path_names", {"rows": []})["rows"] if not ours else []:
        if r["kind"] in ("kernels", "communication", "copies and sets"):
            bad = abs(on_path[r["name"]] - r["total_ns"]) > gpu_steps / 100
            wrong += bad
            print(f"  {'DIFFERS' if bad else 'same':8}{r['name'][:60]:60}{on_path[r['name']] / 1e3:14.3f}{r['total_ns'] / 1e3:14.3f}")
    return 1 if wrong or not kinds else 0


sys.exit(main())
