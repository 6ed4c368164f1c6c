#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a terminal of 80, 100 and 200 columns gets to see: no line is longer, and colors are left out where they are not
wanted. The columns are counted here, in what a pseudo-terminal was sent."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import shared
from harness import NO_BRAKE, XSPTRACE, case, check, equal, main, start, workload, xsptrace

SIZES = ((24, 80), (30, 100), (50, 200))


def on_a_terminal(rows, columns, *arguments, **environment):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = start([XSPTRACE, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                  env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment})
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # all writers have closed it
            break
        said += more
    os.close(ours)
    equal(child.wait(timeout=20), 0, f"status\n{said.decode(errors='replace')}")
    return said.decode()


def shown(said):
    """Lines; of overwritten ones, each picture."""
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said)
    return [part for line in plain.split("\n") for part in line.split("\r")]


@case
def no_line_is_too_long(folder):
    path, child = shared.capture("demo").path, start([workload("stuck")], stdout=subprocess.DEVNULL)
    everywhere = [[*NO_BRAKE, "-p", child.pid, "--waits", "-d", "0.3", "-e", "stuck:*", "-o", f"{folder}/o.svg"],
                  ["list", "-p", child.pid, "-e", "stuck:*"], ["dump", "-p", child.pid], ["info", path],
                  ["export", path, "--rows", "all"], ["analyze", path]]
    narrow = [["compare", path, path], ["doctor"], *([verb, "--help"] for verb in ("record", "top", "analyze", "view"))]
    for rows, columns in SIZES:
        for arguments in everywhere + (narrow if columns == 80 else []):
            lines = shown(on_a_terminal(rows, columns, *(str(a) for a in arguments)))
            check(len(lines) > 3, f"{arguments[0]}: too little", lines)
            too_long = [line for line in lines if len(line) > columns]
            equal(too_long, [], f"{' '.join(str(a) for a in arguments)}: longer than {columns} columns")


@case
def words_stay_whole_and_pipes_as_they_are(folder):
    """What a narrow terminal shows is what a pipe gets, but for where lines end."""
    path = shared.capture("demo").path
    for arguments in (["info", path], ["analyze", "--help"]):
        piped = xsptrace(*arguments).stdout.split()
        equal(" ".join(shown(on_a_terminal(24, 200, *arguments))).split(), piped, f"{arguments[0]}: words")
    check(max(map(len, xsptrace("info", path).stdout.split("\n"))) > 80, "a pipe gets lines as they are")
    json = on_a_terminal(24, 80, "analyze", path, "--format", "json")
    check(max(map(len, json.split("\r\n"))) > 80, "JSON is not broken into lines", json[:400])


KEEPS = """import time
kept = []
def keeps_its_pages(count):
    kept.append(bytearray(count))
for _ in range(200):
    keeps_its_pages(65536)
    time.sleep(0.001)
"""


@case
def lines_of_a_program_stay_whole(folder):
    """Where something was allocated: the number of the line is what the table is read for."""
    script, path = f"{folder}/a_program_of_some_name.py", f"{folder}/heap.xspt"
    with open(script, "w", encoding="ascii") as f:
        f.write(KEEPS)
    xsptrace("-q", "--memory=malloc:4096", "--python", "-o", path, "--", "/usr/bin/python3", script)
    said = "\n".join(shown(on_a_terminal(24, 80, "export", path)))
    table = said[said.index("alive"):said.index("spans of")]
    check(re.search(r"a_program_of_some_name\.py:4\s+keeps_its_pages", table), "the line", table)


@case
def a_recording_ends_in_one_screen(folder):
    """What comes after the first line is the answer alone: it fits 80 by 24, and the last line is the command to go on with."""
    child = start([workload("hot"), "--threads", 1, "--rate", 1000, "--seconds", 100, "--out", "/dev/null"])
    for options, last in ((["-o", f"{folder}/r.xspt", "-o", f"{folder}/r.json"], f"more:  xsptrace analyze --full {folder}/r.xspt"),
                          (["--waits=off", "--sample=off", "-o", f"{folder}/r.json"], "more:  -o NAME.xspt keeps all of it")):
        said = on_a_terminal(24, 80, *NO_BRAKE, "-p", str(child.pid), "-e", "hot:hot_*", "-d", "0.5", *options)
        lines = [line.rstrip("\r") for line in re.sub(r"\x1b\[[0-9;]*m", "", said).split("\n")]
        screen = lines[next(i for i, line in enumerate(lines) if "tracing" in line) + 1:-1]
        check(4 < len(screen) <= 23, f"{len(screen)} lines", screen)
        check(screen[-1].startswith(last) and any("r.json" in line for line in screen), "what to do next", screen)


@case
def no_color(folder):
    path = shared.capture("demo").path
    for arguments in (["export", path], ["analyze", path]):
        check("\x1b[1m" in on_a_terminal(24, 80, *arguments), "titles are bold")
        check("\x1b[" not in on_a_terminal(24, 80, *arguments, NO_COLOR="1"), f"{arguments[0]}: NO_COLOR is not heeded")


main()
