#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the agent records of operators (user/agent/calls.h), read by ring_reader: without xsptrace, so without the kernel's help.
The truth is what the operators counted themselves, or torch.profiler. The programs check their own results."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import LONG, SCRIPTS, WORKLOADS, case, check, equal, finish, main, run, start, torch_roots, torch_script, wait_for, workload

AGENT = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")
LATE = ["late"]
UNSEEN = {"odd", "is_leaf"}  # of a type that is not known; a getter


def name_of(symbol):
    length, rest = re.match(r"_ZN2at4_ops(\d+)(\w+)", symbol).groups()
    return rest[:int(length)]


class Read:
    """What ring_reader printed: {operator: (entries, exits, unwound)}, and the totals."""

    def __init__(self, text):
        lines = text.splitlines()
        self.calls = {name_of(line.split()[3]): tuple(int(n) for n in line.split()[:3]) for line in lines[:-1]}
        words = lines[-1].split()
        self.totals = {k: int(v) for k, v in zip(words[::2], words[1::2])}
        self.entries = sum(c[0] for c in self.calls.values())
        self.exits = sum(c[1] for c in self.calls.values())

    def sound(self, **other):
        """Nothing is wrong but what is expected."""
        expected = dict({"bad": 0, "backwards": 0, "misnested": 0, "refused": 0, "cut": 0, "open": 0, "lost": 0, "homeless": 0}, **other)
        equal({k: self.totals[k] for k in expected}, expected, "totals")


def reader(pid, *how):
    made = start([workload("ring_reader"), pid, *how], stdout=subprocess.PIPE, text=True)
    equal(made.stdout.readline(), "ready\n", "reader")
    return made


def begin(what, number, *how, before=lambda pid: None):
    program = start([workload("operators"), AGENT, what, number], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(program.stdout.readline(), "ready\n", "operators")
    before(program.pid)
    return program, reader(program.pid, *how)


def go(program):
    program.stdin.write("\n")
    program.stdin.flush()


def record(what, number, *how, seconds=120):
    """Runs operators: what they counted, what was read, and what else was printed."""
    program, read = begin(what, number, *how)
    go(program)
    out = program.communicate(timeout=seconds)[0].splitlines()
    equal(program.returncode, 0, f"{what}: status")
    counts = {line.split()[1].rpartition(":")[2]: int(line.split()[2]) for line in out if line.startswith("count ")}
    return {k: n for k, n in counts.items() if n and k not in UNSEEN}, Read(read.communicate(timeout=60)[0]), out


def all_seen(what, number, exits=True):
    """Every call has an entry, and an exit."""
    counts, read, _ = record(what, number)
    read.sound(cut=0 if exits else counts["calls_back"])
    equal({k: c[0] for k, c in read.calls.items()}, counts, f"{what}: entries")
    equal(read.entries - read.exits, read.totals["cut"], f"{what}: calls without an exit")
    return read


@case
def arguments_and_results(folder):
    all_seen("arguments", 400)
    # frames that end where the stack does
    all_seen("coroutines", 400)


@case
def calls_that_do_not_return(folder):
    read = all_seen("exceptions", 1000)
    equal(read.exits, sum(c[2] for c in read.calls.values()), "unwound")
    read = all_seen("cancel", 40)
    equal(read.calls["calls_back"], (40, 40, 40), "threads that end in a call")
    all_seen("longjumps", 1000, exits=False)


@case
def arguments_that_are_none(folder):
    """How arguments are read is nonsense: no call is disturbed or lost."""
    all_seen("misread", 60)


@case
def a_full_ring(folder):
    """Whole calls are dropped, and each is counted: however deep, and with signal handlers that call operators."""
    for what, number, how in (("recursion", 1000, []), ("recursion", 12000, LATE), ("arguments", 4000, LATE),
                              ("signals", 500, []), ("signals", 500, LATE)):
        counts, read, _ = record(what, number, *how)
        read.sound(lost=read.totals["lost"])
        equal(read.entries, read.exits, f"{what}: exits")
        equal(sum(counts.values()), read.entries + read.totals["lost"], f"{what}: recorded and lost")
        check(read.totals["lost"] > 0 or not how, f"{what}: the ring was not full", read.totals)


@case(long="100 million operators")
def a_hundred_million(folder):
    counts, read, _ = record("arguments", 10_000_000, seconds=2400)
    read.sound(lost=read.totals["lost"])
    equal((read.exits, read.entries + read.totals["lost"], sum(counts.values())), (read.entries, 10**8, 10**8), "recorded and lost")


@case
def threads_come_and_go(folder):
    """Also with operators in a thread's last destructors, and with more threads than rings."""
    for what, number in (("threads", 100), ("crowd", 300)):
        counts, read, _ = record(what, number)
        read.sound(homeless=read.totals["homeless"])
        equal(counts["small"], read.entries + read.totals["homeless"], f"{what}: recorded and homeless")
        equal(read.totals["used"], 0, f"{what}: rings of ended threads")
    check(read.totals["homeless"] >= 44 * 10, "a thread without a ring was not counted", read.totals)


@case
def forks_in_a_call(folder):
    """By fork(), _Fork() and the system call: the child writes nothing, and its calls work."""
    read = all_seen("fork", 12)
    equal(set(read.calls), {"calls_back", "small"}, "operators of the children")


@case
def libraries_come_and_go(folder):
    counts, read, out = record("libraries", 16)
    equal([line for line in out if line.startswith("late")], ["late 1000"] * 16, "results")
    check(read.calls["small"][0] >= 4 * 10, "operators of libraries that came later", read.calls)
    check(read.entries <= sum(counts.values()), "too many calls", read.calls)
    read.sound()


def active(pid):
    """Does the agent record? (struct xsp_rings)"""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f, open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(next(int(line.split("-")[0], 16) for line in f if "/memfd:xsptrace-rings" in line) + 16)
        return memory.read(4) == b"\1\0\0\0"


def slots_of(pid):
    """{address: value} of all slots of operators."""
    found = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        lines = f.read().splitlines()
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for path in sorted({line.split()[-1] for line in lines if "/operators" in line or "liboperator" in line}):
            base = min(int(line.split("-")[0], 16) for line in lines if line.endswith(path))
            for line in run(["readelf", "-rW", path]).stdout.splitlines():
                words = line.split()
                if len(words) > 4 and words[2] in ("R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT") and re.match(r"_ZN2at4_ops\d+\w+4callE", words[4]) and name_of(words[4]) not in UNSEEN:
                    memory.seek(base + int(words[0], 16))
                    found[base + int(words[0], 16)] = int.from_bytes(memory.read(8), "little")
    check(found, "no slots", lines)
    return found


def protections(pid):
    """Of the program's and its library's mappings."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return [line.split()[:3] for line in f if "operator" in line]


@case
def on_and_off(folder):
    """Slots and protections are as they were; another tool's hook stays."""
    program = start([workload("operators"), AGENT, "stepwise"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    states = []
    for said in ("before", "ready", "off", "ready"):
        equal(program.stdout.readline(), said + "\n", "operators")
        states.append((slots_of(program.pid), protections(program.pid)))
        go(program)
    (before, access), (hooked, hooked_access), (after, after_access), (again, _) = states
    check(all(before[at] != hooked[at] for at in before), "slots without a thunk", before, hooked)
    equal(after, before, "slots")
    equal(again, hooked, "slots, the second time")
    equal((hooked_access, after_access), (access, access), "protections")
    equal(finish(program), 0, "status")


@case
def what_another_tool_has_hooked(folder):
    counts, read, _ = record("hooked", 50)
    read.sound(refused=1)
    check("small" not in read.calls, "a call that another tool's hook took", read.calls)
    counts.pop("small")
    equal({k: c[0] for k, c in read.calls.items()}, counts, "the others")


ALL = """import ctypes, subprocess, sys, time
library, agent = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
wanted = ctypes.c_ushort.in_dll(agent, "xsp_agent_want_operators_semaphore")
assert agent.xsp_agent_start() == 0
wanted.value = 1
print("ready", flush=True)
sys.stdin.readline()
assert library.all(1) == 151
"""


@case
def a_library_without_slots(folder):
    """Linked with -Bsymbolic it calls its own operators directly: none is recorded, rather than some of the calls."""
    names = [f"_ZN2at4_ops{len(str(n)) + 1}f{n}4callEl" for n in range(150)]
    with open(f"{folder}/many.c", "w", encoding="ascii") as f:
        for n, name in enumerate(names):
            f.write(f'long f{n}(long) __asm__("{name}");\nlong f{n}(long a) {{ return a + 1; }}\n')
        f.write(f"long all(long a) {{ {' '.join(f'a = f{n}(a);' for n in range(150))} return a; }}\n")
    for how, functions in (("-Bsymbolic", 0), ("-z,now", 150)):
        library = f"{folder}/lib{functions}.so"
        equal(run(["cc", "-fPIC", "-shared", f"-Wl,{how}", "-o", library, f"{folder}/many.c"]).returncode, 0, "cc")
        program = start([sys.executable, "-c", ALL, library, AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(program.stdout.readline(), "ready\n", "program")
        read = reader(program.pid)
        wait_for(lambda: active(program.pid), 5, "the agent to record")
        go(program)
        equal(finish(program), 0, "status")
        made = Read(read.communicate()[0])
        made.sound(functions=functions)
        equal(made.entries, functions, "calls")


@case
def where_there_can_be_none(folder):
    """No thread-local memory is left, or no file may be so large: the agent records nothing, and harms nothing."""
    equal(run([workload("operators"), AGENT, "without"], env=dict(os.environ, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=0")).returncode, 0,
          "no room for thread-local memory")
    equal(run(["prlimit", "--fsize=1000000", workload("operators"), AGENT, "without"]).returncode, 0, "files are limited")


@case
def another_clock(folder):
    """A processor whose counter stops: the time is CLOCK_MONOTONIC."""
    with open("/proc/cpuinfo", encoding="ascii") as f, open(f"{folder}/cpuinfo", "w", encoding="ascii") as to:
        to.write(f.read().replace(" nonstop_tsc", ""))
    inner = f"mount --bind {folder}/cpuinfo /proc/cpuinfo && exec {workload('operators')} {AGENT} arguments 300"
    program = start(["unshare", "--mount", "sh", "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(program.stdout.readline(), "ready\n", "operators")
    read = reader(program.pid)
    go(program)
    equal(finish(program), 0, "status")
    made = Read(read.communicate()[0])
    made.sound(clock=2)
    equal(made.entries, 300 * 10, "calls")


@case
def all_at_once(folder):
    """On and off while threads call, throw, fork, begin, end, load and unload."""
    for _ in range(10 if LONG else 1):
        _, read, _ = record("storm", 200 if LONG else 20)
        read.sound(homeless=read.totals["homeless"], lost=read.totals["lost"], cut=read.totals["cut"], open=read.totals["open"])


@case
def killed_at_any_moment(folder):
    """All that was written is there, and nothing that was not."""
    for _ in range(5):
        program, read = begin("endless", 1)
        go(program)
        equal(program.stdout.readline(), "going\n", "operators")
        time.sleep(random.uniform(0, 0.05))
        program.send_signal(signal.SIGKILL)
        made = Read(read.communicate(timeout=60)[0])
        made.sound(open=made.totals["open"], lost=made.totals["lost"])
        check(made.totals["open"] <= 1 and made.entries - made.exits == made.totals["open"] and made.entries > 0, "torn", made.totals)


@case(long="the operators of a process that is killed, at 200 moments")
def killed_often(folder):
    for _ in range(40):
        killed_at_any_moment(folder)


# ---- PyTorch ---------------------------------------------------------------------------


def torch_command(folder, root, *arguments):
    for path in (AGENT, f"{SCRIPTS}/torch_loop.py", workload("ring_reader")):
        shutil.copy(path, folder)
    return torch_script(folder, root, f"{SCRIPTS}/torch_counted.py", "/mnt/shared" if root else folder, *arguments)


def torch_agrees(folder, root):
    done = run(torch_command(folder, root, "counts"), timeout=300)
    equal((done.returncode, done.stdout.splitlines()[-1:]), (0, ["equal"]), f"torch.profiler and the agent, {root}\n{done.stdout}\n{done.stderr}")


@case
def torch_counts(folder):
    """The agent and torch.profiler at once count the same calls, by name."""
    torch_agrees(folder, torch_roots(False)[0])


@case(long="the other PyTorches")
def torch_counts_of_all(folder):
    for root in torch_roots(True):
        torch_agrees(folder, root)


if __name__ == "__main__":
    if os.uname().machine != "x86_64":
        print("SKIP: the agent records operators on x86-64")
        sys.exit(77)
    main(traces=False)
