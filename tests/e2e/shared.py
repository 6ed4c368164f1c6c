# SPDX-License-Identifier: BSD-2-Clause
"""Recordings with everything on, for cases that only look at what is made of one: a recording is made at its first use, by
whichever test process comes first, and then is there for all of them. Nobody changes it: who damages a capture copies it.

They lie in the folder `shared` beside the binary of xsptrace (or in XSP_SHARED), under a name that changes with that binary, the
program that is recorded and this file, so that what was built anew is recorded anew, as is what is more than an hour old.
"""
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import time
import typing

from harness import (EXTRA, SCRIPTS, TORCH, XSPTRACE, Recording, equal, finish, need_torch, start_ready, truth,
                     workload, xsptrace)

PYTHON = TORCH
PLACE = os.path.abspath(os.environ.get("XSP_SHARED", os.path.join(os.path.dirname(XSPTRACE), "shared")))
HOUR = 3600
STEPS, TORCH_STEPS, GPU_STEPS = 12, 8, 40  # iterations of each thread, of the training loops


class Kind(typing.NamedTuple):
    program: str
    arguments: tuple
    options: tuple
    attached: bool  # while it waits; else it is started by xsptrace, which the GPU's agent needs


KINDS = {
    # two threads that take turns, and one that holds a lock: annotations, steps, numbers, an exception, page faults, a heap
    "demo": Kind("everything", ("--calls", STEPS),
                 ("-e", "record_function", "-e", "libc.so:clock_nanosleep", "-e", "everything:every_*", "--waits", "--wait-stacks", "--sample=999",
                  "--stacks", "--counters", "task-clock,page-faults", "--memory=malloc:4096"), True),
    # a training loop of PyTorch: lines and modules of Python, arguments, the backward pass, memory
    "torch": Kind("torch_everything.py", ("--steps", TORCH_STEPS),
                  ("--python", "--waits", "--wait-stacks", "--sample=499", "--shapes", "--sequence", "--memory"), True),
    # the same on the simulated GPU: kernels, copies, sets, a graph, NCCL, and calls of CUDA's API; what the driver counted is in "driver"
    "gpu": Kind("gpu_train", ("--calls", GPU_STEPS), (), False),
}


class Capture(typing.NamedTuple):
    path: str
    truth: dict  # what the program wrote at its end


def key_of(parts, files):
    """Changes with the parts, the contents of the files, and this file."""
    key = hashlib.sha256(repr(parts).encode())
    for path in (*files, __file__):
        with open(path, "rb") as f:
            key.update(f.read())
    return key.hexdigest()[:16]


@contextlib.contextmanager
def locked(name):
    """One process makes it; others wait, and find it made. The kernel releases the lock if the maker dies."""
    os.makedirs(PLACE, exist_ok=True)
    with open(f"{PLACE}/{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def once(name, files, make):
    """The result of make(), kept as JSON: only the first test that asks calls it, as long as these files stay the same."""
    path = f"{PLACE}/{name}-{key_of((name, PYTHON), files)}.json"
    with locked(name):
        if not os.path.exists(path) or time.time() - os.path.getmtime(path) > HOUR:
            made = make()
            with open(f"{path}.part", "w", encoding="utf-8") as f:
                json.dump(made, f)
            os.rename(f"{path}.part", path)
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def path_of(kind):
    return f"{SCRIPTS}/{kind.program}" if kind.program.endswith(".py") else workload(kind.program)


@functools.cache
def key_of_kind(name):
    return key_of((name, EXTRA, PYTHON), (XSPTRACE, path_of(KINDS[name])))


def record(kind, folder):
    """capture.xspt and truth.json, in the folder."""
    facts, capture = f"{folder}/truth.json", f"{folder}/capture.xspt"
    command = [*([PYTHON] if kind.program.endswith(".py") else []), path_of(kind)]
    arguments = ["--out", facts, *kind.arguments]
    if not kind.attached:
        xsptrace(*EXTRA, "-q", *kind.options, "-o", capture, "--", *command, *arguments, timeout=240,
                 env={**os.environ, "XSP_DOUBLE_TRUTH": f"{folder}/driver"})
        with open(facts, "r+", encoding="utf-8") as f:
            told = json.load(f)
            f.seek(0)
            json.dump({**told, "driver": truth(f"{folder}/driver")}, f)
        return
    child = start_ready([*command, "--wait", *arguments])
    with Recording(folder, "-p", child.pid, *kind.options, "-o", capture) as recording:
        child.send_signal(signal.SIGUSR1)
        equal(finish(child, 240), 0, f"status of {kind.program}")
        recording.wait(seconds=240)


def there_is(name):
    """The folder of a recording of the last hour. A bad recording is thus not kept for ever."""
    made = [f for f in os.listdir(PLACE) if re.fullmatch(rf"{name}-{key_of_kind(name)}-\d+", f) and age_of(f) < HOUR]
    return f"{PLACE}/{min(made, key=age_of)}" if made else None


def age_of(folder):
    """Its name ends with when it was made."""
    stamp = folder.removesuffix(".part").rpartition("-")[2]
    return time.time() - int(stamp) if stamp.isdecimal() else 5 * HOUR


@functools.cache  # one and the same for all cases of a process
def capture(name):
    """The recording of that kind, and what its program says that it did."""
    os.makedirs(PLACE, exist_ok=True)
    folder = there_is(name)
    if folder is None:
        with locked(name):
            folder = there_is(name) or make(name)
    return Capture(f"{folder}/capture.xspt", truth(f"{folder}/truth.json"))


def make(name):
    """Records, with the lock held. Removes unfinished recordings, and those that no run reads any more."""
    if KINDS[name].program.startswith("torch"):
        need_torch()
    begun = time.monotonic()
    for other in os.listdir(PLACE):
        if other.startswith(f"{name}-") and (other.endswith(".part") or age_of(other) > 4 * HOUR):
            shutil.rmtree(f"{PLACE}/{other}", ignore_errors=True)
    folder = f"{PLACE}/{name}-{key_of_kind(name)}-{int(time.time())}"
    part = f"{folder}.part"
    os.mkdir(part)
    record(KINDS[name], part)
    for file in os.listdir(part):
        os.chmod(f"{part}/{file}", 0o444)
    os.rename(part, folder)
    print(f"  recorded {name} for all cases ({time.monotonic() - begun:.1f} s): {folder}")
    return folder
