// SPDX-License-Identifier: MIT
// What the form offers on this machine: every field with its choices, and why some of them cannot be had.

import { CheckField, ChoicesField, EndField, ListField, NumberField, SelectField, TextField } from './fields.js';
import { isAvailable, whyNot } from './host.js';

const WORKLOADS = [
    { value: 'stream', hint: 'one way, as fast as it goes' },
    { value: 'pingpong', hint: 'there and back, one message at a time' },
];
const VERIFY = [
    { value: 'none', label: 'none: leave the bytes alone' },
    { value: 'touch', label: 'touch: read a byte per cache line' },
    { value: 'checksum', label: 'checksum: check sequence and content' },
];

function placements(topology) {
    const smt = topology.smt ?? topology.cpus.some((cpu) => (cpu.siblings ?? []).length > 1);
    const nodes = topology.nodes.length;
    return [
        { value: 'default', hint: 'where the scheduler puts them' },
        { value: 'same-cpu', hint: 'both ends share a CPU' },
        {
            value: 'same-core',
            hint: 'two threads of a core',
            unavailable: smt ? null : 'no core of this machine has two threads',
        },
        { value: 'same-node', hint: 'two CPUs of a NUMA node' },
        {
            value: 'cross-node',
            hint: 'each end on its own node',
            unavailable: nodes > 1 ? null : 'this machine has one NUMA node',
        },
    ];
}

/* A list of words, or an object that tells of each whether it can be had. */
const modesOf = (modes) => (Array.isArray(modes) ? modes.map((value) => [value, {}]) : Object.entries(modes));

/* Modes are offered only where an available transport has a choice of them. */
function modes(name, label, transports, key) {
    const choices = new Map();
    for (const item of transports.filter(isAvailable))
        for (const [value, about] of modesOf(item[key] ?? []))
            if (!choices.get(value) || choices.get(value).unavailable)
                choices.set(value, { value, unavailable: about.available === false ? whyNot(about) : null });
    return choices.size > 1
        ? [[name, new ChoicesField(name, { label, choices: [...choices.values()], span: true })]]
        : [];
}

/** The form's fields by name, in the order they stand in. */
export function makeFields(presets, transports, topology) {
    const described = presets.map((preset) => ({ value: preset.name, label: `${preset.name}: ${preset.title ?? ''}` }));
    const offered = transports.map((item) => ({
        value: item.name,
        label: item.name,
        hint: item.title === item.name ? null : item.title,
        unavailable: isAvailable(item) ? null : whyNot(item),
    }));
    return new Map([
        [
            'preset',
            new SelectField('preset', {
                label: 'Preset',
                choices: [{ value: '', label: 'none' }, ...described],
                hint: 'Fills the fields; what you change overrides it.',
            }),
        ],
        ['name', new TextField('name', { label: 'Name', maxlength: 200, hint: 'Optional.' })],
        ['workload', new ChoicesField('workload', { label: 'Workload', choices: WORKLOADS, span: true })],
        ['transport', new ChoicesField('transport', { label: 'Transport', choices: offered, span: true })],
        [
            'message_size',
            new ListField('message_size', {
                label: 'Message sizes',
                sizes: true,
                hint: 'Bytes, or with KiB, MiB; separated by commas.',
            }),
        ],
        ['threads', new ListField('threads', { label: 'Threads', hint: 'Pairs or connections; separated by commas.' })],
        ['placement', new ChoicesField('placement', { label: 'Placement', choices: placements(topology), span: true })],
        ...modes('copy_mode', 'Copy mode', transports, 'copy_modes'),
        ...modes('engine', 'Engine', transports, 'engines'),
        ...modes('wait', 'Wait', transports, 'waits'),
        ['end', new EndField('end', { label: 'Measure for' })],
        ['warmup_seconds', new NumberField('warmup_seconds', { label: 'Warm-up, seconds', min: '0', step: 'any' })],
        [
            'repetitions',
            new NumberField('repetitions', {
                label: 'Repetitions',
                min: '1',
                hint: 'From 6 on, medians come with a 95 % interval.',
            }),
        ],
        ['verify', new SelectField('verify', { label: 'Receiver’s check', choices: VERIFY })],
        [
            'skip_impossible',
            new CheckField('skip_impossible', { label: 'Leave out combinations that this machine cannot do' }),
        ],
    ]);
}
