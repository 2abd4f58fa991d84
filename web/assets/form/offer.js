// SPDX-License-Identifier: MIT
// The fields of the form on this machine: each with its choices, and why some of them are unavailable.

import { CheckField, ChoicesField, EndField, ListField, NumberField, SelectField, TextField } from './fields.js';
import { isAvailable, whyNot } from '../home/host.js';
import { meaningOf, wordsOf } from '../schema.js';

/* The schema's words for a field, each with its meaning. */
const choicesOf = (openapi, name) =>
    wordsOf(openapi, name).map((value) => ({ value, hint: meaningOf(openapi, name, value) }));

/* The choices of a list that has no room for hints. */
const optionsOf = (openapi, name) =>
    choicesOf(openapi, name).map(({ value, hint }) => ({ value, label: hint ? `${value}: ${hint}` : value }));

function placements(openapi, topology) {
    const smt = topology.smt ?? topology.cpus.some((cpu) => (cpu.siblings ?? []).length > 1);
    const lacking = {
        'same-core': smt ? null : 'no core of this machine has two threads',
        'cross-node': topology.nodes.length > 1 ? null : 'this machine has one NUMA node',
    };
    return choicesOf(openapi, 'placement_word').map((choice) => ({ ...choice, unavailable: lacking[choice.value] }));
}

/** How many placements the words for pairs stand for, at most. */
export const pairsOf = (topology) => ({
    'all-node-pairs': topology.nodes.length ** 2,
    'all-cpu-pairs': topology.cpus.filter((cpu) => cpu.online !== false).length ** 2,
});

/* A list of words, or an object with the availability of each. */
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

/** The form's fields in groups; one without fields has the members of a spec that have no control of their own. */
export const GROUPS = [
    { title: null, of: ['preset', 'name'] },
    {
        title: 'What is measured',
        of: ['workload', 'call', 'processes', 'working_set', 'transport', 'message_size', 'threads'],
    },
    { title: 'Where', of: ['placement'] },
    { title: 'How', of: ['copy_mode', 'engine', 'queue_depth', 'wait', 'source', 'verify', 'fresh', 'stamp'] },
    { title: 'How long and how often', of: ['end', 'warmup_seconds', 'repetitions', 'points', 'skip_impossible'] },
    { title: 'Everything else', of: [] },
];

/** The form's fields by name. */
export function makeFields(presets, transports, topology, openapi) {
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
        ['workload', new ChoicesField('workload', { label: 'Workload', choices: choicesOf(openapi, 'workload'), span: true })],
        ['call', new ChoicesField('call', { label: 'System calls', choices: choicesOf(openapi, 'call'), span: true })],
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
        ['placement', new ChoicesField('placement', { label: 'Placement', choices: placements(openapi, topology), span: true })],
        ...modes('copy_mode', 'Copy mode', transports, 'copy_modes'),
        ...modes('engine', 'Engine', transports, 'engines'),
        [
            'queue_depth',
            new ListField('queue_depth', {
                label: 'Queue depths',
                hint: 'Messages that each end of a stream has under way at once, with io_uring.',
            }),
        ],
        ['source', new ChoicesField('source', { label: 'Sender’s bytes', choices: choicesOf(openapi, 'source'), span: true })],
        ...modes('wait', 'Wait', transports, 'waits'),
        ['end', new EndField('end', { label: 'Measure for' })],
        ['warmup_seconds', new NumberField('warmup_seconds', { label: 'Warm-up, seconds', min: '0', step: 'any' })],
        [
            'repetitions',
            new NumberField('repetitions', {
                label: 'Repetitions',
                min: '1',
                hint: 'From 6 on, medians come with an interval.',
            }),
        ],
        [
            'points',
            new SelectField('points', {
                label: 'Each point stands',
                choices: optionsOf(openapi, 'points'),
                hint: 'Twice: the two are compared, and their difference is the noise floor.',
            }),
        ],
        ['verify', new SelectField('verify', { label: 'Receiver’s check', choices: optionsOf(openapi, 'verify') })],
        ['fresh', new CheckField('fresh', { label: 'Write each message anew before it is sent' })],
        ['stamp', new CheckField('stamp', { label: 'Latency of streams over tcp: a time in each message' })],
        [
            'skip_impossible',
            new CheckField('skip_impossible', { label: 'Leave out combinations that this machine cannot do' }),
        ],
    ]);
}
