#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that do what few do: move their code, end their main thread, begin functions with a call or a repeated
instruction, name threads with a newline."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess

from harness import (Skip, Trace, case, check, check_calls, equal, main, only_x86, record_attached, run, start, start_ready, truth,
                     untraced, wait_for, workload, xsptrace)


def compiled(folder, text, *options):
    if not shutil.which("gcc"):
        raise Skip("no gcc")
    with open(f"{folder}/program.c", "w", encoding="ascii") as f:
        f.write(text)
    done = run(["gcc", *(options or ("-O1", "-g")), f"{folder}/program.c", "-o", f"{folder}/program", "-lpthread"])
    equal(done.returncode, 0, done.stderr)
    return f"{folder}/program"


# ---- code that moves -----------------------------------------------------------------


def moves(folder, how):
    """It copies its code, with our breakpoints in it, and maps the copy over the original."""
    only_x86()
    out, facts = f"{folder}/{how}.json", f"{folder}/{how}.truth"
    command = [workload("mover"), "--calls", 400, how]
    done = xsptrace("-e", "moved_*", "-o", out, "--", command[0], "--out", facts, *command[1:])
    with open(facts, encoding="utf-8") as f:
        equal(f.read(), untraced(command), "output")
    equal(truth(facts)["moved"], True, "it has moved its code")
    calls = truth(facts)["calls"]
    trace = Trace(out)
    check_calls(trace, {"calls": {name: n // 2 for name, n in calls.items()}}, "calls before the move")
    check("anonymous memory" in done.stderr, done.stderr)
    equal(trace.losses["functions_left_out"], 3, "functions left out")


@case
def moves_its_code(folder):
    moves(folder, "fixed")


@case
def moves_its_code_by_mremap(folder):
    moves(folder, "remap")


@case
def moves_its_code_after_unmapping_it(folder):
    moves(folder, "unmap")


@case
def moves_its_code_page_by_page(folder):
    moves(folder, "pieces")


@case(long="a program that hardly gets a CPU, ten times")
def moves_its_code_without_a_cpu(folder):
    """It is stopped before it runs its copy, but takes the signal late: nobody continues it before the copy is mended."""
    only_x86()
    others = [start(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    try:
        for _ in range(10):
            facts = f"{folder}/idle.truth"
            xsptrace("-e", "moved_*", "-o", f"{folder}/idle.json", "--", "nice", "-n", 19, "chrt", "--idle", 0,
                     workload("mover"), "--calls", 400, "--out", facts, "pieces", timeout=120)
            equal(truth(facts)["moved"], True, "it has moved its code")
    finally:
        for other in others:
            other.kill()


def moves_as_a_child(folder):
    for options, command in ((["--follow=stop"], "{} && :"), ([], "exec {}")):
        facts = f"{folder}/child.truth"
        inner = command.format(f"{workload('mover')} --calls 400 --out {facts} fixed")
        xsptrace(*options, "-e", "moved_*", "-o", f"{folder}/child.json", "--", "sh", "-c", inner)
        equal(truth(facts)["moved"], True, "it has moved its code")


@case
def moves_its_code_as_a_child(folder):
    """It is not the program that was launched, but what that has become or started."""
    only_x86()
    moves_as_a_child(folder)


@case(long="the probes of its libraries come in at that moment in some of fifty runs")
def moves_its_code_while_probes_come_in(folder):
    """The lock of its mappings is ours then."""
    only_x86()
    for _ in range(50):
        moves_as_a_child(folder)


@case
def moved_code_is_not_attached_to(folder):
    """Its text is anonymous memory: named, and not probed. Where it did not move, all is recorded."""
    only_x86()
    for how, seen in (("fixed", 0), ("stay", 1)):
        trace, facts = record_attached(folder, [workload("mover"), "--calls", 200, how], "-e", "mover:moved_*")
        check_calls(trace, {"calls": {name: n * seen for name, n in facts["calls"].items()}}, f"calls of {how}")
        with open(f"{folder}/xsptrace.log", encoding="utf-8") as f:
            said = f.read()
        equal("anonymous memory" in said, not seen, said)
        check("none was made" not in said, said)


@case
def samples_of_moved_code_have_names(folder):
    only_x86()
    child = start_ready([workload("mover"), "--wait", "--calls", 100000000, "fixed"], stdout=subprocess.DEVNULL)
    child.send_signal(signal.SIGUSR1)
    xsptrace("--sample", "-p", child.pid, "-d", "1", "-o", f"{folder}/s.folded")
    child.kill()
    with open(f"{folder}/s.folded", encoding="utf-8") as f:
        lines = f.read().splitlines()
    counts = {True: 0, False: 0}
    for line in lines:
        stack, _, count = line.rpartition(" ")
        counts["main;" in stack and "moved_spin" in stack] += int(count)
    check(counts[True] > 5 * counts[False], "samples in moved_spin, called by main, and others", counts, *lines[:20])


@case
def dies_of_a_copy_elsewhere(folder):
    """It runs a copy at another address, which nobody can know: the line says what to do."""
    only_x86()
    program = compiled(folder, """
#include <string.h>
#include <sys/mman.h>
__attribute__((noipa, aligned(64))) long copied(long n) { long s = n; while (n > 0) s ^= s * 7 + n--; return s; }
__attribute__((noipa, aligned(64))) long after(long n) { return n; }
int main(void)
{
	void *to = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(to, copied, 64);
	return ((long (*)(long))to)(20) == copied(20) && after(1) ? 0 : 1;
}
""", "-O1")
    equal(run([program]).returncode, 0, "status untraced")
    done = xsptrace("-e", "copied", "-o", f"{folder}/c.json", "--", program, status=128 + signal.SIGTRAP)
    check("SIGTRAP" in done.stderr and "--profile" in done.stderr, done.stderr)


# ---- first instructions ----------------------------------------------------------------


@case
def first_instruction_is_a_call(folder):
    """gcc's code of `return worker(n) + 1`. The kernel emulates a call at a uprobe."""
    only_x86()
    text = """
__attribute__((noipa)) long worker(long n) { return n * 3; }
__attribute__((noipa)) long wrapper(long n) { return worker(n) + 1; }
int main(void) { long s = 0; for (int i = 0; i < 300; i++) s += wrapper(i); return s == 0; }
"""
    program = compiled(folder, text, "-O1", "-fcf-protection=none", "-fomit-frame-pointer", "-mno-red-zone", "-mpreferred-stack-boundary=3")
    code = run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=wrapper", program]).stdout
    check(re.search(r"<wrapper>:\n[^\n]*call", code), "it does not begin with a call", code)
    xsptrace("-e", "w*er", "-o", f"{folder}/w.json", "--", program)
    equal(dict(Trace(f"{folder}/w.json").calls), {"worker": 300, "wrapper": 300}, "calls")


@case
def repeated_instruction_at_the_entry(folder):
    """rep stosb is hit once a repetition: 10 calls were 10,000."""
    only_x86()
    program = compiled(folder, r"""
static char buffer[4096];
__attribute__((naked, noipa)) void fill(void) { __asm__("rep stosb\n ret"); }
__attribute__((naked, noipa)) void fill_and_more(void) { __asm__("rep stosb\n push %rbx\n pop %rbx\n ret"); }
int main(void)
{
	for (int i = 0; i < 10; i++) {
		long d = (long)buffer, c = 1000;
		__asm__ volatile("call fill" : "+D"(d), "+c"(c) : : "rax", "memory", "cc");
		d = (long)buffer, c = 1000;
		__asm__ volatile("call fill_and_more" : "+D"(d), "+c"(c) : : "rax", "memory", "cc");
	}
	return 0;
}
""", "-O1")
    done = xsptrace("-e", "fill*", "-o", f"{folder}/f.json", "--", program)
    equal(dict(Trace(f"{folder}/f.json").calls), {"fill": 10, "fill_and_more": 10}, "calls")
    check("without a duration" in done.stderr, done.stderr)


# ---- threads ---------------------------------------------------------------------------

THREADS = """
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noipa)) long work_here(long n) { long s = n; while (n > 0) s ^= s * 7 + n--; return s; }
static volatile long sink, calls;
static void *run(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;) { sink += work_here(1000); calls++; usleep(1000); }
}
int main(int argc, char **argv)
{
	pthread_t t;
	pthread_create(&t, 0, run, "new\\nline");
	if (argc > 1) pthread_exit(0);
	pthread_join(t, 0);
	return 0;
}
"""


@case
def newline_in_a_thread_name(folder):
    child = start([compiled(folder, THREADS)], stdout=subprocess.DEVNULL)
    comm = lambda: [t for t in os.listdir(f"/proc/{child.pid}/task")
                    if open(f"/proc/{child.pid}/task/{t}/comm", encoding="ascii").read() == "new\nline\n"]
    wait_for(comm, 5, "the thread's name")
    xsptrace("-p", child.pid, "-d", "0.3", "-e", "work_here", "-o", f"{folder}/t.db")
    names = {row[0] for row in sqlite3.connect(f"{folder}/t.db").execute("select name from threads")}
    check("new\nline" in names, names)


@case
def main_thread_has_ended(folder):
    """The kernel binds uprobe_multi to the main thread; a perf event can be bound to another one."""
    child = start([compiled(folder, THREADS), "leaves"], stdout=subprocess.DEVNULL)
    wait_for(lambda: open(f"/proc/{child.pid}/stat", encoding="ascii").read().rpartition(")")[2].split()[0] == "Z", 5,
             "the end of the main thread")
    done = xsptrace("-p", child.pid, "-d", "1", "-e", "work_here", "-o", f"{folder}/t.json", "--summary", "json")
    calls = {n["name"]: n["calls"] for n in json.loads(done.stdout)["names"]}
    check(calls.get("work_here", 0) > 100, "calls of its other thread", calls, done.stderr)
    check(f"main thread of process {child.pid} has ended" in done.stderr, done.stderr)
    check(child.poll() is None, "it lives")


@case
def frame_larger_than_what_is_read_of_a_stack(folder):
    """dump reads 120 KiB of a stack: that is why it ends, not for lack of call frame information."""
    program = compiled(folder, """
#include <unistd.h>
__attribute__((noipa)) void waits(volatile char *p) { p[0] = 1; pause(); p[1] = 2; }
__attribute__((noipa)) void deep(void) { volatile char big[300000]; waits(big); }
int main(void) { deep(); return 0; }
""", "-O1", "-fomit-frame-pointer")
    child = start([program], stdout=subprocess.DEVNULL)
    wait_for(lambda: "pause" in open(f"/proc/{child.pid}/wchan", encoding="ascii").read() or
             open(f"/proc/{child.pid}/syscall", encoding="ascii").read().startswith("34 "), 5, "pause()")
    done = xsptrace("dump", "-p", child.pid)
    check("120 KiB" in done.stdout and "no call frame information" not in done.stdout, done.stdout)


main()
