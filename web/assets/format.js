// SPDX-License-Identifier: MIT
// Numbers and words as the page shows them. Decimal prefixes are powers of ten (MB/s = 10^6 bytes per second), binary
// ones are written as such (KiB); a figure that is not there is a dash, never a zero.

import { isPlacementByHand, placementWords } from './placement.js';

export const DASH = '—';
const THIN = '\u202f'; // narrow no-break space between groups of three digits

const group = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, THIN);

/** 1234567 → "1 234 567" */
export function integer(value) {
    if (value === null || value === undefined) return DASH;
    const text = Math.round(Number(value)).toString();
    return text.startsWith('-') ? '−' + group(text.slice(1)) : group(text);
}

/** A figure with `digits` significant digits and its thousands grouped: 0.01234, 12.3, 1 235. */
export function figure(value, digits = 4) {
    if (value === null || value === undefined || !Number.isFinite(Number(value))) return DASH;
    const number = Number(value);
    if (number === 0) return '0';
    const magnitude = Math.floor(Math.log10(Math.abs(number))) + 1;
    const decimals = Math.min(Math.max(digits - magnitude, 0), 6);
    const [whole, fraction] = number.toFixed(decimals).split('.');
    return group(whole) + (fraction ? '.' + fraction : '');
}

const SCALES = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
    [1, ''],
];

/* The value in the prefix that suits `like`. */
function scaled(value, unit, like = value) {
    if (value === null || value === undefined) return DASH;
    const [factor, prefix] = SCALES.find(([limit]) => Math.abs(like) >= limit) ?? [1, ''];
    return `${figure(value / factor, 3)} ${prefix}${unit}`;
}

/** Bytes per second, with a decimal prefix: "1.23 GB/s"; in the unit of `like`, where there are several in a row. */
export const throughput = (value, like = value) => scaled(value, 'B/s', like);
/** A rate per second: "1.23 M/s". */
export const perSecond = (value, like = value) => scaled(value, '/s', like);
/** A figure without the zeros that only show precision, as an axis has it: "50.0 µs" → "50 µs". */
export const round = (text) => text.replace(/\.0+(?=\D|$)/, '').replace(/(\.\d*?)0+(?=\D|$)/, '$1');

/** Nanoseconds in the unit that suits them, or suits `like`: "850 ns", "12.3 µs". */
export function nanoseconds(value, like = value) {
    if (value === null || value === undefined) return DASH;
    if (like < 1e3) return `${figure(value, 3)} ns`;
    if (like < 1e6) return `${figure(value / 1e3, 3)} µs`;
    return like < 1e9 ? `${figure(value / 1e6, 3)} ms` : `${figure(value / 1e9, 3)} s`;
}

/** A size in bytes: "64 KiB" where it is a whole number of them, else "1 500 B"; approximate ones get a figure. */
export function size(bytes, approximate = false) {
    if (bytes === null || bytes === undefined) return DASH;
    for (const [power, unit] of [
        [60, 'EiB'],
        [50, 'PiB'],
        [40, 'TiB'],
        [30, 'GiB'],
        [20, 'MiB'],
        [10, 'KiB'],
    ]) {
        const count = bytes / 2 ** power;
        if (count >= 1 && (approximate || Number.isInteger(count)))
            return `${Number.isInteger(count) ? integer(count) : figure(count, 3)} ${unit}`;
    }
    return `${integer(bytes)} B`;
}

/** Seconds in the units that a reader expects: "45 s", "3 min 20 s", "2 h 05 min". */
export function duration(seconds) {
    if (seconds === null || seconds === undefined) return DASH;
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
    const minutes = Math.floor(whole / 60);
    return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
const CLOCK_SECONDS = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });

/** "14:32:07" */
export const clockTime = (date) => CLOCK_SECONDS.format(date);

/** "3 Jan 2026" */
export const day = (iso) => DAY.format(new Date(iso));

/** "14:05" today, else "3 Jan 2026, 14:05". */
export function time(iso, now = new Date()) {
    if (!iso) return DASH;
    const date = new Date(iso);
    const clock = CLOCK.format(date);
    return date.toDateString() === now.toDateString() ? clock : `${DAY.format(date)}, ${clock}`;
}

export const fieldTitle = (field) => (field === 'message_size' ? 'message' : field.replaceAll('_', ' '));

/** One field of a point or a spec: sizes with their unit, placements in words, other objects by their members. */
export function fieldValue(field, value) {
    if (value === null || value === undefined) return DASH;
    if (field === 'message_size' || field === 'working_set') return size(value);
    if (value.kind) return [value.kind, ...requirements(value.require)].join(', ');
    if (isPlacementByHand(value)) return [placementWords(value), ...requirements(value.require)].join(', ');
    if (Array.isArray(value)) return JSON.stringify(value);
    return typeof value === 'object' ? requirements(value).join(', ') : String(value);
}

/* The kernel's words that are no English, by fact. */
const KERNEL_WORDS = {
    smt: {
        notsupported: 'none: each core has one thread',
        notimplemented: 'not known to this kernel',
        forceoff: 'off until the next boot',
    },
};

/** A fact of the environment, as a reader has it. */
export const factWords = (key, value) => KERNEL_WORDS[key]?.[value] ?? String(value);

/** {smt: true, build: {commit: 'abc'}} → "smt on", "build.commit abc": what runs need of the host. */
function requirements(require = {}) {
    return Object.entries(require).flatMap(([name, wanted]) => {
        if (typeof wanted === 'object') return requirements(wanted).map((inner) => `${name}.${inner}`);
        return `${name} ${typeof wanted === 'boolean' ? (wanted ? 'on' : 'off') : wanted}`;
    });
}

/**
 * The fields that differ between the points (those to show), and those that all share. A field that only some points
 * have, and these with one value, is shared by them: nobody varied it, unless it alone distinguishes two points.
 */
export function splitFields(points) {
    const fields = [...new Set(points.flatMap((point) => Object.keys(point)))];
    const valuesOf = (field) => new Set(points.map((point) => JSON.stringify(point[field])));
    const distinct = (some) => new Set(points.map((point) => JSON.stringify(some.map((field) => point[field])))).size;
    let varying = fields.filter((field) => valuesOf(field).size > 1);
    for (const field of varying.filter((one) => valuesOf(one).size === 2 && valuesOf(one).has(undefined))) {
        const rest = varying.filter((other) => other !== field);
        if (distinct(rest) === distinct(varying)) varying = rest;
    }
    return { varying, common: fields.filter((field) => !varying.includes(field)) };
}

/** "pipe · 64 KiB · 2 threads": a point in a line, by the fields given or by all of its own. */
export function pointLabel(point, fields = Object.keys(point)) {
    return fields
        .filter((field) => point[field] !== undefined)
        .map((field) =>
            field === 'threads'
                ? `${point.threads} thread${point.threads === 1 ? '' : 's'}`
                : fieldValue(field, point[field]),
        )
        .join(' · ');
}

const LATENCY_KINDS = {
    rtt: 'round trip',
    one_way: 'one way',
    call: 'per call, means of batches',
    switch: 'per hop, mean of each round, pipe included',
};

/** The words for a kind of latency; the kind's name where this page does not know it. */
export const latencyKind = (kind) => LATENCY_KINDS[kind] ?? String(kind).replaceAll('_', ' ');

/** The text beside a figure that could not be measured. */
export function reasonFor(object, field) {
    return object?.[`${field}_reason`] ?? object?.reasons?.[field] ?? object?.[field]?.reason ?? null;
}

/** The text, cut to a number of letters. */
export const shortened = (text, letters) =>
    text.length > letters ? `${text.slice(0, Math.max(letters - 1, 1))}…` : text;

/** "3 runs", "1 run" */
export const plural = (count, noun) => `${integer(count)} ${noun}${Number(count) === 1 ? '' : 's'}`;

const ranging = (values, words) => {
    const [least, most] = [Math.min(...values), Math.max(...values)].map(words);
    return least === most ? least : `${least} to ${most}`;
};

/** The true levels of some intervals, of which none is exactly 95 %: "96.9 %", "96.1 to 99.2 %". */
export const levelWords = (levels) => `${ranging(levels, (level) => figure(level * 100, 3))} %`;

/** Bars in words: the levels of those that are intervals, and the runs of those that are only a range. */
export function barWords(levels, runs) {
    const spread = runs.length > 0 && `min–max of ${ranging(runs, String)} runs`;
    const interval = levels.length > 0 && `${levelWords(levels)} interval of the median`;
    if (interval && spread) return `Bars: ${interval}; with fewer runs than 6, ${spread}.`;
    return interval || spread ? `Bars: ${interval || spread}.` : '';
}

/**
 * The API's detail as a sentence. What it begins with may be a field ("message_size is …"), which is written in words,
 * or a name of a transport or setting (msgq-sysv, fs.pipe-max-size), which stands as it is.
 */
export function sentence(detail) {
    const [first] = detail.split(/\s/, 1);
    const words = /^[a-z]+(_[a-z]+)*[,:;]?$/.test(first) ? first.replaceAll('_', ' ') : null;
    const begun = words ? words[0].toUpperCase() + words.slice(1) + detail.slice(first.length) : detail;
    return /[.?!…]$/.test(begun) ? begun : `${begun}.`;
}
