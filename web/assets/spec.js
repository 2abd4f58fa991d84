// SPDX-License-Identifier: MIT
// From what stands in the form to a spec and back: pure functions, no page.

/** The spec's defaults, as design and schema have them: what a field that is not given means. */
export const DEFAULTS = {
    workload: ['stream'],
    transport: ['pipe'],
    message_size: [4096],
    threads: [1],
    placement: ['default'],
    copy_mode: ['two-copy'],
    engine: ['syscall'],
    wait: ['block'],
    verify: 'touch',
    warmup_seconds: 1,
    repetitions: 1,
};
const DEFAULT_DURATION = 5;
const ENDS = ['duration_seconds', 'messages', 'bytes'];
const LISTS = ['workload', 'transport', 'message_size', 'threads', 'placement', 'copy_mode', 'engine', 'wait'];
const KNOWN = new Set([
    ...LISTS,
    ...ENDS,
    'preset',
    'name',
    'verify',
    'warmup_seconds',
    'repetitions',
    'skip_impossible',
]);

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
const alike = (a, b) => JSON.stringify(asList(a)) === JSON.stringify(asList(b));

/** Whether the form has a field for everything in the spec (else only the JSON tab can show it). */
export const fitsForm = (spec) =>
    Object.keys(spec).every((key) => KNOWN.has(key)) &&
    LISTS.every((key) => asList(spec[key] ?? []).every((value) => typeof value !== 'object'));

/** The form's values for a spec. */
export function toValues(spec) {
    const end = ENDS.find((key) => spec[key] !== undefined) ?? 'duration_seconds';
    const values = {
        ...DEFAULTS,
        ...spec,
        end,
        end_value: spec[end] ?? DEFAULT_DURATION,
        name: spec.name ?? '',
        skip_impossible: Boolean(spec.skip_impossible),
    };
    LISTS.forEach((key) => {
        values[key] = asList(values[key]);
    });
    return values;
}

/**
 * The spec to post. With a preset, only what differs from it is sent beside its name; a window that ends otherwise
 * than the preset's is sent as a full spec, since two ends in one spec exclude each other.
 */
export function toSpec(values, presets) {
    const spec = {};
    for (const [key, standard] of Object.entries(DEFAULTS)) {
        const value = Array.isArray(standard) ? asScalar(values[key]) : values[key];
        if (!alike(value, standard) || ['workload', 'transport', 'message_size'].includes(key)) spec[key] = value;
    }
    spec[values.end] = values.end_value;
    if (values.name) spec.name = values.name;
    if (values.skip_impossible) spec.skip_impossible = true;
    const preset = presets.find((one) => one.name === values.preset);
    return preset ? overPreset(spec, preset) : spec;
}

function overPreset(spec, preset) {
    const otherEnd = ENDS.some((key) => preset.spec[key] !== undefined && spec[key] === undefined);
    if (otherEnd) {
        const rest = Object.entries(preset.spec).filter(([key]) => !ENDS.includes(key) && !KNOWN.has(key));
        return { ...Object.fromEntries(rest), ...spec };
    }
    const changed = { preset: preset.name };
    const standard = (key) => DEFAULTS[key] ?? (key === 'duration_seconds' ? DEFAULT_DURATION : undefined);
    for (const key of new Set([...Object.keys(spec), ...Object.keys(preset.spec)])) {
        const before = preset.spec[key] ?? standard(key);
        const after = spec[key] ?? (KNOWN.has(key) ? standard(key) : preset.spec[key]);
        if (after !== undefined && !alike(before, after)) changed[key] = after;
    }
    return changed;
}

/** {points, runs, seconds}: what the values amount to; fewer where a field has no meaning, seconds null without a duration. */
export function amount(values) {
    const points = LISTS.reduce((product, key) => product * values[key].length, 1);
    const runs = points * values.repetitions;
    const seconds = values.end === 'duration_seconds' ? runs * (values.warmup_seconds + values.end_value) : null;
    return { points, runs, seconds };
}

/* Fields of words that some transports have no use for, and where GET /transports tells which words one has. */
export const WORDS = { copy_mode: 'copy_modes', engine: 'engines', wait: 'waits' };
const MOVING = ['stream', 'pingpong'];

/** The fields that mean nothing for these workloads and transports: any but their standard word would be refused. */
export function meaningless(values, transports) {
    const moves = values.workload.some((name) => MOVING.includes(name));
    const chosen = transports.filter((item) => moves && values.transport.includes(item.name));
    return Object.keys(WORDS).filter((name) => !chosen.some((item) => Object.keys(item[WORDS[name]] ?? {}).length));
}

/** Which of the form's fields a JSON pointer means; null: none. */
export function fieldOf(pointer) {
    const key = pointer.split('/')[1] ?? '';
    if (ENDS.includes(key)) return 'end';
    return KNOWN.has(key) ? key : null;
}
