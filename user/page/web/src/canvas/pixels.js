// SPDX-License-Identifier: BSD-2-Clause
// Colours as pixels of ImageData (on a little-endian machine, as all are that browsers run on).

export const pack = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
export const unpack = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
export const css = (pixel) => `rgb(${unpack(pixel).join(' ')})`;

/** `share` of the first, the rest of the second. */
export function mix(first, second, share) {
  const b = unpack(second);
  return pack(unpack(first).map((x, i) => Math.round(x * share + b[i] * (1 - share))));
}

const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);

/** As WCAG has it. */
export function luminance(pixel) {
  const [r, g, b] = unpack(pixel).map((x) => linear(x / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export const BLACK = pack([20, 24, 29]);
export const WHITE = pack([255, 255, 255]);

/** Of black and white the one with more contrast. */
export function inkOn(pixel) {
  const l = luminance(pixel) + 0.05;
  return l / (luminance(BLACK) + 0.05) >= 1.05 / l ? BLACK : WHITE;
}

const toByte = (x) => {
  const v = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
  return Math.max(0, Math.min(255, Math.round(255 * v)));
};

/** OKLCH (what is equally light looks so, whatever its hue), as CSS Color 4 has it. */
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return pack([
    toByte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    toByte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    toByte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ]);
}
