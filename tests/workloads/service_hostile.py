# SPDX-License-Identifier: BSD-2-Clause
"""A process that the service watches, and that means harm: service_hostile.py PREFIX SECONDS PID...

Its name, which begins with PREFIX, drives terminals and breaks lines of metrics, it takes memory, its children come and go in floods, and it sends every signal to
the PIDs, which are root's.
"""
import ctypes
import os
import random
import signal
import sys
import time

libc = ctypes.CDLL(None)
NAMES = [sys.argv[1].encode() + name for name in (b"\x1b[31m\n", b'"} 1\n# x', b"\xff\xfe\\", "\u202ex".encode(), b"$(id)")]
end = time.monotonic() + float(sys.argv[2])
targets = [int(p) for p in sys.argv[3:]]
hoard = []
while time.monotonic() < end:
    libc.prctl(15, random.choice(NAMES), 0, 0, 0)  # PR_SET_NAME
    if len(hoard) < 12:
        hoard.append(bytearray(os.urandom(4096)) * 4096)
    for _ in range(4):
        if os.fork() == 0:
            libc.prctl(15, random.choice(NAMES), 0, 0, 0)
            time.sleep(random.random())
            os._exit(random.choice([0, 1]))
    for pid in targets:
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGUSR2, signal.SIGTERM):
            try:
                os.kill(pid, number)
                print(f"signal {number} to {pid}", flush=True)
            except (PermissionError, ProcessLookupError):
                pass
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    time.sleep(0.05)
