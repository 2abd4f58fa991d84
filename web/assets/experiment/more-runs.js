// SPDX-License-Identifier: MIT
// More runs of an experiment that there is: repetitions added to all of its points, or its failed and cancelled runs
// once more. The experiment keeps its id, its runs and its results.

import { post, submission } from '../api.js';
import { h, setText } from '../dom.js';
import { duration, integer, plural } from '../format.js';
import { showError } from '../views.js';

const ENOUGH = 6; /* runs of each point, with which great differences are certain */
const MOST = 1000;

/** Its failed and cancelled runs are queued once more. */
export const retry = (id) => post(`/experiments/${id}/retry`, '{}');

export const retriable = ({ progress }) => progress.runs_failed + progress.runs_cancelled;

/* How many repetitions bring `runs` of each point, which a finding would need, or the fewest that allow any finding. */
function proposed(has, needed) {
    const wanted = Math.max(needed ?? 0, ENOUGH);
    return Math.min(wanted > has ? wanted - has : has, MOST);
}

/**
 * The form for further repetitions. `points` of the experiment have `has` runs each, of `seconds` each where that is
 * known; a finding would need `needed`, null where none says so. `done(experiment)` is called with the extended one,
 * `closed()` when the form was left.
 */
export function extendForm({ experiment, points, has, seconds, needed, done, closed }) {
    const submit = submission(`/experiments/${experiment.id}/extend`);
    const error = h('p', { class: 'field-error', id: 'extend-error', role: 'alert' });
    const hint = h('p', { class: 'hint', id: 'extend-hint' });
    const number = h('input', {
        id: 'extend-repetitions',
        type: 'number',
        min: 1,
        max: MOST,
        step: 1,
        required: true,
        value: proposed(has, needed),
        'aria-describedby': 'extend-error extend-hint',
        on: { input: () => tell() },
    });
    const tell = () => {
        const runs = points * number.valueAsNumber;
        const time = seconds ? `, about ${duration(runs * seconds)}` : '';
        setText(hint, runs > 0 ? `${plural(runs, 'run')} in all${time}; now each point has ${integer(has)}.` : '');
    };
    const send = async (event) => {
        event.preventDefault();
        try {
            done(await submit(JSON.stringify({ repetitions: number.valueAsNumber })));
        } catch (failure) {
            number.setAttribute('aria-invalid', 'true');
            showError(error, failure);
        }
    };
    tell();
    return h(
        'form',
        {
            class: 'panel',
            id: 'extend-form',
            'aria-label': 'More runs',
            on: { submit: send, keydown: (event) => event.key === 'Escape' && closed() },
        },
        h(
            'div',
            { class: 'field' },
            h('label', { for: 'extend-repetitions', text: 'Further runs of each point' }),
            number,
            error,
            hint,
        ),
        h(
            'div',
            { class: 'actions' },
            h('button', { type: 'button', id: 'extend-leave', on: { click: closed } }, 'Not now'),
            h('button', { type: 'submit', class: 'primary' }, 'Add them'),
        ),
    );
}
