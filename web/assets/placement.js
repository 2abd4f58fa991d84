// SPDX-License-Identifier: MIT
// A placement by hand in few words: {"sender": {"cpu": 0}, "receiver": {"cpu": 1}} is "CPU 0 → CPU 1".

/** In the order in which data goes; of server and client it may go either way, so these are named. */
export const DIRECTED = [
    ['sender', 'receiver'],
    ['initiator', 'responder'],
];
const ROLES = [...DIRECTED.flat(), 'server', 'client'];

/** Whether a value of a point names places for its ends. */
export const isPlacementByHand = (value) =>
    typeof value === 'object' && value !== null && ROLES.some((role) => role in value);

function memoryWords({ policy, node, nodes = node === undefined ? [] : [node] }) {
    const named = nodes.length ? `node${nodes.length === 1 ? '' : 's'} ${nodes.join(', ')}` : '';
    if (policy === 'interleave') return `interleaved on ${named}`;
    if (policy === 'preferred') return `preferably on ${named}`;
    return named ? `on ${named}` : policy;
}

/* Memory on the node of the CPUs, and nowhere else, goes without saying. */
function endWords({ cpu, node, memory, buffer }) {
    const isOwn = memory?.policy === 'bind' && memory.nodes.length === 1 && memory.nodes[0] === node;
    return [
        cpu !== undefined && `CPU ${cpu}`,
        cpu === undefined && node !== undefined && `node ${node}`,
        memory && !isOwn && `memory ${memoryWords(memory)}`,
        buffer && `buffer ${memoryWords(buffer)}`,
    ]
        .filter(Boolean)
        .join(', ');
}

/** Such a placement in words, without what it requires of the host. */
export function placementWords(placement) {
    const directed = DIRECTED.find((roles) => roles.every((role) => placement[role]));
    if (directed) return directed.map((role) => endWords(placement[role])).join(' → ');
    return ROLES.filter((role) => role in placement)
        .map((role) => `${role} ${endWords(placement[role])}`)
        .join('; ');
}
