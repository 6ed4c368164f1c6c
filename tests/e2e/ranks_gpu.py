#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs whose collectives run on GPUs: four ranks made by hand, each with a stream that computes and one on which NCCL's kernels run.
A rank comes to a collective when its kernel begins; all leave it together."""
import os
import struct

from captures import ANNOTATION, MARK, WORDS, Made
from harness import EXTRA, case, check, equal, json_report, main, workload, xsptrace

START, RANKS, US = 10_000_000_000, 4, 1000
GEMM, NCCL = "sm90_gemm_f32", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALLREDUCE = "c10d::ProcessGroupNCCL::allreduce"
KERNEL, RUNTIME, NAME = 2, 8, 14
TRANSFER, STEPS = 300 * US, 30


class Rank:
    """Its capture; `now` is when its thread is done with what it has called so far, `free` when its streams are."""

    def __init__(self, number, host="one", ahead=0):
        """Its host's clock of the day is `ahead` of the others'."""
        self.number, self.made, self.thread = number, Made(0x1000 + number), (100 + number, 100 + number)
        self.now, self.free, self.correlation, self.records = START, [START, START], 0, []
        made, pid = self.made, self.thread[0]
        made.info("host", host)
        made.clock(START, ahead)
        made.process(pid, "train")
        made.environment(pid, RANK=number, WORLD_SIZE=RANKS)
        made.thread(pid, pid, "train")
        self.mm = made.probe("aten::mm", "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "torch")
        self.launch = made.probe("cudaLaunchKernel", "cudaLaunchKernel", "cuda")
        self.batch = made.probe("xsp_gpu_batch", "xsp_gpu_batch", "gpu", kind=MARK)
        self.ranges = made.probe("record_function", provider="record_function", kind=ANNOTATION)
        self.probes = {}
        for i, name in enumerate((GEMM, NCCL)):
            text = name.encode()
            self.records.append((NAME, 0, struct.pack("<QIIHHI", 7 + i, 0, len(text), 32, len(text), 0) + text + bytes(-len(text) % 8)))

    def kernel(self, name, start, end, stream, inside=None):
        """A call that launches it now; what runs when is decided by the job."""
        self.correlation += 1
        begin, self.now = self.now, self.now + 10 * US
        self.made.entry(begin, self.thread, self.launch, 8000 if inside is None else 7000)
        self.made.exit(self.now, self.thread, self.launch, 8000 if inside is None else 7000)
        self.records.append((RUNTIME, self.correlation, struct.pack("<QQIIII", begin + 1000, self.now - 1000, 211, self.thread[1], 0, 0)))
        self.records.append((KERNEL, self.correlation, struct.pack(
            "<QQQIIIHBB6I", start, end, 7 + (name == NCCL), 0, 1, stream, 32, 1, 0, 64, 1, 1, 128, 1, 1)))
        self.free[stream] = end

    def operator(self, ns, kernel_ns):
        """An operator of so much time on the CPU, whose kernel takes so much on the GPU."""
        self.made.entry(self.now, self.thread, self.mm, 9000)
        self.now += ns
        self.kernel(GEMM, max(self.now + 20 * US, self.free[0]), max(self.now + 20 * US, self.free[0]) + kernel_ns, 0)
        self.now += 1
        self.made.exit(self.now, self.thread, self.mm, 9000)

    def collective(self, group, rank, size, start, end, name="allreduce", lost=False):
        if name not in self.probes:
            self.probes[name] = self.made.probe(f"c10d::ProcessGroupNCCL::{name}", f"_ZN4c10d16ProcessGroupNCCL{len(name)}{name}ERS_", "c10d")
        words = struct.pack("<3Q", group, 1, size << 32 | rank)
        self.made.entry(self.now, self.thread, self.probes[name], 9000, [(WORDS, 0, words)])
        self.kernel(NCCL, start, end, 1, inside=True)
        if lost:
            self.records.pop()
        self.now += 1
        self.made.exit(self.now, self.thread, self.probes[name], 9000)

    def tell(self):
        self.made.gpu(self.now, self.thread, self.batch, self.records)
        self.records = []


def meet(ranks, group, name="allreduce", wait=True, lost=()):
    """One collective of these ranks: when each comes, by its streams. `wait`: the next computation follows it."""
    come = [max(r.now + 30 * US, *r.free) for r in ranks]
    for i, r in enumerate(ranks):
        r.collective(group + r.number, i, len(ranks), come[i], max(come) + TRANSFER + i * 50, name, r.number in lost)
        if wait:
            r.free[0] = r.free[1]
    return come


def job(folder, iteration, ranks=None):
    """iteration(ranks, number) of each step; the paths of the captures."""
    ranks = ranks or [Rank(i) for i in range(RANKS)]
    for number in range(STEPS):
        begin = max(max(r.now, *r.free) for r in ranks) + 10 * US
        for r in ranks:
            r.now = begin
            r.made.name(1000 + number, f"ProfilerStep#{number}")
            r.made.begin(begin, r.thread, r.ranges, 20000, 1000 + number)
        iteration(ranks, number)
        for r in ranks:
            r.now = max(r.now, *r.free) + 5 * US  # it waits for the GPU
            r.made.end(r.now, r.thread, r.ranges, 20000)
            r.tell()
    os.makedirs(folder, exist_ok=True)
    paths = [f"{folder}/rank{r.number}.xspt" for r in ranks]
    for r, path in zip(ranks, paths):
        r.made.finish(path, START, max(x.now for x in ranks) + 1000)
    return paths


def analyzed(paths):
    report = json_report("analyze", *paths)
    tables = {key: {next(iter(r.values())): r for r in t["rows"]} for s in report["sections"].values() for key, t in s["tables"].items()}
    return tables, [(f["rule"], f["subject"], f["title"]) for f in report["findings"] if f["rule"] in ("straggler", "late-rank")], report


@case
def ranks_that_come_together(folder):
    def iteration(ranks, number):
        for r in ranks:
            r.operator(50 * US, (1000 + 10 * (number % 7)) * US)
        meet(ranks, 0x7000)
    tables, found, _ = analyzed(job(folder, iteration))
    equal(found, [], "findings")
    for rank in range(RANKS):
        row = tables["ranks"][rank]
        equal((row["collectives"], row["late_ns"], row["waited_ns"], row["steps"]), (STEPS, 0, 0, STEPS), f"rank {rank}")
        equal(row["transfer_ns"], STEPS * (TRANSFER + rank * 50), f"rank {rank}'s transfers")
    equal(tables["collectives"][ALLREDUCE]["calls"], STEPS, "collectives")


@case
def rank_with_a_slow_gpu(folder):
    """Its kernels take 1.6 ms, those of the others 1 ms: the kernel is named, not what waits for it."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator(50 * US, (1600 if r.number == 2 else 1000) * US + number % 5 * US)
        meet(ranks, 0x7000)
    tables, found, _ = analyzed(job(folder, iteration))
    equal([f[:2] for f in found], [("straggler", f"rank 2: {GEMM}")], "findings")
    check("1.60 ms a step, 1.00 ms on the others; it comes to collectives 18.0 ms late in all" in found[0][2], "how much", found)
    for rank in range(RANKS):
        row, late = tables["ranks"][rank], rank == 2
        equal((row["last"], row["late_ns"]), (STEPS, STEPS * 600 * US) if late else (0, 0), f"rank {rank}: late")
        waited = 0 if late else STEPS * 600 * US
        equal((row["waited_ns"], row["blocked_ns"]), (waited, waited), f"rank {rank}: waited")
        equal(row["step_ns"] - row["own_step_ns"], waited // STEPS, f"rank {rank}: its own time of a step")
    check(all(r["rank"] == 2 for r in tables["rank_steps"].values()), "slowest in each step", tables["rank_steps"])


@case
def rank_with_a_slow_thread(folder):
    """Its GPU is idle until its thread launches: the operator is named."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator((900 if r.number == 1 else 100 + number % 3) * US, 500 * US)
        meet(ranks, 0x7000)
    _, found, _ = analyzed(job(folder, iteration))
    equal([f[:2] for f in found], [("straggler", "rank 1: aten::mm")], "findings")


@case
def waits_behind_work(folder):
    """While a rank's kernel waits for the others its GPU computes: it waited, and was not blocked."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator(50 * US, (1600 if r.number == 3 else 1000) * US)
        for r in ranks:
            if r.number != 3:
                r.free[0] = r.free[0] + 100  # the next kernel follows at once
        come = [r.free[0] for r in ranks]
        for r in ranks:
            r.kernel(GEMM, r.free[0], r.free[0] + 2000 * US, 0)
        for i, r in enumerate(ranks):
            r.collective(0x7000 + i, i, RANKS, come[i], max(come) + TRANSFER)
    tables, _, _ = analyzed(job(folder, iteration))
    for rank in range(RANKS - 1):
        row = tables["ranks"][rank]
        equal((row["waited_ns"], row["blocked_ns"]), (STEPS * (600 * US - 100), 0), f"rank {rank}")


@case
def groups_of_some_ranks(folder):
    """Two pairs, and all four: no collective of one group is taken for another's."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator(50 * US, (1300 if r.number == 1 else 1000) * US + number % 5 * US)
        meet(ranks[:2], 0x8000)
        meet(ranks[2:], 0x9000)
        meet(ranks, 0x7000)
    tables, found, report = analyzed(job(folder, iteration))
    equal(tables["collectives"][ALLREDUCE]["calls"], 3 * STEPS, "collectives")
    equal([f[:2] for f in found], [("straggler", f"rank 1: {GEMM}")], "findings")
    rows = tables["ranks"]
    equal([rows[r]["collectives"] for r in range(RANKS)], [2 * STEPS] * RANKS, "of each rank")
    # rank 0 waits in its pair, the other pair in that of all; rank 0 comes late to that as well, for which rank 1 is to blame
    equal([round(rows[r]["waited_ns"] / STEPS / US) for r in range(RANKS)], [300, 0, 300, 300], "waited in each step")
    equal([round(rows[r]["late_ns"] / STEPS / US) for r in range(RANKS)], [0, 300, 0, 0], "late, and to blame for it, once")
    check("no recorded call of c10d" not in str(report), "all are of a group")


@case
def kernels_of_unknown_groups(folder):
    """Launched by no call of c10d that was recorded: said, and nothing is compared."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator(50 * US, 1000 * US)
            r.kernel(NCCL, r.free[0], r.free[0] + TRANSFER, 1)
    paths = job(folder, iteration)
    said = " ".join(xsptrace("analyze", "--full", *paths).stdout.split())
    check(f"kernels of collectives that no recorded call of c10d launched: {RANKS * STEPS}" in said, "said", said)
    check("no collective was recorded on two ranks" in said, "what follows", said)


def late(tables):
    return [round(tables["ranks"][r]["late_ns"] / STEPS / US) for r in sorted(tables["ranks"])]


@case
def delays_one_after_the_other(folder):
    """Groups of the same ranks: each lines them up again, and what comes after it is another delay."""
    def same(ranks, number):
        for group, name in ((0x7000, "allreduce"), (0x8000, "_allgather_base")):
            for r in ranks:
                r.operator(50 * US, (1500 if r.number == 2 else 500) * US + number % 5 * US)
            meet(ranks, group, name)

    def in_turn(ranks, number):
        for who, (group, name) in enumerate(((0x7000, "allreduce"), (0x8000, "_allgather_base"))):
            for r in ranks:
                r.operator(50 * US, (1500 if r.number == who else 500) * US + number % 5 * US)
            meet(ranks, group, name)
    equal(late(analyzed(job(f"{folder}/same", same))[0]), [0, 0, 2000, 0], "twice a step")
    tables, found, _ = analyzed(job(f"{folder}/in_turn", in_turn))
    equal(late(tables), [1000, 1000, 0, 0], "two ranks in turn")
    waited = [round(tables["ranks"][r]["waited_ns"] / STEPS / US) for r in range(RANKS)]
    equal(waited, [1000, 1000, 2000, 2000], "waited")


@case
def buckets_that_nobody_waits_for(folder):
    """Gradients are reduced while the next ones are computed: one delay shows in each bucket, and is one."""
    def iteration(ranks, number):
        for bucket in range(6):
            for r in ranks:
                r.operator(15 * US, (2000 if r.number == 1 and bucket == 0 else 1000) * US + number % 5 * US)
            meet(ranks, 0x7000, wait=False)
        for r in ranks:
            r.free[0] = r.free[1]
    tables, found, _ = analyzed(job(folder, iteration))
    equal(late(tables), [0, 1000, 0, 0], "late")
    equal([f[:2] for f in found], [("straggler", f"rank 1: {GEMM}")], "findings")


@case
def clocks_that_are_off(folder):
    """Steps that are mostly alike, on two hosts: no clock makes one step the other."""
    def iteration(ranks, number):
        for half in range(2):
            for r in ranks:
                r.operator(30 * US, (3500 if r.number == 1 and half == 0 and number % 5 in (1, 3) else 1500) * US + number % 7 * US)
            meet(ranks, 0x7000)
    for off in (0, 2_000_000, 4_000_000, 10_000_000):
        ranks = [Rank(i, "one" if i < 2 else "two", 0 if i < 2 else off) for i in range(RANKS)]
        tables, found, _ = analyzed(job(f"{folder}/{off}", iteration, ranks))
        equal((late(tables), [f[:2] for f in found]), ([0, 800, 0, 0], [("straggler", f"rank 1: {GEMM}")]), f"clock off by {off} ns")


@case
def records_that_are_missing(folder):
    """Of one kernel in the middle, of two names in turn; and a first rank that was recorded for a while only."""
    def iteration(ranks, number):
        for name in ("allreduce", "_allgather_base"):
            for r in ranks:
                r.operator(30 * US, (1500 if r.number == 2 and name == "allreduce" else 500) * US + number % 5 * US)
            meet(ranks, 0x7000, name, lost=(1,) if number == STEPS // 2 and name == "allreduce" else ())
    tables, _, _ = analyzed(job(folder, iteration))
    equal([tables["ranks"][r]["collectives"] for r in range(RANKS)], [2 * STEPS, 2 * STEPS - 1, 2 * STEPS, 2 * STEPS], "collectives")
    equal(late(tables), [0, 0, 1000, 0], "late")

    def short(ranks, number):
        for r in ranks:
            r.operator(30 * US, (1500 if r.number == 2 else 500) * US + number % 5 * US)
        meet(ranks, 0x7000, lost=(0,) if number >= STEPS // 3 else ())
    tables, _, _ = analyzed(job(f"{folder}/short", short))
    equal([tables["ranks"][r]["collectives"] for r in range(RANKS)], [STEPS // 3, STEPS, STEPS, STEPS], "of a first rank that was recorded for a while")
    equal(late(tables), [0, 0, 1000, 0], "late then")


@case
def ranks_that_receive_late(folder):
    """What a rank gets late from another one is not its own delay; and such calls are of two ranks, not of a group."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator(30 * US, (1500 if r.number == 2 else 500) * US + number % 5 * US)
        for pair in (ranks[:2], ranks[2:]):
            end = max(r.free[0] for r in pair) + 50 * US
            for r, name in zip(pair, ("send", "recv")):
                r.collective(0x7000 + r.number, r.number, RANKS, r.free[0], end, name)
                r.free[0] = end
        meet(ranks, 0x7000)
    tables, found, report = analyzed(job(folder, iteration))
    equal((late(tables), [f[:2] for f in found]), ([0, 0, 1000, 0], [("straggler", f"rank 2: {GEMM}")]), "late")
    check("no recorded call of c10d" not in str(report), "all are known")


@case
def groups_that_no_job_has(folder):
    """One process that says it is another rank of the group each time; kernels that end when no clock does."""
    def iteration(ranks, number):
        for r in ranks:
            r.operator(30 * US, 500 * US)
        for i in range(1 if number % 2 else 40):
            ranks[1].collective(0x9000 + i, i + 1, 300, ranks[1].free[0] + i, ranks[1].free[0] + TRANSFER)
        ranks[0].collective(0x7000, 0, 300, ranks[0].free[0], ranks[0].free[0] + TRANSFER)
        ranks[2].kernel(NCCL, START, (1 << 63) + number, 1)
        ranks[2].free[1] = 0
        ranks[3].kernel(GEMM, START + 5, START, 0)
    tables, found, report = analyzed(job(folder, iteration))
    equal(found, [], "findings")
    check(all(abs(row[k] or 0) < 1e12 for row in tables["ranks"].values() for k in row if k.endswith("_ns")), "figures", tables["ranks"])
    check("rank 2 (one): events were lost" in str(report), "said of the kernels that were not timed")


@case
def job_on_simulated_gpus(folder):
    """Four processes, recorded: who is slow, in which kernel, and how long the others wait, as the program plans it."""
    steps = 20
    done = xsptrace(*EXTRA, "-q", "--follow", "-o", f"{folder}/job.xspt", "--", workload("gpu_ranks"), "--calls", steps, 2)
    planned = int(done.stdout) * US
    tables, found, report = analyzed([f"{folder}/job.xspt"])
    sync = [f for f in report["findings"] if f["rule"] == "sync"]
    check("which one comes late" in sync[0]["advice"], "who waits for the GPU waits for ranks", sync)
    equal([f[:2] for f in found], [("straggler", "rank 2: multiply(float*)")], "findings")
    for rank in range(RANKS):
        row = tables["ranks"][rank]
        n = row["collectives"]  # a process that is born has its probes some milliseconds later
        check(steps - 2 <= n <= steps and steps - 2 <= row["steps"] <= steps, f"rank {rank}", row)
        if rank == 2:
            check(row["last"] >= 0.9 * n and abs(row["late_ns"] / n - planned) < 0.25 * planned, "late", row)
        else:  # threads and the simulated GPUs share this machine's processors
            check(abs(row["waited_ns"] / n - planned) < 0.25 * planned, f"rank {rank} waited", row, planned)
            check(row["blocked_ns"] > 0.99 * row["waited_ns"], f"rank {rank}: its GPU had nothing else to do", row)


if __name__ == "__main__":
    main()
