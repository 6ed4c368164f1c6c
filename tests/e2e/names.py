#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a name of -e means where the file that is mapped does not simply say so: IFUNCs, versions, labels, imported functions, symbols in
other files or packed into the file. The truth is the program's own count of its calls."""
import os
import shutil
import subprocess

from harness import NO_MATCH, TARGET, Recording, Skip, Trace, case, check, equal, main, only_x86, run, start, xsptrace

# Works when it gets a byte, and ends when it gets another one.
WORK = """
#include <math.h>
#include <string.h>
#include <unistd.h>
volatile long sink; volatile double x = 1.5, y;
%s
int main(void)
{
	static char a[4096], b[4096], byte;
	int (*volatile cmp)(const void *, const void *, size_t) = memcmp;
	void *(*volatile cpy)(void *, const void *, size_t) = memcpy;
	size_t (*volatile len)(const char *) = strlen;
	for (int i = 0; i < 4000; i++)
		a[i] = b[i] = 'x';
	write(1, "r", 1);
	read(0, &byte, 1);
	for (int i = 0; i < 1000; i++) { %s }
	write(1, "d", 1);
	read(0, &byte, 1);
	return 0;
}
"""
ALL = "sink += cmp(a, b, 4096); if (i % 2 == 0) cpy(b, a, 4096); if (i % 5 == 0) sink += len(a); if (i % 10 == 0) y += sin(x);"


def shell(folder, commands):
    done = run(["bash", "-ec", commands], cwd=folder, timeout=120)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def compiled(folder, name, *options, before="", work=ALL):
    with open(f"{folder}/{name}.c", "w", encoding="ascii") as f:
        f.write(WORK % (before, work))
    done = run(["gcc", "-O1", "-fno-builtin", f"{folder}/{name}.c", "-o", f"{folder}/{name}", *options, "-lm"])
    equal(done.returncode, 0, done.stderr)
    return f"{folder}/{name}"


def recorded(folder, program, *patterns):
    """The calls by name that the program made while it was recorded."""
    child = start([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.stdout.read(1), b"r", "the program is ready")
    chosen = [word for p in patterns for word in ("-e", p)]
    with Recording(folder, "-p", child.pid, *chosen, "-o", f"{folder}/t.json") as recording:
        child.stdin.write(b"ab")
        child.stdin.flush()
        recording.wait()
    return Trace(f"{folder}/t.json").calls


@case
def chosen_when_the_program_starts(folder):
    """An IFUNC's name means the function that the process chose, with or without debug symbols of libc; so does a bare one."""
    program = compiled(folder, "ifunc")
    for prefix in ("libc.so.6:", ""):
        calls = recorded(folder, program, f"{prefix}memcmp", f"{prefix}memcpy", f"{prefix}strlen")
        equal(calls.get("memcmp"), 1000, f"calls of memcmp, -e {prefix}NAME")
        for name, own in (("memcpy", 500), ("strlen", 200)):  # the loader calls copies of its own when the program ends
            check(own <= calls.get(name, 0) <= own + (0 if prefix else 5), f"{own} calls of {name}, -e {prefix}{name}", calls)
    equal(recorded(folder, program, "sin").get("sin"), 100, "calls of sin")
    # the default version, which new programs call
    equal(recorded(folder, program, "memcpy@@GLIBC_2.14").get("memcpy"), 500, "calls of memcpy@@GLIBC_2.14")


@case
def chosen_after_the_recording_began(folder):
    """A launched program has chosen nothing yet."""
    program = compiled(folder, "ifunc")
    with open(f"{folder}/in", "wb") as f:
        f.write(b"ab")
    with open(f"{folder}/in", "rb") as f:
        xsptrace("-e", "libc.so.6:memcmp", "-e", "libm.so.6:sin", "-o", f"{folder}/t.json", "--", program, stdin=f)
    calls = Trace(f"{folder}/t.json").calls
    equal((calls.get("memcmp"), calls.get("sin")), (1000, 100), "calls")


VERSIONS = """
cat > v.c <<'C'
volatile long vs;
__attribute__((noinline)) long area_old(long n) { for (long i = 0; i < n; i++) vs += i; return vs; }
__attribute__((noinline)) long area_new(long n) { for (long i = 0; i < n; i++) vs += i + 1; return vs; }
__asm__(".symver area_old,area@V_1\\n.symver area_new,area@@V_2\\n");
C
echo 'V_1 { global: area; local: *; }; V_2 { global: area; } V_1;' > v.map
gcc -shared -fPIC -O1 v.c -Wl,--version-script=v.map -o libver.so
strip -s libver.so
"""


@case
def versions_of_a_symbol(folder):
    """A name means every version; a name as nm -D prints it means one."""
    shell(folder, VERSIONS)
    program = compiled(folder, "use", f"{folder}/libver.so", f"-Wl,-rpath,{folder}", before="extern long area(long);", work="sink += area(i);")
    printed = [line.split()[-1] for line in shell(folder, "nm -D libver.so; nm -D use").splitlines() if " area@" in line]
    equal(sorted(printed), ["area@@V_2", "area@V_1", "area@V_2"], "what nm -D prints")
    for pattern, calls in (("area", 1000), ("libver.so:area@@V_2", 1000), ("area@V_2", 1000), ("area@V_1", None)):
        equal(recorded(folder, program, pattern).get("area"), calls, f"calls, -e {pattern}")
    child = start([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.read(1)
    for pattern, words in (("area@@V_3", "it is there with version V_1, V_2"), ("use:area", "only calls it, in libver.so: give -e 'libver.so:area'")):
        done = xsptrace("-p", child.pid, "-e", pattern, status=None)
        check(done.returncode in (NO_MATCH, TARGET) and words in done.stderr, f"-e {pattern}", done.stderr)


@case
def labels_without_a_type(folder):
    """Assembly often gives none. Only by the whole name: most labels are inside of functions."""
    only_x86()
    label = '__asm__(".text\\n.globl fast\\nfast: push %rbx\\nmov %rdi, %rbx\\ninner: lea 1(%rbx), %rax\\npop %rbx\\nret\\n"); extern long fast(long);'
    program = compiled(folder, "label", before=label, work="sink += fast(i);")
    equal(recorded(folder, program, "fast").get("fast"), 1000, "calls of a label")
    done = xsptrace("list", "-e", "label:fas*", "--", program, status=None)
    equal(done.returncode, NO_MATCH, done.stdout + done.stderr)


WORKER = "__attribute__((noinline)) long worker(long n) { return sink + n; }"


@case
def symbols_in_a_file_that_is_named(folder):
    """.gnu_debuglink: beside the file, in .debug, below /usr/lib/debug; by build id, or by checksum where there is none. Never another file."""
    for name, options in (("byid", ["-Wl,--build-id"]), ("bysum", ["-Wl,--build-id=none"])):
        program = compiled(folder, name, "-g", *options, before=WORKER, work="sink += worker(i);")
        shell(folder, f"objcopy --only-keep-debug {name} {name}.debug; strip -s {name}; objcopy --add-gnu-debuglink={name}.debug {name}; mv {name}.debug kept")
        for place in (folder, f"{folder}/.debug", f"/usr/lib/debug{folder}"):
            os.makedirs(place, exist_ok=True)
            shutil.copy(f"{folder}/kept", f"{place}/{name}.debug")
            try:
                equal(recorded(folder, program, "worker").get("worker"), 1000, f"calls, {name} in {place}")
            finally:
                os.unlink(f"{place}/{name}.debug")
                if place.startswith("/usr"):
                    os.removedirs(place)
        # of another build, or damaged
        with open(f"{folder}/kept", "r+b") as f:
            f.seek(-1, os.SEEK_END)
            last = f.read(1)[0]
            f.seek(-1, os.SEEK_END)
            f.write(bytes([last ^ 1]))
        if name == "byid":
            shell(folder, "objcopy --remove-section .note.gnu.build-id kept")
        shutil.copy(f"{folder}/kept", f"{folder}/{name}.debug")
        done = xsptrace("list", "-e", "worker", "--", program, status=NO_MATCH)
        check(f"{name} is stripped" in done.stderr, "not said", done.stderr)
        os.unlink(f"{folder}/{name}.debug")


@case
def symbols_that_are_packed(folder):
    """.gnu_debugdata, as every program of Fedora has it; damaged, it is said to be."""
    compiled(folder, "full", before=WORKER, work="sink += worker(i);")
    shell(folder, "nm -D full --format=posix --defined-only | cut -d' ' -f1 | sort > d; nm full --format=posix --defined-only | cut -d' ' -f1 | sort > a; "
          "comm -13 d a > keep; objcopy -S --keep-symbols=keep full mini; xz -k mini; mv full prog; strip -s prog; "
          "cp prog bad; objcopy --add-section .gnu_debugdata=mini.xz prog; head -c 300 mini.xz > short.xz; objcopy --add-section .gnu_debugdata=short.xz bad")
    done = xsptrace("list", "-e", "worker", "--", f"{folder}/bad", status=NO_MATCH)
    if "liblzma" in done.stderr:
        raise Skip("built without liblzma")
    check("damaged" in done.stderr, "not said", done.stderr)
    equal(recorded(folder, f"{folder}/prog", "worker").get("worker"), 1000, "calls")


@case
def programs_without_names(folder):
    """Stripped, or without section headers: said for bare names as well."""
    compiled(folder, "plain", before=WORKER, work="sink += worker(i);")
    shell(folder, "strip -s plain; cp plain bare")
    with open(f"{folder}/bare", "r+b") as f:  # e_shoff, e_shnum, e_shstrndx
        f.seek(40)
        f.write(bytes(8))
        f.seek(60)
        f.write(bytes(4))
    for name, words in (("plain", "plain is stripped"), ("bare", "bare has no section headers")):
        for pattern in ("worker_of_nobody", f"{name}:worker_of_nobody"):
            done = xsptrace("list", "-e", pattern, "--", f"{folder}/{name}", status=None)
            check(done.returncode in (NO_MATCH, TARGET), f"status {done.returncode}", done.stderr)
            check(words in done.stderr or "names no functions: it " + words.split(" ", 1)[1] in done.stderr, f"-e {pattern}", done.stderr)


main()
