// SPDX-License-Identifier: BSD-2-Clause
// Waits for a line, works, prints what it found and how often it called which function of node's.
"use strict";
const crypto = require("crypto"), fs = require("fs"), zlib = require("zlib");

const calls = { uv_fs_access: 0, uv_fs_read: 0, "node::crypto::Hash::HashUpdate": 0 };
// what is loaded at first use is loaded before the recording
fs.accessSync(__filename);
crypto.createHash("sha256").update("x").digest("hex");
zlib.deflateSync("x");

function exceptions(depth) {
	if (depth == 0)
		throw new RangeError("bottom");
	return exceptions(depth - 1) + 1;
}

async function work() {
	const hash = crypto.createHash("sha256");
	const file = fs.openSync(__filename), buffer = Buffer.alloc(64);
	let caught = 0;
	for (let i = 0; i < 40; i++) {
		fs.accessSync(__filename);
		calls.uv_fs_access++;
		fs.readSync(file, buffer, 0, 64, i);
		calls.uv_fs_read++;
		hash.update(buffer);
		calls["node::crypto::Hash::HashUpdate"]++;
		try {
			exceptions(i);
		} catch (e) {
			caught += e instanceof RangeError;
		}
		await new Promise((resolve) => setTimeout(resolve, 1));
	}
	const text = JSON.stringify([...Array(300).keys()].map((i) => ({ i, s: "x".repeat(i % 7) })));
	const same = zlib.inflateSync(zlib.deflateSync(text)).toString() == text;
	console.log(JSON.stringify({ calls, caught, same, sorted: text.match(/\d+/g).sort().length,
		digest: hash.digest("hex") }));
	process.exit(0);
}
process.stdin.once("data", work);
process.stderr.write("ready\n");
