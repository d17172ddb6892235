/**
 * A program's fences changed by the reader: turned off, moved in issue order, added. A program is data, so this makes another program of it, and all
 * else follows from that one. Pure functions.
 *
 * A fence is moved past what it matters to: one on a stream past an op of that stream or a call with its event, one that holds the host past any call.
 *
 * @typedef {{do: "off"|"on", key: string, all: boolean}} Switch   all: every fence of the family, as in each step of a loop
 * @typedef {{do: "move", key: string, by: number, all: boolean}} Move   by: past how many, negative for earlier
 * @typedef {{do: "add", pairs: [string, string][]}} Add   a record after the first of each pair, a wait or synchronize before the second
 * @typedef {Switch | Move | Add} Edit
 * @typedef {{key: string, op: any}} Item   key: index of the op as given, "12/1" for node 1 of a graph, "e0" and "w0" for what was added
 */
import { stem } from "../model/lower.js";

const HOLDS = new Set(["event_sync", "stream_sync", "device_sync", "event_query_until_success", "stream_query_until_success", "host_async_wait"]);
const QUEUES = new Set(["event_record", "stream_wait_event", "stream_wait_stream", "stream_write_value", "stream_wait_value"]);
const SILENT = new Set(["alloc", "free", "tensor_alloc", "tensor_free", "record_stream", "set_device"]);
export const ADDED = "new_fence";

/** @param {any} op an op of a program */
export const isFence = (op) => HOLDS.has(op.op) || QUEUES.has(op.op);
const streamsOf = (op) => [op.stream ?? (op.op === "memcpy" || op.op === "memset" ? "legacy" : undefined), op.on].filter((s) => s !== undefined);
const heldBy = (op) => op.event ?? op.flag ?? op.on ?? op.id ?? (op.op === "device_sync" ? "device" : op.stream);

/** Fences of one family do the same in each step of a loop. @param {any} op */
export const familyOf = (op) => `${op.op} ${stem(heldBy(op))} ${op.stream ?? ""}`;

/** A fence in the words of the house. @param {any} op */
export function fenceName(op) {
	const what = stem(heldBy(op));
	if (HOLDS.has(op.op)) return `synchronize(${what})`;
	const call = { event_record: "record", stream_wait_event: "wait", stream_wait_stream: "wait_stream", stream_write_value: "write", stream_wait_value: "wait" }[op.op] ?? (op.record !== undefined ? "record" : "wait");
	return `${call}(${what}) on ${op.stream}`;
}

/** The items of a list that are fences, nodes of graphs included. @param {Item[]} list @returns {Item[]} */
function fencesIn(list) {
	return list.flatMap(({ key, op }) => {
		if (op.op !== "graph_launch") return isFence(op) ? [{ key, op }] : [];
		const node = (n, k) => ({ key: `${key}/${k}`, op: { op: "node", stream: op.stream, step: op.step, event: n.record ?? n.wait, record: n.record } });
		return (op.nodes ?? []).map(node).filter((x) => x.op.event !== undefined);
	});
}
/** A fence and, if asked for, all of its family. @param {Item[]} list @param {{key: string, all: boolean}} edit */
function members(list, { key, all }) {
	const known = fencesIn(list), one = known.find((x) => x.key === key);
	if (!one) return [];
	return all ? known.filter((x) => familyOf(x.op) === familyOf(one.op)) : [one];
}

const matters = (fence, other) => !SILENT.has(other.op) && (HOLDS.has(fence.op) || streamsOf(other).some((s) => streamsOf(fence).includes(s)) || (heldBy(fence) === heldBy(other) && isFence(other)));

/** The places of what a fence can be moved past, nearest first. @param {Item[]} list @param {string} key @param {number} dir */
export function landmarks(list, key, dir) {
	const at = list.findIndex((x) => x.key === key), out = [];
	if (at < 0) return out;
	for (let k = at + dir; k >= 0 && k < list.length; k += dir) if (matters(list[at].op, list[k].op)) out.push(k);
	return out;
}
function moved(list, key, by) {
	const marks = landmarks(list, key, Math.sign(by)), to = marks[Math.min(Math.abs(by), marks.length) - 1];
	if (to === undefined) return list;
	const out = list.slice(), [item] = out.splice(list.findIndex((x) => x.key === key), 1);
	out.splice(to, 0, item);
	return out;
}
function added(list, pairs) {
	let out = list, n = list.filter((x) => /^e/.test(x.key)).length;
	for (const [a, b] of pairs) {
		const from = out.find((x) => x.key === a)?.op, to = out.find((x) => x.key === b)?.op;
		if (!from || !to) continue;
		const record = { op: "event_record", event: ADDED, stream: from.stream ?? "legacy", step: from.step }, host = /^host/.test(to.op);
		const wait = host ? { op: "event_sync", event: ADDED, step: to.step } : { op: "stream_wait_event", event: ADDED, stream: to.stream ?? "legacy", step: to.step };
		out = out.flatMap((x) => [...(x.key === b ? [{ key: `w${n}`, op: wait }] : []), x, ...(x.key === a ? [{ key: `e${n}`, op: record }] : [])]);
		n++;
	}
	return out;
}
/** A graph without some of its nodes: what came after one comes after what was before it. */
function withoutNodes(op, gone) {
	const names = new Map(op.nodes.filter((_, k) => gone.has(k)).map((n) => [n.name, n.deps ?? []])), through = (d) => (names.has(d) ? names.get(d).flatMap(through) : [d]);
	return { ...op, nodes: op.nodes.filter((_, k) => !gone.has(k)).map((n) => ({ ...n, deps: [...new Set((n.deps ?? []).flatMap(through))] })) };
}

/**
 * The program that the edits make; those that fit nothing are passed over.
 * @param {any} program @param {Edit[]} edits @returns {{program: any, list: Item[], off: Set<string>}} list: its ops with their keys, those that are off included
 */
export function applyEdits(program, edits) {
	let list = (program.ops ?? []).map((op, i) => ({ key: String(i), op }));
	const off = new Set();
	for (const e of edits) {
		if (e.do === "add") { list = added(list, e.pairs); continue; }
		const those = members(list, e);
		if (e.do !== "move") for (const { key } of those) e.do === "off" ? off.add(key) : off.delete(key);
		// the foremost goes first, so that no fence meets its like of another step
		else for (const { key, op } of e.by < 0 ? those : those.reverse()) if (op.op !== "node") list = moved(list, key, e.by);
	}
	const nodes = (key) => new Set([...off].filter((k) => k.startsWith(`${key}/`)).map((k) => Number(k.slice(key.length + 1))));
	const kept = list.filter((x) => !off.has(x.key)).map((x) => (nodes(x.key).size ? { key: x.key, op: withoutNodes(x.op, nodes(x.key)) } : x));
	return { program: { ...program, ops: kept.map((x) => x.op) }, keys: kept.map((x) => x.key), list, off };
}

/** Of some edits those that find what they speak of. @param {any} program @param {Edit[]} edits @returns {Edit[]} */
export function fitting(program, edits) {
	const out = [];
	for (const e of edits) {
		const { list } = applyEdits(program, out), known = new Set(list.map((x) => x.key));
		if (e.do === "add" ? e.pairs.flat().every((k) => known.has(k)) : members(list, e).length) out.push(e);
	}
	return out;
}

/** The families of fences in a list, in issue order: what can be turned off or moved. @param {Item[]} list */
export function fenceFamilies(list) {
	const out = new Map();
	for (const x of fencesIn(list)) {
		const family = familyOf(x.op);
		if (!out.has(family)) out.set(family, { family, name: fenceName(x.op), keys: [], movable: x.op.op !== "node" });
		out.get(family).keys.push(x.key);
	}
	return [...out.values()];
}

/** One more edit; moves of one fence in a row are one. @param {Edit[]} edits @param {Edit} edit @returns {Edit[]} */
export function withEdit(edits, edit) {
	const last = edits[edits.length - 1];
	if (edit.do === "add" || !last || last.do === "add" || last.key !== edit.key || last.all !== edit.all) return [...edits, edit];
	if (last.do === "move" && edit.do === "move") return last.by + edit.by ? [...edits.slice(0, -1), { ...edit, by: last.by + edit.by }] : edits.slice(0, -1);
	return last.do !== "move" && edit.do !== "move" ? edits.slice(0, -1) : [...edits, edit];
}

/** Edits as text for an address: "12*m-3~14x". @param {Edit[]} edits */
export function editsText(edits) {
	const letter = { off: "x", on: "o" };
	return edits.map((e) => (e.do === "add" ? `a${e.pairs.map((p) => p.join(".")).join("_")}` : `${e.key}${e.all ? "*" : ""}${e.do === "move" ? `m${e.by}` : letter[e.do]}`)).join("~");
}
/** The edits in a text; what is none is left out. @param {string} text @returns {Edit[]} */
export function editsIn(text) {
	const one = (part) => {
		const m = /^([ew]?\d+(?:\/\d+)?)(\*?)(x|o|m-?\d{1,4})$/.exec(part), all = m?.[2] === "*";
		if (m) return m[3][0] === "m" ? { do: "move", key: m[1], all, by: Number(m[3].slice(1)) } : { do: m[3] === "x" ? "off" : "on", key: m[1], all };
		return /^a\d+\.\d+(_\d+\.\d+)*$/.test(part) ? { do: "add", pairs: part.slice(1).split("_").map((p) => p.split(".")) } : null;
	};
	return /** @type {Edit[]} */ (text.split("~").map(one).filter(Boolean));
}
