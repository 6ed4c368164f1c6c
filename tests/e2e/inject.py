#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Injection: a library into running processes, which must not notice.

The target checks itself (tests/workloads/inject_target.cc): registers, red zone, errno, memory,
system calls that a stop could cut short, signals that a restarted call could swallow. Those of
vector state, errno, EINTR, the stack walk and rseq were seen to fail with an injector that leaves
the point out.
"""
import ctypes
import errno
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

import harness as h
from injecting import ENTRY, inject, library, mapped, tool

TIMES = 100 if h.LONG else 10


def variant(folder, number):
    """The library with another build id: it counts as another library."""
    path = f"{folder}/libvariant{number}.so"
    with open(library(), "rb") as f:
        data = bytearray(f.read())
    at = data.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    h.check(at > 0, "the library has no build id")
    data[at + 16:at + 20] = number.to_bytes(4, "little")
    with open(path, "wb") as f:
        f.write(data)
    return path


def threads(pid):
    return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))


def private_dirty_code(pid):
    """Bytes of file-backed code that differ from the file's page cache, in KiB."""
    total = 0
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
        code = False
        for line in f:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                code = words[1].startswith("r-x")
            elif code and words[0] == "Anonymous:":
                total += int(words[1])
    return total


def busy(folder, *arguments):
    return h.start([h.workload("inject_target"), "--out", f"{folder}/truth", *arguments])


def check_end(child, folder, what, seconds=60):
    h.equal(h.finish(child, seconds), 0, f"status of the target ({what})")
    truth = h.truth(f"{folder}/truth")
    h.equal(truth["wrong"], {"total": 0}, f"what the target saw ({what})")
    return truth


# ---- it works, unnoticed ----------------------------------------------------


@h.case
def busy_process(folder):
    """One busy process, many injections, into every kind of thread."""
    child = busy(folder, "--seconds", "600")
    before = None
    while before != (before := threads(child.pid)):
        time.sleep(0.5)  # all have begun
    stops, tids, late = [], set(), 0
    for n in range(TIMES):
        # threads that only allocate or load are safe at some moments only
        got, number = None, n
        if n % 4 != 3:
            tid = before[n % len(before)]
            got = tool(child.pid, variant(folder, n), ENTRY, 1500, tid,
                       *(["memfd"] if n % 3 == 0 else []))
            h.check(got["rc"] == 0 or got["rc"] == -110, "unexpected", got)
            late += got["rc"] != 0
        if not got or got["rc"] != 0:
            # another library: the time may have been over while a thread loaded the first one, which then is there
            number = n + TIMES if got else n
            got = inject(child.pid, variant(folder, number), memfd=n % 3 == 0)
        h.equal(got["memfd"], int(n % 3 == 0), "memfd")
        h.equal(got["cleaned"], 1, f"cleaned up after injection {n}")
        stops.append(got["stopped_ns"])
        tids.add(got["tid"])
        h.check(h.alive(child.pid), "the target ended")
        for k in {n, number}:
            os.unlink(f"{folder}/libvariant{k}.so")
    h.equal(threads(child.pid), before, "threads")
    there = len({l.split()[-2] + l.split()[-1] for l in mapped(child.pid, "variant")})
    h.check(TIMES <= there <= TIMES + late, "libraries", there, late)
    time.sleep(0.5)
    child.send_signal(signal.SIGTERM)
    check_end(child, folder, "busy")
    stops.sort()
    print(f"  {len(tids)} of {len(before)} threads used; stopped for "
          f"{stops[len(stops) // 2] / 1e6:.2f} ms (median), {stops[-1] / 1e6:.2f} ms (most)")


@h.case
def fresh_processes(folder):
    """The output of a fixed amount of work is that of an untouched process."""
    arguments = ["--calls", "400"]
    alone = busy(folder, *arguments)
    expected, late = check_end(alone, folder, "alone"), 0
    for n in range(TIMES):
        child = busy(folder, *arguments)
        h.wait_for(lambda pid=child.pid: len(threads(pid)) > 1, 10, "threads")  # before, it may have no C library yet
        time.sleep(random.Random(n).uniform(0, 0.3))
        got = tool(child.pid, library(), ENTRY, 20000, 0, *(["memfd"] if n % 4 == 0 else []))
        late += got["rc"] == -errno.ESRCH  # on a busy machine its work may be over first
        h.check(got["rc"] in (0, -errno.ESRCH), "injection", got)
        h.equal((got["cleaned"], got["value"]), (1, 1101) if got["rc"] == 0 else (0, 0), "cleaned, constructor and entry")
        h.equal(check_end(child, folder, f"fresh {n}"), expected, "the target's output")
    h.check(late <= TIMES // 2, "most had ended before", late)


@h.case
def killed_tracers(folder):
    """The tracer dies at random moments; the target goes on, and the next injection works."""
    dice = random.Random(4)
    for round_number in range(2 * TIMES // 10):
        child = busy(folder, "--seconds", "600")
        time.sleep(0.3)
        before = threads(child.pid)
        whole = tool(child.pid, variant(folder, 1000), ENTRY)["total_ns"] / 1e9
        for n in range(10):
            tracer = h.start([h.workload("inject_tool"), child.pid, variant(folder, n), ENTRY,
                              "5000", before[dice.randrange(len(before))] if n % 2 else 0],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.uniform(0.2, 1.3) * whole)
            tracer.kill()
            tracer.wait()
            h.check(h.alive(child.pid), "the target ended")
        with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
            h.check("State:\tt" not in f.read(), "left stopped")
        if round_number == 0:
            h.wait_for(lambda: threads(child.pid) == before, 10, "the injected threads to end by themselves")
            # A dead tracer's bytes count as in use for six seconds, and the code has room for some injections only.
            h.wait_for(lambda: tool(child.pid, library(), ENTRY).get("value") == 1101, 10, "room for another injection")
        time.sleep(0.2)
        child.send_signal(signal.SIGTERM)
        check_end(child, folder, "tracers killed")


@h.case(long="dozens of injections")
def tracers_that_die_at_the_worst_moment(folder):
    """In the middle of a diversion, in every thread: the stub brings the thread back alone."""
    finished = 0
    for moment in (1, 2, 3, 4):
        child = busy(folder, "--seconds", "600")
        time.sleep(0.3)
        before = threads(child.pid)
        for n, tid in enumerate(before if TIMES >= 100 else before[moment % 2::2]):
            tracer = h.run([h.workload("inject_tool"), child.pid, variant(folder, n), ENTRY,
                            "400", tid, "-", moment])
            finished += tracer.returncode == -signal.SIGKILL
            h.check(h.alive(child.pid), "the target ended")
            if n % 5 == 4: # the stubs fill the room until they are over
                time.sleep(0.5)
        time.sleep(1)
        child.send_signal(signal.SIGTERM)
        check_end(child, folder, f"tracers dead at {moment}")
    h.check(finished >= 16, f"only {finished} tracers came that far")
    print(f"  {finished} tracers died")


@h.case
def signals_in_the_middle(folder):
    """A signal that comes while the thread is away must end its sleep as if it had not been."""
    code = ("ts=(ctypes.c_long*2)(30,0)\nlibc=ctypes.CDLL(None,use_errno=True)\n"
            "@ctypes.CFUNCTYPE(None,ctypes.c_int)\ndef f(n): os.write(1,b'handled ')\n"
            "libc.signal(10,f)\nos.write(1,b'up\\n')\nb=time.monotonic()\n"
            "r=libc.%s\ne=ctypes.get_errno()\n"
            "print(r,e,time.monotonic()-b<20)")
    for call in ("clock_nanosleep(0,0,ts,None)", "nanosleep(ts,None)", "pause()", "poll(None,0,30000)",
                 "epoll_wait(libc.epoll_create1(0),ts,1,30000)"):
        result = b"4" if call.startswith("clock") else b"-1 4"
        for moment in (2, 5):
            child = in_child(code % call)
            tracer = h.start([h.workload("inject_tool"), child.pid, library(), ENTRY, "5000", "0",
                              "-", moment], stdout=subprocess.DEVNULL)
            if moment == 2:
                h.equal(h.finish(tracer), -signal.SIGKILL, "the tracer")
            else:
                h.wait_for(lambda: len(threads(child.pid)) > 1, 15, "the new thread")
            child.send_signal(signal.SIGUSR1)
            got = child.communicate(timeout=60)[0]
            h.check(got.startswith(b"handled " + result) and b"True" in got,
                    f"{call}, moment {moment}: {got!r}")


@h.case
def nothing_stays(folder):
    """After an injection: no thread, no mapping but the library's, no changed code."""
    child = busy(folder, "--seconds", "60")
    time.sleep(0.3)
    before, anonymous = threads(child.pid), private_dirty_code(child.pid)
    inject(child.pid, library())
    h.wait_for(lambda: threads(child.pid) == before, 5, "the helper thread ends")
    low = [l for l in mapped(child.pid, "") if l.startswith("16")]
    h.equal([l for l in low if len(l.split("-")[0]) == 12], [], "the scratch mapping")
    # the page is the process's own now, with the file's bytes in it
    h.check(private_dirty_code(child.pid) <= anonymous + 4, "more than one page of code changed")
    again = tool(child.pid, library(), ENTRY)
    h.equal(again["rc"], 1, "the second injection does nothing")
    child.send_signal(signal.SIGTERM)
    check_end(child, folder, "once")


@h.case
def sleeping_python(folder):
    code = ("import sys,time,threading\n"
            "threading.Thread(target=lambda: time.sleep(9), daemon=True).start()\n"
            "print('up', flush=True)\nt=time.monotonic()\ntime.sleep(6)\n"
            "print(time.monotonic()-t, sum(range(1000)))")
    child = h.start([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(1.2)
    inject(child.pid, library())
    seconds, result = child.communicate(timeout=20)[0].split()
    # a sleep that began anew, with all of its time, would take 1.2 seconds more
    h.check(6 <= float(seconds) < 7.1 and result == b"499500", "Python's output", seconds, result)


@h.case
def computing_python(folder):
    """One thread that never waits."""
    code = ("import time\nprint('up', flush=True)\nend=time.monotonic()+2\nx=0\n"
            "while time.monotonic()<end: x+=len(str([x]*3))\nprint('done')")
    child = h.start([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.stdout.readline()
    inject(child.pid, library())
    h.equal(child.communicate(timeout=20)[0], b"done\n", "Python's output")


# Until it is told to end; nothing but what has been loaded already.
SLEEPS = ("os.set_blocking(0, False)\ntold = False\nwhile not told:\n  time.sleep(0.02)\n"
          "  try: told = os.read(0, 1)\n  except BlockingIOError: pass\nprint('end')")


@h.case
def unseen_file(folder):
    """Another mount namespace, where the library's path leads nowhere."""
    code = (f"import ctypes,time\nlibc=ctypes.CDLL(None,use_errno=True)\n"
            f"assert libc.unshare(0x20000)==0\n"
            f"assert libc.mount(b'none',b'/',None,0x44000,None)==0\n"
            f"assert libc.mount(b'none',{folder.encode()!r},b'tmpfs',0,None)==0\n"
            f"print('up', flush=True)\n" + SLEEPS)
    path = variant(folder, 1)
    child = h.start([sys.executable, "-c", "import os\n" + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    h.equal(child.stdout.readline(), b"up\n", "the child in its namespace")
    got = inject(child.pid, path)
    h.equal(got["memfd"], 1, "memfd")
    h.check(mapped(child.pid, "memfd:libvariant1.so"), "the copy is not mapped")
    # no descriptor is left open
    h.equal([f for f in os.listdir(f"/proc/{child.pid}/fd")
             if "memfd" in os.readlink(f"/proc/{child.pid}/fd/{f}")], [], "descriptors")
    h.equal(tool(child.pid, path, ENTRY)["rc"], 1, "again: known by its build id")
    h.equal(child.communicate(b"x", timeout=20)[0], b"end\n", "output")


@h.case
def interrupted_in_the_middle(folder):
    """Ctrl-C while the library's entry function runs: we leave at once, the process goes on."""
    child = busy(folder, "--seconds", "60")
    time.sleep(0.3)
    before = threads(child.pid)
    tracer = h.start([h.workload("inject_tool"), child.pid, library(), "probe_slow"],
                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    h.wait_for(lambda: mapped(child.pid, "inject_library"), 10, "the library")
    begun = time.monotonic()
    tracer.send_signal(signal.SIGINT)
    got = json.loads(tracer.communicate(timeout=10)[0])
    h.check(time.monotonic() - begun < 5, "Ctrl-C was not answered")
    h.equal(got["rc"], -4, "EINTR")
    h.wait_for(lambda: threads(child.pid) == before, 30, "the helper thread ends by itself")
    child.send_signal(signal.SIGTERM)
    check_end(child, folder, "interrupted")


# ---- xsptrace --inject ---------------------------------------------------------------


def record(folder, child, facts, *options, name="injected", status=h.OK, work=True):
    out = f"{folder}/{name}.json"
    if os.path.exists(f"{facts}.on"):  # of an earlier recording
        os.unlink(f"{facts}.on")
    with h.Recording(folder, "-p", child.pid, "--inject", *options, "-o", out, name=name) as recording:
        h.wait_for(lambda: os.path.exists(f"{facts}.on"), 10, "the agent to collect")
        if work:
            child.send_signal(signal.SIGUSR1)
            h.equal(h.finish(child, 60), 0, "status")
        else:
            recording.stop()
        said = recording.wait(status)
    return h.Trace(out), said


@h.case
def agent_into_a_cuda_process(folder):
    """Simulated CUDA: every kernel of a process that was started without the agent."""
    facts = f"{folder}/truth"
    arguments = [h.workload("gpu_sim"), "--wait", "--out", f"{folder}/out", "--threads", "4",
                 "--calls", "1000"]
    child = h.start_ready(arguments, env=dict(os.environ, XSP_DOUBLE_TRUTH=facts))
    trace, said = record(folder, child, facts, name="first", work=False)
    h.check("the agent was injected" in said, "first time", said)
    trace, said = record(folder, child, facts)
    h.check("the agent was injected" not in said, "second time", said)
    trace.check_nothing_lost()
    made = h.truth(facts)
    kernels = [e for e in trace.json["traceEvents"] if e.get("cat") == "kernel"]
    h.equal(len(kernels), made["kernels"], "kernels")
    h.equal({e["args"].get("External id") is not None for e in kernels}, {True}, "kernels' ops")


@h.case
def agent_that_the_target_cannot_see(folder):
    """A container's view: the agent is a copy in memory, and the probes find it there."""
    agent = os.path.join(os.path.dirname(h.XSPTRACE), "libxsptrace_agent.so")
    facts = f"{folder}/truth"
    hide = f"mount --bind /dev/null {agent} && exec \"$@\""
    child = h.start_ready(["unshare", "-m", "sh", "-c", hide, "sh", h.workload("gpu_sim"), "--wait",
                           "--out", f"{folder}/out", "--threads", "2", "--calls", "500"],
                          env=dict(os.environ, XSP_DOUBLE_TRUTH=facts))
    trace, said = record(folder, child, facts)
    h.check("the agent was injected" in said, "injected", said)
    h.equal(sum(e.get("cat") == "kernel" for e in trace.json["traceEvents"]),
            h.truth(facts)["kernels"], "kernels")


@h.case
def inject_options(folder):
    child = h.start([h.workload("sleeper"), "--seconds", "30"], stderr=subprocess.DEVNULL)
    time.sleep(0.2)
    done = h.xsptrace("-p", child.pid, "--inject", "-e", "libc.so.6:usleep", "-d", "1", "-o",
                      f"{folder}/o.json", status=None)
    h.check("has not loaded libcuda.so" in done.stderr, "no CUDA", done.stderr)
    h.equal(mapped(child.pid, "libxsptrace"), [], "nothing was injected")
    done = h.xsptrace("--inject", "--", "/bin/true", status=h.USAGE)
    h.check("-p PID" in done.stderr, "launched", done.stderr)
    done = h.xsptrace("--inject", "--gpu=off", "-e", "libc.so.6:usleep", "-p", child.pid, status=h.USAGE)
    h.check("which are not traced" in done.stderr, "gpu=off", done.stderr)


# ---- refusals ------------------------------------------------------------------------


def refused(pid, words, path=None, entry=ENTRY, rc=None, **options):
    got = tool(pid, path or library(), entry, options.get("timeout_ms", 700))
    h.check(got["rc"] < 0 and words in got["error"], f"refused with '{words}'", got)
    if rc is not None:
        h.equal(got["rc"], rc, words)
    return got


@h.case
def static_programs(folder):
    child = h.start([h.workload("stripped_static"), "--seconds", "20"], stderr=subprocess.DEVNULL)
    time.sleep(0.2)
    refused(child.pid, "linked statically")
    if os.path.exists("/usr/bin/musl-gcc"):
        source = f"{folder}/m.c"
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <unistd.h>\nint main(void){for(;;) sleep(1);}\n")
        h.run(["musl-gcc", "-static", source, "-o", f"{folder}/m"])
        child = h.start([f"{folder}/m"])
        time.sleep(0.2)
        refused(child.pid, "linked statically")


@h.case
def program_of_32_bits(folder):
    child = h.start_32_bit()
    time.sleep(0.2)
    refused(child.pid, "32-bit")


@h.case
def musl_program(folder):
    """musl: the loader and the C library are one file."""
    if not os.path.exists("/usr/bin/musl-gcc"):
        raise h.Skip("musl-gcc is not installed")
    with open(f"{folder}/m.c", "w", encoding="ascii") as f:
        f.write("#include <stdio.h>\n#include <unistd.h>\n#include <stdlib.h>\n#include <time.h>\n"
                "int main(void){puts(\"up\");fflush(stdout);for(int i=0;i<3000;i++){"
                "struct timespec t={0,1000000};free(malloc(100));"
                "if(nanosleep(&t,0)){puts(\"wrong\");}}puts(\"end\");}\n")
    with open(f"{folder}/l.c", "w", encoding="ascii") as f:
        f.write("int probe(void){return 5;}\n")
    h.run(["musl-gcc", f"{folder}/m.c", "-o", f"{folder}/m"])
    h.run(["musl-gcc", "-shared", "-fPIC", f"{folder}/l.c", "-o", f"{folder}/l.so"])
    child = h.start([f"{folder}/m"], stdout=subprocess.PIPE)
    child.stdout.readline()
    h.equal(inject(child.pid, f"{folder}/l.so", "probe")["value"], 5, "the entry's value")
    h.equal(child.communicate(timeout=20)[0], b"end\n", "output")


def in_child(code):
    child = h.start([sys.executable, "-c",
                     "import ctypes,os,time\nlibc=ctypes.CDLL(None)\n" + code],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    h.equal(child.stdout.readline(), b"up\n", "the child")
    time.sleep(0.1)
    return child


@h.case
def states(folder):
    """Traced, stopped, zombie, strict seccomp, gone."""
    child = in_child("libc.ptrace(0,0,0,0)\nos.write(1,b'up\\n')\ntime.sleep(20)")
    refused(child.pid, f"process {os.getpid()} traces it")
    libc = ctypes.CDLL(None)
    child.kill()
    child = in_child("os.write(1,b'up\\n')\ntime.sleep(20)")
    child.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    refused(child.pid, "stopped")
    child.send_signal(signal.SIGCONT)
    time.sleep(0.1)
    inject(child.pid, library())
    child = h.start(["/bin/true"])
    time.sleep(0.2)
    got = tool(child.pid, library())
    h.equal(got["status"], h.NO_TARGET, "a zombie")
    got = tool(2 ** 22 - 1, library())
    h.equal(got["status"], h.NO_TARGET, "no such process")
    child = in_child("os.write(1,b'up\\n')\nlibc.prctl(22,1)\nwhile True: pass")
    refused(child.pid, "strict")
    del libc


def filter_of(*rules):
    """Python that installs a seccomp filter: (system call, action)..., the rest is allowed."""
    code = [(0x20, 0, 0, 0)]  # A = nr
    for number, action in rules:
        code += [(0x15, 0, 1, number), (6, 0, 0, action)]
    code.append((6, 0, 0, 0x7fff0000))
    data = b"".join(struct.pack("<HBBI", *c) for c in code)
    return ("class F(ctypes.Structure): _fields_=[('n',ctypes.c_ushort),('p',ctypes.c_void_p)]\n"
            f"b=ctypes.create_string_buffer({data!r},{len(data)})\n"
            f"f=F({len(code)},ctypes.cast(b,ctypes.c_void_p))\n"
            "assert libc.prctl(38,1,0,0,0)==0\n"
            "assert libc.prctl(22,2,ctypes.byref(f))==0\n")


@h.case
def seccomp(folder):
    """Filters are read: one that lets us do all (as containers' do) is no obstacle."""
    rest = "os.write(1,b'up\\n')\n" + SLEEPS
    kill, enosys = 0x80000000, 0x50000 + 38
    child = in_child(filter_of((435, enosys), (101, kill)) + rest)
    inject(child.pid, library())
    h.equal(child.communicate(b"x", timeout=20)[0], b"end\n", "output")
    for rules in (((9, kill),), ((56, 0x50001),), ((435, 0x30000),), ((60, kill),),
                  ((334, enosys),)):
        child = in_child(filter_of(*rules) + filter_of((101, kill)) + rest)
        got = refused(child.pid, "seccomp filter does not allow", timeout_ms=20000)
        h.check(got["total_ns"] < 5e9, "refused at once", got)
        h.equal(child.communicate(b"x", timeout=20)[0], b"end\n", "output")


@h.case
def unsafe_places(folder):
    """A thread that sleeps inside a handler, the loader or exit is left alone, then not."""
    for mode in ("handler", "constructor", "iterate", "malloc", "exit"):
        child = h.start([h.workload("inject_unsafe"), mode], stderr=subprocess.PIPE)
        h.equal(child.stderr.readline(), b"ready\n", mode)
        time.sleep(0.1)
        got = refused(child.pid, "safe point", rc=-110, timeout_ms=2000)
        h.check(got["tries"] > 1, "tries", got)
        h.equal(mapped(child.pid, "inject_library"), [], "nothing was loaded")
        child.send_signal(signal.SIGUSR1)
        if mode != "exit":
            h.equal(child.stderr.readline(), b"main\n", mode)
            time.sleep(0.1)
            inject(child.pid, library())
        else:
            h.equal(h.finish(child), 0, "exit status")


@h.case
def ctrl_c_while_waiting(folder):
    child = h.start([h.workload("inject_unsafe"), "handler"], stderr=subprocess.PIPE)
    child.stderr.readline()
    tracer = h.start([h.workload("inject_tool"), child.pid, library(), ENTRY, "60000"],
                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    tracer.send_signal(signal.SIGINT)
    begun = time.monotonic()
    got = json.loads(tracer.communicate(timeout=10)[0])
    h.check(time.monotonic() - begun < 10, "Ctrl-C was not answered")
    h.check("interrupted" in got["error"], "the reason", got)
    child.send_signal(signal.SIGUSR1)
    h.equal(child.stderr.readline(), b"main\n", "the target")


@h.case
def libraries_that_fail(folder):
    """No library, no entry, a missing dependency: an error, and the process as before."""
    child = busy(folder, "--seconds", "60")
    time.sleep(0.3)
    before = threads(child.pid)
    refused(child.pid, "cannot open", path=f"{folder}/none.so")
    with open(f"{folder}/text.so", "w", encoding="ascii") as f:
        f.write("no library\n" * 100)
    h.check(tool(child.pid, f"{folder}/text.so")["rc"] < 0, "a text file")
    got = refused(child.pid, "does not export no_such", entry="no_such", timeout_ms=20000)
    h.equal(got["cleaned"], 1, "cleaned")
    h.equal(mapped(child.pid, "inject_library"), [], "unloaded again")
    with open(f"{folder}/l.c", "w", encoding="ascii") as f:
        f.write("extern int nobody_has_this(void); int probe_start(void){return nobody_has_this();}")
    h.run(["gcc", "-shared", "-fPIC", f"{folder}/l.c", "-o", f"{folder}/l.so"])
    refused(child.pid, "nobody_has_this", path=f"{folder}/l.so", timeout_ms=20000)
    h.wait_for(lambda: threads(child.pid) == before, 5, "threads")
    inject(child.pid, library())
    child.send_signal(signal.SIGTERM)
    check_end(child, folder, "failures")


if __name__ == "__main__":
    h.main()
