// SPDX-License-Identifier: BSD-2-Clause
// page_served.mjs MAKE_LONG_CAPTURE FOLDER XSPTRACE: the page as `xsptrace view` serves it, of more spans than fit in it. What
// lies in a small part is fetched, at once and when the view is moved, and nothing is asked of anybody else.
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {createInterface} from 'node:readline';
import {check, prepare, skip, withBrowser} from './page_open.mjs';

const [makeCapture, folder, xsptrace] = process.argv.slice(2);
const SPANS = 1_500_000; // more than the page's cells
prepare(folder);
const capture = path.join(folder, 'long.xspt');
execFileSync(makeCapture, [capture, String(SPANS)], {stdio: 'inherit'});

const viewer = spawn(xsptrace, ['view', '--no-browser', '-q', capture], {stdio: ['ignore', 'pipe', 'pipe']});
let why = '';
viewer.stderr.on('data', (text) => (why += text));
const address = await new Promise((resolve) => createInterface({input: viewer.stdout}).once('line', resolve).once('close', resolve));
if (!address) skip(`no page is served: ${why}`);

const answered = (page, fn) => Promise.all([page.waitForResponse((r) => r.url().includes('/timeline?') && r.ok()), fn()]);
const exact = (page) => page.waitForFunction(() => {
  const rows = [...document.querySelectorAll('table tbody tr')].map((row) => row.innerText);
  return rows.length > 0 && rows.every((text) => !text.includes('~'));
});
/** A part of the time, in the address. */
const goTo = (page, hash) => page.evaluate((text) => (location.hash = text), hash);

try {
  await withBrowser(async (open) => {
    const page = await open(`${address}#tab=summary`);
    for (const start of [1000000000, 2000000000])
      await check(`finer spans of the part that is shown, from ${start / 1e9} s`, async () => {
        await answered(page, () => goTo(page, `#tab=timeline&from=${start}&to=${start + 300000}`));
        await exact(page);
      });
  }, new RegExp(`^${address}`));
} finally {
  viewer.kill('SIGINT');
  fs.rmSync(capture, {force: true});
}
assert.equal(await new Promise((resolve) => viewer.once('exit', resolve)), 0, why);
