// SPDX-License-Identifier: MIT
// The presets as cards: the question of each, what is expected, how long it takes here, and what it gave when it was
// measured here last. The short form of a study is a second button on its card.

import { get } from '../api.js';
import { h, svg } from '../dom.js';
import { duration, figure, time } from '../format.js';

const SHORT = '-quick';
const PICTURE = { height: 56, bar: 13, step: 17, gap: 14 };

/** Cards of the presets; the finding of a last result is requested when its place is in sight. */
export function presetCards(presets) {
    const shorts = new Map(presets.filter(({ name }) => name.endsWith(SHORT)).map((one) => [one.name, one]));
    const studies = presets.filter(({ name }) => !shorts.has(name));
    return studies.map((one) => card(one, [one, shorts.get(one.name + SHORT)].filter(Boolean)));
}

const formWords = (name) => (name.endsWith(SHORT) ? 'Open in brief' : 'Open');

/* What a study has published as bars in the order of its questions, each as high as it is to the highest of its unit. */
function publishedBars(published) {
    const { height, bar, step, gap } = PICTURE;
    const units = [...new Set(published.map(({ unit }) => unit))];
    let x = 0;
    const bars = units.map((unit) => {
        const some = published.filter((one) => one.unit === unit);
        const most = Math.max(...some.map(({ value }) => value));
        const drawn = some.map(({ question, value }, at) => {
            const high = Math.max((value / most) * height, 1);
            return svg(
                'rect',
                { x: x + at * step, y: height - high, width: bar, height: high, class: 'column' },
                svg('title', { text: `${question} ${figure(value, 4)} ${unit}` }),
            );
        });
        x += some.length * step + gap;
        return drawn;
    });
    const width = x - gap;
    const words = ({ question, value, unit }) => `${question} ${figure(value, 4)} ${unit}`;
    return h(
        'figure',
        {},
        svg(
            'svg',
            {
                class: 'plot c1',
                viewBox: `0 0 ${width} ${height}`,
                width,
                height,
                role: 'img',
                'aria-label': `What was published: ${published.map(words).join('; ')}`,
            },
            bars,
        ),
        h('figcaption', { class: 'hint', text: `Published, in ${units.join(' and ')}` }),
    );
}

function card({ title, question, expected, published, description }, forms) {
    return h(
        'article',
        { class: 'card' },
        h('h3', { text: title }),
        h('p', { class: 'asks', text: question }),
        h('p', {}, h('strong', { text: 'Expected: ' }), expected),
        published.length > 0 && publishedBars(published),
        factsOf(forms),
        h('details', {}, h('summary', { text: 'How it is measured' }), h('p', { class: 'soft', text: description })),
        h(
            'p',
            { class: 'chips' },
            forms.map(({ name }) =>
                h('a', {
                    class: 'button',
                    href: `#/new?${new URLSearchParams({ spec: JSON.stringify({ preset: name }) })}`,
                    'aria-label': `${formWords(name)} the preset ${name}`,
                    text: formWords(name),
                }),
            ),
        ),
    );
}

/* How long each form takes here, and the newest result of any of them. */
function factsOf(forms) {
    const [last] = forms
        .map(({ here }) => here.last)
        .filter(Boolean)
        .sort((a, b) => b.experiment_id - a.experiment_id);
    return h(
        'div',
        { class: 'stack' },
        h('p', { class: 'soft takes', text: forms.map(takesWords).join(' ') }),
        last && lastResult(last),
    );
}

/* How long it took when it was measured last, or takes by the daemon's plan. */
function takesWords({ name, here: { estimated_seconds: planned, reason, last } }) {
    const took = last?.took_seconds ?? null;
    const words =
        took !== null
            ? `took ${duration(took)} here.`
            : planned !== null
              ? `takes about ${duration(planned)} here.`
              : `cannot be done here: ${reason}`;
    return name.endsWith(SHORT) ? `In brief: ${words}` : words[0].toUpperCase() + words.slice(1);
}

/* The last experiment of a preset, and the first of its findings. */
function lastResult({ experiment_id: id, finished_at: finished }) {
    const link = h('a', { href: `#/experiments/${id}`, text: time(finished) });
    const sentence = h('p', { class: 'last' });
    whenInSight(link, async () => {
        const { items } = await get(`/experiments/${id}/findings`);
        sentence.textContent = items.find(({ kind }) => kind !== 'undecided')?.sentence ?? '';
    });
    return h('div', {}, h('p', {}, 'Last result: ', link), sentence);
}

/* A failure leaves the place empty: the experiment has its reason. */
function whenInSight(element, act) {
    const watch = new IntersectionObserver((entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        watch.disconnect();
        act().catch(() => {});
    });
    watch.observe(element);
}
