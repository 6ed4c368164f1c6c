# SPDX-License-Identifier: BSD-2-Clause
"""What inject.py and hostile_inject.py share: xsp_inject() by tests/workloads/inject_tool.c."""
import json

import harness as h

ENTRY = "probe_start"


def tool(pid, library, *arguments, timeout=60):
    done = h.run([h.workload("inject_tool"), pid, library, *arguments], timeout=timeout)
    h.check(done.stdout.startswith("{"), f"inject_tool: status {done.returncode}", done.stderr)
    return json.loads(done.stdout)


def inject(pid, library, entry=ENTRY, **options):
    """Injects; must succeed."""
    got = tool(pid, library, entry, options.get("timeout_ms", 20000), options.get("tid", 0),
               *(["memfd"] if options.get("memfd") else []))
    h.check(got["rc"] == 0, f"injection into {pid} failed", got)
    if entry == ENTRY:
        h.equal(got["value"], 1101, "constructor and entry ran once, with signals blocked")
    return got


def library():
    return h.workload("libinject_library.so")


def mapped(pid, name):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        return [line for line in f if name in line]
