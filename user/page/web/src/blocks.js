// SPDX-License-Identifier: BSD-2-Clause
// The data of the page: blocks as user/page/page.h describes them, read when they are first asked for.

const MAGIC = 0x54505358; // "XSPT"
const HEAD_BYTES = 8;

/** @param {string} text @returns {Uint8Array} */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
export async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * The block "timeline": its JSON, and views of its columns, which are not copied.
 * @param {Uint8Array} bytes
 * @returns {{head: any, f64: (at: number, count: number) => Float64Array, u32: (at: number, count: number) => Uint32Array}}
 */
export function readTimeline(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEAD_BYTES || view.getUint32(0, true) !== MAGIC) throw new Error('this is no timeline');
  const columns = HEAD_BYTES + view.getUint32(4, true);
  if (columns > bytes.length) throw new Error('the timeline is cut off');
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(HEAD_BYTES, columns)));
  const column = (Type) => (at, count) => {
    if (!(at >= 0 && count >= 0 && columns + at + count * Type.BYTES_PER_ELEMENT <= bytes.length))
      throw new Error('a column of the timeline is cut off');
    return new Type(bytes.buffer, bytes.byteOffset + columns + at, count);
  };
  return {head, f64: column(Float64Array), u32: column(Uint32Array)};
}

/**
 * What the page holds. `page`, `report` and `compare` are read at once and undefined where there are none; the
 * others are large and come by promise, each decoded once.
 */
export class Data {
  #element;
  #read = new Map();
  page;
  report;
  compare;

  /** @param {(key: string) => {textContent: string} | null} element finds a block */
  constructor(element) {
    this.#element = element;
  }

  /** @param {(key: string) => {textContent: string} | null} element */
  static async open(element) {
    const data = new Data(element);
    [data.page, data.report, data.compare] = await Promise.all(
      ['page', 'report', 'compare'].map((key) => (data.has(key) ? data.json(key) : undefined)),
    );
    return data;
  }

  /** @param {string} key */
  has(key) {
    return this.#read.has(key) || this.#element(key) !== null;
  }

  #once(key, read) {
    if (!this.#read.has(key)) this.#read.set(key, read());
    return this.#read.get(key);
  }

  /** @param {string} key @returns {Promise<Uint8Array>} */
  async #bytes(key) {
    const block = this.#element(key);
    if (!block) throw new Error(`the page has no block "${key}"`);
    const bytes = await gunzip(fromBase64(block.textContent.trim()));
    block.textContent = ''; // it is read once, and may be large
    return bytes;
  }

  /** @param {string} key "page", "report", "compare" or "trees" @returns {Promise<any>} */
  json(key) {
    return this.#once(key, async () => JSON.parse(new TextDecoder().decode(await this.#bytes(key))));
  }

  /** @returns {Promise<ReturnType<typeof readTimeline>>} */
  timeline() {
    return this.#once('timeline', async () => readTimeline(await this.#bytes('timeline')));
  }
}
