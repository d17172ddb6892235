/**
 * What the picture says, in sentences: for the reader, the card, the screen reader. Pure functions of a solved variant `M` (solve.js) and of
 * `U`, how times are written (dom.js). Results are HTML; names from a program are escaped.
 */
import { esc } from "../shared/dom.js";
import { HOST, stem } from "../model/lower.js";
import { explainOrder, isWork } from "../model/order.js";
import { blame, waitedFor } from "../model/accounts.js";
import { rangeText } from "../model/ranges.js";
import { readable } from "./solve.js";

const bold = (M, i) => `<b>${esc(M.ops[i].name)}</b>`;
const list = (rs) => rs.map(rangeText).join(", ");
const bad = (text) => `<b class="bad">${esc(text)}</b>`;
const capital = (t) => t.replace(/^./, (x) => x.toUpperCase());

/** What a wait or a synchronize stands for. @param {any} o */
export const target = (o) => (o.event ?? "").replace(/^tail of /, "the work queued on ");
/** The same in a word or two. @param {any} o */
export const shortTarget = (o) => stem((o.event ?? "").replace(/^tail of /, ""));

/** Why a lane is idle: 0 in full, 1 without what the host was held by, 2 in two words. @param {any} M @param {any} g @param {number} [brief] */
export function why(M, g, brief = 0) {
	if (g.why === "drained") return "drained";
	const chain = blame(M.c, M.T, g).map((e) => (M.ops[e.op].event === undefined ? stem(M.ops[e.op].name) : shortTarget(M.ops[e.op]))), [first, held] = chain;
	if (g.why === "host") return brief || !first ? "host late" : `host late (${held ? `${first}, held until ${held}` : first})`;
	if (!first) return brief > 1 ? "waits" : "waits for its event";
	return brief > 1 ? `waits: ${first}` : `${brief ? "" : "waits for "}${chain.join(" ← ")}`;
}

/** What a lane does at time t. @param {any} M @param {string} lane @param {number} t */
export function laneState(M, lane, t) {
	const o = M.ops.find((x) => x.lane === lane && (isWork(x) || x.kind === "sync") && x.start <= t && t < x.end);
	if (o) return o.kind === "sync" ? `blocked: ${shortTarget(o)}` : o.name;
	if (lane === HOST) return "submitting";
	if (!M.c.lanes.includes(lane)) return "not used";
	if (M.veiled) return "idle";
	const g = M.gaps.find((x) => x.lane === lane && x.from <= t && t < x.to);
	return g ? why(M, g, 2) : M.forced?.stalled && lane === M.ops[M.race.a].lane ? "stalled" : "idle";
}

function waits(M, U, i) {
	const o = M.ops[i], late = o.start - o.ready, by = new Map();
	for (const w of waitedFor(M.c, M.T, i)) { const p = M.ops[w.op], k = w.why === "stream" ? `same stream busy (${stem(p.name)})` : target(p); by.set(k, (by.get(k) ?? 0) + w.us); }
	if (!Number(U.num(late)) || late < 1) return "nothing, started at once";
	const told = [...by].filter(([, us]) => Number(U.num(us))).map(([k, us]) => `${k} ${U.text(us)}`).join(", ");
	return told || `${M.forced ? "a stall" : "its turn"} ${U.text(late)}`;
}

/** Rows of the card: term and description. @param {any} M @param {any} U @param {number} i @returns {[string, string][]} */
export function facts(M, U, i) {
	const o = M.ops[i], /** @type {[string, string][]} */ rows = [], when = `${U.num(o.start)} to ${U.text(o.end)}`;
	if (o.never) rows.push(["never", o.kind === "sync" || o.kind === "wait" ? `${target(o)} never comes` : "it is never reached"]);
	else if (o.kind === "sync") rows.push(["blocked", when], ["until", `${target(o)} has passed`]);
	else {
		if (o.reads.length) rows.push(["reads", list(o.reads)]);
		if (o.writes.length) rows.push(["writes", list(o.writes) + (o.value ? `: ${o.value}` : "")]);
		rows.push(...(o.lane === HOST ? [["from", when]] : [["submitted", U.text(o.ready)], ["started", U.text(o.start)], ...(M.veiled ? [] : [["waited for", waits(M, U, i)]])]));
	}
	if (o.step !== undefined) rows.push(["step", String(o.step)]);
	if (o.site) rows.push(["called at", String(o.site)]);
	for (const r of M.shown) if (r.a === i || r.b === i) rows.push([r.kind, `unordered with ${M.ops[r.a === i ? r.b : r.a].name}, ${rangeText(r.range)}`]);
	return rows;
}
/** An op in one sentence, for its label. @param {any} M @param {any} U @param {number} i */
export function opWords(M, U, i) {
	const o = M.ops[i];
	return `${o.kind === "sync" ? `host blocked: ${target(o)}` : o.name} on ${o.lane}, ${U.text(o.end - o.start)}. ${facts(M, U, i).map((f) => f.join(" ")).join(". ")}`;
}
/** The card's inside. */
export function card(head, sub, us, rows, U) {
	const row = ([k, d]) => `<dt${/^(R|W)A?(R|W)$|lifetime|never/.test(k) ? ' class="bad"' : ""}>${esc(k)}</dt><dd>${esc(d)}</dd>`;
	return `<b>${esc(head)}</b><small>${sub ? `${esc(sub)} · ` : ""}${U.text(us)}</small><dl>${rows.map(row).join("")}</dl>`;
}

/** One sentence per edge of a path. @param {import("../model/lower.js").Compiled} c @param {import("../model/lower.js").Edge} e */
export function edgeSentence(c, e) {
	const a = c.ops[e.from], b = c.ops[e.to], A = a.name, B = b.name;
	if (e.kind === "event" || e.kind === "value") return b.implicit ? `${b.lane} waits for what ${a.lane} held at the call: wait_stream` : `${b.lane} waits for ${e.kind === "value" ? "the flag" : "the capture of"} ${b.event}`;
	if (e.kind === "sync") return `the host blocks until ${target(b)} has passed`;
	if (e.kind === "submit") return `the host submits ${B} after ${A}: a call comes after what the host did before it`;
	if (e.kind === "legacy") return `the legacy stream and blocking streams wait for each other, so ${B} comes after ${A}`;
	if (e.kind === "dep" && a.graph !== undefined) return `an edge of the graph: ${B} depends on ${A}`;
	const order = a.lane === HOST ? "the host goes on in program order" : `same stream: ${a.lane} is first in, first out`;
	return b.kind === "record" ? `${order}, so ${b.implicit ? "its tail" : b.event} covers ${A}` : `${order}, so ${isWork(b) ? B : `the ${b.kind === "sync" ? "synchronize" : b.kind}`} comes after ${isWork(a) ? A : `the ${a.kind === "sync" ? "synchronize" : a.kind}`}`;
}

/** What the writer of a value left behind, in words. */
export const valueOf = (M, i) => M.ops[i ?? -1]?.value ?? M.ops[i ?? -1]?.name ?? "nothing yet";

/** The answer to F where there is no bad order to force. @param {any} M */
export const nothingToForce = (M) => (M.c.never.size ? "Nothing to force: this program never ends, in any order." : "No race here: every order that the rules allow gives the same values.");

/** The answer under the picture when the bad order is forced. @param {any} M @param {any} U */
export function forcedAnswer(M, U) {
	const { a, b, range } = M.race, w = M.wrong.find((x) => x.reader === a || x.reader === b), st = M.forced.stalled;
	const found = w ? `${bold(M, w.reader)} found <b>${esc(valueOf(M, w.got))}</b> in ${esc(rangeText(range))}; it should have found <b>${esc(valueOf(M, w.want))}</b>. ` : "";
	return `<p>${bold(M, b)} ran before ${bold(M, a)} was done, and nothing forbids it: no edge leads from ${bold(M, a)} to ${bold(M, b)}. ${found}${st > 1 ? `It took a delay of ${U.text(st)} on ${esc(M.ops[a].lane)}.` : "No delay was needed: it happens in the timed order."}</p>`;
}
/** Whether one op comes before another: the path edge by edge, or what is missing. @param {any} M @param {number} p @param {number} q @param {number} pace ms between edges */
export function orderAnswer(M, p, q, pace) {
	const x = explainOrder(M.c, p, q, M.V), A = M.ops[x.a], B = M.ops[x.b];
	if (x.ordered) {
		const edges = readable(M.c, x.path), item = (e, k) => `<li style="animation-delay:${k * pace}ms"><i>${k + 1}</i><span>${esc(edgeSentence(M.c, e))}</span></li>`;
		return { edges, html: `<p>${bold(M, x.a)} happens before ${bold(M, x.b)}:</p><ol>${edges.map(item).join("")}</ol>` };
	}
	const known = x.known === null ? `${esc(B.name)} comes after nothing on ${esc(A.lane)}.` : `On ${esc(A.lane)}, ${esc(B.name)} comes only after ${bold(M, x.known)}.`;
	const stake = x.conflicts.map((y) => `${bad(y.kind)} on ${esc(rangeText(y.range))}`).join(", ");
	const missing = A.lane === HOST || B.lane === HOST ? `a record on ${esc(A.lane)} after ${esc(A.name)}, and a synchronize before ${esc(B.name)}` : `a record on ${esc(A.lane)} after ${esc(A.name)}, and a wait on ${esc(B.lane)} before ${esc(B.name)}`;
	return { edges: null, html: `<p>${bold(M, x.a)} and ${bold(M, x.b)} are ${bad("unordered")}: either may run first. ${known} ${stake ? `At stake: ${stake}. Missing: ${missing}.` : "They share no byte that either writes, so it does not matter."}</p>` };
}

/** Host time blocked on the events under study, per step. @param {any} M @param {string[]} topic */
export const heldBy = (M, topic) => topic.reduce((x, k) => x + (M.acc.blockedBy[k] ?? 0), 0);

/** What the reader has changed, in words. @param {any} M @param {import("./edit.js").Edit[]} edits */
export function editWords(M, edits) {
	const name = (key) => M.fences.find((x) => x.keys.includes(key))?.name ?? "a fence", many = (n, what) => `${n} ${what}${n > 1 ? "s" : ""}`;
	const all = (e) => (e.all && (M.fences.find((x) => x.keys.includes(e.key))?.keys.length ?? 1) > 1 ? (M.ops.some((o) => o.step === 1) ? ", in each step" : ", each of them") : "");
	const one = (e) => (e.do === "add" ? `${many(e.pairs.length, "fence")} added.` : e.do === "move" ? `${name(e.key)} is issued ${e.by < 0 ? "earlier" : "later"} by ${many(Math.abs(e.by), "op")}${all(e)}.` : `${name(e.key)} is ${e.do}${all(e)}.`);
	return edits.slice(-3).map(one).join(" ");
}

/** The verdict and its reason in one or two sentences. @param {any} M @param {any} U @param {any} spec @param {any} variant @param {string} [changes] */
export function narrate(M, U, spec, variant, changes = "") {
	const label = spec.plain && !changes ? "" : variant.id === "none" ? "No fence" : esc(variant.label), head = (what) => `<b>${label ? `${spec.plain ? capital(label) : label}: ${what}` : capital(what)}.</b>${changes ? ` ${esc(changes)}` : ""}`;
	const r = M.race, held = heldBy(M, spec.topic), a = M.acc, stuck = M.ops.find((o) => o.never && (o.kind === "wait" || o.kind === "sync"));
	if (M.c.never.size) return `${head("a deadlock")} ${stuck ? `${stuck.lane === HOST ? "The host" : `Stream ${esc(stuck.lane)}`} waits for ${esc(target(stuck))}, which never comes.` : "Part of the program never runs."}`;
	const cost = idleWords(M, U, a);
	if (r) {
		const A = M.ops[r.a], B = M.ops[r.b], later = A.step !== undefined && B.step === A.step + 1;
		return `${head("a race")} Nothing orders ${esc(stem(A.name))} before ${later ? "the next step’s " : ""}${esc(stem(B.name))}: ${r.kind} on ${esc(r.range.buf)}. ${runWords(M)} ${cost}`;
	}
	const step = a.perStep ? `of each ${U.text(a.step)} step` : `of ${U.text(a.step)}`;
	if (held > a.step / 200) return `${head("safe")} The host stands still on ${esc(spec.topic.join(", "))} for ${U.text(held)} ${step}. ${cost}`;
	return `${head("safe")} ${esc(variant.words || "Every conflicting pair is ordered.")} ${cost}`;
}
function runWords(M) {
	if (M.forced && M.forced.stalled > 1) return "Here the bad order is forced.";
	return M.bad ? "In this run it goes wrong." : `In this run it goes right, by luck${M.wrong.length ? "; elsewhere it goes wrong" : ""}.`;
}
function idleWords(M, U, a) {
	if (!a.perStep || M.forced) return "";
	const mid = M.gaps.filter((g) => g.lane === M.hero && g.why !== "drained" && g.from > a.beats[1] - 1 && g.to < a.beats[2] + 1);
	if (!mid.length) return a.heroIdle < 0.002 ? `${capital(esc(M.hero))} never idles.` : "";
	const causes = [...new Set(mid.map((g) => why(M, g)))].join(", then ");
	return `Each step, ${esc(M.hero)} idles ${U.text(mid.reduce((x, g) => x + g.to - g.from, 0))}: ${esc(causes.replace(/(^|then )waits/g, "$1it waits"))}.`;
}

/** The program as the host issues it, without times: one step of a loop. @param {any} M @param {any} U */
export function listing(M, U) {
	const steps = M.ops.some((o) => o.step === 1), shown = M.ops.filter((o) => (!steps || o.step === 1) && !["begin", "end"].includes(o.kind) && !(o.implicit && o.kind === "record")).slice(0, 60);
	const what = (o) => (o.kind === "wait" && o.implicit ? `wait_stream(${(o.event ?? "").replace(/^tail of /, "")})` : isWork(o) && o.end > o.start ? `${o.name}, ${U.text(o.end - o.start)}` : o.name);
	return `<p>${steps ? "One step, in" : "In"} the order in which the host issues it:</p><ol>${shown.map((o) => `<li><b>${esc(o.lane)}</b> ${esc(what(o))}</li>`).join("")}</ol>`;
}

/** An idle stretch as an answer: how long, and why. @param {any} M @param {any} U @param {any} g */
export function gapAnswer(M, U, g) {
	const cause = { host: `${why(M, g)}: the next work is not submitted yet`, event: `it ${why(M, g)}`, drained: "drained: nothing more comes" }[g.why];
	return `<p><b>${esc(g.lane)}</b> stands idle for ${U.text(g.to - g.from)} from ${U.text(g.from)}. <b>${esc(capital(cause))}.</b>${g.why === "drained" || g.before === null ? "" : ` Next on it: ${bold(M, g.before)}.`}</p>`;
}

/** The same as the picture, in words: verdict, one step in issue order, hazards. @param {any} M @param {any} U @param {string} say @param {any} variant */
export function inWords(M, U, say, variant) {
	const what = (o) => (o.kind === "wait" ? `waits for ${target(o)}` : o.kind === "sync" ? `blocked ${U.text(o.end - o.start)} until ${target(o)}` : `${o.name}, ${U.num(o.start)} to ${U.text(o.end)}`);
	const steps = M.ops.some((o) => o.step === 1), shown = M.ops.filter((o) => (!steps || o.step === 1) && !["record", "begin", "end"].includes(o.kind)).slice(0, 60);
	const hazards = M.families.map((r) => `${r.kind} on ${esc(rangeText(r.range))}: ${esc(M.ops[r.a].name)} and ${esc(M.ops[r.b].name)} are unordered.`).slice(0, 6).join(" ");
	return `<p>${say}</p>${variant.words ? `<p>${esc(variant.words)}</p>` : ""}<p>${steps ? "One step, in" : "In"} the order in which the host issues it:</p><ul>${shown.map((o) => `<li>${esc(o.lane)}: ${esc(what(o))}</li>`).join("")}</ul><p>${hazards || "No hazard: every conflicting pair is ordered."}</p>`;
}
