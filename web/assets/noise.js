// SPDX-License-Identifier: MIT
// What other programs take of the machine: from where on a run is flagged for it, and how much it was between two
// looks.

/**
 * Shares of a CPU's time in a second from which on the daemon flags a run; `meanSteal`: in the mean of the run; `load`:
 * CPUs of the whole machine, in a second or in the mean. A second's own `flags` say more: its standstill is also flagged
 * where it exceeds that of the run's best second by 0.3.
 */
export const LIMITS = { foreign: 0.05, softirq: 0.05, steal: 0.05, standstill: 0.6, meanSteal: 0.01, load: 0.5 };

const BUSY = ['user_ms', 'system_ms', 'irq_ms', 'softirq_ms'];
const ALL = [...BUSY, 'idle_ms', 'iowait_ms', 'steal_ms'];

/**
 * Between two answers of GET /environment: {cpus: [{id, foreign, steal}], load}, the shares of each CPU's time that
 * went to programs and to other guests, and how many CPUs the programs kept busy; null where no time was counted.
 */
export function between(before, after) {
    const earlier = new Map(before.cpus.map((cpu) => [cpu.id, cpu]));
    const cpus = after.cpus
        .filter(({ id }) => earlier.has(id))
        .map((cpu) => {
            const sum = (fields) => fields.reduce((total, field) => total + cpu[field] - earlier.get(cpu.id)[field], 0);
            return { id: cpu.id, all: sum(ALL), busy: sum(BUSY), stolen: sum(['steal_ms']) };
        })
        .filter(({ all }) => all > 0)
        .map(({ id, all, busy, stolen }) => ({ id, foreign: busy / all, steal: stolen / all }));
    return cpus.length ? { cpus, load: cpus.reduce((total, { foreign }) => total + foreign, 0) } : null;
}
