/** What drawing on a canvas needs: sharp pixels, the theme's colours, hatches, bars, arrows and text. */
import { largest, measure } from "../shared/dom.js";

const NAMED = ["host", "schedule", "plan", "forward", "copy"], OTHERS = 5, THEME = ["bg", "ink", "mute", "line", "surf", "rim", ...NAMED, "other1", "other2", "other3", "other4", "other5"];
const FAMILY = 'system-ui,-apple-system,"Segoe UI",sans-serif', DARK = "#10161c";
export const font = (px = 12, weight = 400) => `${weight} ${px}px ${FAMILY}`;

/** The colours of the theme as the browser computes them. @param {HTMLElement} root @returns {Object<string, string>} */
export function paletteOf(root) {
	const probe = root.appendChild(document.createElement("span")), out = {};
	for (const name of THEME) { probe.style.color = `var(--tl-${name})`; out[name] = getComputedStyle(probe).color; }
	probe.remove();
	return out;
}
/** A lane's colour: its own, the host's for a thread, else the next of the others. @param {string[]} lanes @param {(lane: string) => boolean} isHost @returns {Map<string, string>} names of the palette */
export function coloursOf(lanes, isHost) {
	const out = new Map(), others = new Map();
	for (const lane of lanes) {
		const own = lane.replace(/^GPU \S+ /, "");
		if (!isHost(lane) && !NAMED.includes(own) && !others.has(own)) others.set(own, `other${(others.size % OTHERS) + 1}`);
		out.set(lane, isHost(lane) ? "host" : NAMED.includes(own) ? own : others.get(own));
	}
	return out;
}
/** @param {string} colour of the palette */
export const textOn = (colour) => (colour === "host" || colour === "forward" ? "#fff" : DARK);

/** Browsers leave a canvas blank whose sides are longer. */
const MOST_PX = 16384;
/** A canvas with one unit a CSS pixel. Its context, cleared. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function sized(canvas, width, height) {
	const dpr = Math.min(window.devicePixelRatio || 1, MOST_PX / Math.max(width, height, 1)), w = Math.round(width * dpr), h = Math.round(height * dpr), ctx = canvas.getContext("2d");
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.height = `${height}px`;
	}
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.clearRect(0, 0, width, height);
	return ctx;
}
/** Diagonal lines of a colour, as a fill. @param {CanvasRenderingContext2D} ctx @param {string} colour */
export function hatch(ctx, colour) {
	const size = 6, dpr = window.devicePixelRatio || 1, tile = document.createElement("canvas");
	tile.width = tile.height = Math.round(size * dpr);
	const pen = tile.getContext("2d"), scale = tile.width / size;
	pen.scale(scale, scale);
	pen.strokeStyle = colour;
	pen.lineWidth = 1.7;
	pen.beginPath();
	for (const d of [-size, 0, size]) { pen.moveTo(d - 1, size + 1); pen.lineTo(d + size + 1, -1); }
	pen.stroke();
	const pattern = ctx.createPattern(tile, "repeat");
	pattern.setTransform(new DOMMatrix().scale(1 / scale));
	return pattern;
}
/** A bar whose corners are round where it is wide enough. @param {CanvasRenderingContext2D} ctx @param {number} x @param {number} y @param {number} w @param {number} h */
export function barPath(ctx, x, y, w, h) {
	ctx.beginPath();
	ctx.roundRect(x, y, w, h, Math.min(4, w / 3, h / 3));
}
/** A text, with what is behind it held off where asked. */
export function write(ctx, text, x, y, colour, { px = 12, weight = 400, align = "left", halo = "" } = {}) {
	ctx.font = font(px, weight);
	ctx.textAlign = /** @type {CanvasTextAlign} */ (align);
	if (halo) {
		ctx.strokeStyle = halo;
		ctx.lineWidth = 4;
		ctx.lineJoin = "round";
		ctx.strokeText(text, x, y);
	}
	ctx.fillStyle = colour;
	ctx.fillText(text, x, y);
}
/** A name without its middle where it is too long: names of streams differ at their ends. @param {string} name @param {number} width */
export function shortName(name, width) {
	if (measure(name, 12, 650) <= width) return name;
	const cut = (keep) => `${name.slice(0, keep)}…${name.slice(-keep)}`, keep = largest(1, name.length >> 1, (k) => measure(cut(k), 12, 650) <= width);
	return keep > 0 ? cut(keep) : "…";
}
