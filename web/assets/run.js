// SPDX-License-Identifier: MIT
// All that is known of one run, in a dialog.

import { get } from './api.js';
import { $, fill, h, setText } from './dom.js';
import { factList } from './facts.js';
import { DASH, fieldTitle, fieldValue, figure, integer, latencyKind, size, throughput, time } from './format.js';
import { flagLabel } from './results.js';

/** Opens the dialog with everything that is known of a run. */
export async function showRun(id) {
    setText($('run-title'), `Run ${id}`);
    fill($('run-body'), h('p', { class: 'soft', text: 'Loading…' }));
    $('run-dialog').showModal();
    try {
        const run = await get(`/runs/${id}`);
        fill($('run-body'), runDetails(run));
    } catch (error) {
        fill($('run-body'), h('p', { class: 'notice', text: error.message }));
    }
}

function runDetails(run) {
    const { result } = run;
    const facts = [
        ...Object.entries(run.point).map(([field, value]) => [fieldTitle(field), fieldValue(field, value)]),
        ['repetition', String(run.repetition)],
        ['state', run.state + (run.attempt > 1 ? `, attempt ${run.attempt}` : '')],
        ['started', time(run.started_at)],
    ];
    return [
        run.error && h('p', { class: 'notice', text: run.error }),
        h(
            'div',
            { class: 'stack' },
            h('h3', { text: 'What was run' }),
            factList(facts),
            run.flags.length > 0 && h('p', {}, run.flags.map(flagLabel)),
            result && h('h3', { text: 'What was measured' }),
            result && factList(resultFacts(result)),
            block('Agents: placement, proof, settings in effect', run.agents),
            block('Result as stored', result),
            run.probes && h('h3', { text: 'The machine before and after' }),
            run.probes && probeTable(run.probes),
            run.probes && changeWords(run.probes),
            block('Probes as stored', run.probes),
            block('Environment before and after', run.environment),
        ),
    ];
}

const PROBED = [
    ['getpid_ns', 'getpid()'],
    ['memcpy_64k_ns', 'copy of 64 KiB'],
    ['hand_over_ns', 'cache line handed over'],
    ['wake_up_ns', 'wake-up'],
];

/* A row for each operation and end that has a figure of it. */
function probeTable({ before, after }) {
    const words = (end, name) => (end?.[name] ? `${figure(end[name].median)} ns` : DASH);
    const rows = Object.keys(before).flatMap((role) =>
        PROBED.filter(([name]) => before[role][name] ?? after?.[role]?.[name]).map(([name, title]) =>
            h('tr', {}, [
                h('th', { scope: 'row', text: `${title}, ${role}` }),
                h('td', { text: words(before[role], name) }),
                h('td', { text: words(after?.[role], name) }),
            ]),
        ),
    );
    const head = ['Calibration probe', 'before', 'after'].map((text) => h('th', { scope: 'col', text }));
    return h('table', {}, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows));
}

function changeWords({ changes }) {
    const since = { before: 'during the run', first_run: 'since the first run on these CPUs' };
    return (
        changes.length > 0 &&
        h('p', {
            class: 'notice warn',
            text: `The machine’s state changed: ${changes
                .map((change) => `${change.figure} of ${change.role} × ${figure(change.ratio)} ${since[change.since]}`)
                .join('; ')}.`,
        })
    );
}

/** [term, words] of the main figures of a run's result. */
export function resultFacts(result) {
    return [
        ['throughput', throughput(result.throughput_bytes_per_second)],
        ...(result.both_ways_bytes_per_second
            ? [['both ways', `${throughput(result.both_ways_bytes_per_second)}, there and back together`]]
            : []),
        ['messages', `${integer(result.messages)} (${integer(result.messages_per_second)} per second)`],
        ['bytes', `${integer(result.bytes)} (${size(result.bytes, true)})`],
        ['window', result.window_ns ? `${figure(result.window_ns / 1e9, 6)} s` : DASH],
        ...costFacts(result),
        ...latencyFacts('latency', result.latency_ns),
        ...latencyFacts('half of it', result.latency_one_way_ns),
    ];
}

function latencyFacts(term, latency) {
    if (!latency) return [];
    const microseconds = (value) => (value === null || value === undefined ? DASH : `${figure(value / 1e3)} µs`);
    const words = ['p50', 'p99', 'max'].map((name) => `${name} ${microseconds(latency[name])}`).join(', ');
    return [[term, `${latencyKind(latency.kind)}: ${words}`]];
}

/* The cost of a call, or of a context switch with its CPU and the pipe's share. */
function costFacts(result) {
    const nanos = (value) => `${figure(value)} ns`;
    const given = (value) => value !== null && value !== undefined;
    return [
        given(result.effective?.cpu) && ['CPU', String(result.effective.cpu)],
        given(result.cost_ns) && ['cost', `${nanos(result.cost_ns)} per ${result.cost_of}`],
        given(result.hop_ns) && ['hop', `${nanos(result.hop_ns)}, pipe included`],
        given(result.pipe_overhead_ns) && ['pipe overhead', `${nanos(result.pipe_overhead_ns)}, not in the cost`],
    ].filter(Boolean);
}

/** JSON folded away under a title. */
export const block = (title, value) =>
    value !== null &&
    value !== undefined &&
    h('details', {}, h('summary', { text: title }), h('pre', { tabindex: '0', text: JSON.stringify(value, null, 2) }));
