#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Placement judged on programs and libraries that nobody here has looked at.

    corpus.py JUDGE           twenty files of the machine's packages, chosen anew each day
    corpus.py --all JUDGE     all of them, and those of the packages in corpus.list (2.2 GB are downloaded and kept)

JUDGE is placement_property. A run of another day: --date 2026-11-24."""
import argparse
import concurrent.futures
import datetime
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOTS = ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"]
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
FILES = 20
LEAST, MOST = 100_000, 4_000_000  # bytes of a file that is chosen by date
LEAST_OF_ALL = 20_000
PATIENCE = 900


def is_program(path):
    """A 64-bit program or library for x86-64."""
    try:
        if os.path.islink(path) or not os.path.isfile(path):
            return False
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return False
    return len(head) == 20 and head[:5] == b"\x7fELF\x02" and head[16] in (2, 3) and head[18] == 62


def content(path):
    with open(path, "rb") as f:
        return os.path.getsize(path), hashlib.sha1(f.read(1 << 20)).digest()


def programs(roots, least, most=1 << 40):
    """Each content once, in order. What has no code of its own (debug files) is left out."""
    found = {}
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in () if folder.startswith("/usr/lib/debug") else names:
                path = os.path.join(folder, name)
                if is_program(path) and least <= os.path.getsize(path) <= most:
                    found.setdefault(content(path), path)
    return sorted(found.values())


def apt(suite, cache):
    """Options of an apt whose state lies in the cache: nothing on the machine changes."""
    state = os.path.join(cache, "apt", suite)
    os.makedirs(f"{state}/lists/partial", exist_ok=True)
    os.makedirs(f"{state}/cache/archives/partial", exist_ok=True)
    with open(f"{state}/sources.list", "w", encoding="ascii") as f:
        f.write(f"deb [arch=amd64 signed-by={KEYS}] http://deb.debian.org/debian {suite} main\n")
    options = {"Dir::Etc::sourcelist": f"{state}/sources.list", "Dir::Etc::sourceparts": "-",
               "Dir::State::lists": f"{state}/lists", "Dir::Cache": f"{state}/cache", "APT::Architecture": "amd64",
               "Dir::State::status": "/dev/null", "Acquire::Languages": "none", "APT::Sandbox::User": "root",
               "APT::Default-Release": ""}
    made = ["-qq", *(x for k, v in options.items() for x in ("-o", f"{k}={v}"))]
    subprocess.run(["apt-get", *made, "update"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return made


def fetch(cache):
    """Folders of the packages in corpus.list, with what of them is programs."""
    with open(os.path.join(HERE, "corpus.list"), encoding="ascii") as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    options = {suite: apt(suite, cache) for suite in {suite for suite, _ in rows}}
    folders = []
    for suite, package in rows:
        folder = os.path.join(cache, suite, package)
        if not os.path.isdir(folder):
            work = os.path.join(cache, "work")
            shutil.rmtree(work, ignore_errors=True)
            os.makedirs(work)
            done = subprocess.run(["apt-get", *options[suite], "download", package], cwd=work, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
            debs = [name for name in os.listdir(work) if name.endswith(".deb")]
            if done.returncode or not debs:
                print(f"SKIP: {suite} {package} cannot be had: {(done.stderr.strip() or 'no answer').splitlines()[-1]}")
                continue
            subprocess.run(["dpkg-deb", "-x", debs[0], "tree"], cwd=work, check=True)
            for base, _, names in os.walk(f"{work}/tree"):
                for name in names:
                    if not is_program(os.path.join(base, name)):
                        os.unlink(os.path.join(base, name))
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.rename(f"{work}/tree", folder)
        folders.append(folder)
    return folders


def judge(program, path):
    """(functions, complete, broken: what the judge says of it, or "")."""
    try:
        done = subprocess.run([program, path], capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return 0, 0, f"not done after {PATIENCE} s"
    m = re.search(r"functions (\d+) placed (\d+) complete (\d+)", done.stdout)
    if not m:
        return 0, 0, f"status {done.returncode}: {(done.stdout + done.stderr)[-300:]}"
    rules = re.findall(r"^  [0-9a-f]+: .*", done.stdout, re.M)
    # a file without unwind tables and symbols has nothing to place
    return int(m[1]), int(m[3]), "\n".join(rules) or ("" if done.returncode == 0 or int(m[2]) == 0 else done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("judge")
    o = parser.parse_args()
    cache = os.path.join(os.environ.get("XSPTRACE_TEST_CACHE") or os.path.expanduser("~/.cache/xsptrace-tests"), "corpus")
    files = programs(ROOTS + (fetch(cache) if o.all else []), *((LEAST_OF_ALL,) if o.all else (LEAST, MOST)))
    if not o.all:
        files = random.Random(o.date).sample(files, min(FILES, len(files)))
    if not files:
        print("SKIP: no programs were found")
        return 77
    functions = complete = broken = with_code = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() if o.all else 1) as pool:
        for path, (n, whole, wrong) in zip(files, pool.map(lambda f: judge(o.judge, f), files)):
            functions, complete, broken = functions + n, complete + whole, broken + bool(wrong)
            with_code += n > 0
            if wrong or not o.all:
                print(f"{n:>8,} {path}{': WRONG' if wrong else ''}")
            if wrong:
                print(wrong)
    print(f"{with_code:,} files ({o.date}), {functions:,} functions, {complete / max(functions, 1):.2%} complete; "
          f"{broken} files with a placement that breaks a rule")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
