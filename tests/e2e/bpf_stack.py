#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""No BPF function uses 64 bytes of stack or more: from there on Linux 6.13 gives a uprobe program one
private stack a CPU (BPF_PRIV_STACK_MIN_SIZE, kernel/bpf/verifier.c), which two threads share when the
kernel preempts; events then carried another thread's id (seen on 7.3).

    bpf_stack.py OBJECT...
"""
import re
import shutil
import subprocess
import sys

LIMIT = 64


def depths(listing):
    """{function: deepest byte below the frame pointer} of llvm-objdump's listing."""
    found, function = {}, None
    for line in listing.splitlines():
        title = re.match(r"[0-9a-f]+ <(.*)>:", line)
        if title:
            if not title[1].startswith("LBB"):
                function = title[1]
                found.setdefault(function, 0)
            continue
        used = [int(n, 0) for n in re.findall(r"r10 - (0x[0-9a-f]+|\d+)", line)]
        used += [int(n, 0) for n in re.findall(r"r\d+ \+= -(0x[0-9a-f]+|\d+)\b", line)]
        # an offset beyond the whole stack is a subtracted number
        found[function] = max([found.get(function, 0), *(n for n in used if n <= 512)])
    return found


def main():
    tool = next((t for t in ("llvm-objdump", *(f"llvm-objdump-{v}" for v in range(25, 13, -1)))
                 if shutil.which(t)), None)
    if tool is None:
        print("SKIP: llvm-objdump is not installed (tools/install-deps test)")
        return 77
    # it must be able to fail
    assert depths("0 <f>:\n 1: *(u64 *)(r10 - 72) = r1\n")["f"] >= LIMIT
    assert depths("0 <f>:\n 1: r2 = r10\n 2: r2 += -80\n")["f"] >= LIMIT
    status = 0
    for path in sys.argv[1:]:
        listing = subprocess.run([tool, "-d", "--no-show-raw-insn", path], capture_output=True, text=True,
                                 check=True).stdout
        found = depths(listing)
        assert found, f"{path}: no functions"
        for function, depth in sorted(found.items(), key=lambda f: -f[1]):
            if depth >= LIMIT:
                print(f"{path}: {function} uses {depth} bytes of stack")
                status = 1
        print(f"{path}: {len(found)} functions, {max(found.values())} bytes at most")
    return status


if __name__ == "__main__":
    sys.exit(main())
