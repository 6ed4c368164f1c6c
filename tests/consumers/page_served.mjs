// SPDX-License-Identifier: BSD-2-Clause
// page_served.mjs MAKE_LONG_CAPTURE FOLDER XSPTRACE: the page as `xsptrace view` serves it, of more spans than fit in it. What
// lies in a small part is fetched, at once and when the view is moved, and nothing is asked of anybody else.
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {createInterface} from 'node:readline';
import {chromiumPath, launch} from './browser.mjs';

const [makeCapture, folder, xsptrace] = process.argv.slice(2);
const SPANS = 1_500_000; // more than the page's cells
const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
if (!chromiumPath()) skip('chromium is not installed');
fs.mkdirSync(folder, {recursive: true});
const capture = path.join(folder, 'long.xspt');
execFileSync(makeCapture, [capture, String(SPANS)], {stdio: 'inherit'});

const viewer = spawn(xsptrace, ['view', '--no-browser', '-q', capture], {stdio: ['ignore', 'pipe', 'pipe']});
let why = '';
viewer.stderr.on('data', (text) => (why += text));
const address = await new Promise((resolve) => createInterface({input: viewer.stdout}).once('line', resolve).once('close', resolve));
if (!address) skip(`no page is served: ${why}`);

const browser = await launch();
const failures = [];
try {
  const page = await browser.newPage({viewport: {width: 1280, height: 800}});
  const requests = [];
  page.on('console', (m) => failures.push(`console: ${m.text()}`));
  page.on('pageerror', (e) => failures.push(`error: ${e.message}`));
  page.on('request', (r) => requests.push(r.url()));
  const answered = (fn) => Promise.all([page.waitForResponse((r) => r.url().includes('/timeline?') && r.ok()), fn()]);
  const exact = () => page.waitForFunction(() => {
    const rows = [...document.querySelectorAll('table tbody tr')].map((row) => row.innerText);
    return rows.length > 0 && rows.every((text) => !text.includes('~'));
  });

  await answered(() => page.goto(`${address}#tab=timeline&from=1000000000&to=1000300000`));
  await exact();
  await answered(() => page.keyboard.press('End').then(() => page.evaluate(() => (location.hash = '#tab=timeline&from=2000000000&to=2000300000'))));
  await exact();
  assert.ok(requests.every((url) => url.startsWith(address)), requests.join('\n'));
  assert.deepEqual(failures, []);
  console.log(`ok   finer spans of the part that is shown; ${requests.length} requests, all to the viewer`);
} finally {
  await browser.close();
  viewer.kill('SIGINT');
  fs.rmSync(capture, {force: true});
}
assert.equal(await new Promise((resolve) => viewer.once('exit', resolve)), 0, why);
