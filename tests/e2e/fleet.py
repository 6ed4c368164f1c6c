#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/package/fleet/: what is kept of many recordings over weeks, and its questions, on SQLite and on ClickHouse. The recordings are
made here, and the answers counted here."""
import collections
import os
import random
import re
import sqlite3
import sys
import time

from clickhouse import ClickHouse, export, same_rows
from harness import ROOT, Skip, case, check, equal, main, run, wait_for
from tables import FLEET, fleet_questions, fleet_statements, fleet_text

SEED = f"{ROOT}/tests/fuzz/seeds/torch.xspt"  # for the tables
WEEK, DAY = 604800 * 10**9, 86400 * 10**9
OPERATORS = ("aten::mm", "aten::add", "aten::relu")


class Span(collections.namedtuple("Span", "name start_ns end_ns self_ns cut ending")):
    def measured(self):
        return self.end_ns - self.start_ns if self.ending < 3 and not self.cut else None


class Recorded:
    """A run: 20 steps of some operators; the first one is cut, an operator has no end. From the sixth week on mm takes half as long
    again, as the library is another one; node2 takes a third longer."""

    def __init__(self, number, start_ns, week):
        source = random.Random(number)
        self.run, self.start_ns, self.host, self.new = number, start_ns, f"node{number % 3}", week >= 6
        self.lost, self.complete = number % 4 == 0 and number, number % 5 != 0
        self.spans, now = [], 1000
        for step in range(20):
            begun = now
            for operator in OPERATORS * 3:
                ns = int(source.randrange(10_000, 12_000) * (1.5 if operator == "aten::mm" and self.new else 1)
                         * (4 / 3 if self.host == "node2" else 1))
                self.spans.append(Span(operator, now, now + ns, ns, 0, 3 if step == 7 and operator == "aten::relu" else 0))
                now += ns + 500
            self.spans.append(Span(f"ProfilerStep#{step}", begun, now, 500 * 9, int(step == 0), 0))

    def rows(self):
        """(table, row without the run) in the order of their columns, by names."""
        names = {name: i for i, name in enumerate(sorted({s.name for s in self.spans}), 1)}
        yield "runs", {"start_ns": self.start_ns, "duration_ns": 10**9, "recorded_ns": 10**9, "host": self.host, "complete": int(self.complete)}
        yield "losses", {"part": "losses", "name": "lost_entries", "value": int(self.lost)}
        for name, i in names.items():
            yield "names", {"name_id": i, "name": name}
            yield "functions", {"function_id": i, "name_id": i, "provider": "torch", "module": "/lib/libtorch.so", "symbol": None, "address": None,
                                "lost_entries": 0, "lost_exits": 0, "let_go_ns": None, "build_id": "bb" if self.new else "aa"}
        for i, s in enumerate(self.spans, 1):
            yield "spans", {"id": i, "parent_id": None, "thread_id": 1, "fiber": 0, "category": 0, "name_id": names[s.name],
                            "function_id": names[s.name], "stack_id": None, "line_id": None, "depth": 0, "recursive": 0, "ending": s.ending,
                            "start_ns": s.start_ns, "end_ns": s.end_ns, "self_ns": s.self_ns if s.ending < 3 else None, "cpu_ns": None,
                            "self_cpu_ns": None, "probe_ns": None, "correlation": None, "operator_id": None, "cut": s.cut}


def recordings(now_ns):
    """Two a week and host for ten weeks, until two days ago; none is 30 days old to the second, where what is kept ends."""
    return [Recorded(1 + 6 * week + i, now_ns - (10 - week) * WEEK + i * DAY - DAY // 2, week) for week in range(10) for i in range(6)]


# ---- the databases ----


def on_sqlite(folder, runs, name="fleet"):
    path = f"{folder}/{name}.db"
    export(SEED, path)
    db = sqlite3.connect(path, isolation_level=None)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        db.execute(f"DELETE FROM {table}")
    db.execute("BEGIN")
    for r in runs:
        for table, row in r.rows():
            db.execute(f"INSERT INTO {table} (run, {', '.join(row)}) VALUES (?{', ?' * len(row)})", (r.run, *row.values()))
    db.execute("COMMIT")
    return db


def quoted(value):
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def on_clickhouse(folder, runs):
    server = ClickHouse(folder)
    export(SEED, server.url())
    for (table,) in server.rows("SELECT name FROM system.tables WHERE database = 'd' AND engine = 'MergeTree'")[1]:
        server.query(f"TRUNCATE TABLE {table}")
    rows = collections.defaultdict(list)
    for r in runs:
        for table, row in r.rows():
            rows[table].append((r.run, row))
        server.query(f"INSERT INTO loads VALUES ({r.run}, 1, now(), 'made')")
    for i, (table, all_rows) in enumerate(rows.items()):
        values = ", ".join(f"({n}, {i}, {', '.join(map(quoted, row.values()))})" for n, row in all_rows)
        server.query(f"INSERT INTO all_{table} (run, batch, {', '.join(all_rows[0][1])}) VALUES {values}")
        server.query("INSERT INTO batches VALUES " + ", ".join(f"({r.run}, 1, '{table}', {i}, 1)" for r in runs))
    return server


# ---- what is expected ----


def week_of(r):
    return r.start_ns - r.start_ns % WEEK


def mean(values):
    return sum(values) / len(values)


def grouped(pairs):
    groups = collections.defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def expected(runs, since_ns):
    """The answers, counted from the spans, by the questions' titles."""
    steps = [(r, s.measured()) for r in runs for s in r.spans if s.name.startswith("Prof") and s.measured() is not None]
    calls = [(r, s) for r in runs for s in r.spans if s.name in OPERATORS]
    measured = [(r, s.name, s.measured()) for r, s in calls if s.measured() is not None]
    by_host, by_week = grouped(((week_of(r), r.host), ns) for r, ns in steps), grouped((week_of(r), ns) for r, ns in steps)
    recorded = collections.Counter((week_of(r), r.host) for r in runs)
    costs = grouped(((week_of(r), s.name), s) for r, s in calls)
    self_ns = {key: sum(s.self_ns for s in spans if s.ending < 3) for key, spans in costs.items()}
    builds = grouped(((n, "/lib/libtorch.so", "bb" if r.new else "aa"), (r, ns)) for r, n, ns in measured)
    before, since = (grouped((n, ns) for r, n, ns in measured if (r.start_ns >= since_ns) == late) for late in (False, True))
    return {
        "Steps by week and host": [(*key, recorded[key], len(v), mean(v) / 1e6, max(v) / 1e6) for key, v in by_host.items()],
        "Operators by week": [(*key, len(v), self_ns[key] / 1e6, self_ns[key] / 1e6 / len(by_week[key[0]])) for key, v in costs.items()],
        "Versions": [(*key, min(r.start_ns for r, _ in v), len({r.run for r, _ in v}), len(v), mean([ns for _, ns in v]) / 1e3)
                     for key, v in builds.items()],
        "Regressions since a date (in ns)": [(n, mean(before[n]) / 1e3, mean(since[n]) / 1e3) for n in OPERATORS
                                             if mean(since[n]) > 1.1 * mean(before[n])],
        "Hosts whose steps take a tenth longer than all hosts' of the week":
            [(*key, mean(v) / 1e6, mean(by_week[key[0]]) / 1e6, mean(v) / mean(by_week[key[0]])) for key, v in by_host.items()
             if mean(v) > 1.1 * mean(by_week[key[0]])],
        "Before any conclusion": [(r.run, r.host, r.start_ns, int(r.lost), int(r.complete)) for r in runs if r.lost or not r.complete]}


def check_answers(ask, runs, since_ns):
    right = expected(runs, since_ns)
    asked = fleet_questions(since_ns)
    equal(list(asked), list(right), "questions")
    for title, query in asked.items():
        check(right[title], f"nothing is expected of: {title}")
        same_rows([tuple(r) for r in ask(query)], right[title], title)
    regressions = [r[0] for r in right["Regressions since a date (in ns)"]]
    equal((regressions, {r[1] for r in right["Hosts whose steps take a tenth longer than all hosts' of the week"]}),
          (["aten::mm"], {"node2"}), "what was planted")


def begin_of_the_new(runs):
    return min(r.start_ns for r in runs if r.new)


# ---- the cases ----


def whole_life(do, ask, engine, runs, count_spans):
    """Rolled up week by week, once interrupted and once too often; then what is old goes. `count_spans`: of each run."""
    since_ns = begin_of_the_new(runs)
    for s in fleet_statements(f"tables.{engine}.sql"):
        do(s)
    do(fleet_statements("roll-up.sql")[0])  # interrupted behind it
    equal(ask("SELECT COUNT(*) FROM runs_kept")[0][0], 0, "what counts")
    for _ in range(2):
        for s in fleet_statements("roll-up.sql"):
            do(s)
        check_answers(ask, runs, since_ns)
    for _ in range(2):
        for s in fleet_statements(f"retention.{engine}.sql"):
            do(s)
        kept = {r.run: len(r.spans) for r in runs if r.start_ns > time.time_ns() - 30 * DAY}
        check(0 < len(kept) < len(runs), "some are older", len(kept))
        wait_for(lambda: count_spans() == kept, 30, f"spans of each run: {kept}")
        check_answers(ask, runs, since_ns)


@case
def on_sqlite_by_counting(folder):
    runs = recordings(time.time_ns())
    db = on_sqlite(folder, runs)
    size = os.path.getsize(f"{folder}/fleet.db")
    whole_life(db.execute, lambda q: db.execute(q).fetchall(), "sqlite", runs, lambda: dict(db.execute("SELECT run, COUNT(*) FROM spans GROUP BY run")))
    check(os.path.getsize(f"{folder}/fleet.db") < 0.6 * size, "the file is smaller", os.path.getsize(f"{folder}/fleet.db"), size)
    db.close()


@case
def on_clickhouse_by_counting(folder):
    runs = recordings(time.time_ns())
    server = on_clickhouse(folder, runs)
    whole_life(server.query, lambda q: server.rows(q)[1], "clickhouse", runs, lambda: dict(server.rows("SELECT run, count() FROM all_spans GROUP BY run")[1]))
    equal(server.number("SELECT count() FROM (SELECT DISTINCT run FROM spans)"), server.number("SELECT count() FROM runs"), "runs that count")


@case
def every_table_is_there(folder):
    """None is missed by retention and by adding."""
    export(SEED, f"{folder}/seed.db")
    db = sqlite3.connect(f"{folder}/seed.db")
    tables = {t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.close()
    equal(set(re.findall(r"^DELETE FROM (\w+)", fleet_text("retention.sqlite.sql"), re.M)), tables, "deleted on SQLite")
    equal(set(re.findall(r"^ALTER TABLE all_(\w+)", fleet_text("retention.clickhouse.sql"), re.M)), tables, "deleted on ClickHouse")
    equal(set(re.findall(r"^INSERT INTO main\.(\w+)", fleet_text("add.sqlite.sql"), re.M)), tables, "added")


@case
def files_become_one(folder):
    """Each row of the other file, and each once; what cannot be added changes nothing."""
    if run(["sqlite3", "--version"]).returncode:
        raise Skip("no sqlite3")
    runs = recordings(time.time_ns())[:4]
    on_sqlite(folder, runs[:3], "one").close()
    on_sqlite(folder, runs[2:], "two").close()
    add = ["sqlite3", f"{folder}/one.db", f"ATTACH '{folder}/two.db' AS other", f".read {FLEET}/add.sqlite.sql"]
    for _ in range(2):
        done = run(add)
        equal((done.returncode, done.stderr), (0, ""), "status")
        db = sqlite3.connect(f"{folder}/one.db")
        equal(dict(db.execute("SELECT run, COUNT(*) FROM spans GROUP BY run")), {r.run: len(r.spans) for r in runs}, "spans")
        equal(db.execute("SELECT COUNT(*) FROM names").fetchone()[0], 23 * 4, "names")
        db.close()
    on_sqlite(folder, recordings(time.time_ns())[4:5], "three").execute("ALTER TABLE losses RENAME TO others")
    done = run([a.replace("two.db", "three.db") for a in add])
    check(done.returncode != 0 and "losses" in done.stderr, "an error", done.stderr)
    db = sqlite3.connect(f"{folder}/one.db")
    equal(db.execute("SELECT COUNT(*) FROM runs").fetchone()[0], 4, "runs")
    db.close()


if __name__ == "__main__":
    sys.exit(main(traces=False))
