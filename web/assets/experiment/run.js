// SPDX-License-Identifier: MIT
// All that is known of one run, in a dialog.

import { choose } from '../address.js';
import { get } from '../api.js';
import { valueWords } from '../compare/compare.js';
import { $, fill, h, setText } from '../dom.js';
import { absent, factList } from '../facts.js';
import { DASH, fieldTitle, fieldValue, figure, integer, latencyKind, size, throughput, time } from '../format.js';
import { ranges } from '../home/host.js';
import { once } from '../machine.js';
import { proofsOf } from './proof.js';
import { flagLabel } from './results.js';
import { headOf, tableOf } from '../table.js';

const CHANGED = 'environment-changed:'; /* a flag, and what */

let shown = null; /* the run whose details are open, which the address names */

/** Opens the dialog with everything that is known of a run. It closes when another view is opened. */
export async function showRun(id) {
    const dialog = $('run-dialog');
    shown = id;
    choose({ run: id });
    setText($('run-title'), `Run ${id}`);
    fill($('run-body'), h('p', { class: 'soft', text: 'Loading…' }));
    dialog.addEventListener('close', closed);
    addEventListener('hashchange', leave);
    dialog.showModal();
    const details = await Promise.all([get(`/runs/${id}`), once('/openapi.json')])
        .then(([run, openapi]) => runDetails(run, Object.keys(openapi.components.schemas.HostFacts.properties)))
        .catch((error) => h('p', { class: 'notice', text: error.message }));
    if (shown === id) fill($('run-body'), details);
}

function closed() {
    if (shown === null || $('run-dialog').open) return; /* the event of one that was left comes later */
    shown = null;
    choose({ run: null });
}

/* The address is that of the other view already. */
function leave() {
    if (shown === null) return;
    shown = null;
    $('run-dialog').close();
}

/* `settings`: what an environment has that does not change by itself. */
function runDetails(run, settings) {
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
            run.agents.length > 0 && [h('h3', { text: 'Proof of placement' }), proofsOf(run, 'h4')],
            inForce(run.agents),
            run.probes && [
                h('h3', { text: 'The machine before and after' }),
                probeTable(run.probes),
                otherProbes(run.probes),
                changeWords(run.probes),
                unprobedWords(run.probes),
            ],
            run.environment && [
                h('h3', { text: 'The environment before and after' }),
                environmentChanges(run, settings),
            ],
            block('As stored', run),
        ),
    ];
}

const REASON = '_reason';
/* What null is of these, which have no reason beside it. */
const NONE = { memlock_bytes: 'unlimited', ptrace_scope: 'no such module' };

/* What each agent found in force, a column for each; a value that could not be read has its reason. */
function inForce(agents) {
    const ends = agents.filter(({ effective }) => effective);
    const names = [...new Set(ends.flatMap(({ effective }) => Object.keys(effective)))].filter(
        (name) => !name.endsWith(REASON),
    );
    if (!names.length) return null;
    const bytes = (name) => name.endsWith('_bytes') || name === 'pipe_size';
    const words = (name, value) => (bytes(name) && typeof value === 'number' ? size(value) : valueWords(value));
    const cell = ({ role, effective }, name) => {
        const why = effective[name + REASON];
        const value = effective[name] ?? null;
        const none = name in effective ? NONE[name] : null;
        const shown = value !== null ? words(name, value) : why ? absent(why) : (none ?? DASH);
        return h('td', { class: 'limit', data: { title: role } }, shown);
    };
    const row = (name) =>
        h('tr', {}, [
            h('th', { scope: 'row', text: name.replaceAll('_', ' ') }),
            ends.map((end) => cell(end, name)),
        ]);
    return h(
        'details',
        { id: 'run-effective' },
        h('summary', { text: 'What was in force at each end' }),
        tableOf('What was in force at each end', ['What', ...ends.map(({ role }) => role)], names.map(row)),
    );
}

const PROBED = [
    ['getpid_ns', 'getpid()'],
    ['memcpy_64k_ns', 'copy of 64 KiB'],
    ['hand_over_ns', 'cache line handed over'],
    ['wake_up_ns', 'wake-up'],
];

/* A row for each operation of which the probe has a figure, before or after. */
function probeRows(who, before, after) {
    const words = (probe, name) => (probe?.[name] ? `${figure(probe[name].median)} ns` : DASH);
    return PROBED.filter(([name]) => before?.[name] ?? after?.[name]).map(([name, title]) =>
        h('tr', {}, [
            h('th', { scope: 'row', text: `${title}, ${who}` }),
            h('td', { text: words(before, name) }),
            h('td', { text: words(after, name) }),
        ]),
    );
}

function probesInRows(rows) {
    return h('table', {}, headOf(['Calibration probe', 'before', 'after']), h('tbody', {}, rows));
}

/* Of threads 0. */
function probeTable({ before, after }) {
    return probesInRows(Object.keys(before).flatMap((role) => probeRows(role, before[role], after?.[role])));
}

/* Of the further threads, which may be many, and of those that took none. Runs of earlier versions have neither. */
function otherProbes({ before, after }) {
    const rows = Object.keys(before).flatMap((role) => {
        const [earlier, later] = [before[role].others ?? [], after?.[role]?.others ?? []];
        const longer = earlier.length < later.length ? later : earlier;
        return longer.flatMap(({ thread, cpu }, index) =>
            probeRows(`${role}, thread ${thread}${cpu === null ? '' : `, CPU ${cpu}`}`, earlier[index], later[index]),
        );
    });
    const left = Object.entries(before).filter(([, { others_left_out: n }]) => n > 0);
    return [
        rows.length > 0 &&
            h('details', { id: 'run-other-probes' }, h('summary', { text: 'Of further threads' }), probesInRows(rows)),
        left.map(([role, { others_left_out: n, others_left_out_reason: why }]) =>
            h('p', { text: `Of ${role}, ${n} further thread${n === 1 ? '' : 's'} took no probe: ${why}.` }),
        ),
    ];
}

/* A lack of changes is no finding where nothing was compared. */
function changeWords({ changes, compared, compared_reason: why }) {
    if (!changes.length && !compared)
        return h('p', {
            text: `Whether the machine’s state changed during the run is not known: ${why ?? 'no reason is stored'}.`,
        });
    const since = { before: 'during the run', first_run: 'since the first run on these CPUs' };
    const changed = ({ role, thread, cpu }) => (thread > 0 ? `${role}, thread ${thread} on CPU ${cpu},` : role);
    const words = (some) =>
        some
            .map((change) => `${change.figure} of ${changed(change)} × ${figure(change.ratio)} ${since[change.since]}`)
            .join('; ');
    const usual = changes.filter((change) => change.usual),
        unknown = changes.filter((change) => change.usual === null),
        unusual = changes.filter((change) => change.usual === false || change.usual === undefined);
    return [
        unusual.length > 0 &&
            h('p', { class: 'notice warn', text: `The machine’s state changed: ${words(unusual)}.` }),
        unknown.length > 0 &&
            h('p', {
                text: `The machine’s state changed: ${words(unknown)}. Whether it does so of itself is not known: ${unknown[0].usual_reason}.`,
            }),
        usual.length > 0 &&
            h('p', { text: `The machine’s state changed as it does of itself again and again: ${words(usual)}.` }),
    ];
}

/* The flag, or its absence, is not of these. */
function unprobedWords({ cpus_unprobed: unprobed }) {
    return (
        unprobed?.length > 0 &&
        h('p', { text: `Of CPU ${ranges(unprobed)}, which the run may have measured, a probe is missing.` })
    );
}

function settingsOf({ cpus, mitigations, ...facts }, settings) {
    return {
        ...Object.fromEntries(settings.map((name) => [name, facts[name]])),
        ...Object.fromEntries(Object.entries(mitigations ?? {}).map(([of, words]) => [`mitigation of ${of}`, words])),
        'CPUs online': ranges(cpus?.map(({ id }) => id)),
    };
}

/* A setting that was changed and put back has a flag, and is the same before and after. */
function environmentChanges({ environment: { before, after }, flags }, settings) {
    if (!before || !after) return h('p', { class: 'soft', text: 'It is not known of both times.' });
    const [first, last] = [before, after].map((one) => settingsOf(one, settings));
    const changed = [...new Set([...Object.keys(first), ...Object.keys(last)])].filter(
        (key) => valueWords(first[key]) !== valueWords(last[key]),
    );
    if (!changed.length) {
        const back = flags.filter((flag) => flag.startsWith(CHANGED)).map((flag) => flag.slice(CHANGED.length));
        const meanwhile = back.length ? `, but within the run ${back.join(', ')} changed and was put back` : '';
        return h('p', { class: 'soft', text: `It was the same before and after the run${meanwhile}.` });
    }
    const row = (key) =>
        h('tr', {}, [
            h('th', { scope: 'row', text: key.replaceAll('_', ' ') }),
            h('td', { class: 'limit', data: { title: 'before' }, text: valueWords(first[key]) }),
            h('td', { class: 'limit', data: { title: 'after' }, text: valueWords(last[key]) }),
        ]);
    return tableOf('What changed', ['What', 'before', 'after'], changed.map(row), { id: 'run-environment' });
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
