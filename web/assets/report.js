// SPDX-License-Identifier: MIT
// The script inside a report: draws the experiment's charts, as the page does, from the JSON beside it.

import { $, h } from './dom.js';
import { Figure } from './chart/figure.js';
import { figuresOf } from './chart/figure-data.js';
import { limitsOf, settingsLine } from './settings.js';

const { experiment, results, runs, caches } = JSON.parse($('report-data').textContent);
const rows = results.items;

/* The first chart has the switches. The second is of another kind: how latencies are spread, else what a message
 * cost. */
function second(figures) {
    const [first, ...others] = figures;
    const kind = others.find(({ curve }) => curve) ?? others.find(({ key }) => key !== 'both-ways');
    return first && kind?.key;
}

function draw(options) {
    const figure = new Figure(() => settingsLine(experiment, results.provenance), options);
    $('charts').append(figure.element);
    figure.setLimits(limitsOf({ caches }, rows));
    figure.setRuns(runs.items);
    figure.update(rows);
}

if (rows.some((row) => row.runs > 0)) {
    const other = second(figuresOf(rows));
    draw({});
    if (other) draw({ id: 'second', fixed: { figure: other } });
} else {
    $('charts').append(h('p', { class: 'notice', text: 'No run is done: there is nothing to draw yet.' }));
}

/* Paper has the light scheme. */
for (const [event, printing] of [
    ['beforeprint', true],
    ['afterprint', false],
])
    addEventListener(event, () => document.documentElement.classList.toggle('printing', printing));
