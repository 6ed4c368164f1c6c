#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pages of real captures in a browser: each tab opens without a fault, in both themes and at three sizes
(tests/consumers/page_tabs.mjs)."""
import os
import shutil

import shared
from captures import ANNOTATION, Made
from harness import ROOT, Skip, case, check, equal, has_torch, main, run, xsptrace

START = 10_000_000_000
STEP = 50_000_000
ALLREDUCE = "_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE"


def tabs_of(folder, **captures):
    """{name: the tabs of its page, as the browser found them}; all of them in one browser."""
    pages = {name: f"{folder}/{name}.html" for name in captures}
    for name, capture in captures.items():
        done = xsptrace("export", capture, "-q", "-o", pages[name], status=None)
        if "built without it" in done.stderr:
            raise Skip("this build has no page (Node)")
        equal(done.returncode, 0, done.stderr)
    done = run([f"{ROOT}/tests/consumers/run", "page_tabs.mjs", *pages.values()], timeout=280)
    if done.returncode == 77:
        raise Skip(done.stdout + done.stderr)
    equal(done.returncode, 0, done.stdout + done.stderr)
    told = {}
    for line in done.stdout.splitlines():
        if line.startswith("tabs "):
            path, tabs = line.removeprefix("tabs ").split(": ")
            equal(told.setdefault(path, tabs), tabs, "the tabs at other sizes")
    equal(list(told), list(pages.values()), "pages")
    return {name: told[path].split(", ") for name, path in pages.items()}


def steps_of(path, rank, spans):
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


@case(long="each tab of four pages; consumers.page_behaviour opens a page in each run")
def every_kind(folder):
    """A program with annotations, waits, samples, a heap; eight ranks; the simulated GPU; PyTorch with lines, where there is one."""
    os.mkdir(f"{folder}/job")
    for rank in range(8):
        steps_of(f"{folder}/job/rank{rank}.xspt", rank, 200)
    captures = {"program": shared.capture("demo").path, "ranks": f"{folder}/job", "gpu": shared.capture("gpu").path}
    wanted = {"program": {"operations", "memory"}, "gpu": {"streams"}}
    if has_torch():
        captures["torch"], wanted["torch"] = shared.capture("torch").path, {"flame", "modules", "memory"}
    tabs = tabs_of(folder, **captures)
    for name, some in wanted.items():
        check(some <= set(tabs[name]), f"tabs of {name}", tabs[name])


if __name__ == "__main__":
    if shutil.which("node") is None:
        print("skipped: node is not installed")
        raise SystemExit(77)
    main()
