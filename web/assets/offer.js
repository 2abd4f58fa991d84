// SPDX-License-Identifier: MIT
// What the form offers on this machine: every field with its choices, and why some of them cannot be had.

import { CheckField, ChoicesField, EndField, ListField, NumberField, SelectField, TextField } from './fields.js';
import { isAvailable, whyNot } from './host.js';

const WORKLOADS = [
    { value: 'stream', hint: 'one way, as fast as it goes' },
    { value: 'pingpong', hint: 'there and back, one message at a time' },
    { value: 'syscall', hint: 'what a system call costs; nothing is moved' },
    { value: 'context-switch', hint: 'what handing the CPU to another process costs' },
];
const CALLS = [
    { value: 'getpid', hint: 'as a system call' },
    { value: 'getpid-libc', hint: 'as the C library has it' },
    { value: 'clock-gettime-vdso', hint: 'without entering the kernel, where that works' },
    { value: 'clock-gettime-syscall', hint: 'as a system call' },
    { value: 'read-zero', hint: 'one byte of /dev/zero' },
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
        { value: 'all-node-pairs', hint: 'each NUMA node with each' },
        { value: 'all-cpu-pairs', hint: 'each CPU with each' },
    ];
}

/** How many placements the words for pairs stand for, at most. */
export const pairsOf = (topology) => ({
    'all-node-pairs': topology.nodes.length ** 2,
    'all-cpu-pairs': topology.cpus.filter((cpu) => cpu.online !== false).length ** 2,
});

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
                hint: 'Fills the fields; only what you change is posted beside its name.',
            }),
        ],
        ['name', new TextField('name', { label: 'Name', maxlength: 200, hint: 'Optional.' })],
        ['workload', new ChoicesField('workload', { label: 'Workload', choices: WORKLOADS, span: true })],
        ['call', new ChoicesField('call', { label: 'System calls', choices: CALLS, span: true })],
        ['processes', new ListField('processes', { label: 'Processes', hint: 'That hand the CPU round.' })],
        [
            'working_set',
            new ListField('working_set', {
                label: 'Working sets',
                sizes: true,
                hint: 'Bytes that each process touches between two switches.',
            }),
        ],
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
