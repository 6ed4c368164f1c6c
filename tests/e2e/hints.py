#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The line for a pattern without a match: why, and what the user may have meant. XSP_LONG: every compiler."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import (LONG, NO_MATCH, Skip, case, check, equal, main, run, start, workload, xsptrace)



def refused(words, *arguments):
    done = xsptrace(*arguments, status=NO_MATCH, timeout=60)
    lines = [l for l in done.stderr.splitlines() if l.strip()]
    equal(len(lines), 1, f"lines on standard error: {done.stderr!r}")
    for word in words:
        check(word in lines[0], f"the line does not say {word!r}", lines[0])
    print(f"  {lines[0]}")
    return done


def why(pid, pattern):
    done = xsptrace("-p", pid, "-d", "0.2", "-e", pattern, "-o", "/dev/null")
    check("0 spans" in done.stdout, "there are spans", done.stdout)
    lines = [l for l in done.stderr.splitlines() if l.startswith("xsptrace: no call")]
    equal(len(lines), 1, f"lines that say why: {done.stderr}")
    print(f"  {lines[0]}")
    return lines[0]


PRICING = """
#include <time.h>
__attribute__((unused)) %s int hot_helper(int x) { return x * 7 + (x >> 2); }
__attribute__((noinline)) int price_book(int x) { return hot_helper(x) + 1; }
static inline int middle(int x) { return hot_helper(x + 3) ^ 5; }
__attribute__((noinline)) int settle(int x) { return x & 1 ? middle(x) : hot_helper(x + 9) - 2; }
__attribute__((noinline)) int uncalled(int x) { return x ^ 9; }
int main(int argc, char **argv)
{
	int sum = argc;
	do {
		struct timespec t = {0, 1000000};
		sum = price_book(sum) + settle(sum);
		nanosleep(&t, 0);
	} while (argc == 1 && argv[0]);
	return sum == 1 ? uncalled(sum) : 0;
}
"""
SHOP = """
namespace shop {
struct Point { int x, y; Point(int a, int b) : x(a * 3), y(b) {} int area() const { return x * y; } };
namespace { inline int hidden(int v) { return v * 11 ^ 3; } }
__attribute__((noinline)) int draw(int v) { Point p(v, v + 1); return p.area() + hidden(v); }
__attribute__((noinline)) int draw(double v) { return draw((int)v) + 1; }
}
int main(int argc, char **) { return shop::draw(argc) + shop::draw(1.5 * argc) == 1; }
"""


def compiled(folder, text, *command):
    """A program of it, or None where there is no such compiler or linker."""
    source = f"{folder}/pricing.{'cc' if '++' in command[0] else 'c'}"
    with open(source, "w", encoding="ascii") as f:
        f.write(text)
    if not shutil.which(command[0]) or ("-fuse-ld=lld" in command and not shutil.which("ld.lld")):
        return None
    done = run([*command, "-O2", source, "-o", f"{folder}/pricing"])
    equal(done.returncode, 0, done.stderr)
    return f"{folder}/pricing"


def inlined_places(program, name):
    """How many there are, as readelf shows the debug information."""
    words = "Abbrev Number: [1-9]|DW_AT_(name|specification|abstract_origin)[ :]"
    done = run(["sh", "-c", f"readelf --debug-dump=info '{program}' | grep -E '{words}'"], timeout=200)
    entries, at = {}, {}  # readelf shows some files twice: by offset
    for line in done.stdout.splitlines():
        last = line.split()[-1]
        if "Abbrev Number" in line:
            at = entries[int(line.split("<")[2].split(">")[0], 16)] = {"tag": last}
        else:
            at[line.split()[1].strip(":")] = last

    def name_of(entry):  # gcc gives the name of a member where it is declared, and refers to that
        for link in ("DW_AT_specification", "DW_AT_abstract_origin"):
            if link in entry:
                return name_of(entries.get(int(entry[link].strip("<>"), 16), {}))
        return entry.get("DW_AT_name")
    return sum("inlined_subroutine" in e["tag"] and name_of(e) == name for e in entries.values())


@case
def functions_that_were_inlined(folder):
    """The line says what debug information of any kind proves, and nothing without any."""
    ways = [["gcc", "-gdwarf-5"], ["clang", "-gdwarf-4", "-gz"], ["gcc", "-g", "-flto"], ["gcc", "-gdwarf-4"],
            ["clang", "-gdwarf-5"], ["clang", "-g", "-flto", "-fuse-ld=lld"]]
    for command in ways if LONG else ways[:3]:
        program = compiled(folder, PRICING % "static inline", *command)
        if program is None:
            continue
        count = inlined_places(program, "hot_helper")
        check(count >= 3, f"places, by readelf: {count}", command)
        refused(["hot_helper was inlined into its callers", f"({count} places", "price_book at pricing.c:4",
                           "settle at pricing.c:"], "list", "-e", "hot_helper", "--", program, 1)
    for options in ([], ["-g", "-gsplit-dwarf"]):
        program = compiled(folder, PRICING % "static inline", "gcc", *options)
        done = refused(["no function matches 'hot_helper'"], "list", "-e", "hot_helper", "--", program, 1)
        check("inlined" not in done.stderr, "guessed", done.stderr)


@case
def debug_information_packed_with_zstd(folder):
    """Whatever libelf is installed."""
    program = compiled(folder, PRICING % "static inline", "gcc", "-g")
    count = inlined_places(program, "hot_helper")
    if run(["objcopy", "--compress-debug-sections=zstd", program]).returncode != 0:
        raise Skip("this objcopy has no zstd")
    refused(["hot_helper was inlined into its callers", f"({count} places"], "list", "-e", "hot_helper", "--", program, 1)


@case
def names_of_what_was_inlined(folder):
    """They are compared as those of symbols are, of C++ too; also when the command has ended."""
    for compiler in ("g++", "clang++") if LONG else ("g++",):
        program = compiled(folder, SHOP, compiler, "-g")
        for pattern, name in (("shop::Point::area", "area"), ("*::Point::Poin?", "Point"), ("pricing:shop::*hidden", "hidden"),
                              ("shop::(anonymous namespace)::hidden", "hidden"), ("Point::area", "area")):
            count = inlined_places(program, name) if program else 0
            if program:
                refused([f"{name} was inlined", f"({count} place", "shop::draw"], "list", "-e", pattern, "--",
                        program)
        if program:
            done = xsptrace("-e", "shop::Point::area", "-o", "/dev/null", "--", program, status=NO_MATCH)
            check("shop::Point::area was inlined into its callers" in done.stderr, "not said at the end", done.stderr)


@case(long="all of libc's debug information")
def functions_of_a_debug_file(folder):
    """A file from elsewhere: Debian's libc, with its debug information beside it."""
    libc = run(["ldd", workload("sleeper")]).stdout.split("libc.so.6 => ")[1].split()[0]
    build_id = run(["readelf", "-n", libc]).stdout.split("Build ID: ")[1].split()[0]
    debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    if not os.path.exists(debug):
        raise Skip("libc6-dbg is not installed")
    count = inlined_places(debug, "tcache_get")
    check(count > 0, "by readelf, tcache_get is not inlined anywhere")
    refused(["tcache_get was inlined", f"({count} place", "malloc.c:"], "list", "-e", "libc.so.6:tcache_get", "--", "true")


@case
def no_spans_of_what_was_inlined(folder):
    """An out-of-line copy exists, but is never called."""
    for compiler in ("gcc", "clang") if LONG else ("clang",):
        program = compiled(folder, PRICING % "", compiler, "-g")
        if program is None:
            continue
        pid = start([program]).pid
        count = inlined_places(program, "hot_helper")
        said = why(pid, "hot_helper")
        check(f"hot_helper was inlined into its callers ({count} places" in said, "not said", said)
        said = why(pid, "uncalled")
        check("was inlined" not in said, "guessed", said)
        done = xsptrace("-p", pid, "-d", "0.2", "-e", "price_book", "-e", "middle", "-o", "/dev/null")
        check("nothing matches -e 'middle' so far: middle was inlined" in done.stderr, "beside others", done.stderr)


@case(long="all of libc's debug information")
def functions_chosen_at_the_start(folder):
    """An IFUNC's name is that of its resolver; where its code does not show what it chooses from, only debug symbols name that."""
    library = compiled(folder, """
        static int twice_here(int x) { return 2 * x; }
        static int other(int x) { return 3 * x; }
        static void *const table[] = {twice_here, other};
        static volatile int which;
        static void *pick(void) { return table[which]; }
        int twice(int x) __attribute__((ifunc("pick")));
        int thrice(int x) { return 3 * x; }""", "gcc", "-shared", "-fPIC", "-s")
    child = start([sys.executable, "-c", f"import ctypes, time; ctypes.CDLL({library!r}); print('on', flush=True); "
                   "time.sleep(100)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    refused(("IFUNC", "debug symbols"), "-p", child.pid, "-e", f"{os.path.basename(library)}:*twice*")


@case
def what_was_meant(folder):
    """Names without their namespace, regular expressions, programs by another name, scripts."""
    program = compiled(folder, SHOP.replace("{ return shop", "{ for (;;) __builtin_ia32_pause(); return shop")
                       if os.uname().machine == "x86_64" else SHOP, "g++", "-g")
    done = refused(["-e '*::draw' names shop::draw"], "list", "-e", "draw", "--", program)
    equal(done.stderr.count("shop::draw"), 1, "overloads are one name")
    for pattern in ("shop::dra.*", "^shop::draw", "draw$", "drew|draw"):
        done = refused(["glob", "not a regular expression"], "list", "-e", pattern, "--", program)
        equal(done.stderr.count("shop::draw"), 1 + pattern.count("shop::draw"), "the nearest name, once")
    os.symlink(workload("hot"), f"{folder}/hot-server")
    words = ["the process is called so", "its file is hot"]
    refused(words, "list", "-e", "hot-server:*", "--", f"{folder}/hot-server")
    for child in (start([f"{folder}/hot-server", "--rate", 10, "--seconds", 60, "--out", "/dev/null"]),
                  start(["shopkeeper", "60"], executable=shutil.which("sleep"))):
        time.sleep(0.2)
        name = "hot-server" if "hot" in child.args[0] else "shopkeeper"
        refused(words[:1], "-p", child.pid, "-e", f"{name}:no*")
    if os.path.exists("/usr/bin/python3"):
        refused(["only native functions have probes"], "list", "-e", "json.dumps", "--", "/usr/bin/python3", "-c", "")


FAMILY = """
import os, sys, time
def born(then):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(w, b"%d" % then())
        os.close(w)
        time.sleep(600)
        os._exit(0)
    os.close(w)
    return pid, int(os.read(r, 20))
child, grandchild = born(lambda: born(lambda: 0)[0])
print(child, grandchild, born(lambda: 0)[0], flush=True)
time.sleep(600)
"""


@case
def children_that_are_not_recorded(folder):
    """A process that waits for its workers looks idle: the line counts them, each once."""
    parent = start([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE)
    family = [int(pid) for pid in parent.stdout.readline().split()]
    child = family[0]
    try:
        for options, count in ((("-p", parent.pid), 3), (("-p", f"{parent.pid},{child}"), 2), (("-p", child), 1),
                               (("-p", family[2]), 0), (("-f", "-p", parent.pid), 0), (("-q", "-p", parent.pid), 0)):
            said = xsptrace("--profile", "-d", "0.1", "-o", f"{folder}/f.xspt", *options).stderr
            told = re.findall(r"^xsptrace: (\d+) child(?:ren)? of .* not recorded", said, re.M)
            equal(told, [str(count)] if count else [], f"children that are told of with {options}: {said}")
    finally:
        for pid in family:
            os.kill(pid, signal.SIGKILL)


@case
def a_program_that_hangs(folder):
    """If nothing ran, the line suggests dump; for a process that runs it does not."""
    asleep, busy = start(["sleep", "600"]), start(["sh", "-c", "while :; do :; done"])
    for pid, spoken in ((asleep.pid, True), (busy.pid, False)):
        done = xsptrace("--profile", "-p", pid, "-d", "0.5", "-o", f"{folder}/{pid}.xspt")
        equal(f"no thread ran: if it hangs, xsptrace dump -p {pid} " in done.stdout, spoken, f"the hint: {done.stdout}")
        check("xsptrace analyze says what is slow in it" in done.stderr, "what to do with the capture", done.stderr)


main()
