/**
 * Where the time goes: idle pieces of a lane with their causes, the chain of blame behind a gap, and steady-state accounts per step.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./schedule.js").Span} Span
 * @typedef {{lane: string, from: number, to: number, why: "host"|"event"|"drained", before: number|null, wait?: number, record?: number}} Gap
 */
import { HOST, stem } from "./lower.js";
import { isWork } from "./order.js";

/** The record, write or op whose end a wait or synchronize stood for, if it stood for one. @param {import("./lower.js").Op} op */
export const awaited = (op) => op.writers?.[0] ?? op.after.find((e) => e.kind === "event" || e.kind === "value" || e.kind === "sync")?.from;

const byStart = (T) => (p, q) => T[p.i].start - T[q.i].start || p.i - q.i;

/** Why each stream stands idle, piece by piece. @param {Compiled} c @param {Span[]} T @returns {Gap[]} */
export function gaps(c, T) {
	/** @type {Gap[]} */ const out = [];
	const end = Math.max(0, ...T.map((t) => t.end));
	for (const lane of c.lanes.filter((l) => l !== HOST && !l.startsWith("agent "))) {
		let at = 0;
		const piece = (to, g) => {
			const l = out[out.length - 1];
			if (to - at > 1e-6) {
				if (l && l.lane === lane && l.to === at && l.why === g.why && l.wait === g.wait) { l.to = to; l.before = g.before; }
				else out.push({ lane, from: at, to, ...g });
			}
			at = Math.max(at, to);
		};
		const ops = c.ops.filter((o) => o.lane === lane).sort(byStart(T)), nexts = ops.map(() => null), drained = "drained";
		for (let k = ops.length - 1; k >= 0; k--) nexts[k] = ops[k].kind === "run" ? ops[k].i : nexts[k + 1] ?? null;
		ops.forEach((op, k) => {
			const next = nexts[k];
			piece(T[op.i].start, { why: next === null ? drained : "host", before: next });
			if (op.kind === "wait") piece(T[op.i].end, { why: next === null ? drained : "event", before: next, wait: op.i, record: awaited(op) });
			at = Math.max(at, T[op.i].end);
		});
		piece(end, { why: "drained", before: null });
	}
	return out;
}

/** What an op waited for between its call and its start. @param {Compiled} c @param {Span[]} T @param {number} i */
export function waitedFor(c, T, i) {
	const me = c.ops[i], out = [];
	for (const p of c.ops.slice(0, i)) {
		if (p.lane !== me.lane || p.lane === HOST || !(p.kind === "run" || p.kind === "wait")) continue;
		const us = Math.min(T[p.i].end, T[i].start) - Math.max(T[p.i].start, T[i].ready);
		if (us > 1e-6) out.push(p.kind === "wait" ? { why: "event", op: awaited(p) ?? p.i, us } : { why: "stream", op: p.i, us });
	}
	return out;
}

/** What the host was mostly doing in an interval. @param {Compiled} c @param {Span[]} T @param {number} from @param {number} to @returns {number|null} */
export function hostDuring(c, T, from, to) {
	const us = (o) => Math.min(T[o.i].end, to) - Math.max(T[o.i].start, from);
	return c.ops.filter((o) => o.lane === HOST && us(o) > 0).sort((p, q) => us(q) - us(p))[0]?.i ?? null;
}

/**
 * The chain behind a gap, back to what was running when it opened: what the lane waits for, what that waited for, and so on.
 * @param {Compiled} c @param {Span[]} T @param {Gap} g
 */
export function blame(c, T, g) {
	const out = [], prev = (i, ok) => c.ops.filter((o) => o.i < i && o.lane === c.ops[i].lane && ok(o)).pop();
	if (g.why === "host") {
		const op = hostDuring(c, T, g.from, g.to);
		if (op === null) return out;
		out.push({ why: c.ops[op].kind === "sync" ? "sync" : "host", op });
		const held = prev(op, (o) => o.kind === "sync" && T[o.i].end > T[o.i].start && T[o.i].end >= g.from - 1);
		if (held) out.push({ why: "sync", op: held.i });
	}
	for (let r = g.why === "event" ? g.record : undefined; r !== undefined && out.length < 6;) {
		if (!c.ops[r].implicit) { out.push({ why: "event", op: r }); break; }
		const p = prev(r, (o) => o.kind === "run" || (o.kind === "wait" && T[o.i].end > T[o.i].start));
		if (!p) break;
		if (p.kind === "run") out.push({ why: "run", op: p.i });
		if (T[p.i].end <= g.from) break;
		const w = p.kind === "wait" ? p : prev(p.i, (o) => o.kind === "wait" && T[o.i].end >= T[p.i].start && T[o.i].end > T[o.i].start);
		r = w && awaited(w);
		if (w && T[w.i].end < g.from - 1e-6) break;
	}
	return out;
}

/** The ops whose starts mark the steps: those of the family `stepOp`, else none. @param {Compiled} c @param {string} [stepOp] */
export const beatOps = (c, stepOp) => (stepOp ? c.ops.filter((o) => isWork(o) && stem(o.name) === stepOp) : []);

/**
 * Accounts per step in the steady state, warm-up left out where there are steps enough; else of the whole run. `hero` is the main stream.
 * @param {Compiled} c @param {Span[]} T @param {{stepOp?: string, hero?: string}} [options]
 */
export function account(c, T, { stepOp, hero } = {}) {
	const beats = beatOps(c, stepOp).map((o) => T[o.i].start), perStep = beats.length > 2, skip = Math.max(0, Math.min(2, beats.length - 3));
	const from = perStep ? beats[skip] : 0, to = perStep ? beats[beats.length - 1] : Math.max(1e-9, ...T.map((t) => t.end)), steps = perStep ? beats.length - 1 - skip : 1;
	/** @type {Object<string, number>} */ const blockedBy = {};
	for (const o of c.ops) if (o.kind === "sync") {
		const us = Math.min(T[o.i].end, to) - Math.max(T[o.i].start, from);
		if (us > 0) { const e = stem(o.event.replace(/^tail of /, "")); blockedBy[e] = (blockedBy[e] ?? 0) + us / steps; }
	}
	const idle = (ops) => {
		let covered = 0, at = from;
		for (const { start, end } of ops.filter((o) => o.kind === "run").map((o) => T[o.i]).sort((p, q) => p.start - q.start)) {
			covered += Math.max(0, Math.min(end, to) - Math.max(start, at));
			at = Math.max(at, end);
		}
		return 1 - covered / (to - from);
	};
	return {
		step: (to - from) / steps, perStep, beats, blockedBy, blocked: Object.values(blockedBy).reduce((x, y) => x + y, 0),
		idle: idle(c.ops), heroIdle: idle(c.ops.filter((o) => o.lane === hero)),
	};
}
