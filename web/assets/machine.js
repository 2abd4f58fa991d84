// SPDX-License-Identifier: MIT
// What the daemon knows of this machine and of itself, read once for all parts of the page that need it.

import { get } from './api.js';

const cache = new Map();

/** A document that stays the same while the daemon runs, fetched once. */
export function once(path) {
    if (!cache.has(path))
        cache.set(
            path,
            get(path).catch((error) => {
                cache.delete(path);
                throw error;
            }),
        );
    return cache.get(path);
}

let newest = null; /* the promise of GET /host */
let pending = false;

/** {health, environment, noise, topology, transports, presets} as they are now; a request that is under way is shared. */
export function machineNow() {
    if (pending) return newest;
    pending = true;
    const mine = get('/host')
        .catch((error) => {
            newest = null;
            throw error;
        })
        .finally(() => {
            pending = false;
        });
    newest = mine;
    return mine;
}

/** The same as it was when it was last read. */
export const machine = () => newest ?? machineNow();
