// SPDX-License-Identifier: MIT
// The ranking of an advice as a picture: its rows, as they are on the first page, in one drawing.

import { svg } from '../dom.js';
import { WORDS, copied, exportButtons, widthOf } from '../chart/export.js';
import { time } from '../format.js';
import { machine } from '../machine.js';
import { status } from '../status.js';

const ROW = 26;
const GAP = 16;

/* Its columns: name, dots, figure, notes. */
function drawingOf(list) {
    const rows = [...list.children].map((row) =>
        ['strong', 'svg', '.number', '.soft'].map((part) => row.querySelector(part)),
    );
    const widest = (column) => Math.max(...rows.map((row) => widthOf(row[column].textContent, WORDS)));
    const dots = rows[0][1].viewBox.baseVal;
    const name = GAP;
    const plot = name + widest(0) + GAP;
    const figure = plot + dots.width + GAP;
    const notes = figure + widest(2) + GAP;
    const width = notes + widest(3) + GAP;
    const height = rows.length * ROW;
    return svg(
        'svg',
        { viewBox: `0 0 ${width} ${height}` },
        rows.map((row, at) => {
            const middle = (at + 0.5) * ROW;
            const text = (column, x) =>
                svg('text', {
                    x,
                    y: middle + 4,
                    fill: getComputedStyle(row[column]).color,
                    ...WORDS,
                    text: row[column].textContent,
                });
            return [
                text(0, name),
                copied(row[1], { x: plot, y: middle - dots.height / 2, width: dots.width, height: dots.height }),
                text(2, figure),
                text(3, notes),
            ];
        }),
    );
}

/* An advice is of this host as it is now, unless it names another. */
async function settingsOf(host) {
    const { hostname, kernel_release: kernel } = (await machine()).environment;
    const here = { host: hostname, kernel, ipclab: status.health?.version };
    const known = Object.entries(host === null ? here : { host }).filter(([, value]) => value);
    return [time(new Date(), new Date(0)), ...known.map((pair) => pair.join(' '))].join(' · ');
}

/** Buttons that save the ranking in `list` of an advice about `host`; null: this one. */
export const rankedButtons = ({ list, title, words, host }) =>
    exportButtons({
        title: () => title,
        drawing: () => drawingOf(list),
        words: async () => [...words, await settingsOf(host)],
    });
