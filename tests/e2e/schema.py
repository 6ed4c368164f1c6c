#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""analyze --json-schema and compare --json-schema: what the validator of another project (python3-jsonschema) makes of them, of
real reports of every kind (json_report(); the other files of cases use it as well), and of reports that are wrong."""
import copy
import json
import re

import shared
from harness import EXTRA, ROOT, Skip, case, check, equal, json_report, main, schema_of, workload, xsptrace


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
    xsptrace(*EXTRA, "-q", "--summary=none", "-o", path, *command, timeout=120)
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
            told[key] = {key} if tables.strip().startswith("named like them") else set(re.findall(r"`(\w+)`", tables))
    del told["job"]
    equal({key: tables for key, tables in told.items() if tables}, tables_of("analyze"), "sections and tables")


@case
def reports_of_every_kind(folder):
    """Spans, waits and samples; values in steps; ranks; a GPU; a part; a job; two sides."""
    demo, gpu = shared.capture("demo").path, shared.capture("gpu").path
    nccl = recorded(f"{folder}/nccl.xspt", "--", workload("nccl_job"), "50")
    found = set()
    for arguments in ((demo, "--step", "turn"), (gpu,), (gpu, "--from", "step:12..28", "--rows", "1"), (nccl,), (gpu, nccl)):
        found |= seen(json_report("analyze", *arguments))
    sections = {s for s, _ in found}
    check({"operations", "values", "steps", "threads", "samples", "memory", "gpu", "rules", "ranks"} <= sections, "kinds", sections)
    xsptrace("export", "-q", demo, "--from", "step:4", "--step", "turn", "-o", f"{folder}/part.json")
    sides = (demo, "vs", f"{folder}/part.json", "vs", gpu)
    compared = {s for s, _ in seen(json_report("compare", *sides, "--step", "turn"), "compare")}
    check({"compared", "operators"} <= compared, "kinds of compare", compared)


@case
def reports_of_pytorch(folder):
    """Memory by where it was allocated, lines and modules."""
    found = seen(json_report("analyze", shared.capture("torch").path))
    check({("memory", "pools"), ("memory", "sites"), ("python", "lines")} <= found, "tables", found)


@case
def wrong_reports_are_refused(folder):
    """Each of them by one change to a good one."""
    made = json_report("analyze", shared.capture("demo").path)
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
