// SPDX-License-Identifier: MIT
// The look of a series: a colour, a shape and a kind of line that follow from its identity, so that it is the same in
// neighbouring charts and no reader depends on the colour alone; and how it is drawn.

export const COLOURS = 8;

const TURN = Math.PI * 2;
const polygon =
    (...corners) =>
    (path, x, y, r) => {
        corners.forEach(([dx, dy], index) => path[index ? 'lineTo' : 'moveTo'](x + dx * r, y + dy * r));
        path.closePath();
    };

/* Shapes of about the same area, as paths around (x, y). */
const SHAPES = [
    (path, x, y, r) => {
        path.moveTo(x + r, y);
        path.arc(x, y, r, 0, TURN);
    },
    polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
    polygon([0, -1.25], [1.2, 0.9], [-1.2, 0.9]),
    polygon([0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]),
    polygon([0, 1.25], [1.2, -0.9], [-1.2, -0.9]),
    polygon([-0.4, -1.3], [0.4, -1.3], [0.4, 1.3], [-0.4, 1.3]),
    polygon([-1.3, -0.4], [1.3, -0.4], [1.3, 0.4], [-1.3, 0.4]),
    polygon([1.25, 0], [-0.9, -1.2], [-0.9, 1.2]),
];

/**
 * The looks of the series with number `slot`: {colour (1…8), shape, dash}. The second half of the colours has dashed
 * lines; `variant` 1 is another figure of the same thing, dotted.
 */
export function looks(slot, variant = 0) {
    const turn = Math.floor(slot / COLOURS);
    return {
        colour: ((slot + (variant * COLOURS) / 2) % COLOURS) + 1,
        shape: (slot + turn + variant * 3) % SHAPES.length,
        dash: variant ? [1.5, 3] : slot % COLOURS < COLOURS / 2 ? [] : [7, 4],
    };
}

/** One mark. */
export function drawMark(context, { shape }, x, y, radius) {
    context.beginPath();
    SHAPES[shape](context, x, y, radius);
    context.fill();
}

/** The same mark as the path of a drawing. */
export function markPath({ shape }, x, y, radius) {
    let d = '';
    const at = (value) => Number(value.toFixed(2));
    const path = {
        moveTo: (px, py) => (d += `M${at(px)} ${at(py)}`),
        lineTo: (px, py) => (d += `L${at(px)} ${at(py)}`),
        closePath: () => (d += 'Z'),
        arc: (cx, cy, r) => (d += `A${r} ${r} 0 1 1 ${at(cx - r)} ${at(cy)}A${r} ${r} 0 1 1 ${at(cx + r)} ${at(cy)}Z`),
    };
    SHAPES[shape](path, x, y, radius);
    return d;
}

/** A line through the places [[x, y] or null]; null ends it, and what stands alone has no line. */
export function drawLine(context, { dash }, places, scale) {
    context.setLineDash(dash.map((length) => length * scale));
    context.beginPath();
    let open = false;
    for (const place of places) {
        if (place) context[open ? 'lineTo' : 'moveTo'](...place);
        open = Boolean(place);
    }
    context.stroke();
    context.setLineDash([]);
}

/** A range from (x, low) to (x, high), with caps. */
export function drawWhisker(context, x, low, high, cap) {
    context.beginPath();
    for (const y of [low, high]) {
        context.moveTo(x - cap, y);
        context.lineTo(x + cap, y);
    }
    context.moveTo(x, low);
    context.lineTo(x, high);
    context.stroke();
}

/** The series' line and mark in a canvas of the legend. */
export function drawSwatch(canvas, style, colour) {
    const context = canvas.getContext('2d');
    const { width, height } = canvas;
    context.clearRect(0, 0, width, height);
    Object.assign(context, { strokeStyle: colour, fillStyle: colour, lineWidth: 3.5 });
    drawLine(
        context,
        style,
        [
            [0, height / 2],
            [width, height / 2],
        ],
        2,
    );
    drawMark(context, style, width / 2, height / 2, height / 3.2);
}
