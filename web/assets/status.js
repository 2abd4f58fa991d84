// SPDX-License-Identifier: MIT
// The daemon's state, once for all parts of the page that show it: from GET /health, and from the events about
// experiments, which arrive sooner. It dispatches "change".

import { connection, get } from './api.js';

/* A daemon that is not well answers 503 with the same document. */
const readHealth = () =>
    get('/health').catch((error) => {
        if (error.body?.version) return error.body;
        throw error;
    });

export const status = new (class extends EventTarget {
    health = null; /* as it was last read; null: not yet */
    #readAt = 0;
    #events = 0;

    constructor() {
        super();
        connection.addEventListener('change', () => this.#changed());
    }

    get answers() {
        return connection.state !== 'gone';
    }

    get uptimeSeconds() {
        return this.health.uptime_seconds + (performance.now() - this.#readAt) / 1000;
    }

    /** Takes an experiment as an event brought it. */
    take({ id, state }) {
        const running = this.health?.running_experiment;
        if (state === 'running' ? running === id : this.health && running !== id) return;
        this.#events++;
        if (!this.health) return;
        this.health = { ...this.health, running_experiment: state === 'running' ? id : null };
        this.#changed();
    }

    /** Reads what it is anew, by `first` if given; an answer that events have overtaken is not taken. */
    async refresh(first = readHealth) {
        for (let events = -1, read = first; events !== this.#events; read = readHealth) {
            events = this.#events;
            const health = await read();
            if (events !== this.#events) continue;
            this.health = health;
            this.#readAt = performance.now();
        }
        this.#changed();
    }

    #changed() {
        this.dispatchEvent(new Event('change'));
    }
})();
