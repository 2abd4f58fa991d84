// SPDX-License-Identifier: MIT
// The drawings of an experiment as one part of its view.

import { h } from '../dom.js';
import { Figure } from '../chart/figure.js';
import { HeatMap } from '../chart/heatmap.js';
import { limitsOf } from '../settings.js';
import { TimeLine } from '../chart/timeline.js';

/** The large chart, the map of pairs where there are pairs; and the time line, whose place is before the runs. */
export class Drawings {
    /** `settings()`: the line of settings that an exported picture carries. */
    constructor(topology, settings) {
        this.topology = topology;
        this.figure = new Figure(settings);
        this.heatMap = new HeatMap(topology, settings);
        this.timeLine = new TimeLine(settings);
        /* A choice in one of them may apply to the other, too. */
        const change = () => this.update(this.rows);
        this.element = h('div', { class: 'drawings', on: { change } }, this.heatMap.element, this.figure.element);
    }

    destroy() {
        this.figure.destroy();
        this.heatMap.destroy();
        this.timeLine.destroy();
    }

    update(rows) {
        this.rows = rows;
        this.figure.setLimits(limitsOf(this.topology, rows));
        this.figure.update(rows);
        this.heatMap.update(rows);
    }

    /** The runs that are known, of `total`. */
    setRuns(runs, total) {
        this.figure.setRuns(runs);
        this.timeLine.setRuns(runs, total);
    }

    /** Lets the marks of these rows stand out, and brings them into view; null: of none. */
    light(rows) {
        this.figure.light(rows);
        if (rows) this.figure.element.scrollIntoView({ block: 'nearest' });
    }
}
