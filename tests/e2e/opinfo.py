#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""PyTorch's own samples of arguments: results are the same with xsptrace and without, byte by byte. torch_opinfo.py makes a digest of
each. What is not the same in two runs without xsptrace either (memory that nobody has written) is named, and proves nothing."""
import collections
import json
import os
import re
import subprocess

from harness import (EXTRA, SCRIPTS, XSPTRACE, Recording, Skip, case, check, equal, finish, main, start, torch_roots, torch_script, wait_for,
                     xsptrace)
from operators_by_agent import go

ALONE = 2  # runs without xsptrace
BY_AGENT = r"records ([\d,]+) of \1 operators, without probes"
# Each way with its name: of a program that xsptrace starts, and of one that runs.
LAUNCHED, SHAPES = ("launched",), ("shapes", "--inject", "--shapes")
PROBES = ("probes", "--shapes=all", "--inputs=values", "--flops", "--sequence", "--stacks", "--max-overhead=off", "--attach-limit=120")


def begin(folder, root, name, under=()):
    """The script, which waits; and its process id."""
    command = torch_script(folder, root, f"{SCRIPTS}/torch_opinfo.py", f"/mnt/shared/{name}" if root else f"{folder}/{name}")
    with open(f"{folder}/{name}.log", "wb") as log:
        child = start([*under, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                      env={**os.environ, "PYTHONHASHSEED": "0"})
    ready = child.stdout.readline().split()
    check(ready[:1] == ["ready"], f"the script, {name}: {ready}")
    return child, int(ready[1])


def results_of(folder, root, name, child):
    """{(operator, type, what, number): digest}"""
    go(child)
    said = child.stdout.readline()
    if said.startswith("no samples"):
        raise Skip(f"PyTorch of {root or 'this machine'}: {said}")
    equal(said, "done\n", f"the script, {name}")
    child.communicate()
    equal(finish(child), 0, f"status of {name}")
    with open(f"{folder}/{name}", encoding="utf-8") as f:
        return {tuple(words[:4]): words[4] for words in (line.rstrip("\n").split(" ", 4) for line in f)}


def alone(folder, root, name):
    return results_of(folder, root, name, begin(folder, root, name)[0])


def recorded(folder, root, name, *options):
    """The same with xsptrace, and its summary."""
    capture = f"{folder}/{name}.xspt"
    if name == LAUNCHED[0]:
        child, _ = begin(folder, root, name, [XSPTRACE, *EXTRA, *options, "-o", capture, "--"])
        with open(f"{folder}/{name}.log", encoding="utf-8") as log:
            wait_for(lambda: re.search(BY_AGENT, log.read()), 60, "the agent")
        results = results_of(folder, root, name, child)
    else:
        child, pid = begin(folder, root, name)
        with Recording(folder, *options, "-p", pid, "-o", capture, name=f"{name}.xsptrace") as recording:
            check(re.search(BY_AGENT, recording.output()) or "--inject" not in options, "what was said", recording.output())
            results = results_of(folder, root, name, child)
            recording.wait(seconds=300)
    return results, json.loads(xsptrace("export", capture, "--summary", "json", timeout=1200).stdout)


def different(one, other, what):
    """The samples of which the results are not the same."""
    check(one.keys() == other.keys(), f"{what}: other samples", sorted(one.keys() ^ other.keys())[:20])
    return {key for key in one if one[key] != other[key]}


def same_results(folder, root, *ways):
    first = alone(folder, root, "alone0")
    unsteady = {(key[0], key[2]) for n in range(1, ALONE) for key in different(first, alone(folder, root, f"alone{n}"), "alone")}
    print(f"  {root or 'here'}: {len(first)} samples of {len({key[0] for key in first})} operators, {dict(collections.Counter(key[2] for key in first))}")
    print("  not the same without xsptrace either:", ", ".join(sorted(f"{op} {what}" for op, what in unsteady)), flush=True)
    check(len(first) > 50000 and len(unsteady) < 30, "samples", len(first), unsteady)
    for way in ways:
        got, summary = recorded(folder, root, *way)
        calls = {row["name"]: row["calls"] for row in summary["names"] if row["name"].startswith("aten::")}
        others = different(first, got, way[0])
        print(f"  {' '.join(way)}: {sum(calls.values())} calls of {len(calls)} operators recorded, {summary['losses']['lost_entries']} lost; "
              f"{len(others)} results are not the same", flush=True)
        equal({key for key in others if (key[0], key[2]) not in unsteady}, set(), f"{root} {way}: results that are not the same")
        check(sum(calls.values()) > 10 * len(got) and len(calls) > 500, "operators recorded", calls)


@case(long="a hundred thousand samples of operators, five times", quiet="what PyTorch imports, in which the agent must find its moment")
def this_pytorch(folder):
    same_results(folder, None, LAUNCHED, SHAPES, PROBES)


def of_version(folder, name):
    root = next((root for root in torch_roots(True)[1:] if os.path.basename(root.rstrip("/")) == name), None)
    if root is None:
        raise Skip(f"PyTorch {name} is not here (tests/torch/fetch-torch)")
    same_results(folder, root, LAUNCHED, SHAPES)


@case(long="a hundred and fifty thousand samples of operators, four times", quiet="what PyTorch imports, in which the agent must find its moment")
def pytorch_2_6(folder):
    of_version(folder, "2.6")


@case(long="as many", quiet="what PyTorch imports, in which the agent must find its moment")
def newest_pytorch(folder):
    of_version(folder, "newest")


if __name__ == "__main__":
    main(declined=[])
