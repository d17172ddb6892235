/**
 * The picture as a set of keyed groups, made once and moved every frame. All that is attached to an op is placed from the same interpolated times,
 * so that it moves with the op. What is drawn where: blocks.js (lanes, ops, steps, axis) and marks.js (arrows, gaps, hazards, paths).
 */
import { set, svgEl } from "../shared/dom.js";
import { HOST, stem } from "../model/lower.js";
import { ADDED } from "./edit.js";
import { drawAxis, drawLanes, drawOps, drawSteps } from "./blocks.js";
import { drawHazards, drawIdle, drawLinks, drawPath } from "./marks.js";

const NAMED = [HOST, "schedule", "plan", "forward", "copy"], OTHERS = 5;

export class Figure {
	/** @param {string} uid @param {any} spec @param {any} state the timeline's S @param {any} on handlers: born(el, op), grip(el, op), fence(el, op), gap(lane, event), leave(), now(event) */
	constructor(uid, spec, state, on) {
		Object.assign(this, { uid, spec, S: state, on, live: new Map(), taken: [], path: null, others: new Map(), pool: new Map(), tick: 0, still: matchMedia("(prefers-reduced-motion: reduce)") });
		this.svg = svgEl("svg", { role: "group", "aria-label": spec.alt ? `${spec.title}. ${spec.alt}` : spec.title });
		this.layer = {};
		const hatch = (id, color) => `<pattern id="${uid}${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M1 0v6" stroke="var(--tl-${color})" stroke-width="2"/></pattern>`;
		const defs = svgEl("defs"), plot = svgEl("g", { "clip-path": `url(#${uid}clip)` });
		defs.innerHTML = `${hatch("host", "rim")}${hatch("hz", "hz")}<clipPath id="${uid}clip"><rect y="-20"/></clipPath><linearGradient id="${uid}fade"><stop stop-color="var(--tl-bg)" stop-opacity="0"/><stop offset="1" stop-color="var(--tl-bg)"/></linearGradient>`;
		this.clip = defs.querySelector("clipPath rect");
		this.edge = svgEl("rect", { fill: `url(#${uid}fade)`, y: 0, "pointer-events": "none" });
		for (const n of ["bands", "steps", "faint", "ops", "links", "names", "handles", "hazards", "pills", "path", "grips"]) plot.append((this.layer[n] = svgEl("g", /bands|ops|grips|handles/.test(n) ? {} : { "pointer-events": "none" })));
		for (const n of ["frame", "axis", "now"]) this.layer[n] = svgEl("g", n === "now" ? { "pointer-events": "none" } : {});
		this.svg.append(defs, plot, this.edge, this.layer.frame, this.layer.axis, this.layer.now);
	}

	// ── where things are ──
	X(t) { return this.L.left + ((t - this.S.t0) / this.S.span) * this.L.width; }
	/** Where a pointer is, from the picture's left edge. */
	px(e) { return e.clientX - this.svg.getBoundingClientRect().left; }
	time(x) { return this.S.t0 + ((x - this.L.left) / this.L.width) * this.S.span; }
	row(lane) { return this.L.rows.get(lane); }
	rank(lane) { return this.lanes.indexOf(lane); }
	/** The box of an op: its lane's row, or its share of it where branches of a graph run side by side. */
	box(v) {
		const r = this.row(v.lane), n = v.slots ?? 1, h = r.h / n, y = r.y + h * (v.slot ?? 0);
		return n > 1 ? { y, h: h - 1, mid: y + h / 2, end: y + h - 1 } : r;
	}
	/** Whether a word may stand in this box: none that this frame has placed lies there. @param {{a: number, b: number, top: number, end: number}} s */
	free(s) { return !this.taken.some((t) => s.a < t.b && s.b > t.a && s.top < t.end && s.end > t.top); }
	seen(a, b = a) { return Math.max(a, b) > this.L.left - 12 && Math.min(a, b) < this.L.right + 12; }
	/** What runs past the right edge fades out: the loop goes on. */
	more() { return this.S.t0 + this.S.span < this.M.end; }

	// ── colours ──
	paint(lane) {
		if (NAMED.includes(lane)) return `var(--tl-${lane})`;
		if (!this.others.has(lane)) this.others.set(lane, (this.others.size % OTHERS) + 1);
		return `var(--tl-other${this.others.get(lane)})`;
	}
	textOn(lane) { return lane === HOST || lane === "forward" ? "#fff" : "#10161c"; }

	// ── what is special ──
	op(i) { return this.M.ops[i]; }
	isTopic(o) { return this.inHand.has(o.id) || stem(o.event ?? "") === ADDED || this.isNamed(o); }
	isNamed(o) { return this.spec.topic.length ? this.spec.topic.includes(stem(o.event ?? "")) : !o.implicit && !/^tail of /.test(o.event ?? "tail of "); }
	focused() {
		const el = document.activeElement;
		return this.S.hover || (el?.classList.contains("tl-op") && this.svg.contains(el) ? this.S.cursor : "");
	}

	// ── keyed groups ──
	group(key, parent, parts, born) {
		let g = this.pool.get(key);
		if (!g) {
			g = { el: svgEl("g") };
			for (const n in parts) g.el.append((g[n] = svgEl(...parts[n])));
			this.pool.set(key, g);
			parent.append(g.el);
			born?.(g);
		}
		g.tick = this.tick;
		return g;
	}

	/** One block is always a stop for Tab, also when the one in hand has moved out of sight. */
	keepReachable() {
		const blocks = [...this.layer.ops.children];
		if (blocks.length && !blocks.some((el) => el.getAttribute("tabindex") === "0")) blocks[0].setAttribute("tabindex", "0");
	}

	/** One frame. @param {boolean} settled hazards and gap words come after the lanes have come to rest */
	draw(settled) {
		const { L } = this;
		this.tick++;
		this.taken = [];
		set(this.svg, { viewBox: `0 0 ${L.full} ${L.height}`, height: L.height });
		set(this.clip, { x: L.left, width: L.width, height: L.height + 40 });
		set(this.edge, { x: L.right - L.fade, width: this.more() ? L.fade : 0, height: L.axis - 2 });
		if (settled) drawHazards(this); // first: the other words give way to the hazards'
		drawLanes(this);
		drawSteps(this);
		drawAxis(this);
		drawOps(this);
		drawIdle(this, settled);
		drawLinks(this);
		drawPath(this);
		for (const [k, g] of this.pool) if (g.tick !== this.tick) { g.el.remove(); this.pool.delete(k); }
		this.keepReachable();
	}
}
