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
const isOwn = ({ node, memory }) =>
    memory.policy === 'bind' && memory.nodes.length === 1 && memory.nodes[0] === node;

const cpuWords = ({ cpu, node }) => (cpu !== undefined ? `CPU ${cpu}` : node !== undefined && `node ${node}`);

const endWords = (end) =>
    [
        cpuWords(end),
        end.memory && !isOwn(end) && `memory ${memoryWords(end.memory)}`,
        end.buffer && `buffer ${memoryWords(end.buffer)}`,
    ]
        .filter(Boolean)
        .join(', ');

/* What tells two pairs apart comes first: a label may be cut. Null where the ends do not differ in CPUs and memory alone. */
function pairWords(ends) {
    if (!ends.every((end) => cpuWords(end) && end.memory && !end.buffer) || ends.every(isOwn)) return null;
    const memory = ends.map((end) => memoryWords(end.memory));
    const [first, second] = memory;
    return `${ends.map(cpuWords).join(' → ')}, memory ${first === second ? first : memory.join(' → ')}`;
}

/** Such a placement in words, without what it requires of the host. */
export function placementWords(placement) {
    const directed = DIRECTED.find((roles) => roles.every((role) => placement[role]));
    const ends = directed?.map((role) => placement[role]);
    if (ends) return pairWords(ends) ?? ends.map(endWords).join(' → ');
    return ROLES.filter((role) => role in placement)
        .map((role) => `${role} ${endWords(placement[role])}`)
        .join('; ');
}
