#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a run leaves on the disk, and what it leaves alone."""
import ctypes
import glob
import os
import re
import signal
import stat
import struct
import subprocess
import time

from harness import (EXTRA, NO_MATCH, NO_TARGET, OUTPUT, USAGE, XSPTRACE, Recording, Trace, case, check,
                     equal, main, start, wait_for, workload, xsptrace)

OLD = "what an earlier run recorded"


def looping():
    return start([workload("hot"), "--threads", 1, "--rate", 2000, "--seconds", 100, "--out", "/dev/null"])


def no_unnamed_files():
    """In the child: O_TMPFILE fails, as on NFS, vfat and older overlays."""
    number = {"x86_64": 257, "aarch64": 56}[os.uname().machine]
    program = struct.pack("HBBI" * 6,
                          0x20, 0, 0, 0,  # the system call's number
                          0x15, 0, 3, number,  # openat
                          0x20, 0, 0, 32,  # its flags
                          0x45, 0, 1, 0o20000000,
                          0x06, 0, 0, 0x00050000 | 95,  # EOPNOTSUPP
                          0x06, 0, 0, 0x7fff0000)
    buffer = ctypes.create_string_buffer(program)
    fprog = struct.pack("HxxxxxxP", 6, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(fprog), 0, 0):
        os._exit(99)


BOTH = ({}, {"preexec_fn": no_unnamed_files})


def old_files(folder, *names):
    for name in names:
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(OLD)
    return names


def check_old(folder, names, what):
    for name in names:
        with open(f"{folder}/{name}", "rb") as f:
            equal(f.read(), OLD.encode(), f"{name} after {what}")
    equal(sorted(os.listdir(folder)), sorted(names), f"files after {what}")


def spans(folder, capture):
    xsptrace("export", "-q", capture, "-o", f"{folder}/exported.json")
    n = len(Trace(f"{folder}/exported.json").spans)
    os.unlink(f"{folder}/exported.json")
    return n


def bytes_kept(pid):
    """Of the capture that a recorder writes, whatever its name, and if it has none."""
    for held in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if not os.path.isfile(held) or not os.lstat(held).st_mode & 0o200:  # open for writing
                continue
            with open(held, "rb") as f:
                if f.read(8)[1:5] == b"XSPT":
                    return os.stat(held).st_size
        except OSError:
            pass
    return 0


def wait_kept(tracer, spans=500):
    """Until so much is in the capture; it writes to it once a second. A span takes up to 30 bytes, packed."""
    wait_for(lambda: bytes_kept(tracer.pid) > 4096 + 30 * spans, 10, "a capture with spans")



@case
def into_a_folder(folder):
    """A capture by the names of host, process and time, and nothing else; the folder is not made."""
    child, there = looping(), f"{folder}/runs/"
    done = xsptrace(*EXTRA, "-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", there, status=OUTPUT)
    check(there in done.stderr, "the folder's name", done.stderr)
    os.mkdir(there)
    xsptrace(*EXTRA, "-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", there)
    (name,) = os.listdir(there)
    check(re.fullmatch(rf"xsptrace\.{re.escape(os.uname().nodename)}\.hot\.{child.pid}\.\d{{8}}-\d{{6}}\.xspt", name), "the name", name)
    check(spans(folder, there + name) > 0, "spans")
    equal(os.listdir(folder), ["runs"], "elsewhere")

@case
def runs_that_fail_keep_what_is_there(folder):
    """Typos, targets that are gone, tracers that are killed before they have recorded anything."""
    child, gone = looping(), subprocess.Popen(["true"])
    gone.wait()
    names = old_files(folder, "run.xspt", "run.json", "run.json.xspt")
    for how in BOTH:
        for out in ("run.xspt", "run.json"):
            out = f"{folder}/{out}"
            for status, arguments in ((NO_MATCH, ["-p", child.pid, "-e", "hot_tpyo"]),
                                      (NO_TARGET, ["-p", gone.pid, "-e", "hot_*"]),
                                      (USAGE, ["-p", child.pid, "-e", "hot_*", "-d", "1ss"]),
                                      (127, ["-e", "hot_*", "--", "/nonexistent/program"])):
                at = arguments.index("--") if "--" in arguments else len(arguments)
                xsptrace(*arguments[:at], "-o", out, *arguments[at:], status=status, **how)
                check_old(folder, names, f"status {status} with -o {out}")
    for moment in (0.01, 0.05, 0.1, 0.2, 0.4):
        tracer = start([XSPTRACE, *EXTRA, "-p", child.pid, "-e", "hot_tpyo", "-e", "sleep*", "-o",
                        f"{folder}/run.xspt"], stderr=subprocess.DEVNULL)
        time.sleep(moment)
        tracer.kill()
        tracer.wait()
        check_old(folder, names, f"a kill after {moment} s")
    # one that works replaces the named file, and nothing else
    for how in BOTH:
        xsptrace("-q", "-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", f"{folder}/run.json", **how)
        check(Trace(f"{folder}/run.json").spans, "no spans")
        os.unlink(f"{folder}/run.json")
        check_old(folder, [n for n in names if n != "run.json"], "a recording")
        xsptrace("-q", "-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", f"{folder}/run.xspt", **how)
        check(spans(folder, f"{folder}/run.xspt"), "no spans")
        os.unlink(f"{folder}/run.xspt")
        check_old(folder, ["run.json.xspt"], "a recording")
        old_files(folder, *names)


@case
def streams_and_devices_leave_nothing(folder):
    child, work = looping(), f"{folder}/tmp"
    here = f"{folder}/here"
    os.mkdir(work)
    os.mkdir(here)
    before = set(os.listdir("/dev"))
    for how in BOTH:
        for out in ("-", "/dev/null", "/dev/stdout"):
            done = xsptrace("-q", "-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", out, cwd=here,
                            env={**os.environ, "TMPDIR": work}, **how)
            check(("hot_frame" in done.stdout) == (out != "/dev/null"), f"-o {out}: standard output")
            equal(os.listdir(here) + os.listdir(work), [], f"files of -o {out}")
    for out in ("-", "/dev/null"):  # and if it is killed
        tracer = start([XSPTRACE, *EXTRA, "-q", "-p", child.pid, "-e", "hot_*", "-o", out], cwd=here,
                       env={**os.environ, "TMPDIR": work}, stdout=subprocess.DEVNULL)
        wait_kept(tracer, 1)
        tracer.kill()
        tracer.wait()
        equal(os.listdir(here) + os.listdir(work), [], f"files of a killed -o {out}")
    equal([n for n in set(os.listdir("/dev")) - before if "null" in n or "stdout" in n], [],
          "files in /dev")


@case
def two_runs_with_one_name(folder):
    """Both are there in the end, whole."""
    child = looping()
    for how in BOTH:
        for name, other in (("run.xspt", "run-2.xspt"), ("run.json", "run-2.json")):
            both = [start([XSPTRACE, *EXTRA, "-q", "-p", child.pid, "-d", d, "-e", "hot_*", "-o",
                           f"{folder}/{name}"], stderr=subprocess.PIPE, **how) for d in ("0.8", "1.2")]
            said = "".join(b.communicate(timeout=30)[1].decode() for b in both)
            equal([b.returncode for b in both], [0, 0], f"status\n{said}")
            equal(sorted(os.listdir(folder)), sorted([name, other]), "files")
            check(other in said, "the other name is not told", said)
            for n in (name, other):
                path = f"{folder}/{n}"
                n = spans(folder, path) if n.endswith(".xspt") else len(Trace(path).spans)
                check(n > 500, f"{path}: {n} spans")
                os.unlink(path)


@case
def a_second_ctrl_c_says_what_is_kept(folder):
    """... and that is a capture which can be read, or nothing at all."""
    child = looping()
    for how in BOTH:
        for out, kept in (("run.xspt", "run.xspt"), ("run.json", "run.json.xspt"), ("-", None)):
            here = f"{folder}/{'a' if how else 'b'}{out}"
            os.mkdir(here)
            tracer = start([XSPTRACE, *EXTRA, "-q", "-p", child.pid, "-e", "hot_*", "-o", out], cwd=here,
                           env={**os.environ, "TMPDIR": here}, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, **how)
            wait_kept(tracer)
            tracer.send_signal(signal.SIGINT)
            time.sleep(0.005)  # two that come at once are one
            tracer.send_signal(signal.SIGTERM)
            said = tracer.communicate(timeout=20)[1].decode()
            if tracer.returncode == 0:
                print("  it was quicker than the second signal")
                continue
            check(tracer.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM), "status",
                  tracer.returncode, said)
            check("at once" in said, "it does not say that it was stopped", said)
            if "complete" in said:
                continue
            if kept is None:
                check("no recording was kept" in said, "it does not say that nothing is kept", said)
                equal([n for n in os.listdir(here) if not how], [], "files")
                continue
            check(kept in said, "it does not say what is kept", said)
            check(spans(folder, f"{here}/{kept}") > 500, "too few spans")


@case
def a_killed_tracer_leaves_what_was_asked_for(folder):
    child = looping()
    for out in ("run.xspt", "run.json"):
        with Recording(folder, "-p", child.pid, "-e", "hot_*", "-o", out) as r:
            wait_kept(r.process)
            r.stop(signal.SIGKILL)
            r.wait(status=-signal.SIGKILL)
    names = sorted(n for n in os.listdir(folder) if not n.endswith(".log"))
    equal(names, ["run.xspt"], "files of two killed tracers")
    check(spans(folder, f"{folder}/run.xspt") > 500, "too few spans")


@case
def outputs_of_one_mode(folder):
    """The same content, the same readers: the owner."""
    child = looping()
    names = ["t.json", "t.json.gz", "t.perf", "t.folded", "t.svg", "t.xspt"]
    for mask in (0, 0o022, 0o077):
        os.umask(mask)
        xsptrace("-q", "-p", child.pid, "-d", "0.2", "-e", "hot_*",
                 *[x for n in names for x in ("-o", f"{folder}/{n}")])
        xsptrace("export", "-q", f"{folder}/t.xspt", "-o", f"{folder}/later.json")
        modes = {n: stat.S_IMODE(os.stat(f"{folder}/{n}").st_mode) for n in [*names, "later.json"]}
        equal(set(modes.values()), {0o600}, f"modes {modes}")
    os.umask(0o022)


@case
def a_pipe_of_another_user(folder):
    """Who owns it would read the recording, and hold it up."""
    child, pipe = looping(), f"{folder}/t.json"
    os.mkfifo(pipe, 0o666)
    os.chmod(pipe, 0o666)
    os.chown(pipe, 1500, 1500)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = xsptrace("-p", child.pid, "-d", "0.2", "-e", "hot_*", "-o", pipe, status=OUTPUT)
    check("pipe of another user" in done.stderr, done.stderr)
    os.set_blocking(reader, False)
    equal(os.read(reader, 100), b"", "what the owner could read")
    os.close(reader)


@case
def a_folder_where_names_of_others_stay(folder):
    """A sticky folder (/tmp): somebody else's file, or link, under the name is neither written, followed
    nor removed; the recording is kept beside it."""
    child, shared = looping(), f"{folder}/shared"
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    with open(f"{folder}/precious", "w", encoding="ascii") as f:
        f.write(OLD)
    os.chmod(f"{folder}/precious", 0o666)
    for name in ("run.xspt", "run.json"):
        old_files(shared, name)
        os.chown(f"{shared}/{name}", 1234, 1234)
        os.chmod(f"{shared}/{name}", 0o644)
    os.symlink(f"{folder}/precious", f"{shared}/link.json")
    os.lchown(f"{shared}/link.json", 1234, 1234)
    for name in ("run.xspt", "run.json", "link.json"):
        done = xsptrace("-q", "--user", "nobody", "-p", child.pid, "-d", "0.3", "-e", "hot_*", "-o",
                        f"{shared}/{name}")
        other = name.replace(".", "-2.")
        check(other in done.stderr, "the other name is not told", done.stderr)
        equal(os.stat(f"{shared}/{other}").st_uid, 65534, "owner")
        check(os.path.getsize(f"{shared}/{other}") > 1000, "nothing in it")
    for path in (f"{shared}/run.xspt", f"{shared}/run.json", f"{folder}/precious"):
        with open(path, encoding="ascii") as f:
            equal(f.read(), OLD, path)
    check(os.path.islink(f"{shared}/link.json"), "the link is gone")
    equal(sorted(os.listdir(shared)), ["link-2.json", "link.json", "run-2.json", "run-2.xspt",
                                       "run.json", "run.xspt"], "files")


main()
