// SPDX-License-Identifier: MIT
// Facts in a list of terms, and what stands in the place of a figure that is not there.

import { h } from './dom.js';
import { DASH } from './format.js';

/** [[term, value]] as a list; a value is a text or an element. */
export const factList = (facts) =>
    h(
        'dl',
        { class: 'facts' },
        facts.map(([term, value]) => [h('dt', { text: term }), h('dd', {}, value ?? DASH)]),
    );

/** A short word in a figure's place that opens to the reason. */
export const folded = (word, why) =>
    h('details', { class: 'folded soft' }, h('summary', { text: word }), why);

/** A dash with the reason why there is no figure. */
export const absent = (why) =>
    h('abbr', { class: 'none', title: why }, DASH, h('span', { class: 'sr', text: ` (${why})` }));
