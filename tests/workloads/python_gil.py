#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""python_gil.py fight|idle|lock: four threads of Python for two seconds. fight: all of them count; idle: one does, the others
wait for work that comes seldom; lock: each sleeps with a lock of the program's own. Says "ready" and waits for a line; then prints
as JSON of each thread, by its number: how long it took, what of it it was on a CPU, and what it could have been, as the
kernel counts it (/proc/TID/schedstat)."""
import json
import queue
import sys
import threading
import time

SECONDS = 2
THREADS = 4
facts = {}


def count(until):
    n = 0
    while time.monotonic() < until:
        for _ in range(20000):
            n += 1
    return n


def serve(work):
    while work.get() is not None:
        pass


def sleep_with(lock, until):
    while time.monotonic() < until:
        with lock:
            time.sleep(0.01)


def schedstat():
    with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", encoding="ascii") as f:
        on_cpu, runnable, _ = f.read().split()
    return int(on_cpu), int(runnable)


def worker(function, *arguments):
    begin, (on_cpu, runnable) = time.monotonic_ns(), schedstat()
    function(*arguments)
    end, (on_cpu_then, runnable_then) = time.monotonic_ns(), schedstat()
    facts[threading.get_native_id()] = {"ns": end - begin, "cpu_ns": on_cpu_then - on_cpu,
                                        "runnable_ns": runnable_then - runnable}


def main():
    how = sys.argv[1]
    lock, work = threading.Lock(), queue.Queue()
    print("ready", flush=True)
    sys.stdin.readline()
    until = time.monotonic() + SECONDS
    jobs = {"fight": [(count, until)] * THREADS, "lock": [(sleep_with, lock, until)] * THREADS,
            "idle": [(count, until)] + [(serve, work)] * (THREADS - 1)}[how]
    threads = [threading.Thread(target=worker, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    while how == "idle" and time.monotonic() < until:
        time.sleep(0.25)
        work.put(1)
    for _ in threads:
        work.put(None)
    for thread in threads:
        thread.join()
    print(json.dumps(facts))


main()
