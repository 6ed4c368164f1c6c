// SPDX-License-Identifier: BSD-2-Clause
// firefox.mjs FILE COMMAND...: Firefox Profiler's own importer through its command line (npm
// @firefox-devtools/profiler-cli). COMMANDs as for pq, e.g. 'thread markers --json'.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {execFileSync} from 'node:child_process';
import {pathToFileURL} from 'node:url';
import {cache} from './cache.mjs';

/** Loads the file, gives `fn` a way to run commands (lists of arguments), of which each is a process; returns what it returns. */
export function firefox(file, fn) {
  const cli = path.join(cache(), 'profiler-cli-0.10.0/package/dist/profiler-cli.js');
  const session = fs.mkdtempSync(path.join(os.tmpdir(), 'xsptrace-firefox-'));
  const env = {...process.env, PROFILER_CLI_SESSION_DIR: session};
  const pq = (args) => execFileSync(process.execPath, [cli, ...args],
    {env, encoding: 'utf8', timeout: 120000, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe']});
  // its daemon gives itself half a second to start, which a slow or busy machine may not keep: then it starts all the same
  const load = (attempts) => {
    try {
      pq(['load', path.resolve(file)]);
    } catch (e) {
      if (attempts <= 1 || !/did not become ready/.test(e.stderr)) throw e;
      for (let i = 0; i < 10; i++) {
        execFileSync('sleep', ['1']);
        try {
          pq(['profile', 'info']);
          return;
        } catch { /* not yet */ }
      }
      try { pq(['stop']); } catch { /* it was too late */ }
      load(attempts - 1);
    }
  };
  try {
    load(5);
    return fn(pq);
  } finally {
    try { pq(['stop']); } catch { /* it did not start */ }
    fs.rmSync(session, {recursive: true, force: true});
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const commands = process.argv.slice(3).map((c) => c.split(' '));
  for (const text of firefox(process.argv[2], (pq) => commands.map(pq))) process.stdout.write(text);
}
