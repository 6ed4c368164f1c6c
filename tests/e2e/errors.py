#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input: one clear line and a status of its own."""
import ctypes
import errno
import os
import random
import re
import shutil
import struct
import subprocess
import time

from harness import (CANNOT_RUN, CAPTURE, KERNEL, NO_MATCH, NO_TARGET, NOT_FOUND, OK, OUTPUT,
                     PERMISSION, TARGET, USAGE, XSPTRACE, Skip, Trace, case, check, equal,
                     finish, main, run, start, start_32_bit, start_ready,
                     wait_for, workload, xsptrace)


def one_line(done, *words):
    """Exactly one line, which begins with the program's name and has the words."""
    lines = [l for l in done.stderr.splitlines() if l.strip()]
    equal(len(lines), 1, f"lines on standard error: {done.stderr!r}")
    check(lines[0].startswith("xsptrace: "), "the line does not say who speaks", lines[0])
    for word in words:
        check(word.lower() in lines[0].lower(), f"the line does not say {word!r}", lines[0])
    print(f"  {done.returncode}: {lines[0]}")


def refused(status, words, *arguments, **options):
    done = xsptrace(*arguments, status=status, timeout=20, **options)
    one_line(done, *words)
    return done


def idle(*arguments):
    return start_ready([workload("sleeper"), *arguments], stdout=subprocess.DEVNULL)


@case
def no_such_process(folder):
    gone = subprocess.Popen(["true"])
    gone.wait()
    refused(NO_TARGET, [str(gone.pid)], "-p", gone.pid)
    for text in ("0", "-1", "12x", "", "99999999999999999999"):
        done = xsptrace("-p", text, status=None, timeout=20)
        check(done.returncode in (USAGE, NO_TARGET), f"-p {text!r}: status {done.returncode}")
        one_line(done)


@case
def limits_that_are_too_low(folder):
    """A process that is there is not said to be gone: the line names the limit."""
    child = idle()
    few = ["setpriv", "--bounding-set=-sys_resource", "prlimit"]  # root would raise them
    for limit, words in (("--nofile=6:6", ["6 files", "ulimit -n"]), ("--nofile=9:9", ["ulimit -n"]),
                         ("--nofile=40:40", ["ulimit -n"]), (f"--as={12 << 20}", ["ulimit -v", "--buffer"])):
        done = run([*few, limit, XSPTRACE, "-p", child.pid, "-q", "-d", "0.1", "-o", f"{folder}/l.xspt", "-e", "sleeper_call"],
                   timeout=20)
        equal(done.returncode, 1, f"status of {limit} ({done.stderr})")
        one_line(done, *words)
    done = run([*few, "--nofile=9:9", XSPTRACE, "dump", "-p", child.pid], timeout=20)
    one_line(done, "ulimit -n")


@case
def kernel_thread(folder):
    for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                flags = int(f.read().rpartition(")")[2].split()[6])
        except OSError:
            continue
        if flags & 0x00200000:  # PF_KTHREAD
            refused(NO_TARGET, ["kernel thread"], "-p", pid)
            return
    raise Skip("no kernel thread is visible in this pid namespace")


@case
def zombie(folder):
    child = subprocess.Popen(["true"])
    wait_for(lambda: open(f"/proc/{child.pid}/stat", encoding="ascii").read().split()[2] == "Z", 5,
             "a zombie")
    refused(NO_TARGET, ["zombie"], "-p", child.pid)
    child.wait()


@case
def no_permission(folder):
    # not executable
    binary = f"{folder}/xsptrace"
    shutil.copy(XSPTRACE, binary)
    os.chmod(binary, 0o755)
    child = idle()
    done = run([binary, "-p", child.pid], user=65534, group=65534, extra_groups=[], cwd="/")
    equal(done.returncode, PERMISSION, f"status as nobody ({done.stderr})")
    one_line(done, "permission", "sudo")


@case
def tracefs_that_is_not_mounted(folder):
    """Asked for by name, it is not replaced by another way in silence."""
    away = 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; exec "$@"'
    done = run(["unshare", "-m", "sh", "-c", away, "sh", XSPTRACE, "--attach=tracefs", "-o", f"{folder}/t.json", "--", "true"])
    equal(done.returncode, KERNEL, f"status ({done.stderr})")
    check("mount -t tracefs" in done.stderr, "what to do is not said", done.stderr)


@case
def program_of_32_bits(folder):
    child = start_32_bit()
    time.sleep(0.1)
    refused(TARGET, ["32-bit"], "-p", child.pid, "-e", "elf32_call")


@case
def stripped_static_program(folder):
    child = start([workload("stripped_static")], stderr=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL)
    time.sleep(0.1)
    refused(TARGET, ["symbol"], "-p", child.pid, "-e", "sleeper_call")


@case
def pattern_that_matches_nothing(folder):
    child = idle()
    refused(NO_MATCH, ["no_such_function_*"], "-p", child.pid, "-e", "no_such_function_*")
    refused(NO_MATCH, ["libnothere.so"], "-p", child.pid, "-e", "libnothere.so:*")
    # no provider fits either: the line names the present ones and suggests -e. (A bare -p is --profile: samples.py)
    refused(NO_MATCH, ["-e", "libc.so"], "-p", child.pid, "-e", "!cuda")


@case
def pattern_that_matches_nothing_beside_others(folder):
    pid = idle().pid
    done = xsptrace("-p", pid, "-d", "0.1", "-e", "libc.so.6:mem*", "-e", "libc.so.6:no_such*", "-e",
                    "torch", "-e", "cuda:cuNoSuch", "-o", f"{folder}/t.json")
    for words in ("nothing matches -e 'libc.so.6:no_such*'", "nothing that -e torch knows is loaded",
                  "nothing matches -e 'cuda:cuNoSuch'"):
        equal(done.stderr.count(words), 1, f"{words} in {done.stderr}")
    check("'libc.so.6:mem*'" not in done.stderr, "a pattern that matches", done.stderr)


@case
def thread_that_is_not_there(folder):
    pid = idle().pid
    refused(NO_TARGET, ("-t 1", "no such thread"), "-p", pid, "-t", 1, "-e", "libc.so.6:mem*", "-o",
            f"{folder}/t.json")
    xsptrace("-p", pid, "-t", pid, "-d", "0.1", "-e", "libc.so.6:mem*", "-o", f"{folder}/t.json")


@case
def process_that_ends_meanwhile(folder):
    """At whatever moment: it has ended, or nothing came of it; never an error of the kernel's."""
    for i in range(8):
        child = start(["sleep", str(0.02 + i * 0.02)])
        done = xsptrace("-p", child.pid, "-d", "0.2", "-e", "libc.so.6:str*", "-o",
                        f"{folder}/t.json", status=None)
        check(done.returncode in (OK, NO_TARGET), f"status {done.returncode}", done.stderr)
        finish(child)


@case
def list_of_what_cannot_be_probed(folder):
    source, path = f"{folder}/odd.c", f"{folder}/odd"
    with open(source, "w", encoding="ascii") as f: # no instruction of 64-bit programs begins so
        f.write('__asm__(".globl odd\\n.type odd, @function\\nodd: .byte 6, 6\\n.size odd, 2\\n");\nint main(void) { return 0; }\n')
    run(["gcc", source, "-o", path])
    done = xsptrace("list", "-e", "odd:odd", "--", path)
    check("not probed" in done.stdout and "No such file" not in done.stdout, "why", done.stdout)


def why(pid, pattern, *options):
    done = xsptrace("-p", pid, "-d", "0.3", "-e", pattern, *options, "-o", "/dev/null")
    check("0 spans" in done.stdout, "there are spans", done.stdout)
    lines = [l for l in done.stderr.splitlines() if l.startswith("xsptrace: no call")]
    equal(len(lines), 1, f"lines that say why: {done.stderr}")
    print(f"  {lines[0]}")
    return lines[0]


@case
def address_in_the_middle_of_an_instruction(folder):
    """-e FILE:0xADDRESS beyond a function's first byte: refused alone, said beside another."""
    child = idle()
    symbols = run(["nm", workload("sleeper")]).stdout.splitlines()
    start_of = next(int(l.split()[0], 16) for l in symbols if l.endswith(" sleeper_call"))
    code = run(["objdump", "-d", f"--start-address={start_of}", f"--stop-address={start_of + 64}",
                workload("sleeper")]).stdout
    long_one = re.search(r"^\s+([0-9a-f]+):\t(?:[0-9a-f]{2} ){3}", code, re.M)
    inside = f"sleeper:{int(long_one[1], 16) + 1:#x}"
    refused(NO_MATCH, ["cannot be probed", "xsptrace list"], "-p", child.pid, "-d", "0.2", "-e", inside)
    done = xsptrace("-p", child.pid, "-d", "0.2", "-e", inside, "-e", "sleeper_call", "-o", "/dev/null")
    check("tracing 1 function " in done.stderr and "1 matching function cannot" in done.stderr, done.stderr)


@case
def processes_by_name(folder):
    """-p NAME: the program's file, a script's, or the name that the process gives itself; two of them are a list to choose from."""
    script = f"{folder}/only_this_one.py"
    with open(script, "w", encoding="ascii") as f:
        f.write("import time\ntime.sleep(100)\n")
    child = start(["/usr/bin/python3", script])
    xsptrace("-q", "--profile", "-p", "only_this_one.py", "-d", "0.2", "-o", f"{folder}/n.xspt")
    check(f" {child.pid} " in xsptrace("info", f"{folder}/n.xspt").stdout, "another process")
    other = start(["/usr/bin/python3", script, "second"])
    said = xsptrace("-p", "only_this_one.py", "-d", "0.2", status=USAGE).stderr
    for pid, words in ((child.pid, script), (other.pid, f"{script} second")):
        check(re.search(rf"^ *{pid}  \S+ {re.escape(words)}$", said, re.M), f"{pid} is not in the list", said)
    refused(NO_TARGET, ["no process is named 'no_such_name'"], "-p", "no_such_name", "-d", "0.2")


@case
def standard_descriptors_that_are_closed(folder):
    child = start([workload("hot"), "--rate", 1000, "--seconds", 60, "--out", "/dev/null"])
    for which in ("2>&-", "<&- >&- 2>&-"):
        out = f"{folder}/closed.json"
        done = run(["sh", "-c", f"exec {XSPTRACE} -p {child.pid} -d 0.5 -e 'hot_*' -o {out} {which}"])
        equal(done.returncode, 0, f"status with {which}")
        check(len(Trace(out).spans) > 300, f"with {which}: {len(Trace(out).spans)} spans in half a second")
        os.unlink(out)


@case
def no_spans_say_why(folder):
    """With a program from elsewhere: Debian's Python."""
    python = "/usr/bin/python3"
    if not os.path.exists(python):
        raise Skip(f"there is no {python}")
    asleep = start([python, "-c", "import time; print('on', flush=True); time.sleep(100)"],
                   stdout=subprocess.PIPE)
    asleep.stdout.readline()
    time.sleep(0.2)
    for _ in range(5):  # it looks for a fifth of a second: on a busy machine that may be too short
        said = why(asleep.pid, "Py_RunMain")
        if "was entered before" in said:
            break
    check("Py_RunMain was entered before" in said and str(asleep.pid) in said, "not that it runs", said)
    said = why(asleep.pid, "PyList_Sort")
    check("does nothing" in said and "nanosleep" in said, "not where it waits", said)
    busy = start([python, "-c", "while True: pass"])
    time.sleep(0.3)
    said = why(busy.pid, "PyList_Sort")
    check("none was made" in said and "does nothing" not in said, "not that it was not called", said)
    hot = start([workload("hot"), "--rate", 1000, "--seconds", 60, "--out", "/dev/null"])
    said = why(hot.pid, "hot_*", "--min-duration", "10s")
    check("filters" in said, "not that they were filtered", said)
    done = xsptrace("-p", hot.pid, "-d", "0.3", "-e", "xsigma", "-o", "/dev/null")
    check("nothing of what was asked for was loaded" in done.stderr and "none was made" not in done.stderr,
          "not that it was never loaded", done.stderr)


@case
def root_without_permission(folder):
    """The first process of a container that is watched from outside: sudo would not help."""
    try:
        os.readlink("/proc/1/exe")
    except PermissionError:
        done = refused(PERMISSION, ["no permission", "process 1", "root may not either"], "-p", 1, "-e", "malloc")
        check("with sudo" not in done.stderr, "the advice is wrong", done.stderr)
        return
    raise Skip("process 1 may be looked at")


@case
def commands_without_a_match(folder):
    """They run, nothing is traced, and that is no success; what an earlier run wrote stays."""
    for out in ("run.json", "run.xspt"):
        out = f"{folder}/{out}"
        with open(out, "w", encoding="ascii") as f:
            f.write("old")
        for command, status in (("exit 0", NO_MATCH), ("exit 3", 3)):
            done = xsptrace("-e", "no_such_function", "-o", out, "--", "sh", "-c", command, status=status)
            check("no function matches 'no_such_function'" in done.stderr, "it does not say why", done.stderr)
            with open(out, encoding="ascii") as f:
                equal(f.read(), "old", out)


def seccomp_no_bpf():
    """In the child: bpf(2) fails with ENOSYS, as on a kernel built without it."""
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    program = struct.pack("HBBI" * 4,
                          0x20, 0, 0, 0,  # load the system call's number
                          0x15, 0, 1, number,  # is it bpf?
                          0x06, 0, 0, 0x00050000 | errno.ENOSYS,
                          0x06, 0, 0, 0x7fff0000)
    buffer = ctypes.create_string_buffer(program)
    fprog = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(fprog), 0, 0):
        os._exit(99)


@case
def bpf_disabled(folder):
    child = idle()
    refused(KERNEL, ["bpf"], "-p", child.pid, "-e", "sleeper_call", preexec_fn=seccomp_no_bpf)


@case
def no_btf(folder):
    child = idle()
    script = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    done = run(["unshare", "-m", "sh", "-c", script, "sh", XSPTRACE, "-p", child.pid, "-e",
                "sleeper_call"])
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        raise Skip(done.stderr.strip())
    equal(done.returncode, KERNEL, f"status without BTF ({done.stderr})")
    one_line(done, "btf")


@case
def program_in_a_debugger(folder):
    """gdb, whose breakpoints may outlive the recording."""
    child = idle()
    done = xsptrace("-p", child.pid, "-e", "sleeper_call", "-d", 0.2, "-o", f"{folder}/t.xspt")
    check("traced by process" not in done.stderr, "nobody traces it", done.stderr)
    seize = 0x4206  # PTRACE_SEIZE, linux/ptrace.h
    check(ctypes.CDLL(None).ptrace(seize, child.pid, None, None) == 0, "not traced")
    done = xsptrace("-p", child.pid, "-e", "sleeper_call", "-d", 0.2, "-o", f"{folder}/t.xspt")
    check(f"process {child.pid} is traced by process {os.getpid()}: " in done.stderr, "not said", done.stderr)


@case
def clock_of_a_time_namespace(folder):
    """A day ahead of the kernel's, in which waits of 86,400 s were told."""
    child = idle()
    ahead = ["unshare", "--time", "--monotonic=86400"]
    if run([*ahead, "true"]).returncode:
        raise Skip("no time namespaces here")
    out = f"{folder}/t.xspt"
    done = run([*ahead, XSPTRACE, "-p", child.pid, "-e", "sleeper_call", "-d", 0.2, "-o", out])
    equal(done.returncode, KERNEL, f"status: {done.stderr}")
    one_line(done, "time namespace")
    check(not os.path.exists(out), "something was written")
    # that of the boot time is not looked at
    done = run(["unshare", "--time", "--boottime=86400", XSPTRACE, "-p", child.pid, "-e", "sleeper_call", "-d", 0.2, "-o", out])
    equal(done.returncode, 0, f"status: {done.stderr}")


@case
def numbers_of_a_pid_namespace(folder):
    """The kernel's numbers of processes are others there, and nothing would be recorded."""
    inside = ["unshare", "-pf", "--mount-proc"]
    if run([*inside, "true"]).returncode:
        raise Skip("no PID namespaces here")
    out = f"{folder}/t.xspt"
    done = run([*inside, XSPTRACE, "-o", out, "--", "sleep", 0.1])
    equal(done.returncode, KERNEL, f"status: {done.stderr}")
    one_line(done, "PID namespace")
    check(not os.path.exists(out), "something was written")


@case
def bad_options(folder):
    child = idle()
    for arguments in (["--no-such-option"], [], ["-p"], ["-p", child.pid, "-d", "x"],
                      ["-p", child.pid, "-d", "-1"], ["-p", child.pid, "-o", f"{folder}/x.doc"],
                      ["-p", child.pid, "--buffer", "lots"], ["nosuchverb"],
                      ["-p", child.pid, "-o", f"{folder}/x.json", "-o", f"{folder}/x.json"],
                      ["-p", child.pid, "-o", f"{folder}/x.xspt", "-o", f"{folder}/y.xspt"],
                      ["-p", child.pid, "-e", ""]):
        done = xsptrace(*arguments, status=None, timeout=20)
        equal(done.returncode, USAGE, f"status of {arguments} ({done.stderr})")
        check(re.match("xsptrace(: | shows what)", done.stderr), "says nothing",
              done.stderr)
    check(not os.path.exists(f"{folder}/x.doc"), "wrote an output of unknown format")
    done = xsptrace("--sample", "-g=stop", "--", "true", status=USAGE)
    check("unknown option -g=stop" in done.stderr, "blames another one", done.stderr)


@case
def options_that_would_tell_nothing(folder):
    """What nothing comes of is refused, not passed over."""
    p = ["-p", idle().pid]
    spanless = "record no spans: leave out"
    for words, *arguments in (
            (["--wait-stacks", "leave out --waits=off"], *p, "--wait-stacks", "--waits=off"),
            (["--wait-stacks", "leave out --waits=off"], *p, "--waits=off", "--wait-stacks"),
            ([spanless], *p, "--profile", "--step", "work"),
            (["--weight samples", "leave out --sample=off"], *p, "-e", "malloc", "--sample=off", "--weight", "samples"),
            (["--weight off-cpu", "--waits"], *p, "--profile", "--waits=off", "--weight", "off-cpu"),
            (["--gpu ", "add -e cuda"], *p, "-e", "malloc", "--gpu", "events"),
            (["--cuda-api ", "add -e cuda"], *p, "-e", "malloc", "--cuda-api", "driver"),
            (["--scopes ", "add -e torch"], *p, "-e", "malloc", "--scopes", "user"),
            ([spanless], *p, "--profile", "--counters", "task-clock"), ([spanless], *p, "--profile", "--max-depth", 2),
            ([spanless], *p, "--gpu-only", "--shapes"), ([spanless], *p, "--gpu-only", "--min-duration", "1ms"),
            (["-t ", "--comm"], "-t", 5, "-e", "malloc", "--", "true")):
        done = run([XSPTRACE, *arguments, *([] if "--" in arguments else ["-o", f"{folder}/t.json"])])
        equal(done.returncode, USAGE, f"status of {arguments}: {done.stderr}")
        one_line(done, *words)


@case
def commands_that_do_not_start(folder):
    refused(NOT_FOUND, ["/nonexistent/program"], "-e", "main", "--", "/nonexistent/program")
    refused(NOT_FOUND, ["no-such-command-here"], "-e", "main", "--", "no-such-command-here")
    plain = f"{folder}/plain.txt"
    with open(plain, "w", encoding="ascii") as f:
        f.write("hello\n")
    refused(CANNOT_RUN, [plain], "-e", "main", "--", plain)
    refused(CANNOT_RUN, [folder], "-e", "main", "--", folder)


@case
def unwritable_outputs(folder):
    child = idle()
    for path in ("/nonexistent/folder/x.json", "/proc/x.json", folder + "/a/b/c.xspt"):
        refused(OUTPUT, [path], "-p", child.pid, "-d", "0.2", "-e", "sleeper_call", "-o", path)


@case
def outputs_are_not_written_through_links(folder):
    child = start([workload("hot"), "--rate", 100, "--seconds", 60, "--out", "/dev/null"])
    precious = f"{folder}/precious"
    for name in ("link.json", "link.xspt", "link.svg"):
        with open(precious, "w", encoding="ascii") as f:
            f.write("keep me")
        os.symlink(precious, f"{folder}/{name}")
        xsptrace("-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", f"{folder}/{name}", status=None)
        with open(precious, encoding="ascii") as f:
            equal(f.read(), "keep me", f"the file that {name} points at")


@case
def full_device(folder):
    """The output's file system is full: its own status, and the events so far are readable."""
    child = start([workload("hot"), "--threads", 2, "--seconds", 60, "--out", "/dev/null"])
    small = f"{folder}/small"
    os.mkdir(small)
    if run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small]).returncode:
        raise Skip("a tmpfs cannot be mounted here")
    try:
        done = xsptrace("-p", child.pid, "-d", "5", "-e", "hot_*", "-o", f"{small}/full.xspt",
                        status=OUTPUT)
        check("full.xspt" in done.stderr, "the file is not named", done.stderr)
        check(child.poll() is None, "the target ended")
        child.kill()
        # the events so far stay readable
        done = xsptrace("export", f"{small}/full.xspt", "-o", f"{folder}/kept.json", status=None)
        check(os.path.exists(f"{folder}/kept.json"), "not exported", done.stderr)
        check(len(Trace(f"{folder}/kept.json").spans) > 1000, "too few spans were kept")
        # the text outputs: no half-written file, a clear line
        xsptrace("export", f"{small}/full.xspt", "-o", f"{small}/x.json", status=OUTPUT)
        check(not os.path.exists(f"{small}/x.json"), "a half-written output has the final name")
        equal([n for n in os.listdir(small) if n != "full.xspt"], [], "files left behind")
    finally:
        run(["umount", small])


@case
def device_that_takes_nothing(folder):
    """/dev/full as an output and as standard output."""
    child = start([workload("hot"), "--rate", 1000, "--seconds", 60, "--out", "/dev/null"])
    capture = f"{folder}/kept.xspt"
    xsptrace("-p", child.pid, "-d", "0.3", "-e", "hot_*", "-o", capture)
    done = run([XSPTRACE, "export", capture, "-o", "/dev/full"])
    check(done.returncode in (USAGE, OUTPUT), f"-o /dev/full: status {done.returncode}")
    one_line(done, "/dev/full")
    with open("/dev/full", "wb") as full:
        done = run([XSPTRACE, "info", capture], stdout=full)
    equal(done.returncode, OUTPUT, "status of info with a full standard output")
    one_line(done, "standard output")


def a_capture(folder):
    path = f"{folder}/good.xspt"
    child = start([workload("hot"), "--threads", 1, "--rate", 20000, "--seconds", 60, "--out",
                   "/dev/null"])
    xsptrace("-p", child.pid, "-d", "0.4", "-e", "hot_*", "-o", path)
    child.kill()
    child.wait()
    with open(path, "rb") as f:
        return f.read()


def export(folder, name, data, status):
    path, out = f"{folder}/{name}.xspt", f"{folder}/{name}.json"
    with open(path, "wb") as f:
        f.write(data)
    done = xsptrace("export", path, "-o", out, status=None)
    check(done.returncode in status, f"{name}: status {done.returncode}, expected {status}",
          done.stderr)
    return done, out


@case
def damaged_captures(folder):
    good = a_capture(folder)
    done, out = export(folder, "good", good, [0])
    spans = len(Trace(out).spans)
    check(spans > 1000, f"only {spans} spans")

    for name, data in {"empty": b"", "text": b"hello, world\n" * 100, "zeros": bytes(100000),
                       "head": good[:7], "flipped": bytes([good[0] ^ 0xff]) + good[1:]}.items():
        done, out = export(folder, name, data, [CAPTURE])
        one_line(done, f"{name}.xspt")
        check(not os.path.exists(out), f"{name}: wrote an output")
    done = xsptrace("export", f"{folder}/missing.xspt", "-o", f"{folder}/m.json", status=None)
    check(done.returncode in (CAPTURE, 1), f"missing: status {done.returncode}")
    one_line(done, "missing.xspt")

    # a torn tail loses its last chunk at most, and says so
    done, out = export(folder, "torn", good[:len(good) * 2 // 3], [0, CAPTURE])
    check(os.path.exists(out), "torn: no output", done.stderr)
    check(done.stderr.strip(), "torn: nothing is said")
    trace = Trace(out)
    check(trace.json["xsptrace_capture"]["end"] != "complete", "torn: called complete")

    # one wrong byte in the middle: that chunk is missing, the rest is there, and the output says so
    middle = len(good) // 2
    done, out = export(folder, "corrupt", good[:middle] + bytes([good[middle] ^ 0x55])
                       + good[middle + 1:], [0, CAPTURE])
    check(done.stderr.strip(), "corrupt: nothing is said")
    if os.path.exists(out):
        check(len(Trace(out).spans) < spans, "corrupt: the damage went unseen")


@case
def chunks_that_come_twice(folder):
    """What is in a chunk happened once."""
    good = a_capture(folder)
    _, out = export(folder, "good", good, [0])
    spans = len(Trace(out).spans)
    at, twice = 64, good[:64]
    while at + 64 <= len(good):
        length = struct.unpack_from("<I", good, at + 8)[0]
        twice += 2 * good[at:at + 64 + length]
        at += 64 + length
    done, out = export(folder, "twice", twice, [0])
    equal(len(Trace(out).spans), spans, "spans")
    check("damaged" in done.stderr, "nothing is said", done.stderr)


def events_in(data):
    """Of whole chunks, by docs/capture-format.md."""
    at, events = 64, 0
    while at + 64 <= len(data):
        magic, kind, _, length = struct.unpack_from("<4sHHI", data, at)
        if magic != b"XSPC" or at + 64 + length > len(data):
            break
        if kind == 2:
            events += struct.unpack_from("<I", data, at + 48)[0]
        at += 64 + length
    return events


@case
def info_of_a_cut_capture(folder):
    """It says how many events are left, and what is not known."""
    good = a_capture(folder)
    whole = events_in(good)
    check(whole > 1000, f"{whole} events")
    for size in (len(good) - 1, len(good) * 2 // 3, len(good) // 2, len(good) // 3):
        path = f"{folder}/cut.xspt"
        with open(path, "wb") as f:
            f.write(good[:size])
        said = xsptrace("info", path, status=None).stdout
        row = dict(l.split(None, 1) for l in said.splitlines() if " " in l)
        equal(int(row["events"].split()[0]), events_in(good[:size]), f"events of {size} bytes\n{said}")
        check("in the file" in row["events"], "it does not say of what", said)
    # so early that no counters are there
    path = f"{folder}/early.xspt"
    with open(path, "wb") as f:
        f.write(good[:256])
    said = xsptrace("info", path, status=None).stdout
    check("not known" in said and "lost entries" not in said, "it knows what it cannot know", said)
    # damage that shows only when events are read
    path = f"{folder}/flipped.xspt"
    with open(path, "wb") as f:
        f.write(good[:len(good) // 2] + bytes([good[len(good) // 2] ^ 0xff]) + good[len(good) // 2 + 1:])
    said = xsptrace("info", path, "--from", "0%", status=None).stdout
    check("1 chunk broken or missing" in said, "damage of a part", said)


@case
def newer_capture(folder):
    """The major version stands in the header; whatever byte holds it, a higher one is refused and
    the line says that the file is newer."""
    good = bytearray(a_capture(folder))
    said = []
    for offset in range(4, 32):
        data = bytearray(good)
        data[offset] = (data[offset] + 1) & 0xff
        path = f"{folder}/newer.xspt"
        with open(path, "wb") as f:
            f.write(data)
        done = xsptrace("info", path, status=None)
        if "newer" in done.stderr:
            equal(done.returncode, CAPTURE, "status")
            said.append(offset)
    check(said, "no header byte makes the file a newer one")


@case
def damage_never_crashes(folder):
    """Random damage: a status of ours, never a signal."""
    seed = int(time.time())
    random.seed(seed)
    print(f"  seed {seed}")
    good = a_capture(folder)
    for i in range(60):
        data = bytearray(good)
        for _ in range(random.choice((1, 4, 64))):
            data[random.randrange(len(data) if i % 2 else 4096)] = random.randrange(256)
        path = f"{folder}/damaged.xspt"
        with open(path, "wb") as f:
            f.write(data[:random.choice((len(data), random.randrange(len(data))))])
        for verb in (["info", path], ["export", path, "-o", f"{folder}/d.json"]):
            done = xsptrace(*verb, status=None)
            check(0 <= done.returncode < 126, f"{verb}: status {done.returncode}", done.stderr)


main()
