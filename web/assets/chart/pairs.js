// SPDX-License-Identifier: MIT
// Placements of pairs as data: which CPU, or which node, with which, in the order in which they lie in the machine.

import { DIRECTED } from '../placement.js';

const LEAST = 4; /* pairs; fewer are read better as lines */

/* The place of an end that is at one CPU, or on one node: {kind, id}. */
const endOf = (end) => {
    if (Number.isInteger(end?.cpu)) return { kind: 'cpu', id: end.cpu };
    return Number.isInteger(end?.node) ? { kind: 'node', id: end.node } : null;
};

/** {kind: "cpu" | "node", from, to} of a placement that names a place for each of two ends; null of any other. */
export function pairOf(placement) {
    const roles = DIRECTED.find((some) => some.every((role) => placement?.[role]));
    const [from, to] = (roles ?? []).map((role) => endOf(placement[role]));
    return from && to && from.kind === to.kind ? { kind: from.kind, from: from.id, to: to.id, roles } : null;
}

/** The kinds of pairs that are frequent enough in the rows for a map, those of nodes first. */
export function kindsOf(rows) {
    const found = { node: new Set(), cpu: new Set() };
    for (const { point } of rows) {
        const pair = pairOf(point.placement);
        if (pair) found[pair.kind].add(`${pair.from} ${pair.to}`);
    }
    return Object.keys(found).filter((kind) => found[kind].size >= LEAST);
}

const lastCacheOf = (caches, cpu) => {
    const level = Math.max(0, ...caches.map((one) => one.level));
    return caches.findIndex((one) => one.level === level && one.cpus?.includes(cpu));
};

/**
 * The places of a kind that the rows name, as they lie in the machine: [{id, package, node, cache, core}], sorted, so
 * that those that share something are neighbours. What the topology does not know (it was another machine) comes last.
 */
export function placesOf(rows, kind, { cpus = [], nodes = [], caches = [] }) {
    const ids = new Set(
        rows
            .map(({ point }) => pairOf(point.placement))
            .filter((pair) => pair?.kind === kind)
            .flatMap(({ from, to }) => [from, to]),
    );
    const place = (id) => {
        const cpu =
            kind === 'cpu'
                ? cpus.find((one) => one.id === id)
                : cpus.find((one) => nodes.find((node) => node.id === id)?.cpus.includes(one.id));
        const of = (field) => cpu?.[field] ?? Infinity;
        return kind === 'cpu'
            ? { id, package: of('package'), node: of('node'), cache: lastCacheOf(caches, id), core: of('core') }
            : { id, package: of('package') };
    };
    const order = ['package', 'node', 'cache', 'core', 'id'];
    const places = [...ids].map(place).sort((a, b) => {
        const field = order.find((name) => a[name] !== b[name] && a[name] !== undefined);
        return field ? a[field] - b[field] : 0;
    });
    /* A package of one node groups nothing. */
    const apart = kind === 'node' && new Set(places.map((one) => one.package)).size === places.length;
    return apart ? places.map(({ id }) => ({ id })) : places;
}

/** The boundary between neighbours: the outermost of package, node and last cache that they do not share, or null. */
export const borderOf = (one, next) =>
    ['package', 'node', 'cache'].find((field) => one[field] !== undefined && one[field] !== next[field]) ?? null;
