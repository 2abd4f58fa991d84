// SPDX-License-Identifier: MIT
// Text that a picture of an experiment has beside its figures: where they were measured, and the mechanism's limits.

import { time } from './format.js';

/** "Experiment 12 · pipe · 5 s · 2026-01-31 · host, kernel · ipclab 0.1.0" */
export function settingsLine(experiment, health) {
    const spec = experiment.effective_spec ?? experiment.spec;
    return [
        `Experiment ${experiment.id}${experiment.name ? `, ${experiment.name}` : ''}`,
        spec.duration_seconds && `${spec.duration_seconds} s a run`,
        `seed ${experiment.seed}`,
        time(experiment.finished_at ?? experiment.created_at, new Date(0)),
        document.getElementById('host-line').textContent,
        `ipclab ${experiment.version ?? health?.version ?? ''}`,
    ]
        .filter(Boolean)
        .join(' · ');
}

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
