#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""xsptrace service and ctl: targets that come, go, crash and mean harm; the service killed and started again; others, who may do nothing."""
import glob
import math
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request

from harness import LONG, NO_TARGET, OK, PERMISSION, ROOT, SCRIPTS, USAGE, Skip, alive, case, check, equal, finish, main, run, start, wait_for, workload, xsptrace
from proc import NOBODY, Tool, status, wait_text_clean

SERVER = 11  # user/base/error.h
OURS, SMALL = f"nb{os.getpid()}", f"s{os.getpid()}_"  # other tests have programs of the same kind
NUMBERED = f"comm = {OURS}\nmin-age = 0\nevent = record_function\noption = --step=0 step\nflight-record = 10s,16M\n"


class Service:
    """It runs a copy of xsptrace, whose processes can be told from others'."""

    def __init__(self, folder, watches, **settings):
        self.folder, self.snapshots = folder, f"{folder}/snapshots"
        self.config, self.socket, self.metrics = f"{folder}/service.conf", f"{folder}/ctl", f"{folder}/metrics.prom"
        values = {"folder": self.snapshots, "socket": self.socket, "metrics_file": self.metrics, "scan": "100ms", **settings}
        with open(self.config, "w", encoding="utf-8") as f:
            f.write("[service]\n" + "".join(f"{k.replace('_', '-')} = {v}\n" for k, v in values.items()))
            f.writelines(f"[watch {name}]\n{text}" for name, text in watches.items())
        os.chmod(folder, 0o755)
        self.tool = Tool(folder)
        self.start()

    def start(self, **environment):
        self.process = self.tool.start("service", self.config, env={**os.environ, **environment})
        wait_for(lambda: "snapshots go to" in self.tool.output() and self.ctl("status", status=None).returncode == OK, 10, self.tool.output())

    def ctl(self, *words, status=OK, **options):  # pylint: disable=redefined-outer-name
        return xsptrace("ctl", "--socket", self.socket, *words, status=status, **options)

    def state(self, pid):
        line = re.search(rf"^ *{pid}  .{{15}}  \S+ +(\w+)", self.ctl("status").stdout, re.M)
        return line and line[1]

    def wait_state(self, pid, wanted="armed"):
        wait_for(lambda: self.state(pid) == wanted, 30, f"{pid} to be {wanted}\n{self.tool.output()}")

    def kept(self, reason="*"):
        return sorted(glob.glob(f"{self.snapshots}/xsptrace.*.{reason}.xspt"))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        equal(finish(self.process), OK, f"the service's end\n{self.tool.output()}")
        self.tool.wait_gone()
        check(not os.path.exists(self.socket), "the socket is left")
        return self.tool.output()


class Numbered:
    def __init__(self, folder, name):
        self.counters = f"{folder}/{name}"
        if not os.path.exists(f"{folder}/{OURS}"):
            shutil.copy(workload("numbered"), f"{folder}/{OURS}")
        self.process = start([f"{folder}/{OURS}", self.counters])
        self.pid = self.process.pid

    def steps(self):
        with open(self.counters, "rb") as f:
            return struct.unpack("<2Q", f.read(16))


def metrics(text):
    """By the format's specification: {name: [(labels, value)]}; each family has its HELP and TYPE first, and is in one piece."""
    found, types, families = {}, {}, []
    check(text.endswith("\n"), "the last line has no end")
    for line in text.splitlines():
        if head := re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)", line):
            if head[1] == "TYPE":
                check(head[3] in ("counter", "gauge", "summary"), line)
                types[head[2]] = head[3]
                families.append(head[2])
            continue
        sample = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)', line)
        check(sample, "no line of this format", repr(line))
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or ""))
        family = re.sub(r"_(sum|count)$", "", sample[1]) if types.get(re.sub(r"_(sum|count)$", "", sample[1])) == "summary" else sample[1]
        equal(families[-1], family, f"the family of {line}")
        before = found.setdefault(sample[1], [])
        check(labels not in [b[0] for b in before], "two samples with the same labels", line)
        before.append((labels, float(sample[3])))
    equal(len(families), len(set(families)), "families in one piece")
    return found


def value(service, name, pid=None):
    with open(service.metrics, encoding="utf-8") as f:
        found = metrics(f.read()).get(name, [])
    return next((v for labels, v in found if pid is None or labels["pid"] == str(pid)), math.nan)


@case
def crash_end_and_ctl(folder):
    """A snapshot of what crashes and what is asked for, none of what ends in order; figures are the target's own."""
    service = Service(folder, {"numbers": NUMBERED}, metrics_port=(port := free_port()))
    targets = [Numbered(folder, f"counters{i}") for i in range(3)]
    ends, dies, stays = targets
    for t in targets:
        service.wait_state(t.pid)
    path = service.ctl("snapshot", stays.pid).stdout.strip()
    equal(service.kept("ctl"), [path], "the snapshot that was asked for")
    check("asked for by xsptrace ctl" in xsptrace("info", path).stdout, "its reason")
    check(path in service.ctl("list").stdout, "the list")
    dies.process.send_signal(signal.SIGUSR1)
    ends.process.terminate()
    wait_for(lambda: service.state(dies.pid) is None and service.state(ends.pid) is None, 30, "both to go")
    equal([re.sub(r".*\.(\d+)\.\d+-\d+\.(\w+)\.xspt", r"\1 \2", p) for p in service.kept() if p != path], [f"{dies.pid} sigsegv"], "others")
    before = stays.steps()[0]
    wait_for(lambda: value(service, "xsptrace_step_seconds_count", stays.pid) > before - 20000, 10, "steps")
    check(value(service, "xsptrace_step_seconds_count", stays.pid) <= stays.steps()[0], "more steps than there were")
    wait_for(lambda: 0 < value(service, "xsptrace_steps_per_second", stays.pid) < 2000, 10, "a step has 0.5 ms of sleep")
    wait_for(lambda: value(service, "xsptrace_snapshots_kept") == 2, 10, "snapshots")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        check("version=0.0.4" in answer.headers["Content-Type"], answer.headers)
        check("xsptrace_step_seconds" in metrics(answer.read().decode()), "the port's metrics")
    equal(status(service.tool.named("xsp-metrics")[0])["Uid"].split()[0], str(NOBODY), "who answers there")
    service.ctl("disarm", OURS)
    service.wait_state(stays.pid, "disarmed")
    wait_text_clean([stays.pid])
    service.ctl("snapshot", status=NO_TARGET)
    service.ctl("arm", "numbers")
    service.wait_state(stays.pid)
    service.ctl("arm", "nobody's", status=NO_TARGET)
    service.ctl("dance", status=USAGE)
    service.end()
    wait_text_clean([stays.pid])
    equal(len(service.kept()), 2, "the end of the service is no snapshot")
    check(stays.process.poll() is None, "the target goes on")
    service.ctl("status", status=SERVER)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@case
def killed_and_started_again(folder):
    """By SIGKILL: recorders end and leave nothing; the next one goes on with the same targets."""
    service = Service(folder, {"numbers": NUMBERED})
    targets = [Numbered(folder, f"counters{i}") for i in range(2)]
    for _ in range(3):
        for t in targets:
            service.wait_state(t.pid)
        service.ctl("snapshot")
        kept = service.kept()
        service.process.kill()
        finish(service.process)
        service.tool.wait_gone(what="without the service")
        wait_text_clean([t.pid for t in targets])
        equal(service.kept(), kept, "snapshots stay, and nothing comes")
        service.start()
    for t in targets:
        service.wait_state(t.pid)
        check(t.process.poll() is None, "the target goes on")
    service.end()


@case
def others_may_do_nothing(folder):
    """Neither command nor read; a group may command, if the configuration says so."""
    service = Service(folder, {"numbers": NUMBERED})
    target = Numbered(folder, "counters")
    service.wait_state(target.pid)
    path = service.ctl("snapshot").stdout.strip()
    nobody = {"user": NOBODY, "group": 60000, "extra_groups": []}
    for mode in 0o600, 0o666:  # the second one as if somebody had opened it by mistake: then the peer is refused
        os.chmod(service.socket, mode)
        for words in ["status"], ["list"], ["snapshot"], ["disarm"]:
            done = subprocess.run([service.tool.path, "ctl", "--socket", service.socket, *words], capture_output=True, text=True, check=False, **nobody)
            equal((done.returncode, path in done.stdout), (PERMISSION, False), f"{words} by another user: {done.stdout}{done.stderr}")
    for tried in ["cat", path], ["ls", service.snapshots], ["touch", f"{service.snapshots}/xsptrace.x.xspt"]:
        check(subprocess.run(tried, capture_output=True, check=False, **nobody).returncode != 0, "another user can", tried)
    equal(service.state(target.pid), "armed", "nothing has changed")
    check(service.tool.run("service", service.config).returncode != OK and "another service runs" in service.tool.run("service", service.config, stderr=subprocess.STDOUT, text=True).stdout,
          "a second service")
    service.end()
    with open("/etc/group", encoding="utf-8") as f:
        name, number = next((l.split(":")[0], int(l.split(":")[2])) for l in f if int(l.split(":")[2]) > 0)
    service = Service(folder, {"numbers": NUMBERED}, group=name)
    for groups, wanted in (([number], OK), ([number + 60000], PERMISSION)):
        done = subprocess.run([service.tool.path, "ctl", "--socket", service.socket, "status"], capture_output=True, text=True, check=False,
                              user=NOBODY, group=60000, extra_groups=groups)
        equal(done.returncode, wanted, f"with groups {groups}: {done.stderr}")
    service.end()


@case
def manager(folder):
    """What systemd gives and wants: readiness, a watchdog, priorities. And what is wrong with a configuration."""
    at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    at.bind(f"{folder}/notify")
    at.settimeout(60)
    service = Service(folder, {"numbers": NUMBERED})
    service.end()
    service.start(NOTIFY_SOCKET=f"{folder}/notify", WATCHDOG_USEC="4000000", JOURNAL_STREAM="8:1")
    equal(at.recv(512), b"READY=1", "the first message")
    said = [at.recv(512) for _ in range(8)]
    check(said.count(b"WATCHDOG=1") >= 3, "one a second", said)
    check(any(s.startswith(b"STATUS=") for s in said), "what systemctl shows", said)
    log = service.end()
    own = [line for line in log.splitlines() if not line.startswith("xsptrace: ")]  # those are of a recorder
    check(own and all(re.match(r"<[3-6]>\S", line) for line in own), "priorities", log)
    while (last := at.recv(512)) != b"STOPPING=1":
        check(last.startswith((b"STATUS=", b"WATCHDOG=1")), last)
    with open(service.config, "a", encoding="utf-8") as f:
        f.write("trigger = step>never\noption = --output=/etc/passwd\nwhat\n")
    lines = len(open(service.config, encoding="utf-8").readlines())
    done = xsptrace("service", "--check", service.config, status=USAGE)
    equal(re.findall(r":(\d+): ", done.stderr), [str(lines - 2), str(lines - 1), str(lines)], f"bad lines\n{done.stderr}")
    xsptrace("service", f"{folder}/nothing", status=USAGE)


@case
def unit(_):
    """What systemd thinks of the unit that is installed."""
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    done = run(["systemd-analyze", "security", "--offline=yes", f"{ROOT}/tools/package/service/xsptrace.service"], text=True)
    check(float(re.search(r"Overall exposure level .*: ([\d.]+)", done.stdout)[1]) < 3.0, done.stdout[-200:], done.stderr)


@case
def snapshots_go(folder):
    """By their size; the newest stay, and each removal is said."""
    service = Service(folder, {"numbers": NUMBERED}, keep_size="1M")
    target = Numbered(folder, "counters")
    service.wait_state(target.pid)
    for i in range(6):
        path = f"{service.snapshots}/xsptrace.old.1.2026010{i}-000000.step.xspt"
        with open(path, "wb") as f:
            f.truncate(300000)
        os.utime(path, (1e9 + i, 1e9 + i) if i < 2 else None)
    newest = service.ctl("snapshot").stdout.strip()
    wait_for(lambda: sum(os.path.getsize(p) for p in service.kept()) <= 1 << 20, 20, "old ones to go")
    check(newest in service.kept(), "the newest is kept", service.kept())
    gone = 7 - len(service.kept())
    log = service.end()
    equal(len(re.findall(r" is removed: ", log)), gone, f"what is said\n{log}")
    equal(len(re.findall(r"older than keep-age", log)), 2, "of those, too old")


def figures_of(process):
    """Descriptors, and KiB of memory."""
    return len(os.listdir(f"/proc/{process.pid}/fd")), int(status(process.pid)["VmRSS"].split()[0])


def come_and_go(folder, count):
    """`count` targets, some seconds at most each, beside one that stays and one that means harm."""
    small = f"{folder}/{SMALL}small"
    shutil.copy(workload("sleeper"), small)
    watch = f"comm = {SMALL}*\nmin-age = 0\noption = --profile\nflight-record = 5s,8M\n"
    service = Service(folder, {"numbers": NUMBERED, "small": watch}, max_targets=6, max_targets_per_user=3)
    stays = Numbered(folder, "counters")
    service.wait_state(stays.pid)
    recorder = service.tool.named("xsp-recorder")
    shutil.copy(f"{SCRIPTS}/service_hostile.py", folder)
    hostile = start(["/usr/bin/python3", f"{folder}/service_hostile.py", SMALL, 3600, service.process.pid, *service.tool.processes()],
                    user=NOBODY, group=NOBODY, extra_groups=[], stdout=open(f"{folder}/signals", "wb"))
    chance, running, begun, before, seen = random.Random(7), [], 0, figures_of(service.process), set()
    while begun < count or running:
        while begun < count and len(running) < 10:
            until_recorded = begun % 20 == 0  # the others go whenever they do
            running.append((start([small], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
                            time.monotonic() + (600 if until_recorded else chance.choice([0.01, 0.1, 1, 3])), until_recorded))
            begun += 1
        for child, end, until_recorded in running:
            if time.monotonic() > end or until_recorded and str(child.pid) in seen:
                check(not until_recorded or str(child.pid) in seen, f"{child.pid} is not recorded", service.ctl("status").stdout)
                child.send_signal(chance.choice([signal.SIGTERM, signal.SIGKILL]))
                child.wait()
        running = [r for r in running if r[0].returncode is None]
        armed = set(re.findall(rf"^ *(\d+)  {SMALL}small .* armed", service.ctl("status").stdout, re.M))
        seen |= armed
        time.sleep(0.05)
        if begun == count // 4:
            before = figures_of(service.process)
    check(hostile.poll() is None and alive(service.process.pid), "both live", service.tool.output()[-3000:])
    equal(service.state(stays.pid), "armed", "the one that stays")
    equal([r for r in recorder if alive(r)], recorder, "by the same recorder")
    equal(os.path.getsize(f"{folder}/signals"), 0, "signals that reached us")
    path = service.ctl("snapshot", stays.pid).stdout.strip()
    equal(xsptrace("export", "-q", path, "-o", f"{folder}/out.json").stderr, "", "complaints about its snapshot")
    with open(service.metrics, encoding="utf-8") as f:
        found = metrics(f.read())
    check(len(found["xsptrace_cpu_seconds_total"]) <= 6, "no more than max-targets have metrics")
    check(len(seen) >= count // 20, "those that waited for it were recorded", seen)
    hostile.kill()
    hostile.wait()
    wait_for(lambda: len(re.findall(r"^ *\d+  ", service.ctl("status").stdout, re.M)) == 1, 60, f"only one is left\n{service.ctl('status').stdout}")
    after = figures_of(service.process)
    failed, started_ = (value(service, f"xsptrace_recorders_{w}_total") for w in ("failed", "started"))
    print(f"  {count} targets and {started_:.0f} recorders ({failed:.0f} failed): descriptors {before[0]} and {after[0]}, KiB {before[1]} and {after[1]}, "
          f"files {len(os.listdir(folder))}, snapshots {len(service.kept())}")
    check(after[0] <= before[0] and after[1] <= before[1] + 512, "descriptors and memory are flat", before, after)
    equal([p for p in service.kept() if not re.search(r"\.(ctl|sigkill)\.xspt$", p)], [], "snapshots of what ended in order")
    log = service.end()
    check("\x1b" not in log and not re.search(r"[\x00-\x08\x0b-\x1f]", log), "the log is harmless")
    wait_text_clean([stays.pid])
    stays.process.terminate()
    finish(stays.process)


@case
def targets_come_and_go(folder):
    come_and_go(folder, 200)


@case(long="a thousand targets")
def a_thousand_targets(folder):
    come_and_go(folder, 1000 if LONG else 200)


main()
