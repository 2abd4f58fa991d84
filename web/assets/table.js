// SPDX-License-Identifier: MIT
// Tables, and a reader's operations on them: sort by a column, hide columns, copy. The first two are stored in the
// address.

import { chosen, choose } from './address.js';
import { $, h, setText } from './dom.js';

const SORT = 'sort';
const WITHOUT = 'without';
const APART = ','; /* between the titles of the columns left out */

const titleOf = (head) => head.firstChild?.textContent ?? '';
const headsOf = (table) => [...table.tHead.rows[0].cells];
const without = () => new Set((chosen(WITHOUT) ?? '').split(APART).filter(Boolean));

/**
 * A table in a region of its own, which scrolls. `heads` are titles or cells, `rows` are elements; `kind` is the class
 * of the table ("cards": rows are drawn as cards on a narrow screen, each cell with its data-title).
 */
export const tableOf = (label, heads, rows, { id, kind = 'cards' } = {}) =>
    h(
        'div',
        { class: 'table', id, tabindex: '0', role: 'region', 'aria-label': label },
        h('table', { class: kind }, headOf(heads), h('tbody', {}, rows)),
    );

/** The head of a table, of titles or cells. */
export const headOf = (heads) =>
    h(
        'thead',
        {},
        h(
            'tr',
            {},
            heads.map((head) => (typeof head === 'string' ? h('th', { scope: 'col', text: head }) : head)),
        ),
    );

/** {title, falling} of the address; null: the rows stand in the order of the points. */
function order() {
    const wanted = chosen(SORT);
    return wanted && { title: wanted.replace(/^-/, ''), falling: wanted.startsWith('-') };
}

/** The rows in the order of the address; `values` has the sort key of a row by the column's title. Rows without a value
 * come last either way. */
export function sorted(rows, values) {
    const wanted = order();
    const valueOf = wanted && values.get(wanted.title);
    if (!valueOf) return rows;
    const sign = wanted.falling ? -1 : 1;
    const missing = (value) => value === null || value === undefined;
    return rows
        .map((row) => [valueOf(row), row])
        .sort(([a], [b]) => {
            if (missing(a) || missing(b)) return missing(a) - missing(b);
            return sign * (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b)));
        })
        .map(([, row]) => row);
}

/** Makes the heads that are in `values` sort by a press, and takes the columns out that are not wanted. */
export function equip(table, values, changed) {
    const wanted = order();
    const hidden = without();
    const gone = [];
    headsOf(table).forEach((head, at) => {
        const title = titleOf(head);
        if (hidden.has(title)) gone.push(at);
        if (!values.has(title)) return;
        const by = wanted?.title === title;
        if (by) head.setAttribute('aria-sort', wanted.falling ? 'descending' : 'ascending');
        const press = () => {
            choose({ [SORT]: by ? (wanted.falling ? null : `-${title}`) : title });
            changed();
        };
        head.firstChild.replaceWith(h('button', { type: 'button', class: 'sort', on: { click: press } }, title));
    });
    for (const row of table.rows) [...gone].reverse().forEach((at) => row.cells[at]?.remove());
    return table;
}

/** The choice of columns, folded away; the first is always shown. */
export function columnChoice(titles, changed) {
    const hidden = without();
    const toggle = (title) => () => {
        if (!hidden.delete(title)) hidden.add(title);
        choose({ [WITHOUT]: [...hidden].join(APART) || null });
        changed();
    };
    return h(
        'details',
        { class: 'columns-choice' },
        h(
            'summary',
            {},
            'Columns',
            hidden.size > 0 && h('span', { class: 'soft', text: ` · ${hidden.size} left out` }),
        ),
        h(
            'div',
            { class: 'choices' },
            titles
                .slice(1)
                .map((title) =>
                    h(
                        'label',
                        { class: 'inline', data: { key: title } },
                        h('input', { type: 'checkbox', checked: !hidden.has(title), on: { change: toggle(title) } }),
                        ` ${title}`,
                    ),
                ),
        ),
    );
}

/* A cell's text, without the parts for screen readers. */
function wordsOf(cell) {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll('.sr').forEach((one) => one.remove());
    const unit = copy.querySelector('.unit');
    if (unit) unit.replaceWith(` (${unit.textContent})`);
    return [...copy.childNodes]
        .map((node) => node.textContent)
        .join(copy.querySelector('.flag') ? ' ' : '')
        .trim();
}

const linesOf = (table) => [...table.rows].map((row) => [...row.cells].map(wordsOf));

export const asTsv = (table) =>
    linesOf(table)
        .map((cells) => cells.map((words) => words.replace(/\s+/g, ' ')).join('\t'))
        .join('\n');

export function asMarkdown(table) {
    const [heads, ...lines] = linesOf(table).map((cells) => cells.map((words) => words.replaceAll('|', '\\|')));
    const rule = headsOf(table).map((head) => (head.classList.contains('number') ? '---:' : '---'));
    return [heads, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Buttons that copy the table that `table()` gives, whole. */
export function copyButtons(table) {
    const copier = (label, format) => {
        const copy = async () => {
            const lines = format(table());
            await copyText(lines);
            setText($('announcer'), `${lines.split('\n').length} lines were copied as ${label}.`);
        };
        return h('button', { type: 'button', class: 'quiet', on: { click: copy } }, `Copy ${label}`);
    };
    return h('span', { class: 'together' }, copier('TSV', asTsv), copier('Markdown', asMarkdown));
}

/** Puts a text on the clipboard, also where the page is not in a secure context, as on a lab's network. */
export async function copyText(text) {
    if (navigator.clipboard) {
        await navigator.clipboard.writeText(text);
        return;
    }
    const area = h('textarea', { class: 'sr', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
}
