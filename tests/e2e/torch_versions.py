#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""torch_metadata.py with another version of PyTorch, its own Python and its own C library, in
another root folder and mount namespace; xsptrace stays outside.

    torch_versions.py NAME [CASE...]     NAME: of tests/torch/torches.list
"""
import os
import sys

from harness import ROOT, run

fetched = run([f"{ROOT}/tests/torch/fetch-torch", sys.argv[1]], timeout=900)
if fetched.returncode == 77:
    print(f"SKIP: {fetched.stderr.strip()}")
if fetched.returncode:
    print(fetched.stderr)
    sys.exit(fetched.returncode)
os.environ["TORCH_ROOT"] = fetched.stdout.strip()
os.execv(sys.executable, [sys.executable, os.path.join(os.path.dirname(__file__), "torch_metadata.py"),
                          *sys.argv[2:]])
