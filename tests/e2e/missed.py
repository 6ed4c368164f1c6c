#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that the kernel did not run because they were running on the CPU already.

Linux keeps such a mark for each program of a tracepoint and CPU (kernel/trace/bpf_trace.c,
__bpf_trace_run), and none for programs of uprobes (uprobe_prog_run, bpf_prog_run_array_uprobe): no hit of a
function is ever skipped for that. So the program for births of processes is hung on a second tracepoint,
which its own wake-up of the recorder passes while it runs."""
import ctypes
import os
import platform
import signal

from harness import Recording, Skip, Trace, case, check, equal, finish, main, start_ready, truth, workload

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBER = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD, RAW_TRACEPOINT_OPEN = 13, 15, 17  # enum bpf_cmd
NAME_AT, RECURSION_MISSES_AT = 64, 208  # in struct bpf_prog_info


def bpf(command, *words):
    """Words of union bpf_attr, 64 bits each."""
    attributes = (ctypes.c_uint64 * 16)(*words)
    result = LIBC.syscall(NUMBER, command, ctypes.byref(attributes), ctypes.sizeof(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"bpf({command})")
    return result


def information(fd):
    data = ctypes.create_string_buffer(256)
    bpf(OBJ_GET_INFO_BY_FD, fd | len(data) << 32, ctypes.addressof(data))
    return data.raw


def program_of(tracer, name):
    """A descriptor of a program that a child of the tracer has loaded."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
            files = os.listdir(f"/proc/{pid}/fdinfo") if parent == tracer else []
        except OSError:
            continue
        for file in files:
            with open(f"/proc/{pid}/fdinfo/{file}", encoding="ascii", errors="replace") as f:
                ids = [int(line.split()[1]) for line in f if line.startswith("prog_id:")]
            for fd in (bpf(PROG_GET_FD_BY_ID, i) for i in ids):
                if information(fd)[NAME_AT:].startswith(name):
                    return fd
                os.close(fd)
    raise AssertionError(f"{name} is not loaded")


@case(quiet="wake-ups of a recorder that sleeps")
def programs_that_were_running_already(folder):
    """As many as the kernel says: one for each process that the program starts, and some for what interrupts."""
    child, other = (start_ready([workload("forker"), "--wait", "--calls", 10, "--out", f"{folder}/truth"])
                    for _ in range(2))
    with Recording(folder, "-p", child.pid, "-p", other.pid, "--follow", "-e", "forker_*", "-o",
                   "trace.json") as recording:
        program = program_of(recording.process.pid, b"xsp_task_fork\0")
        name = ctypes.create_string_buffer(b"ipi_send_cpu")
        try:
            link = bpf(RAW_TRACEPOINT_OPEN, ctypes.addressof(name), program)
        except OSError as e:
            raise Skip(f"no second tracepoint for it: {e}") from e
        child.send_signal(signal.SIGUSR1)
        equal(finish(child), 0, "status of forker")
        os.close(link)
        missed = int.from_bytes(information(program)[RECURSION_MISSES_AT:][:8], "little")
        os.close(program)
        recording.stop()
        output = recording.wait()
    calls = truth(f"{folder}/truth")["calls"]
    started = sum(calls[name] for name in ("forker_parent", "forker_vfork", "forker_spawn"))
    print(f"  {started} processes, {missed} misses")
    equal(Trace(f"{folder}/trace.json").losses["missed_hits"], missed, "missed hits")
    # a wake-up that is under way already is not sent again
    check(missed > started / 2, f"{missed} misses for {started} processes")
    check(f"lost: {missed} hits missed by the kernel" in output, "the summary", output)


if __name__ == "__main__":
    main()
