#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A process's part in a job: what captures and Kineto's keys contain of its environment, and what not.
The truth is the environment that the test gives."""
import json
import os

from harness import EXTRA, case, check, equal, main, workload, xsptrace


def recorded(folder, command, **variables):
    """The trace and the capture's bytes."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    xsptrace(*EXTRA, "-o", f"{folder}/run.xspt", "-o", f"{folder}/run.json", "--follow=stop", "-e", "libc.so.6:getenv", "--", *command,
             env=environment | variables)
    with open(f"{folder}/run.json", encoding="utf-8") as f, open(f"{folder}/run.xspt", "rb") as capture:
        return json.load(f), capture.read()


def demo(folder):
    return [workload("demo"), "--calls", 10, "--out", f"{folder}/truth"]


@case
def rank_of_a_job(folder):
    trace, capture = recorded(folder, demo(folder), RANK="3", LOCAL_RANK="1", WORLD_SIZE="8", SLURM_JOB_ID="4242",
                              TORCHELASTIC_RUN_ID='a"b\\\x1b', SECRET_TOKEN="hunter2-hunter2")
    equal(trace["distributedInfo"], {"rank": 3, "world_size": 8}, "distributedInfo")
    job = [dict(p) for p in trace["xsptrace_job"]]
    equal({p.pop("pid") > 0 for p in job}, {True}, "pids")
    equal(job, [{"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "SLURM_JOB_ID": "4242", "TORCHELASTIC_RUN_ID": 'a"b\\?'}],
          "variables")
    check(b"hunter2" not in capture, "what nobody asked for is in the capture")
    keys = list(trace)
    check(keys.index("schemaVersion") < keys.index("trace_id") < keys.index("distributedInfo") < keys.index("traceEvents"),
          "order of the keys", keys)
    check(len(trace["trace_id"]) == 16 and int(trace["trace_id"], 16) > 0, "trace_id", trace["trace_id"])
    equal([k for k in ("record_shapes", "with_stack", "with_flops", "profile_memory") if k in trace], [], "what was not recorded")


@case
def no_rank(folder):
    trace, _ = recorded(folder, demo(folder))
    equal([k for k in ("distributedInfo", "xsptrace_job") if k in trace], [], "keys")


@case
def ranks_that_are_none(folder):
    """Not a number, out of its world, none, longer than any."""
    for rank, size in (("3x", "8"), ("9", "8"), ("", "8"), ("12345678901", "8")):
        trace, _ = recorded(folder, demo(folder), RANK=rank, WORLD_SIZE=size)
        check("distributedInfo" not in trace, f"rank {rank!r}", trace.get("distributedInfo"))
    trace, _ = recorded(folder, demo(folder), RANK="0", WORLD_SIZE="many")
    equal(trace["distributedInfo"], {"rank": 0}, "a world of unknown size")


@case
def two_ranks_and_a_launcher(folder):
    """One trace of several ranks is of none; of an exec what its program was started with counts."""
    # what ends at once is gone before its environment is read: a shell of each stays a while
    stays = """/bin/sh -c '"$@"; sleep 1' one "$@" --out "$0.$r\""""
    script = f'for r in 0 1; do env RANK=$r WORLD_SIZE=2 {stays}; done; r=2; exec env -u RANK {stays}'
    trace, _ = recorded(folder, ["/bin/sh", "-c", script, f"{folder}/truth", workload("demo"), "--calls", 10],
                        RANK="7", WORLD_SIZE="9")
    check("distributedInfo" not in trace, "of two ranks it is neither", trace.get("distributedInfo"))
    found = sorted({(p.get("RANK"), p.get("WORLD_SIZE")) for p in trace["xsptrace_job"] if "RANK" in p})
    equal(found, [("0", "2"), ("1", "2")], "ranks")
    equal({p["WORLD_SIZE"] for p in trace["xsptrace_job"] if "RANK" not in p}, {"9"}, "the launcher, after its exec")


if __name__ == "__main__":
    main()
