// SPDX-License-Identifier: BSD-2-Clause
// fake.mjs PAGE OUT [SPANS]: made-up data in the blocks of user/page/page.h, for tests and for looking at the page
// without a capture. Nothing in it is random: the same call gives the same page.
import fs from 'node:fs';
import zlib from 'node:zlib';
import {pathToFileURL} from 'node:url';

const S = 1e9;
const MS = 1e6;
/** Names as a hostile program would have them. */
export const HOSTILE = [
  '<img src=x onerror="window.hacked=1">',
  '</script><script>window.hacked=1</script>',
  '"><svg onload=window.hacked=1>',
  "javascript:window.hacked=1//'",
  'turned\u202Egnp.exe\u0007\u001b[31m',
  '{{constructor.constructor("window.hacked=1")()}}',
  `${'very_long::template<int, '.repeat(40)}>`,
  ' ',
];

/** A generator of numbers in [0, 1) that look like chance. */
function chance(seed) {
  let x = seed;
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x / 2 ** 32;
  };
}

const OPERATORS = ['aten::mm', 'aten::addmm', 'aten::convolution', 'aten::relu', 'aten::add_', 'aten::copy_', 'aten::_softmax',
  'aten::native_layer_norm', 'aten::embedding', 'aten::sum', 'autograd::engine::evaluate_function: MmBackward0', 'Optimizer.step#SGD.step',
  'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__', 'cudaLaunchKernel', 'cudaStreamSynchronize'];

const column = (spec) => {
  const [key, unit, title] = spec.split('|');
  return {key: key.replace('!', ''), title: title ?? key.replace(/!|_ns$|_bytes$/g, ''), unit, identity: key.endsWith('!')};
};
const table = (title, specs, rows) => {
  const columns = specs.map(column);
  return {title, row_count: rows.length, columns, rows: rows.map((row) => Object.fromEntries(columns.map((c, i) => [c.key, row[i] ?? null])))};
};
const section = (title, values, tables = {}, notes = []) => ({
  title,
  values: Object.fromEntries(values.map(([key, , , value]) => [key, value])),
  about: Object.fromEntries(values.map(([key, unit, text]) => [key, {title: text, unit}])),
  notes,
  tables,
});
const finding = (rule, severity, subject, title, advice, share, range, values, uncertain = null) => ({
  rule, severity, subject, title, advice, uncertain, share, ...(range && {from_ns: range[0], to_ns: range[1]}),
  values: Object.fromEntries(values.map(([key, , , value]) => [key, value])),
  about: Object.fromEntries(values.map(([key, unit, text]) => [key, {title: text, unit}])),
});

function operations(count) {
  const next = chance(7);
  const names = [...OPERATORS, ...HOSTILE];
  const rows = [];
  for (let i = 0; i < count; i++) {
    const name = names[i] ?? `library::worker<${i % 97}>::call_${i}(std::vector<int> const&)`;
    const calls = 1 + Math.floor(next() * 5000);
    const self = Math.floor((8 * S) / (i + 1.5) * (0.6 + next() * 0.6) * 0.3);
    const total = Math.floor(self * (1 + next() * 1.5));
    const mean = total / calls;
    rows.push([name, calls, calls / 100, total, self, i % 3 ? Math.floor(self * 0.9) : null, mean, mean * 0.4, Math.floor(mean * 0.3),
      Math.floor(mean * 0.9), Math.floor(mean * 3), Math.floor(mean * 5), i % 11 ? 0 : 2, 0]);
  }
  return rows.sort((a, b) => b[4] - a[4]);
}

/** Of 100 steps: places with their parts, and the rows that they are made of. */
function account() {
  const each = 97 * MS;
  const parts = [ // place, share, its rows: kind, callee, reason, share of all
    ['train.py:41 backward', 0.4, [['span', 'aten::mm', null, 0.25], ['span', 'aten::addmm', null, 0.15]]],
    ['train.py:20 load', 0.35, [['waiting', null, 'disk', 0.35]]],
    [HOSTILE[0], 0.1, [['on CPU', null, null, 0.1]]],
    ['train.py:60 log', 0.004, [['on CPU', null, null, 0.004]]],
    [null, 0.12, [['ready', null, 'preempted', 0.12]]],
    [null, 0.026, [['probes', null, null, 0.026]]],
  ];
  const ns = (share) => Math.round(100 * each * share);
  const line = (what, share, error, part) => [what, ns(share), share * each, share, error, part];
  const texts = {ready: 'ready, without a CPU', probes: "the recording's own probes"};
  return section('Where the time went', [
    ['who', 'text', 'program', 'python3 train.py (4711)'], ['duration_ns', 'ns', 'recorded', 10 * S], ['threads', 'count', 'threads', 12], ['busy_threads', 'count', 'busy ones', 2],
    ['thread', 'text', 'the account is of', 'python3'], ['members', 'count', '... so many threads', 1], ['cpu_share', 'share', 'on a CPU', 0.53], ['ready_share', 'share', 'ready, without a CPU', 0.12],
    ['steps', 'count', 'steps', 100], ['ns', 'ns', 'time in the account', 100 * each],
  ], {
    places: table('places', ['what!|text|where the time went', 'ns|ns|time', 'each_ns|ns|each', 'share|share', 'error_share|share|+-', 'part|text|of the place above'],
      parts.flatMap(([place, share, rows]) => [
        line(place === null ? texts[rows[0][0]] : rows[0][2] ? `${place}  waits: ${rows[0][2]}` : place, share, share === 0.1 ? 0.02 : null, null),
        ...(rows.length > 1 ? rows.map(([, callee, , part]) => line(`  ${callee}`, part, null, 'part')) : []),
      ])),
    rows: table('rows', ['kind!|text', 'place!|text', 'callee!|text', 'reason!|text', 'ns|ns|time'],
      parts.flatMap(([place, , rows]) => rows.map(([kind, callee, reason, share]) => [kind, place, callee, reason, ns(share)]))),
    families: table('threads that do the same work', ['thread!|text', 'tid|count|busiest', 'members|count', 'ns|ns|time', 'cpu_ns|ns|on CPU', 'ready_ns|ns|ready'],
      [['python3', 4711, 1, 10 * S, 5.3 * S, 1.2 * S], ['pt_data_worker', 4720, 4, 40 * S, 30 * S, 1 * S], [HOSTILE[0], 4721, 1, 10 * S, 1 * S, 0]]),
  });
}

export function fakeReport({rows = 60, lost = 0} = {}) {
  const next = chance(3);
  const use = [];
  for (const device of [0, 1]) for (let k = 0; k < 30; k++) use.push([4711, device, (k * 10 * S) / 30, Math.min(1, 0.3 + 0.5 * next() + 0.2 * device)]);
  return {
    format: 'xsptrace report',
    version: 1,
    findings: [
      finding('loader', 'high', OPERATORS[12], 'getting data from the DataLoader takes 41.2 % of the time of steps',
        'give the DataLoader (more) workers (num_workers), persistent_workers and prefetch_factor, or make its __getitem__ and collate_fn cheaper',
        0.412, [1 * S, 1.4 * S], [['total_ns', 'ns', 'in all', 4120000000], ['calls', 'count', 'batches', 100], ['cpu_ns', 'ns', 'of it on CPU', null]]),
      finding('gpu-idle', 'medium', 'GPU 0', 'GPU 0 is idle for 28.0 % of its time', 'launch earlier: the launching thread was in the DataLoader',
        0.28, [2 * S, 2.5 * S], [['idle_ns', 'ns', 'idle', 2800000000]]),
      finding('lock', 'medium', HOSTILE[0], `a lock of ${HOSTILE[1]} takes 12 % of a thread's time`, `look at ${HOSTILE[2]}`, 0.12, [3 * S, 3.1 * S],
        [['total_ns', 'ns', 'in all', 1200000000], ['holder', 'text', 'held by', HOSTILE[4]]], 'events were lost'),
      finding('warm-up', 'low', null, 'the first 3 steps took 2.1 s longer', null, 0.021, null, [['steps', 'count', 'steps', 3]]),
    ],
    sections: {
      recording: section('Recording', [
        ['arguments', 'text', 'recorded with', 'xsptrace -p 4711 -d 10 --waits --gpu -o train.xspt'],
        ['start', 'text', 'began', '2026-11-23T07:00:00+0000'],
        ['duration_ns', 'ns', 'time', 10 * S],
        ['recorded_ns', 'ns', '... of it recorded', 10 * S],
        ['windows', 'count', '... in windows of --max-overhead', null],
        ['spans', 'count', 'spans', 1234567],
        ['threads', 'count', 'threads', 12],
        ['processes', 'count', 'processes', 1],
        ['lost_entries', 'count', 'lost entries', lost],
        ['lost_exits', 'count', 'lost exits', 0],
        ['unfinished', 'count', 'calls open at the end, in no total', 3],
      ], {}, ['2 functions had no safe place for a probe']),
      account: account(),
      steps: section('Steps', [
        ['marker', 'text', 'marked by', 'Optimizer.step#SGD.step'], ['steps', 'count', 'steps', 100], ['steps_per_second', 'per_second', 'steps a second, a thread', 10.23],
        ['mean_ns', 'ns', 'mean', 97.3 * MS], ['p50_ns', 'ns', 'p50', 96 * MS], ['p99_ns', 'ns', 'p99', 131 * MS],
      ], {
        slowest: table('the slowest steps', ['step!|number', 'time_ns|ns|time', 'start_ns|time_ns|begins at', 'calls|count', 'thread|text', 'longer|text|what took longer than in the mean'],
          [[7, 131 * MS, 0.7 * S, 95, 'python3', 'aten::mm +20 ms'], [51, 122 * MS, 5.2 * S, 95, 'python3', 'aten::copy_ +11 ms'], [88, 118 * MS, 8.6 * S, 95, 'python3', '-']]),
      }),
      operations: section('Operations', [], {
        operations: table('by self time; totals count recursion once, calls without an end are in no time',
          ['name!|text', 'calls|count', 'calls_per_step|count|calls a step', 'total_ns|ns', 'self_ns|ns', 'cpu_ns|ns', 'mean_ns|ns', 'std_ns|ns', 'min_ns|ns', 'p50_ns|ns', 'p99_ns|ns', 'max_ns|ns', 'unfinished|count', 'unwound|count'],
          operations(rows)),
      }),
      threads: section('Threads and what they waited for', [], {
        threads: table('threads', ['name!|text|thread', 'tid|number', 'time_ns|ns', 'running_ns|ns', 'runnable_ns|ns', 'blocked_ns|ns', 'reasons|text'],
          [['python3', 4711, 10 * S, 6 * S, 0.2 * S, 3.8 * S, 'futex 60 %, cuda 40 %'], ['pt_data_worker', 4720, 10 * S, 9 * S, 0.8 * S, 0.2 * S, 'disk 90 %'], [HOSTILE[0], 4721, 10 * S, 1 * S, 0, 9 * S, 'futex 100 %']]),
        locks: table('locks; without a holder: condition variables and their like', ['at!|text', 'address|text', 'waits|count', 'total_ns|ns', 'max_ns|ns', 'holder|text'],
          [['queue.put', '0x7f001000', 812, 1.2 * S, 40 * MS, 'python3 (4711)']]),
      }),
      python: section('Spans by line of Python and by module', [], {
        lines: table('by line that called', ['name!|text|where', 'calls|count', 'total_ns|ns', 'self_ns|ns', 'share|share|share of self'],
          Array.from({length: 24}, (_, i) => [`train.py:${20 + i * 7} ${['forward', 'backward', 'step', 'load'][i % 4]}`, 100 * (i + 1), (3 * S) / (i + 1), (2 * S) / (i + 1), 0.3 / (i + 1)])),
        modules: table('by torch.nn.Module', ['name!|text|where', 'calls|count', 'total_ns|ns', 'self_ns|ns', 'share|share|share of self'],
          ['ResNet', 'ResNet.layer1', 'ResNet.layer1.0', 'ResNet.layer1.0.conv1', 'ResNet.layer2', 'ResNet.fc', HOSTILE[1]].map((n, i) => [n, 100, (5 * S) / (i + 1), (1 * S) / (i + 2), 0.2 / (i + 1)])),
      }),
      gpu: section('GPU', [['host_outside_ns', 'ns', 'outside of any span', 12 * MS]], {
        devices: table('Time of devices', ['pid!|count|Process', 'device!|count|GPU', 'name|text|Name', 'span_ns|ns|First to last', 'busy_ns|ns|Busy', 'busy_share|share|Busy', 'compute_ns|ns|Compute', 'communication_ns|ns|Communication alone', 'memory_ns|ns|Memory alone', 'idle_ns|ns|Idle', 'idle_host_ns|ns|Idle, host late', 'unrecorded_ns|ns|Not recorded', 'streams|count|Streams', 'concurrency|number|At once'],
          [[4711, 0, 'NVIDIA H200', 9.9 * S, 7.1 * S, 0.72, 5.9 * S, 0.8 * S, 0.4 * S, 2.8 * S, 2.1 * S, 0, 3, 1.09], [4711, 1, 'NVIDIA H200', 9.9 * S, 8.3 * S, 0.84, 6.4 * S, 1.2 * S, 0.7 * S, 1.6 * S, 0.9 * S, 0, 3, 1.14]]),
        use: table('Use over time', ['pid!|count|Process', 'device!|count|GPU', 'from_ns!|time_ns|From', 'busy_share|share|Busy'], use),
        streams: table('Streams', ['pid!|count|Process', 'device!|count|GPU', 'context!|count|Context', 'stream!|count|Stream', 'activities|count|Activities', 'busy_ns|ns|Busy', 'busy_share|share|Busy, of first to last', 'host_wait_ns|ns|Idle: host wait', 'kernel_wait_ns|ns|kernel wait', 'other_ns|ns|other', 'unknown_ns|ns|launch not known'],
          [[4711, 0, 1, 7, 81234, 6.9 * S, 0.7, 2.0 * S, 0.3 * S, 0.5 * S, 0], [4711, 0, 1, 20, 200, 0.8 * S, 0.08, 0, 0, 9 * S, 0.1 * S], [4711, 1, 1, 7, 80211, 8.2 * S, 0.83, 0.9 * S, 0.4 * S, 0.3 * S, 0]]),
        kernels: table('Kernels', ['name!|text|Kernel', 'runs|count|Runs', 'total_ns|ns|Total', 'share|share|Share', 'mean_ns|ns|Mean', 'occupancy|share|Occupancy'],
          ['ampere_sgemm_128x64_nn', 'void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', HOSTILE[0]].map((n, i) => [n, 4000 >> i, (3 * S) / (i + 1), 0.4 / (i + 1), 75e3 * (i + 1), 0.5])),
      }),
      memory: section('Memory', [], {
        processes: table('resident memory', ['name!|text|process', 'pid|number', 'start_bytes|bytes|at the start', 'peak_bytes|bytes|at most', 'end_bytes|bytes|at the end'], [['python3', 4711, 512 * 2 ** 20, 3.2 * 2 ** 30, 2.9 * 2 ** 30]]),
        sites: table('where memory is alive', ['name!|text|where', 'alive_bytes|bytes|alive', 'alive|count|blocks', 'allocated_bytes|bytes|allocated', 'growth|bytes_per_second|grows by'],
          [['aten::empty < train.py:41', 800 * 2 ** 20, 312, 80 * 2 ** 30, 3e6], ['aten::clone < train.py:60', 120 * 2 ** 20, 12, 2 * 2 ** 30, 0]]),
      }),
      rules: section('Rules', [], {
        rules: table('what was looked for', ['rule!|text', 'threshold|text', 'findings|count', 'needs|text'], [['hot-operation', '10 %', 0, null], ['loader', '10 %', 1, null], ['leak', '10 MiB', null, 'needs --memory']]),
      }),
      unheard_of: section('A section that no tab knows', [['x', 'number', 'a number', 3.25]], {t: table('its table', ['name!|text', 'n|count'], [['one', 1]])}),
    },
  };
}

export function fakeCompare() {
  const columns = (unit) => ['name!|text', 'verdict|text', 'change|share', 'low|share|from', 'high|share|to', `a|${unit}|A`, `b|${unit}|B`, 'calls_a|number|calls A', 'calls_b|number|calls B'];
  return {
    format: 'xsptrace report',
    version: 1,
    findings: [finding('slower', 'high', 'aten::mm', 'aten::mm became 31.0 % slower', 'look at what changed in its callers', 0.31, null, [['a', 'ns', 'A', 1e6], ['b', 'ns', 'B', 1.31e6]])],
    sections: {
      compared: section('Compared', [['threshold', 'share', 'threshold', 0.05]], {
        captures: table('Captures', ['side!|text', 'capture!|text', 'recorded|ns', 'steps|count', 'lost|count', 'command|text'], [['A', 'yesterday.xspt', 10 * S, 100, 0, 'python3 train.py'], ['B', 'today.xspt', 10 * S, 91, 0, 'python3 train.py']]),
      }),
      steps: section('Steps', [], {step: table('Time of a step', columns('ns'), [['step', 'slower', 0.08, 0.06, 0.1, 97 * MS, 105 * MS, 1, 1]])}),
      operators: section('Operators', [], {
        in_step: table('Own time in a step', columns('ns'), OPERATORS.map((name, i) => {
          const change = [0.31, -0.12, 0.01, 0.4, -0.02, 0.002, 0.2][i % 7];
          return [name, ['slower', 'faster', 'same', 'noise', 'same', 'small', 'slower?'][i % 7], change, change - 0.05, change + 0.05, 5 * MS / (i + 1), (5 * MS / (i + 1)) * (1 + change), 10, 10];
        })),
      }),
    },
  };
}

function fakeTrees() {
  const next = chance(11);
  const names = ['all', 'python3 (4711)', ...OPERATORS, ...HOSTILE, 'train.py:12 main', 'train.py:40 step'];
  const tree = (key, title, unit, size, scale) => {
    const out = {key, title, unit, parent: [-1], name: [0], kind: [4], self: [0], before: [0], count: [0]};
    for (let i = 1; i < size; i++) {
      out.parent.push(i < 3 ? i - 1 : Math.max(0, i - 1 - Math.floor(next() * next() * i)));
      out.name.push(i === 1 ? 1 : 2 + Math.floor(next() * (names.length - 2)));
      out.kind.push(i < 2 ? 4 : Math.floor(next() * 4));
      out.self.push(Math.floor(next() * next() * scale));
      out.before.push(Math.floor(next() * next() * scale));
      out.count.push(1 + Math.floor(next() * 100));
    }
    return out;
  };
  return {
    names,
    trees: [tree('wall', 'time of spans', 'ns', 600, 50 * MS), tree('samples', 'samples', 'samples', 300, 200), tree('modules', 'torch.nn.Module', 'ns', 60, 90 * MS), tree('memory', 'alive at the peak', 'bytes', 80, 2 ** 26), tree('gpu', 'GPU time by launching operator', 'ns', 40, 50 * MS)],
  };
}

/** Columns behind their JSON, as page.h has them. */
class Columns {
  parts = [];
  length = 0;
  put(array) {
    const at = this.length;
    const bytes = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
    this.parts.push(bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8));
    this.length += bytes.length + ((8 - (bytes.length % 8)) % 8);
    return at;
  }
}

/** Levels of detail of spans {start, duration, name}, as user/page writes them: merged where shorter than the resolution. */
function levels(columns, spans, length) {
  const level = (cells, resolution) => ({
    resolution_ns: resolution,
    cells: cells.length,
    start: columns.put(Float64Array.from(cells, (c) => c.start)),
    duration: columns.put(Float64Array.from(cells, (c) => c.duration)),
    name: columns.put(Uint32Array.from(cells, (c) => c.name)),
    count: columns.put(Uint32Array.from(cells, (c) => c.count)),
  });
  const out = [{...level(spans, 0), arguments: columns.put(Uint32Array.from(spans, () => 2))}];
  let cells = spans;
  for (let resolution = 1000; resolution < length / 500 && cells.length > 500; resolution *= 4) {
    const merged = [];
    for (const c of cells) {
      const last = merged.at(-1);
      const end = last && last.start + last.duration;
      if (last && last.duration < resolution && c.duration < resolution && c.start - end < resolution) {
        Object.assign(last, {duration: c.start + c.duration - last.start, count: last.count + c.count});
        if (c.duration > last.longest) Object.assign(last, {name: c.name, longest: c.duration});
      } else {
        merged.push({...c, longest: c.duration});
      }
    }
    if (merged.length < cells.length) out.push(level(merged, resolution));
    cells = merged;
  }
  return out;
}

function fakeTimeline(spanCount, threadCount) {
  const next = chance(5);
  const length = 10 * S;
  const names = ['step', ...OPERATORS, ...HOSTILE, 'Running', 'Runnable', 'futex', 'ampere_sgemm_128x64_nn', 'Memcpy HtoD (Pinned -> Device)'];
  const columns = new Columns();
  const tracks = [];
  const track = (fields, lanes) => tracks.push({pid: 4711, tid: 4711, row: 0, process: 'python3', thread: 'python3', name: '', spans: 0, ...fields, lanes});
  /** count spans one behind the other, inside of those given (or of all the time) */
  const fill = (count, pick, within = [{start: 0, duration: length}]) => within.flatMap(({start, duration}) => {
    const each = Math.max(1, Math.round(count / within.length));
    return Array.from({length: each}, (_, i) => {
      const slot = duration / each;
      return {start: Math.floor(start + i * slot + slot * 0.05), duration: Math.floor(slot * (0.2 + 0.7 * next())), name: pick(i), count: 1};
    });
  });
  const pick = () => 1 + Math.floor(next() * (OPERATORS.length + HOSTILE.length));
  const threads = [['python3', 4711], ['pt_data_worker', 4720], [HOSTILE[0], 4721], ['autograd', 4722]];
  for (let i = threads.length; i < threadCount; i++) threads.push(['worker', 5000 + i]);
  for (const [thread, tid] of threads) {
    const lanes = [fill(100, () => 0)];
    for (const part of [0.2, 0.8]) lanes.push(fill((spanCount / threads.length) * part, pick, lanes.at(-1)));
    track({kind: 'spans', tid, thread, spans: lanes.reduce((sum, lane) => sum + lane.length, 0)}, lanes.map((lane) => ({levels: levels(columns, lane, length)})));
    const states = fill(600, (i) => names.indexOf(['Running', 'Runnable', 'Running', 'futex'][i % 4]));
    track({kind: 'states', tid, thread, spans: states.length}, [{levels: levels(columns, states, length)}]);
  }
  for (const stream of [7, 20]) {
    const work = fill(spanCount / 10, (i) => names.length - 1 - (i % 5 ? 1 : 0));
    track({kind: 'gpu', tid: stream, row: stream, thread: '', name: `GPU 0 stream ${stream}`, spans: work.length}, [{levels: levels(columns, work, length)}]);
  }
  const counter = (name, unit, value, points = 2000) => {
    const start = columns.put(Float64Array.from({length: points}, (_, i) => (i * length) / points));
    track({kind: 'counter', tid: 0, thread: '', name, unit, spans: points}, [{levels: [{cells: points, start, value: columns.put(Float64Array.from({length: points}, (_, i) => value(i / points)))}]}]);
  };
  counter('resident memory', 'bytes', (x) => 2 ** 29 + 2 ** 31 * Math.min(1, x * 3) + 2 ** 26 * Math.sin(x * 40));
  counter('CPU allocator', 'bytes', (x) => 2 ** 28 * (1 + Math.floor((x * 100) % 8)));
  counter('queued launches', 'count', (x) => Math.floor(500 * (1 + Math.sin(x * 20))));
  // from each step of the first thread to the first stream
  const calls = Array.from({length: 100}, (_, i) => i * (length / 100) + length / 1000);
  const stream = tracks.findIndex((t) => t.kind === 'gpu');
  const arrows = {
    count: calls.length,
    from: columns.put(Float64Array.from(calls)),
    to: columns.put(Float64Array.from(calls, (at) => at + MS)),
    tracks: columns.put(Uint32Array.from(calls.flatMap(() => [0, stream]))),
  };
  const json = Buffer.from(JSON.stringify({arrows, from_ns: 0, to_ns: length, names, tracks, arguments: [0, [0, 2]], parts: [{'Input Dims': [[3, 4], [], [4, 5]]}, 0, {'Call stack': `train.py(12): main;${HOSTILE[0]}`}]}));
  const padding = (8 - (json.length % 8)) % 8;
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0x54505358, 0);
  head.writeUInt32LE(json.length + padding, 4);
  return Buffer.concat([head, json, Buffer.alloc(padding, ' '), ...columns.parts]);
}

/** All blocks, as text or bytes by key. */
export function fakeBlocks({rows = 60, spans = 20000, lost = 0, compare = true, threads = 4} = {}) {
  const json = (value) => Buffer.from(JSON.stringify(value));
  return {
    page: json({version: 1, tool: 'xsptrace 0.9', title: 'train.xspt', written: '2026-11-23T07:00:00Z', notes: ['level 0 of 3 tracks is left out (1,000,000 cells at most)'],
      captures: [{name: 'train.xspt', host: 'node7', start: '2026-11-23T06:59:00Z', duration_ns: 10 * S}]}),
    report: json(fakeReport({rows, lost})),
    ...(compare && {compare: json(fakeCompare())}),
    trees: json(fakeTrees()),
    timeline: fakeTimeline(spans, threads),
  };
}

/** The page with these blocks in it. */
export function fillPage(page, blocks) {
  const lines = Object.entries(blocks).map(([key, bytes]) =>
    `<script type="application/x-xsptrace" id="${key}">${zlib.gzipSync(bytes).toString('base64')}</script>`);
  return page.replace('<!--xsptrace-blocks-->', () => lines.join('\n'));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [page, out, spans = '20000'] = process.argv.slice(2);
  fs.writeFileSync(out, fillPage(fs.readFileSync(page, 'utf8'), fakeBlocks({spans: Number(spans)})));
}
