// SPDX-License-Identifier: BSD-2-Clause
// A canvas that has as many pixels as the screen, drawn at most once a frame.

export class Surface {
  /**
   * @param {HTMLCanvasElement} canvas @param {(surface: Surface) => void} draw in CSS pixels, `width` by `height`
   * @param {() => void} [resized] has its size, for the first time or anew
   */
  constructor(canvas, draw, resized = () => {}) {
    this.canvas = canvas;
    this.resized = resized;
    this.context = canvas.getContext('2d', {alpha: false});
    this.draw = draw;
    this.width = this.height = 0;
    this.scale = 1;
    new ResizeObserver(() => this.#resize()).observe(canvas);
    document.addEventListener('themechange', () => this.request());
    // on paper all of it, at once (theme.js was there before)
    for (const type of ['beforeprint', 'afterprint']) window.addEventListener(type, () => this.#resize());
  }

  #resize() {
    const {clientWidth, clientHeight} = this.canvas;
    if (clientWidth === 0 || clientHeight === 0) return; // not shown
    this.scale = window.devicePixelRatio || 1;
    [this.width, this.height] = [clientWidth, clientHeight];
    this.canvas.width = Math.round(clientWidth * this.scale);
    this.canvas.height = Math.round(clientHeight * this.scale);
    this.resized();
    this.now();
  }

  /** Draws in the next frame. */
  request() {
    this.frame ??= requestAnimationFrame(() => this.now());
  }

  now() {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    this.frame = undefined;
    if (this.width === 0) return;
    this.context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    this.draw(this);
  }
}

/** Lanes of one pixel's height, which are drawn as high as is wanted: what it costs does not depend on how many cells there are. */
export class Sheet {
  constructor() {
    this.canvas = document.createElement('canvas');
    this.context = this.canvas.getContext('2d', {willReadFrequently: true});
  }

  /** Room for `rows` rows of `width` pixels of the screen, empty. */
  begin(width, rows, ground) {
    if (this.image?.width !== width || this.image.height < rows) {
      this.image = new ImageData(width, rows + 16);
      [this.canvas.width, this.canvas.height] = [width, rows + 16];
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(ground, 0, width * rows);
  }

  row(i) {
    return this.pixels.subarray(i * this.image.width, (i + 1) * this.image.width);
  }

  /** All rows are painted. */
  end(rows) {
    this.context.putImageData(this.image, 0, 0, 0, 0, this.image.width, rows);
  }

  draw(context, i, x, y, width, height) {
    context.imageSmoothingEnabled = false;
    context.drawImage(this.canvas, 0, i, this.image.width, 1, x, y, width, height);
  }
}

/** Names on the cells of a lane that are wide enough, as paintLane() found them. */
export function drawLabels(context, ruler, wide, {scale, x, y, height, text, ink}) {
  for (const {index, left, right} of wide) {
    const shown = ruler.fit(text(index), (right - left) / scale - 7);
    if (shown === '') continue;
    const style = ink(index);
    if (context.fillStyle !== style) context.fillStyle = style;
    context.fillText(shown, x + left / scale + 3, y + height / 2 + 0.5);
  }
}
