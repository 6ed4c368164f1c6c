#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What comes with the tool: manual pages, completions, the Python reader, packages."""
import collections
import csv
import glob
import importlib.util
import os
import re
import shutil
import subprocess

import shared
from harness import ROOT, USAGE, WORKLOADS, Skip, case, check, equal, json_report, main, start_ready, workload, xsptrace

BUILD = os.path.dirname(WORKLOADS)
VERBS = ("record", "list", "top", "dump", "export", "analyze", "compare", "view", "info", "doctor", "service", "ctl")
OPTION = re.compile(r"^ +(?:-(\w), )?--([\w-]+)", re.M)


def options_of(verb):
    """As --help has them."""
    text = xsptrace("help", "all" if verb == "record" else verb).stdout
    return {long for _, long in OPTION.findall(text.partition("Keys:")[0])} - {"help", "version"}


@case
def manual_pages(folder):
    """Of every verb: each option of --help is in it, and nothing in it is an error to who sets it."""
    for verb in VERBS:
        page = xsptrace("help", "manual", verb).stdout
        check(page.startswith(".TH "), "no page of man(7)", verb, page[:100])
        set_by = shutil.which("groff")
        if set_by:
            done = subprocess.run([set_by, "-man", "-ww", "-Tascii", "-z"], input=page, capture_output=True, text=True, check=True)
            equal(done.stderr, "", f"{verb}: warnings")
        if verb != "list":  # its options are those of a recording
            text = page.replace("\\-", "-")
            equal({o for o in options_of(verb) if f"--{o}" not in text}, set(), f"{verb}: what the page lacks")
    xsptrace("help", "manual", "nothing", status=USAGE)


def completed(*words):
    return dict((line + "\t").split("\t")[:2] for line in xsptrace("help", "complete", *words).stdout.splitlines())


@case
def words_of_a_command_line(folder):
    equal(set(completed("")), {*VERBS, "help"}, "the first word")
    equal(set(completed("an")), {"analyze"}, "a verb")
    for verb in VERBS[2:-1]:
        equal(options_of(verb) - {w.removeprefix("--") for w in completed(verb, "--")}, set(), f"{verb}: options that do not come")
    equal(set(completed("--exit", "")), {"site", "return"}, "words that an option takes")
    equal(set(completed("--follow=")), {"--follow=stop"}, "after =")
    equal(set(completed("analyze", "")), {":files"}, "captures")
    equal(set(completed("-p", "1", "-o", "")), {":files"}, "outputs")
    equal(set(completed("--", "ls", "")), {":command"}, "another program's words")
    check({"torch", "cuda"} <= set(completed("-e", "")), "providers", completed("-e", ""))


@case
def processes_and_functions(folder):
    """The name of a process may hold anything: what comes to the terminal is harmless."""
    named = f"{folder}/\x1b[31mred"
    shutil.copy(workload("samples"), named)
    child = start_ready([named, "--wait", "--seconds", 60])
    found = completed("-p", "")
    check(str(child.pid) in found and "\x1b" not in "".join(found.values()), "the process", child.pid, found)
    names = completed("-p", child.pid, "-e", "")
    check("libc.so.6:" in names and not any("\x1b" in n for n in names), "libraries", names)
    equal([n for n in completed("-p", child.pid, "-e", "libc.so.6:getpp") if n.startswith("libc.so.6:getppid")], ["libc.so.6:getppid"],
          "functions")
    child.kill()


@case
def completion_in_bash(folder):
    """bash replaces what follows the last = or : of a word."""
    script = f"""source {ROOT}/tools/package/completion/xsptrace.bash
compopt() {{ :; }}
PATH={BUILD}:$PATH
for COMP_LINE; do
	COMP_POINT=${{#COMP_LINE}} COMPREPLY=()
	COMP_WORDS=($COMP_LINE)
	[[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
	COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
	_xsptrace
	echo "${{COMPREPLY[*]}}"
done"""
    open(f"{folder}/capture file.xspt", "wb").close()
    lines = ["sudo xsptrace an", "xsptrace --follow=s", "xsptrace export --fr", f"xsptrace analyze {folder}/capt"]
    done = subprocess.run(["bash", "-c", script, "bash", *lines], capture_output=True, text=True, check=True)
    equal(done.stdout.splitlines(), ["analyze", "stop", "--from", f"{folder}/capture file.xspt"], "replies")
    for shell, path in (("zsh", "_xsptrace"), ("fish", "xsptrace.fish")):
        if shutil.which(shell):
            subprocess.run([shell, "-n", f"{ROOT}/tools/package/completion/{path}"], check=True)


def reader():
    """The module, with this build's library."""
    os.environ["XSPTRACE_LIBRARY"] = f"{BUILD}/libxsptrace.so.1"
    spec = importlib.util.spec_from_file_location("xsptrace_reader", f"{ROOT}/user/library/xsptrace.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@case
def reader_in_python(folder):
    """The rows are those of .csv; the account is that of analyze."""
    module, path = reader(), shared.capture("demo").path
    xsptrace("export", "-q", path, "-o", f"{folder}/all.csv")
    with open(f"{folder}/all.csv", newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if r["id"]]
    with module.Trace(path) as trace:
        spans = trace.spans()
        equal(len(spans), len(rows), "spans")
        equal([(s.id, s.name) for s in spans], [(int(r["id"]), r["name"]) for r in rows], "their names")
        equal(sum(s.self_ns for s in spans), sum(int(r["self_ns"]) for r in rows if r["self_ns"]), "their own time")
        begin, end, recorded = trace.window()
        check(begin < spans[0].end_ns <= end and recorded <= end - begin, "the window", begin, end, recorded)
        waits, samples = trace.waits(), trace.samples(from_ns=begin, to_ns=end)
        check(waits and samples and all(w.left_ns <= w.back_ns for w in waits), "waits and samples", len(waits), len(samples))
        check(any("everything_spin" in s.stack or len(s.stack) > 1 for s in samples), "stacks", samples[:3])
        check({p.pid for p in trace.processes()} >= {s.pid for s in spans}, "processes", trace.processes())
        equal(len(trace.spans(min_duration_ns=10**15)), 0, "spans of a part")
        equal(trace.account(), json_report("analyze", path)["sections"]["account"], "the account")
        counted = collections.Counter()

        def stop(span):
            counted[span.name] += 1
            raise KeyError("enough")

        try:
            trace.run(span=stop)
        except KeyError:
            pass
        equal(sum(counted.values()), 1, "calls after an exception")
    try:
        module.Trace(__file__)
    except module.Error as e:
        check("\n" not in str(e) and str(e), "one line", e)
    else:
        check(False, "no error")


@case(long="packs twice, and runs lintian where it is installed")
def packages_of_debian(folder):
    """The same bytes each time; all is in them, and nothing outside of /usr."""
    if not all(shutil.which(tool) for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps")):
        raise Skip("cpack or dpkg-dev is not installed")
    for turn in ("a", "b"):
        subprocess.run(["cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-B", f"{folder}/{turn}"], check=True, capture_output=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "1764331200"}, cwd=folder)
    made = sorted(os.path.basename(p) for p in glob.glob(f"{folder}/a/*.deb") + glob.glob(f"{folder}/a/*.gz"))
    equal([re.split("[_-]0", name)[0] for name in made], ["libxsptrace-dev", "libxsptrace1", "python3-xsptrace", "xsptrace", "xsptrace"], "files")
    for name in made:
        with open(f"{folder}/a/{name}", "rb") as one, open(f"{folder}/b/{name}", "rb") as other:
            check(one.read() == other.read(), "not the same bytes", name)
    files = set()
    for path in glob.glob(f"{folder}/a/*.deb"):
        out = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, capture_output=True).stdout
        files |= set(subprocess.run(["tar", "-t"], input=out, check=True, capture_output=True).stdout.decode().split())
    equal({f for f in files if not f.startswith("./usr/")} - {"./"}, set(), "outside of /usr")
    for wanted in ("bin/xsptrace", "lib/xsptrace/libxsptrace_agent.so", "lib/libxsptrace.so.1", "share/man/man1/xsptrace.1.gz",
                   "share/man/man1/xsptrace-export.1.gz", "share/man/man5/xspt.5.gz", "share/bash-completion/completions/xsptrace",
                   "lib/systemd/system/xsptrace.service", "share/xsptrace/service.conf",
                   "include/xsptrace/trace.h", "lib/python3/dist-packages/xsptrace.py", "share/doc/xsptrace/usage.md"):
        check(f"./usr/{wanted}" in files, "is missing", wanted)
    if shutil.which("lintian"):
        done = subprocess.run(["lintian", "--fail-on", "error,warning", *glob.glob(f"{folder}/a/*.deb")], capture_output=True, text=True)
        equal(done.returncode, 0, f"lintian: {done.stdout}")


main()
