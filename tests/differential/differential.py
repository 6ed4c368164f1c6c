#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same program, counted by itself and by xsptrace: the spans of a thread must be its calls, one by
one, in their order, each inside the call that made it.

A program notes name and return address of each call (called.h), which stays the same whatever a
compiler makes of it. The return address tells the function whose frame was there: one that left by a
tail call is not, and its span must have ended. Programs are shapes.c, shapes.cc, shapes.rs, and what csmith
makes of a seed (half of its functions inlined); each is built by every compiler of its language with all
kinds of options. others.py compares with what other tools count.

    differential.py [slice|everything|random_programs]

XSP_SEEDS=1-100 XSP_SHARE=0.15: csmith's programs, and how many of the options are tried with each.
"""
import bisect
import collections
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
from harness import XSPTRACE, Skip, Trace, case, check, main, run, xsptrace  # noqa: E402

CSMITH = "/usr/include/csmith"
JUDGE = os.path.join(os.path.dirname(XSPTRACE), "placement_property")  # judges the ways that are not taken, too
MOST_CALLS = 30000  # of a program; others make no trace that is worth the time

# what is built, and by whom: `gcc` and `clang` stand for the compiler of the language
LANGUAGES = {".c": {"gcc": "gcc", "clang": "clang", "musl-gcc": "musl-gcc"},
             ".cc": {"gcc": "g++", "clang": "clang++"}, ".rs": {"rustc": "rustc"}}
COMMON = {
    "O0": "-O0", "O1": "-O1", "O2": "-O2", "O3": "-O3 -march=native", "Os": "-Os",
    "O2 no-pie": "-O2 -no-pie -fno-pie", "O2 static": "-O2 -static", "O2 static-pie": "-O2 -static-pie -fpie",
    "O2 CET": "-O2 -fcf-protection=full", "O2 no-plt": "-O2 -fno-plt", "O2 frames": "-O2 -fno-omit-frame-pointer",
    "O1 frames": "-O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls",
    "O2 protector": "-O2 -fstack-protector-all", "O2 clash": "-O2 -fstack-clash-protection",
    "O2 nops": "-O2 -fpatchable-function-entry=8,3", "O2 nop5": "-O2 -fpatchable-function-entry=5",
    "O2 retpoline": "RETPOLINE -O2", "O2 sanitized": "-O1 -fsanitize=undefined",
    "O3 LTO": "-O3 LTO", "O2 no-eh-frame": "-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables",
    "O2 no-red-zone": "-O2 -mno-red-zone", "O2 no-tables": "-O2 -fno-jump-tables", "O2 debug": "-O2 -g",
    "Og": "-Og",
}
ONLY = {
    "gcc": {"O2 split": "-O2 -freorder-blocks-and-partition -fno-shrink-wrap-separate",
            "O2 no-shrink-wrap": "-O2 -fno-shrink-wrap", "O2 thunk-return": "-O2 -mfunction-return=thunk",
            "O2 split-stack": "-O2 -fsplit-stack -fuse-ld=gold", "O2 mfentry": "-O2 -pg -mfentry", "O2 pg": "-O2 -pg",
            "O2 loops": "-O2 -funroll-all-loops -fprofile-use", "O2 accumulate": "-O2 -maccumulate-outgoing-args",
            "O3 align": "-O3 -falign-functions=1 -falign-jumps=1", "O2 ipa": "-O2 -fipa-pta -fno-semantic-interposition"},
    "clang": {"Oz": "-Oz", "O2 outline": "-O2 -mllvm -enable-machine-outliner=always",
              "O2 sections": "-O2 -ffunction-sections -Wl,--gc-sections -fuse-ld=lld",
              "O2 basic-blocks": "-O2 -fbasic-block-sections=all -fuse-ld=lld",
              "O2 split-stack": "-O2 -fsplit-stack -fuse-ld=gold", "O2 safe-stack": "-O2 -fsanitize=safe-stack"},
    "musl-gcc": {f"{level} {how}": f"-{level} {options}" for level in ("O0", "O2", "O3", "Os")
                 for how, options in (("static", "-static"), ("dynamic", ""), ("no-pie", "-no-pie -fno-pie"))},
    # `frames`: return addresses are noted, too
    "rustc": {"O0": "", "O0 frames": "FRAMES", "O1": "-Copt-level=1", "O2 frames": "-Copt-level=2 FRAMES",
              "O3": "-Copt-level=3", "O3 v0": "-Copt-level=3 -Csymbol-mangling-version=v0",
              "O3 LTO": "-Copt-level=3 -Clto=fat", "Os frames": "-Copt-level=s FRAMES", "Oz": "-Copt-level=z",
              "O3 static": "-Copt-level=3 -Ctarget-feature=+crt-static",
              "O3 no-pie frames": "-Copt-level=3 -Crelocation-model=static FRAMES",
              "O2 one unit": "-Copt-level=2 -Ccodegen-units=1", "O3 native": "-Copt-level=3 -Ctarget-cpu=native"},
}
SLICE = ["gcc O2 CET", "gcc O2 static", "gcc O2 retpoline", "clang O3 LTO", "clang O1 frames",
         "musl-gcc Os static", "rustc O2 frames"]
LONG = {"RETPOLINE": {"gcc": "-mindirect-branch=thunk", "clang": "-mretpoline"},
        "LTO": {"gcc": "-flto", "clang": "-flto -fuse-ld=lld"}, "FRAMES": {"rustc": "-Cforce-frame-pointers=yes --cfg=frames"}}


def variants():
    for compiler, only in ONLY.items():
        for name, options in {**(COMMON if compiler in ("gcc", "clang") else {}), **only}.items():
            for word, meaning in LONG.items():
                options = options.replace(word, meaning.get(compiler, word))
            yield f"{compiler} {name}", compiler, options.split()


# ---- programs ------------------------------------------------------------------------


class Program:
    def __init__(self, name, source, pattern, rounds=(), also=()):
        self.name, self.source, self.pattern, self.rounds = name, source, pattern, [str(r) for r in rounds]
        self.language = os.path.splitext(source)[1]
        self.also = [*also] if self.language == ".rs" else ["-I", HERE, "-w", "-lm", *also]
        self.too_long = False  # seen when it ran: not to be tried with other options

    def throws(self):
        return self.language != ".c"

    def build(self, variant, compiler, options, path):
        """False: this compiler cannot, which is no mismatch."""
        compiler = LANGUAGES[self.language].get(compiler)
        if self.too_long or not compiler or not shutil.which(compiler):
            return False
        done = run([compiler, *options, "-o", path, self.source, *self.also], timeout=180)
        if done.returncode:
            print(f"    {self.name}, {variant}: not built: {done.stderr.strip().splitlines()[-1:]}")
        return done.returncode == 0


def shapes():
    return [Program("shapes.c", f"{HERE}/shapes.c", "s_*", [30]),
            Program("shapes.cc", f"{HERE}/shapes.cc", "s_*", [30], also=["-std=c++20"]),
            Program("shapes.rs", f"{HERE}/shapes.rs", "*::s_*", [30],
                    also=["--edition=2021", "--crate-name=shapes", "-Aunexpected_cfgs"])]


def csmith_seeds():
    first, last = (int(x) for x in os.environ.get("XSP_SEEDS", "1-4").split("-"))
    return range(first, last + 1)


def csmith_text(seed):
    done = run(["csmith", "--seed", str(seed), "--max-funcs", str(6 + seed % 15), "--no-volatiles"], timeout=60)
    return "" if done.returncode else done.stdout


def csmith(seed, folder):
    """The program of a seed, its functions half noted and kept apart, half inlined; None: there is none."""
    choice = random.Random(seed)
    text = csmith_text(seed)
    names = sorted(set(re.findall(r"^static .*?\b(func_\d+)\(", text, re.M)))
    if not names:
        return None
    apart = {n for n in names if n == "func_1" or choice.random() < 0.6}

    def declare(match):
        apart_or_not = "APART" if match[2] in apart else "__attribute__((always_inline)) inline"
        return f"{apart_or_not} {match[0]}"

    text = re.sub(r"^(static .*?\b(func_\d+)\(.*\))(?=;?$)", declare, text, flags=re.M)
    for name in apart:
        text = re.sub(rf"^(APART static .*\b{name}\(.*\)\n\{{)", r"\1 CALLED;", text, count=1, flags=re.M)
    text = text.replace('#include "csmith.h"', '#include "called.h"\n#include "csmith.h"\nCALLED_MAIN', 1)
    source = f"{folder}/seed{seed}.c"
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    return Program(f"csmith {seed}", source, "func_*", also=["-I", CSMITH])


# ---- the two accounts ----------------------------------------------------------------


RUST = re.compile(r"(?:shapes|<shapes::\w+ as shapes::\w+>)::(s_\w+)(?:::<[^{]*>)?(::\{+closure(?:#0)?\}+)?")


def base(name):
    """s_leaf of s_leaf.constprop.0, s_leaf(unsigned) and shapes::s_leaf; s_leaf{}: a closure in there."""
    rust = RUST.fullmatch(name)
    if rust:
        return rust[1] + ("{}" if rust[2] else "")
    return re.split(r"[.(\[ ]", name)[0]


class Account:
    """What the program noted: (name, the traced function that its return address lies in, or None)."""

    def __init__(self, path, program, folder):
        done = run(["nm", "-C", "--defined-only", path])
        found = re.findall(r"^([0-9a-f]+) [tTwWi] (.+)$", done.stdout, re.M)
        anchor = "called_anchor" if program.language == ".rs" else "main"
        self.main = next(int(a, 16) for a, n in found if n == anchor)
        self.symbols = sorted({(int(a, 16), base(n)) for a, n in found})
        self.traced = {n for _, n in self.symbols if re.match(r"(s|func)_", n)}
        self.output = ""
        self.calls = self.unwound = None
        self.path, self.program, self.out = path, program, f"{folder}/called"

    def command(self):
        return [self.path, *self.program.rounds]

    def read(self):
        addresses = self.symbols
        calls, unwound = [], collections.Counter()
        with open(self.out, encoding="utf-8") as f:
            for line in f:
                name, back = line.split()
                if name[0] == "-":
                    unwound[name[1:]] += 1
                if name not in self.traced:
                    continue
                i = bisect.bisect_left(addresses, (self.main + int(back), "")) - 1
                caller = addresses[i][1] if int(back) else None
                calls.append((name, caller if caller in self.traced else None))
        return calls, unwound

    def untraced(self):
        """False: it ends badly, or calls too often."""
        try:
            done = run(self.command(), timeout=20, env={**os.environ, "CALLED_OUT": self.out})
        except subprocess.TimeoutExpired:
            self.program.too_long = True
            return False
        if done.returncode:
            return False
        self.output = done.stdout
        self.calls, self.unwound = self.read()
        if self.program.language == ".rs":  # closures that note nothing match the pattern, too
            self.traced = {name for name, _ in self.calls}
            self.calls, _ = self.read()
        return 0 < len(self.calls) <= MOST_CALLS


def ends_unseen(args):
    return bool(args.get("exit lost") or args.get("finished") is False)


ANY = "anything"
COROUTINES = {"s_coroutine", "s_awaits", "s_awaited"}


def spans_of(trace):
    """(begin, length, name, args) in order. A coroutine that calls its own resumption to begin is one."""
    spans, around = [], []
    for e in sorted(trace.spans, key=lambda e: (e["ts"], -e["dur"])):
        span = (round(e["ts"] * 1000), round(e["dur"] * 1000), base(e["name"]), e["args"])
        while around and around[-1][0] <= span[0]:
            around.pop()
        begins = span[2] in COROUTINES and bool(around) and around[-1][1] == span[2]
        around.append((span[0] + span[1], span[2]))
        if not begins:
            spans.append(span)
    return spans


def parents_of(spans):
    """(name, the name of the span around it, or None), in order. While an exception unwinds, destructors that
    lie deeper on the stack than the span that threw are taken to be in it: ANY."""
    found, around = [], []
    for begin, length, name, args in spans:
        while around and around[-1][0] <= begin:
            around.pop()
        parent = around[-1] if around else (0, None, {})
        found.append((name, ANY if parent[2].get("unwound") else parent[1]))
        around.append((begin + length, name, args))
    return found


def compare(account, trace, calls, expected):
    """What differs, as lines of text: at most a few."""
    wrong = []
    spans = [s for s in spans_of(trace) if s[2] in account.traced or account.program.language != ".rs"]
    if calls != account.calls:
        wrong.append("traced, the program called otherwise")
    if trace.lost():
        wrong.append(f"lost: {trace.lost()}")
    if trace.timeline["orphan_exits"]:
        wrong.append(f"{trace.timeline['orphan_exits']} exits without an entry")
    names, counted = collections.Counter(s[2] for s in spans), collections.Counter(n for n, _ in calls)
    wrong += [f"{n}: {names[n]} spans, {counted[n]} calls" for n in sorted({*names, *counted}) if names[n] != counted[n]]
    if wrong:
        return wrong
    # closed when the stack showed that they were gone: a destructor's call may tell that before the
    # exception has landed, a longjmp always comes first
    unseen = collections.Counter(s[2] for s in spans if ends_unseen(s[3]))
    unwound = collections.Counter(s[2] for s in spans if s[3].get("unwound"))
    landed = unwound + unseen if account.program.throws() else unwound
    if landed != expected and not trace.losses["functions_with_unseen_exits"]:
        wrong.append(f"ends: {dict(unwound)} unwound and {dict(unseen)} not seen by the trace, "
                     f"{dict(expected)} unwound by the program")
    open_spans = []
    for i, ((begin, length, name, args), (called, caller)) in enumerate(zip(spans, calls)):
        while open_spans and open_spans[-1][0] <= begin:
            open_spans.pop()
        inside = open_spans[-1][1] if open_spans else None
        if name != called:
            wrong.append(f"call {i}: {name} by the trace, {called} by the program")
        elif caller and inside != caller:
            wrong.append(f"call {i}: {name} inside {inside} by the trace, called by {caller}")
        elif open_spans and begin + length > open_spans[-1][0] + 2 and not ends_unseen(args):
            wrong.append(f"call {i}: {name} ends after {inside}, which it lies in")
        if len(wrong) > 4:
            break
        open_spans.append((begin + length, name))
    return wrong


def one(program, variant, compiler, options, folder):
    """Functions and calls compared, and what differs; None: not to be had."""
    path = f"{folder}/program"
    if not program.build(variant, compiler, options, path):
        return None
    account = Account(path, program, folder)
    if not account.untraced():
        return None
    out = f"{folder}/trace.json"
    done = xsptrace("-e", f"program:{program.pattern}", "-o", out, "--", *account.command(), timeout=120,
                    env={**os.environ, "CALLED_OUT": account.out})
    trace = Trace(out)
    if "cannot be probed" in done.stderr:  # said; what is left is compared
        account.traced &= {s[2] for s in spans_of(trace)}
        account.calls = account.read()[0]
        if not account.calls:
            print(f"    {program.name}, {variant}: nothing can be probed")
            return None
    wrong = compare(account, trace, *account.read())
    if account.output not in done.stdout:
        wrong.append("another result when traced")
    if os.path.exists(JUDGE):
        done = run([JUDGE, "-s", program.pattern.strip("*:"), path], timeout=120)
        wrong += re.findall(r"^  \S.*", done.stdout, re.M)
    return len(set(n for n, _ in account.calls)), len(account.calls), wrong


def differential(programs, wanted, folder):
    os.environ["GMON_OUT_PREFIX"] = f"{folder}/gmon"  # -pg
    for compiler in ONLY:
        if not shutil.which(compiler):
            print(f"SKIP: no {compiler} here: what it builds is not compared")
    table, faults = collections.defaultdict(lambda: [0, 0, 0, 0]), []
    for program in programs:
        for variant, compiler, options in variants():
            if wanted(variant, program):
                got = one(program, variant, compiler, options, folder)
                if got:
                    row = table[variant]
                    row[0] += 1
                    row[1] += got[0]
                    row[2] += got[1]
                    row[3] += len(got[2]) > 0
                    for line in got[2]:
                        faults.append(f"{program.name}, {variant}: {line}")
                        print(f"    {faults[-1]}", flush=True)
    print(f"  {'':24} programs functions   calls  wrong")
    for variant, row in sorted(table.items()):
        print(f"  {variant:24} {row[0]:8} {row[1]:9} {row[2]:7} {row[3]:6}")
    print(f"  {'all':24} {sum(r[0] for r in table.values()):8} {sum(r[1] for r in table.values()):9} "
          f"{sum(r[2] for r in table.values()):7} {sum(r[3] for r in table.values()):6}")
    check(table, "nothing was compared")
    check(not faults, f"{len(faults)} differences", *faults[:20])


@case(long="programs of all kinds by all compilers")
def slice(folder):  # pylint: disable=redefined-builtin
    """What CI has the time for."""
    differential(shapes(), lambda variant, _: variant in SLICE, folder)


@case(long="every compiler and option")
def everything(folder):
    differential(shapes(), lambda *_: True, folder)


@case(long="hundreds of programs")
def random_programs(folder):
    """XSP_SEEDS=FIRST-LAST; of each seed the share XSP_SHARE of the variants, others each time."""
    if not shutil.which("csmith") or not os.path.isdir(CSMITH):
        raise Skip("no csmith here")
    share = float(os.environ.get("XSP_SHARE", "0.15"))
    programs = (p for p in (csmith(seed, folder) for seed in csmith_seeds()) if p)
    differential(programs, lambda variant, program: random.Random(program.name + variant).random() < share, folder)


if __name__ == "__main__":
    main()
