# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end cases share: running xsptrace and workloads, reading traces, skipping.

A case is a function marked @case. It gets an empty folder, and fails by an exception. ctest runs each in a process of
its own, beside others: a case waits for conditions, and holds on a busy machine. One that cannot says why:
@case(quiet="what it measures") runs alone. @case(long="why") runs with `tools/test --all`.
A file of cases is a program: `exactness.py [NAME...]` runs all but the long ones, or the named ones. Exit status
0: all passed; 1: something failed; 77: this machine cannot trace (the reason is printed as `SKIP: ...`).

The truth always comes from somewhere else than xsptrace: the workload's own counts, the bytes an
untraced run prints, the kernel's /proc. Python's standard library only.
"""
import collections
import ctypes
import errno
import fnmatch
import functools
import glob
import gzip
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
XSPTRACE = os.path.abspath(os.environ.get("XSPTRACE", os.path.join(ROOT, "build/release/xsptrace")))
WORKLOADS = os.path.abspath(os.environ.get("WORKLOADS", os.path.join(os.path.dirname(XSPTRACE), "workloads")))
SCRIPTS = os.path.join(ROOT, "tests/workloads")
# Options that turn off what is on by default. The brake drops calls, so cases that count turn it off; brake.py tests it.
NO_BRAKE = ["--max-overhead", "off"]
# defaults.py tests the rest; most other files turn on only what they look at. A file that checks what xsptrace promises for every
# program keeps the shipped defaults, by main(declined=...). A case there that wants them off passes AS_ASKED.
AS_ASKED = ["--waits=off", "--python=off", "--sample=off"]
TABLE = "--summary=text"  # the end of a recording: the table of all names instead of one screen
DECLINED = [*NO_BRAKE, *AS_ASKED, TABLE]
# Options for every recording. XSPTRACE_EXTRA chooses another way to attach, with which some cases run again.
ATTACH = os.environ.get("XSPTRACE_EXTRA", "").split()
EXTRA = [*DECLINED, *ATTACH]
# An option turns on more than itself: these are the --X=off that must then go.
TAKES = {"-q": {TABLE}, "--profile": set(AS_ASKED), "--sample": {"--python=off"}, "--waits": {"--python=off"}, "--wait-stacks": {"--waits=off", "--python=off"}}

LONG = "XSP_LONG" in os.environ  # tools/test --all: as often and as long as the issues ask
SANITIZED = "XSP_SANITIZED" in os.environ  # xsptrace is a build with sanitizers

# user/base/error.h
OK, FAILED, USAGE, NO_TARGET, PERMISSION, TARGET, NO_MATCH, KERNEL, OUTPUT, CAPTURE = range(10)
CANNOT_RUN, NOT_FOUND = 126, 127

_cases = []
_children = []
_schemas = {}


def case(function=None, *, quiet="", long=""):
    """Marks a case. CMakeLists.txt reads these lines too, so the arguments stand on the line of @case."""
    if function is None:
        return lambda f: case(f, quiet=quiet, long=long)
    function.quiet, function.long = quiet, long
    _cases.append(function)
    return function


class Skip(Exception):
    """One case cannot be run here; the others can."""


def check(condition, message, *details):
    if not condition:
        raise AssertionError("\n".join([message] + [str(d) for d in details]))


def equal(got, expected, what):
    if isinstance(got, set) and isinstance(expected, set) and len(expected) > 9:
        check(got == expected, f"{what}: too many: {sorted(got - expected)!r}, missing: {sorted(expected - got)!r}")
    check(got == expected, f"{what}: got {got!r}, expected {expected!r}")


# ---- can this machine trace at all? Asked of the kernel, not of xsptrace -------------


def why_not():
    """None, or why BPF uprobes cannot work here."""
    if os.geteuid() != 0:
        return "not root"
    release = tuple(int(x) for x in re.findall(r"\d+", platform.release())[:2])
    if release < (5, 15):
        return f"Linux {platform.release()} is older than 5.15"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "the kernel has no BTF (/sys/kernel/btf/vmlinux)"
    if not os.path.exists("/sys/bus/event_source/devices/uprobe/type"):
        return "the kernel has no uprobes (/sys/bus/event_source/devices/uprobe)"
    # bpf(BPF_MAP_CREATE) of an array with one element
    attributes = (ctypes.c_uint32 * 32)(2, 4, 8, 1)
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
    fd = libc.syscall(number, 0, ctypes.byref(attributes), ctypes.sizeof(attributes))
    if fd < 0:
        return f"bpf(BPF_MAP_CREATE): {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return None


# ---- processes -----------------------------------------------------------------------


def workload(name):
    path = os.path.join(WORKLOADS, name)
    check(os.path.exists(path), f"{path} is not built")
    return path


def start(arguments, **options):
    """Starts a process that is killed at the end of the case if it still lives."""
    child = subprocess.Popen([str(a) for a in arguments], **options)
    _children.append(child)
    return child


def start_32_bit():
    """A program of 32 bits, where the kernel runs such."""
    try:
        return start([workload("elf32")])
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            raise Skip("this kernel runs no 32-bit programs") from error
        raise


TORCH = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")


@functools.cache
def has_torch():
    """Has Debian's Python PyTorch? To import it would take seconds."""
    return os.path.exists(TORCH) and run([TORCH, "-c", "import importlib.util as i; i.find_spec('torch').name"]).returncode == 0


def need_torch():
    if not has_torch():
        raise Skip(f"{TORCH} has no torch (Debian: python3-torch)")


def torch_roots(others):
    """None is this machine's PyTorch; other versions are in root folders of their own (tests/torch)."""
    need_torch()
    return [None, *sorted(glob.glob(os.path.expanduser("~/.cache/xsptrace-tests/torch/*/")))] if others else [None]


def torch_script(folder, root, script, *arguments):
    """The command that runs a script, which is copied to the folder, with one of them."""
    shutil.copy(script, folder)
    name = os.path.basename(script)
    if root:
        return [f"{ROOT}/tests/torch/enter", root, folder, "/usr/bin/python3", f"/mnt/shared/{name}", *arguments]
    return [TORCH, f"{folder}/{name}", *arguments]


def run(arguments, timeout=60, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("errors", "replace")
    return subprocess.run([str(a) for a in arguments], timeout=timeout, **options)


def as_asked(arguments):
    """Without the options of AS_ASKED, and the table, that contradict the others."""
    words = [str(a) for a in arguments]
    own = [w.partition("=")[0] for w in words[:words.index("--") if "--" in words else None] if w not in (*AS_ASKED, TABLE)]
    taken = set().union(*(TAKES.get(w, set()) for w in own))
    return [w for w in words if w not in taken]


def xsptrace(*arguments, status=OK, timeout=60, **options):
    """Runs xsptrace to its end and checks the status (None: any)."""
    records = arguments and str(arguments[0]).startswith("-")  # other verbs are words
    done = run([XSPTRACE, *(as_asked([*DECLINED, *arguments]) if records else arguments)], timeout=timeout,
               **options)
    if status is not None:
        check(done.returncode == status,
              f"xsptrace {' '.join(str(a) for a in arguments)}: status {done.returncode}, "
              f"expected {status}", "--- stdout", done.stdout, "--- stderr", done.stderr)
    return done


def schema_of(verb):
    """What --json-schema says, as a validator; None where python3-jsonschema is not installed."""
    if verb not in _schemas:
        try:
            import jsonschema  # pylint: disable=import-outside-toplevel
        except ImportError:
            return None
        _schemas[verb] = jsonschema.Draft202012Validator(json.loads(xsptrace(verb, "--json-schema").stdout))
    return _schemas[verb]


def json_report(verb, *arguments, **options):
    """What analyze or compare say, as JSON, which is as the schema has it."""
    made = json.loads(xsptrace(verb, *arguments, "--format", "json", **options).stdout)
    if schema_of(verb):
        for error in schema_of(verb).iter_errors(made):
            raise AssertionError(f"{verb}: not as --json-schema has it: {error.json_path}: {error.message[:400]}")
    return made


def kill_all():
    for child in _children:
        if child.poll() is None:
            child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe:
                pipe.close()
    _children.clear()


def wait_for(condition, seconds, what):
    """Polls until condition() is true; its value. Fails after four times what it should take: others may
    have the processors."""
    seconds *= 4
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"waited {seconds} s for: {what}")
        time.sleep(0.01)


def start_ready(arguments, **options):
    """Starts a workload with --wait and returns when it waits (it says so on stderr)."""
    child = start(arguments, stderr=subprocess.PIPE, **options)
    line = child.stderr.readline()
    check(b"ready" in line, f"{arguments[0]}: not ready", line)
    return child


def finish(child, seconds=60):
    """Waits for the end of a child; its status (negative: a signal)."""
    return child.wait(timeout=seconds)


def own_pages_of_code(pid, of=""):
    """KiB of mapped code (of files with this in their paths) that the process has copies of: where breakpoints are."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
        maps = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", f.read(), flags=re.M)
    return sum(int(re.search(r"^Anonymous: +(\d+)", m, re.M)[1]) for m in maps if " r-xp " in m[:80] and of in m)


def libc_path():
    """The C library that this machine's programs map."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        return next((l.split()[-1] for l in f if l.rstrip().endswith("/libc.so.6")), None)


def private_libc(folder):
    """The start of a command that runs a program with a C library of its own: nobody else on this machine maps it."""
    loader = next((x for x in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(x)), None)
    path = libc_path()
    if not loader or not path:
        raise Skip("no glibc here")
    shutil.copy(path, f"{folder}/libc.so.6")
    return [loader, "--library-path", folder]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Recording:
    """xsptrace -p in the background. `with Recording(...) as r:` returns when probes are live."""

    def __init__(self, folder, *arguments, name="xsptrace", table=None, under=()):
        """table: a file for the summary, which else is mixed with the messages. under: a command that becomes it."""
        self.log = os.path.join(folder, f"{name}.log")
        self.arguments = [*under, XSPTRACE, *as_asked([*EXTRA, *arguments])]
        with open(self.log, "wb") as log, open(table or os.devnull, "wb") as stdout:
            self.process = start(self.arguments, stdin=subprocess.DEVNULL,
                                 stdout=stdout if table else log, stderr=log, cwd=folder)

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def live(self):
        """The line that xsptrace writes when the probes report."""
        check(self.process.poll() is None, f"xsptrace ended: {self.process.returncode}",
              " ".join(self.arguments), self.output())
        return re.search(READY, self.output())

    def wait_live(self, seconds=20):
        wait_for(self.live, seconds, f"probes in place\n{self.output()}")
        return self

    def stop(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)

    def wait(self, status=OK, seconds=60):
        got = self.process.wait(timeout=seconds)
        check(status is None or got == status, f"xsptrace: status {got}, expected {status}",
              " ".join(self.arguments), self.output())
        return self.output()

    def __enter__(self):
        return self.wait_live()

    def __exit__(self, kind, value, trace):
        if kind:
            sys.stdout.write(f"--- {' '.join(self.arguments)}\n")  # its log: show_logs()


def broker_of(pid):
    """The privileged process of a recording."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                if comm.read().strip() == "xsp-broker":
                    return int(child)
    raise AssertionError("no broker")


READY = r"(?i)\b(profiling|tracing)\b"


# ---- traces --------------------------------------------------------------------------


class Trace:
    """A Chrome trace, by names."""

    def __init__(self, path):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as f:
            self.json = json.load(f)
        self.spans = [e for e in self.json["traceEvents"]
                      if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")]
        self.losses = self.json["xsptrace_losses"]
        self.timeline = self.json["xsptrace_timeline"]
        self.lost_by_name = collections.Counter()
        for row in self.json.get("xsptrace_lost_by_function", []):
            self.lost_by_name[row["name"]] += row["entries"]
        self.calls = collections.Counter(e["name"] for e in self.spans)
        self.not_returned = collections.Counter(
            e["name"] for e in self.spans
            if e["args"].get("finished") is False or e["args"].get("unwound")
            or e["args"].get("exit lost"))

    def lost(self):
        return {k: v for k, v in self.losses.items() if v and
                k in ("lost_entries", "lost_exits", "lost_other", "lost_names", "missed_hits",
                      "untracked")}

    def check_nothing_lost(self):
        equal(self.lost(), {}, "losses")
        equal(self.timeline["orphan_exits"], 0, "exits without an entry")

    def check_nesting(self):
        """On one row, spans nest: none overlaps another one's end."""
        rows = collections.defaultdict(list)
        for e in self.spans:
            # nanoseconds as integers: the three decimals are exact
            begin = round(e["ts"] * 1000)
            rows[e["pid"], e["tid"]].append((begin, -round(e["dur"] * 1000), e["name"]))
        for key, spans in rows.items():
            stack = []
            for begin, minus, name in sorted(spans):
                end = begin - minus
                while stack and stack[-1][0] <= begin:
                    stack.pop()
                # the conversion to a double may cost some nanoseconds
                check(not stack or end <= stack[-1][0] + 2,
                      f"{key}: {name} [{begin}, {end}] sticks out of {stack[-1:]}")
                stack.append((end, name))


def total(counter, pattern):
    """The sum over the names that match: a `*` in a workload's name stands for anything."""
    if "*" not in pattern:
        return counter.get(pattern, 0)
    expression = re.compile(".*".join(re.escape(p) for p in pattern.split("*")), re.S)
    return sum(v for k, v in counter.items() if expression.fullmatch(k))


def truth(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def check_calls(trace, expected, what="calls"):
    """Spans (and lost entries) by name against the workload's own counts, to the last one."""
    wrong = []
    for name, calls in expected["calls"].items():
        spans, lost = total(trace.calls, name), total(trace.lost_by_name, name)
        if spans + lost != calls:
            wrong.append(f"{name}: {spans} spans + {lost} lost, {calls} calls")
    check(not wrong, f"{what} differ:", *wrong, trace.losses, trace.timeline)


def check_unwound(trace, expected):
    wrong = []
    for name, calls in expected["calls"].items():
        got, want = total(trace.not_returned, name), expected["unwound"].get(name, 0)
        if got != want:
            wrong.append(f"{name}: {got} spans not left by a return, {want} expected of {calls}")
    check(not wrong, "ways out differ:", *wrong, trace.timeline)


# What a launched script does first: on a busy machine PyTorch is attached to half a second and more after it was loaded, and ten
# seconds where others take the CPUs. Its code is changed then, or the agent is there.
WHEN_TORCH_IS_TRACED = r"""
import os, re, time, torch
def changed():
    with open("/proc/self/smaps") as f:
        text = f.read()
    # probes are in its code; the agent has a file of rings
    return re.findall(r" r-xp .*/libtorch(?:.*\n)*?Private_Dirty: +(\d+)", text) + re.findall(r"memfd:xsptrace-rings", text)
# on a busy machine the tool gets less of it, and the last probes come later
before, same, enough = None, 0, 12 * max(1, round(os.getloadavg()[0] / 2 / os.cpu_count()))
for _ in range(600):
    now = changed()
    same = same + 1 if now == before and any(n != "0" for n in now) else 0
    if same >= enough: break
    before = now
    time.sleep(0.05)
"""


def torch_when_traced(*command):
    """A script and its arguments, which begins when PyTorch is attached to."""
    begin = WHEN_TORCH_IS_TRACED + "import runpy, sys\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    return [TORCH, "-c", begin, *command]


def record_launched(folder, command, *options, status=OK, name="launched", timeout=60):
    """xsptrace OPTIONS -- COMMAND --out FILE; the trace and the workload's truth."""
    out, facts = f"{folder}/{name}.json", f"{folder}/{name}.truth"
    xsptrace(*EXTRA, *options, "-o", out, "--", command[0], "--out", facts, *command[1:],
             status=status, timeout=timeout)
    return Trace(out), truth(facts)


def record_attached(folder, command, *options, name="attached", seconds=60, **process):
    """The workload waits, xsptrace attaches, the workload works and ends."""
    out, facts = f"{folder}/{name}.json", f"{folder}/{name}.truth"
    child = start_ready([command[0], "--wait", "--out", facts, *command[1:]], **process)
    with Recording(folder, "-p", child.pid, *options, "-o", out) as recording:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child, seconds), 0, f"status of {command[0]}")
        recording.wait(seconds=seconds)
    return Trace(out), truth(facts)


def check_as_shipped(trace, declined=()):
    """The recording has the shipped defaults, or none if the case declined them. (xsptrace itself turns waits off where they cost other
    programs too much.)"""
    said = trace.json["xsptrace_capture"]
    equal(said["waits"] == said["samples"] == "off", bool(declined), "--waits and --sample are off")


def only_x86():
    if platform.machine() != "x86_64":
        raise Skip("machine code of x86-64")


def says_no_loss(summary):
    """No call was lost. The summary says "nothing" if no stack was torn either, else "no event"."""
    return bool(re.search("^(nothing|no event) was lost$", summary, re.M))


def untraced(command, **options):
    """Standard output of a run without a tracer."""
    done = run(command, **options)
    equal(done.returncode, options.get("status", 0), f"status of {command[0]} untraced")
    return done.stdout


# ---- sanitizers ----


def start_sanitizer_log(path):
    """What a build with sanitizers finds in any of its processes goes there: sanitizer_log.c."""
    with open(path, "wb") as f:
        f.truncate(65536)
    os.chmod(path, 0o666)  # some cases run xsptrace as another user
    os.environ["XSPTRACE_SANITIZER_LOG"] = path


def check_sanitizer_log(path, skipped=False):
    """skipped: perhaps before xsptrace ran at all."""
    with open(path, "rb") as f:
        mapped, found = int.from_bytes(f.read(4), sys.byteorder), f.read()[4:].rstrip(b"\0")
    check(mapped or skipped or not SANITIZED, "xsptrace has no sanitizers, or could not map their log")
    check(not found, "a sanitizer reports:", found.decode(errors="replace"))


# ---- running -------------------------------------------------------------------------


def cpu_of_others():
    """Seconds that the CPUs were busy, those of this case's ended processes taken out."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, irq, softirq, steal = (int(x) for x in f.readline().split()[1:9])
    own = os.times()
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - sum(own[:4])


def show_logs(folder):
    """What recordings said: a failure that a busy machine alone shows cannot be had again."""
    for path in sorted(glob.glob(f"{folder}/**/*.log", recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as f:
            sys.stdout.write(f"--- {os.path.basename(path)}\n{f.read()[-4000:]}\n")


def main(traces=True, declined=None):
    """Runs the cases of this file. traces=False: they need neither a kernel nor xsptrace. declined: the options that turn defaults
    off in its recordings, if not all of DECLINED."""
    if declined is not None:
        # in place, as the files have imported these lists
        DECLINED[:] = declined
        EXTRA[:] = [*declined, *ATTACH]
    if traces:
        reason = why_not()
        if reason:
            print(f"SKIP: {reason}")
            sys.exit(77)
        check(os.path.exists(XSPTRACE), f"{XSPTRACE} is not built")
        if not os.path.exists("/sys/kernel/tracing/events"):  # --attach=tracefs
            run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"])
    names = sys.argv[1:]
    cases = [c for c in _cases if c.__module__ == "__main__"]  # not of what it imports
    chosen = [c for c in cases if (any(fnmatch.fnmatch(c.__name__, n) for n in names) if names else not c.long)]
    check(chosen, f"no such case; there are: {' '.join(c.__name__ for c in cases)}")
    failed, skipped = [], []
    for function in chosen:
        folder = tempfile.mkdtemp(prefix=f"xsptrace-{function.__name__}-")
        os.chmod(folder, 0o755)
        begun, busy, own = time.monotonic(), cpu_of_others(), sum(os.times()[:4])
        log = f"{folder}.sanitizers"
        start_sanitizer_log(log)
        try:
            early = False
            try:
                function(folder)
            except Skip:
                early = True
                raise
            finally:
                check_sanitizer_log(log, skipped=early)
            word = "ok"
        except Skip as e:
            word = f"skipped: {e}"
            print(f"SKIP: {function.__name__}: {e}")
            skipped.append(function.__name__)
        except Exception:  # a case may fail in any way; the others run
            word = "FAILED"
            traceback.print_exc(limit=-4, file=sys.stdout)
            show_logs(folder)
            failed.append(function.__name__)
        finally:
            kill_all()
            shutil.rmtree(folder, ignore_errors=True)
            os.unlink(log)
        seconds = time.monotonic() - begun
        quiet = function.quiet or os.environ.get("XSP_QUIET")
        if word == "FAILED" and quiet:
            share = (cpu_of_others() - busy) / seconds / os.cpu_count()
            print(f"NEEDS A QUIET MACHINE: {function.__name__} measures {quiet}; others had {share:.0%} of the CPUs")
        print(f"{function.__name__}: {word} ({seconds:.1f} s, {sum(os.times()[:4]) - own:.1f} of CPU time)", flush=True)
    if failed:
        print(f"{len(failed)} of {len(chosen)} failed: {' '.join(failed)}")
        sys.exit(1)
    if len(skipped) == len(chosen):
        sys.exit(77)
