// SPDX-License-Identifier: MIT
// The page's use of the daemon's own description (/openapi.json): the figures of a row of results with their titles and
// units, and the defaults and words of a spec's fields. Neither is listed here a second time.

/* The units that people read: by how much to divide, and its name. Times of a message are in µs, costs in ns. */
const READ = {
    'bytes/s': { unit: 'MB/s', by: 1e6 },
    'messages/s': { unit: '/s', by: 1 },
};
const MICROSECONDS = { unit: 'µs', by: 1e3 };

/* Single figures with their range and interval beside them, and those with a column also where no row has one. */
const SPREAD = new Set(['throughput_bytes_per_second', 'cost_ns']);
const ALWAYS = new Set(['throughput_bytes_per_second', 'messages_per_second']);

/** "p99_9" → "p99.9"; of the second group of latencies with what it is of: "p50 one way". */
const percentile = (group, name) => name.replace('_', '.') + (group === 'latency_one_way_ns' ? ' one way' : '');

function column(group, name, figure) {
    const field = group ?? name;
    return {
        title: group ? percentile(group, name) : figure.title,
        ...(group ? MICROSECONDS : (READ[figure['x-unit']] ?? { unit: figure['x-unit'], by: 1 })),
        field,
        of: group ? (row) => row[group]?.[name] : (row) => row[name],
        spread: SPREAD.has(name),
        always: ALWAYS.has(name),
    };
}

/**
 * The columns of a table of results, for the usual figures in the order of the daemon's table: title, unit, what of the
 * row, by how much to divide; `field`, whose reason stands where there is none; `spread`, `always` as above.
 */
export function columnsOf(openapi) {
    const { properties } = openapi.components.schemas.ResultFigures;
    return Object.entries(properties).flatMap(([name, figure]) => {
        const members = figure['x-unit'] ? [[null, name, figure]] : [];
        for (const [member, inner] of Object.entries(figure.properties ?? {})) members.push([name, member, inner]);
        return members.filter(([, , one]) => one['x-usual']).map((one) => column(...one));
    });
}

/** The schema of a spec. */
export const specOf = (openapi) => openapi.components.schemas.ExperimentSpec;

/** What a "#/…" of a schema refers to. */
export const refOf = (openapi, pointer) =>
    pointer
        .split('/')
        .slice(1)
        .reduce((schema, name) => schema[name], openapi);

/** The default of each field of a spec, where it has one; one value for an axis. */
export function defaultsOf(openapi) {
    const fields = Object.entries(specOf(openapi).properties).filter(([, field]) => 'default' in field);
    return Object.fromEntries(fields.map(([name, field]) => [name, field.default]));
}

/** {workloads, transports} of each field of a spec: the only ones that it means something for; undefined: all. */
export function appliesOf(openapi) {
    const fields = Object.entries(specOf(openapi).properties);
    const lists = (field) => ({ workloads: field['x-workloads'], transports: field['x-transports'] });
    return Object.fromEntries(fields.map(([name, field]) => [name, lists(field)]));
}

function valueOf(openapi, name) {
    const { properties, $defs } = specOf(openapi);
    return properties[name]?.enum ? properties[name] : $defs[name];
}

/** The words that a field may have. */
export const wordsOf = (openapi, name) => valueOf(openapi, name).enum;

/** The meaning of a word; null: the field's description has it. */
export const meaningOf = (openapi, name, word) => valueOf(openapi, name)['x-meanings']?.[word] ?? null;
