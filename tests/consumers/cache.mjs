// SPDX-License-Identifier: BSD-2-Clause
import {execFileSync} from 'node:child_process';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

let folder;

/** The folder that `fetch` fills; fetched when it is not there. */
export function cache() {
  if (!folder) {
    const script = path.join(path.dirname(fileURLToPath(import.meta.url)), 'fetch');
    folder = execFileSync(script, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']}).trim();
  }
  return folder;
}
