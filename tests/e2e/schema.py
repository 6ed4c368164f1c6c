#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""analyze --json-schema and compare --json-schema: what the validator of another project (python3-jsonschema) makes of them, of
real reports of every kind (json_report(); the other files of cases use it as well), and of reports that are wrong."""
import copy
import json
import os
import re

from harness import (EXTRA, ROOT, SCRIPTS, Skip, case, check, equal, json_report, main, run, schema_of, workload, xsptrace)

PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")


def validator(verb):
    found = schema_of(verb)
    if found is None:
        raise Skip("no Python module jsonschema (Debian: python3-jsonschema)")
    return found


def tables_of(verb):
    """{section: tables} that the schema names."""
    sections = validator(verb).schema["properties"]["sections"]["properties"]
    return {key: set(s["properties"]["tables"]["properties"]) for key, s in sections.items()}


def recorded(path, *command):
    """Of a command, with the options of xsptrace before "--"."""
    xsptrace(*EXTRA, "-q", "--no-summary", "-o", path, *command, timeout=120)
    return path


def seen(made, verb="analyze"):
    """The tables with rows, all of which the schema names."""
    found = {(s, t) for s, section in made["sections"].items() for t, table in section["tables"].items() if table["rows"]}
    for section, table in found:
        check(table in tables_of(verb).get(section, ()), "a table that the schema does not name", section, table)
    return found


@case
def schemas_are_schemas(folder):
    """By the metaschema; what they name is what the documentation does."""
    for verb in ("analyze", "compare"):
        validator(verb).check_schema(validator(verb).schema)
        xsptrace(verb, "--json-schema", "-o", f"{folder}/{verb}.json")
        with open(f"{folder}/{verb}.json", encoding="utf-8") as f:
            equal(json.load(f), validator(verb).schema, "what -o wrote")
    with open(f"{ROOT}/docs/analyze.md", encoding="utf-8") as f:
        rows = [line.split("|") for line in f.read().partition("| section | tables |")[2].splitlines() if line.startswith("| `")]
    told = {}
    for _, sections, tables, *_ in rows:
        keys = re.findall(r"`(\w+)`", sections)
        for key in keys:
            told[key] = {key} if tables.strip().startswith("of their names") else set(re.findall(r"`(\w+)`", tables))
    del told["job"]
    equal({key: tables for key, tables in told.items() if tables}, tables_of("analyze"), "sections and tables")


@case
def reports_of_every_kind(folder):
    """Spans, waits and samples; values in steps; ranks; a GPU; a part; a job; two sides."""
    values = [recorded(f"{folder}/{i}.xspt", "--", workload("valued"), "--threads", 1, "--calls", 300, "--rate", 2000)
              for i in range(2)]
    hot = recorded(f"{folder}/hot.xspt", "-e", "faults:burn", "--waits", "--sample=499", "--", workload("faults"), "hot")  # at 99 Hz its turns of 10 ms may hide from all samples
    gpu = recorded(f"{folder}/gpu.xspt", "--", workload("gpu_train"), "--calls", "40")
    nccl = recorded(f"{folder}/nccl.xspt", "--", workload("nccl_job"), "50")
    found = set()
    for arguments in ((values[0], "--step", "step"), (hot,), (gpu,), (gpu, "--from", "30%", "--to", "70%", "--top", "1"), (nccl,),
                      (gpu, nccl)):
        found |= seen(json_report("analyze", *arguments))
    sections = {s for s, _ in found}
    check({"operations", "values", "steps", "threads", "samples", "memory", "gpu", "rules", "ranks"} <= sections, "kinds", sections, xsptrace("info", hot).stdout)
    sides = (values[0], "vs", values[1], "vs", gpu)
    compared = {s for s, _ in seen(json_report("compare", *sides, "--step", "step"), "compare")}
    check({"compared", "operators"} <= compared, "kinds of compare", compared)


@case
def reports_of_pytorch(folder):
    """Memory by where it was allocated, lines and modules."""
    if not os.path.exists(PYTHON) or run([PYTHON, "-c", "import importlib.util as i; i.find_spec('torch').name"]).returncode != 0:
        raise Skip(f"{PYTHON} has no torch (Debian: python3-torch)")
    path = recorded(f"{folder}/m.xspt", "--memory", "--python", "--", PYTHON, f"{SCRIPTS}/torch_memory.py", "known", "--out", f"{folder}/facts")
    found = seen(json_report("analyze", path))
    check({("memory", "pools"), ("memory", "sites"), ("python", "lines")} <= found, "tables", found)


@case
def wrong_reports_are_refused(folder):
    """Each of them by one change to a good one."""
    path = recorded(f"{folder}/run.xspt", "-e", "demo_leaf", "--", workload("demo"))
    made = json_report("analyze", path)
    table = made["sections"]["operations"]["tables"]["operations"]
    check(table["rows"], "no row", made)
    changes = [
        (("version",), 2), (("format",), "other"), (("more",), 1), (("findings",), {}),
        (("sections", "operations", "tables", "other"), table), (("sections", "recording", "tables", "operations"), table),
        (("sections", "operations", "tables", "operations", "rows", 0, "total_ns"), "much"),
        (("sections", "operations", "tables", "operations", "rows", 0, "name"), 1),
        (("sections", "operations", "tables", "operations", "rows", 0, "colour"), 1),
        (("sections", "operations", "tables", "operations", "columns", 0, "unit"), "miles"),
        (("sections", "recording", "values", "spans"), [1]), (("sections", "recording", "about", "spans", "unit"), None),
    ]
    for keys, value in changes:
        wrong = copy.deepcopy(made)
        at = wrong
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value
        check(not validator("analyze").is_valid(wrong), "it was taken", keys, value)
    wrong = copy.deepcopy(made)
    del wrong["sections"]["operations"]["tables"]["operations"]["rows"][0]["calls"]
    check(not validator("analyze").is_valid(wrong), "a row without a column was taken")


main()
