// SPDX-License-Identifier: MIT
// Whether the machine is quiet enough to measure: what other programs take of its CPUs between two looks.

import { get } from './api.js';
import { fill, h } from './dom.js';
import { factList } from './facts.js';
import { figure, plural } from './format.js';
import { LIMITS, between } from './noise.js';
import { status } from './status.js';
import { showError } from './views.js';

const OLD_SECONDS = 15;
const BETWEEN_MS = 3000; /* the kernel counts in steps of 10 ms */

const percent = (share) => `${figure(share * 100, 2)} %`;
const most = (cpus, name) => cpus.reduce((one, other) => (other[name] > one[name] ? other : one));

/* What is above a limit, in words. */
function disturbances({ cpus, load }) {
    const [foreign, steal] = [most(cpus, 'foreign'), most(cpus, 'steal')];
    return [
        foreign.foreign >= LIMITS.foreign && `other programs take ${percent(foreign.foreign)} of CPU ${foreign.id}`,
        steal.steal >= LIMITS.meanSteal && `other guests take ${percent(steal.steal)} of CPU ${steal.id}`,
        load >= LIMITS.load && `${figure(load, 2)} CPUs are at work`,
    ].filter(Boolean);
}

/** The verdict and its figures: what was counted between two looks, and the load averages of the later. */
export function quietWords(taken, averages) {
    if (!taken) return { quiet: null, words: 'The CPUs’ times did not advance between two looks.', facts: [] };
    const found = disturbances(taken);
    const [foreign, steal] = [most(taken.cpus, 'foreign'), most(taken.cpus, 'steal')];
    return {
        quiet: found.length === 0,
        words: found.length ? `Not now: ${found.join('; ')}.` : 'Yes: nothing here would flag a run.',
        facts: [
            ['foreign CPU', `${percent(foreign.foreign)} of CPU ${foreign.id}, the busiest`],
            ['steal', percent(steal.steal)],
            ['at work', `${figure(taken.load, 2)} of ${plural(taken.cpus.length, 'CPU')}`],
            [
                'load',
                averages?.length ? `${averages.map((one) => one.toFixed(2)).join(', ')} (1, 5, 15 minutes)` : null,
            ],
        ],
    };
}

/* The environment before and after BETWEEN_MS; null: `ended()` meanwhile. A first look of long ago is replaced. */
async function lookTwice(first, ended) {
    let before = first ?? (await get('/environment'));
    for (;;) {
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
        if (ended()) return null;
        const after = await get('/environment');
        if (ended()) return null;
        if (before !== first || after.uptime_seconds - before.uptime_seconds < OLD_SECONDS) return [before, after];
        before = after;
    }
}

/** The panel; its first look is `environment`, and it takes no other once the view is `left`. */
export function quietPanel(environment, left) {
    const answer = h('div', { class: 'stack', role: 'status' });
    const again = h(
        'button',
        { type: 'button', class: 'quiet', id: 'look', on: { click: () => look() } },
        'Look again',
    );
    const show = (quiet, words, facts = []) =>
        fill(
            answer,
            h('p', { class: 'answer', data: { quiet: String(quiet) }, text: words }),
            facts.length > 0 && factList(facts),
        );
    const occupied = () => {
        if (!status.health?.running_experiment) return false;
        show(null, 'An experiment runs. What disturbs its runs is shown beside them.');
        return true;
    };
    const look = async (first = null) => {
        again.disabled = true;
        try {
            if (occupied()) return;
            show(null, `Looking for ${BETWEEN_MS / 1000} seconds…`);
            const looks = await lookTwice(first, () => left() || occupied());
            if (!looks) return;
            const { quiet, words, facts } = quietWords(between(...looks), looks[1].load);
            show(quiet, words, facts);
        } catch (error) {
            const notice = h('p', { class: 'notice', role: 'alert' });
            fill(answer, notice);
            showError(notice, error);
        } finally {
            again.disabled = false;
        }
    };
    look(environment);
    return h(
        'section',
        { class: 'panel', id: 'quiet', 'aria-labelledby': 'quiet-title' },
        h(
            'div',
            { class: 'panel-head' },
            h('h2', { id: 'quiet-title', text: 'Quiet enough to measure?' }),
            h('div', { class: 'panel-tools' }, again),
        ),
        answer,
    );
}
