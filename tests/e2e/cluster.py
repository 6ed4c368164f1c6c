#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job on two nodes, each with a network and a host name of its own. Eight ranks over gloo, of
which one computes more on a planted line and one sleeps on another; a recorder on each node finds the job, and what they write into
one folder says who is slow, on which node, in which line. The truth is the workload's text and its clock. Started by hand, by Slurm
(two slurmd and munge) and by Open MPI, whose packages the long tests unpack."""
import contextlib
import glob
import json
import os
import re
import subprocess

from groups import group
from harness import (LONG, ROOT, SCRIPTS, TORCH, XSPTRACE, Skip, case, check, equal, json_report, main, need_torch, run, start, wait_for,
                     xsptrace)

RANKS, STEPS, SLOW, LATE = 8, 10, 5, 2
SCRIPT = f"{SCRIPTS}/torch_cluster.py"
LEAST = ("--threshold", "straggler=0.1%", "--threshold", "late-rank=0.1%")  # of a job's time, most of which may be waiting for the machine


class Nodes:
    """node0 (10.77.0.1) and node1 (10.77.0.2), until the end of the case. `more`: options of unshare."""

    def __init__(self, setup="", more=()):
        script = f"hostname $0 && ip link set lo up && {setup or 'true'} && exec sleep 10000"
        shells = [start(["unshare", "-u", "-n", "-m", *more, "-f", "--kill-child", "sh", "-c", script, f"node{n}"]) for n in range(2)]
        self.enter = ("-u", "-n", "-m", *("-p" for m in more if m == "-p"))
        self.pids = [wait_for(lambda c=c: self.sleeps(c.pid), 5, "a node") for c in shells]
        link = ["ip", "link", "add", "veth", "netns", self.pids[0], "type", "veth", "peer", "name", "veth", "netns", self.pids[1]]
        if run(link).returncode:
            raise Skip("no network namespaces with veth here")
        for n in range(2):
            done = self.run(n, "sh", "-c", f"ip link set veth up && ip addr add 10.77.0.{n + 1}/24 dev veth")
            equal(done.returncode, 0, done.stderr)

    @staticmethod
    def sleeps(shell):
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as f:
            child = f.read().strip()
        try:
            with open(f"/proc/{child}/comm", encoding="ascii") as f:
                return int(child) if f.read() == "sleep\n" else 0
        except (OSError, ValueError):
            return 0

    def command(self, node, *words):
        return ["nsenter", *self.enter, "-t", self.pids[node], "--", *words]

    def run(self, node, *words, **options):
        return run(self.command(node, *words), **options)

    def start(self, node, *words, output, **options):
        """In the background, its output into a file."""
        with open(output, "wb") as f:
            return start(self.command(node, *words), stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT, **options)


def said(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def line_of(comment):
    with open(SCRIPT, encoding="utf-8") as f:
        return next(i for i, text in enumerate(f, 1) if comment in text)


def work(folder):
    """The command of a rank."""
    return [TORCH, SCRIPT, folder, STEPS, SLOW, LATE]


def need_two_nodes():
    need_torch()
    if run(["unshare", "-u", "-n", "-m", "-p", "-f", "--mount-proc", "true"]).returncode:
        raise Skip("no namespaces here")


def wait_ready(folder):
    """Until all ranks are there; which node each is on."""
    ranks = range(RANKS)
    wait_for(lambda: all(os.path.exists(f"{folder}/there.{r}") and said(f"{folder}/there.{r}") for r in ranks), 60, "the ranks")
    return [said(f"{folder}/there.{r}").split()[0] for r in ranks]


def go(folder, logs, recordings=1):
    """Once they are recorded, so many times in each log."""
    try:
        wait_for(lambda: all(len(re.findall("^tracing ", said(log), re.M)) == recordings for log in logs), 60, "recordings")
    except AssertionError as error:
        raise AssertionError("".join(map(said, logs))) from error
    with open(f"{folder}/go", "wb"):
        pass


def planted_ns(folder, rank):
    with open(f"{folder}/{rank}.json", encoding="ascii") as f:
        return json.load(f)["planted_ns"]


def figures(report, rule, subject):
    found = [f for f in report["findings"] if f["rule"] == rule and f["subject"] == subject]
    check(found, f"no {rule} of {subject}", *(f"{f['rule']}: {f['subject']}: {f['title']}" for f in report["findings"]))
    print(f"  {found[0]['title']}\n    {found[0]['advice']}")
    return found[0]["values"]


def check_job(folder, captures, hosts, lines=True):
    """analyze names node, rank and line of both. Without lines only who it is: what a PID namespace of its own leaves."""
    report = json_report("analyze", captures, *LEAST, timeout=300)
    values = report["sections"]["job"]["values"]
    equal((values["ranks"], values["world_size"], values["hosts"]), (RANKS, RANKS, 2), "ranks, world, hosts")
    slow = figures(report, "straggler", f"rank {SLOW}: aten::mm")
    equal((slow["host"], slow["rank"], slow.get("line")),
          (hosts[SLOW], SLOW, f"torch_cluster.py:{line_of('the slow line')} planted" if lines else None), "slow")
    late = figures(report, "late-rank", f"rank {LATE}: c10d::ProcessGroupGloo::barrier")
    equal((late["host"], late["rank"], late.get("line")),
          (hosts[LATE], LATE, f"torch_cluster.py:{line_of('the late line')} forgotten" if lines else None), "late")
    if not lines:
        return
    slept = planted_ns(folder, LATE)
    check(0 < late["line_ns"] * STEPS < 1.1 * slept, "how long it slept, as far as stacks were read", late["line_ns"] * STEPS, slept)
    check(0 < slow["line_ns"] * STEPS < 1.05 * planted_ns(folder, SLOW), "how long it computed", slow, planted_ns(folder, SLOW))


def ask(database, *statements):
    done = run(["sqlite3", "-json", database, *statements], timeout=300)
    equal((done.returncode, done.stderr), (0, ""), statements)
    return json.loads(done.stdout) if done.stdout.strip() else []


def check_sql(folder, captures, hosts, job, lines=True):
    """The query of docs/sql.md for stragglers says the same of all captures in one database."""
    if run(["sqlite3", "--version"]).returncode:
        raise Skip("no sqlite3")
    for i, capture in enumerate(captures):
        xsptrace("export", "-q", capture, "-o", f"{folder}/{i}.db", timeout=300)
        if i > 0:
            ask(f"{folder}/0.db", f"ATTACH '{folder}/{i}.db' AS other", f".read {ROOT}/tools/package/fleet/add.sqlite.sql")
    with open(f"{ROOT}/docs/sql.md", encoding="utf-8") as f:
        query = re.search(r"Stragglers.*?```sql\n(.*?)```", f.read(), re.S)[1]
    rows = [r for r in ask(f"{folder}/0.db", query) if r["name"] == "aten::mm"]
    print(f"  {rows[0]}")
    found = {k: rows[0][k] for k in ("host", "job", "rank", "source", "at_line")}
    if lines:
        equal(found, {"host": hosts[SLOW], "job": job, "rank": SLOW, "source": SCRIPT, "at_line": line_of("the slow line")}, "who is slow")
    else:
        equal(found["host"], hosts[SLOW], "who is slow")


@case(long="eight processes of PyTorch and two recordings")
def by_hand(folder):
    """Each node's recorder sees the control group of its own four ranks."""
    need_two_nodes()
    out, names = f"{folder}/runs/", [f"xsp{os.getpid()}node{n}" for n in range(2)]
    os.mkdir(out)
    with group(names[0]) as first, group(names[1]) as second, contextlib.ExitStack() as stack:
        nodes = Nodes()
        for rank in range(RANKS):
            n = rank * 2 // RANKS
            child = nodes.start(n, *work(folder), output=f"{folder}/rank{rank}", env={
                **os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "SLURM_JOB_ID": "4242", "GLOO_SOCKET_IFNAME": "veth"})
            with open(f"{(first, second)[n]}/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(child.pid))
            stack.callback(lambda child=child: (child.kill(), child.wait()))
        hosts = wait_ready(folder)
        equal(hosts, ["node0"] * 4 + ["node1"] * 4, "nodes")
        logs = [f"{folder}/recorder{n}" for n in range(2)]
        recorders = [nodes.start(n, XSPTRACE, "--cgroup", names[n], "--start-at", "/10s", "-o", out, output=logs[n]) for n in range(2)]
        go(folder, logs)
        for recorder, log in zip(recorders, logs):
            equal(recorder.wait(timeout=300), 0, said(log))
    captures = sorted(glob.glob(f"{out}*.xspt"))
    equal([os.path.basename(c).split(".")[:3] for c in captures], [["xsptrace", f"node{n}", "python3"] for n in range(2)], "files")
    check_job(folder, out, hosts)
    check_sql(folder, captures, hosts, "4242")


# ---- Slurm ----

SLURM_CONF = """ClusterName=two
SlurmctldHost=node0(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
PluginDir={root}/usr/lib/{triplet}/slurm-wlm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ReturnToService=2
NodeName=node0 NodeAddr=10.77.0.1 CPUs=8
NodeName=node1 NodeAddr=10.77.0.2 CPUs=8
PartitionName=all Nodes=node0,node1 Default=YES OverSubscribe=YES
"""


def unpacked():
    """The folder of Slurm and Open MPI, and the environment in which they find themselves there."""
    if not LONG:
        raise Skip("the long tests fetch Slurm and Open MPI")
    done = run([f"{ROOT}/tests/servers/fetch-servers", "cluster", "slurmctld", "slurmd", "slurm-client", "munge", "openmpi-bin"], timeout=900)
    if done.returncode:
        raise Skip(done.stderr.strip())
    root, triplet = done.stdout.strip(), f"{os.uname().machine}-linux-gnu"
    libraries = f"{root}/usr/lib/{triplet}"
    return root, triplet, {**os.environ, "PATH": f"{os.environ['PATH']}:{root}/usr/bin:{root}/usr/sbin",
                           "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm", "OPAL_PREFIX": f"{root}/usr",
                           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Slurm(Nodes):
    """Controller and login on node0, a slurmd on each node; munge with one key."""

    def __init__(self, folder):
        root, triplet, self.env = unpacked()
        self.env["SLURM_CONF"] = f"{folder}/slurm.conf"
        for name, text in (("slurm.conf", SLURM_CONF.format(root=root, triplet=triplet)),
                           ("hosts", "127.0.0.1 localhost\n10.77.0.1 node0\n10.77.0.2 node1\n")):
            with open(f"{folder}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        with open(os.open(f"{folder}/key", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(os.urandom(1024))
        super().__init__(more=("-p", "--mount-proc"), setup="mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/munge /run/slurmd /run/slurmctld && "
                         f"mount --bind {folder}/hosts /etc/hosts")
        for n in range(2):
            self.start(n, "munged", "-F", "--force", f"--key-file={folder}/key", "--socket=/run/munge/munge.socket.2",
                       "--pid-file=/run/munge/pid", "--log-file=/run/munge/log", "--seed-file=/run/munge/seed",
                       output=f"{folder}/munged{n}", env=self.env)
            wait_for(lambda n=n: self.run(n, "munge", "-n", env=self.env).returncode == 0, 10, "munged")
        self.start(0, "slurmctld-wlm", "-D", output=f"{folder}/slurmctld", env=self.env)
        for n in range(2):
            self.start(n, "slurmd-wlm", "-D", "-N", f"node{n}", "-d", f"{root}/usr/sbin/slurmstepd-wlm", output=f"{folder}/slurmd{n}",
                       env=self.env)
        wait_for(lambda: self.login("sinfo -h -o '%T %D'").stdout == "idle 2\n", 30, f"the nodes\n{said(f'{folder}/slurmctld')}")

    def login(self, command, **options):
        return self.run(0, "sh", "-c", command, env=self.env, **options)


@case(long="two slurmd, eight processes of PyTorch and two recordings")
def slurm(folder):
    """srun starts the ranks, and beside them the recorders, by the command of docs/ranks.md. As on machines of their own, a node does
    not see the other's processes: by PID namespaces, in which xsptrace records no lines."""
    need_two_nodes()
    nodes = Slurm(folder)
    os.mkdir(f"{folder}/runs")
    nodes.env["GLOO_SOCKET_IFNAME"] = "veth"
    job = nodes.start(0, "srun", "-N", 2, "-n", RANKS, "--ntasks-per-node", RANKS // 2, *work(folder), output=f"{folder}/job", env=nodes.env)
    hosts = wait_ready(folder)
    number = nodes.login("squeue -h -o %i").stdout.strip()
    with open(f"{ROOT}/docs/ranks.md", encoding="utf-8") as f:
        command = re.search(r"`(srun [^`]*xsptrace[^`]*)`", f.read())[1]
    print(f"  {command}")
    check(re.search(r"sudo xsptrace --job J .* -d 5 -o runs/$", command), "the documented command", command)
    command = command.replace("J ", f"{number} ").replace("NODES", "2").replace("sudo xsptrace", XSPTRACE).replace("-d 5", "-d 300").replace("runs/", f"{folder}/runs/")
    recorders = nodes.start(0, "sh", "-c", f"exec {command}", output=f"{folder}/recorders", env=nodes.env)
    go(folder, [f"{folder}/recorders"], 2)
    equal(job.wait(timeout=300), 0, said(f"{folder}/job"))
    equal(recorders.wait(timeout=300), 0, said(f"{folder}/recorders"))
    captures = sorted(glob.glob(f"{folder}/runs/*.xspt"))
    equal([os.path.basename(c).split(".")[1] for c in captures], ["node0", "node1"], "a file a node")
    check("PID namespace" in said(f"{folder}/recorders"), "that lines are missing is said", said(f"{folder}/recorders"))
    check_job(folder, f"{folder}/runs/", hosts, lines=False)
    check_sql(folder, captures, hosts, number, lines=False)


# ---- Open MPI ----


@case(long="Open MPI, and processes of PyTorch that are recorded")
def open_mpi(folder):
    """The rows of docs/ranks.md for one host: a recorder around the launcher, and one around each rank."""
    need_torch()
    env = {**unpacked()[2], "GLOO_SOCKET_IFNAME": "lo"}
    for name, before, between in (("around", [XSPTRACE, "--follow", "-o", f"{folder}/around.xspt", "--"], []),
                                  ("each", [], [XSPTRACE, "-o", f"{folder}/each/", "--"])):
        here = f"{folder}/{name}.files"
        os.mkdir(here)
        if between:
            os.mkdir(f"{folder}/each")
        with open(f"{here}/go", "wb"):
            pass
        done = run([*before, "mpirun.openmpi", "--oversubscribe", "-n", 3, *between, TORCH, SCRIPT, here, STEPS, 1, -1], env=env, timeout=600)
        equal(done.returncode, 0, done.stderr)
        report = json_report("analyze", f"{folder}/around.xspt" if before else f"{folder}/each", *LEAST, timeout=300)
        rows = report["sections"]["ranks"]["tables"]["ranks"]["rows"]
        equal([r["rank"] for r in rows], [0, 1, 2], f"ranks, {name}")
        slow = figures(report, "straggler", "rank 1: aten::mm")
        equal(slow["line"], f"torch_cluster.py:{line_of('the slow line')} planted", f"slow, {name}")


if __name__ == "__main__":
    main()
