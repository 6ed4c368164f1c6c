#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""All processes of a job, a container, a control group; those that only run it are left out."""
import contextlib
import os
import re

from harness import EXTRA, NO_TARGET, USAGE, XSPTRACE, Skip, case, check, equal, main, run, start_ready, workload, xsptrace

ID = f"{os.getpid():08x}" + "ab" * 28


@contextlib.contextmanager
def group(path):
    """A control group of this machine, removed afterwards: of version 2, or of a hierarchy of version 1."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer"):
        if os.path.exists(f"{root}/cgroup.procs") and os.access(root, os.W_OK):
            break
    else:
        raise Skip("no control groups can be made here")
    made = [f"{root}/{path[:at.start()]}" for at in re.finditer("/|$", path)]
    try:
        for folder in made:
            os.mkdir(folder)
        yield made[-1]
    finally:
        for folder in reversed(made):
            os.rmdir(folder)


def spinning(**options):
    return start_ready([workload("samples"), "--wait", "--seconds", 60], **options)


def found(*options, status=0):
    """The processes that a recording of the group has."""
    done = xsptrace("dump", "--json", "--no-stop", *options, status=status)
    return {int(pid) for pid in re.findall(r'"pid":\s*(\d+)', done.stdout)}


@case
def of_a_container(folder):
    """By its id, or its first digits; as Docker, containerd and Podman call their groups."""
    for path in (f"docker-{ID}", f"docker-{ID}/{ID}", f"docker-{ID}/cri-containerd-{ID}.scope"):
        with group(path) as procs, contextlib.ExitStack() as stack:
            inside, outside = [spinning(), spinning()], spinning()
            stack.callback(lambda: [(child.kill(), child.wait()) for child in (*inside, outside)])
            for child in inside:
                with open(f"{procs}/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(str(child.pid))
            pids = {child.pid for child in inside}
            equal(found("--container", ID[:12]), pids, f"processes of {path}")
            equal(found("--cgroup", path.rpartition("/")[2]), pids, "by the last part of its path")
            equal(found("--cgroup", procs), pids, "by its folder")
            found("--cgroup", path[2:], status=NO_TARGET)  # whole parts only
            xsptrace(*EXTRA, "-q", "--container", ID, "-d", "0.2", "-e", "samples:samples_round", "-o", f"{folder}/c.xspt")
            info = xsptrace("info", f"{folder}/c.xspt").stdout
            equal({int(pid) for pid in re.findall(r"(\d+) \(\d+ in its namespace\)", info)}, pids, "recorded")


@case
def of_a_job(folder):
    """By Slurm's variable where it makes no groups. A shell of the job from which xsptrace is called is none of its work."""
    job = {**os.environ, "SLURM_JOB_ID": "4242"}
    child, other = spinning(env=job), spinning(env={**job, "SLURM_JOB_ID": "42421"})
    done = run(["sh", "-c", f"{XSPTRACE} dump --json --no-stop --job 4242; true"], env=job)
    equal({int(pid) for pid in re.findall(r'"pid":\s*(\d+)', done.stdout)}, {child.pid}, "processes")
    other.kill()
    child.kill()


@case
def that_are_not_there(folder):
    for options, status in ((["--job", "99999999"], NO_TARGET), (["--job", "x"], USAGE), (["--container", "1234"], USAGE),
                            (["--container", "0" * 64], NO_TARGET), (["--cgroup", "/"], USAGE)):
        done = xsptrace("-d", "0.1", *options, status=status)
        check(re.fullmatch(r"xsptrace: .*\n", done.stderr), "one line", done.stderr)


if __name__ == "__main__":
    main(traces=False)
