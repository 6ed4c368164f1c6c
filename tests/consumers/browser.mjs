// SPDX-License-Identifier: BSD-2-Clause
// Debian's chromium, headless, through playwright-core (which brings no browser of its own here).
import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';
import {cache} from './cache.mjs';

const COMMON = ['--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

export function chromiumPath() {
  return ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => fs.existsSync(p));
}

/** webgl: software rendering, as speedscope needs it. */
export async function launch({webgl = false} = {}) {
  const require = createRequire(import.meta.url);
  const {chromium} = require(path.join(cache(), 'playwright-core-1.61.0/package'));
  const graphics = webgl
    ? ['--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist']
    : ['--disable-gpu'];
  return chromium.launch({executablePath: chromiumPath(), headless: true, args: [...COMMON, ...graphics]});
}
