#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What other tools count of a program, and what xsptrace does: the calls of each function by gcov, in the
same run; their order and their nesting by uftrace, in a run of its own of the same program.

    others.py [gcov|uftrace|random_programs]

XSP_SEEDS=1-100: csmith's programs, which are not changed here.
"""
import collections
import itertools
import json
import os
import re
import shutil
import subprocess

from differential import ANY, CSMITH, HERE, Program, base, csmith_seeds, csmith_text, parents_of, spans_of
from harness import NO_MATCH, OK, Skip, Trace, case, check, equal, main, run, xsptrace

# each function of csmith's stays one, and each call of it a call
APART = ["-fno-inline", "-fno-partial-inlining", "-fno-ipa-icf"]
# gcov solves for what it does not count, and not well where setjmp comes back or a goto is computed
UNCOUNTED = {"s_interpreter", "s_catches"}
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
# hijacks return addresses: of longjmp it dies, and a tail call is one of the caller's children to it
NO_TAIL_CALLS = ["-pg", "-fno-optimize-sibling-calls"]
EVERY_CALL = ["-finstrument-functions"]
TRACED = re.compile(r"(s|func)_\d*\w*$")


def shapes():
    """Without coroutines: gcov counts them by other names, and -finstrument-functions crashes gcc 12."""
    return [Program("shapes.c", f"{HERE}/shapes.c", "s_*", [30]),
            Program("shapes.cc", f"{HERE}/shapes.cc", "s_*", [30], also=["-std=c++17"])]


def plain(seed, folder):
    """csmith's program as it is."""
    text = csmith_text(seed)
    if not text:
        return None
    source = f"{folder}/plain{seed}.c"
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    return Program(f"csmith {seed}, as it is", source, "func_*", also=["-I", CSMITH, *APART])


def ends(program, path):
    try:
        return run([path, *program.rounds], timeout=5).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def traced(program, path, folder):
    out = f"{folder}/trace.json"
    done = xsptrace("-e", f"program:{program.pattern}", "-o", out, "--", path, *program.rounds, timeout=120,
                    status=None)
    if done.returncode == NO_MATCH:  # the compiler left all functions out
        return None, True
    equal(done.returncode, OK, "status of xsptrace")
    trace = Trace(out)
    trace.check_nothing_lost()
    return trace, "cannot be probed" in done.stderr


def gcov_counts(folder):
    """Calls by function."""
    counts = collections.Counter()
    files = [f"{folder}/{f}" for f in os.listdir(folder) if f.endswith(".gcda")]
    done = run(["gcov", "--json-format", "--stdout", *files])
    for line in done.stdout.splitlines():
        for source in json.loads(line)["files"]:
            for function in source["functions"]:
                name = base(function["demangled_name"])
                if TRACED.match(name):
                    counts[name] += function["execution_count"]
    return +counts


def by_gcov(program, options, folder):
    path = f"{folder}/program"
    if not program.build(" ".join(options), "gcc", [*options, "--coverage"], path) or \
       not ends(program, path):
        return None
    for name in os.listdir(folder):  # it would add to what it counted
        if name.endswith(".gcda"):
            os.unlink(f"{folder}/{name}")
    trace, refused = traced(program, path, folder)
    if not trace:
        return None
    spans = collections.Counter(s[2] for s in spans_of(trace))
    counts = gcov_counts(folder)
    wrong = [f"{n}: {spans[n]} spans, {counts[n]} calls by gcov" for n in {*spans, *counts}
             if spans[n] != counts[n] and n not in UNCOUNTED and not (refused and not spans[n])]
    return len(counts), sum(counts.values()), wrong


def calls_by_uftrace(path, program, folder):
    """[(function, the traced function around it)], in order."""
    data, calls, around = f"{folder}/uftrace", [], []
    shutil.rmtree(data, ignore_errors=True)
    done = run(["uftrace", "record", "--no-event", "--max-stack=2000", "-d", data, path, *program.rounds])
    if "terminated by signal" in done.stderr + done.stdout:
        return None
    done = run(["uftrace", "dump", "-d", data])
    for kind, name, depth in re.findall(r"\[(entry|exit )\] (.+)\([0-9a-f]+\) depth: (\d+)$", done.stdout, re.M):
        while around and around[-1][0] >= int(depth):
            around.pop()
        if kind == "entry" and TRACED.match(base(name)):
            calls.append((base(name), around[-1][1] if around else None))
            around.append((int(depth), base(name)))
    return calls


def by_uftrace(program, options, folder):
    path = f"{folder}/program"
    if not program.build(" ".join(options), "gcc", options, path) or not ends(program, path):
        return None
    calls = calls_by_uftrace(path, program, folder)
    if not calls or len(calls) > 30000:
        return None
    trace, refused = traced(program, path, folder)
    if refused:
        return None
    spans = parents_of(spans_of(trace))
    wrong = [f"call {i}: {s[0]} in {s[1]}, {c[0]} in {c[1]} by uftrace"
             for i, (s, c) in enumerate(zip(spans, calls)) if s not in (c, (c[0], ANY))][:3]
    if len(spans) != len(calls):
        wrong.append(f"{len(spans)} spans, {len(calls)} calls by uftrace")
    return len({name for name, _ in calls}), len(calls), wrong


def compare(what, how, programs, all_options, folder):
    """Prints a line, and fails if anything differs."""
    os.environ["GMON_OUT_PREFIX"] = f"{folder}/gmon"  # -pg
    rows, faults = [], []
    for program, options in itertools.product(programs, all_options):
        into = f"{folder}/{len(rows)}-{'-'.join(options)}"
        os.makedirs(into)
        got = how(program, options, into)
        shutil.rmtree(into)
        if got:
            rows.append(got)
            faults += [f"{program.name}, {' '.join(options)}: {w}" for w in got[2]]
    print(f"  {what}: {len(rows)} programs, {sum(r[0] for r in rows)} functions, {sum(r[1] for r in rows)} calls, "
          f"{sum(len(r[2]) > 0 for r in rows)} wrong", flush=True)
    check(rows, "nothing was compared")
    check(not faults, f"{len(faults)} differences", *faults[:20])


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program} here")


@case(long="what others count, by all compilers")
def gcov(folder):
    need("gcov")
    compare("gcov", by_gcov, shapes(), [["-O2"]], folder)


@case(long="what others count, by all compilers")
def uftrace(folder):
    need("uftrace")
    compare("uftrace, -finstrument-functions", by_uftrace, shapes(), [["-O2", *EVERY_CALL]], folder)
    compare("uftrace, -pg", by_uftrace, shapes()[1:], [["-O2", *NO_TAIL_CALLS]], folder)


@case(long="hundreds of programs")
def random_programs(folder):
    need("gcov", "uftrace", "csmith")
    programs = [p for p in (plain(seed, folder) for seed in csmith_seeds()) if p and p.build("", "gcc", ["-O1"],
                f"{folder}/{p.name}") and ends(p, f"{folder}/{p.name}")]
    compare("gcov", by_gcov, [*shapes(), *programs], [[level] for level in LEVELS], folder)
    for what, options, ours in (("-pg", NO_TAIL_CALLS, shapes()[1:]), ("-finstrument-functions", EVERY_CALL, shapes())):
        compare(f"uftrace, {what}", by_uftrace, [*ours, *programs], [[level, *options] for level in LEVELS], folder)


if __name__ == "__main__":
    main()
