// SPDX-License-Identifier: MIT
// The way from what stands in the form to a spec and back: pure functions, no page.

/* The axes that the form has fields for. The schema has what each of them means something for (schema.js). */
const LISTS = [
    'workload',
    'call',
    'processes',
    'working_set',
    'transport',
    'message_size',
    'threads',
    'placement',
    'copy_mode',
    'engine',
    'queue_depth',
    'source',
    'wait',
];

/* The fields that are no axes. The schema has the default of a field that is not given (schema.js), but for a name. */
const SCALARS = ['name', 'verify', 'warmup_seconds', 'repetitions', 'points', 'fresh', 'stamp', 'skip_impossible'];
const DEFAULT_DURATION = 5;
/* How often each point stands in the experiment. */
const TIMES = { once: 1, twice: 2 };
const ENDS = ['duration_seconds', 'messages', 'bytes'];
/** Whether a member of a spec is one of those that end the measured window. */
export const isEnd = (key) => ENDS.includes(key);

const UNITS = {
    '': 1,
    b: 1,
    k: 1024,
    kib: 1024,
    m: 2 ** 20,
    mib: 2 ** 20,
    g: 2 ** 30,
    gib: 2 ** 30,
    kb: 1e3,
    mb: 1e6,
    gb: 1e9,
};

/** "64, 4 KiB" → [64, 4096]; throws with words for a person. */
export function parseSizes(text) {
    return list(text).map((part) => {
        const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(part);
        const factor = match && UNITS[match[2].toLowerCase()];
        const bytes = factor && Number(match[1]) * factor;
        if (!Number.isInteger(bytes))
            throw new Error(`“${part}” is not a size in whole bytes, such as 4096, 64 KiB or 1 MiB.`);
        return bytes;
    });
}

/** "1, 2, 4" → [1, 2, 4] */
export function parseCounts(text) {
    return list(text).map((part) => {
        if (!/^\d+$/.test(part)) throw new Error(`“${part}” is not a whole number.`);
        return Number(part);
    });
}

function list(text) {
    const parts = text
        .split(/[,;\n]/)
        .map((part) => part.trim())
        .filter(Boolean);
    if (!parts.length) throw new Error('At least one value is needed.');
    return parts;
}

export const asList = (value) => (Array.isArray(value) ? value : [value]);
const asScalar = (values) => (values.length === 1 ? values[0] : values);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const alike = (a, b) => same(asList(a), asList(b));

/** The fields of a spec as they hold: a preset's, and over them those given; one window end replaces another. */
export function effective(spec, presets) {
    const preset = presets.find((one) => one.name === spec.preset)?.spec ?? {};
    const ended = ENDS.some((key) => key in spec);
    const inherited = Object.entries(preset).filter(([key]) => !ended || !ENDS.includes(key));
    return { ...Object.fromEntries(inherited), ...spec };
}

/** The values of the form's fields for a spec; `defaults` are those of the schema. */
export function toValues(spec, presets, defaults) {
    const whole = effective(spec, presets);
    const end = ENDS.find((key) => key in whole) ?? 'duration_seconds';
    const given = [...LISTS, ...SCALARS].map((key) => [key, defaults[key] ?? '']);
    const values = { ...Object.fromEntries(given), ...whole, preset: spec.preset ?? '' };
    ENDS.forEach((key) => delete values[key]);
    LISTS.forEach((key) => {
        values[key] = asList(values[key]);
    });
    return { ...values, end: { end, value: whole[end] ?? DEFAULT_DURATION } };
}

/**
 * The spec to post: `base`, the one that the fields were filled from, with those fields changed whose value is another
 * `after` than `before`. A field that comes to what it is without being given is left out.
 */
export function toSpec(base, before, after, presets, defaults) {
    const spec = { ...base };
    const unchanged = toValues(base.preset ? { preset: base.preset } : {}, presets, defaults);
    for (const [key, value] of Object.entries(after)) {
        if (key === 'preset' || same(value, before[key])) continue;
        delete spec[key];
        if (key === 'end') ENDS.forEach((end) => delete spec[end]);
        if (alike(value, unchanged[key]) || value === '') continue;
        if (key === 'end') spec[value.end] = value.value;
        else spec[key] = Array.isArray(value) ? asScalar(value) : value;
    }
    return spec;
}

/** [key, value] of each member of a spec, or of its preset, that the form has no field for. */
export function withoutField(spec, presets, hasField) {
    const shown = (key) => hasField(ENDS.includes(key) ? 'end' : key);
    return Object.entries(effective(spec, presets)).filter(([key]) => !shown(key));
}

/** The spec without a field. What a preset brings can be left out only by giving the others in its place. */
export function without(spec, key, presets) {
    const preset = presets.find((one) => one.name === spec.preset);
    const { [key]: _, ...rest } = spec;
    if (!preset || !(key in preset.spec)) return rest;
    const { [key]: __, preset: ___, ...whole } = effective(spec, presets);
    return whole;
}

/**
 * The text of a member's value in the text of an object: exactly as it was written, which a number is not any more once
 * it was parsed. null: the object has no such member.
 */
export function memberText(text, key) {
    const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g;
    let depth = 0;
    let start = -1;
    let last = '';
    for (let match = token.exec(text); match; match = token.exec(text)) {
        const [word] = match;
        if (start >= 0 && depth === 1 && (word === ',' || word === '}')) return text.slice(start, match.index).trim();
        if (depth === 1 && word === ':' && start < 0 && JSON.parse(last) === key) start = token.lastIndex;
        if (word === '{' || word === '[') depth++;
        else if (word === '}' || word === ']') depth--;
        last = word;
    }
    return null;
}

/**
 * {points, runs}: what the values amount to at most. `pairs` has how many placements a word stands for on this machine,
 * `applies` what each axis is for.
 */
export function amount(values, applies, pairs) {
    const placements = values.placement.reduce((sum, word) => sum + (pairs[word] ?? 1), 0);
    let points = 0;
    for (const workload of values.workload) {
        const each = isFor(applies.transport.workloads, [workload]) ? values.transport : [null];
        for (const transport of each) {
            const idle = meaningless({ workload: [workload], transport: [transport] }, applies);
            const axes = LISTS.filter((key) => !['workload', 'transport', 'placement', ...idle].includes(key));
            points += axes.reduce((product, key) => product * values[key].length, placements);
        }
    }
    points *= TIMES[values.points] ?? 1;
    return { points, runs: points * values.repetitions };
}

/* Of no list: for any. */
const isFor = (list, chosen) => !list || chosen.some((word) => list.includes(word));

/** The fields that mean nothing for these workloads and transports: any but their standard word would be refused. */
export function meaningless({ workload, transport }, applies) {
    return LISTS.filter(
        (key) => !isFor(applies[key].workloads, workload) || !isFor(applies[key].transports, transport),
    );
}

/** The form's field for a JSON pointer; null: none. */
export function fieldOf(pointer) {
    const key = pointer.split('/')[1] ?? '';
    if (ENDS.includes(key)) return 'end';
    return ['preset', ...LISTS, ...SCALARS].includes(key) ? key : null;
}
