// SPDX-License-Identifier: BSD-2-Clause
// build.mjs OUTFILE: bundles the page into one file without any data in it: script and style are inside, a
// policy allows nothing else, and the blocks of page.h come where the line BLOCKS stands. The same sources
// give the same bytes.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const BLOCKS = '<!--xsptrace-blocks-->';
const here = path.dirname(fileURLToPath(import.meta.url));
const outFile = process.argv[2];
if (!outFile) {
  console.error('usage: node build.mjs OUTFILE');
  process.exit(2);
}

/** One bundle, minified: its text, and the packages that it holds. */
async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'iife',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  });
  const packages = Object.keys(result.metafile.inputs)
    .map((input) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1])
    .filter(Boolean);
  return {text: result.outputFiles[0].text.trimEnd(), packages};
}

/** The licence of each package in the bundle. */
function thirdParty(packages) {
  return [...new Set(packages)].sort().map((name) => {
    const folder = path.join(here, 'node_modules', name);
    const {version, license, homepage} = JSON.parse(
      fs.readFileSync(path.join(folder, 'package.json'), 'utf8'),
    );
    const text = fs.readFileSync(path.join(folder, 'LICENSE'), 'utf8').trim();
    return `${name} ${version} (${license}) ${homepage}\n\n${text}\n`;
  });
}

/** For a policy: what the browser may run or apply is known by its hash. */
const hash = (text) => `'sha256-${crypto.createHash('sha256').update(text).digest('base64')}'`;

const [script, style] = await Promise.all([bundle('src/main.js'), bundle('src/style.css')]);
for (const [text, bad] of [
  [script.text, /<\/script|<!--/i],
  [style.text, /<\/style/i],
]) {
  if (bad.test(text)) throw new Error(`the bundle holds ${bad}, which would end it in HTML`);
}
const licences = thirdParty([...script.packages, ...style.packages]).join('\n---\n\n');
if (/--!?>/.test(licences)) throw new Error('a licence would end its comment');
const policy = [
  "default-src 'none'",
  `script-src ${hash(script.text)}`,
  `style-src ${hash(style.text)}`,
  'img-src data: blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const page = `<!doctype html>
<!--
xsptrace's page: BSD-2-Clause; its source is user/page/web. It holds, besides:

${licences}-->
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>xsptrace</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%230969da' d='M1 2h14v3H1zM3 6h9v3H3zM5 10h5v3H5z'/%3E%3C/svg%3E">
<style>${style.text}</style>
</head>
<body>
<div id="app"><p class="loading">Reading the page …</p></div>
<noscript>This page draws its data by a script that is inside it; scripts are turned off.</noscript>
<script type="module">${script.text}</script>
${BLOCKS}
</body>
</html>
`;
fs.writeFileSync(outFile, page);
console.log(`${outFile}: ${page.length} bytes`);
