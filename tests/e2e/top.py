#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""xsptrace top: its figures against programs that count themselves, and its screen in a terminal of our own."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import (LONG, NO_BRAKE, OK, USAGE, XSPTRACE, alive, case, check, equal, finish, main, start,
                     start_ready, truth, wait_for, workload, xsptrace)
from proc import wait_text_clean

SECONDS = 20 if LONG else 2  # of the memory's case
RESTORE = "\x1b[?7h\x1b[?25h\x1b[?1049l"


# ---- plain text ----------------------------------------------------------------------


def number(text):
    return None if text == "-" else float(text.replace(",", ""))


def cells(titles, line):
    """By title. Columns of text begin where their title does, and end where the next column's begins; numbers end
    where theirs do."""
    fields = re.split(r"  +", line.strip())
    return dict(zip(titles, fields))


class Table:
    """One of the tables printed each second."""

    def __init__(self, text):
        lines = text.rstrip("\n").split("\n")
        self.process = lines[0]
        self.names, self.threads, self.order = {}, {}, []
        titles = None
        for line in lines[1:]:
            if re.match(r">?(name|thread)  ", line):
                titles = [t.lstrip(">") for t in re.split(r"  +", line.strip())]
                continue
            row = cells(titles, line)
            if titles[0] == "name":
                self.names[row["name"].removesuffix(" *")] = row
                self.order.append(row)
            else:
                name, tid = re.fullmatch(r"(.*) \((\d+)\)", row["thread"]).groups()
                self.threads[int(tid)] = {**row, "name": name}

    def lost(self):
        return int(re.search(r"([\d,]+) lost", self.process).group(1).replace(",", ""))


def tables(text):
    return [Table(t) for t in text.split("\n\n") if t.strip()]


def top(*arguments, **options):
    options.setdefault("timeout", 120)
    return xsptrace("top", *NO_BRAKE, *arguments, **options)


@case
def rates_and_calls(folder):
    """Until its end every call is in the last table; a second has as many as the program makes."""
    child = start_ready([workload("hot"), "--wait", "--out", f"{folder}/truth", "--rate", "200", "--calls", "500",
                         "--threads", "2"])
    log = open(f"{folder}/log", "w+b")
    tool = start([XSPTRACE, "top", *NO_BRAKE, "-p", child.pid, "-e", "hot:hot_*", "-i", "500ms"],
                 stdout=subprocess.PIPE, stderr=log, text=True)
    wait_for(lambda: b"tracing" in open(f"{folder}/log", "rb").read(), 20, "probes in place")
    begun = time.monotonic()
    child.send_signal(signal.SIGUSR1)
    equal(finish(child), 0, "status of hot")
    took = time.monotonic() - begun
    out, _ = tool.communicate(timeout=60)
    equal(tool.returncode, OK, "status")
    check(re.search(rb"hot \(%d\) has ended" % child.pid, open(f"{folder}/log", "rb").read()), "that it has ended is said")
    seen = tables(out)
    last = seen[-1]
    equal(number(last.names["hot_frame"]["calls"]), truth(f"{folder}/truth")["calls"]["hot_frame"], "calls")
    equal(last.lost(), 0, "lost")
    calls = [number(t.names["hot_frame"]["calls"]) for t in seen if "hot_frame" in t.names]
    equal(calls, sorted(calls), "calls so far")
    # the rate between two tables is of half a second, not of the last piece
    rates = [number(t.names["hot_frame"]["calls/s"]) for t in seen[:-1] if "hot_frame" in t.names]
    check(rates and 0.7 * 1000 / took <= max(rates) <= 2.5 * 1000 / took, f"1000 calls in {took:.1f} s", rates)


@case
def order_of_rows(folder):
    child = steady()
    for by in ("calls", "name"):
        out = top("-p", child.pid, "-e", "brake:brake_*", "--waits=off", "--sort", by, "-n", "1", "-i", "500ms").stdout
        found, = tables(out)
        check(len(found.order) >= 16, "rows", out)
        if by == "name":
            equal([r["name"] for r in found.order], sorted(r["name"] for r in found.order), "names")
        if by == "calls":
            calls = [number(r["calls"]) for r in found.order]
            equal(calls, sorted(calls, reverse=True), "calls")
        check(re.search(rf"(^| )>{by}\b", out.split("\n")[1]), "the mark", out)


@case
def what_threads_do(_):
    """A program that names the function of each of its threads; no provider knows it."""
    child = start([workload("stuck")], stdout=subprocess.PIPE)
    facts = json.loads(child.stdout.readline())
    time.sleep(0.2)
    done = top("-p", child.pid, "-n", "2")
    check("threads only" in done.stderr, "that there are no names is said", done.stderr)
    found = tables(done.stdout)[-1]
    equal(found.names, {}, "names")
    want = {"alpha": "lock", "beta": "lock", "gamma": "lock", "poll": "poll", "epoll": "poll", "nap": "sleep", "read": "pipe",
            "condition": "lock", "join": "lock"}
    for name, why in want.items():
        t = found.threads[facts[name]]
        equal((t["name"], t["now"], number(t["cpu%"]), number(t["blocked%"])), (name, why, 0, 100), f"thread {name}")
        equal(t["blocked in"], f"{why} 100%", f"thread {name}")
    spin = found.threads[facts["spin"]]
    equal(spin["at"], "spin_here", "where the thread is that spins: only samples tell")
    check(spin["now"] in ("running", "runnable") and
          abs(number(spin["cpu%"]) + number(spin["runnable%"]) - 100) < 0.3 and number(spin["blocked%"]) == 0,
          "the thread that spins", spin)


@case
def wrong_use(_):
    for arguments, words in ((["-p", "1", "-o", "x.json"], "unknown option"), ([], "top -p PID"),
                             (["-p", "1", "--sort", "colour"], "title of a column"), (["-p", "1", "-n", "0"], "at least 1"),
                             (["-p", "1", "-i", "0"], "between two tables")):
        done = xsptrace("top", *arguments, status=USAGE)
        check(words in done.stderr and done.stderr.count("\n") == 1, " ".join(arguments), done.stderr)
    check("Keys:" in xsptrace("top", "--help").stdout, "help")
    xsptrace("-n", "3", "-p", "1", status=USAGE)


# ---- a terminal ----------------------------------------------------------------------


class Terminal:
    """xsptrace top in a pseudo-terminal. Its screen is the last page that was drawn, line by line."""

    def __init__(self, rows, columns, *arguments, **environment):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave, self.text = slave, ""
        self.tool = start([XSPTRACE, "top", *arguments], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL,
                          env={**os.environ, "TERM": "xterm", **environment}, start_new_session=True,
                          preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, columns):
        self.size = rows, columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            try:
                more = os.read(self.master, 65536)
            except OSError:
                break
            self.text = self.text[-100000:] + more.decode(errors="replace")
            if not more:
                break

    def lines(self):
        """Of the last page that is there to its end."""
        self.read()
        pages = [p for p in self.text.split("\x1b[H")[1:-1] if p]
        page = pages[-1] if pages else ""
        return [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in re.split(r"\r+\n", page)]

    def fits(self):
        rows, columns = self.size
        lines = self.lines()
        return len(lines) == rows and max(map(len, lines)) <= columns

    def wait(self, words, seconds=20):
        wait_for(lambda: (any(words in line for line in self.lines()) and self.fits()) or
                 self.tool.poll() is not None, seconds, f"{words!r} in {self.lines()}")
        equal(self.tool.poll(), None, f"status, while waiting for {words!r}")

    def press(self, keys):
        os.write(self.master, keys.encode())

    def check_restored(self, status, what):
        deadline = time.monotonic() + 60
        while self.tool.poll() is None and time.monotonic() < deadline:
            self.read()
            time.sleep(0.02)
        equal(self.tool.poll(), status, f"status after {what}")
        self.read()
        begun, ended = self.text.rfind("\x1b[?1049h"), self.text.rfind(RESTORE)
        check(0 <= begun < ended, f"{what}: the screen comes back", self.text[-300:])
        equal(termios.tcgetattr(self.slave), self.before, f"{what}: the terminal's settings")
        os.close(self.master)
        os.close(self.slave)


def steady():
    """Calls of many names, and threads that all live on."""
    return start([workload("brake"), "--threads", "1", "--seconds", "1000", "1000000"], stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL)


@case
def keys_and_sizes(_):
    child = steady()
    t = Terminal(24, 80, "-p", child.pid, "-e", "brake:brake_*", "-i", "200ms")
    t.wait("names by self%")
    wait_for(lambda: sum("brake_steady" in line for line in t.lines()) >= 10, 10, "rows")
    check(f"brake ({child.pid})" in t.lines()[0] and " lost" in t.lines()[0], "the process", t.lines())
    t.press("s")
    t.wait("names by calls,")
    t.press("\x1b[D")
    t.wait("names by self%")
    t.press("fsteady_1\r")
    t.wait("like steady_1")
    wait_for(lambda: 4 == sum(line.startswith("brake_") for line in t.lines()), 5, "filtered")
    t.press("/\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7fbrake_*_2?\r")
    t.wait("like brake_*_2?")
    wait_for(lambda: all("steady_2" in line for line in t.lines() if line.startswith("brake_")), 5, "by a glob")
    t.press("tf")
    t.press("\x7f" * 20 + "\r")
    t.wait("threads by cpu%")
    check(any(f"brake ({child.pid})" in line for line in t.lines()[3:]), "threads", t.lines())
    t.press("p")
    t.wait("; paused")
    t.press("h")
    t.wait("have begun and not ended")
    t.press("hp")
    for rows, columns in ((50, 200), (10, 40), (3, 12), (24, 80)):
        t.resize(rows, columns)
        wait_for(t.fits, 10, f"{rows} lines of {columns}: {t.lines()}")
    t.press("q")
    t.check_restored(OK, "q")
    check(alive(child.pid), "the target")


@case
def colors(_):
    child = steady()
    for environment, wanted in (({}, True), ({"NO_COLOR": "1"}, False)):
        t = Terminal(24, 80, "-p", child.pid, "-e", "brake:brake_steady_0*", "-i", "200ms", **environment)
        t.wait("names by self%")
        equal("\x1b[7m" in t.text, wanted, f"colors with {environment}")
        t.press("q")
        t.check_restored(OK, "q")


@case
def terminal_after_signals(_):
    child = steady()
    for number_, status in ((signal.SIGTERM, OK), (signal.SIGQUIT, -signal.SIGQUIT)):
        t = Terminal(24, 80, "-p", child.pid, "-e", "brake:brake_steady_0*", "-i", "200ms")
        t.wait("names by")
        t.tool.send_signal(number_)
        t.check_restored(status, signal.Signals(number_).name)
    t = Terminal(24, 80, "-p", child.pid, "-e", "brake:brake_steady_0*", "-i", "200ms")
    t.wait("names by")
    t.tool.kill()
    t.tool.wait()
    wait_text_clean([child.pid], 5, "top killed")
    check(alive(child.pid), "the target")


@case
def target_that_ends_before_a_terminal(_):
    child = steady()
    t = Terminal(24, 80, "-p", child.pid, "-e", "brake:brake_steady_0*", "-i", "200ms")
    t.wait("brake_steady_00")
    child.kill()
    child.wait()
    t.check_restored(OK, "the target's end")
    check("brake_steady_00" in t.text.rpartition(RESTORE)[2], "the last table stays", t.text[-800:])


# ---- for hours -----------------------------------------------------------------------


def memory_of(pid):
    """Bytes of its own, and of the capture in memory."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        own = int(re.search(r"RssAnon:\s+(\d+) kB", f.read()).group(1)) * 1024
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("/memfd:xsptrace"):
                return own + os.stat(f"/proc/{pid}/fd/{name}").st_blocks * 512
        except FileNotFoundError:
            pass
    raise AssertionError("no capture in memory")


def check_memory(command, *options):
    child = start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tool = start([XSPTRACE, "top", *NO_BRAKE, "-p", child.pid, *options, "-i", "200ms", "--waits=0"], stdout=subprocess.PIPE,
                 stderr=subprocess.DEVNULL, text=True)
    seen = []

    def next_table():
        lines = list(iter(tool.stdout.readline, "\n"))
        seen.append(Table("".join(lines)))

    next_table()
    begun, measured = time.monotonic(), []
    while time.monotonic() < begun + SECONDS:
        next_table()
        measured.append(memory_of(tool.pid))
    tool.send_signal(signal.SIGINT)
    tool.stdout.close()
    child.kill()
    first, last = measured[:len(measured) // 2], measured[len(measured) // 2:]
    print(f"{sum(number(r['calls']) for r in seen[-1].order):.0f} calls in {time.monotonic() - begun:.0f} s, "
          f"{max(first) / 1e6:.1f} MB, {max(last) / 1e6:.1f} MB later, {seen[-1].lost()} lost")
    check(max(last) < max(first) + 4e6, "memory grows", measured)


@case(quiet="the memory of a recorder that keeps up")
def memory_at_a_high_rate(_):
    check_memory([workload("hot"), "--seconds", "1000", "--threads", "2"], "-e", "hot:hot_*")


@case(quiet="the memory of a recorder that keeps up")
def memory_where_threads_come_and_go(_):
    check_memory([workload("threadstorm"), "--seconds", "1000"], "-e", "threadstorm:*")


if __name__ == "__main__":
    main()
