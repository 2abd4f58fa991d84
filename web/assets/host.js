// SPDX-License-Identifier: MIT
// The machine: what it is, how it is set, where its CPUs and memory are, and which transports it has.

import { get } from './api.js';
import { fill, h } from './dom.js';
import { DASH, duration, integer, plural, size } from './format.js';
import { factList } from './runs.js';

const cache = new Map();

/** A document that stays the same while the daemon runs, fetched once. */
export function once(path) {
        if (!cache.has(path))
                cache.set(path, get(path).catch((error) => {
                        cache.delete(path);
                        throw error;
                }));
        return cache.get(path);
}

/** "2 CPUs, 1 NUMA node" */
export const topologyWords = (topology) =>
        `${plural(topology.cpus.filter((cpu) => cpu.online !== false).length, 'CPU')}, ${plural(topology.nodes.length, 'NUMA node')}`;

/** The overview page. */
export async function showHost(main) {
        fill(main, h('div', { class: 'title' }, h('h1', { text: 'This machine' })), h('p', { class: 'soft', text: 'Loading…' }));
        const parts = await Promise.allSettled([get('/health'), once('/topology'), get('/environment'), once('/transports')]);
        if (!main.isConnected || location.hash.replace(/^#\/?/, '') !== '')
                return;
        const [health, topology, environment, transports] = parts.map((part) => part.value);
        const failed = parts.find((part) => part.status === 'rejected');
        fill(main,
                h('div', { class: 'title' }, h('div', {}, h('h1', { text: 'This machine' }),
                        h('p', { class: 'meta', text: 'ipclab measures what it costs to move data between two processes here.' }))),
                failed && h('p', { class: 'notice', text: failed.reason.message }),
                h('div', { class: 'columns' }, health && panel('Daemon', factList(healthFacts(health))),
                        topology && panel(topologyWords(topology), topologyTable(topology))),
                transports && panel('Transports', transportTable(transports.items)),
                environment && panel('Environment', environmentFacts(environment)));
}

const panel = (title, ...content) => h('section', { class: 'panel' }, h('h2', { text: title }), content);

function healthFacts(health) {
        return [
                ['state', health.problem || (health.ok === false ? 'not healthy' : 'healthy')],
                ['version', health.version],
                ['up for', duration(health.uptime_seconds)],
                ['now', health.running_experiment
                        ? h('a', { href: `#/experiments/${health.running_experiment}`, text: `running experiment ${health.running_experiment}` }) : 'idle'],
                ['waiting', plural(health.experiments_queued ?? 0, 'experiment')],
                ['stored', `${plural(health.samples ?? 0, 'sample')}, ${size(health.database_bytes, true)}`],
        ].filter(([, value]) => value !== undefined);
}

function topologyTable({ nodes, cpus, caches = [] }) {
        const last = caches.filter((one) => one.size_bytes).sort((a, b) => b.level - a.level)[0];
        const smt = cpus.some((cpu) => (cpu.siblings ?? []).length > 1);
        const distances = nodes.length > 1;
        return [
                h('div', { class: 'table' }, h('table', {},
                        h('thead', {}, h('tr', {}, ['Node', 'CPUs', 'Memory', distances && 'Distances'].filter(Boolean).map((title) =>
                                h('th', { scope: 'col', class: title === 'Memory' ? 'number' : null, text: title })))),
                        h('tbody', {}, nodes.map((node) => h('tr', {},
                                h('td', { text: node.id }), h('td', { text: ranges(node.cpus) || DASH }),
                                h('td', { class: 'number', text: node.has_memory === false ? 'none' : size(node.memory_bytes, true) }),
                                distances && h('td', { text: (node.distances ?? []).join(' ') })))))),
                h('p', { class: 'hint more' }, [smt ? 'CPUs share cores (SMT).' : 'Each CPU is a core of its own.',
                        last ? ` Last cache: L${last.level}, ${size(last.size_bytes)}.` : ''].join('')),
        ];
}

/** [0,1,2,5] → "0–2, 5" */
export function ranges(ids = []) {
        const parts = [];
        for (const id of ids)
                if (parts.length && parts.at(-1)[1] === id - 1)
                        parts.at(-1)[1] = id;
                else
                        parts.push([id, id]);
        return parts.map(([from, to]) => from === to ? from : `${from}–${to}`).join(', ');
}

/** Whether a transport can be used here; and if not, why. */
export const isAvailable = (item) => item.available ?? !item.unavailable;
export const whyNot = (item) => item.reason ?? item.unavailable ?? 'not available on this host';

function transportTable(items) {
        return h('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Transports' }, h('table', {},
                h('thead', {}, h('tr', {}, ['Transport', '', 'Available', 'Limits'].map((title) => h('th', { scope: 'col', text: title })))),
                h('tbody', {}, items.map((item) => h('tr', {},
                        h('td', { text: item.name }), h('td', { class: 'soft', text: item.title ?? '' }),
                        h('td', { class: 'wrap' }, isAvailable(item) ? 'yes' : h('span', { class: 'soft', text: whyNot(item) })),
                        h('td', { class: 'wrap', text: limitsOf(item).join(', ') || DASH }))))));
}

const limitsOf = (item) => (item.limits ?? []).map((limit) => `${limit.name} ${typeof limit.value === 'number' ? integer(limit.value) : limit.value ?? DASH}`);

/* The fingerprint is nested; shown as its leaves, a reason in place of what could not be read. */
function environmentFacts(environment) {
        const groups = Object.entries(environment).filter(([, value]) => value !== null && typeof value === 'object' && !Array.isArray(value));
        const leaves = Object.entries(environment).filter(([key, value]) => !key.endsWith('_reason') && (value === null || typeof value !== 'object' || Array.isArray(value)));
        const facts = (entries, owner) => factList(entries.filter(([key]) => !key.endsWith('_reason'))
                .map(([key, value]) => [key.replaceAll('_', ' '), leaf(value, owner[`${key}_reason`])]));
        return [
                leaves.length > 0 && facts(leaves, environment),
                groups.map(([name, group]) => h('details', { class: 'more' }, h('summary', { text: name.replaceAll('_', ' ') }), facts(Object.entries(group), group))),
        ];
}

function leaf(value, reason) {
        if (value === null)
                return h('span', { class: 'soft', text: reason ? `${DASH} (${reason})` : DASH });
        if (Array.isArray(value) && value.every((one) => typeof one !== 'object'))
                return value.join(', ') || DASH;
        if (typeof value === 'object')
                return h('code', { text: JSON.stringify(value) });
        return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}
