#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""cases.py BUILD: is every case of tests/e2e run by a test of that build? One that no test names would be green for ever."""
import fnmatch
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CASE = re.compile(r"^@case\n(?:@.*\n)*def (\w+)\(", re.M)


def main():
    listed = subprocess.run(["ctest", "--test-dir", sys.argv[1], "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE).stdout
    patterns = {}
    for test in json.loads(listed)["tests"]:
        words = test.get("command", [])
        for i, word in enumerate(words):
            if os.path.dirname(word) == HERE and word.endswith(".py"):
                patterns.setdefault(os.path.basename(word), []).append(words[i + 1:])
    missing = []
    for name in sorted(os.listdir(HERE)):
        if not name.endswith(".py"):
            continue
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            cases = CASE.findall(f.read())
        missing += [f"{name} {case}" for case in cases
                    if not any(not some or any(fnmatch.fnmatch(case, p) for p in some)
                               for some in patterns.get(name, []))]
    if missing:
        sys.exit("no test runs:\n  " + "\n  ".join(missing))


main()
