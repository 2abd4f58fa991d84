// SPDX-License-Identifier: MIT
// The machine: what it is, how it is set, where its CPUs and memory are, and which transports it has.

import { fill, h, patch } from '../dom.js';
import { absent, factList, folded } from '../facts.js';
import { DASH, duration, factWords, plural, size } from '../format.js';
import { decisionCard, nowPanel, placesPanel, presetsPanel } from './home.js';
import { machineNow } from '../machine.js';
import { quietPanel } from './quiet.js';
import { status } from '../status.js';
import { tableOf } from '../table.js';
import { showFailure } from '../views.js';

/** "2 CPUs, 1 NUMA node" */
export const topologyWords = (topology) =>
    [
        plural(topology.cpus.filter((cpu) => cpu.online !== false).length, 'CPU'),
        plural(topology.nodes.length, 'NUMA node'),
    ].join(', ');

/**
 * The overview page, read after `before` has resolved, unless the view is `left` meanwhile; `opened(experiment)` is
 * called with one that is posted from here.
 */
export async function showHost(main, left, before, opened) {
    fill(
        main,
        h('div', { class: 'title' }, h('h1', { text: 'This machine' })),
        h('p', { class: 'soft', text: 'Loading…' }),
    );
    await before;
    let here = null;
    try {
        await status.refresh(async () => (here = await machineNow()).health);
    } catch (error) {
        if (!left()) showFailure(main, error);
        return;
    }
    if (left()) return;
    const { topology, environment, transports, presets } = here;
    fill(
        main,
        h(
            'div',
            { class: 'title' },
            h(
                'div',
                {},
                h('h1', { text: 'This machine' }),
                h('p', {
                    class: 'meta',
                    text: 'ipclab measures what it costs to move data between two processes here.',
                }),
            ),
            h(
                'div',
                { class: 'buttons' },
                h('a', { class: 'button', id: 'baselines', href: '#/baselines', text: 'Baselines' }),
                h('a', { class: 'button', href: '#/compare', text: 'Compare…' }),
            ),
        ),
        h(
            'div',
            { class: 'halves' },
            h('div', {}, nowPanel(left), quietPanel(here, left), decisionCard(opened), presetsPanel(presets.items)),
            h(
                'div',
                {},
                placesPanel(topology),
                h(
                    'div',
                    { class: 'columns' },
                    panel('Daemon', daemonFacts(left)),
                    panel(topologyWords(topology), topologyTable(topology)),
                ),
                panel('Environment', environmentFacts(environment)),
            ),
        ),
        panel('Transports', transportTable(transports.items)),
    );
}

const panel = (title, ...content) => h('section', { class: 'panel' }, h('h2', { text: title }), content);

/* The daemon's current activity, updated as long as this is shown. */
function daemonFacts(left) {
    const element = h('div', { id: 'daemon-facts' });
    const draw = () => {
        if (left()) status.removeEventListener('change', draw);
        else patch(element, factList(healthFacts(status)));
    };
    status.addEventListener('change', draw);
    draw();
    return element;
}

function healthFacts({ answers, health, uptimeSeconds }) {
    if (!answers)
        return [
            ['state', 'does not answer'],
            ['version', `${health.version} when it last did`],
        ];
    return [
        ['state', health.problem || health.status],
        ['version', health.version],
        ['up for', duration(uptimeSeconds)],
        [
            'now',
            health.running_experiment
                ? h('a', {
                      href: `#/experiments/${health.running_experiment}`,
                      text: `running experiment ${health.running_experiment}`,
                  })
                : 'idle',
        ],
        ['waiting', plural(health.experiments_queued ?? 0, 'experiment')],
        ['stored', `${plural(health.samples ?? 0, 'sample')}, ${size(health.database_bytes, true)}`],
    ].filter(([, value]) => value !== undefined);
}

function topologyTable({ nodes, cpus, caches = [] }) {
    const last = caches.filter((one) => one.size_bytes).sort((a, b) => b.level - a.level)[0];
    const smt = cpus.some((cpu) => (cpu.siblings ?? []).length > 1);
    const distances = nodes.length > 1;
    return [
        h(
            'div',
            { class: 'table' },
            h(
                'table',
                {},
                h(
                    'thead',
                    {},
                    h(
                        'tr',
                        {},
                        ['Node', 'CPUs', 'Memory', distances && 'Distances']
                            .filter(Boolean)
                            .map((title) =>
                                h('th', { scope: 'col', class: title === 'Memory' ? 'number' : null, text: title }),
                            ),
                    ),
                ),
                h(
                    'tbody',
                    {},
                    nodes.map((node) =>
                        h(
                            'tr',
                            {},
                            h('td', { text: node.id }),
                            h('td', { text: ranges(node.cpus) || DASH }),
                            h('td', {
                                class: 'number',
                                text: node.has_memory === false ? 'none' : size(node.memory_bytes, true),
                            }),
                            distances && h('td', { text: (node.distances ?? []).join(' ') }),
                        ),
                    ),
                ),
            ),
        ),
        h(
            'p',
            { class: 'hint more' },
            [
                smt ? 'CPUs share cores (SMT).' : 'Each CPU is a core of its own.',
                last ? ` Last cache: L${last.level}, ${size(last.size_bytes)}.` : '',
            ].join(''),
        ),
    ];
}

/** [0,1,2,5] → "0–2, 5" */
export function ranges(ids = []) {
    const parts = [];
    for (const id of ids)
        if (parts.length && parts.at(-1)[1] === id - 1) parts.at(-1)[1] = id;
        else parts.push([id, id]);
    return parts.map(([from, to]) => (from === to ? from : `${from}–${to}`)).join(', ');
}

/** Whether a transport (or a mode of it) can be used here; and if not, why. */
export const isAvailable = (item) => item.available;
export const whyNot = (item) => item.reason ?? 'not available on this host';

function transportTable(items) {
    const largest = h('th', { scope: 'col', class: 'number', text: 'Largest message' });
    return tableOf(
        'Transports',
        ['Transport', 'What it is', 'Available', largest, 'Limited by'],
        items.map((item) =>
            h(
                'tr',
                {},
                h('td', { data: { title: 'Transport' }, text: item.name }),
                h('td', { class: 'soft', data: { title: 'What it is' }, text: item.title ?? '' }),
                h('td', { data: { title: 'Available' } }, isAvailable(item) ? 'yes' : folded('no', whyNot(item))),
                capacityCells(item.capacity),
            ),
        ),
    );
}

function capacityCells(capacity) {
    const {
        largest_message: largest = null,
        limit = null,
        message_limit: bySpec = null,
        reason = null,
    } = capacity ?? {};
    return [
        h(
            'td',
            { class: 'number', data: { title: 'Largest message' } },
            largest === null ? absent(reason ?? 'the server does not say') : size(largest, true),
        ),
        h(
            'td',
            { class: 'limit', data: { title: 'Limited by' } },
            limit === null
                ? absent(reason ?? 'the server does not say')
                : bySpec === null
                  ? limitWords(limit)
                  : h(
                        'span',
                        {},
                        limitWords(bySpec),
                        h('span', { class: 'soft', text: '; a transfer by ' }),
                        limitWords(limit),
                    ),
        ),
    ];
}

const limitWords = ({ name, value, raise = null }) =>
    h('span', { title: [`${value} B`, raise].filter(Boolean).join('; ') }, `${name}, ${size(Number(value), true)}`);

/* The settings with the most influence on a measurement first; the rest is folded away. */
const TELLING = [
    'hostname',
    'cpu_model',
    'virtualization',
    'kernel_release',
    'clocksource',
    'cpufreq_governor',
    'turbo',
    'smt',
    'numa_balancing',
    'transparent_hugepage',
    'load',
];

function environmentFacts(environment) {
    const reasons = environment.reasons ?? {};
    const facts = (keys, owner) =>
        factList(keys.map((key) => [key.replaceAll('_', ' '), leaf(owner[key], reasons[key], key)]));
    const nested = (key) =>
        environment[key] !== null && typeof environment[key] === 'object' && !Array.isArray(environment[key]);
    const listed = (key) => Array.isArray(environment[key]) && environment[key].some((one) => typeof one === 'object');
    const keys = Object.keys(environment).filter((key) => key !== 'reasons');
    const plain = keys.filter((key) => !nested(key) && !listed(key) && !TELLING.includes(key));
    return [
        facts(
            TELLING.filter((key) => key in environment),
            environment,
        ),
        h('details', { class: 'more' }, h('summary', { text: 'All settings and counters' }), facts(plain, environment)),
        keys
            .filter(nested)
            .map((key) =>
                h(
                    'details',
                    { class: 'more' },
                    h('summary', { text: key.replaceAll('_', ' ') }),
                    facts(Object.keys(environment[key]), environment[key]),
                ),
            ),
    ];
}

function leaf(value, reason, key) {
    if (value === null) return reason ? folded('not available', reason) : DASH;
    if (Array.isArray(value)) return value.join(', ') || DASH;
    if (typeof value === 'object') return h('code', { text: JSON.stringify(value) });
    return typeof value === 'boolean' ? (value ? 'yes' : 'no') : factWords(key, value);
}
