#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""README and docs/: their links lead somewhere, their commands exist, and their pictures are small."""
import glob
import os
import re

from harness import ROOT, case, check, equal, main, xsptrace


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


@case
def pictures(_):
    for path in glob.glob(f"{ROOT}/docs/pictures/*"):
        check(os.path.getsize(path) < 150_000, f"{path}: {os.path.getsize(path)} bytes")


main(traces=False)
