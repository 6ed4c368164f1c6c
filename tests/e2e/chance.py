# SPDX-License-Identifier: BSD-2-Clause
"""Captures for more than one file of cases: calls and ranges of several threads, exceptions, waits, by chance from a seed; and
allocations."""
import collections
import random
import struct

from captures import ANNOTATION, GAVE, PYTHON, TAIL, TAKES, Made

START = 10_000_000_000


class Thread:
    """Calls and ranges at random, on one stack or on several of which one runs at a time; waits in between."""

    def __init__(self, dice, made, thread, functions, ranges, stacks):
        self.dice, self.made, self.id, self.functions, self.ranges = dice, made, thread, functions, ranges
        self.bases = [(thread[1] << 32) + (i << 24) for i in range(1, stacks + 1)]
        self.stacks, self.current, self.now = [[] for _ in self.bases], 0, START + dice.randrange(50) * 1000
        self.told, self.waited, self.blocked, self.short = 0, 0, collections.Counter(), 0

    def sp(self):
        open_here = self.stacks[self.current]
        return open_here[-1][1] if open_here else self.bases[self.current]

    def step(self, waits):
        dice, here = self.dice, self.stacks[self.current]
        self.now += dice.choice((0, 1, 1, 7, 100, 1000, 5000, 20000))
        chance, sp = dice.random(), self.sp() - dice.choice((16, 32, 256))
        lines = [(PYTHON, 2, struct.pack("<Q", dice.choice((7000, 7001))))] if dice.random() < 0.4 else []
        if chance < 0.36 and len(here) < 12:
            here.append((dice.choice(self.functions), sp))
            self.made.entry(self.now, self.id, *here[-1], lines)
        elif chance < 0.46 and len(here) < 12:
            here.append((self.ranges, sp))
            self.made.begin(self.now, self.id, *here[-1], dice.randrange(1000, 1008), lines)
        elif chance < 0.82:
            self.leave()
        elif chance < 0.86:
            self.made.point(self.now, self.id, dice.choice(self.functions), sp)
        elif chance < 0.90:
            self.current = dice.randrange(len(self.bases))
        elif chance < 0.93:
            self.throw()
        elif waits:
            self.wait()

    def leave(self):
        if not self.stacks[self.current]:
            return
        probe, sp = self.stacks[self.current].pop()
        if probe == self.ranges:
            self.made.end(self.now, self.id, probe, sp)
        else:
            self.made.exit(self.now, self.id, probe, sp, TAIL if self.dice.random() < 0.1 else 0)

    def throw(self):
        """An exception, or calls without a seen return: the next event shows that they are gone."""
        here = self.stacks[self.current]
        landing = [i for i, (probe, _) in enumerate(here[:-1]) if probe != self.ranges]
        if not landing:
            return
        at = self.dice.choice(landing)
        for probe, sp in reversed(here[at + 1:]):
            if probe == self.ranges:
                self.made.end(self.now, self.id, probe, sp)
        if self.dice.random() < 0.5 and len(self.bases) == 1:
            self.made.unwind(self.now, self.id, here[at][1])
        del here[at + 1:]

    def wait(self):
        left, why = self.now, self.dice.choice((0, 2, 3, 4))
        woken = left if why == 0 else left + self.dice.choice((10_000, 200_000))
        self.now = woken + self.dice.choice((10_000, 13_000))
        short = min(self.dice.choice((0, 500)), max(0, left - self.waited))
        self.made.wait(left, woken if why else 0, self.now, self.id, why, short, 500 if why and self.id[1] == 501 else 0)
        self.blocked[why] += woken - left
        self.blocked[0] += self.now - woken
        self.short += short
        self.waited = self.now


def make(path, seed):
    """Its length, ns."""
    dice, made = random.Random(seed), Made(seed << 17 | 1 << 62)
    waits, stacks = seed % 3 > 0, 3 if seed % 4 == 0 else 1
    made.info("host", "here")
    if waits:
        made.info("waits", "10000")
    made.clock(START)
    library = made.module("/usr/lib/libmade.so")
    functions = [made.probe(n, f"symbol{i}", module=library) for i, n in enumerate(
        ("work", "inner", "aten::mm", "a;b", 'x"y', "=cmd()", "né", "line\nbreak", "frame 12", "same", "same"))]
    ranges = made.probe("record_function", provider="record_function", kind=ANNOTATION)
    for i, text in enumerate(("step", "turn 1", "turn 2", "ProfilerStep#7", "ProfilerStep#8", "same", "work", "")):
        made.name(1000 + i, text)
    for i in range(3):
        made.name(5000 + i, f"/src/train.py\n{10 + i}\nfunction{i}")
    made.python(7000, (5000, 5001))
    made.python(7001, (5002, 5000))
    threads = []
    for i, pid in enumerate((500, 600, 500)):
        made.process(pid)
        made.thread(pid, pid + i // 2, "worker")
        threads.append(Thread(dice, made, (pid, pid + i // 2), functions, ranges, stacks))
    for _ in range(dice.choice((3, 120, 600))):
        dice.choice(threads).step(waits)
    end = max(t.now for t in threads) + dice.choice((0, 5000))
    for t in threads:
        while dice.random() < 0.7 and t.stacks[t.current]:
            t.leave()
        runnable = t.blocked.pop(0, 0)
        t.blocked[2] += t.short
        if waits:
            made.sums(end, t.id, START, end - START - runnable - sum(t.blocked.values()), runnable, t.blocked)
    made.clock(end + 1)
    made.finish(path, START, end)
    return end - START


def allocating(folder, until, end):
    """A thread that keeps 1000 bytes each millisecond up to `until`; and one that takes and gives back in a span."""
    made, one, two = Made(), (500, 500), (500, 501)
    made.clock(START)
    made.process(500)
    made.thread(500, 501, "other")
    gave, takes = (made.probe(s, s, "memory") for s in (GAVE, TAKES))
    outer, inner = made.probe("outer"), made.probe("inner")
    made.entry(START, one, outer, 9000)
    made.entry(START + 1, one, inner, 8000)
    for i in range(until // 1_000_000):
        made.allocation(START + 10 + i * 1_000_000, one, gave, 0x10000 + i * 0x1000, 1000)
        made.allocation(START + 20 + i * 1_000_000, two, gave, 0x9000, 50)
        made.allocation(START + 30 + i * 1_000_000, two, takes, 0x9000)
    made.exit(START + end - 20, one, inner, 8000)
    made.exit(START + end - 10, one, outer, 9000)
    made.finish(f"{folder}/memory.xspt", START, START + end)
    return f"{folder}/memory.xspt", until // 1_000_000
