# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel knows of the tool's processes and of its targets: who runs, with which
privileges, in which system call, and whether every page of code is that of its file.
"""
import collections
import os
import random
import re
import shutil
import signal
import struct
import tempfile
import time

from harness import EXTRA, READY as LIVE, XSPTRACE, alive, check, run, start, wait_for, workload

PAGE = os.sysconf("SC_PAGESIZE")
# /proc/PID/pagemap: Documentation/admin-guide/mm/pagemap.rst
PRESENT, SWAPPED, FILE_BACKED = 1 << 63, 1 << 62, 1 << 61
BPF_LINK_CREATE = 28  # linux/bpf.h
NR_BPF = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
NOBODY = 65534

Mapping = collections.namedtuple("Mapping", "start end permissions offset inode path")
Difference = collections.namedtuple("Difference", "path address offset file memory")


# ---- code in memory against the file -------------------------------------------------


def mappings(pid):
    with open(f"/proc/{pid}/maps", "rb") as f:
        for line in f:
            words = line.split(None, 5)
            begin, end = (int(x, 16) for x in words[0].split(b"-"))
            path = words[5].rstrip(b"\n").decode(errors="replace") if len(words) > 5 else ""
            yield Mapping(begin, end, words[1].decode(), int(words[2], 16), int(words[4]), path)


def own_pages(pagemap, mapping):
    """Addresses of pages that are not simply those of the page cache."""
    data = os.pread(pagemap, (mapping.end - mapping.start) // PAGE * 8, mapping.start // PAGE * 8)
    for i, entry in enumerate(struct.unpack(f"<{len(data) // 8}Q", data)):
        if entry & SWAPPED or entry & PRESENT and not entry & FILE_BACKED:
            yield mapping.start + i * PAGE


def text_differences(pid, enough=1 << 30):
    """The bytes of files' executable mappings that differ from the file. A process that is gone has
    none."""
    found = []
    try:
        pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY)
    except FileNotFoundError:
        return found
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        for m in mappings(pid):
            if "x" in m.permissions and m.inode and len(found) < enough:
                found += mapping_differences(pid, pagemap, memory, m, enough)
    except (FileNotFoundError, ProcessLookupError):
        pass
    finally:
        os.close(pagemap)
        os.close(memory)
    return found


def mapping_differences(pid, pagemap, memory, m, enough):
    pages = list(own_pages(pagemap, m))
    if not pages:
        return []
    found = []
    try:
        file = os.open(f"/proc/{pid}/map_files/{m.start:x}-{m.end:x}", os.O_RDONLY)
    except FileNotFoundError:  # unmapped since
        return found
    try:
        for address in pages:
            offset = m.offset + address - m.start
            there = os.pread(memory, PAGE, address)
            wanted = os.pread(file, PAGE, offset).ljust(PAGE, b"\0")
            if there != wanted:
                found += [Difference(m.path, address + i, offset + i, wanted[i], there[i])
                          for i in range(len(there)) if there[i] != wanted[i]]
            if len(found) >= enough:
                break
    finally:
        os.close(file)
    return found


def wait_text_clean(pids, seconds=5, what=""):
    """Whoever cleans up has some seconds; then no byte may differ."""
    end = time.monotonic() + seconds
    while any(text_differences(pid, 1) for pid in pids):
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    else:
        return
    differences = {pid: d for pid in pids if (d := text_differences(pid))}
    if not differences:
        return
    lines = [f"process {pid}: {len(d)} bytes, first {d[0].path}+{d[0].offset:#x}: "
             f"{d[0].file:02x} became {d[0].memory:02x}" for pid, d in differences.items()]
    check(False, f"code differs from its file {seconds} s afterwards {what}", *lines)


def stopped_text_clean(pid, seconds=5, what=""):
    """The same of a process whose mappings would change meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: status(pid).get("State", "X")[0] in "TX", 5, "the target to stop")
        wait_text_clean([pid], seconds, what)
    finally:
        os.kill(pid, signal.SIGCONT)


# ---- processes -----------------------------------------------------------------------


def status(pid, tid=None):
    """/proc/PID/status as a dictionary, empty when it is gone."""
    try:
        with open(f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status",
                  encoding="utf-8", errors="replace") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def threads(pid):
    try:
        return [int(t) for t in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def kernel_stacks(pid):
    """Where its threads wait: distinguishes slow from hanging."""
    found = []
    for tid in threads(pid):
        try:
            with open(f"/proc/{pid}/task/{tid}/stack", encoding="ascii") as f:
                found.append(f"  {tid}: " + " < ".join(re.findall(r"\] (\w+)", f.read())[:6]))
        except OSError:
            continue
    return found


def in_link_create(pid, least=32):
    """True while a thread of it attaches that many sites (to calibrate, it attaches few)."""
    for tid in threads(pid):
        try:
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
                words = f.read().split()
            if words[:1] != [str(NR_BPF)] or int(words[1], 16) != BPF_LINK_CREATE:
                continue
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
                # union bpf_attr, link_create.uprobe_multi.cnt
                f.seek(int(words[2], 16) + 48)
                if int.from_bytes(f.read(4), "little") >= least:
                    return True
        except OSError:
            continue
    return False


def signal_to(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def random_from_clock():
    """A generator whose seed is printed, so that a failure can be repeated."""
    seed = int(os.environ.get("XSP_SEED", time.time_ns() % 1000000))
    print(f"  seed {seed}")
    return random.Random(seed)


def started(pid):
    """When, which tells a process from a later one with its number; None when it has ended. One whose main
    thread is a zombie has not, while another still closes what they had: links, for up to ten seconds."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            words = f.read().rpartition(")")[2].split()
        return None if words[0] in "ZX" and len(threads(pid)) < 2 else words[19]
    except OSError:
        return None


def extra(arguments):
    """Options of every recording; other verbs are words."""
    return EXTRA if str(arguments[0]).startswith("-") else []


class Tool:
    """A copy of xsptrace in the case's folder. Its processes are those that run this very file, so
    that they are told from anybody else's xsptrace, whoever their parent is."""

    def __init__(self, folder):
        self.folder = folder
        self.path = f"{folder}/xsptrace"
        if os.path.exists(self.path):
            os.unlink(self.path)  # a process of an earlier one may run it yet
        shutil.copy(XSPTRACE, self.path)
        os.chmod(self.path, 0o755)
        file = os.stat(self.path)
        self.file = file.st_dev, file.st_ino
        self.log = f"{folder}/xsptrace.log"
        self.process = None
        self.seen = {}  # what dies has no file any more

    def start(self, *arguments, prefix=(), **options):
        """In the background; what it writes goes to a file."""
        self.seen = {}
        with open(self.log, "wb") as log:
            self.process = start([*prefix, self.path, *extra(arguments), *arguments], stdout=log,
                                 stderr=log, cwd=self.folder, **options)
        return self.process

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_live(self, seconds=20):
        def live():
            check(self.process.poll() is None, f"xsptrace ended: {self.process.returncode}",
                  self.output())
            return re.search(LIVE, self.output())
        wait_for(live, seconds, "probes in place")

    def run(self, *arguments, timeout=60, **options):
        return run([self.path, *extra(arguments), *arguments], timeout=timeout, cwd=self.folder,
                   **options)

    def processes(self):
        found = []
        for name in os.listdir("/proc"):
            try:
                file = os.stat(f"/proc/{name}/exe") if name.isdigit() else None
            except OSError:
                continue
            if file and (file.st_dev, file.st_ino) == self.file and alive(int(name)):
                found.append(int(name))
                self.seen.setdefault(int(name), started(name))
        return sorted(found)

    def dying(self):
        return [p for p, when in self.seen.items() if when and started(p) == when]

    def named(self, comm):
        """Its processes of that name, of which there must be some."""
        found = [p for p in self.processes() if status(p).get("Name") == comm]
        check(found, f"no process {comm}; there are:",
              *(f"{p} {status(p).get('Name')}" for p in self.processes()))
        return found

    def wait_link_create(self, later=0, seconds=20):
        """Waits for a process of it that is attaching right now, and was so `later` seconds before
        as well; None if it ended or records before such a moment was met."""
        end, next_scan, pids = time.monotonic() + seconds, 0, []
        while time.monotonic() < end and self.process.poll() is None:
            if time.monotonic() > next_scan:
                if re.search(LIVE, self.output()):
                    break
                pids, next_scan = self.processes(), time.monotonic() + 0.1
            for pid in pids:
                if in_link_create(pid):
                    time.sleep(later)
                    if not later or in_link_create(pid):
                        return pid
        return None

    def wait_gone(self, seconds=120, what=""):
        """Nothing of it is left running. Half a second is usual; while others fork a lot it is ten to
        forty, because for each site the kernel waits until no process is being copied (dup_mmap_sem)."""
        end = time.monotonic() + seconds
        while self.process.poll() is None or self.processes() or self.dying():
            if time.monotonic() > end:
                left = []
                for p in {*self.processes(), *self.dying()}:
                    left += [f"{p} {status(p).get('Name')}", *kernel_stacks(p)]
                self.kill()
                check(False, f"still running after {seconds} s {what}:", *left, self.output())
            time.sleep(0.02)

    def kill(self):
        for pid in self.processes():
            signal_to(pid, signal.SIGKILL)


def read_counters(path):
    """Rounds and wrong results."""
    with open(path, "rb") as f:
        return struct.unpack("<QQ", f.read(16))


class Witness:
    """A target with counters in a file (tests/workloads/witness.h)."""

    def __init__(self, folder, name, command, ends=False, **options):
        """ends: it may do so at any time."""
        # a file of its own: two of one name live at once, and one that is cut to nothing under a mapping kills its owner
        fd, self.counters = tempfile.mkstemp(".counters", name, folder)
        with open(fd, "wb") as f:
            f.write(bytes(16))
        os.chmod(self.counters, 0o666)
        self.process = start([self.counters if a is COUNTERS else a for a in command], **options)
        self.pid = self.process.pid
        wait_for(lambda: self.process.poll() is not None or self.counts()[0] > 0, 20,
                 f"{name} to work")
        if not ends:
            self.check_right()

    def counts(self):
        return read_counters(self.counters)

    def check_right(self, what=""):
        """It lives, it has gone on since the last time, and no result of it was wrong."""
        check(self.process.poll() is None, f"the target ended: {self.process.returncode} {what}")
        before = self.counts()[0]
        wait_for(lambda: self.process.poll() is not None or self.counts()[0] > before, 10,
                 f"the target to go on {what}")
        check(self.process.poll() is None, f"the target ended: {self.process.returncode} {what}")
        rounds, wrong = self.counts()
        check(wrong == 0, f"{wrong} wrong results of the target in {rounds} rounds {what}")


COUNTERS = object()


def copy_for_others(folder, name):
    """A workload, and what lies beside it if that is a folder of its own, where others than root reach it:
    what is built below /root they do not."""
    path = f"{folder}/{name}"
    if not os.path.exists(path):
        if os.path.dirname(name):
            shutil.copytree(os.path.dirname(workload(name)), os.path.dirname(path), symlinks=True)
        else:
            shutil.copy(workload(name), path)
    return path


def as_nobody():
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}
