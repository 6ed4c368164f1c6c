#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tools/test asks of ctest's results and of the tables in this folder.

    times.py slowest JUNIT...           the twenty slowest tests
    times.py over FACTOR JUNIT...       "FOLDER NAME" of tests that took longer than FACTOR times what tests/budgets allows
    times.py count JUNIT...             how many passed, failed and were skipped
    times.py changed BASE FOLDER        the long tests of a build that tests/paths names for what changed since BASE
    times.py paths PATH...              a regular expression: tests that it names for these paths
"""
import collections
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = 30  # seconds of a test that has no row


def rows(name):
    with open(f"{HERE}/{name}", encoding="utf-8") as f:
        return [line.split() for line in f if line.strip() and not line.startswith("#")]


def tests(files):
    """Each test by name, of several runs the last."""
    found = {}
    for path in files:
        if os.path.exists(path):
            found.update((test.get("name"), test) for test in xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    return found


def times(files):
    """(seconds, test), the slowest first."""
    return sorted(((float(test.get("time")), name) for name, test in tests(files).items()), reverse=True)


def count(*files):
    status = collections.Counter(test.get("status") for test in tests(files).values())
    print(f"tests: {status['run']} passed, {status['fail']} failed, {status.total() - status['run'] - status['fail']} skipped")


def slowest(*files):
    for seconds, test in times(files)[:20]:
        print(f"  {seconds:7.1f} s  {test}")


def over(factor, *files):
    budgets = {row[1]: float(row[0]) for row in rows("budgets")}
    for path in files:
        for seconds, test in times([path]):
            if seconds > float(factor) * budgets.get(test, BUDGET):
                print(os.path.dirname(path), test)


def pattern_of(changed):
    found = {match.expand(row[1]) for row in rows("paths") for path in changed if (match := re.fullmatch(row[0], path))}
    return "|".join(sorted(found))


def paths(*changed):
    print(pattern_of(changed))


def long_tests(folder):
    listing = subprocess.run(["ctest", "--test-dir", folder, "-N", "-L", "long", "-LE", "known", "--show-only=json-v1"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return [test["name"] for test in json.loads(listing)["tests"]]


def changed(base, folder):
    """Names, chosen here: ctest's own expressions end at 31 groups, and what it cannot read chooses nothing."""
    names = subprocess.run(["git", "diff", "--name-only", base, "--"], check=True, stdout=subprocess.PIPE, text=True,
                           cwd=HERE).stdout.splitlines()
    pattern = pattern_of(names)
    for name in long_tests(folder) if pattern else []:
        if re.search(pattern, name):
            print(name)


COMMANDS = {"count": count, "slowest": slowest, "over": over, "paths": paths, "changed": changed}
if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(__doc__)
COMMANDS[sys.argv[1]](*sys.argv[2:])
