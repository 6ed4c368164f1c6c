// SPDX-License-Identifier: BSD-2-Clause
// Figures as the tool's own text has them: user/base/units.c and user/report/text.c.

const TIMES = [
  [1, 'ns'],
  [1e3, 'us'],
  [1e6, 'ms'],
  [1e9, 's'],
];
const BYTES = [
  [1, 'B'],
  [1024, 'KiB'],
  [1024 ** 2, 'MiB'],
  [1024 ** 3, 'GiB'],
];

/** As C's printf: of two that are as near it takes the even one. */
function fixed(value, digits) {
  const size = Math.abs(value) * 10 ** digits,
    whole = Math.floor(size);
  const tie = Number.isInteger(value * 2 ** (digits + 1)) && size - whole === 0.5;
  return (tie ? (Math.sign(value) * (whole + (whole % 2))) / 10 ** digits : value).toFixed(digits);
}

/** Three digits in the largest unit that the value reaches; the first unit is whole. */
function scale(value, units) {
  const size = Math.round(Math.abs(value));
  let i = 0;
  // 999.5 is shown as 1000: that is one of the next unit
  while (i + 1 < units.length && size >= units[i + 1][0] * 0.9995) i++;
  const v = size / units[i][0];
  const digits = i === 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
  return `${value < 0 && size > 0 ? '-' : ''}${fixed(v, digits)} ${units[i][1]}`;
}

/** C's "%.4g". */
function general(value) {
  if (value === 0) return '0';
  const [mantissa, exponent] = value.toExponential(3).split('e');
  const power = Number(exponent);
  if (power < -4 || power >= 4) {
    const digits = String(Math.abs(power)).padStart(2, '0');
    return `${Number(mantissa)}e${power < 0 ? '-' : '+'}${digits}`;
  }
  return String(Number(value.toPrecision(4)));
}

/** Whole numbers with a comma at each thousand. */
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ',');

export const formatNs = (ns) => scale(ns, TIMES);
export const formatBytes = (bytes) => scale(bytes, BYTES);
export const formatCount = (n) => (Number.isInteger(n) && n >= 0 ? grouped(n) : general(n));
export const formatShare = (share) => `${fixed(100 * share, 1)} %`;

const BY_UNIT = {
  count: formatCount,
  ns: formatNs,
  time_ns: (ns) => `${(ns * 1e-9).toFixed(3)} s`,
  bytes: formatBytes,
  bytes_per_second: (value) => `${formatBytes(value)}/s`,
  share: formatShare,
  per_second: (value) => `${general(value)}/s`,
  number: (value) => (Number.isInteger(value) ? String(value) : general(value)),
};

/**
 * A value of a report in its unit; "-" where it is not known.
 * @param {string | number | null | undefined} value
 * @param {string} unit
 * @returns {string}
 */
export function format(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return '-';
  if (typeof value === 'string') return value;
  return (BY_UNIT[unit] ?? BY_UNIT.number)(value);
}

/** A title of the report as a heading: with a capital, where it begins with a word and not with a name. */
export const heading = (title) =>
  /^[a-z]+(?=[\s;,]|$)/.test(title) ? title[0].toUpperCase() + title.slice(1) : title;
