#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What --shapes=all, --inputs=values and --flops show beyond what PyTorch's profiler could confirm
(torch_metadata.py)."""
import json

from harness import SCRIPTS, Trace, case, check, equal, main, need_torch, xsptrace

PYTHON = "/usr/bin/python3"


@case
def results_values_and_flops(folder):
    """As PyTorch itself says them."""
    need_torch()
    out, truth = f"{folder}/trace.json", f"{folder}/truth"
    xsptrace("--shapes=all", "--inputs=values", "--flops", "-o", out, "--", PYTHON,
             f"{SCRIPTS}/torch_shapes.py", truth, timeout=120)
    with open(truth, encoding="ascii") as f:
        known = json.load(f)
    spans = {e["name"]: e["args"] for e in sorted(Trace(out).spans, key=lambda e: e["ts"])}
    for name, wanted in known.items():
        check(name in spans, f"no {name}")
        equal({key: spans[name].get(key) for key in wanted}, wanted, name)


if __name__ == "__main__":
    main()
