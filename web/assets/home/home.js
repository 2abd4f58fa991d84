// SPDX-License-Identifier: MIT
// The first page's upper part: the running experiment and the queue, advice on which mechanism to use, and the presets.

import { chosen, choose } from '../address.js';
import { get, post } from '../api.js';
import { $, fill, h, patch, svg } from '../dom.js';
import { duration, nanoseconds, plural, pointLabel, size, splitFields, throughput } from '../format.js';
import { looks, markPath } from '../chart/marks.js';
import { nameOf } from './list.js';
import { machine } from '../machine.js';
import { presetCards } from './presets.js';
import { serves } from '../routes.js';
import { linearMarks } from '../chart/scales.js';
import { status } from '../status.js';
import { showError } from '../views.js';

const QUEUE = 10;
const SPARKS = 40; /* runs in the running experiment's sparkline */

/* ---- what runs, and what waits ---- */

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
const clock = (seconds) => CLOCK.format(new Date(Date.now() + seconds * 1000));

/** The tile of the running experiment and the queue, updated until the view is `left`. */
export function nowPanel(left) {
    const element = h('section', { class: 'panel', id: 'now', 'aria-labelledby': 'now-title' });
    let pending = null;
    let last = null;
    const read = async () => {
        const { running_experiment: id = null, experiments_queued: queued = 0 } = status.health ?? {};
        const key = `${id} ${queued}`;
        if (id === null && !queued) {
            last = key;
            patch(
                element,
                h('h2', { id: 'now-title', text: 'Nothing runs' }),
                h('p', { class: 'soft', text: 'An experiment that is posted starts at once.' }),
            );
            return;
        }
        if (key === last && pending) return;
        last = key;
        const [running, waiting, runs] = await Promise.all([
            id === null ? null : get(`/experiments/${id}`),
            queued ? get('/experiments?state=queued&limit=1000') : { items: [] },
            id === null ? { items: [] } : get(`/experiments/${id}/runs?limit=${SPARKS}`),
        ]);
        if (left()) return;
        patch(
            element,
            h('h2', { id: 'now-title', text: running ? 'Running now' : 'Next' }),
            running && tile(running, runs.items),
            queueOf(running, waiting.items.reverse()),
        );
    };
    const refresh = () => {
        pending ??= read()
            .catch(() => {}) /* the connection's state shows it */
            .finally(() => {
                pending = null;
            });
    };
    const changed = () => (left() ? stop() : refresh());
    const clockwork = setInterval(
        () => (left() ? stop() : document.hidden || !status.health?.running_experiment || refresh()),
        3000,
    );
    function stop() {
        clearInterval(clockwork);
        status.removeEventListener('change', changed);
    }
    status.addEventListener('change', changed);
    if (status.health) refresh();
    return element;
}

function tile(experiment, runs) {
    const { runs_total: total, runs_done: done, runs_failed: failed } = experiment.progress;
    const run = runs.find(({ state }) => state === 'running');
    const ends = experiment.eta_seconds === null ? '' : `, ends ${clock(experiment.eta_seconds)}`;
    return h(
        'a',
        { class: 'tile', href: `#/experiments/${experiment.id}`, data: { key: 'tile' } },
        h('strong', { text: nameOf(experiment) }),
        h('span', { text: `run ${Math.min(done + failed + 1, total)} of ${total}${ends}` }),
        run &&
            h('span', {
                class: 'soft',
                text: pointLabel(run.point, ['workload', 'transport', 'message_size', 'threads']),
            }),
        sparkline(runs.map(({ result }) => result?.throughput_bytes_per_second).filter((value) => value > 0)),
    );
}

function sparkline(values) {
    if (values.length < 2) return null;
    const [width, height] = [160, 32];
    const most = Math.max(...values);
    const at = (value, index) =>
        [(index / (values.length - 1)) * width, height - 2 - (value / most) * (height - 4)]
            .map((place) => place.toFixed(1))
            .join(' ');
    return svg(
        'svg',
        {
            class: 'plot c1 spark',
            viewBox: `0 0 ${width} ${height}`,
            width,
            height,
            role: 'img',
            'aria-label': `Throughput of ${plural(values.length, 'run')}, at most ${throughput(most)}`,
        },
        svg('path', { class: 'line', d: `M${values.map(at).join('L')}` }),
    );
}

/* The bar from one time to another, as shares of the time from the first start to the last end that are listed. */
const spanOf = (from, to) =>
    svg(
        'svg',
        { class: 'plot c1 when', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        svg('rect', { x: 0, y: 2.5, width: 100, height: 1, class: 'ground' }),
        svg('rect', { x: from * 100, y: 0, width: Math.max((to - from) * 100, 0.5), height: 6, class: 'mark' }),
    );

/* The queue, the next experiment on top, each with the time at which it starts: when the one before it ends. */
function queueOf(running, waiting) {
    let before = running?.eta_seconds ?? (running ? null : 0);
    const shown = waiting.slice(0, QUEUE);
    const [first, last] = [before, shown.at(-1)?.eta_seconds ?? null];
    const rows = shown.map((one) => {
        const start = before;
        before = one.eta_seconds ?? null;
        return h(
            'li',
            { data: { key: one.id } },
            h('span', { class: 'soft', text: start === null ? '—' : clock(start) }),
            h('a', { href: `#/experiments/${one.id}`, text: nameOf(one) }),
            h('span', { class: 'soft', text: plural(one.progress.runs_total, 'run') }),
            start !== null &&
                before !== null &&
                last > first &&
                spanOf((start - first) / (last - first), (before - first) / (last - first)),
        );
    });
    const rest = waiting.length - rows.length;
    return (
        rows.length > 0 &&
        h(
            'div',
            { class: 'queue', data: { key: 'queue' } },
            h('h3', { text: 'Starts at' }),
            h('ol', {}, rows),
            rest > 0 && h('p', { class: 'hint', text: `and ${rest} more` }),
        )
    );
}

/* ---- the decision ---- */

const QUESTION = {
    message_size: [64, 1024, 4096, 65536, 1048576].map((bytes) => [String(bytes), size(bytes)]),
    workload: [
        ['pingpong', 'round trip'],
        ['stream', 'one way'],
        ['both', 'both ways at once'],
    ],
    placement: [
        ['default', 'anywhere'],
        ['same-node', 'two cores'],
        ['same-core', 'one core'],
        ['same-cpu', 'one CPU'],
        ['cross-node', 'two nodes'],
    ],
    want: [
        ['latency_p50', 'typical latency'],
        ['latency_p99', 'worst 1 % of latency'],
        ['throughput', 'throughput'],
        ['cpu_per_message', 'CPU per message'],
    ],
};
/* The options, and the value of the address, which may be none of those that are offered. */
const optionsOf = (name, value) =>
    QUESTION[name].some(([one]) => one === value)
        ? QUESTION[name]
        : [...QUESTION[name], [value, name === 'message_size' ? size(Number(value)) : value]];
/* The query as the API takes it: both ways at once are streams with a direction. */
const askedOf = (query) => (query.workload === 'both' ? { ...query, workload: 'stream', direction: 'both' } : query);
/* The hosts of so many of the newest experiments are offered. */
const HOSTS_OF = 1000;
const LABELS = { message_size: 'Message', workload: 'Traffic', placement: 'Where', want: 'What counts' };
const FIRST = { message_size: '4096', workload: 'pingpong', placement: 'same-node', want: 'latency_p50' };
const FORMATS = { throughput, latency_p50: nanoseconds, latency_p99: nanoseconds, cpu_per_message: nanoseconds };
const BEST = {
    throughput: ['greatest', 'throughput'],
    latency_p50: ['lowest', 'typical latency'],
    latency_p99: ['lowest', '99th percentile of latency'],
    cpu_per_message: ['least', 'CPU time per message'],
};
/* What the standing of a mechanism means, of one and of several. */
const STANDINGS = {
    worse: ['is worse', 'are worse'],
    equal: ['is equal within 3 %', 'are equal within 3 %'],
    open: ['is undecided', 'are undecided'],
    excluded: ['is not known to keep the limits', 'are not known to keep the limits'],
};
const REASONS = {
    overlap: 'cannot be told apart',
    'too-few-runs': 'too few runs',
    'not-measured-together': 'not measured beside the one that leads',
    interpolated: 'interpolated',
    'experiments-disagree': 'experiments disagree',
    'limit-undecided': 'may keep the limit or not',
    limit: 'beyond a limit',
    'limit-not-known': 'has no figure for a limit',
};

/**
 * "[4 KiB] · [round trip] · [two cores]": which mechanism, by what this host has stored. It is requested at a press, or
 * at once when the address has the question; `opened(experiment)` is called with the runs that would settle it.
 */
export function decisionCard(opened) {
    const answer = h('div', { id: 'advice', role: 'status' });
    const question = () => Object.fromEntries(Object.keys(QUESTION).map((name) => [name, chosen(name) ?? FIRST[name]]));
    let latest = 0; /* an answer to an earlier question, or its failure, may come after that to a later one */
    const request = async () => {
        const number = ++latest;
        try {
            if (!(await serves('/advice'))) throw new Error('This ipclabd gives no advice: it has no route /advice.');
            const query = { ...question(), ...(chosen('host') && { host: chosen('host') }) };
            const [advice, { items: transports }] = await Promise.all([
                get(`/advice?${new URLSearchParams(askedOf(query))}`),
                machine().then(
                    ({ transports }) => transports,
                    () => ({ items: [] }) /* of which are only the looks */,
                ),
            ]);
            const names = transports.map(({ name }) => name);
            if (number === latest) fill(answer, adviceOf(advice, query, names, opened));
        } catch (error) {
            if (number !== latest) return;
            const notice = h('p', { class: 'notice', role: 'alert' });
            fill(answer, notice);
            showError(notice, error);
        }
    };
    const select = (name) => {
        const change = (event) => {
            choose({ ...question(), [name]: event.target.value });
            request();
        };
        const element = h(
            'select',
            { id: `ask-${name}`, on: { change } },
            optionsOf(name, question()[name]).map(([value, text]) => h('option', { value, text })),
        );
        element.value = question()[name];
        return h('label', { class: 'field' }, h('span', { class: 'label', text: LABELS[name] }), element);
    };
    const press = () => {
        choose(question());
        request();
    };
    const host = hostField((value) => {
        choose({ ...question(), host: value || null });
        request();
    });
    if (chosen('want')) request();
    return h(
        'section',
        { class: 'panel', id: 'decision', 'aria-labelledby': 'decision-title' },
        h('h2', { id: 'decision-title', text: 'Which mechanism?' }),
        h(
            'div',
            { class: 'question' },
            Object.keys(QUESTION).map(select),
            host,
            h('button', { type: 'button', class: 'primary', id: 'ask', on: { click: press } }, 'Advise'),
        ),
        answer,
    );
}

/*
 * Whose runs the answer rests on. The hosts of bundles that were taken in are read when the field has the focus; where
 * they cannot be, none is offered, and a label can be typed all the same.
 */
function hostField(change) {
    const known = h('datalist', { id: 'ask-hosts' });
    const read = async () => {
        const { items } = await get(`/experiments?limit=${HOSTS_OF}`);
        const labels = items.map(({ imported }) => imported?.host).filter(Boolean);
        fill(
            known,
            [...new Set(labels)].map((value) => h('option', { value })),
        );
    };
    const control = h('input', {
        id: 'ask-host',
        type: 'text',
        list: 'ask-hosts',
        placeholder: 'this one',
        autocomplete: 'off',
        on: { change: (event) => change(event.target.value.trim()), focus: () => void read().catch(() => null) },
    });
    control.value = chosen('host') ?? '';
    return h('label', { class: 'field' }, h('span', { class: 'label', text: 'Host' }), control, known);
}

const mechanismsOf = (items) => {
    const { varying } = splitFields(items.map(({ point }) => point));
    return ({ point }) => pointLabel(point, varying.length ? varying : ['transport']);
};

const mayExceed = ({ standing, reason }) => standing === 'excluded' || reason === 'limit-undecided';

/* Whether another one has a better figure of its own, which counts only in an experiment with both. */
const isOutdone = (leader, items, want) =>
    items.some((one) => {
        const by = one.value - leader.value;
        return !mayExceed(one) && (want === 'throughput' ? by > 0 : by < 0);
    });

/** The mechanism that leads and how the others stand, or why none does: in the card's words. */
export function adviceWords({ items }, want) {
    const leader = items.find(({ leads, standing }) => leads || standing === 'best');
    if (!items.length) return 'Nothing is known of this yet.';
    if (!leader && items.some(mayExceed)) return 'Nothing that was measured is known to keep the limits.';
    if (!leader) return 'This size was not measured: the values are interpolated from other sizes.';
    const format = FORMATS[want];
    const [degree, figure] = BEST[want];
    const unconfirmed = leader.standing !== 'best';
    const ahead = unconfirmed || isOutdone(leader, items, want);
    const has = ahead ? `leads with a ${figure} of` : `has the ${degree} ${figure}:`;
    const interval = leader.interval && ` (${format(leader.interval.low)} to ${format(leader.interval.high)})`;
    const doubt = unconfirmed && `, which is not confirmed: ${REASONS[leader.reason]}`;
    const others = Object.entries(STANDINGS)
        .map(([standing, words]) => [items.filter((one) => one !== leader && one.standing === standing).length, words])
        .filter(([count]) => count > 0)
        .map(([count, [one, several]]) => `${count} ${count === 1 ? one : several}`);
    const rest = others.length > 0 && ` Of the others ${others.join(', ')}.`;
    return [`${mechanismsOf(items)(leader)} ${has} ${format(leader.value)}`, interval, doubt, '.', rest]
        .filter(Boolean)
        .join('');
}

/* Buttons that save the ranking; their code comes with that of the other views. */
function savedBy(list, advice, query) {
    const place = h('p', { class: 'more' });
    const wordsOf = (name) => optionsOf(name, query[name]).find(([value]) => value === query[name])[1];
    const title = `Which mechanism? ${Object.keys(QUESTION).map(wordsOf).join(' · ')}`;
    const words = [adviceWords(advice, query.want), restsOn(advice.experiments, advice.host)];
    import('../later.js').then(
        ({ rankedButtons }) => fill(place, rankedButtons({ list, title, words, host: advice.host })),
        () => null,
    );
    return place;
}

function adviceOf(advice, query, transports, opened) {
    const { host, items, experiments, settle, settle_seconds: seconds } = advice;
    const ranked = items.length > 0 && ranking(items, transports, FORMATS[query.want]);
    const settleIt = async (event) => {
        const button = event.currentTarget;
        button.disabled = true;
        try {
            const asked = { ...askedOf(query), message_size: Number(query.message_size) };
            opened(await post('/advice', JSON.stringify(asked)));
        } catch (error) {
            button.disabled = false;
            button.after(h('span', { class: 'field-error', role: 'alert', text: error.message }));
        }
    };
    return [
        h('p', { class: 'advice', text: adviceWords(advice, query.want) }),
        !items.length && advice.other_placements.length > 0 && otherPlacements(advice.other_placements),
        ranked,
        h('p', {
            class: 'hint',
            text: restsOn(experiments, host),
        }),
        ranked && savedBy(ranked, advice, query),
        settle &&
            h(
                'p',
                { class: 'more' },
                h('button', {
                    type: 'button',
                    id: 'settle',
                    on: { click: settleIt },
                    text: ['Measure now', seconds !== null && duration(seconds)].filter(Boolean).join(', '),
                }),
            ),
    ];
}

/* Where the question's placement was not measured and others were: each is a press away. */
function otherPlacements(placements) {
    const select = $('ask-placement');
    const ask = (placement) => {
        select.value = placement;
        select.dispatchEvent(new Event('change'));
        select.focus();
    };
    const words = Object.fromEntries(QUESTION.placement);
    return h(
        'p',
        {},
        'Runs with another placement are stored: ',
        placements.map((one) => [
            h('button', { type: 'button', data: { placement: one }, on: { click: () => ask(one) } }, words[one]),
            ' ',
        ]),
    );
}

function restsOn({ used, other_environment: others }, host) {
    const leftOut = others ? `; ${others} of another environment are left out` : '';
    const where = host === null ? 'this host in its present environment' : `host ${host} in its newest environment`;
    return `From ${plural(used, 'experiment')} of ${where}${leftOut}. Bars: intervals; hollow: noisy, not steady or open.`;
}

/* A transport looks the same however it ranks: by its place among `transports`, those of this host. */
const looksOf = ({ point }, transports) => {
    const at = transports.indexOf(point.transport);
    return looks(at < 0 ? transports.length : at);
};

/* Ranked dots with their intervals; a list with age and noise beside each. */
function ranking(items, transports, format) {
    const label = mechanismsOf(items);
    const several = new Set(items.map(({ version }) => version)).size > 1;
    const most = Math.max(...items.map(({ value, interval }) => interval?.high ?? value)) * 1.05;
    const [width, height] = [220, 18];
    const x = (value) => 6 + (value / most) * (width - 12);
    return h(
        'ol',
        { class: 'ranked' },
        items.map((item) => {
            const style = looksOf(item, transports);
            const hollow = item.noisy || item.unsteady || item.standing === 'open';
            const notes = [
                REASONS[item.reason] ?? item.reason?.replaceAll('-', ' '),
                item.noisy && 'noisy',
                item.unsteady && 'not steady',
                item.not_observed && 'not observed',
                item.environment_changed && 'environment changed',
                item.neighbours_alike && 'neighbouring runs alike',
                item.repetitions_added > 0 && `${plural(item.repetitions_added, 'repetition')} added`,
                several && item.version && `ipclab ${item.version}`,
                `${duration(item.age_seconds)} ago`,
            ].filter(Boolean);
            return h(
                'li',
                { data: { standing: item.standing } },
                h('strong', { text: label(item) }),
                svg(
                    'svg',
                    {
                        class: `plot c${style.colour}`,
                        viewBox: `0 0 ${width} ${height}`,
                        width,
                        height,
                        'aria-hidden': 'true',
                    },
                    linearMarks(0, most, { most: 6 }).map((mark) =>
                        svg('line', { x1: x(mark), x2: x(mark), y1: 0, y2: height, class: 'grid' }),
                    ),
                    item.interval &&
                        svg('path', { d: `M${x(item.interval.low)} 9H${x(item.interval.high)}`, class: 'bar-line' }),
                    svg('path', { d: markPath(style, x(item.value), 9, 4.5), class: hollow ? 'mark hollow' : 'mark' }),
                ),
                h('span', { class: 'number', text: format(item.value) }),
                h(
                    'span',
                    { class: 'soft' },
                    h('a', { href: `#/experiments/${item.experiment_id}`, text: `experiment ${item.experiment_id}` }),
                    ` · ${notes.join(' · ')}`,
                ),
            );
        }),
    );
}

/* ---- places and presets ---- */

/** The machine as nested boxes: package, node, last cache, core. Two presses choose a placement. */
export function placesPanel({ nodes, cpus, caches = [] }) {
    const online = cpus.filter((cpu) => cpu.online !== false);
    const level = Math.max(0, ...caches.map((one) => one.level));
    const shared = caches.filter((one) => one.level === level);
    const picked = [];
    const foot = h(
        'p',
        { class: 'more', role: 'status' },
        h('span', { class: 'soft', text: 'Choose the sender’s CPU, then the receiver’s.' }),
    );
    const pick = (event, cpu) => {
        if (picked.length === 2) picked.length = 0;
        picked.push(cpu.id);
        element
            .querySelectorAll('.cpu')
            .forEach((one) => one.setAttribute('aria-pressed', picked.includes(Number(one.dataset.cpu))));
        const [from, to] = picked;
        const spec = { placement: { sender: { cpu: from }, receiver: { cpu: to } } };
        fill(
            foot,
            to === undefined
                ? h('span', { class: 'soft', text: `From CPU ${from}; now the receiver’s CPU.` })
                : h('a', {
                      class: 'button',
                      id: 'place',
                      href: `#/new?${new URLSearchParams({ spec: JSON.stringify(spec) })}`,
                      text: `Measure CPU ${from} → CPU ${to}`,
                  }),
        );
    };
    const cpuBox = (cpu) =>
        h(
            'button',
            {
                type: 'button',
                class: 'cpu',
                'aria-pressed': 'false',
                data: { cpu: cpu.id },
                on: { click: (event) => pick(event, cpu) },
            },
            `CPU ${cpu.id}`,
        );
    const coreBox = ([core, list]) => (list.length > 1 ? box(`core ${core}`, list.map(cpuBox)) : list.map(cpuBox));
    const cacheBox = ([index, list]) => {
        const cache = shared[index];
        const content = grouped(list, (cpu) => `${cpu.package}.${cpu.core}`).map(([key, some]) =>
            coreBox([key.split('.')[1], some]),
        );
        return cache ? box(`L${level} ${size(cache.size_bytes, true)}`, content) : content;
    };
    const nodeBox = ([id, list]) => {
        const node = nodes.find((one) => one.id === id);
        const words = `node ${id}${node?.memory_bytes ? ` · ${size(node.memory_bytes, true)}` : ''}`;
        return box(words, grouped(list, (cpu) => shared.findIndex((one) => one.cpus.includes(cpu.id))).map(cacheBox));
    };
    const element = h(
        'section',
        { class: 'panel', id: 'places', 'aria-labelledby': 'places-title' },
        h('h2', { id: 'places-title', text: 'Where its CPUs are' }),
        h(
            'div',
            { class: 'boxes' },
            grouped(online, (cpu) => cpu.package).map(([id, list]) =>
                box(`package ${id}`, grouped(list, (cpu) => cpu.node).map(nodeBox)),
            ),
        ),
        foot,
    );
    return element;
}

function grouped(list, key) {
    const groups = new Map();
    for (const one of list) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
    return [...groups];
}

const box = (title, content) =>
    h('div', { class: 'box' }, h('span', { class: 'box-title', text: title }), h('div', { class: 'boxes' }, content));

/* From here on the cards fit beside what comes before them, without hiding what comes after. */
const WIDE = '(min-width: 80rem)';

/** Presets as cards, which a wide screen has open. */
export const presetsPanel = (presets) =>
    h(
        'section',
        { class: 'panel', id: 'presets', 'aria-label': 'Presets' },
        h(
            'details',
            { open: matchMedia(WIDE).matches },
            h('summary', { text: 'Presets: studies to repeat' }),
            h('div', { class: 'preset-cards' }, presetCards(presets)),
        ),
    );
