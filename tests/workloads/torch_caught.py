#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""record_function ranges in which Python catches a C++ exception. Prints, for each range, what the
clock said just before it, just inside its two ends, and just after it."""
import json
import sys
import time

import torch
from torch.profiler import record_function


def main():
    a, b, x = torch.ones(3, 4), torch.ones(5, 6), torch.ones(4)
    clock = time.monotonic_ns
    for i in range(3):  # whatever is made at the first call
        with record_function("warm"):
            torch.add(x, x)
    times = []
    for i in range(int(sys.argv[1])):
        around = [clock()]
        with record_function("caught"):
            around.append(clock())
            try:
                torch.mm(a, b)
            except RuntimeError:
                pass
            with record_function("inner"):
                torch.add(x, x)
            time.sleep(0.001)
            torch.neg(x)
            around.append(clock())
        around.append(clock())
        times.append(around)
    print(json.dumps(times))


main()
