#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pages of real captures in a browser: each tab opens without a fault, in both themes and at three sizes
(tests/consumers/page_tabs.mjs)."""
import os
import shutil

from captures import ANNOTATION, Made
from harness import EXTRA, ROOT, SCRIPTS, Skip, case, check, equal, main, run, workload, xsptrace

PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")
START = 10_000_000_000
STEP = 50_000_000
ALLREDUCE = "_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE"


def tabs_of(folder, capture, name):
    """The tabs of its page, as the browser found them."""
    done = xsptrace("export", capture, "-q", "-o", f"{folder}/{name}.html", status=None)
    if "built without it" in done.stderr:
        raise Skip("this build has no page (Node)")
    equal(done.returncode, 0, done.stderr)
    looks = os.environ.get("XSPTRACE_LOOKS", f"{folder}/looks")
    done = run([f"{ROOT}/tests/consumers/run", "page_tabs.mjs", looks, f"{folder}/{name}.html"], timeout=280)
    if done.returncode == 77:
        raise Skip(done.stdout + done.stderr)
    equal(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout.splitlines()[0]


def steps_of(path, rank, spans=1000):
    """A process of a job, whose steps hold two products and an allreduce; so many spans in all."""
    made, thread = Made((rank + 1) << 17), (4000 + rank, 4000 + rank)
    made.info("host", f"node{rank // 4}")
    made.clock(START)
    made.process(thread[0], "python3")
    library = made.module("/usr/lib/libtorch_cpu.so")
    mm, reduce = made.probe("aten::mm", "mm", module=library), made.probe("c10d::ProcessGroupGloo::allreduce", ALLREDUCE, module=library)
    ranges = made.probe("record_function", provider="record_function", kind=ANNOTATION)
    for i in range(spans // 4):
        begin = START + i * STEP
        made.name(100 + i, f"ProfilerStep#{i}")
        made.begin(begin, thread, ranges, 9000, 100 + i)
        for k in range(2):
            made.entry(begin + 1_000_000 + k * 10_000_000, thread, mm, 8000)
            made.exit(begin + 3_000_000 + k * 10_000_000 + rank * 500_000, thread, mm, 8000)
        made.entry(begin + 20_000_000 + rank * 500_000, thread, reduce, 8000)
        made.exit(begin + 26_000_000, thread, reduce, 8000)
        made.end(begin + 30_000_000, thread, ranges, 9000)
    made.finish(path, START, START + spans // 4 * STEP)


@case
def a_thousand_spans(folder):
    steps_of(f"{folder}/small.xspt", 0)
    check("operations" in tabs_of(folder, f"{folder}/small.xspt", "small"), "operations")


@case
def eight_ranks(folder):
    os.mkdir(f"{folder}/job")
    for rank in range(8):
        steps_of(f"{folder}/job/rank{rank}.xspt", rank, 200)
    tabs_of(folder, f"{folder}/job", "ranks")


@case
def pytorch_with_lines_and_waits(folder):
    if not os.path.exists(PYTHON) or run([PYTHON, "-c", "import torch"]).returncode != 0:
        raise Skip(f"{PYTHON} has no torch (Debian: python3-torch)")
    xsptrace(*EXTRA, "-q", "--python", "--waits", "--shapes", "-o", f"{folder}/torch.xspt", "--", PYTHON, f"{SCRIPTS}/torch_train.py", "--losses",
             f"{folder}/losses", "--steps", 6,
             timeout=200)
    check("flame" in tabs_of(folder, f"{folder}/torch.xspt", "torch"), "flame graph")


@case
def simulated_gpu(folder):
    xsptrace(*EXTRA, "-q", "-o", f"{folder}/gpu.xspt", "--", workload("gpu_train"), "--calls", "40", timeout=120,
             env=dict(os.environ, XSP_DOUBLE_TRUTH=f"{folder}/truth"))
    check("streams" in tabs_of(folder, f"{folder}/gpu.xspt", "gpu"), "streams")


if __name__ == "__main__":
    if shutil.which("node") is None:
        print("skipped: node is not installed")
        raise SystemExit(77)
    main()
