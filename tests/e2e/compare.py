#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Comparing recordings of real programs: what was planted is found and named, and between repeats of one program there is
no verdict. tests/unit/test_compare.c has what cannot be planted."""
import collections
import csv
import itertools
import json
import os
import re

from harness import CAPTURE, EXTRA, LONG, NO_MATCH, OK, USAGE, case, check, equal, json_report, main, start, workload, xsptrace

FOUND = 10
SURE = {"slower", "faster", "more", "less", "grows more", "grows less", "new", "gone"}
REPEATS = 10 if LONG else 4


def record(folder, name, *options, steps=100, waits=False):
    path = f"{folder}/{name}.xspt"
    declined = [option for option in EXTRA if option != "--waits=off" or not waits]
    xsptrace(*declined, "-q", "--summary=none", "-e", "record_function", "-o", path, "--", workload("compared"), steps,
             *options, timeout=120)
    return path


def compare(*arguments, status=OK):
    return json_report("compare", *arguments, status=status, timeout=120)


def rows(report, section, table):
    """{name: row}"""
    return {r["name"]: r for r in report["sections"].get(section, {"tables": {}})["tables"].get(table, {"rows": []})["rows"]}


def verdicts(report):
    """[(table, name, verdict)] of all that are sure."""
    return [(key, row["name"], row["verdict"]) for s in report["sections"].values()
            for key, table in s["tables"].items() for row in table["rows"]
            if row.get("verdict", "").rstrip("?") in SURE]


@case(quiet="a planted fifth of wall time")
def a_slower_operator(folder):
    """One of four ranges does a fifth more: the output names it, and no other. It also says that the command lines differ. (The
    processors of a virtual machine may be slower for all of a recording: not in three pairs.)"""
    for i in range(3):
        a, b = record(folder, f"a{i}", steps=300), record(folder, f"b{i}", "beta=20", steps=300)
        report = compare(a, b, "--fail-on", "slower", status=None)
        others = [v for v in verdicts(report) if v[1] != "beta" and v[0] in ("in_step", "call")]
        if not others:
            break
    row = rows(report, "operators", "in_step")["beta"]
    equal(row["verdict"], "slower?", f"beta: {row}")
    # one interval of twenty does not hold the truth
    check(0.05 < row["low"] < row["high"] < 0.4 and 0.12 < row["change"] < 0.28, "about what was planted", row)
    equal(others, [], "other operators")
    check("command lines differ" in json.dumps(report["sections"]["compared"]["notes"]), "doubts", report["sections"]["compared"])
    # three tenths of a step are: it is slower by 6 %, which may be seen as well
    equal({f["subject"] for f in report["findings"] if f["rule"] == "slower"} - {"step"}, {"beta"}, "findings")
    xsptrace("compare", a, b, "--fail-on", "slower", status=FOUND)
    xsptrace("compare", b, a, "--fail-on", "slower", status=OK)
    xsptrace("compare", a, b, "--threshold", "60", "--fail-on", "slower", status=OK)


@case(quiet="a planted fifth of wall time, beside programs that take the CPUs", long="ten recordings; unit.compare has the arithmetic")
def a_disturbed_capture(folder):
    """Five captures of each side; during one of A's and one of B's other programs want both CPUs twice. What was planted is
    found, and nothing else; the other way round as well, and of one program nothing is said."""
    def side(name, *options):
        paths = []
        for i in range(5):
            others = [start(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count() * (i == 2))]
            try:
                paths.append(record(folder, f"{name}{i}", *options, steps=300, waits=True))
            finally:
                for other in others:
                    other.kill()
                    other.wait()
        return paths
    a, again, b = side("a"), side("again"), side("b", "beta=20")
    report = compare(*a, "vs", *b, status=None)
    equal(rows(report, "operators", "in_step")["beta"]["verdict"], "slower?", "beta")
    equal([v for v in verdicts(report) if v[1] not in ("beta", "step")], [], "others")
    equal(verdicts(compare(*a, "vs", *again, status=None)), [], "of one program")


@case
def a_leak(folder):
    """Each step keeps 24 KiB. Memory is looked at ten times a second."""
    a, b = record(folder, "a", steps=2000), record(folder, "b", "leak=24", steps=2000)
    report = compare(a, b, "--fail-on", "memory", status=FOUND)
    row = rows(report, "memory", "growth")["resident memory"]
    equal(row["verdict"], "grows more?", f"{row}")
    kept = 24 * 1024 + 16 # with malloc's header; one interval of twenty does not hold the truth
    check(0.95 * row["low"] < kept < 1.05 * row["high"] and abs(row["change"] - kept) < 0.03 * kept, "bytes a step", row)
    check("leak" in [f["rule"] for f in report["findings"]], "the finding", report["findings"])


@case
def outputs(folder):
    """A new range; one screen of 80 columns, CSV, pictures: their sums are those of the exports."""
    a, b = record(folder, "a"), record(folder, "b", "extra=1")
    svg, folded = f"{folder}/diff.svg", f"{folder}/diff.folded"
    screen = xsptrace("compare", a, b, "-o", svg, "-o", folded).stdout.splitlines()
    text = xsptrace("compare", a, b, "--full").stdout
    check(re.search(r"^epsilon +new\?", text, re.M), "the new one", text)
    equal([line for line in screen if len(line) > 80], [], "lines of more than 80 columns")
    check(len(screen) <= 23 and "--full" in screen[-1], "one screen", screen)
    every = xsptrace("compare", a, b, "--rows", "all").stdout
    without = [len(re.findall(r" (?:none: \w+|small|same) ", t)) for t in (text, every)]
    check(without[0] < without[1], "few rows without a verdict, unless asked for", without)
    xsptrace("compare", a, b, "-o", f"{folder}/report.csv")
    with open(f"{folder}/report.csv", newline="", encoding="utf-8") as f:
        cells = list(csv.reader(f))
    check(any("epsilon" in row for row in cells), "CSV", cells[:5])
    with open(folded, encoding="utf-8") as f:
        lines = [re.fullmatch(r"(.*) (\d+) (\d+)", line.rstrip("\n")) for line in f]
    check(lines and all(lines), "every line has two counts", lines)
    # where a slow first step is warm-up in one of them only, the second one's times are of as many steps as the first has
    steps = [r["steps"] for r in compare(a, b)["sections"]["compared"]["tables"]["captures"]["rows"]]
    for path, column, factor in ((a, 2, 1), (b, 3, steps[0] / steps[1])):
        xsptrace("export", path, "-q", "--weight", "wall", "-o", f"{path}.folded")
        with open(f"{path}.folded", encoding="utf-8") as f:
            one = collections.Counter()
            for line in f:
                stack, _, ns = line.rpartition(" ")
                one[re.sub(r"#\d+(;|$)", r"#*\1", stack)] += int(ns)
        told = {m[1]: int(m[column]) for m in lines if int(m[column])}
        equal(set(told), {k for k, v in one.items() if v * factor >= 1}, f"stacks of {path}")
        wrong = {k: (told[k], one[k] * factor) for k in told if abs(told[k] - one[k] * factor) > (factor != 1)}
        equal(wrong, {}, f"times of {path}")
    with open(svg, encoding="utf-8") as f:
        picture = f.read()
    check("Differential flame graph" in picture and ">epsilon\ntotal 0 ns, then " in picture, "the picture", picture[:400])
    three = compare(a, b, a)
    equal({r["side"] for r in three["sections"]["operators"]["tables"]["call"]["rows"]}, {"B", "C"}, "sides")
    joined = compare(f"{a},{a}", "vs", b, b)
    equal(len(joined["sections"]["compared"]["tables"]["captures"]["rows"]), 4, "captures")


@case
def wrong_use(folder):
    a = record(folder, "a", steps=20)
    for arguments, part in ((([a]), "two captures"), ([a, "vs"], "no capture on one side"),
                            ([a, a, "--threshold", "x"], "--threshold wants"), ([a, a, "--fail-on", "all"], "--fail-on wants"),
                            ([a, a, a, "-o", f"{folder}/x.svg"], "shows two sides"), ([a, a, "--format", "xml"], "--format wants"),
                            ([a, a, "--nonsense"], "unknown option")):
        done = xsptrace("compare", *arguments, status=USAGE)
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(part in done.stderr, f"{arguments}", done.stderr)
    xsptrace("compare", a, f"{folder}/none.xspt", status=CAPTURE)
    xsptrace("compare", a, a, "-e", "nothing*", status=NO_MATCH)
    equal(verdicts(compare(a, a)), [], "a capture and itself")
    check(not os.path.exists(f"{folder}/x.svg"), "nothing is left behind")


@case(long="ten pairs of recordings")
def repeats(folder):
    """No verdict between any two recordings of one program, whatever the machine does beside."""
    paths = [record(folder, f"r{i}", steps=200) for i in range(REPEATS)]
    wrong = {}
    for a, b in itertools.combinations(paths, 2):
        found = verdicts(compare(a, b))
        if found:
            wrong[os.path.basename(a), os.path.basename(b)] = found
    half = len(paths) // 2
    if half >= 3:
        found = verdicts(compare(*paths[:half], "vs", *paths[half:]))
        if found:
            wrong["halves"] = found
    print(f"{len(wrong)} of {len(paths) * (len(paths) - 1) // 2} pairs with a verdict")
    check(not wrong, "verdicts between repeats", wrong)


main()
