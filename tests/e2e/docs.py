#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""README and docs/: their links lead somewhere, their commands run, they are short, and their pictures are small."""
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess

from harness import OK, ROOT, XSPTRACE, Skip, case, check, equal, finish, main, start, why_not, workload, xsptrace


def pages():
    paths = [f"{ROOT}/README.md", *sorted(glob.glob(f"{ROOT}/docs/*.md"))]
    for path in paths:
        with open(path, encoding="utf-8") as f:
            yield os.path.relpath(path, ROOT), f.read()


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def anchors(text):
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ +(.*)$", without_code(text), flags=re.M)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@case
def links(_):
    """Files, and headings in them. Pages of others are not asked for: tests go to no network."""
    of = dict(pages())
    wrong = []
    for page, text in of.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(text))):
            if re.match(r"https?://", target):
                continue
            file, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), file)) if file else page
            if not os.path.exists(f"{ROOT}/{path}"):
                wrong.append(f"{page}: {target}: no such file")
            elif anchor and path in of and anchor not in anchors(of[path]):
                wrong.append(f"{page}: {target}: no such heading")
    for path in glob.glob(f"{ROOT}/user/**/*.[ch]", recursive=True) + glob.glob(f"{ROOT}/include/**/*.h", recursive=True):
        with open(path, encoding="utf-8") as f:  # messages, --help and comments
            wrong += [f"{path}: {page}: no such file" for page in re.findall(r"\bdocs/[\w-]+\.md", f.read()) if not os.path.exists(f"{ROOT}/{page}")]
    equal(wrong, [], "links that lead nowhere")


def commands(text, verbs):
    """Lines of code blocks that run xsptrace, those that go on joined: (verb, what it is given)."""
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.S | re.M):
        for words in re.findall(r"(?:^|[\s/])xsptrace +(\S.*)$", block.replace("\\\n", " "), flags=re.M):
            words = words.split(" # ")[0].split(" -- ")[0]
            yield words.split()[0] if words.split()[0] in verbs else "record", words


@case
def options(_):
    """In commands: of that verb. Elsewhere, in code spans: of any, or of the tools that come along."""
    helps = {"record": xsptrace("help", "all").stdout}
    verbs = re.findall(r"^  xsptrace (\w+) ", helps["record"], flags=re.M)
    helps.update((verb, xsptrace(verb, "--help").stdout) for verb in verbs)
    for path in glob.glob(f"{ROOT}/tools/*"):
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                helps[path] = f.read()
    known = {name: set(re.findall(r"--[a-z][a-z-]*", text)) for name, text in helps.items()}
    anywhere = set().union(*known.values())
    wrong = []
    for page, text in pages():
        for verb, words in commands(text, verbs):
            given = {o for o in re.findall(r"(?<=\s)--[a-z][a-z-]*", f" {words}")}
            wrong += [f"{page}: xsptrace {verb} {o}" for o in given - known[verb]]
        if page == "README.md":
            spans = re.findall(r"`(--[a-z][a-z-]*)[^`]*`", without_code(text))
            wrong += [f"{page}: `{o}`" for o in set(spans) - anywhere]
    equal(sorted(set(wrong)), [], "options that do not exist")


@case
def help_in_parts(_):
    """The first page fits a screen or so; each option of a recording is in one of the parts, and all of them in `all`."""
    short = xsptrace("--help").stdout
    check(len(short.splitlines()) <= 35 and max(map(len, short.splitlines())) <= 80, "the short help", short)
    options = {part: set(re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", xsptrace("help", part).stdout, flags=re.M))
               for part in ("record", "output", "pytorch", "gpu", "all")}
    whole = options.pop("all")
    equal(set().union(*options.values()), whole, "options in parts, and all of them")
    equal(sum(map(len, options.values())), len(whole), "options in two parts")
    equal({o for o in re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", short, flags=re.M)} - whole, set(), "of the short help")
    xsptrace("help", "everything", status=2)


@case
def programs_of_the_recipes(_):
    """What the README has traced comes with the sources."""
    of = dict(pages())
    for path in set(re.findall(r"(?<![\w/])(tests/workloads/[\w.]+)", of["README.md"])):
        check(os.path.exists(f"{ROOT}/{path}"), f"README.md: {path} is not there")
    with open(f"{ROOT}/tests/workloads/CMakeLists.txt", encoding="utf-8") as f, \
            open(f"{ROOT}/tests/doubles/CMakeLists.txt", encoding="utf-8") as g:
        built = f.read() + g.read()
    for name in set(re.findall(r"build/release/workloads/(\w+)", of["README.md"])):
        check(re.search(rf"\b{name}\b", built), f"README.md: build/release/workloads/{name} is not built")


# What the README has of other programs, and where these are run; and what takes more than one process and one host.
ELSEWHERE = ("tools/quickstart", "sudo cmake --install ")  # tools/test, e2e.install
NEEDS = ("clickhouse://", "rank0.xspt", "runs/", "job.xspt ", "--perfetto")  # e2e.clickhouse, e2e.ranks, e2e.view
FAIL_ON = 10


def command_lines(text):
    """As they are typed: after `$ `, or alone in a block; without comments and redirections."""
    for block in re.findall(r"^```\n(.*?)^```", text, flags=re.S | re.M):
        for line in block.replace("\\\n", " ").splitlines():
            words = re.sub(r"\s+(#|>|\|\|) .*", "", line.removeprefix("$ ")).strip()
            if words and (line.startswith("$ ") or re.match(r"(sudo )?(xsptrace|tools/\w+|cmake) ", f"{words} ")):
                yield words


def as_it_runs(line, pid):
    """(The words after xsptrace, is it a recording?): on a program of ours, and quickly."""
    words = shlex.split(line.removeprefix("sudo ").removeprefix("xsptrace"))
    if "--" in words:
        words = [*words[:words.index("--") + 1], workload("orders"), "1"]
    if "-p" in words:
        words[words.index("-p") + 1] = str(pid)
    records = words[0].startswith("-")
    if "-d" in words:
        words[words.index("-d") + 1] = "0.5"
    elif records and "--" not in words:
        words += ["-d", "0.5"]
    if words[0] == "top":
        words += ["-n", "1"]
    return words, records


def read_it(words, folder):
    """Runs what needs no process: with a capture in the place of each that is not there."""
    for i, word in enumerate(words[1:], 1):
        if words[i - 1] != "-o" and word.endswith(".xspt"):
            words[i] = word.replace("*", "1")
            if not os.path.exists(f"{folder}/{words[i]}"):
                os.symlink("before.xspt", f"{folder}/{words[i]}")
    if words[0] == "view":
        child = start([XSPTRACE, *words, "--no-browser"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = child.stdout.readline()
        if not line and "this build" in (why := child.stderr.read()):
            return print(f"  not run: {' '.join(words)}: {why}")
        check("http://127.0.0.1" in line, "an address", line)
        child.send_signal(signal.SIGINT)
        return equal(finish(child, 10), OK, "status of view")
    done = xsptrace(*words, status=None, cwd=folder)
    return check(done.returncode in ((OK, FAIL_ON) if "--fail-on" in words else (OK,)), f"{' '.join(words)}: {done.returncode}", done.stderr)


@case
def commands_run(folder):
    """Each line of the README, and what docs/ read captures with, on a program that runs."""
    if why_not():
        raise Skip(why_not())
    orders = start([workload("orders"), "60"], stdout=subprocess.DEVNULL)
    live, later = [], []
    for page, text in pages():
        for line in command_lines(text):
            if line.startswith(ELSEWHERE) or page != "README.md" and any(word in f"{line} " for word in NEEDS):
                continue
            if page == "README.md":
                check(re.match("(sudo )?xsptrace ", line), "a command that no test runs", line)
            words, records = as_it_runs(line, orders.pid) if "xsptrace " in line else ([], False)
            if page == "README.md" and (records or words[0] in ("top", "dump", "list")):
                live.append((line, start([XSPTRACE, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)))
            elif words and words[0] in ("analyze", "compare", "export", "info", "view"):
                later.append(words)
    check(len(live) > 6 and len(later) > 12, "commands", live, later)
    for line, child in live:
        _, said = child.communicate(timeout=60)
        equal(child.returncode, OK, f"{line}: {said.decode()}: status")
    check(os.path.exists(f"{folder}/before.xspt"), "the README records before.xspt")
    shutil.copy(f"{folder}/before.xspt", f"{folder}/run.xspt")
    for words in later:
        read_it(words, folder)


@case
def short(_):
    """Who was called at night reads it."""
    sizes = {page: len(text.encode()) for page, text in pages()}
    check(sizes.pop("README.md") <= 12_000, "README.md has more than 12 kB")
    check(sum(sizes.values()) <= 200 * 1024, "docs/ have more than 200 KiB", sum(sizes.values()), sizes)


@case
def pictures(_):
    for path in glob.glob(f"{ROOT}/docs/pictures/*"):
        check(os.path.getsize(path) < 150_000, f"{path}: {os.path.getsize(path)} bytes")


main(traces=False)
