#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tool dies, of any signal, at any moment, any of its processes: nothing stays in the targets.

Left-over breakpoints are looked for in memory: every page of code of every target is compared with
its file. The targets check their own results.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from harness import AS_ASKED, LONG, Skip, case, check, equal, finish, main, private_libc, run, start, wait_for, workload
from proc import (COUNTERS, Tool, Witness, as_nobody, mappings, random_from_clock,
                  read_counters, signal_to, status, text_differences, wait_text_clean)

TIMES = 200 if LONG else 6
# the sanitizer of addresses would take the signal that is sent here for a fault
os.environ["ASAN_OPTIONS"] = "handle_segv=0"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT)
ALL_OF_LIBC = ("-e", "libc.so:*")


def callers(folder, count, tool):
    """Processes that call functions of a private libc; and -p for all of them."""
    start = private_libc(folder)
    program = shutil.copy(workload("libc_caller"), folder)
    found = [Witness(folder, f"caller{i}", [*start, program, COUNTERS], **as_nobody())
             for i in range(count)]
    return found, ["-p", ",".join(str(w.pid) for w in found), "-o", f"{tool.folder}/out.xspt"]


def check_unharmed(targets, tool, what):
    tool.wait_gone(what=what)
    wait_text_clean([t.pid for t in targets], 5, what)
    for target in targets:
        target.check_right(what)


def seconds_to_attach(tool, arguments):
    """From the start to the line that says that the probes are in place."""
    begun = time.monotonic()
    tool.start(*arguments)
    tool.wait_live(30)
    seconds = time.monotonic() - begun
    tool.process.send_signal(signal.SIGINT)
    tool.wait_gone()
    return seconds


def kill_in_link_create(tool, random, longest):
    """Kills the process that attaches while it does; whether that moment was met."""
    pid = tool.wait_link_create(random.uniform(0, longest))
    if pid:
        signal_to(pid, signal.SIGKILL)
    return bool(pid)


def attach_killed(folder, longest, *options):
    """Two of three kills are aimed at the system call that attaches, one falls at any moment."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 8, tool)
    arguments += [*ALL_OF_LIBC, *options]
    random = random_from_clock()
    whole = seconds_to_attach(tool, arguments)
    check_unharmed(targets, tool, "in peace")
    met = 0
    for i in range(9):
        tool.start(*arguments)
        aimed = i % 3 != 2
        if not aimed:
            time.sleep(random.uniform(0, whole))
        if aimed and kill_in_link_create(tool, random, longest):
            met += 1
        else:
            tool.process.kill()
        check_unharmed(targets, tool, f"after kill {i}, {'aimed' if aimed else 'random'}")
    print(f"  attached after {whole:.2f} s; {met} of 6 aimed kills met the system call")


@case
def killed_while_attaching(folder):
    attach_killed(folder, 0.005)


@case(long="as killed_while_attaching, and as much again")
def killed_while_attaching_with_follow(folder):
    attach_killed(folder, 0.02, "--follow")


@case
def killed_anywhere(folder):
    """A random signal to a random process of the tool, at a random moment of start, attach,
    recording and detach."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 2, tool)
    arguments += ["-q", "-d", "0.2", "-e", "libc.so:mem*", "-e", "libc.so:str*"]
    random = random_from_clock()
    begun = time.monotonic()
    tool.start(*arguments)
    tool.wait_gone()
    whole = time.monotonic() - begun
    for i in range(TIMES):
        how, moment = random.choice(SIGNALS), random.uniform(0, whole)
        tool.start(*arguments)
        time.sleep(moment)
        pids = tool.processes()
        what = f"after kill {i}: no process was left"
        if pids:
            pid = random.choice(pids)
            what = (f"after kill {i}: {how.name} to {status(pid).get('Name')} at {moment:.3f} of "
                    f"{whole:.3f} s")
            signal_to(pid, how)
        check_unharmed(targets, tool, what)


@case
def killed_while_detaching(folder):
    """The recording ends; while thousands of sites are taken out, one of the tool is killed."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 4, tool)
    random = random_from_clock()
    for i in range(5):
        tool.start(*arguments, *ALL_OF_LIBC)
        tool.wait_live()
        tool.process.send_signal(signal.SIGINT)
        time.sleep(random.uniform(0, 0.2))
        pids = tool.processes() or [tool.process.pid]
        pid = random.choice(pids)
        what = f"after kill {i}, of {status(pid).get('Name')}"
        signal_to(pid, signal.SIGKILL)
        check_unharmed(targets, tool, what)


@case
def whole_group_killed(folder):
    """As a shell or a terminal does it: everything in the tool's process group at once."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 8, tool)
    random = random_from_clock()
    for how in (signal.SIGKILL, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT, signal.SIGKILL):
        tool.start(*arguments, *ALL_OF_LIBC, "--follow", start_new_session=True)
        tool.wait_link_create(random.uniform(0, 0.02))
        os.killpg(tool.process.pid, how)
        check_unharmed(targets, tool, f"after {how.name} to the group")


def running(path):
    """Processes whose program is that file."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.path.samefile(f"/proc/{name}/exe", path):
                found.append(int(name))
        except OSError:
            continue
    return found


@case
def killed_with_a_command(folder):
    """xsptrace -- COMMAND dies: the command was not started, or goes on, or ended with it. It does
    not hang half-way, and its code is that of the file."""
    tool = Tool(folder)
    start = private_libc(folder)
    program, counters = shutil.copy(workload("libc_caller"), folder), f"{folder}/counters"
    loader = shutil.copy(start[0], f"{folder}/loader")
    random = random_from_clock()
    with open(counters, "wb") as f:
        f.write(bytes(16))
    for i in range(6):
        tool.start("-e", "libc.so:*", "-o", f"{folder}/out.xspt", "--", loader, *start[1:], program,
                   counters)
        time.sleep(random.uniform(0, 0.8))
        pid = random.choice(tool.processes() or [tool.process.pid])
        what = f"after kill {i}, of {status(pid).get('Name')}"
        signal_to(pid, signal.SIGKILL)
        time.sleep(0.5)
        if tool.process.poll() is None:
            tool.process.send_signal(signal.SIGTERM)
        tool.wait_gone(what=what)
        left = running(loader)
        try:
            wait_text_clean(left, 5, what)
            for child in left:
                check(status(child).get("State", "X")[0] not in "Tt",
                      f"the command is stopped {what}")
            check(not left or goes_on(counters), f"the command hangs {what}")
        finally:
            for child in left:
                signal_to(child, signal.SIGKILL)


def goes_on(counters):
    """The command's own counters move, and it counted nothing wrong."""
    before = read_counters(counters)
    time.sleep(0.3)
    after = read_counters(counters)
    check(after[1] == 0, f"{after[1]} wrong results of the command")
    return after[0] > before[0]


def one_role_killed(folder, role, *options):
    """That process alone is killed: while it attaches, and while the tool records."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 2, tool)
    arguments += [*ALL_OF_LIBC, *options]

    def find():
        return tool.named(role)[0] if role else tool.process.pid

    tool.start(*arguments)
    if not tool.wait_link_create():
        print("  the moment of attaching was missed: killed when the tool records")
    signal_to(find(), signal.SIGKILL)
    end_of_the_others(tool)
    check_unharmed(targets, tool, f"after {role or 'the front'} was killed while attaching")

    tool.start(*arguments)
    tool.wait_live()
    signal_to(find(), signal.SIGKILL)
    end_of_the_others(tool)
    check_unharmed(targets, tool, f"after {role or 'the front'} was killed while recording")


def end_of_the_others(tool):
    """Survivors may go on until they are told to stop."""
    time.sleep(0.5)
    if tool.process.poll() is None:
        tool.process.send_signal(signal.SIGINT)


@case
def broker_alone(folder):
    one_role_killed(folder, "xsp-broker")


@case
def guardian_alone(folder):
    one_role_killed(folder, "xsp-guardian")


def kill_in_turn(folder, roles, what):
    """Kills those processes of the tool 0 to 20 ms apart; what it said then."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 2, tool)
    raised = [(t.pid, semaphore_address(t.pid, f"{folder}/libc_caller")) for t in targets]
    random, said = random_from_clock(), []
    for i in range(TIMES // 2):
        tool.start(*arguments, "-q", "-d", "20", "-e", "record_function", *ALL_OF_LIBC)
        wait_for(lambda: text_differences(targets[0].pid, 1), 20, "breakpoints")
        time.sleep(random.uniform(0, 0.3))
        gap = random.uniform(0, 0.02)
        for role in roles:
            signal_to(tool.named(role)[0], signal.SIGKILL)
            time.sleep(gap)
        check_unharmed(targets, tool, f"after kill {i} of {what}, {1000 * gap:.1f} ms apart")
        equal([semaphore(*r) for r in raised], [0, 0], f"semaphores after kill {i} of {what}")
        said.append(tool.output())
    return said


@case
def broker_and_guardian(folder):
    """Whoever is killed after the broker, another takes the breakpoints out, and the recorder says so."""
    for said in kill_in_turn(folder, ("xsp-broker", "xsp-guardian"), "broker and guardian"):
        check("its guardian has taken the probes out" in said, "what became of the probes", said)


@case
def guardian_and_broker(folder):
    for said in kill_in_turn(folder, ("xsp-guardian", "xsp-broker"), "guardian and broker"):
        check("its guardian has taken the probes out" in said, "what became of the probes", said)


@case
def nobody_reports(folder):
    """Broker and guardians are killed at once: the recorder does not say that anybody takes the probes out."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 1, tool)
    tool.start(*arguments, "-q", "-d", "20", "-e", "libc.so:mem*")
    wait_for(lambda: text_differences(targets[0].pid, 1), 20, "breakpoints")
    time.sleep(0.3)
    guardians = tool.named("xsp-guardian")
    for pid in guardians:
        signal_to(pid, signal.SIGSTOP)
    for pid in [*tool.named("xsp-broker"), *guardians]:
        signal_to(pid, signal.SIGKILL)
    tool.wait_gone()
    check("breakpoints may be left in the target" in tool.output(), "what became of the probes", tool.output())
    tool.start(*arguments, "-q", "-d", "0.2", "-e", "libc.so:mem*")
    check_unharmed(targets, tool, "after the same command once more")


@case
def front_alone(folder):
    one_role_killed(folder, None)


@case
def front_alone_bare(folder):
    one_role_killed(folder, None, *AS_ASKED)


def kill_everybody(tool):
    """So that nobody can clean up: those that could are stopped before the one that holds the
    probes is killed."""
    pids = tool.processes()
    holders = [p for p in pids if status(p).get("Name") == "xsp-broker"] or pids
    for pid in pids:
        if pid not in holders:
            signal_to(pid, signal.SIGSTOP)
    for pid in holders + pids:
        signal_to(pid, signal.SIGKILL)
    tool.wait_gone()


@case(long="most kills leave nothing, and it tries for half a minute")
def leftovers_of_an_earlier_run(folder):
    """Everything of the tool is killed at once while it attaches or detaches. The next run
    recognises what was left, says so and takes it out."""
    tool = Tool(folder)
    targets, arguments = callers(folder, 4, tool)
    random = random_from_clock()
    left = {}
    for i in range(4):
        tool.start(*arguments, *ALL_OF_LIBC)
        if i % 2:
            tool.wait_link_create(random.uniform(0, 0.01))
        else:
            tool.wait_live()
            tool.process.send_signal(signal.SIGINT)
            time.sleep(random.uniform(0.01, 0.08))
        kill_everybody(tool)
        left = {t.pid: d for t in targets if (d := text_differences(t.pid))}
        if left:
            break
    if not left:
        raise Skip("four kills left nothing behind")
    print(f"  left: {' '.join(str(len(d)) for d in left.values())} bytes")
    tool.start(*arguments, "-d", "0.3", *ALL_OF_LIBC)
    check(tool.process.wait(timeout=30) == 0, "the next run failed", tool.output())
    check_unharmed(targets, tool, "after the next run")
    said = tool.output().lower()
    check(re.search("earlier|left behind|leftover", said), "nothing is said of what was left", said)


def semaphore_address(pid, path):
    """Of record_function.h in that program: the first mapping of a shared object begins at 0."""
    done = run(["nm", path])
    value = next(int(l.split()[0], 16) for l in done.stdout.splitlines()
                 if l.endswith(" xsp_record_function_semaphore"))
    return value + next(m.start for m in mappings(pid) if m.path == path)


def semaphore(pid, address):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
        f.seek(address)
        return int.from_bytes(f.read(2), "little")


@case
def killed_in_windows(folder):
    """A provider that may slow its program by little is taken out and put in again all the time: neither
    breakpoints nor a raised semaphore stay, whoever is killed."""
    tool = Tool(folder)
    program = shutil.copy(workload("brake"), folder)
    target = start([program, "--threads", "1", "--seconds", "600", "ranges", "500"],
                   stdout=subprocess.DEVNULL)
    wait_for(lambda: any(m.path == program for m in mappings(target.pid)), 5, "the program")
    address = semaphore_address(target.pid, program)
    random = random_from_clock()
    for i in range(TIMES // 2):
        tool.start("--max-overhead", "10", "-p", target.pid, "-o", f"{folder}/out.xspt")
        tool.wait_live()
        if i == 0:
            check(semaphore(target.pid, address) > 0, "the semaphore was not raised")
        time.sleep(random.uniform(0, 1.5))
        pid, how = random.choice(tool.processes()), random.choice(SIGNALS)
        what = f"after kill {i}: {how.name} to {status(pid).get('Name')}"
        signal_to(pid, how)
        end_of_the_others(tool)
        tool.wait_gone(what=what)
        wait_text_clean([target.pid], 5, what)
        equal(semaphore(target.pid, address), 0, f"the semaphore {what}")
        check(target.poll() is None, f"the program ended {what}")


@case
def killed_with_the_heap_in_windows(folder):
    """Return probes of malloc() in every call, which come and go: the program, which aborts where an allocation is not what it
    must be, goes on with its file's code."""
    tool = Tool(folder)
    program = shutil.copy(workload("heap"), folder)
    target = start([*private_libc(folder), program, 10 ** 9, 2, 64, "--pause", 1000], stdout=subprocess.DEVNULL)
    wait_for(lambda: any(m.path == f"{folder}/libc.so.6" for m in mappings(target.pid)), 5, "the program")
    random = random_from_clock()
    for i in range(TIMES // 2):
        tool.start("--memory=malloc:16", "--max-overhead", "1", "-p", target.pid, "-o", f"{folder}/out.xspt")
        if i % 3:
            tool.wait_live(30)
        time.sleep(random.uniform(0, 3))
        pid, how = random.choice(tool.processes() or [tool.process.pid]), random.choice(SIGNALS)
        what = f"after kill {i}: {how.name} to {status(pid).get('Name')}"
        signal_to(pid, how)
        end_of_the_others(tool)
        tool.wait_gone(what=what)
        wait_text_clean([target.pid], 5, what)
        check(target.poll() is None, f"the program ended {what}")


class InWindows:
    """A target whose sites are taken out and put in again all the time, and the tool that does it. How often is seen in
    the target's code: at one byte, which is the breakpoint's or the file's."""

    def __init__(self, folder):
        os.mkdir(folder)
        self.tool = Tool(folder)
        program = shutil.copy(workload("libc_caller"), folder)
        self.target = Witness(folder, "target", [*private_libc(folder), program, COUNTERS, "allocate"], **as_nobody())
        self.semaphore = semaphore_address(self.target.pid, program)
        self.site = self.there = None

    def begin(self):
        self.windows = 0
        self.tool.start("--memory=malloc:16", "-e", "record_function", "--max-overhead", "200", "-p", self.target.pid,
                        "-o", f"{self.tool.folder}/out.xspt", start_new_session=True)

    def look(self):
        """How many windows are over."""
        if self.site is None:
            self.site = next(iter(text_differences(self.target.pid, 1)), None)
        if self.site is not None:
            with open(f"/proc/{self.target.pid}/mem", "rb", buffering=0) as f:
                f.seek(self.site.address)
                there = f.read(1)[0] != self.site.file
            self.windows += bool(self.there and not there)
            self.there = there
        return self.windows

    def kill(self, role, what):
        if role == "the group":
            os.killpg(self.tool.process.pid, signal.SIGKILL)
        else:
            signal_to(self.tool.named(role)[0] if role else self.tool.process.pid, signal.SIGKILL)
        end_of_the_others(self.tool)
        check_unharmed([self.target], self.tool, what)
        equal(semaphore(self.target.pid, self.semaphore), 0, f"the semaphore {what}")


@case(long="18 s of windows of six targets that never rest", quiet="windows of six targets that never rest: beside others it takes four times as long, and so do they")
def killed_after_many_windows(folder):
    """What is forgotten in a window has added up: 20 of them and more after the start each process of the tool is killed, and its
    group. Some at a time, as windows take their time."""
    many, roles, passed = 20, [None, "xsp-broker", "xsp-guardian", "xsp-planner", "the group"], []
    cases, random = [InWindows(f"{folder}/{i}") for i in range(6)], random_from_clock()
    for c in cases:
        c.begin()
    while len(passed) < max(len(roles), TIMES):
        for c in wait_for(lambda: [c for c in cases if c.look() >= many], 30, "windows"):
            time.sleep(random.uniform(0, 0.3))
            role = roles[len(passed) % len(roles)]
            passed.append(c.look())
            c.kill(role, f"after kill {len(passed)}, of {role or 'the recorder'}, {c.windows} windows, in one: {c.there}")
            c.begin()
    for c in cases:
        c.kill(None, "at the end")
    print(f"  {len(passed)} kills after {min(passed)} to {max(passed)} windows")


@case
def nobody_stays_stopped(folder):
    """--follow=stop: a shell starts one child after the other; whoever of the tool is killed, they go on at
    once, and the shell comes to its end."""
    tool = Tool(folder)
    mark, program = f"{folder}/count", shutil.copy("/bin/true", f"{folder}/child")
    shell = start(["sh", "-c", f"while [ ! -e {folder}/end ]; do {program}; echo >>{mark}; done; exit 7"])
    random = random_from_clock()

    def count():
        return os.path.getsize(mark) if os.path.exists(mark) else 0

    for i in range(TIMES // 2):
        tool.start("--follow=stop", "-p", shell.pid, "-o", f"{folder}/out.xspt", *(ALL_OF_LIBC if LONG else ("-e", "libc.so:mem*")))
        if i % 3:
            tool.wait_live(30)
        time.sleep(random.uniform(0, 0.5))
        pid = random.choice(tool.processes() or [tool.process.pid])
        what = f"after kill {i}, of {status(pid).get('Name')}"
        signal_to(pid, signal.SIGKILL)
        begun, before = time.monotonic(), count()
        wait_for(lambda: count() > before + 1, 10, f"children to go on {what}")
        if time.monotonic() - begun > 1:
            print(f"  {time.monotonic() - begun:.1f} s until the next child {what}")
        end_of_the_others(tool)
        tool.wait_gone(what=what)
        before = count()
        wait_for(lambda: count() > before + 1, 5, f"children to go on {what}")
        wait_text_clean([shell.pid], 5, what)
    with open(f"{folder}/end", "wb"):
        pass
    equal(finish(shell, 10), 7, "status of the shell")


# Of these deaths no memory image is wanted.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
main(declined=[])  # the brake takes out and puts in as well
