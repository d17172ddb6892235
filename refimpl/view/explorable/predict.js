/**
 * Predict first: a question whose answer the model computes from the program and from what the reader has changed. Nothing stores the answer: a choice
 * is a text and what must hold for it to be right.
 *
 * @typedef {{races?: boolean|number, race?: string[], stuck?: boolean, step?: "max"|"sum"|"between", blocked?: string|false, waits?: string|false, fastest?: string}} Holds
 * @typedef {{text: string, holds: Holds}} Choice
 * @typedef {{about: string, variant: string, question: string, choices: Choice[], picture: boolean}} Question   picture: lanes and times do not answer it
 */
import { HOST, stem } from "../model/lower.js";
import { before, conflicts, isWork } from "../model/order.js";
import { why } from "./words.js";

const SOME = 250, NEAR = 0.05, MOST_PAIRS = 4, LOOKED_AT = 60;
const two = (M, r) => [stem(M.ops[r.a].name), stem(M.ops[r.b].name)];
const pairKey = (M, r) => [...two(M, r), r.range.buf, r.kind];
const uniq = (xs, key = (x) => x) => [...new Map(xs.map((x) => [key(x), x])).values()];

/** The event that holds the host longest in each step, or false. */
function blockedOn(M) {
	const [most] = Object.entries(M.acc.blockedBy).sort((p, q) => q[1] - p[1]);
	return most && most[1] > M.acc.step / SOME ? most[0] : false;
}
/** What the main stream waits for longest, or false. */
function waitsFor(M) {
	const by = new Map();
	for (const g of M.gaps) if (g.lane === M.hero && g.why !== "drained" && g.from > 0) by.set(why(M, g, 2), (by.get(why(M, g, 2)) ?? 0) + g.to - g.from);
	const [most] = [...by].sort((p, q) => q[1] - p[1]);
	return most && most[1] > M.end / SOME ? most[0] : false;
}
/** How a step compares with what the host and the main stream have to do in it: as long as the longer, as both, or between. */
function stepIs(M) {
	const { beats, perStep, step } = M.acc, from = perStep ? beats[Math.max(0, Math.min(2, beats.length - 3))] : 0, to = perStep ? beats[beats.length - 1] : M.end, steps = Math.max(1, (to - from) / step);
	const busy = (lane) => M.ops.reduce((x, o) => x + (o.lane === lane && isWork(o) ? Math.max(0, Math.min(o.end, to) - Math.max(o.start, from)) : 0), 0) / steps;
	const [host, main] = [busy(HOST), busy(M.hero)];
	if (step <= Math.max(host, main) * (1 + NEAR)) return "max";
	return step >= (host + main) * (1 - NEAR) ? "sum" : "between";
}
function isFastest(all, id) {
	const steps = [...all.values()].map((m) => m.acc.step);
	return all.get(id)?.acc.step <= Math.min(...steps) * 1.01;
}

/** What can be claimed of a solved variant. @type {Object<string, (M: any, v: any, all: Map<string, any>) => boolean>} */
const CLAIMS = {
	races: (M, v) => (typeof v === "boolean" ? (M.families.length > 0) === v : M.families.length === v),
	race: (M, v) => M.families.some((r) => v.every((x, k) => pairKey(M, r)[k] === x) || v.every((x, k) => [...two(M, r).reverse(), r.range.buf, r.kind][k] === x)),
	stuck: (M, v) => M.c.never.size > 0 === v,
	step: (M, v) => stepIs(M) === v,
	blocked: (M, v) => blockedOn(M) === v,
	waits: (M, v) => waitsFor(M) === v,
	fastest: (M, v, all) => isFastest(all, v),
};
/** Whether a choice is right. @param {Choice} choice @param {any} M the variant that is asked about @param {Map<string, any>} all every variant */
export const holds = (choice, M, all) => Object.entries(choice.holds).every(([claim, v]) => CLAIMS[claim]?.(M, v, all) ?? false);

// ── questions made from the model ──
/** A race in a sentence that gives nothing away: it could be said of any two accesses. */
function danger([a, b, buf, kind]) {
	if (kind === "RAW") return `Yes: ${b} may read ${buf} before ${a} has written it`;
	if (kind === "WAR") return `Yes: ${b} may overwrite ${buf} while ${a} still reads it`;
	if (kind === "WAW") return `Yes: ${a} and ${b} may write ${buf} in either order`;
	return `Yes: ${b} may use the memory of ${buf} while ${a} still needs it`;
}
/** Pairs of ops that touch one byte and that something orders: they look as dangerous as a race. */
function orderedPairs(M) {
	const some = M.ops.filter((o) => isWork(o) && !o.implicit && o.reads.length + o.writes.length).slice(0, LOOKED_AT), out = [];
	for (const a of some) for (const b of some) {
		if (a.i >= b.i || a.lane === b.lane || !before(M.c, M.V, a.i, b.i)) continue;
		for (const { kind, range } of conflicts(M.c.ops[a.i], M.c.ops[b.i])) out.push([stem(a.name), stem(b.name), range.buf, kind]);
	}
	return out;
}
/** Where streams wait for flags, a picture would show which of them never go on. */
const mayStop = (all) => [...all.values()].some((m) => m.c.never.size || m.ops.some((o) => o.flag !== undefined));
function aboutRaces(M, all) {
	const own = M.families.map((r) => pairKey(M, r)), others = [...all.values()].filter((m) => m !== M).flatMap((m) => m.families.map((r) => pairKey(m, r)));
	const pairs = uniq([...own, ...others, ...orderedPairs(M)], String).slice(0, Math.max(MOST_PAIRS, own.length)).sort((p, q) => String(p).localeCompare(String(q)));
	return [{ text: "No: every pair that shares a byte is ordered", holds: { races: false, stuck: false } }, ...pairs.map((race) => ({ text: danger(race), holds: { race } })), ...(mayStop(all) ? [{ text: "It never ends: a deadlock", holds: { stuck: true } }] : [])];
}
const QUESTIONS = {
	race: { ask: () => "is there a race?", choices: aboutRaces },
	step: { ask: () => "how long is a step?", choices: (M) => [{ text: `As long as the longer of the two, host and ${M.hero}: they overlap`, holds: { step: "max" } }, { text: "In between: they overlap in part", holds: { step: "between" } }, { text: "As long as both together: they take turns", holds: { step: "sum" } }] },
	blocked: { ask: () => "what does the host stand still for, most of all?", choices: (M, all) => [{ text: "Nothing: it goes on at once", holds: { blocked: false } }, ...uniq([...all.values()].flatMap((m) => Object.keys(m.acc.blockedBy))).map((e) => ({ text: `For ${e}`, holds: { blocked: e } }))] },
	waits: { ask: (M) => `what does ${M.hero} wait for, most of all?`, choices: (M, all) => [{ text: "Nothing: it always has work", holds: { waits: false } }, ...uniq(["host late", ...[...all.values()].map(waitsFor).filter(Boolean)]).map((w) => ({ text: w === "host late" ? "For the host, which is late" : `It ${w.replace("waits:", "waits for")}`, holds: { waits: w } }))] },
	fastest: { ask: () => "which has the shortest step?", choices: (M, all, spec) => spec.variants.map((v) => ({ text: v.label, holds: { fastest: v.id } })) },
};

/**
 * The question that a spec asks before it answers, or null: `predict` is {about} with a built-in one, or {question, choices}.
 * @param {any} spec @param {Map<string, any>} all every variant, solved as given @returns {Question | null}
 */
export function questionOf(spec, all) {
	const p = spec.predict === true ? { about: "race" } : typeof spec.predict === "string" ? { about: spec.predict } : spec.predict;
	if (!p) return null;
	const variant = all.has(p.variant) ? p.variant : spec.initial, M = all.get(variant), made = QUESTIONS[p.about] ?? (p.choices ? null : QUESTIONS.race), label = spec.variants.find((v) => v.id === variant).label;
	const which = spec.plain || p.about === "fastest" ? "" : `Under ${label}: `, own = made ? `${which}${made.ask(M)}` : "";
	const choices = p.choices ?? made.choices(M, all, spec);
	const picture = !mayStop(all) && choices.every((c) => Object.keys(c.holds).every((claim) => ["races", "race", "stuck"].includes(claim)));
	return choices.length > 1 ? { picture, about: p.about ?? (p.choices ? "choices" : "race"), variant, question: p.question ?? own.replace(/^./, (x) => x.toUpperCase()), choices } : null;
}

/** A solved variant with all that would answer for the reader taken away; order and times stay. @param {any} M */
export const veil = (M) => ({ ...M, veiled: true, shown: [], families: [], race: undefined, gaps: [], wrong: [], bad: false, forced: null });
