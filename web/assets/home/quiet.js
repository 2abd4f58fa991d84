// SPDX-License-Identifier: MIT
// Whether the machine is quiet enough to measure: what other programs took of its CPUs, as the daemon saw it last.

import { fill, h } from '../dom.js';
import { factList } from '../facts.js';
import { clockTime, duration, figure, plural, sentence } from '../format.js';
import { machineNow } from '../machine.js';
import { LIMITS } from '../noise.js';
import { status } from '../status.js';
import { showError } from '../views.js';

const OCCUPIED = 'An experiment runs. What disturbs its runs is shown beside them.';

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

/** The verdict and its figures, of GET /noise and of the environment's load averages. */
export function quietWords(noise, averages) {
    if (!noise.cpus.length) return { quiet: null, words: sentence(noise.reason), facts: [] };
    const found = disturbances(noise);
    const [foreign, steal] = [most(noise.cpus, 'foreign'), most(noise.cpus, 'steal')];
    const ended = new Date(Date.now() - noise.age_seconds * 1000);
    return {
        quiet: found.length ? false : noise.load === null ? null : true,
        words: found.length
            ? `Not now: ${found.join('; ')}.`
            : noise.load === null
              ? sentence(noise.reason)
              : 'Yes: nothing here would flag a run.',
        facts: [
            ['foreign CPU', `${percent(foreign.foreign)} of CPU ${foreign.id}, the busiest`],
            ['steal', percent(steal.steal)],
            noise.load !== null && ['at work', `${figure(noise.load, 2)} of ${plural(noise.cpus.length, 'CPU')}`],
            ['watched', `${duration(noise.window_ns / 1e9)}, until ${clockTime(ended)}`],
            [
                'load',
                averages?.length ? `${averages.map((one) => one.toFixed(2)).join(', ')} (1, 5, 15 minutes)` : null,
            ],
        ].filter(Boolean),
    };
}

/** The panel, which begins with what `here` has, an answer of GET /host, and changes until the view is `left`. */
export function quietPanel(here, left) {
    const answer = h('div', { class: 'stack', role: 'status' });
    const again = h(
        'button',
        { type: 'button', class: 'quiet', id: 'look', on: { click: () => look() } },
        'Look again',
    );
    let occupied = null; /* not known yet */
    let known = false;
    const show = ({ quiet, words, facts = [] }) =>
        fill(
            answer,
            h('p', { class: 'answer', data: { quiet: String(quiet) }, text: words }),
            facts.length > 0 && factList(facts),
        );
    const tell = ({ noise, environment }) => {
        known = noise.window_ns !== null;
        show(occupied ? { quiet: null, words: OCCUPIED } : quietWords(noise, environment.load));
    };
    const look = async () => {
        again.disabled = true;
        try {
            const now = await machineNow();
            if (!left()) tell(now);
        } catch (error) {
            const notice = h('p', { class: 'notice', role: 'alert' });
            fill(answer, notice);
            showError(notice, error);
        } finally {
            again.disabled = false;
        }
    };
    const changed = () => {
        if (left()) return status.removeEventListener('change', changed);
        const [before, runs] = [occupied, Boolean(status.health?.running_experiment)];
        occupied = runs;
        if (before === null || (runs && !before)) tell(here);
        else if (!runs && (before || !known) && !again.disabled) look(); /* of the seconds after a run nothing is known */
        return undefined;
    };
    status.addEventListener('change', changed);
    changed();
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
