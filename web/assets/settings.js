// SPDX-License-Identifier: MIT
// Text that a picture of an experiment has beside its figures: where they were measured, and the mechanism's limits.

import { time } from './format.js';

/**
 * "Experiment 12, sizes · 5 s a run · seed 1 · 2026-01-31 12:00 · host lab · kernel 6.1.0 · ipclab 0.1.0": host and
 * kernel are those of its runs by its `provenance`, which the API has beside results, runs and samples, and need not be
 * those of this host as it is now.
 */
export function settingsLine(experiment, provenance) {
    const spec = experiment.effective_spec ?? experiment.spec;
    return [
        `Experiment ${experiment.id}${experiment.name ? `, ${experiment.name}` : ''}`,
        spec.duration_seconds && `${spec.duration_seconds} s a run`,
        `seed ${experiment.seed}`,
        time(experiment.finished_at ?? experiment.created_at, new Date(0)),
        provenance?.host && `host ${provenance.host}`,
        provenance?.kernel && `kernel ${provenance.kernel}`,
        experiment.version && `ipclab ${experiment.version}`,
    ]
        .filter(Boolean)
        .join(' · ');
}

/* Of the view that is open; what it shows may have no view of its own around it. */
let line = () => '';

/** Sets, and gives, the line of settings of the view that is open: `given()` is called when a picture is saved. */
export const setSettings = (given) => (line = given);
export const settings = () => line();

/** The sizes at which the rows' pipes and sockets and the machine's caches end: [{bytes, words}], ascending. */
export function limitsOf(topology, rows) {
    const found = new Map();
    const add = (bytes, words) => Number.isFinite(bytes) && found.set(`${words} ${bytes}`, { bytes, words });
    for (const { effective } of rows) {
        [effective?.pipe_size].flat().forEach((bytes) => add(bytes, 'pipe'));
        [effective?.sndbuf_bytes].flat().forEach((bytes) => add(bytes, 'socket'));
    }
    for (const { level, type, size_bytes: bytes } of topology.caches ?? [])
        if (type !== 'Instruction') add(bytes, `L${level}`);
    return [...found.values()].sort((a, b) => a.bytes - b.bytes);
}
