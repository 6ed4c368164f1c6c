#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who of the tool's processes may do what, asked of the kernel; and as whom a command runs."""
import os
import signal
import struct
import time

import elves
from harness import SANITIZED, Skip, case, check, equal, main, start, start_ready, wait_for
from proc import COUNTERS, NOBODY, Tool, Witness, as_nobody, copy_for_others, status, threads

BEHIND_SUDO = {**os.environ, "SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY),
               "SUDO_USER": "nobody"}
PRIVILEGED = ("xsp-broker", "xsp-guardian")
PLANNER = "xsp-planner"
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")


def callers_folder(folder):
    os.chown(folder, NOBODY, NOBODY)
    return folder


def a_target(folder, *more):
    return Witness(folder, "caller", [copy_for_others(folder, "libc_caller"), COUNTERS, *more], **as_nobody())


def writes(pid, path):
    """True if it has the file open for writing."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            # not by its name: it may have been opened before it had one
            if not os.path.samefile(f"/proc/{pid}/fd/{fd}", path):
                continue
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                flags = int(next(l.split()[1] for l in f if l.startswith("flags:")), 8)
        except (OSError, StopIteration):
            continue
        if flags & os.O_ACCMODE != os.O_RDONLY:
            return True
    return False


def all_threads(pid):
    """Capabilities are a thread's, not a process's."""
    return [s for s in (status(pid, tid) for tid in threads(pid)) if s]


def check_none(pid, what):
    for s in all_threads(pid):
        kept = {c: s[c] for c in ("CapPrm", "CapEff", "CapAmb") if int(s.get(c, "0"), 16)}
        equal(kept, {}, f"capabilities of {what} ({s['Name']}, {pid})")


def recording(folder, tool, **options):
    """A recording in progress; the file of its capture."""
    target, capture = a_target(folder), f"{folder}/run.xspt"
    tool.start("-p", target.pid, "-e", "libc.so:mem*", "-e", "libc.so:calloc", "-o", capture,
               **options)
    tool.wait_live()
    wait_for(lambda: os.path.exists(capture), 10, "the capture")
    time.sleep(0.3)
    return capture


def end(tool):
    tool.process.send_signal(signal.SIGINT)
    equal(tool.process.wait(timeout=20), 0, f"status\n{tool.output()}")
    tool.wait_gone()


def check_writer(tool, capture, uid):
    writers = [p for p in tool.processes() if writes(p, capture)]
    check(writers, "nobody has the capture open for writing", tool.processes())
    for pid in writers:
        check_none(pid, "the process that writes the capture")
        for s in all_threads(pid):
            equal(s["Uid"].split(), [str(uid)] * 4, f"user of the process that writes, {s['Name']}")
            equal(s["Gid"].split(), [str(uid)] * 4, f"group of it ({s['Name']})")
            check("0" not in s["Groups"].split() or uid == 0, "it is still in root's group",
                  s["Groups"])


def check_others(tool):
    """Only the broker and the guardian keep capabilities."""
    for pid in tool.processes():
        name = status(pid).get("Name")
        if name not in PRIVILEGED:
            check_none(pid, name)


@case
def recording_behind_sudo(folder):
    tool = Tool(callers_folder(folder))
    capture = recording(folder, tool, env=BEHIND_SUDO)
    check_writer(tool, capture, NOBODY)
    check_others(tool)
    tool.named("xsp-broker")
    end(tool)
    equal(os.stat(capture).st_uid, NOBODY, "owner of the capture")


@case
def recording_as_plain_root(folder):
    """Root itself, not by sudo: the same without capabilities."""
    tool = Tool(folder)
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    capture = recording(folder, tool, env=env)
    check_writer(tool, capture, 0)
    check_others(tool)
    end(tool)


# linux/capability.h: dac_read_search, sys_ptrace, perfmon, bpf
FILE_CAPABILITIES = 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39


def tool_with_capabilities(folder):
    tool = Tool(folder)
    low, high = FILE_CAPABILITIES & 0xffffffff, FILE_CAPABILITIES >> 32
    try:  # struct vfs_cap_data of revision 2, effective
        os.setxattr(tool.path, "security.capability",
                    struct.pack("<5I", 0x02000001, low, 0, high, 0))
    except OSError as e:
        raise Skip(f"no file capabilities here: {e}") from e
    return tool


@case
def file_capabilities(folder):
    """An ordinary user, with capabilities on the file of the tool instead of root."""
    tool = tool_with_capabilities(callers_folder(folder))
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    capture = recording(folder, tool, env=env, **as_nobody())
    check_writer(tool, capture, NOBODY)
    check_others(tool)
    end(tool)
    info = tool.run("info", capture)
    equal(info.returncode, 0, f"status of info\n{info.stderr}")


@case
def brake_without_another_thread(folder):
    """The user has come to have more processes than the tool may have, so that no thread can be had: hot functions are released
    all the same."""
    tool, most = tool_with_capabilities(folder), 40
    user = {"user": 54321, "group": 54321, "extra_groups": []}  # who has no others
    os.chown(folder, user["user"], user["group"])
    hot = start_ready([copy_for_others(folder, "hot"), "--wait", "--threads", 1, "--seconds", 60, "leaf"], **as_nobody())
    tool.start("--max-overhead", 20, "-p", hot.pid, "-e", "hot:hot_*", "-o", f"{folder}/out.xspt",
               prefix=("prlimit", f"--nproc={most}"), **user)
    tool.wait_live()
    for _ in range(most):
        start(["sleep", "60"], **user)
    hot.send_signal(signal.SIGUSR1)
    wait_for(lambda: "released after" in tool.output(), 2, f"hot_leaf to be released\n{tool.output()}")
    end(tool)
    check(hot.poll() is None, "the target ended")


@case
def planner(folder):
    """Seen while it reads a large library: no capabilities, no new ones, system calls filtered.
    What it has at first, when it has just been born, does not count."""
    if os.uname().machine != "x86_64":
        raise Skip("machine code of x86-64")
    tool = Tool(folder)
    path = elves.large(100000).write(f"{folder}/liblarge.so")
    target = Witness(folder, "mapper", [copy_for_others(folder, "mapper"), COUNTERS, f"{path}:+:0"], **as_nobody())
    process = tool.start("list", "-p", target.pid, "-e", "liblarge.so:*", env=BEHIND_SUDO)
    last = {}
    while process.poll() is None:
        for pid in tool.processes():
            s = status(pid)
            if s.get("Name") == PLANNER and s.get("State", "Z")[0] not in "ZX":
                last[pid] = (s, all_threads(pid))
        time.sleep(0.01)
    equal(process.returncode, 0, f"status\n{tool.output()[-2000:]}")
    check(last, f"no process {PLANNER} was seen while a large library was read")
    for pid, (_, every) in last.items():
        for s in every:
            equal((s["NoNewPrivs"], s["Seccomp"]), ("1", "2"), f"NoNewPrivs and Seccomp of {pid}")
            equal({c: int(s[c], 16) for c in CAPABILITIES}, dict.fromkeys(CAPABILITIES, 0),
                  f"capabilities of {pid}")


def shared(pid):
    """What it maps that others may write to."""
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as f:
        return [line for line in f if line.split()[1][3] == "s"]


def address_space(pid):
    """Its limit; None: it has none."""
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        most = next(line for line in f if line.startswith("Max address space")).split()[3]
    return None if most == "unlimited" else int(most)


def descriptors(pid):
    return {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}


@case
def planners_of_two_owners(folder):
    """The user's program and root's libc are read by different processes, root's files by two where there are CPUs for
    them. A socket is all that each has."""
    program = f"{folder}/libc_caller"
    tool, target = Tool(folder), a_target(folder)
    os.chown(program, NOBODY, NOBODY)
    tool.start("-p", target.pid, "-e", "libc.so:memcpy*", "-e", "libc_caller:main", "-o",
               f"{folder}/run.xspt", env=BEHIND_SUDO | {"SUDO_UID": "0", "SUDO_GID": "0"})
    tool.wait_live()
    planners = tool.named(PLANNER)
    helpers = min(len(os.sched_getaffinity(0)), 4) - 1
    equal(len(planners), 2 + helpers, "planners")
    for pid in planners:
        fds = descriptors(pid)
        check(len(fds) == 1 and all(f.startswith("socket:") for f in fds.values()),
              f"planner {pid} has open", fds)
        equal(shared(pid), [], f"shared mappings of planner {pid}")
        # what it had, which is not more than it has now, and 512 MiB; a sanitizer's shadow is terabytes
        most, now = address_space(pid), int(status(pid)["VmSize"].split()[0]) << 10
        check(SANITIZED or most is not None and now < most < now + (514 << 20), f"address space of planner {pid}", most, now)
    end(tool)
    equal([p for p in planners if os.path.exists(f"/proc/{p}")], [], "planners that are left")


# ---- -- COMMAND ----------------------------------------------------------------------


def said(tool, *command, options=(), **how):
    done = tool.run("-q", "--summary=none", *options, "-e", "libc.so:getuid", "-o", f"{tool.folder}/run.xspt", "--",
                    *command, **how)
    equal(done.returncode, 0, f"status of {command}\n{done.stderr}")
    return done.stdout.strip()


@case
def command_runs_as_the_user(folder):
    """sudo xsptrace -- COMMAND: COMMAND runs as the user who called sudo."""
    tool = Tool(callers_folder(folder))
    for flag in ("-u", "-g", "-ru", "-rg", "-G"):
        equal(said(tool, "id", flag, env=BEHIND_SUDO), str(NOBODY), f"id {flag}")
    said(tool, "touch", f"{folder}/made", env=BEHIND_SUDO)
    made = os.stat(f"{folder}/made")
    equal((made.st_uid, made.st_gid), (NOBODY, NOBODY), "owner of what the command wrote")
    equal(os.stat(f"{folder}/run.xspt").st_uid, NOBODY, "owner of the capture")
    caps = said(tool, "grep", "-E", "Cap(Prm|Eff|Amb)|NoNewPrivs", "/proc/self/status",
                env=BEHIND_SUDO).split()
    equal(caps[1::2], ["0" * 16] * 3 + ["0"], f"what the command may do: {caps}")


@case
def command_runs_as_root_when_told(folder):
    # a folder of root's: without capabilities root writes to no other
    tool = Tool(folder)
    equal(said(tool, "id", "-u", options=["--user", "root"], env=BEHIND_SUDO), "0", "--user root")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    equal(said(tool, "id", "-u", env=env), "0", "as plain root")
    theirs = Tool(callers_folder(folder))
    equal(said(theirs, "id", "-u", options=["--user", "nobody"], env=env), str(NOBODY),
          "--user nobody")


@case
def command_inherits_nothing(folder):
    """No descriptor of the tool, no blocked or ignored signal."""
    tool = Tool(callers_folder(folder))
    fds = said(tool, "ls", "/proc/self/fd", env=BEHIND_SUDO).split()
    equal(fds, ["0", "1", "2", "3"], "descriptors (the last one is ls's own)")
    signals = said(tool, "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", env=BEHIND_SUDO).split()
    plain = start(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], stdout=-1)
    equal(signals, plain.communicate()[0].decode().split(), "signals blocked and ignored")


main()
