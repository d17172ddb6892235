/**
 * Drawing without a library: elements, text that fits, arrows and lane rows. What can be is a pure function, so that it is tested without pixels.
 * This folder holds what more than one view needs: this, state in the address, and the look (timeline.css).
 */

export const lerp = (a, b, t) => a + (b - a) * t;
export const ease = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);
export const clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));

/** Text into HTML. @param {any} text */
export const esc = (text) => String(text).replace(/[&<>"]/g, (x) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[x]);

/** An HTML element with properties, attributes and children. */
export function html(tag, props = {}, kids = []) {
	const el = document.createElement(tag);
	for (const [k, v] of Object.entries(props)) k in el ? (el[k] = v) : el.setAttribute(k, v);
	el.append(...kids);
	return el;
}
/** Set only the attributes that changed: most frames change few. */
export function set(el, attrs) {
	for (const k in attrs) {
		const v = typeof attrs[k] === "number" ? +attrs[k].toFixed(2) : attrs[k];
		if (k === "text") { if (el.textContent !== v) el.textContent = v; } else if (el.getAttribute(k) !== String(v)) el.setAttribute(k, v);
	}
	return el;
}
export const svgEl = (tag, attrs = {}) => set(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs);

/** Parts of keyed groups, as [tag, attributes]. */
export const line = (stroke, w, more) => ["path", { fill: "none", stroke: `var(--tl-${stroke})`, "stroke-width": w, ...more }];
export const text = (cls, anchor = "start") => ["text", { class: cls, "text-anchor": anchor }];
export const plate = ["rect", { class: "bg", rx: 4, height: 17 }];

const widths = new Map(), REMEMBERED = 200;
/** @type {any} */ let pen = null;
/** Width of a text in the interface font, remembered unless the text is long. */
export function measure(text, px = 12, weight = 400) {
	const key = text.length > REMEMBERED ? "" : weight + px + text, known = widths.get(key);
	if (known !== undefined) return known;
	pen ??= document.createElement("canvas").getContext("2d");
	pen.font = `${weight} ${px}px system-ui,-apple-system,"Segoe UI",sans-serif`;
	const width = pen.measureText(text).width + 1;
	if (key) widths.set(key, width);
	return width;
}
/** The largest of the whole numbers from `low` to `high` that fits, where all below it fit too; less than `low` for none. @param {number} low @param {number} high @param {(k: number) => boolean} fits */
export function largest(low, high, fits) {
	let below = low - 1, above = high + 1;
	while (above - below > 1) {
		const k = (below + above) >> 1;
		if (fits(k)) below = k; else above = k;
	}
	return below;
}
/** The first of several wordings that fits, else the last one cut, else nothing. @param {string[]} texts @param {number} width @param {(t: string) => number} [size] */
export function fitLabel(texts, width, size = measure) {
	for (const t of texts) if (size(t) <= width) return t;
	const last = texts[texts.length - 1], least = Math.max(4, Math.ceil(last.length * 0.6)), cut = (k) => `${last.slice(0, k)}…`;
	const keep = last.length > least ? largest(least, last.length - 1, (k) => size(cut(k)) <= width) : 0;
	return keep >= least ? cut(keep) : "";
}
/** Vertical tangents at both ends, so an arrow leaves and enters its lane at a right angle. @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
export function arrowPath(x0, y0, x1, y1) {
	const k = Math.sign(y1 - y0) * Math.max(10, Math.abs(y1 - y0) * 0.55), f = (v) => +v.toFixed(1);
	return `M${f(x0)},${f(y0)}C${f(x0)},${f(y0 + k)} ${f(x1)},${f(y1 - k)} ${f(x1)},${f(y1)}`;
}
const THUMB = 16;
/** Lane rows and plot box for a width: at both ends of the plot half the time slider's thumb fits beside it, so that the thumb stands under the time that it shows. Room for step rows only where there are steps. @param {number} width @param {string[]} lanes @param {string} hero @param {boolean} [steps] */
export function layout(width, lanes, hero, steps = true) {
	const narrow = width < 620, left = narrow ? THUMB / 2 : 128, right = width - THUMB / 2, rows = new Map();
	let y = narrow ? 20 : 8;
	for (const lane of lanes) {
		const h = lane === hero ? 34 : 25;
		rows.set(lane, { y, h, mid: y + h / 2, end: y + h });
		y += h + (narrow ? 28 : 26);
	}
	const axis = steps ? y + 38 : y - 2;
	return { narrow, left, right, full: width, fade: narrow ? 16 : 36, width: right - left, rows, steps: y, axis, height: axis + 24 };
}

/** How times are written in a picture of this length: milliseconds, or microseconds for a short one. @param {number} span in microseconds */
export function units(span) {
	const unit = span < 2000 ? "µs" : "ms", num = (us) => (unit === "ms" ? (us / 1000).toFixed(2) : String(Math.round(us)));
	return { unit, num, text: (us) => `${num(us)} ${unit}` };
}
/** The step between axis ticks. @param {number} span @param {number} width */
export function tickStep(span, width) {
	for (let d = 1; ; d *= 10) for (const k of [1, 2, 5]) if (((d * k) / span) * width >= 56) return d * k;
}
