#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""--inject into a process that wants root's rights for it (tests/workloads/inject_hostile.c).

It runs as nobody and lies wherever it is asked. A file of somebody else's stays as it was, the tool
says in one line why it refused, and the target goes on.
"""
import errno
import os
import shutil
import signal
import stat
import subprocess
import time

import harness as h
from injecting import ENTRY, inject, library, mapped, tool
from proc import as_nobody, copy_for_others


def hostile(folder, answer, victim, **options):
    return h.start_ready([copy_for_others(folder, "inject_hostile"), answer, victim], stdout=subprocess.PIPE,
                         **as_nobody(), **options)


def root_file(folder):
    """A file that everybody may read and root alone may write, and what it holds."""
    path = f"{folder}/victim"
    with open(path, "wb") as f:
        f.write(b"root's own\n" * 100)
    os.chmod(path, 0o644)
    return path, file_state(path)


def file_state(path):
    facts = os.stat(path)
    with open(path, "rb") as f:
        return f.read(), facts.st_mtime_ns, facts.st_mode


def attack(child):
    """Injects by way of a copy in memory; what the tool says. The target goes on."""
    got = tool(child.pid, library(), ENTRY, 10000, 0, "memfd")
    child.send_signal(signal.SIGTERM)
    h.equal((h.finish(child, 10), child.stdout.read()), (0, b"went on\n"), "the target")
    return got


def check_refused(got, words):
    h.equal((got["rc"], got["status"]), (-errno.ELIBACC, h.TARGET), f"refused: {got}")
    h.check(words in got["error"] and "\n" not in got["error"], f"refused with '{words}'", got)


@h.case
def honest_process(folder):
    """Injection works as the attacks below use it, also for processes of user nobody."""
    child = h.start([copy_for_others(folder, "sleeper"), "--seconds", "30"], stderr=subprocess.DEVNULL, **as_nobody())
    time.sleep(0.2)
    h.equal(inject(child.pid, library(), memfd=True)["memfd"], 1, "a copy in memory")
    path = next(line.split()[0] for line in mapped(child.pid, "/memfd:libinject_library"))
    with open(f"/proc/{child.pid}/map_files/{path}", "r+b", buffering=0) as copy:
        try:
            copy.write(b"x")
            raise AssertionError("the copy is not sealed")
        except PermissionError:
            pass
        with open(library(), "rb") as original:
            h.equal(copy.read(), original.read(), "what was loaded")


@h.case
def somebody_elses_file(folder):
    """Each way to answer memfd_create with a descriptor of root's file."""
    path, before = root_file(folder)
    for answer in ("readonly", "wide", "forge", "notify"):
        for _ in range(10):
            got = attack(hostile(folder, answer, path))
            h.equal(file_state(path), before, f"root's file after '{answer}'")
            # the last two are threads, which may come too late, or between other calls
            if got["rc"] == -errno.ELIBACC:
                break
        check_refused(got, "no descriptor" if answer == "wide" else "not a new file in memory")


@h.case
def file_swapped_under_the_descriptor(folder):
    """A real memfd at first: refused, or the copy went where it was to go."""
    path, before = root_file(folder)
    for _ in range(5):
        attack(hostile(folder, "swap", path))
        h.equal(file_state(path), before, "root's file")


@h.case
def memory_of_somebody_else(folder):
    """An empty memfd of root's that the target inherited."""
    fd = os.memfd_create("roots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        check_refused(attack(hostile(folder, "inherited", fd, pass_fds=[fd])), "not a new file in memory")
        h.equal(os.fstat(fd).st_size, 0, "size of root's memory")
    finally:
        os.close(fd)


@h.case
def other_answers(folder):
    """Descriptors of every kind that are no new memfd, and no descriptors at all."""
    path, _ = root_file(folder)
    strange = "not a new file in memory"
    answers = {"pipe": strange, "folder": strange, "device": strange, "unlinked": strange,
               "unsealable": strange, "sealed": strange, "filled": strange,
               "nothing": "cannot make a file in memory", "closed": "no such descriptor",
               "reopened": "cannot be written", "mapped": "cannot be sealed"}
    for answer, words in answers.items():
        check_refused(attack(hostile(folder, answer, path)), words)


@h.case
def set_user_id_program(folder):
    """A program with more rights is started meanwhile: it gets no register of ours."""
    program = f"{folder}/program"
    with open(f"{folder}/program.c", "w", encoding="ascii") as f:
        f.write('#include <unistd.h>\n#include <stdio.h>\n'
                'int main(void){sleep(3);printf("%d fine\\n",geteuid());return 0;}\n')
    h.run(["gcc", "-O1", f"{folder}/program.c", "-o", program])
    os.chmod(program, 0o4755)
    h.check(os.stat(program).st_mode & stat.S_ISUID, "set-user-id")
    # the other thread may come too late, and then all went well
    expected = {"exec": (h.FAILED,), "exec-beside": (h.OK, h.FAILED, h.NO_TARGET)}
    for answer, statuses in expected.items():
        child = hostile(folder, answer, program)
        got = tool(child.pid, library(), ENTRY, 10000)
        h.check(got["status"] in statuses, f"{answer}: one of {statuses}", got)
        if got["rc"] == 0:
            child.send_signal(signal.SIGTERM)
        ends = [b"0 fine\n" if got["rc"] < 0 else b"went on\n"]
        if answer == "exec-beside" and got["rc"] < 0:
            # Its other threads end meanwhile; one that is half gone looks to the kernel like another process
            # that shares its folder, and the program gets no other rights (fs/exec.c, check_unsafe_exec).
            ends.append(b"65534 fine\n")
        status, said = h.finish(child, 20), child.stdout.read()
        if got["rc"] == 0 and status == -signal.SIGTERM and not said:
            continue  # the other thread came later still: the signal met the program
        h.check(status == 0 and said in ends, "the program", status, said)


@h.case
def xsptrace_itself(folder):
    """`xsptrace --inject`, with an agent that the target cannot open by its path."""
    path, before = root_file(folder)
    hidden = f"{folder}/hidden"
    os.mkdir(hidden, 0o700)
    agent = os.path.join(os.path.dirname(h.XSPTRACE), "libxsptrace_agent.so")
    for source in (h.XSPTRACE, agent):
        shutil.copy(source, hidden)
    driver = f"{folder}/libcuda.so.1"
    shutil.copy(library(), driver)
    os.chmod(driver, 0o755)
    child = hostile(folder, "readonly", path, env=dict(os.environ, LD_PRELOAD=driver))
    done = h.run([f"{hidden}/xsptrace", *h.EXTRA, "-p", child.pid, "--inject", "-e",
                  "libc.so.6:usleep", "-d", "1", "-o", f"{folder}/o.json"])
    h.equal(file_state(path), before, "root's file")
    h.equal(done.returncode, h.TARGET, f"status: {done.stderr}")
    h.equal(sum("not a new file in memory" in l for l in done.stderr.splitlines()), 1, done.stderr)
    child.send_signal(signal.SIGTERM)
    h.equal((h.finish(child, 10), child.stdout.read()), (0, b"went on\n"), "the target")


if __name__ == "__main__":
    h.main()
