// SPDX-License-Identifier: BSD-2-Clause
// run.mjs MAKE_CAPTURE FOLDER EXPORT...: a synthetic capture, exported to every format by the
// command EXPORT (capture and -o FILE are added), read by the
// third-party readers, compared with what the capture's maker counted.
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';
import zlib from 'node:zlib';
import {execFileSync} from 'node:child_process';
import {chromiumPath} from './browser.mjs';
import {openTrace} from './perfetto.mjs';
import {firefox} from './firefox.mjs';

const [makeCapture, folder, ...exportCommand] = process.argv.slice(2);
const at = (name) => path.join(folder, name);
const text = new TextDecoder('utf-8', {fatal: true});
// formats without escapes have U+FFFD for control characters
const shown = (text) => text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu, '\ufffd');
const fromHex = (hex) => new TextDecoder('utf-8').decode(Buffer.from(hex, 'hex'));
const UNFINISHED = 1, UNWOUND = 2;
const FIBER_TID = 0x20000001;
const count = (list, key) => {
  const counts = {};
  for (const x of list) counts[key(x)] = (counts[key(x)] ?? 0) + 1;
  return counts;
};

let checks = 0;
async function check(what, fn) {
  const start = Date.now();
  await fn();
  checks++;
  console.log(`ok   ${what} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
}

// ---- what there is to find ----

fs.mkdirSync(folder, {recursive: true});
execFileSync(makeCapture, [at('made.xspt'), at('expected.json')], {stdio: 'inherit'});
function exportTo(name) {
  const [program, ...args] = exportCommand;
  const stacks = /\.(folded|svg|perf|pb\.gz)$/.test(name) ? ['--weight', 'wall', '--by', 'step'] : []; // what can be counted in the spans
  execFileSync(program, [...args, ...stacks, at('made.xspt'), '-o', at(name)], {stdio: 'inherit'});
}
['made.json', 'made.json.gz', 'made.perf', 'made.folded', 'made.svg', 'made.csv', 'made.speedscope.json', 'made.pb.gz', 'made.pftrace', 'made.db'].forEach(exportTo);
const expected = JSON.parse(fs.readFileSync(at('expected.json'), 'utf8'));
const names = expected.names.map(fromHex);
// Two containers see themselves as 1, so they keep the ids of the root namespace.
const threads = new Map(expected.threads.map(([pid, tid, nsPid, nsTid, comm]) => {
  const collides = pid === 6001 || pid === 7001;
  return [tid, {pid: collides ? pid : nsPid, tid: collides ? tid : nsTid, comm: fromHex(comm)}];
}));
const spans = expected.spans.map(([pid, tid, row, name, start, end, flags]) => ({
  pid: threads.get(tid).pid, tid: row ? FIBER_TID : threads.get(tid).tid, name: names[name],
  category: name < expected.functions ? 'cpu_op' : 'user_annotation', start, end, flags}));
const rowsExpected = count(spans, (s) => `${s.pid}/${s.tid}`);
// Self times add up to the time in the outermost spans, row by row, without what a span whose end was not
// seen has for itself. Where a thread goes to another stack for the first time, the timeline may count what it
// does there against the span it left.
const SWITCHING = '5001/5002';
function outermost() {
  const open = {}, sums = {};
  for (const s of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const key = `${s.pid}/${s.tid}`, stack = open[key] ??= [];
    while (stack.length > 0 && s.start >= stack.at(-1).end) stack.pop();
    const time = s.end - s.start, above = stack.at(-1);
    if (!above || above.flags & UNFINISHED) sums[key] = (sums[key] ?? 0) + time;
    if (s.flags & UNFINISHED) sums[key] -= time;
    stack.push(s);
  }
  return sums;
}
const rowTime = outermost();
// Sum of the samples' periods, set by the check on perf-script text.
let totalTime = 0;

// ---- Chrome JSON, by itself ----

await check('a second export gives the same bytes', () => {
  const file = (name) => fs.readFileSync(at(name));
  for (const name of ['made.json.gz', 'made.perf', 'made.folded', 'made.svg', 'made.csv', 'made.speedscope.json', 'made.pb.gz', 'made.pftrace', 'made.db']) {
    const before = file(name);
    exportTo(name);
    assert(before.equals(file(name)), name);
  }
  assert.deepEqual(fs.readdirSync(folder).filter((n) => n.includes('.tmp')), []);
});

const raw = text.decode(fs.readFileSync(at('made.json')));
const trace = JSON.parse(raw);
// Nanoseconds as the text says them, not as a double does: "12.3456" is the form described in
// docs/formats.md, 0.4 ns below the value meant.
const exactNs = (s) => {
  const [, us, part, more] = /^(\d+)\.(\d{3})(\d?)$/.exec(s);
  return BigInt(us) * 1000n + BigInt(part) + (more ? 1n : 0n);
};
const slices = [...raw.matchAll(/^\{"ph":"X","cat":"(cpu_op|user_annotation)","name":("(?:[^"\\]|\\.)*"),"pid":(\d+),"tid":(\d+),"ts":([\d.]+),"dur":([\d.]+),"args":(\{.*\})\},$/gm)]
  .map((m) => ({category: m[1], name: JSON.parse(m[2]), pid: +m[3], tid: +m[4], ts: exactNs(m[5]), dur: exactNs(m[6]), args: JSON.parse(m[7])}));

await check('Chrome JSON: keys in the order of Kineto, parts and meta data', () => {
  const keys = Object.keys(trace);
  const known = ['schemaVersion', 'deviceProperties', 'host_name', 'displayTimeUnit', 'baseTimeNanoseconds', 'traceEvents', 'traceName'];
  assert.deepEqual(keys.filter((k) => known.includes(k)), known);
  assert.equal(keys.at(-1), 'traceName');
  assert.equal(trace.schemaVersion, 1);
  assert.deepEqual(trace.deviceProperties, []);
  assert.equal(trace.displayTimeUnit, 'ms');
  assert.equal(trace.host_name, 'node"7');
  assert.equal(trace.xsptrace_losses.lost_entries, 3);
  assert.deepEqual(trace.xsptrace_lost_by_function, [{name: names[2], entries: 3, exits: 2}]);
  assert.equal(trace.traceEvents.at(-1).name, 'Record Window End');
  assert(trace.traceEvents.some((e) => e.ph === 'i' && e.name === 'Incomplete: 5 events lost'));
  assert(raw.includes('"baseTimeNanoseconds":1'), 'an integer');
  const base = BigInt(/"baseTimeNanoseconds":(\d+),/.exec(raw)[1]);
  assert.equal(base % (7889238n * 1000000000n), 0n);
  assert(trace.traceEvents.every((e) => e.ph !== 'X' || Number.isInteger(e.pid)), 'numeric pids');
  assert.deepEqual(JSON.parse(zlib.gunzipSync(fs.readFileSync(at('made.json.gz')))).traceEvents, trace.traceEvents);
});

await check('Chrome JSON: every span, on its row, under its name, to the nanosecond', () => {
  assert.equal(slices.length, spans.length);
  const shift = slices.reduce((a, s) => (s.ts < a ? s.ts : a), slices[0].ts) - BigInt(Math.min(...spans.map((s) => s.start)));
  const real = BigInt(Date.now()) * 1000000n - process.hrtime.bigint();
  const base = BigInt(/"baseTimeNanoseconds":(\d+),/.exec(raw)[1]);
  const off = base + shift - real;
  assert(off > -5000000n && off < 5000000n, `real time is off by ${off} ns`);
  const found = new Map(slices.map((s) => [`${s.pid}/${s.tid}/${s.ts - shift}`, s]));
  let unwoundTogether = 0;
  for (const s of spans) {
    const got = found.get(`${s.pid}/${s.tid}/${s.start}`);
    assert(got, `span ${JSON.stringify(s)}`);
    // nobody demangles those: so said, their begin, and what tells them apart
    if (/^_Z/.test(s.name)) assert(got.name.length < 1100 && got.name.startsWith(`[mangled] ${s.name.slice(0, 1000)}`));
    else assert.equal(got.name, s.name);
    assert.equal(got.category, s.category);
    const short = BigInt(s.end - s.start) - got.dur;
    assert(s.flags ? short >= 0n && short <= 20n : short === 0n, `${s.name} is ${short} ns short`);
    if (s.flags & UNWOUND) unwoundTogether++;
    assert.equal(got.args.finished, s.flags & UNFINISHED ? false : undefined);
    assert.equal(got.args.unwound, s.flags & UNWOUND ? true : undefined);
  }
  assert.equal(unwoundTogether, 50);
  assert.equal(new Set(slices.map((s) => s.args['External id'])).size, spans.length);
});

await check('Chrome JSON: names of processes and threads', () => {
  const meta = trace.traceEvents.filter((e) => e.ph === 'M');
  const thread = meta.filter((e) => e.name === 'thread_name').map((e) => e.args.name);
  for (const t of threads.values()) assert(thread.includes(`thread ${t.tid} (${t.comm})`), t.comm);
  assert(thread.includes('thread 5002 (worker 12) stack 1'));
  assert.equal(thread.length, new Set(thread).size);
  const process = meta.filter((e) => e.name === 'process_name').map((e) => e.args.name).sort();
  assert.deepEqual(process, ['Spans', 'a', 'python3', 'serve', 'serve']);
});

// ---- FlameGraph's scripts, which are not to be had from a registry: by the expressions of stackcollapse-perf.pl
// and flamegraph.pl, and by the first itself where XSP_FLAMEGRAPH names a folder with it ----

// What both kinds of text keep of a thread's name.
const plainComm = (comm) => comm.replaceAll(/[^A-Za-z0-9]/g, '');

// Stacks and their weights, as stackcollapse-perf.pl makes them of perf-script text without any option.
function collapse(perfText) {
  const stacks = {};
  let comm = null, period = 0, stack = [];
  for (const line of perfText.split('\n').slice(0, -1)) {
    if (line.startsWith('#')) continue;
    const head = /^(\S.+?)\s+(\d+)\/*(\d+)*\s+/.exec(line), frame = /^\s*(\w+)\s*(.+) \((.*)\)/.exec(line);
    if (line === '') {
      const key = [comm, ...stack].join(';');
      if (comm !== null) stacks[key] = (stacks[key] ?? 0) + period;
      [comm, stack] = [null, []];
    } else if (head) {
      const said = /:\s*(\d+)*\s+(\S+):\s*$/.exec(line)?.[1] ?? '';
      // "0" is false there, and what is false becomes 1; "00" is not
      [comm, period] = [plainComm(head[1]), said === '0' || said === '' ? 1 : Number(said)];
    } else if (frame) {
      const symbol = frame[2].replace(/\+0x[\da-f]+$/, ''), inlined = [];
      if (symbol.startsWith('(')) continue;
      for (let f of symbol.split('->')) {
        if (f === '[unknown]') f = `[${frame[3] === '[unknown]' ? 'unknown' : frame[3].replace(/.*\//, '')}]`;
        f = f.replaceAll(';', ':');
        if (!/\.\(.*\)\./.test(f)) f = f.replace(/\((?!anonymous namespace\)).*/, '');
        f = f.replaceAll(/["']/g, '');
        inlined.push(/^java/.test(comm) && f.includes('/') ? f.replace(/^L/, '') : f);
      }
      stack.unshift(...inlined);
    } else assert.fail(`Unrecognized line: ${line}`);
  }
  return stacks;
}

// The same of folded stacks: docs/formats.md says what becomes something else in perf-script text.
function asPerf(foldedText) {
  const stacks = {};
  for (const line of foldedText.trimEnd().split('\n')) {
    const end = line.lastIndexOf(' '), [comm, ...frames] = line.slice(0, end).split(';');
    const names = frames.map((f) => f.replaceAll('(anonymous namespace)', '{anonymous}').replaceAll('(', '{')
      .replaceAll(')', '}').replaceAll('->', '\u2192').replaceAll('"', '\u201D').replaceAll("'", '\u2019'));
    const kept = names.length > 127 ? ['[outer_frames_cut]', ...names.slice(-127)] : names;
    const key = [plainComm(comm), ...kept].join(';');
    stacks[key] = (stacks[key] ?? 0) + Number(line.slice(end + 1));
  }
  return stacks;
}

// Of what differs, a few: names may be long.
const differing = (got, want) => [...new Set([...Object.keys(got), ...Object.keys(want)])].filter((k) => got[k] !== want[k])
  .slice(0, 5).map((k) => [k.slice(-200), got[k], want[k]]);

await check('stackcollapse-perf.pl makes the folded stacks of the perf-script text, with their times', () => {
  const want = asPerf(text.decode(fs.readFileSync(at('made.folded'))));
  assert.deepEqual(differing(collapse(text.decode(fs.readFileSync(at('made.perf')))), want), []);
  if (!process.env.XSP_FLAMEGRAPH) return;
  const script = path.join(process.env.XSP_FLAMEGRAPH, 'stackcollapse-perf.pl');
  const made = execFileSync('perl', [script, at('made.perf')], {encoding: 'utf8', maxBuffer: 1 << 28});
  const got = made.trimEnd().split('\n').map((l) => [l.slice(0, l.lastIndexOf(' ')).replace(/^[^;]*/, plainComm), Number(l.slice(l.lastIndexOf(' ') + 1))]);
  assert.deepEqual(differing(Object.fromEntries(got), want), []);
});

await check('stackcollapse-perf.pl\'s expressions take every line of the perf-script text', () => {
  let n = 0, frames = 0;
  const time = {};
  const last = new Map();
  const symbols = new Set();
  const lines = text.decode(fs.readFileSync(at('made.perf'))).split('\n');
  assert.deepEqual(lines.slice(-2), ['', ''], 'ends with a blank line');
  for (const line of lines.slice(0, -1)) {
    if (line === '') { assert(frames > 0); frames = 0; continue; }
    if (frames === 0 && !line.startsWith('\t')) {
      const head = /^(\S.+?)\s+(\d+)\/*(\d+)*\s+/.exec(line), tail = /:\s*(\d+)*\s+(\S+):\s*$/.exec(line);
      assert(head && head[3] && tail && tail[2] === 'self-ns', line);
      const stamp = /\s(\d+)\.(\d{6}):\s/.exec(line);
      const us = BigInt(stamp[1] + stamp[2]);
      assert(us >= (last.get(head[3]) ?? 0n), 'time rises on each thread');
      last.set(head[3], us);
      n++;
      const key = `${head[2]}/${head[3]}`;
      time[key] = (time[key] ?? 0) + Number(tail[1]);
      totalTime += Number(tail[1]);
      frames = 0.5;
      continue;
    }
    const frame = /^\s*(\w+)\s*(.+) \((\S*)\)$/.exec(line);
    assert(frame && /\+0x0$/.test(frame[2]), line);
    // what it makes of a symbol that is no Go method: each is kept as it is, so that none become one
    const symbol = frame[2].replace(/\+0x[\da-f]+$/, '');
    assert(!symbol.startsWith('('), line);
    const kept = symbol.split('->').map((s) => {
      const f = s.replaceAll(';', ':');
      return (/\.\(.*\)\./.test(f) ? f : f.replace(/\((?!anonymous namespace\)).*/, '')).replaceAll(/["']/g, '');
    });
    assert.deepEqual(kept, [symbol]);
    symbols.add(symbol);
    frames++;
  }
  assert.equal(n, spans.length);
  assert.equal(symbols.size, new Set(spans.map((s) => s.name)).size + 1, 'symbols, and [outer_frames_cut]');
  const short = rowTime[SWITCHING] - time[SWITCHING];
  assert(short >= 0 && short < 5100, `${short} ns are missing`);
  assert.deepEqual({...time, [SWITCHING]: 0}, {...rowTime, [SWITCHING]: 0});
});

// ---- Perfetto ----

const STATS = "select name, value from stats where value > 0 and severity != 'info'";

await check('Perfetto reads the JSON: no error statistics, same slices, rows and nanoseconds', async () => {
  const perf = await openTrace(at('made.json.gz'));
  assert.deepEqual(await perf.query(STATS), []);
  const rows = await perf.query("select s.ts, s.dur, s.name, s.depth, t.tid, p.pid from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) where s.category in ('cpu_op', 'user_annotation')");
  assert.equal(rows.length, spans.length);
  const key = (pid, tid, ts, dur, name) => `${pid}/${tid}/${ts}/${dur}/${name}`;
  assert.deepEqual(rows.map((r) => key(r.pid, r.tid, r.ts, r.dur, r.name)).sort(),
    slices.map((s) => key(s.pid, s.tid, s.ts, s.dur, s.name)).sort());
  // 200 calls deep on the main thread
  assert.equal(Math.max(...rows.filter((r) => Number(r.tid) === 5001).map((r) => Number(r.depth))), 199);
  const finished = await perf.query("select count(*) n from slice where extract_arg(arg_set_id, 'args.finished') = 'false' or extract_arg(arg_set_id, 'args.finished') = 0");
  assert.equal(Number(finished[0].n), spans.filter((s) => s.flags & UNFINISHED).length);
});

await check('Perfetto reads its own format: the slices of the JSON, to the nanosecond', async () => {
  const trace = await openTrace(at('made.pftrace'));
  assert.deepEqual(await trace.query(STATS), []);
  const rows = await trace.query('select s.ts, s.dur, s.name, s.category, s.depth, t.tid, p.pid from slice s left join thread_track k on s.track_id = k.id left join thread t using (utid) left join process p using (upid)');
  assert.equal(rows.length, slices.length);
  const key = (tid, ts, dur, name, category) => `${tid ?? FIBER_TID}/${ts}/${dur}/${category}/${name.replace(/^\[mangled\] (.{1000}).*/s, '$1')}`;
  assert.deepEqual(differing(count(rows, (r) => key(r.tid, r.ts, r.dur, r.name, r.category)),
    count(spans, (s) => key(s.tid, s.start, s.end - s.start, /^_Z/.test(s.name) ? s.name.slice(0, 1000) : shown(s.name), s.category))), []);
  assert.equal(Math.max(...rows.filter((r) => Number(r.tid) === 5001).map((r) => Number(r.depth))), 199);
  const finished = await trace.query("select count(*) n from slice where extract_arg(arg_set_id, 'debug.finished') = 0");
  assert.equal(Number(finished[0].n), spans.filter((s) => s.flags & UNFINISHED).length);
  const names = await trace.query('select t.tid, t.name from thread t where t.tid > 0');
  for (const t of threads.values()) assert(names.some((n) => Number(n.tid) === t.tid && n.name === shown(t.comm)), t.comm);
});

/** Rows of one query; the numbers as such. */
async function ask(trace, sql) {
  return (await trace.query(sql)).map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, typeof v === 'bigint' ? Number(v) : v])));
}
await check('Perfetto reads the perf-script text: every sample, every thread', async () => {
  const trace = await openTrace(at('made.perf'));
  const [n] = await ask(trace, 'select count(*) n, count(distinct utid) t from cpu_profile_stack_sample');
  assert.deepEqual(n, {n: spans.length, t: Object.keys(rowsExpected).length});
  assert.deepEqual(await trace.query(STATS), []);
});

const folded = text.decode(fs.readFileSync(at('made.folded'))).trimEnd().split('\n');
await check('Perfetto reads the folded stacks: every stack, all the time', async () => {
  const [n] = await ask(await openTrace(at('made.folded')), 'select count(*) n, sum(value) s from __intrinsic_aggregate_sample');
  // a stack without time is none to it
  assert.deepEqual(n, {n: folded.filter((l) => !l.endsWith(' 0')).length, s: totalTime});
});

await check('Perfetto reads the pprof: every stack, calls and time', async () => {
  const [n] = await ask(await openTrace(at('made.pb.gz')), `select sum(iif(p.sample_type_type = 'wall', s.value, 0)) time, sum(iif(p.sample_type_type = 'calls', s.value, 0)) calls
    from __intrinsic_aggregate_sample s join __intrinsic_aggregate_profile p on p.id = s.aggregate_profile_id`);
  assert.deepEqual(n, {time: totalTime, calls: spans.length});
});

await check('flamegraph.pl\'s expression takes every folded line, as one count', () => {
  let time = 0;
  for (const line of folded) {
    const m = /^(.*)\s+?(\d+(?:\.\d*)?)$/s.exec(line);
    assert(m && m[1].includes(';'), line);
    assert(!/\s+?(\d+(?:\.\d*)?)$/.test(m[1]), `two counts: ${line}`);
    assert(m[1].split(';').every((f) => f === f.trim() && f !== ''), line);
    time += Number(m[2]);
  }
  assert.equal(time, totalTime);
});

// ---- Firefox Profiler ----

/** {handle: tid} of the threads of the capture. */
function firefoxThreads(pq) {
  const rows = [...pq(['profile', 'info', '--all']).matchAll(/^\s*(t-\d+): (.*) \[tid (\S+?)\]/gm)].map((m) => [m[1], +m[3].split(':').pop()])
    .filter(([, tid]) => Object.keys(rowsExpected).some((k) => k.endsWith(`/${tid}`)));
  assert.equal(rows.length, Object.keys(rowsExpected).length);
  return Object.fromEntries(rows);
}
const ofThreads = Object.fromEntries(Object.entries(rowsExpected).map(([k, v]) => [k.split('/')[1], v]));
await check('Firefox Profiler reads the JSON: a marker per span on each thread', () => firefox(at('made.json'), (pq) => {
  const threads = firefoxThreads(pq);
  const told = JSON.parse(pq(['profile', 'markers', '--json', '--limit', '1'])).byThread.filter((t) => t.threadHandle in threads);
  assert.deepEqual(Object.fromEntries(told.map((t) => [threads[t.threadHandle], t.count])), ofThreads);
}));
await check('Firefox Profiler reads the perf-script text: a sample per span on each thread', () => firefox(at('made.perf'), (pq) => {
  const told = Object.entries(firefoxThreads(pq)).map(([handle, tid]) => [tid, JSON.parse(pq(['thread', 'samples', '--thread', handle, '--json'])).categoryBreakdown.totalSamples]);
  assert.deepEqual(Object.fromEntries(told), ofThreads);
}));

// ---- speedscope and the flame graph, in a browser ----

if (!chromiumPath()) {
  console.log(`${checks} checks passed; skipped: chromium is not installed, so speedscope and the flame graph were not opened`);
  process.exit(77);
}
const {loadAll} = await import('./speedscope.mjs');
const {tryFlame} = await import('./flame.mjs');

let own; // what it makes of its own format
await check('speedscope reads JSON, perf-script text and folded stacks without a complaint', async () => {
  const [json, perf, fold, last] = await loadAll([at('made.json'), at('made.perf'), at('made.folded'), at('made.speedscope.json')]);
  own = last;
  const complaints = (r) => r.messages.filter((m) => /Tried|still open|Failed|rror|out of order|Could not|Unable|skip/i.test(m));
  assert.deepEqual([json, perf, fold].map(complaints), [[], [], []]);
  const events = Object.fromEntries(json.profile.profiles.filter((p) => !p.name.startsWith('Spans'))
    .map((p) => [/\(pid (\d+)\)/.exec(p.name)[1] + '/' + /\(tid (\d+)\)/.exec(p.name)[1], p.events.length / 2]));
  assert.deepEqual(events, rowsExpected);
  const perfRows = perf.profile.profiles.map((p) => /pid: (\d+) tid: (\d+)/.exec(p.name).slice(1).join('/')).sort();
  assert.deepEqual(perfRows, Object.keys(rowsExpected).sort());
  const [f] = fold.profile.profiles;
  assert.equal(f.endValue - f.startValue, totalTime);
});

await check('speedscope reads its own format: every span on its row, to the nanosecond', () => {
  const r = own;
  assert.deepEqual(r.messages.filter((m) => /still open|Failed|rror|out of order|Could not|Unable/i.test(m)), []);
  const frames = r.profile.shared.frames.map((f) => f.name.replace(/ \[end not seen\]$/, '').replace(/^\[mangled\] (.{1000}).*/s, '$1'));
  const found = {}, wanted = {};
  for (const p of r.profile.profiles) {
    const [, pid, tid, fiber] = /\(pid (\d+)\) thread (\d+) .*?( stack \d+)?$/s.exec(p.name), open = [];
    for (const e of p.events) {
      if (e.type === 'O') open.push(e);
      else {
        const begin = open.pop();
        assert.equal(begin.frame, e.frame);
        const key = `${pid}/${fiber ? FIBER_TID : tid} ${e.at - begin.at} ${frames[e.frame]}`;
        found[key] = (found[key] ?? 0) + 1;
      }
    }
    assert.deepEqual(open, []);
  }
  for (const s of spans) {
    const key = `${s.pid}/${s.tid} ${s.end - s.start} ${/^_Z/.test(s.name) ? s.name.slice(0, 1000) : s.name}`;
    wanted[key] = (wanted[key] ?? 0) + 1;
  }
  assert.deepEqual(differing(found, wanted), []);
});

await check('the flame graph opens from a file, zooms, searches, resets; nothing is fetched', async () => {
  const r = await tryFlame(at('made.svg'), folder, {clickOn: 'step#3', searchFor: 'at::_ops'});
  assert.deepEqual(r.problems, []);
  assert.deepEqual(r.foreign, []);
  assert.deepEqual([...r.overflow, ...r.overflowZoomed], [], 'text sticks out of its box');
  const all = r.full.find((f) => f.name === 'all');
  assert.equal(all.total, totalTime);
  assert.match(r.detail, /total .*self .*calls.* step#3/);
  const zoomedFrom = r.zoomed.find((f) => f.name === 'step#3');
  assert.equal(r.tabbable, 1);
  // from the frame that was clicked last
  assert.deepEqual(r.keys.map((k) => k.depth - zoomedFrom.depth), [0, 1, 2, 1]);
  for (const k of r.keys) { // both ends of a name are there, behind the numbers
    const name = k.name.split(', total ')[0];
    assert.match(k.detail, /^total .* calls? {3}/);
    assert.ok(k.detail.includes(name.slice(0, 20)) && k.detail.endsWith(name.slice(-20)), k.detail);
  }
  assert.ok(r.zoomedByKey > 0 && r.zoomedByKey <= r.full.length);
  assert.equal(r.dark, 'rgb(13, 17, 23)');
  assert(zoomedFrom.width > 1300, `zoomed to ${zoomedFrom.width} px`);
  assert(r.zoomed.length < r.full.length);
  assert.deepEqual(r.reset, r.full);
  assert(r.matches.length > 0 && r.matches.every((n) => n.includes('at::_ops')));
  assert.match(r.matched, /^\d+\.\d\d( to \d+\.\d\d)?% in \d+ frames?$/);
  assert.equal(r.matchesAfterEscape, 0);
  const shown = new Set(r.full.map((f) => f.name));
  for (const n of ['say "hi" to C:\\path\\', '<xml> & "attr" \'x\' ]]> <!-- -->', 'bad\uFFFD\uFFFDutf8\uFFFD']) assert(shown.has(n), n);
});

console.log(`${checks} checks passed; screenshots: ${at('flame-*.png')}`);
process.exit(0);
