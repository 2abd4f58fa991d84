// SPDX-License-Identifier: MIT
// The samples of an experiment as series: per run, second and agent. Rates are taken over each interval's true length;
// threads are summed for throughput, and for latency the worst thread is shown, as percentiles cannot be added. Of runs
// that move no bytes the rate is that of what they count.

/* The order is that in which they look different (marks.js), whichever sends a sample first. */
const AGENTS = ['receiver', 'initiator', 'client', 'sender', 'responder', 'server'];

/** The number of an agent's series. */
export const slotOf = (agent) => (AGENTS.includes(agent) ? AGENTS.indexOf(agent) : AGENTS.length);

/** A second's number on an axis; between two of them, and before the first, there is nothing to name. */
export const secondWords = (x) => (Number.isInteger(x) && x >= 0 ? `${x} s` : '');

export class Samples {
    constructor(limit) {
        this.limit = limit;
        this.count = 0;
        this.truncated = false;
        this.runs = new Map(); /* run id → Map(second → Map(agent → Map(thread → sample))) */
    }

    /** Adds a sample once, however often it is received; the oldest seconds are dropped where there is no more room. */
    add(sample) {
        const seconds = entry(this.runs, sample.run_id);
        const agents = entry(seconds, sample.second);
        const threads = entry(agents, sample.agent);
        this.count += !threads.has(sample.thread);
        threads.set(sample.thread, sample);
        while (this.count > this.limit) this.#dropOldest();
    }

    #dropOldest() {
        const [run, seconds] = this.runs.entries().next().value;
        const [second, agents] = seconds.entries().next().value;
        for (const threads of agents.values()) this.count -= threads.size;
        seconds.delete(second);
        if (!seconds.size) this.runs.delete(run);
        this.truncated = true;
    }

    /** A run that starts again has new samples. */
    forget(run) {
        for (const agents of this.runs.get(run)?.values() ?? [])
            for (const threads of agents.values()) this.count -= threads.size;
        this.runs.delete(run);
    }

    /**
     * The runs one after another on one axis of measured seconds, with a gap between them:
     * {xs, at: [{run, second}], throughput, calls, rounds, p50, p99: Map(agent → ys), kinds: Set of the latencies',
     * timing: Map(agent → the threads with the largest p50 and p99)}.
     */
    timeline(runs) {
        const names = ['throughput', 'calls', 'rounds', 'p50', 'p99'];
        const figures = Object.fromEntries(names.map((name) => [name, new Map()]));
        const columns = { xs: [], at: [], ...figures, kinds: new Set(), timing: new Map() };
        let offset = 0;
        for (const run of runs) {
            const seconds = [...(this.runs.get(run) ?? [])].sort(([a], [b]) => a - b);
            const rate = rateOf(seconds);
            for (const [second, agents] of seconds) addColumn(columns, offset + second, { run, second }, agents, rate);
            if (seconds.length && runs.length > 1) {
                offset += seconds.at(-1)[0] + 1;
                addColumn(columns, offset - 0.5, null, new Map());
            }
        }
        for (const [name, series] of Object.entries(figures)) {
            for (const ys of series.values()) while (ys.length < columns.xs.length) ys.push(null);
            columns[name] = new Map([...series].sort(([a], [b]) => slotOf(a) - slotOf(b)));
        }
        return columns;
    }
}

function entry(map, key) {
    if (!map.has(key)) map.set(key, new Map());
    return map.get(key);
}

/* The figure that is a run's rate. A stream may have a second without a byte, but no messages without bytes. */
function rateOf(seconds) {
    for (const [, agents] of seconds)
        for (const threads of agents.values())
            for (const sample of threads.values())
                if (sample.messages > 0 && sample.bytes === 0)
                    return sample.latency_ns?.kind === 'switch' ? 'rounds' : 'calls';
    return 'throughput';
}

function addColumn(columns, x, at, agents, rate) {
    const index = columns.xs.push(x) - 1;
    columns.at.push(at);
    for (const [agent, threads] of agents) {
        const samples = [...threads.values()];
        const amount = rate === 'throughput' ? 'bytes' : 'messages';
        put(columns[rate], agent, index, sum(samples.map((sample) => perSecond(sample, amount))));
        const timed = samples.filter((sample) => sample.latency_ns);
        timed.forEach((sample) => columns.kinds.add(sample.latency_ns.kind));
        columns.timing.set(agent, Math.max(columns.timing.get(agent) ?? 0, timed.length));
        put(columns.p50, agent, index, worst(samples, 'p50'));
        put(columns.p99, agent, index, worst(samples, 'p99'));
    }
}

function put(series, agent, index, value) {
    if (value === null && !series.has(agent)) return;
    if (!series.has(agent)) series.set(agent, []);
    const ys = series.get(agent);
    while (ys.length < index) ys.push(null);
    ys.push(value);
}

const perSecond = (sample, amount) => (sample.interval_ns > 0 ? (sample[amount] * 1e9) / sample.interval_ns : null);
const sum = (values) => (values.every((value) => value === null) ? null : values.reduce((a, b) => a + b, 0));

function worst(samples, percentile) {
    const values = samples.map((sample) => sample.latency_ns?.[percentile]).filter((value) => value > 0);
    return values.length ? Math.max(...values) : null;
}
