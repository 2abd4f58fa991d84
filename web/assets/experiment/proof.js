// SPDX-License-Identifier: MIT
// Where a run's threads and pages were, beside where they were to be: a list of facts for each of its agents.

import { h } from '../dom.js';
import { factList } from '../facts.js';
import { DASH, integer, plural } from '../format.js';
import { ranges } from '../home/host.js';

const VIOLATED = 'placement_violated: ';

/** The proofs of all of a run's agents, each below its role in a heading of that level ("h4"). */
export const proofsOf = (run, level) =>
    h(
        'div',
        { class: 'columns proofs' },
        run.agents.map((agent) =>
            h('div', {}, h(level, { text: agent.role }), factList([['proven', verdict(run, agent)], ...facts(agent)])),
        ),
    );

const all = (lists) => [...new Set(lists.flat())].sort((a, b) => a - b);
const named = (what, ids) => (ids.length ? `${what} ${ranges(ids)}` : null);
const listed = (parts) => parts.filter(Boolean).join(', ');

const policyWords = (what, { policy, nodes = [] } = {}) =>
    policy &&
    policy !== 'default' &&
    `${what} ${policy}${nodes.length ? ` ${ranges(nodes)}` : ''}`;

const asked = (placement) =>
    listed([
        named('CPU', placement?.cpus ?? []),
        Number.isInteger(placement?.node) && `node ${placement.node}`,
        policyWords('memory', placement?.memory),
        policyWords('buffers', placement?.buffer),
    ]);

/* The daemon compares each proof with the placement, and fails the run where they differ. */
function verdict({ state, error }, { role, placement, proof, proof_reason: why }) {
    const fault = `${VIOLATED}${role}: `;
    if (error?.startsWith(fault)) return `no: ${error.slice(fault.length)}`;
    if (!proof) return `no: ${why ?? 'there is no proof'}`;
    if (state !== 'done') return `not known: the run is ${state}`;
    return asked(placement) ? 'yes: each was where it was to be' : 'nothing to prove: any place would do';
}

function facts({ placement, proof }) {
    const pages = proof?.pages ?? [];
    /* Of very many threads, those that may be on the same CPUs are together. */
    const threads = [...(proof?.threads ?? []), ...(proof?.threads_together ?? [])];
    const moves = threads.map((thread) => thread.migrations);
    const seen = all(threads.map((thread) => thread.cpus_seen ?? []));
    const nodes = all(threads.map(({ node, nodes: several }) => several ?? node ?? []));
    return [
        ['specified', asked(placement) || 'any place'],
        ['allowed on', named('CPU', proof?.affinity ?? []) ?? DASH],
        ['seen on', listed([named('CPU', seen), named('node', nodes)]) || DASH],
        [
            'moved',
            moves.some((count) => !Number.isInteger(count))
                ? 'not known'
                : plural(
                      moves.reduce((a, b) => a + b, 0),
                      'time',
                  ),
        ],
        ...[...new Set(pages.map(({ what }) => what))].map((what) => [
            `${what.replaceAll('_', ' ')} pages`,
            pagesWords(pages.filter((one) => one.what === what)),
        ]),
    ];
}

/* Of all threads together. */
function pagesWords(pages) {
    const sum = (name) => pages.reduce((total, one) => total + (one[name] ?? 0), 0);
    const nodes = all(pages.map((one) => one.nodes_seen ?? []));
    const why = pages.find((one) => one.reason)?.reason;
    return listed([
        `${integer(sum('total'))} on ${named('node', nodes) ?? `node ${DASH}`}`,
        sum('moved') > 0 && `${integer(sum('moved'))} moved`,
        why,
    ]);
}
