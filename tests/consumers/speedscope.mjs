// SPDX-License-Identifier: BSD-2-Clause
// speedscope.mjs FILE...: what speedscope 1.25.0 (npm, as shipped) makes of a file. Loads it in
// chromium the way its command line does, then saves with Ctrl+S: the saved profile is what
// it understood.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {cache} from './cache.mjs';
import {launch} from './browser.mjs';

const index = () => pathToFileURL(path.join(cache(), 'speedscope-1.25.0/package/dist/release/index.html'));
/** What a page runs to load the file. */
const loading = (file) => `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, "${fs.readFileSync(file).toString('base64')}")`;

/** Waits until `found` is true; `why` tells what it waited for. */
async function until(page, found, why) {
  for (const end = Date.now() + 60000; !found(); await page.waitForTimeout(20)) {
    if (Date.now() > end) throw new Error(why());
  }
}

/** The first file of a page by its address, as the command line does it; the others into the same page, which takes its time to open. */
async function loadOne(page, folder, file, first) {
  const messages = [];
  let download;
  const heard = {console: (m) => messages.push(m.text()), pageerror: (e) => messages.push(`Error: ${e.message}`),
    dialog: (d) => { messages.push(`Error: ${d.message()}`); d.dismiss(); }, download: (made) => { download = made; }};
  for (const [event, listener] of Object.entries(heard)) page.on(event, listener);
  try {
    if (first) {
      const script = path.join(folder, 'profile.js');
      fs.writeFileSync(script, loading(file));
      await page.goto(`${index()}#localProfilePath=${script}`);
    } else await page.evaluate(loading(file));
    // what it says when the profile is read, just before it has it
    await until(page, () => messages.some((m) => /^import: |Error|Failed|error/.test(m)), () => `speedscope did not load ${file}: ${messages.join(' | ')}`);
    if (!messages.some((m) => m.startsWith('import: '))) throw new Error(`speedscope did not load ${file}: ${messages.join(' | ')}`);
    // until it has the profile, it has nothing to save, or the one before
    const saved = path.join(folder, 'saved.json'), before = fs.existsSync(saved) ? fs.readFileSync(saved, 'utf8') : '';
    let text = before;
    const save = setInterval(() => page.keyboard.press('Control+s').catch(() => {}), 300);
    try {
      for (const end = Date.now() + 60000; text === before && Date.now() < end;) {
        download = undefined;
        await until(page, () => download, () => `speedscope did not save ${file}: ${messages.join(' | ')}`);
        await download.saveAs(saved);
        text = fs.readFileSync(saved, 'utf8');
      }
    } finally {
      clearInterval(save);
    }
    return {messages, profile: JSON.parse(text)};
  } finally {
    for (const [event, listener] of Object.entries(heard)) page.off(event, listener);
  }
}

/** Returns [{messages, profile}] in the order of the files. */
export async function loadAll(files) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'xsptrace-speedscope-'));
  const browser = await launch({webgl: true});
  try {
    // nobody looks at what it draws
    const page = await browser.newPage({acceptDownloads: true, viewport: {width: 320, height: 240}});
    const results = [];
    for (const file of files) results.push(await loadOne(page, folder, file, results.length === 0));
    return results;
  } finally {
    await browser.close();
    fs.rmSync(folder, {recursive: true, force: true});
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const files = process.argv.slice(2);
  const results = await loadAll(files);
  results.forEach(({messages, profile}, i) => {
    console.log(files[i]);
    for (const m of messages) console.log('  ', m);
    console.log('  ', profile.shared.frames.length, 'frames');
    for (const p of profile.profiles) {
      const {type, name, unit, startValue, endValue} = p;
      console.log(JSON.stringify({type, name, unit, events: (p.events || p.samples).length, length: endValue - startValue}));
    }
  });
}
