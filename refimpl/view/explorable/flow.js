/** From one state of the picture to the next with continuity: every op moves from where it is, what is new fades in, what is gone fades out. */
import { clamp, ease, lerp } from "../shared/dom.js";
import { beatOps } from "../model/accounts.js";

const TWEEN_MS = 480;

/** The window at rest: it covers the slowest variant, so blocks move and the axis does not; a narrow one shows step 1, and each shows the forced pair. @param {any} t the timeline */
export function rest({ f, S, M, all, spec }) {
	const { L } = f, models = [...all.values()], per = Math.max(...models.map((m) => m.acc.step)), first = beatOps(M.c, spec.step_op);
	if (!M.acc.perStep) return { t0: 0, span: Math.max(M.end, ...models.map((m) => m.end)) * 1.04 };
	const at = M.ops[(first[1] ?? first[0]).i];
	const w = L.narrow ? { t0: at.start - per * 0.55, span: per * 1.5 } : { t0: 0, span: M.ops[first[0].i].start + per * clamp(L.width / 330, 1.6, 3.08) + per / 20 };
	return { t0: Math.max(0, S.forced && M.race ? atPair(M, w) : w.t0), span: w.span };
}
/** Where a window begins that shows the start of what runs too early, and if it can its end and the op that it runs ahead of. */
function atPair({ ops, race }, { t0, span }) {
	const a = ops[race.a], b = ops[race.b];
	return Math.min(b.start - span * 0.15, Math.max(Math.max(a.start, b.end) - span * 0.85, t0));
}

/** The window that the picture goes to: where the reader has put it, else the one at rest. @param {any} t the timeline */
export function ahead(t) {
	const { S } = t, w = S.dragging || S.free ? S : rest(t);
	return { t0: S.scrubbed || S.sel.length ? S.t0 : w.t0, span: w.span };
}

/** @param {any} t the timeline @param {boolean} smooth */
export function flow(t, smooth) {
	const { f, S, M } = t, moves = [], next = new Map(M.ops.map((o) => [o.id, { ...o, alpha: 1 }])), left = (v) => ({ ...v, alpha: 0, ...(v.kind === "sync" && { end: v.start }) });
	for (const [id, to] of next) moves.push([f.live.get(id) ?? left(to), to]);
	for (const [id, v] of f.live) if (!next.has(id) && v.alpha) moves.push([v, left(v)]);
	const from = { t0: S.t0, span: S.span }, { t0, span } = ahead(t);
	const begin = performance.now(), dur = smooth && !t.still.matches ? TWEEN_MS : 0;
	cancelAnimationFrame(t.raf);
	const frame = (now) => {
		const at = dur ? clamp((now - begin) / dur, 0, 1) : 1, e = ease(at);
		f.live = new Map();
		for (const [a, b] of moves) if (at < 1 || b.alpha) f.live.set(b.id, { ...b, start: lerp(a.start, b.start, e), end: lerp(a.end, b.end, e), ready: lerp(a.ready, b.ready, e), alpha: lerp(a.alpha, b.alpha, e) });
		if (!S.free) Object.assign(S, { t0: lerp(from.t0, t0, e), span: lerp(from.span, span, e) });
		t.draw(at === 1);
		if (at < 1) t.raf = requestAnimationFrame(frame);
	};
	frame(begin);
}
