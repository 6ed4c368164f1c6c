#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Chrome traces as captures: xsptrace reads from a trace what Python's json module reads."""
import collections
import csv
import decimal
import glob
import gzip
import json
import os
import random
import re

from captures import Made
from harness import (CAPTURE, OK, ROOT, TORCH, USAGE, XSPTRACE, Skip, case, check, equal, json_report, main, run,
                     xsptrace)

PYTHON = TORCH
SPANS = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver")
GPU = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
BASE = 1751410836000000000


def ns(us):
    return int((decimal.Decimal(us) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", errors="surrogateescape") as f:
        return json.load(f, parse_float=decimal.Decimal, strict=False)


def events(trace, categories):
    found = trace["traceEvents"] if isinstance(trace, dict) else trace
    return [e for e in found if e.get("ph") == "X" and category(e) in categories]


def allocations(trace):
    found = trace["traceEvents"] if isinstance(trace, dict) else trace
    return collections.Counter((e["args"]["Addr"], e["args"]["Bytes"]) for e in found
                               if e.get("name") == "[memory]" and e["args"]["Bytes"] > 0)


def has_end(e):
    return e.get("args", {}).get("finished") is not False and not e.get("args", {}).get("exit lost")


def category(e):
    """Before PyTorch 1.12 some had other names; without one it is a function."""
    return OLDER.get(e.get("cat"), e.get("cat", "cpu_op"))


OLDER = {"Runtime": "cuda_runtime", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset"}


def figures(trace, categories=SPANS):
    """{(category, name): (count, total)} by Python."""
    sums = collections.defaultdict(lambda: [0, 0])
    for e in events(trace, categories):
        row = sums[category(e), e["name"]]
        row[0] += 1
        row[1] += ns(e["dur"]) if has_end(e) else 0
    return {k: tuple(v) for k, v in sums.items()}


def reread(folder, source, name="again", *options):
    """The trace written from the one that was read, and the output."""
    done = xsptrace("export", "-q", source, *options, "-o", f"{folder}/{name}.json")
    return load(f"{folder}/{name}.json"), done.stderr


def write(folder, trace, name="trace.json"):
    path = f"{folder}/{name}"
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as f:
        f.write(trace if isinstance(trace, str) else json.dumps(trace))
    return path


def span(name, ts, dur, **more):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 8, "ts": ts, "dur": dur, **more}


def number(said, words):
    found = re.search(rf"([\d,]+) {words}", said)
    return int(found[1]) if found else 0


def same_figures(got, expected, clipped=0):
    """Exact; spans cut to the ones around them lack up to a microsecond each."""
    equal({k: v[0] for k, v in got.items()}, {k: v[0] for k, v in expected.items()}, "counts")
    short = {k: expected[k][1] - v[1] for k, v in got.items()}
    check(all(0 <= s <= 1000 * expected[k][0] for k, s in short.items()), "totals", short)
    check(sum(s > 0 for s in short.values()) <= clipped, "totals that differ", short, clipped)


# ---- traces of other tools ----------------------------------------------------------------------------


TORCH = """
import torch, sys
from torch.profiler import profile, record_function, ProfilerActivity
m = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
with profile(activities=[ProfilerActivity.CPU], with_stack=True, profile_memory=True, record_shapes=True) as p:
    for i in range(5):
        with record_function('step %d' % i):
            m(torch.ones(2, 8)).sum().backward()
p.export_chrome_trace(sys.argv[1])
"""


@case
def torch_profiler(folder):
    """PyTorch writes it: operators, ranges, Python's functions, allocations. (Debian's has no Kineto: operators and ranges.)"""
    path = f"{folder}/torch.json"
    done = run([PYTHON, "-c", TORCH, path], timeout=120)
    if done.returncode != 0:
        raise Skip(f"{PYTHON} has no torch.profiler: {done.stderr[-200:]}")
    truth = load(path)
    again, said = reread(folder, path)
    same_figures(figures(again), figures(truth), number(said, "spans went up to"))
    equal(allocations(again), allocations(truth), "allocations")
    summary = xsptrace("export", path, "--rows", "all").stdout
    check("aten::linear" in summary and "steps" not in said, "the summary", summary)


@case
def kineto_samples(folder):
    """Those that Holistic Trace Analysis publishes, where they are at hand (XSP_HTA: its tests/data)."""
    samples = sorted(glob.glob(os.path.join(os.environ.get("XSP_HTA", "/nowhere"), "**/*.json*"), recursive=True))
    if not samples:
        raise Skip("XSP_HTA names no folder with traces")
    for path in samples:
        try:
            truth = load(path)
        except (OSError, ValueError):
            continue
        if "traceEvents" not in truth:
            xsptrace("info", path, status=CAPTURE)
            continue
        again, said = reread(folder, path)
        same_figures(figures(again), figures(truth), number(said, "spans went up to"))
        equal(allocations(again), allocations(truth), "allocations")
        # AMD's "Host" is either of two kinds of memory; Kineto leaves the longest names mangled
        expected = {(c, n.replace("(Host ->", "(Unknown ->").replace("> Host)", "> Unknown)")): v
                    for (c, n), v in figures(truth, GPU).items()}
        got = figures(again, GPU)
        mangled = [expected.pop(k) for k in list(expected) if k[1].startswith("_Z")]
        equal(sorted(got.pop(k) for k in list(got) if k not in expected), sorted(mangled), "kernels that are mangled there")
        same_figures(got, expected)
        print(f"  {os.path.basename(path)}: {len(truth['traceEvents'])} events; {said.strip()[-200:]}")


# ---- what we write --------------------------------------------------------------------------------------------


def there_and_back(folder, capture, options=()):
    """The figures of the capture, and of the trace that was written of it."""
    first = f"{folder}/first.json"
    xsptrace("export", "-q", capture, *options, "-o", first)
    xsptrace("export", "-q", first, "-o", f"{folder}/kept.xspt")
    truth, again = load(first), reread(folder, f"{folder}/kept.xspt")[0]
    for categories in (SPANS, GPU):
        got = collections.Counter((e["cat"], e["name"], e["ts"], e["dur"]) for e in events(again, categories))
        expected = collections.Counter((e["cat"], e["name"], e["ts"], e["dur"]) for e in events(truth, categories))
        check(got == expected, "slices", sorted((got - expected).items())[:8], sorted((expected - got).items())[:8])
    equal(again["baseTimeNanoseconds"], truth["baseTimeNanoseconds"], "base")
    for key in ("start_ns", "end_ns"):
        equal(again["xsptrace_window"][key], truth["xsptrace_window"][key], key)
    return truth, again


def summary(path):
    """What it says of spans and kernels. Losses, how much of a call is that of probes, and what CUDA's API allocated, no trace holds."""
    s = json.loads(xsptrace("export", path, "--summary=json", "--rows", "all").stdout)
    keys = ("calls", "measured", "total_ns", "self_ns", "mean_ns", "min_ns", "max_ns", "p50_ns", "p99_ns")
    names = {row["name"]: [row.get(k) for k in keys] for row in s["names"]}
    return {"names": names, "kernels": s.get("gpu", {}).get("kernels"), "allocations": s.get("allocations"),
            **{k: s[k] for k in ("duration_ns", "recorded_ns", "spans", "threads_with_spans")}}


@case
def gpu_round_trip(folder):
    """A recording of the simulated GPU: calls, kernels, copies, waits, and which belongs to which."""
    capture = f"{ROOT}/tests/fuzz/seeds/gpu.xspt"
    truth, again = there_and_back(folder, capture)
    check(len(events(truth, ("kernel",))) > 10, "the capture has no kernels")
    for key in ("deviceProperties", "cupti_version", "cuda_driver_version"):
        equal(again.get(key), truth.get(key), key)
    keep = ("device", "context", "stream", "correlation", "registers per thread", "shared memory", "grid", "block", "bytes")

    def rows(trace):
        """Each activity with the name of the operator that it belongs to."""
        ops = {e["args"]["External id"]: e["name"] for e in events(trace, ("cpu_op", "user_annotation"))}
        return collections.Counter((e["name"], e["ts"], e["dur"], ops.get(e["args"].get("External id")),
                                    *(str(e["args"].get(k)) for k in keep)) for e in events(trace, GPU))

    equal(rows(again), rows(truth), "activities")
    # a trace of ours is a trace like any other: only the capture knows whether events were lost
    said = json_report("analyze", f"{folder}/first.json")["sections"]["recording"]
    equal((said["values"]["lost_entries"], any("not known" in n for n in said["notes"])), (None, True), "losses of a trace")
    equal(summary(f"{folder}/first.json"), summary(capture), "summary of the trace and of the capture")
    links = [collections.Counter((e["ts"], e["id"]) for e in t["traceEvents"] if e.get("cat") == "ac2g")
             for t in (again, truth)]
    equal(links[0], links[1], "arrows")


@case
def torch_round_trip(folder):
    """The same of a recording of PyTorch with what its summary says."""
    capture = f"{ROOT}/tests/fuzz/seeds/torch.xspt"
    there_and_back(folder, capture)
    equal(summary(f"{folder}/first.json"), summary(capture), "summary of the trace and of the capture")
    equal(summary(f"{folder}/kept.xspt"), summary(capture), "summary of the capture that was kept")


# ---- what traces may be ------------------------------------------------------------------------------------------


@case
def calls_without_duration(folder):
    """Of functions of one instruction: they are in no mean, there and back."""
    made, thread = Made(), (500, 500)
    made.clock(10 ** 10)
    made.process(500)
    short = made.probe("short")
    made.point(10 ** 10 + 1000, thread, short, 8000)
    made.entry(10 ** 10 + 2000, thread, short, 8000)
    made.exit(10 ** 10 + 5000, thread, short, 8000)
    made.finish(f"{folder}/points.xspt", 10 ** 10, 10 ** 10 + 6000)
    xsptrace("export", "-q", f"{folder}/points.xspt", "-o", f"{folder}/points.json")
    for path in (f"{folder}/points.xspt", f"{folder}/points.json"):
        row = json.loads(xsptrace("export", path, "--summary", "json").stdout)["names"][0]
        equal((row["name"], row["calls"], row["mean_ns"], row["min_ns"]), ("short", 2, 3000, 3000), path)


def random_trace(seed, threads=3, size=400):
    """Spans that nest, some by B and E, in no order; times to the nanosecond."""
    rnd = random.Random(seed)
    out = []

    def tree(tid, begin, end, depth):
        at = begin
        while at < end and len(out) < size:
            start = at + rnd.randrange(0, max(1, (end - at) // 3))
            stop = start + rnd.randrange(1, max(2, (end - start)))
            if stop > end:
                break
            name, where = f"f{rnd.randrange(9)}", {"pid": 7, "tid": tid}
            if rnd.random() < 0.3:
                out.append([{"ph": "B", "cat": "cpu_op", "name": name, "ts": start, **where},
                            {"ph": "E", "ts": stop, **where}])
            else:
                out.append([{"ph": "X", "cat": "cpu_op", "name": name, "ts": start, "dur": stop - start, **where}])
            if depth < 6:
                tree(tid, start, stop, depth + 1)
            at = stop

    for tid in range(threads):
        tree(100 + tid, 10 ** 9, 10 ** 9 + 10 ** 7, 0)
    return out


@case
def what_is_read_is_not_written(folder):
    """An output that is the trace itself, by another name too, is refused; the trace stays."""
    path = write(folder, [span("a", 0, 10), span("b", 20, 5)])
    os.link(path, f"{folder}/link.json")
    with open(path, "rb") as f:
        before = f.read()
    for verb in ("export", "analyze"):
        for out in (path, f"{folder}/link.json"):
            said = xsptrace(verb, path, "-o", out, status=USAGE).stderr
            check("is the file that is read" in said, "why", said)
    xsptrace("compare", path, path, "-o", path, status=USAGE)
    other = f"{folder}/other.json"
    with open(other, "w", encoding="ascii") as f:
        json.dump([span("c", 0, 20)], f)
    for verb in ("export", "analyze"):  # several, as one job
        said = xsptrace(verb, other, path, "-o", path, status=USAGE).stderr
        check("is the file that is read" in said, "why, of several", said)
    check("keeps one trace" in xsptrace("export", other, path, "-o", f"{folder}/k.xspt", status=USAGE).stderr, "kept of several")
    with open(path, "rb") as f:
        equal(f.read(), before, "the trace")


@case
def out_of_order(folder):
    """In any order, and as X or as B and E: the same spans."""
    for seed in range(6):
        groups = random_trace(seed)
        # an E and the next B of a moment keep their order: only X may go anywhere
        flat = [e for g in groups for e in g]
        complete, edges = [e for e in flat if e["ph"] == "X"], [e for e in flat if e["ph"] != "X"]
        random.Random(seed).shuffle(complete)
        edges.sort(key=lambda e: (e["ts"], e["ph"] == "B"))
        both = [dict(e) for e in complete + edges]
        for e in both:
            for key in ("ts", "dur"):
                if key in e:
                    e[key] = float(decimal.Decimal(e[key]) / 1000)
        again, said = reread(folder, write(folder, {"traceEvents": both, "baseTimeNanoseconds": BASE}))
        equal(said, "", "said")
        expected = collections.Counter()
        for g in groups:
            expected[g[0]["name"], g[0]["tid"], g[0]["ts"], g[1]["ts"] if len(g) > 1 else g[0]["ts"] + g[0]["dur"]] += 1
        got = collections.Counter((e["name"], e["tid"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]))
                                  for e in events(again, SPANS))
        equal(got, expected, f"spans of trace {seed}")


@case
def what_is_not_known(folder):
    """Others' traces say nothing of losses, and those that begin at 0 not when that was: nothing is made up, there and back."""
    path = write(folder, {"traceEvents": [span("a", 0, 50), span("b", 10, 20)]})
    again, _ = reread(folder, path)
    check("lost_entries" not in again["xsptrace_losses"] and not again["xsptrace_overhead"], "losses that nobody knows", again)
    for source in (path, f"{folder}/again.json"):
        report = json.loads(xsptrace("analyze", source, "--format", "json").stdout)
        values = report["sections"]["recording"]["values"]
        equal([values[k] for k in ("lost_entries", "lost_exits", "lost_other", "start")], [None] * 4, "what is not known")
        check("1970" not in xsptrace("info", source).stdout, "a time that is not known")
    report = json.loads(xsptrace("compare", path, f"{folder}/again.json", "--format", "json").stdout)
    equal([r["lost"] for r in report["sections"]["compared"]["tables"]["captures"]["rows"]], [None] * 2, "of a comparison")


@case
def forms(folder):
    """An array alone, gzip, members in any order, numbers as strings, ids that are texts, names that are escaped."""
    spans = [span("a", 1.5, "2.25"), span("é\"\\\n😀", "10", 1), span("b", 20, 1, pid="rank 0", tid="main"),
             span("c", 30, 1, tid=2 ** 40), span("d", 40, 1, pid=9), span("e", 41, 1, cat="mine, own")]
    expected = {(e["name"], ns(e["dur"])) for e in spans}
    for name, trace in (("array.json", spans), ("object.json", {"traceEvents": spans}),
                        ("open.json", json.dumps(spans)[:-1]), ("packed.json.gz", {"traceEvents": spans}),
                        ("late.json", {"traceEvents": spans, "baseTimeNanoseconds": 0}),
                        ("blank.json", json.dumps({"traceEvents": spans}, indent=4, ensure_ascii=False)),
                        ("mark.json", "\ufeff" + json.dumps(spans))):
        again, _ = reread(folder, write(folder, trace, name))
        all_of_them = events(again, SPANS + ("mine, own",))
        equal({(e["name"], ns(e["dur"])) for e in all_of_them}, expected, name)
        equal(len({(e["pid"], e["tid"]) for e in all_of_them}), 4, f"threads of {name}")
    # the same number in two processes is two threads
    both = [span("x", 1, 5), span("y", 2, 9, pid=9)]
    again, said = reread(folder, write(folder, both))
    equal((len(events(again, SPANS)), said), (2, ""), "one tid in two processes")
    # a number and its text are one thread; other texts are not
    again, said = reread(folder, write(folder, [span("outer", 0, 100, tid="3239786240"), span("inner", 10, 50, tid=3239786240),
                                                span("same", 70, 5, pid="7", tid=3239786240), span("other", 10, 50, tid="03239786240"),
                                                span("minus", 0, 5, tid="-5"), span("minus too", 10, 5, tid=-5)]))
    tids = {e["name"]: e["tid"] for e in events(again, SPANS)}
    equal((tids["outer"], tids["outer"], tids["minus"]), (tids["inner"], tids["same"], tids["minus too"]), "a number and its text")
    equal(len(set(tids.values())), 3, "threads")


@case
def paths_that_nobody_escaped(folder):
    r"""Backslashes of Windows: torch\utils has an escape that JSON does not know. Names keep them, and it is said."""
    names = {r"torch\cuda\__init__.py(219): _lazy_init": None, r"torch\utils\data.py(2): f": None, r"C:\Users\x.py(2): g": None,
             r"torch\nn\functional.py(3): f": None, r"D:\new\run.py(2): h": None, r"D:\new\tool": None,
             r"torch\\nn\\x.py(3): escaped": "torch\\nn\\x.py(3): escaped", r"line\nbreak \u0041 \"q\" \/": 'line\nbreak A "q" /'}
    text = ",".join('{"ph":"X","cat":"python_function","name":"%s","pid":7,"tid":8,"ts":%d,"dur":5}' % (n, 10 * i) for i, n in enumerate(names))
    again, said = reread(folder, write(folder, '{"traceEvents":[' + text + "]}"))
    equal([e["name"] for e in sorted(events(again, SPANS), key=lambda e: e["ts"])], [n if as_it_is is None else as_it_is for n, as_it_is in names.items()], "names")
    equal(number(said, "names have backslashes"), 6, "how many")


@case
def ranks(folder):
    """The rank: these numbers identify a job of traces."""
    for rank in (0, 11):
        trace = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 12, "pg_count": 1}, "traceEvents": [span("a", 1, 5)]}
        again, said = reread(folder, write(folder, trace, f"rank{rank}.json"))
        equal((again["distributedInfo"], said), ({"rank": rank, "world_size": 12}, ""), "rank")
    told = xsptrace("analyze", f"{folder}/rank0.json", f"{folder}/rank11.json").stdout
    check(re.search(r"^11 +7 ", told, re.M), "the ranks by their numbers", told)
    again, _ = reread(folder, write(folder, {"distributedInfo": {"rank": 5, "world_size": 2}, "traceEvents": [span("a", 1, 5)]}))
    check("distributedInfo" not in again, "a rank that there is not", again.get("distributedInfo"))


@case
def overlapping(folder):
    """Spans of a thread that do not nest are all there, each row nests, and the output says so."""
    spans = [span(f"o{i}", 10 * i, 25) for i in range(50)]
    again, said = reread(folder, write(folder, spans))
    same_figures(figures(again), figures(spans))
    check(number(said, "spans overlap others") > 0, "nothing is said", said)
    rows = collections.defaultdict(list)
    for e in events(again, SPANS):
        rows[e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
    for row in rows.values():
        row.sort()
        check(all(a[1] <= b[0] for a, b in zip(row, row[1:])), "a row overlaps", row)
    # by rounding to microseconds: on one row
    again, said = reread(folder, write(folder, [span("outer", 10, 20), span("inner", 25, 6)]))
    equal([(e["name"], ns(e["dur"])) for e in events(again, SPANS)], [("inner", 5000), ("outer", 20000)], "rounded")
    check(number(said, "spans went up to 1 us") == 1, "nothing is said", said)


@case
def what_does_not_end(folder):
    again, said = reread(folder, write(folder, [
        {"ph": "B", "name": "open", "cat": "cpu_op", "pid": 7, "tid": 8, "ts": 5}, {"ph": "E", "pid": 7, "tid": 9, "ts": 6},
        span("a", 10, 5), span("stopped", 12, 3, args={"finished": False}), span("left", 16, 2, args={"unwound": True})]))
    marks = {e["name"]: {k for k in ("finished", "unwound") if k in e["args"]} for e in events(again, SPANS)}
    equal(marks["open"], {"finished"}, "a B without its E")
    equal((marks["left"], marks["a"]), ({"unwound"}, set()), "how they ended")
    check(number(said, "ends .E. without a begin") == 1 and number(said, "spans .B. do not end") == 1, "not said", said)

    def edge(ph, ts, name=None, cat="cpu_op"):
        return {"ph": ph, "cat": cat, "pid": 7, "tid": 8, "ts": ts, **({"name": name} if name else {})}

    outer = [edge("B", 0, "outer"), edge("B", 10, "inner")]
    for what, trace, expected in (
            ("nothing else", outer, {"outer": False, "inner": False}),
            ("two begin together", outer + [edge("B", 10, "innermost")], {"outer": False, "inner": False, "innermost": False}),
            ("something ends last", outer + [span("x", 20, 0), span("y", 30, 0)], {"outer": False, "inner": False, "x": 0, "y": 0}),
            ("an E closes what it names", outer + [edge("E", 50, "outer"), span("after", 60, 10)], {"outer": 50000, "inner": None, "after": 10000}),
            ("an E without a name", outer + [edge("E", 50), span("after", 60, 10)], {"outer": False, "inner": 40000, "after": 10000}),
            ("inside of what ends", [span("around", 0, 100), edge("B", 10, "open"), span("after", 200, 10)],
             {"around": 100000, "open": None, "after": 10000})):
        again, _ = reread(folder, write(folder, trace))
        found = events(again, SPANS)
        # False: unfinished; None: its end was lost
        equal({e["name"]: False if e["args"].get("finished") is False else None if e["args"].get("exit lost") else ns(e["dur"]) for e in found},
              expected, what)
        equal({e["tid"] for e in found}, {8}, f"{what}: threads")
    xsptrace("export", "-q", write(folder, outer + [edge("B", 10, "innermost"), edge("E", 20), edge("E", 20)]), "-o", f"{folder}/t.csv")
    with open(f"{folder}/t.csv", encoding="utf-8", newline="") as f:
        depths = {r["name"]: int(r["depth"]) for r in csv.DictReader(f)}
    equal([depths[n] - depths["outer"] for n in ("inner", "innermost")], [1, 2], "two that begin and end together keep their order")


@case
def returns_that_were_lost(folder):
    """The profiler lets a call of Python whose return it lost go on until its last event. That is no time, and no finding."""
    def python(name, ts, dur, own, caller):
        return span(name, ts, dur, cat="python_function", args={"Python id": own, "Python parent id": caller})

    end = 100_000
    for what, step, caller in (("beyond its caller", [python("a.py(1): step", 1000, 2000, 2, 1)], 2), ("its caller calls again", [], 1)):
        path = write(folder, [python("a.py(9): main", 0, end, 1, None), *step, python("a.py(5): lost", 1500, end - 1500, 3, caller),
                              python("a.py(7): next", 50_000, 400, 4, 1), span("aten::mm", 50_100, 200)])
        again, said = reread(folder, path)
        found = {e["name"]: e for e in events(again, SPANS)}
        check(found["a.py(5): lost"]["args"].get("exit lost"), f"{what}: its end was not seen", found["a.py(5): lost"])
        equal((ns(found["a.py(9): main"]["dur"]), ns(found["a.py(7): next"]["dur"])), (end * 1000, 400_000), f"{what}: others keep theirs")
        equal(len({e["tid"] for e in found.values()}), 1, f"{what}: rows")
        check(number(said, "calls of Python go on until the end") == 1, f"{what}: said", said)
        findings = json_report("analyze", path)["findings"]
        check("a.py(5)" not in str(findings), f"{what}: a finding", findings)
    # main alone goes on until the end, as it does
    again, said = reread(folder, write(folder, [python("a.py(9): main", 0, end, 1, None), python("a.py(1): f", end - 500, 500, 2, 1)]))
    equal((said, sorted(ns(e["dur"]) for e in events(again, SPANS))), ("", [500_000, end * 1000]), "nothing was lost")


# ---- bad input -------------------------------------------------------------------------------------------------------


@case
def events_that_lie(folder):
    good = [span(f"good{i}", 10 * i, 5) for i in range(10)]
    for bad, words in (('{"ph":"X","name":"n","pid":1,"tid":1,"ts":NaN,"dur":1}', "without a time"),
                       ('{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":Infinity}', "without a time"),
                       ('{"ph":"X","name":"n","pid":1,"tid":1,"ts":1e300,"dur":1}', "without a time"),
                       ('{"ph":"X","name":"n","pid":1,"tid":1,"dur":1}', "without a time"),
                       ('{"ph":"X","name":"n","pid":1,"tid":1,"ts":5,"dur":-3}', "negative"),
                       ('[1,2]', "no events"), ('17', "no events"), ('"x"', "no events"),
                       ('{"ph":"Q","ts":1}', "other kinds"), ('{}', "other kinds"),
                       ('{"ph":"b","id":1,"ts":1}', "asynchronous"), ('{"ph":"C","ts":1,"args":{"v":"x"}}', "counter")):
        text = '{"traceEvents":[' + ",".join([json.dumps(e) for e in good[:5]] + [bad]
                                             + [json.dumps(e) for e in good[5:]]) + "]}"
        again, said = reread(folder, write(folder, text))
        equal(sorted(e["name"] for e in events(again, SPANS)), sorted(e["name"] for e in good), bad)
        check(words in said and len(said.strip().splitlines()) == 1, f"{bad} is not said", said)
    # traces given twice
    twice = '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","name":"b","pid":1,"tid":1,"ts":1,"dur":2,"dur":3}]}'
    equal([(e["name"], ns(e["dur"])) for e in events(reread(folder, write(folder, twice))[0], SPANS)], [("b", 3000)],
          "keys given twice: the last one counts, as for Python")
    # huge strings
    for size in (100, 70000, 3 << 20):
        long = "x" * size
        again, _ = reread(folder, write(folder, [span(long, 1, 2), span("s", 5, 1, args={"Call stack": long})]))
        equal([e["name"][:50] for e in events(again, SPANS)], [long[:50], "s"], f"a name of {size} bytes")


@case
def cut_off(folder):
    """At any byte: the part before it is read, and the output says how far."""
    each = [json.dumps(span(f"s{i}", 10 * i, 5, args={"a": [1, {"b": "\\}"}]})) for i in range(30)]
    whole = '{"schemaVersion": 1, "traceEvents": [' + ", ".join(each) + '], "traceName": "x"}'
    first, last = whole.index(each[0]) + len(each[0]) - 1, whole.rindex('], "traceName')
    for at in list(range(0, first, 7)) + [first + 20, len(whole) // 2, last, last + 1, len(whole) - 1]:
        path = write(folder, whole[:at])
        done = xsptrace("export", "-q", path, "-o", f"{folder}/cut.json", status=None)
        spans = [f"s{i}" for i, text in enumerate(each) if whole.index(text) + len(text) <= at]
        lines = [l for l in done.stderr.splitlines() if l]
        equal(len(lines), 1, f"lines for {at} bytes: {done.stderr!r}")
        if done.returncode == OK:
            got = [e["name"] for e in events(load(f"{folder}/cut.json"), SPANS)]
            equal(got, spans, f"spans in the first {at} bytes")
            check("read up to byte" in lines[0], "it does not say how far", lines[0])
        else:
            equal((done.returncode, spans), (CAPTURE, []), f"status for {at} bytes")
    packed = gzip.compress(whole.encode())
    for damage in (packed[:len(packed) // 2], packed[:-4]):
        with open(f"{folder}/packed.json.gz", "wb") as f:
            f.write(damage)
        done = xsptrace("info", f"{folder}/packed.json.gz", status=None)
        check(done.returncode == CAPTURE or "compressed data" in done.stderr, "damage is not said", done.stderr)


@case
def damaged_gzip(folder):
    """Whatever stands whole before the damage is read: of members, of one member, and where only a checksum is wrong."""
    each = [json.dumps(span(f"op{i % 7}", 10 * i, 5)) for i in range(20000)]
    whole = ("[" + ",".join(each) + "]").encode()
    parts = [whole[i:i + 65536] for i in range(0, len(whole), 65536)]
    members = [gzip.compress(p) for p in parts]

    def read(data):
        with open(f"{folder}/d.json.gz", "wb") as f:
            f.write(data)
        done = xsptrace("export", "-q", f"{folder}/d.json.gz", "-o", f"{folder}/d.json")
        return len(events(load(f"{folder}/d.json"), SPANS)), done.stderr

    equal(read(b"".join(members) + bytes(512)), (len(each), ""), "many members, and zeros behind them")
    for j in (1, 8, 20, len(parts) - 1):
        data = bytearray(b"".join(members))
        data[sum(map(len, members[:j])) + len(members[j]) // 2] ^= 0xff
        count, said = read(bytes(data))
        complete = whole[:65536 * j].count(b'"dur"') - 1
        check(complete <= count <= complete + 65536 // 60 + 2, f"member {j}", complete, count)
        check("damaged" in said, "said", said)
    # a bit of one member, far behind its beginning
    data = bytearray(gzip.compress(whole))
    data[len(data) * 9 // 10] ^= 0xff
    count, said = read(bytes(data))
    check(len(each) * 0.85 < count < len(each) and "damaged there" in said, "one member", count, said)
    # the checksum alone
    data = bytearray(gzip.compress(whole))
    data[-8] ^= 1
    count, said = read(bytes(data))
    equal(count, len(each), "all that there is")
    check("checksum" in said, "said", said)


@case
def no_trace(folder):
    for text, words in (("", "empty"), ("hello", "not a capture"), ("{", "no chrome trace"), ("[", "no chrome trace"),
                        ('{"a":1}', "no traceevents"), ('{"traceEvents":', "no chrome trace"), ("{]", "no json"),
                        ("[" * 100000, "deep"), ('{"a":' * 100000, "deep"), ('{"x":"' + "y" * 100000, "ends there")):
        for verb in (("export",), ("info",)):
            done = xsptrace(*verb, write(folder, text), status=CAPTURE)
            lines = [l for l in done.stderr.splitlines() if l]
            check(len(lines) == 1 and words in lines[0].lower(), f"{text[:20]!r}: not {words!r}", done.stderr)
    for text in ("[]", '{"traceEvents":[]}'):
        xsptrace("export", write(folder, text))
    keep = xsptrace("export", f"{ROOT}/tests/fuzz/seeds/torch.xspt", "-o", f"{folder}/x.xspt", status=USAGE)
    check("is a capture already" in keep.stderr, "what -o .xspt is for", keep.stderr)


@case
def memory_is_bounded(folder):
    """A deep one of many megabytes, and a million spans: by what `time` counts."""
    with open(f"{folder}/deep.json", "w", encoding="ascii") as f:
        f.write('{"x":[')
        for _ in range(200):
            f.write('{"k":"' + "v" * 100000 + '"},' * 1)
        f.write('1],"traceEvents":[')
        for i in range(600000):
            f.write(f'{{"ph":"X","cat":"cpu_op","name":"f{i % 50}","pid":1,"tid":{i % 3},"ts":{600000 - i}.25,"dur":0.125}},\n')
        f.write('{"ph":"M"}]}')
    script = "import resource,subprocess,sys; subprocess.run(sys.argv[1:],check=True); " \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = run([PYTHON, "-c", script, XSPTRACE, "export", "-q", f"{folder}/deep.json", "-o", f"{folder}/o.xspt"])
    peak = int(done.stdout.split()[-1]) * 1024
    check(peak < 200 << 20, f"{peak >> 20} MiB at the peak", done.stderr)
    text = xsptrace("info", f"{folder}/o.xspt").stdout
    check("600001 events" in text, "what it was read from", text)
    check(re.search(r"^events +1200000 in the file$", text, re.M), "an entry and an exit a span", text)


@case(long="outputs of 200,000 processes")
def many_processes(folder):
    """Memory does not grow with them: 32,768 threads have rows of their own, and each call is in the figures."""
    for count in (40000, 200000):
        with open(f"{folder}/{count}.json", "w", encoding="ascii") as f:
            f.write('{"traceEvents":[')
            for i in range(count):
                f.write(f'{{"ph":"X","name":"f{i % 10}","pid":{i + 1},"tid":{i + 1},"ts":{10 * i},"dur":5}},\n')
            f.write('{"ph":"M"}]}')
    script = "import resource,subprocess,sys; subprocess.run(sys.argv[1:],check=True,stdout=subprocess.DEVNULL); " \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    for ending in ("html", "pftrace", "speedscope.json", "json.gz", None):
        peaks = []
        for count in (40000, 200000):
            verb = ["export", "-q", f"{folder}/{count}.json", "-o", f"{folder}/o.{ending}"] if ending else ["analyze", f"{folder}/{count}.json"]
            peaks.append(int(run([PYTHON, "-c", script, XSPTRACE, *verb], timeout=120).stdout.split()[-1]) >> 10)
        print(f"  {ending or 'analyze'}: {peaks[0]} and {peaks[1]} MiB")
        check(peaks[1] < 450 and peaks[1] < peaks[0] + 150, "memory", ending, peaks)
    check("32,768 threads have rows of their own" in xsptrace("analyze", f"{folder}/200000.json").stdout, "what is one row")
    xsptrace("export", "-q", f"{folder}/200000.json", "-o", f"{folder}/o.csv")
    with open(f"{folder}/o.csv", encoding="ascii") as f:
        equal(sum(1 for _ in f), 200001, "calls, and a line of titles")


def call(name, correlation, ts, dur):
    return span(name, ts, dur, cat="cuda_runtime", args={"correlation": correlation})


def on_gpu(cat, name, correlation, stream, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur,
            "args": {"correlation": correlation, "stream": stream, "device": 0, "context": 1, **args}}


@case
def other_vendors(folder):
    """Calls of Intel's and AMD's APIs are joined to their kernels, which may have no stream, and their waits are known as such."""
    for cat, launch, wait in (("xpu_runtime", "urEnqueueKernelLaunch", "urQueueFinish"), ("hip_runtime", "hipLaunchKernel", "hipDeviceSynchronize"),
                              ("privateuse1_runtime", "someLaunch", None)):
        trace = []
        for i in range(50):
            t = 1000 * i
            trace += [span("aten::mm", t, 80, args={"External id": i + 1}), span(launch, t + 20, 6, cat=cat, args={"correlation": i + 1}),
                      {"ph": "X", "cat": "kernel", "name": "gemm_kernel", "pid": 0, "tid": 64, "ts": t + 100, "dur": 300,
                       "args": {"correlation": i + 1, "device": 0, "l0 queue": "0x55", "sycl queue": 64}}]
            trace += [span(wait, t + 700, 200, cat=cat)] if wait else []
        path = write(folder, {"deviceProperties": [], "traceEvents": trace})
        again, said = reread(folder, path)
        ids = {e["args"]["External id"]: e["name"] for e in events(again, ("cpu_op",))}
        kernels = events(again, ("kernel",))
        equal((len(kernels), {ids[k["args"]["External id"]] for k in kernels}, said), (50, {"aten::mm"}, ""), f"{cat}: kernels of operators")
        told = xsptrace("analyze", path).stdout
        check(not wait or f"waiting for the GPU takes" in told and wait in told, f"{cat}: the wait", told)


@case
def what_an_event_stood_for(folder):
    """The record of an event, of which only the wait for it tells: kernel `late` waits for `first`, and not for what ended last."""
    path = write(folder, {"traceEvents": [
        span("ProfilerStep#0", 0, 200, cat="user_annotation"),
        call("cudaLaunchKernel", 1, 10, 2), on_gpu("kernel", "first", 1, 7, 14, 46),
        call("cudaEventRecord", 2, 14, 1),
        call("cudaLaunchKernel", 3, 16, 2), on_gpu("kernel", "beside", 3, 9, 20, 60),
        call("cudaStreamWaitEvent", 4, 20, 1),
        on_gpu("cuda_sync", "Stream Wait Event", 4, 8, 20, 1, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2,
               wait_on_cuda_event_id=5),
        call("cudaLaunchKernel", 5, 22, 2), on_gpu("kernel", "late", 5, 8, 82, 68),
        call("cudaDeviceSynchronize", 6, 30, 125), on_gpu("cuda_sync", "Context Sync", 6, -1, 30, 125),
        # made before the trace began
        call("cudaStreamWaitEvent", 7, 160, 1),
        on_gpu("cuda_sync", "Stream Wait Event", 7, 8, 160, 1, wait_on_stream=7, wait_on_cuda_event_record_corr_id=99,
               wait_on_cuda_event_id=6)]})
    gpu = json_report("analyze", path)["sections"]["gpu"]
    rows = {(r["kind"], r["name"]): r["total_ns"] for r in gpu["tables"]["path_names"]["rows"]}
    equal({k: v for k, v in rows.items() if k[0] != "host"},
          {("launch delay", "first"): 4000, ("kernels", "first"): 46000, ("between two on the GPU", "late"): 22000,
           ("kernels", "late"): 68000, ("synchronisation", "Context Sync"): 5000}, "the path")
    equal([n for n in gpu["notes"] if "event" in n], [], "what is guessed")
    said = xsptrace("export", path).stdout
    check("API call is not known" not in said, "activities without a call", said)


@case
def copies_that_go_on_beside_their_call(folder):
    """Whether a copy was asynchronous its call's name tells: of those the delay of the launch is known (as HTA has it), and a short
    one of pinned memory was not waited for."""
    path = write(folder, {"traceEvents": [
        span("ProfilerStep#0", 0, 200, cat="user_annotation"),
        call("cudaMemcpyAsync", 1, 10, 20), on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1, 7, 14, 6, bytes=60),
        call("cudaMemsetAsync", 2, 40, 5), on_gpu("gpu_memset", "Memset (Device)", 2, 7, 50, 1, bytes=60),
        call("cudaMemcpy", 3, 100, 20), on_gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 3, 7, 105, 10, bytes=60)]})
    tables = json_report("analyze", path)["sections"]["gpu"]["tables"]
    equal({r["kind"]: (r["count"], r["call_mean_ns"], r["delay_mean_ns"]) for r in tables["launches"]["rows"]},
          {"copies": (1, 20000, 0), "sets": (1, 5000, 5000)}, "launches")
    equal({r["kind"]: r["total_ns"] for r in tables["path"]["rows"]},
          {"host": 180000, "launch delay": 5000, "copies and sets": 10000, "synchronisation": 5000}, "the path")


main(traces=False)
