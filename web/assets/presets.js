// SPDX-License-Identifier: MIT
// The presets as cards: the question of each, what is expected, how long it takes here, and what it gave when it was
// measured here last. The short form of a study is a second button on its card.

import { get, post, token } from './api.js';
import { fill, h, svg } from './dom.js';
import { duration, figure, time } from './format.js';

const SHORT = '-quick';
const EVENTS = ['pointerover', 'focusin']; /* of a reader at the cards */
const PICTURE = { height: 56, bar: 13, step: 17, gap: 14 };
const RECENT = 50; /* experiments among which the last of a preset is looked for */

/**
 * Fills `cards`; what has to be requested of each preset follows, one after the other. Plans need the token.
 * Unless the reader `asked` for the cards, the plans are requested when the reader points at them, so that opening the
 * page tries no token.
 */
export async function showPresets(cards, asked) {
    const [{ items }, { items: done }] = await Promise.all([
        get('/presets'),
        get(`/experiments?state=done&q=preset&limit=${RECENT}`),
    ]);
    const recent = done.filter(({ imported }) => !imported);
    const shorts = new Map(items.filter(({ name }) => name.endsWith(SHORT)).map((one) => [one.name, one]));
    const studies = items.filter(({ name }) => !shorts.has(name));
    const later = [];
    const plans = [];
    fill(
        cards,
        studies.map((one) => {
            const forms = [one, shorts.get(one.name + SHORT)].filter(Boolean);
            const last = recent.find(({ spec }) => forms.some(({ name }) => name === spec.preset));
            const facts = h('div', { class: 'stack' }, last && lastResult(last, later));
            fillTimes(
                facts,
                forms.map(({ name }) => ({ name, last: recent.find(({ spec }) => spec.preset === name) })),
                plans,
            );
            return card(one, forms, facts);
        }),
    );
    for (const request of later) await request();
    if (!asked) await new Promise((resolve) => EVENTS.forEach((name) => cards.addEventListener(name, resolve)));
    for (const request of plans) await request();
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

function card({ title, question, expected, published, description }, forms, facts) {
    return h(
        'article',
        { class: 'card' },
        h('h3', { text: title }),
        h('p', { class: 'asks', text: question }),
        h('p', {}, h('strong', { text: 'Expected: ' }), expected),
        published.length > 0 && publishedBars(published),
        facts,
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

/*
 * How long each form took here, as the last of it did. The whole study has the time by the daemon's plan where it was
 * never run; that takes a token, without which only the description has it.
 */
function fillTimes(facts, [whole, ...others], plans) {
    const times = h('p', { class: 'soft takes' });
    const brief = others.map(({ name, last }) => tookWords(name, last));
    const put = (words) => {
        times.textContent = [words, ...brief].filter(Boolean).join(' ');
        if (times.textContent) facts.prepend(times);
    };
    put(tookWords(whole.name, whole.last));
    if (whole.last) return;
    plans.push(async () => {
        if (token.state !== 'set') return;
        const plan = await post('/experiments?dry_run=true', JSON.stringify({ preset: whole.name })).catch(() => null);
        if (!plan) return; /* it cannot be done here, which opening it shows with its reason */
        put(`Takes about ${duration(plan.estimated_seconds)} here.`);
    });
}

function tookWords(name, last) {
    if (!last?.started_at || !last.finished_at) return null;
    const took = duration((new Date(last.finished_at) - new Date(last.started_at)) / 1000);
    return name.endsWith(SHORT) ? `In brief: took ${took} here.` : `Took ${took} here.`;
}

/* The last experiment of a preset, and the first of its findings as soon as that is known. */
function lastResult(experiment, later) {
    const sentence = h('p', { class: 'last' });
    later.push(async () => {
        const { items } = await get(`/experiments/${experiment.id}/findings`);
        sentence.textContent = items.find(({ kind }) => kind !== 'undecided')?.sentence ?? '';
    });
    return h(
        'div',
        {},
        h(
            'p',
            {},
            'Last result: ',
            h('a', { href: `#/experiments/${experiment.id}`, text: time(experiment.finished_at) }),
        ),
        sentence,
    );
}
