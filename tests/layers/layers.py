# SPDX-License-Identifier: BSD-2-Clause
"""Do the folders include only what stands below them, do the files of a folder go in circles, and is any too large?

    layers.py BUILD         this checkout, as built in BUILD
    layers.py --self-test   does it find what it should?

The order is that of DESIGN.md section 3 and docs/contributing.md. Includes tell what a file may know of;
what it really uses the symbols of its object file tell, also where a private header serves a whole folder.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A folder of user/ and what it may include beside itself and include/xsptrace/.
FACTS = ["base", "catalog"]
LIVE = FACTS + ["procfs", "target", "probes", "placement", "broker", "planner", "attach"]
MAY = {
    "base": [],
    "catalog": ["base"],
    "procfs": ["base"],
    "target": FACTS + ["procfs"],
    "probes": FACTS + ["target"],
    "placement": FACTS + ["target"],
    # with the rights of root: they read /proc, and parse nothing of a target
    "broker": ["base", "procfs", "inject"],
    "inject": ["base", "procfs"],
    # without any rights: it parses
    "planner": FACTS + ["procfs", "target", "probes", "placement", "inject"],
    # the recorder's side of both
    "attach": FACTS + ["procfs", "target", "probes", "placement", "broker", "planner"],
    "capture": FACTS,
    "record": LIVE + ["capture"],
    # what reads a capture knows nothing of what made it; of target/ it takes demangling
    "trigger": FACTS + ["target", "capture", "timeline"],
    "timeline": FACTS + ["target", "capture"],
    "model": FACTS + ["capture", "timeline"],
    "report": FACTS,  # sections as data, and how they are written: it knows no capture
    "analysis": FACTS + ["capture", "timeline", "model", "report"],
    "export": FACTS + ["target", "capture", "timeline", "model"],
    "import": FACTS + ["capture"],  # writes captures
    "page": FACTS + ["capture", "timeline", "model", "report", "analysis", "export"],
    "library": FACTS + ["capture", "timeline", "model", "report", "analysis", "import"],
    "dump": FACTS + ["procfs", "target", "broker", "attach"],
    # root's, as the broker: of a target it takes numbers and texts from /proc; patterns are target/'s
    "service": FACTS + ["procfs", "target"],
    "cli": LIVE + ["dump", "service"] + ["capture", "record", "timeline", "trigger", "model", "report", "analysis", "export", "import", "page", "inject"],
    "agent": [],  # lives in other people's processes: nothing of the tool
}

MOST_LINES = 700
MOST_FILES = 24  # .c and .h

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def folder_of(path):
    """user/export/chrome/json.h → export; include/xsptrace/gpu.h → include."""
    parts = path.split("/")
    return parts[1] if parts[0] == "user" else parts[0]


def resolve(path, name, files):
    """The file of ours that an include means, or None."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    for candidate in (beside, "user/" + name, "include/" + name):
        if candidate in files:
            return candidate
    return None


def allowed(source, target, may):
    if source == target or target == "include":
        return True
    return target in may.get(source, [])


def circles(graph):
    """Sets of nodes that reach each other: {node: set of nodes} → sorted lists."""
    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for n in graph.get(todo.pop(), ()):
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        return seen

    reached = {n: reach(n) for n in graph}
    found = {tuple(sorted(m for m in reached[n] if n in reached.get(m, ())))
             for n in graph if n in reached[n]}
    return sorted(list(c) for c in found if len(c) > 1)


def wrong_includes(files, may):
    """files: {path: text}. What may not be, a line each."""
    wrong, graph = [], collections.defaultdict(set)
    for path, text in sorted(files.items()):
        source = folder_of(path)
        if path.startswith("user/") and source not in may:
            wrong.append(f"{path}: the folder {source}/ has no row in tests/layers/layers.py")
        for name in INCLUDE.findall(text):
            target = resolve(path, name, files)
            if target is None:
                continue  # generated, or somebody else's
            graph[path].add(target)
            if not allowed(source, folder_of(target), may):
                wrong.append(f"{path} includes {name}: {source}/ stands below "
                             f"{folder_of(target)}/, or beside it")
    wrong += ["headers in a circle: " + " ".join(c) for c in circles(graph)]
    return wrong


def wrong_uses(objects, may):
    """objects: {path of the source: (symbols defined, symbols used)} of one program."""
    owner = {s: o for o, (defined, _) in objects.items() for s in defined}
    graph, wrong = {o: {} for o in objects}, []
    for source, (_, used) in sorted(objects.items()):
        for symbol in sorted(used):
            target = owner.get(symbol, source)
            if target == source:
                continue
            if not allowed(folder_of(source), folder_of(target), may):
                wrong.append(f"{source} uses {symbol} of {target}")
            if folder_of(source) == folder_of(target):
                graph[source].setdefault(target, symbol)
    for circle in circles({n: set(t) for n, t in graph.items()}):
        wrong.append("files in a circle: " + " ".join(circle))
        wrong += [f"    {a} uses {graph[a][b]} of {b}" for a in circle for b in circle
                  if b in graph[a]]
    return wrong


def too_large(files):
    """files: {path: text}. Files that are not read at one sitting, folders that are not taken in at one look."""
    wrong = [f"{path} has {text.count(chr(10))} lines: {MOST_LINES} at most" for path, text in sorted(files.items())
             if text.count("\n") > MOST_LINES]
    folders = collections.Counter(os.path.dirname(path) for path in files)
    return wrong + [f"{folder}/ has {n} files beside each other: {MOST_FILES} at most" for folder, n in sorted(folders.items())
                    if n > MOST_FILES]


# ---- what there is -------------------------------------------------------------------


def read_sources():
    files = {}
    for top in ("user", "include", "bpf"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        files[os.path.relpath(path, ROOT)] = f.read()
    return files


def symbols(paths):
    """{object file: (symbols defined, symbols used)}, by one nm for all of them."""
    found = {path: (set(), set()) for path in paths}
    lines = subprocess.run(["nm", "-gA", *paths], stdout=subprocess.PIPE, check=True, text=True).stdout if paths else ""
    for line in lines.splitlines():
        kind, name = line.split()[-2:]
        found[line.partition(":")[0]][kind in "Uwv"].add(name)
    return found


def read_objects(build):
    """A dictionary for wrong_uses() a program."""
    programs = []
    for names in (("xsp_core", "xsptrace", "xsptrace_library"), ("xsptrace_agent",)):
        objects = {}
        for name in names:
            top = os.path.join(build, "CMakeFiles", name + ".dir")
            for folder, _, found in os.walk(top):
                for f in found:
                    source = os.path.relpath(os.path.join(folder, f), top)[:-len(".o")]
                    if f.endswith(".c.o") and os.path.exists(os.path.join(ROOT, source)):
                        objects[source] = os.path.join(folder, f)
        of = symbols(list(objects.values()))
        programs.append({source: of[path] for source, path in objects.items()})
    return programs


def self_test():
    may = {"low": [], "high": ["low"]}
    good = {"user/low/a.h": "", "user/low/a.c": '#include "low/a.h"\n#include "xsptrace/e.h"\n',
            "user/high/b.c": '#include "low/a.h"\n', "include/xsptrace/e.h": ""}
    assert wrong_includes(good, may) == []
    up = dict(good, **{"user/high/b.h": "", "user/low/a.c": ' # include "high/b.h"\n'})
    assert len(wrong_includes(up, may)) == 1, wrong_includes(up, may)
    beside = dict(good, **{"user/low/a.c": '#include "../high/b.c"\n'})
    assert len(wrong_includes(beside, may)) == 1
    ring = dict(good, **{"user/low/a.h": '#include "low/c.h"\n',
                         "user/low/c.h": '#include "a.h"\n'})
    assert any("circle" in w for w in wrong_includes(ring, may))
    assert len(wrong_includes({"user/new/a.c": ""}, may)) == 1
    assert wrong_includes({"bpf/a.bpf.c": '#include "low/a.h"\n', "user/low/a.h": ""}, may)

    assert too_large({"user/a.c": "\n" * MOST_LINES, "user/b.c": "\n" * (MOST_LINES + 1)}) == \
        [f"user/b.c has {MOST_LINES + 1} lines: {MOST_LINES} at most"]
    assert len(too_large({f"user/{i}.c": "" for i in range(MOST_FILES + 1)})) == 1

    a, b, c = "user/low/a.c", "user/low/b.c", "user/high/c.c"
    assert wrong_uses({a: ({"fa"}, {"fb", "malloc"}), b: ({"fb"}, set()),
                       c: ({"fc"}, {"fa", "fb"})}, may) == []
    assert wrong_uses({a: ({"fa"}, {"fc"}), c: ({"fc"}, set())}, may) == \
        [f"{a} uses fc of {c}"]
    both = {a: ({"fa"}, {"fb"}), b: ({"fb"}, {"fa"})}
    assert len(wrong_uses(both, may)) == 3
    long = {f"user/low/{i}.c": ({f"f{i}"}, {f"f{(i + 1) % 5}"}) for i in range(5)}
    assert "circle" in wrong_uses(long, may)[0]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    sources = read_sources()
    wrong = wrong_includes(sources, MAY) + too_large({p: t for p, t in sources.items() if p.startswith("user/")})
    programs = read_objects(sys.argv[1])
    if not all(programs):
        wrong.append(f"{sys.argv[1]} is not built")
    for objects in programs:
        wrong += wrong_uses(objects, MAY)
    print("\n".join(wrong) if wrong else f"{sum(len(p) for p in programs)} files, in layers")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
