#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page's blocks (user/page/page.h), read as any program could: they tell what the other outputs of the same capture tell."""
import base64
import collections
import csv
import gzip
import html
import json
import os
import re
import struct

import shared
from captures import Made
from chance import allocating, make
from harness import EXTRA, OUTPUT, XSPTRACE, Skip, case, check, equal, main, run, workload, xsptrace

SEEDS = range(1, 5)
GPU_EVENTS = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "cuda_event", "gpu_user_annotation", "overhead", "gpu_graph")


def blocks_of(path):
    """{key: bytes}; and the rest of the page."""
    text = open(path, encoding="utf-8").read()
    found = re.findall(r'<script type="application/x-xsptrace" id="([a-z]+)">([A-Za-z0-9+/=]*)</script>', text)
    rest = re.sub(r'<script type="application/x-xsptrace".*?</script>\n', "", text)
    return {key: gzip.decompress(base64.b64decode(body)) for key, body in found}, rest


def page_of(folder, capture, *options, name="page.html"):
    done = xsptrace("export", capture, "-q", *options, "-o", f"{folder}/{name}", status=None)
    if "built without it" in done.stderr:
        raise Skip("this build has no page (Node)")
    equal(done.returncode, 0, done.stderr)
    return blocks_of(f"{folder}/{name}")


def column(data, at, count, kind):
    return struct.unpack_from(f"<{count}{kind}", data, at)


def timeline_of(block):
    """[(track, [lanes: [levels: [(start, duration, name, count, busy)]]])]; of a counter (start, value)."""
    magic, length = struct.unpack_from("<II", block)
    equal(magic, 0x54505358, "the magic number")
    equal(length % 8, 0, "the length of the JSON")
    head, data, tracks = json.loads(block[8:8 + length]), block[8 + length:], []
    for track in head["tracks"]:
        lanes = []
        for lane in track["lanes"]:
            levels = []
            for level in lane["levels"]:
                n = level["cells"]
                starts = column(data, level["start"], n, "d")
                if track["kind"] == "counter":
                    levels.append(list(zip(starts, column(data, level["value"], n, "d"))))
                    continue
                names = [head["names"][i] for i in column(data, level["name"], n, "I")]
                durations = column(data, level["duration"], n, "d")
                busy = column(data, level["busy"], n, "d") if "busy" in level else durations
                levels.append(list(zip(starts, durations, names, column(data, level["count"], n, "I"), busy)))
            lanes.append(levels)
        tracks.append((track, lanes))
    return head, tracks


ONLY_IN_TRACE = ("External id", "Record function id", "Ev Idx", "cpu_time (us)", "mostly probes (us)", "Scope")


def check_arguments(block, kind, events):
    """Those of the cells of a kind are those of the Chrome trace's events."""
    head, data = json.loads(block[8:8 + struct.unpack_from("<I", block, 4)[0]]), block[8 + struct.unpack_from("<I", block, 4)[0]:]
    told = collections.Counter()
    for lane in (lane for t in head["tracks"] if t["kind"] == kind for lane in t["lanes"]):
        level = lane["levels"][0]
        n = level["cells"]
        numbers = column(data, level["arguments"], n, "I") if "arguments" in level else [0] * n
        for name, number in zip(column(data, level["name"], n, "I"), numbers):
            args = {}
            for i in head["arguments"][number - 1] if number else ():
                args.update(head["parts"][i])
            if "stack" in args:
                args["stack"] = ";".join(reversed(args["stack"]))
            told[head["names"][name], json.dumps(args, sort_keys=True)] += 1
    wanted = collections.Counter((e["name"], json.dumps({k: v for k, v in e.get("args", {}).items() if k not in ONLY_IN_TRACE}, sort_keys=True))
                                 for e in events)
    equal(told, wanted, f"arguments of {kind}")
    return [json.loads(args) for _, args in told]


def check_arrows(block, trace):
    """Each is where an arrow of the Chrome trace is: the time and thread (or device) of both ends."""
    length = struct.unpack_from("<I", block, 4)[0]
    head, data = json.loads(block[8:8 + length]), block[8 + length:]
    count, origin = head["arrows"]["count"], trace["xsptrace_window"]["start_ns"] - trace["baseTimeNanoseconds"]
    ends = column(data, head["arrows"]["tracks"], 2 * count, "I")
    pids = [(head["tracks"][a]["pid"], head["tracks"][b]["pid"]) for a, b in zip(ends[::2], ends[1::2])]
    told = collections.Counter(zip(column(data, head["arrows"]["from"], count, "d"), column(data, head["arrows"]["to"], count, "d"), pids))
    flows = [e for e in trace["traceEvents"] if e.get("cat") in ("ac2g", "wakeup", "fwdbwd")]
    at = {(e["cat"], e["id"]): e for e in flows if e["ph"] == "s"}
    wanted = collections.Counter((round(1000 * at[e["cat"], e["id"]]["ts"]) - origin, round(1000 * e["ts"]) - origin,
                                  (at[e["cat"], e["id"]]["pid"], e["pid"])) for e in flows if e["ph"] == "f")
    equal(told, wanted, "arrows")
    return count


def check_lanes(tracks):
    """Cells are in order and apart, and no span is lost on any level, nor any of its time."""
    for track, lanes in tracks:
        if track["kind"] == "counter":
            continue
        for level in range(max((len(lane) for lane in lanes), default=0)):
            equal(sum(c[3] for lane in lanes for c in lane[min(level, len(lane) - 1)]), track["spans"], f"spans of {track['name']}")
        for lane in lanes:
            for level in lane:
                equal(sum(c[4] for c in level), sum(c[4] for c in lane[0]), f"time of the spans of {track['name']}")
                check(all(c[4] == c[1] for c in level if c[3] == 1), "one span is as it was", track)
                check(all(a[0] + a[1] <= b[0] for a, b in zip(level, level[1:])), "cells lie apart", track)


def folded_of(folder, capture, *options):
    xsptrace("export", capture, "-q", *options, "-o", f"{folder}/out.folded")
    return [line.rsplit(" ", 1) for line in open(f"{folder}/out.folded", encoding="utf-8").read().splitlines()]


def check_tree(tree, names, folded):
    """The sums of the folded stacks, by thread and of all."""
    of_thread, sums = collections.Counter(), collections.Counter()
    for stack, value in folded:
        sums[stack.split(";")[0]] += int(value)
    equal(tree["parent"][0], -1, "the root")
    outermost = list(range(len(tree["parent"])))
    for i, parent in enumerate(tree["parent"]):
        check(parent < i, "parents stand before children", i)
        if parent > 0:
            outermost[i] = outermost[parent]
        of_thread[names[tree["name"][outermost[i]]]] += tree["self"][i]
    equal(sum(tree["self"]), sum(sums.values()), f"{tree['key']}: all of the time")
    for name, value in of_thread.items():
        if name not in ("all", "(small)") and name in sums:
            equal(value, sums[name], f"{tree['key']}: time of {name}")


@case
def many_threads(folder):
    """A head that is longer than any buffer: 2,000 threads, each of which has its row."""
    made, pid = Made(), 70
    made.clock(1000)
    made.process(pid)
    probe = made.probe("work", "work", module=made.module("/lib/libwork.so"))
    threads = [(pid, pid + i) for i in range(2000)]
    for i, thread in enumerate(threads):
        made.thread(*thread, f"worker {i}")
        made.entry(2000 + i, thread, probe, 0x7000)
        made.exit(5000 + i, thread, probe, 0x7000)
    made.finish(f"{folder}/many.xspt", 1000, 9000)
    blocks, _ = page_of(folder, f"{folder}/many.xspt")
    _, tracks = timeline_of(blocks["timeline"])
    equal(sorted(t["tid"] for t, _ in tracks if t["kind"] == "spans"), [tid for _, tid in threads], "threads")
    equal({lane[0][0][:2] for t, lanes in tracks if t["kind"] == "spans" for lane in lanes}
          == {(1000.0 + i, 3000.0) for i in range(2000)}, True, "their spans")


@case
def file_that_may_not_grow(folder):
    """The message names the file and the reason, as those of other formats do, wherever in the page the end comes."""
    make(f"{folder}/a.xspt", 1)
    page_of(folder, f"{folder}/a.xspt")
    size = os.path.getsize(f"{folder}/page.html")
    for most in (10, 20_000, size - 1):
        done = run(["prlimit", f"--fsize={most}", XSPTRACE, "export", f"{folder}/a.xspt", "-q", "-o", f"{folder}/l.html"], text=True)
        equal((done.returncode, done.stderr), (OUTPUT, f"xsptrace: cannot write {folder}/l.html: File too large\n"), f"{most} bytes")
        check(not os.path.exists(f"{folder}/l.html"), "what is no page")


@case
def page_tells_what_other_outputs_tell(folder):
    """Of captures made by chance: the report, stacks of every weight, every span and every state."""
    arrows = 0
    for seed in SEEDS:
        capture = f"{folder}/{seed}.xspt"
        length = make(capture, seed)
        blocks, rest = page_of(folder, capture)
        check("xsptrace-blocks" not in rest, "the blocks stand where they belong")
        check(f"<title>{seed}.xspt - xsptrace</title>" in rest, "the title", rest[:2000])
        page = json.loads(blocks["page"])
        equal((page["version"], page["captures"][0]["duration_ns"], page["captures"][0]["host"]), (1, length, "here"), "the page")
        report = json.loads(xsptrace("analyze", capture, "--format", "json", "--rows", "1000").stdout)
        equal(json.loads(blocks["report"]), report, "the report")
        trees = json.loads(blocks["trees"])
        weights = ["wall"] if seed % 3 == 0 else ["all", "wall", "cpu", "off-cpu"]
        equal([t["key"] for t in trees["trees"] if t["key"] not in ("modules", "steps")], weights, "trees")
        for tree in trees["trees"]:
            how = ["wall", "--by", "step"] if tree["key"] == "steps" else [tree["key"]]
            if tree["key"] != "modules":
                folded = folded_of(folder, capture, "--weight", *how)
                check_tree(tree, trees["names"], folded)
                counts = [bool(re.search(r"#[0-9]+(;| |$)", stack)) for stack, _ in folded]
                check(any(counts) if tree["key"] == "steps" else not any(counts), f"names that only count: {tree['key']}", folded)
        arrows += check_spans(folder, capture, length, blocks["timeline"])
    check(arrows > 10, "who woke whom", arrows)


def check_spans(folder, capture, length, block):
    head, tracks = timeline_of(block)
    equal((head["from_ns"], head["to_ns"]), (0, length), "the window")
    check_lanes(tracks)
    xsptrace("export", capture, "-q", "-o", f"{folder}/out.csv", "-o", f"{folder}/out.json")
    trace = json.load(open(f"{folder}/out.json", encoding="utf-8"))
    rows = list(csv.DictReader(open(f"{folder}/out.csv", encoding="utf-8", newline="")))
    told = collections.Counter((t["tid"], depth, c[2], c[0], c[1]) for t, lanes in tracks if t["kind"] == "spans"
                               for depth, levels in enumerate(lanes) for c in levels[0])
    equal(sum(told.values()), len(rows), "spans")
    wanted = collections.Counter((int(r["tid"]), int(r["depth"]), r["name"], float(r["start_ns"]), float(r["end_ns"]) - float(r["start_ns"]))
                                 for r in rows)
    equal(told, wanted, "every span, as it was")
    states = collections.Counter(e["name"] for e in trace["traceEvents"] if e.get("cat") == "thread_state")
    equal(collections.Counter(c[2] for t, lanes in tracks if t["kind"] == "states" for levels in lanes for c in levels[0]), states, "states")
    args = check_arguments(block, "spans", [e for e in trace["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")])
    check(len(rows) < 20 or any("Call stack" in a for a in args), "stacks", args)
    check_arguments(block, "states", [e for e in trace["traceEvents"] if e.get("cat") == "thread_state"])
    return check_arrows(block, trace)


@case
def straight_from_a_recording(folder):
    """What the program counted, by a recorder that may open no more files by then."""
    make(f"{folder}/any.xspt", 1)
    page_of(folder, f"{folder}/any.xspt")  # or there is none in this build
    xsptrace(*EXTRA, "-q", "-e", "counted:*", "-o", f"{folder}/t.html", "-o", f"{folder}/t.xspt", "--", workload("counted"), f"{folder}/truth", 6)
    blocks, _ = blocks_of(f"{folder}/t.html")
    _, tracks = timeline_of(blocks["timeline"])
    check_lanes(tracks)
    report = json.loads(xsptrace("analyze", f"{folder}/t.xspt", "--format", "json", "--rows", "1000").stdout)
    equal(json.loads(blocks["report"]), report, "the report")
    check(sum(t["spans"] for t, _ in tracks if t["kind"] == "spans") >= 40, "calls of both threads", [t for t, _ in tracks])


@case
def memory_at_its_peak(folder):
    """By where it was allocated; and its counter, which keeps its greatest value."""
    capture, blocks = allocating(folder, 50_000_000, 100_000_000)
    made, _ = page_of(folder, capture)
    trees = json.loads(made["trees"])
    tree = next(t for t in trees["trees"] if t["key"] == "memory")
    peak = {trees["names"][name]: own for name, own in zip(tree["name"], tree["self"]) if own}
    equal((peak, tree["unit"]), ({"inner": 1000 * blocks, "no span": 50}, "bytes"), "alive at the peak")
    counter = next(lanes for t, lanes in timeline_of(made["timeline"])[1] if t["kind"] == "counter" and t["unit"] == "bytes")
    equal(max(value for _, value in counter[0][0]), 1000 * blocks + 50, "its counter")
    made, _ = page_of(folder, capture, "--from", "60ms")
    equal([t["key"] for t in json.loads(made["trees"])["trees"] if t["key"] == "memory"], [], "what was alive in a part is not known")


def page_and_trace(folder, kind):
    """Blocks, what the Chrome trace has of the same, and what the program says."""
    path, facts = shared.capture(kind)
    made, _ = page_of(folder, path, "-o", f"{folder}/trace.json")
    with open(f"{folder}/trace.json", encoding="utf-8") as f:
        return made, json.load(f), facts


@case
def tree_of_the_gpu(folder):
    """By stream, operator and kernel: what the Chrome trace's events of the GPU add up to."""
    made, trace, _ = page_and_trace(folder, "gpu")
    trees = json.loads(made["trees"])
    tree = next(t for t in trees["trees"] if t["key"] == "gpu")
    names = [trees["names"][i] for i in tree["name"]]
    told = collections.Counter()
    for i, own in enumerate(tree["self"]):
        if own:
            op = tree["parent"][i]
            told[names[tree["parent"][op]], names[op], names[i]] += own
    events = trace["traceEvents"]
    ops = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation")}
    wanted = collections.Counter()
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            op = ops.get(e["args"].get("External id"), "no operator")
            wanted[f"GPU {e['args']['device']} stream {e['args']['stream']}", op, e["name"]] += round(1000 * e["dur"])
    equal(told, wanted, "time of the GPU's work")
    check(len({op for _, op, _ in told}) > 1, "operators", told)
    check(check_arrows(made["timeline"], trace) > 10, "arrows")
    work = [e for e in events if e.get("cat") in GPU_EVENTS]
    args = check_arguments(made["timeline"], "gpu", work)
    check(any("grid" in a for a in args), "grids of kernels", args)


@case
def arrows_of_the_backward_pass(folder):
    """From each operator to what it is backward: as many as PyTorch's own graphs had nodes, where the Chrome trace has them, which
    torch_sequence.py holds against PyTorch."""
    made, trace, facts = page_and_trace(folder, "torch")
    check_arrows(made["timeline"], trace)
    equal(sum(e.get("cat") == "fwdbwd" and e["ph"] == "f" for e in trace["traceEvents"]), facts["nodes"], "arrows")


@case
def counters_of_threads(folder):
    """Running totals: what lies between the two readings of a span is what the Chrome trace says of it."""
    made, trace, _ = page_and_trace(folder, "demo")
    origin = trace["xsptrace_window"]["start_ns"] - trace["baseTimeNanoseconds"]
    totals = {(t["tid"], t["name"]): dict(lanes[0][0]) for t, lanes in timeline_of(made["timeline"])[1] if t.get("rate")}
    spans = [e for e in trace["traceEvents"] if "task-clock" in e.get("args", {})]
    check(len(spans) >= 40, "spans with counters", len(spans))
    for e in spans:
        for name in ("task-clock", "page-faults"):
            at = totals[e["tid"], name]
            start = round(1000 * e["ts"]) - origin
            equal(at[start + round(1000 * e["dur"])] - at[start], e["args"][name], f"{name} of {e['name']}")


@case
def samples_are_moments(folder):
    """Each of them, with the function that its thread was in, as the Chrome trace has them."""
    made, trace, _ = page_and_trace(folder, "demo")
    events = trace["traceEvents"]
    _, tracks = timeline_of(made["timeline"])
    check_lanes(tracks)
    told = collections.Counter((t["tid"], c[1], c[2]) for t, lanes in tracks if t["kind"] == "samples" for levels in lanes for c in levels[0])
    wanted = collections.Counter((e["tid"], 0, e["name"]) for e in events if e.get("cat") == "sample")
    check(sum(wanted.values()) > 20, "samples", wanted)
    equal(told, wanted, "samples")
    for e in events:
        e.get("args", {}).pop("weight (ns)", None), e.get("args", {}).pop("kernel", None)
    check_arguments(made["timeline"], "samples", [e for e in events if e.get("cat") == "sample"])


@case
def part_of_a_capture(folder):
    """The page of a part has what lies in it, at the times of the whole."""
    capture = f"{folder}/a.xspt"
    length = make(capture, 2)
    blocks, _ = page_of(folder, capture, "--from", f"{length // 3}ns", "--to", f"{length // 2}ns")
    head, tracks = timeline_of(blocks["timeline"])
    equal((head["from_ns"], head["to_ns"]), (length // 3, length // 2), "the window")
    check("--from" in json.loads(blocks["page"])["cut"], "the part is told")
    cells = [c for t, lanes in tracks if t["kind"] != "counter" for levels in lanes for c in levels[0]]
    check(cells and all(c[0] >= length // 3 and c[0] + c[1] <= length // 2 for c in cells), "what lies in the part")


@case
def hostile_names_stay_data(folder):
    """Names that would end a script, a comment, a title: they are nowhere but in blocks."""
    evil = "</script><script>alert(1)</script><!--'\"&"
    made, thread = Made(), (100, 100)
    made.process(100, evil[:15])
    made.thread(100, 100, evil[:15])
    probe = made.probe(evil)
    made.clock(0)
    made.entry(1000, thread, probe, 900)
    made.exit(2000, thread, probe, 900)
    name = "a<script>.xspt"
    made.finish(f"{folder}/{name}", 0, 5000)
    blocks, rest = page_of(folder, f"{folder}/{name}")
    check("alert(1)" not in rest and "<script>.xspt" not in rest, "the page itself", rest[:1000])
    check(html.escape(name, quote=False) in rest, "the title", rest[:1000])
    head, _ = timeline_of(blocks["timeline"])
    check(evil in head["names"], "its name", head["names"])


@case
def two_sides(folder):
    """compare -o page.html: what compare writes, and trees with the time before."""
    for i, seed in enumerate((2, 4)):
        make(f"{folder}/{i}.xspt", seed)
    sides = (f"{folder}/0.xspt", f"{folder}/1.xspt")
    done = xsptrace("compare", *sides, "-q", "--format", "json", "--rows", "1000", "-o", f"{folder}/page.html", status=None)
    if "built without it" in done.stderr:
        raise Skip("this build has no page (Node)")
    blocks, _ = blocks_of(f"{folder}/page.html")
    equal(json.loads(blocks["compare"]), json.loads(done.stdout), "the comparison")
    report = json.loads(xsptrace("analyze", sides[1], "--format", "json", "--rows", "1000").stdout)
    equal(json.loads(blocks["report"]), report, "the report")
    wall = json.loads(blocks["trees"])["trees"][0]
    equal(sum(wall["self"]), sum(int(v) for _, v in folded_of(folder, sides[1])), "time of the second side")
    check(sum(wall["before"]) > 0, "time of the first side")
    equal(len(json.loads(blocks["page"])["captures"]), 2, "captures")


@case
def several_captures(folder):
    """A folder of captures: the timeline has the threads of all, the report is that of analyze."""
    os.mkdir(f"{folder}/job")
    for seed in (3, 6):
        make(f"{folder}/job/{seed}.xspt", seed)
    blocks, _ = page_of(folder, f"{folder}/job")
    report = json.loads(xsptrace("analyze", f"{folder}/job", "--format", "json", "--rows", "1000").stdout)
    equal(json.loads(blocks["report"]), report, "the report")
    _, tracks = timeline_of(blocks["timeline"])
    check_lanes(tracks)
    spans = sum(len(list(csv.DictReader(open(f"{folder}/{seed}.csv", encoding="utf-8", newline=""))))
                for seed in (3, 6) if xsptrace("export", f"{folder}/job/{seed}.xspt", "-q", "-o", f"{folder}/{seed}.csv"))
    equal(sum(t["spans"] for t, _ in tracks if t["kind"] == "spans"), spans, "spans of both")


@case
def wrong_use(folder):
    """A pipe, and a part of two captures: one line, and a status of its own."""
    make(f"{folder}/a.xspt", 1)
    os.mkfifo(f"{folder}/pipe.html")
    done = xsptrace("export", f"{folder}/a.xspt", "-o", f"{folder}/pipe.html", status=None)
    check(done.returncode != 0 and len(done.stderr.splitlines()) == 1, "a pipe", done.stderr)
    done = xsptrace("compare", f"{folder}/a.xspt", f"{folder}/a.xspt", "--from", "1us", "-o", f"{folder}/p.html", status=None)
    check(done.returncode != 0 and "--from" in done.stderr, "a part of two", done.stderr)


if __name__ == "__main__":
    main()
