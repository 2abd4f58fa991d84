// SPDX-License-Identifier: MIT
// What other programs take of the machine: from where on a run is flagged for it.

/**
 * Shares of a CPU's time in a second from which on the daemon flags a run; `meanSteal`: in the mean of the run; `load`:
 * CPUs of the whole machine, in a second or in the mean. A second's own `flags` say more: its standstill is also flagged
 * where it exceeds that of the run's best second by 0.3. `packets` and `interrupts` of devices are numbers in a second.
 */
export const LIMITS = {
    foreign: 0.05,
    softirq: 0.05,
    irq: 0.05,
    steal: 0.05,
    standstill: 0.6,
    meanSteal: 0.01,
    load: 0.5,
    packets: 16_000,
    interrupts: 1000,
};
