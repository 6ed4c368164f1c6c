#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""record_function.h, compiled in every way that its comment promises: the functions begin with the
nop, the semaphore has file contents, symbols are found, and scopes report what they should."""
import itertools
import os
import re
import shutil
import struct
import subprocess

from harness import LONG, ROOT, Skip, case, check, equal, main

INCLUDE = os.path.join(ROOT, "include")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", f"-I{INCLUDE}"]
STRICT_C = ["-Wstrict-prototypes", "-Wmissing-prototypes"]
FUNCTIONS = ("xsp_record_function_enter", "xsp_record_function_exit", "xsp_record_function_value")
LISTEN = "xsp_record_function_listen"  # never called: a probe there raises the semaphore
NOP5 = "0f 1f 44 00 00"
# after the nops of each: a pointer into the register of the argument after its own; if it is not NULL, a jump to its function there
TO_THE_AGENT = {
    "xsp_record_function_enter": [r"48 8b 15 .. .. .. ..", "48 85 d2", "75 01", "c3", "ff 22"],
    "xsp_record_function_exit": [r"48 8b 3d .. .. .. ..", "48 85 ff", "75 01", "c3", "ff 67 08"],
    "xsp_record_function_value": [r"48 8b 0d .. .. .. ..", "48 85 c9", "75 01", "c3", "ff 61 10"],
    LISTEN: ["c3"],
}

C_SOURCE = """
#include "xsptrace/record_function.h"
void c_part(const char *name);
void c_part(const char *name)
{
	XSP_RECORD_FUNCTION("c scope");
	xsp_record_function_enter(name);
	XSP_RECORD_VALUE("c value", -0.5);
	xsp_record_function_enter_n(name, 2);
	xsp_record_function_exit();
	xsp_record_function_exit();
}
"""
CXX_SOURCE = """
#include <stdexcept>
#include <string>
#include "xsptrace/record_function.h"
extern "C" void c_part(const char *name);
static void throws()
{
	xsp::record_function scope("throws");
	throw std::runtime_error("x");
}
int main(int argc, char **)
{
	const std::string text("string \\" \\\\");
	xsp::record_function scope(text);
	{
		XSP_RECORD_FUNCTION("inner");
		c_part("manual");
		XSP_RECORD_VALUE("c++ value", 0.1);
	}
	xsp::record_function part("abcdef", 3);
	try {
		throws();
	} catch (const std::exception &) {
	}
	return argc > 5;
}
"""
# Strong definitions win over the header's weak ones: what the probes would see, printed.
OBSERVER = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
unsigned short xsp_record_function_semaphore = SEMAPHORE;
void xsp_record_function_enter(const char *name, size_t length);
void xsp_record_function_exit(void);
void xsp_record_function_enter(const char *name, size_t length)
{
	printf("+%.*s\\n", (int)(length == (size_t)-1 ? strlen(name) : length), name);
}
void xsp_record_function_exit(void)
{
	printf("-\\n");
}
void xsp_record_function_value(const char *name, size_t length, uint64_t bits);
void xsp_record_function_value(const char *name, size_t length, uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	printf("=%.*s %g\\n", (int)(length == (size_t)-1 ? strlen(name) : length), name, value);
}
"""


def write(folder, name, text):
    path = f"{folder}/{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def tool(*arguments):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    check(done.returncode == 0, " ".join(arguments), done.stdout, done.stderr)
    return done.stdout


def compilers():
    pairs = [p for p in (("gcc", "g++"), ("clang", "clang++")) if all(map(shutil.which, p))]
    check(pairs, "no compiler")
    return pairs


def build(folder, cc, cxx, options, link=(), c="c99", cpp="c++11"):
    out = f"{folder}/program"
    linker = ["-fuse-ld=lld"] if cc == "clang" and "-flto" in options else []
    tool(cc, f"-std={c}", *STRICT, *STRICT_C, *options, "-c", write(folder, "c.c", C_SOURCE), "-o",
         f"{folder}/c.o")
    tool(cxx, f"-std={cpp}", *STRICT, *options, "-c", write(folder, "x.cc", CXX_SOURCE), "-o",
         f"{folder}/x.o")
    tool(cxx, *options, *link, *linker, f"{folder}/c.o", f"{folder}/x.o", "-o", out)
    return out


def first_bytes(path, address, count):
    """The bytes of the first instructions."""
    lines = tool("objdump", "-d", f"--start-address={address}", f"--stop-address={address + 26}",
                 path).splitlines()
    return [l.split("\t")[1].strip() for l in lines if re.match(r" +[0-9a-f]+:\t", l)][:count]


def section_of(path, name, kind):
    """Its address, and its bytes."""
    sections = tool("readelf", "-SW", path)
    found = re.search(rf"\{name} +{kind} +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", sections)
    check(found, f"no section {name} of type {kind}", sections)
    address, offset, size = (int(x, 16) for x in found.groups())
    with open(path, "rb") as f:
        f.seek(offset)
        return address, f.read(size)


def check_notes(path, address):
    """The agent's way: the first note of each function leads to it, and all of them to one pointer of 8 bytes, which is NULL."""
    at, data = section_of(path, ".note.xsptrace", "NOTE")
    functions, pointers = {}, set()
    for start in range(0, len(data), 40):
        equal(struct.unpack_from("<III12s", data, start), (9, 16, data[start + 8], b"xsptrace".ljust(12, b"\0")), "note")
        function, pointer = struct.unpack_from("<qq", data, start + 24)
        functions.setdefault(data[start + 8], at + start + 24 + function)
        pointers.add(at + start + 24 + pointer)
    equal(functions, {n + 1: address[name] for n, name in enumerate(FUNCTIONS)}, "functions of the notes")
    equal(len(pointers), 1, "pointers")
    data_at, data = section_of(path, ".data", "PROGBITS")
    where = pointers.pop() - data_at
    equal((where % 8, data[where:where + 8]), (0, bytes(8)), "the pointer")


def check_binary(path, dynamic=False):
    symbols = tool("nm", *(["-D"] if dynamic else []), path)
    address = {}
    for name in (*FUNCTIONS, LISTEN, "xsp_record_function_semaphore"):
        # link-time optimisation makes them local if no other module can use them
        found = re.findall(rf"^([0-9a-f]+) [VWDTdt] {name}$", symbols, re.M)
        equal(len(found), 1, f"symbols {name}")
        address[name] = int(found[0], 16)
    for name, after in TO_THE_AGENT.items():
        code = first_bytes(path, address[name], 2 + len(after))
        equal(code[:2], [NOP5, "90"], f"{name}: bytes")
        check(len(code) == 2 + len(after) and all(map(re.fullmatch, after, code[2:])), f"{name}: bytes", code)
    check_notes(path, address)
    # a section with contents in the file, which holds the semaphore
    semaphore = address["xsp_record_function_semaphore"]
    begin, data = section_of(path, ".probes", "PROGBITS")
    check(begin <= semaphore < begin + len(data), f"the semaphore is at {semaphore:#x}, not in .probes")
    equal(semaphore % 2, 0, "alignment of the semaphore")


WAYS = (
    [],
    ["-flto"],
    ["-fvisibility=hidden", "-fPIE"],
    ["-fcf-protection=full", "-fstack-protector-all"],
    ["-fsanitize=address"],
    ["-pg"],
    ["-finstrument-functions", "-fpatchable-function-entry=4,2"],
    ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wno-unused-command-line-argument"],
)


@case
def executables(folder):
    count = 0
    ways = [("-O1", []), ("-O3", []), *itertools.product(("-O0", "-O2"), WAYS)] if LONG else [("-O2", way) for way in WAYS]
    for (cc, cxx), (level, way) in itertools.product(compilers(), ways):
        if cc == "gcc":
            way = [o for o in way if o != "-Wno-unused-command-line-argument"]
        if cc == "clang" and "-flto" in way and not shutil.which("ld.lld"):
            continue
        options = [level, *way]
        try:
            check_binary(build(folder, cc, cxx, options))
        except AssertionError as e:
            raise AssertionError(f"{cc} {' '.join(options)}: {e}") from e
        count += 1
    print(f"  {count} ways")


@case(long="of compilers alone: only the header can change it")
def standards(folder):
    for cc, cxx in compilers():
        for c, cpp in (("c99", "c++11"), ("gnu99", "gnu++14"), ("c11", "c++17"), ("gnu17", "c++20")):
            check_binary(build(folder, cc, cxx, ["-O2"], c=c, cpp=cpp))


@case(long="of compilers alone: only the header can change it")
def shared_libraries(folder):
    """Stripped and with hidden visibility: the dynamic symbols stay."""
    for (cc, cxx), level in itertools.product(compilers(), ("-O0", "-O2")):
        for way in ([], ["-flto"]):
            if cc == "clang" and way and not shutil.which("ld.lld"):
                continue
            path = build(folder, cc, cxx, [level, *way, "-fPIC", "-fvisibility=hidden"],
                         ["-shared"])
            tool("strip", path)
            # objdump finds functions by dynamic symbols too
            check_binary(path, dynamic=True)


@case
def stripped_executables(folder):
    """With -rdynamic they keep what the tracer needs."""
    for cc, cxx in compilers():
        path = build(folder, cc, cxx, ["-O2"], ["-rdynamic"])
        tool("strip", path)
        check_binary(path, dynamic=True)


EXPECTED = """+string " \\
+inner
+c scope
+manual
=c value -0.5
+ma
-
-
-
=c++ value 0.1
-
+abc
+throws
-
-
-
"""


@case(long="of compilers alone: only the header can change it")
def what_scopes_report(folder):
    """Names, lengths and nesting; every scope ends once, by an exception too; nothing at all while
    the semaphore is 0."""
    for (cc, cxx), level in itertools.product(compilers(), ("-O0", "-O3")):
        for value, expected in ((1, EXPECTED), (0, "")):
            observer = write(folder, "observer.c", OBSERVER.replace("SEMAPHORE", str(value)))
            tool(cc, "-c", observer, "-o", f"{folder}/o.o")
            path = build(folder, cc, cxx, [level], [f"{folder}/o.o"])
            equal(tool(path), expected, f"{cc} {level}, semaphore {value}")


@case
def disabled(folder):
    """Compiles to nothing."""
    for cc, cxx in compilers():
        path = build(folder, cc, cxx, ["-O2", "-DXSP_RECORD_FUNCTION_DISABLE"])
        check("record_function" not in tool("nm", path), "symbols are left")


@case
def scopes_cannot_be_copied(folder):
    text = '#include <utility>\n#include "xsptrace/record_function.h"\n' \
           'void f() { xsp::record_function a("a"); %s }\n'
    for _, cxx in compilers():
        for statement, fine in (("", True), ("auto b = a;", False), ("auto b = std::move(a);", False),
                                ("a = a;", False)):
            source = write(folder, "copy.cc", text % statement)
            done = subprocess.run([cxx, "-std=c++17", f"-I{INCLUDE}", "-fsyntax-only", source],
                                  stderr=subprocess.DEVNULL, check=False)
            equal(done.returncode == 0, fine, f"{cxx} accepts `{statement}`")


@case
def untraced_scope_is_one_branch(folder):
    """The fast path of a scope, and of a value: a compare with memory and one conditional jump each way, no call."""
    source = write(folder, "cost.c", '#include "xsptrace/record_function.h"\n'
                   'int work(int x);\nint f(int x);\n'
                   'int f(int x) { XSP_RECORD_FUNCTION("f"); return x + 1; }\n'
                   'void g(double x);\nvoid g(double x) { XSP_RECORD_VALUE("g", x); }\n')
    for cc, _ in compilers():
        tool(cc, "-O2", f"-I{INCLUDE}", "-c", source, "-o", f"{folder}/cost.o")
        for function in ("f", "g"):
            code = tool("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", f"{folder}/cost.o")
            before = re.split(r"\tret", code)[0]
            check(len(re.findall(r"\tj[a-z]+", before)) <= 2, "more than two jumps", before)


@case
def aarch64(folder):
    """clang compiles for it without a sysroot: the nop is first."""
    if not shutil.which("clang") or not shutil.which("llvm-objdump"):
        raise Skip("no clang or llvm-objdump")
    source = write(folder, "c.c", C_SOURCE)
    for level in ("-O0", "-O2"):
        done = subprocess.run(["clang", "--target=aarch64-linux-gnu", "-ffreestanding", "-std=c99",
                               *STRICT, level, "-c", source, "-o", f"{folder}/a.o"],
                              stderr=subprocess.PIPE, text=True, check=False)
        if "no targets" in done.stderr or "unable to create target" in done.stderr:
            raise Skip("clang without aarch64")
        check(done.returncode == 0, done.stderr)
        code = tool("llvm-objdump", "-d", f"{folder}/a.o")
        for function in FUNCTIONS:
            check(re.search(rf"<{function}>:\n +[0-9a-f]+: (1f 20 03 d5|d503201f)", code), function, code)


main(traces=False)
