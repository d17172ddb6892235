/**
 * An explorable solved: for each variant its order (once) and its times (again at each change of a duration).
 *
 * @typedef {{id: string, label: string, words?: string, program: any}} Variant
 * @typedef {{id: string, title: string, words?: string, variants: Variant[], params: Object<string, {label: string, us: number, min: number, max: number, step: number}>,
 *   initial: string, before: string, topic: string[], hero: string, step_op?: string, ask?: [string, string], plain: boolean,
 *   sliders?: string[], caption?: string, alt?: string, choice?: string}} Explorable   sliders: order of the parameters; choice: what the variants are, "Fence" if left out
 */
import { applyEdits, fenceFamilies } from "./edit.js";
import { compile, HOST, stem } from "../model/lower.js";
import { clocks, distinct, explainOrder, isWork, races } from "../model/order.js";
import { forceBadOrder, goesWrong, schedule, wrongReads } from "../model/schedule.js";
import { account, gaps } from "../model/accounts.js";

/** Edges that are drawn as arrows between lanes. */
const FEET = new Set(["event", "value", "sync", "legacy"]);

/** What has a body of its own in a lane: work, a host that is held, a stream that is held for good. */
export const isBlock = (o) => (isWork(o) && !o.never && !(o.implicit && o.end === o.start)) || o.kind === "sync" || (o.never && o.kind === "wait" && o.end > o.start);

/** An explorable with nothing left out; a plain program becomes one of a single variant. @param {any} spec @returns {Explorable} */
export function complete(spec) {
	const plain = !spec.variants, variants = spec.variants ?? [{ id: "program", label: spec.id ?? "program", words: spec.words, program: spec }];
	const ids = variants.map((v) => v.id), params = spec.params ?? {};
	return { words: "", topic: [], hero: "forward", ...spec, plain, params, variants: variants.map((v) => ({ ...v, program: timed(v.program, params) })),
		title: spec.title || spec.id || "Stream program", initial: spec.initial ?? ids[0], before: spec.before ?? ids[0] };
}
/** The program with the durations that its parameters give. */
function timed(program, params) {
	return { ...program, ops: program.ops.map((o) => (o.param !== undefined && params[o.param] ? { ...o, us: params[o.param].us } : o)) };
}

/** What does not depend on durations. @param {any} program @param {string} hero */
export function structure(program, hero) {
	const c = compile(program), V = clocks(c), near = races(c, V), work = (lane) => c.ops.reduce((x, o) => x + (o.lane === lane && o.kind === "run" ? o.us : 0), 0);
	const main = c.lanes.includes(hero) ? hero : c.lanes.filter((l) => l !== HOST).sort((p, q) => work(q) - work(p))[0] ?? HOST;
	return { c, V, near, shown: onePerRun(c, near), families: distinct(c, near), hero: main, at: new Map(c.ops.map((o) => [o.id, o.i])) };
}
/**
 * The same under the reader's edits. Ops keep the ids that they have in the program as given, so that lanes re-flow; `keys` are of the ops of the new
 * program, `list` holds all in issue order, also those that are off.
 * @param {any} given the structure of the program as given @param {any} program @param {import("./edit.js").Edit[]} edits @param {string} hero
 */
export function edited(given, program, edits, hero) {
	const made = applyEdits(program, edits);
	if (!edits.length) return { ...given, ...made, fences: fenceFamilies(made.list) };
	const s = structure(made.program, hero), ids = new Map(), seen = new Map();
	for (const o of given.c.ops) ids.set(String(o.src), [...(ids.get(String(o.src)) ?? []), o.id]);
	for (const o of s.c.ops) {
		const key = made.keys[o.src], k = seen.get(key) ?? 0;
		seen.set(key, k + 1);
		o.id = ids.get(key)?.[k] ?? `new ${key} ${k}`;
	}
	return { ...s, ...made, at: new Map(s.c.ops.map((o) => [o.id, o.i])), fences: fenceFamilies(made.list) };
}
/** Of the races of one op with one lane, buffer and kind, the nearest. */
function onePerRun(c, rs) {
	const best = new Map();
	for (const r of rs) {
		const key = `${r.b} ${c.ops[r.a].lane} ${r.range.buf} ${r.kind}`;
		if (!best.has(key) || best.get(key).a < r.a) best.set(key, r);
	}
	return [...best.values()];
}

/** The race that a picture spells out and that F forces: of step 1 if there is one, since step 0 has nothing before it. */
const mainRace = ({ c, shown, families }) => shown.find((r) => c.ops[r.a].step === 1) ?? families[0];

/** Times, idle pieces and accounts of a structure under given durations. @param {any} s @param {Map<string, number>} us @param {Explorable} spec @param {boolean} [force] */
export function solve(s, us, spec, force = false) {
	const { c } = s, free = schedule(c, { us }), race = mainRace(s), forced = force && race ? forceBadOrder(c, race, us) : null, T = forced ? forced.T : free;
	const feet = (o) => o.after.filter((e) => FEET.has(e.kind) && c.ops[e.from].lane !== o.lane).map((e) => ({ id: c.ops[e.from].id, kind: e.kind }));
	const ops = c.ops.map((o) => ({ ...o, ...T[o.i], feet: feet(o), graphId: c.ops[o.graph ?? -1]?.id, never: c.never.has(o.i) }));
	const idle = gaps(c, T).filter((g) => !(forced?.stalled && g.why === "host" && g.before === race.a));
	return { ...s, T, ops, race, forced, gaps: idle, acc: account(c, free, { stepOp: spec.step_op, hero: s.hero }), wrong: wrongReads(c, T, s.near), bad: Boolean(race) && goesWrong(c, T, race), end: Math.max(1, ...T.map((t) => t.end)) };
}

/** Two ops between which a fence is missing and can be put: unordered, with a byte at stake, the first on a stream. @param {any} M @param {number} p @param {number} q @returns {[number, number] | null} */
export function missingFence(M, p, q) {
	const x = explainOrder(M.c, p, q, M.V), lanes = [M.ops[x.a].lane, M.ops[x.b].lane], keys = [x.a, x.b].map((i) => M.keys[M.ops[i].src]);
	const unfit = lanes[0] === HOST || lanes.some((l) => /^(agent |legacy \d)/.test(l)) || keys[0] === keys[1] || keys.some((k) => !/^\d+$/.test(k));
	return x.ordered || !x.conflicts.length || unfit || M.ops[x.a].never || M.ops[x.b].never ? null : [x.a, x.b];
}
/** The pairs of keys that race as these two do, in each step; of the firsts for one second, the latest. @param {any} M @param {[number, number]} pair @returns {[string, string][]} */
export function sameRaces(M, [p, q]) {
	const like = (i, j) => M.ops[i].lane === M.ops[j].lane && stem(M.ops[i].name) === stem(M.ops[j].name), key = (i) => M.keys[M.ops[i].src], out = new Map([[key(q), p]]);
	for (const r of M.near) if (like(r.a, p) && like(r.b, q) && r.a > (out.get(key(r.b)) ?? -1)) out.set(key(r.b), r.a);
	return [...out].map(([b, a]) => /** @type {[string, string]} */ ([key(a), b])).filter(([a, b]) => a !== b);
}

/** Bounds of a draggable duration: a parameter's own, or generous ones around what the program says. @param {Explorable} spec @param {any} op @param {number} us */
export function bounds(spec, op, us) {
	const p = spec.params[op.key];
	return p ? { min: p.min, max: p.max, us: p.us } : { min: 0, max: Math.max(100, us * 10), us };
}

/**
 * The pair of ops whose order is worth asking for: the one that the explorable names, else a race of any variant.
 * @param {Explorable} spec @param {any[]} structures @returns {[string, string] | null} ids
 */
export function question(spec, structures) {
	for (const s of structures) {
		const named = (spec.ask ?? []).map((n) => s.c.ops.find((o) => isWork(o) && o.name === n)?.id);
		if (named.length === 2 && named.every(Boolean)) return /** @type {[string, string]} */ (named);
	}
	for (const s of structures) {
		const r = mainRace(s);
		if (r && r.a !== r.b) return [s.c.ops[r.a].id, s.c.ops[r.b].id];
	}
	return null;
}

/** Same-stream edges through a graph's begin and end made one: they are ours, not the program's. @param {import("../model/lower.js").Compiled} c @param {import("../model/lower.js").Edge[]} path */
export function readable(c, path) {
	/** @type {import("../model/lower.js").Edge[]} */ const out = [];
	for (const e of path) {
		const last = out[out.length - 1], joint = last && c.ops[last.to];
		if (joint && (joint.kind === "begin" || joint.kind === "end") && last.kind !== "submit") out[out.length - 1] = { from: last.from, to: e.to, kind: joint.lane === c.ops[last.from].lane ? e.kind : last.kind };
		else if (joint && joint.kind === "begin") out[out.length - 1] = { from: last.from, to: e.to, kind: "submit" };
		else out.push(e);
	}
	return out;
}
