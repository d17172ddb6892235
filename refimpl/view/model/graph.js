/**
 * A launch of a graph lowered: its begin, its nodes by their dependencies, its end. `L` is the lowering of the program that it stands in (lower.js).
 */
import { WORK_US } from "./lanes.js";
import { sortNodes, unclearRecords } from "./rules.js";

/** @param {any} L @param {any} s the launch */
export function lowerGraph(L, s) {
	const lane = L.laneOf(s.stream), begin = L.add({ kind: "begin", lane, name: s.name ?? "graph", whole: s.us ?? undefined });
	const armed = new Map(L.current), nodes = sortNodes(s.nodes ?? [], (t) => L.fail(t)), unclear = unclearRecords(nodes);
	const made = new Map(), depth = new Map(), open = new Set([begin.i]), /** @type {number[]} */ heads = [], slotOf = new Map();
	for (const n of nodes) {
		const deps = (n.deps ?? []).map((d) => made.get(d)), slot = deps.filter((d) => heads[slotOf.get(d)] === d).reduce((x, d) => Math.min(x, slotOf.get(d)), heads.length);
		const place = { lane, graph: begin.i, slot, chain: slot ? `${lane} #${slot}` : lane, cost: 0, call: n.name };
		const op = lowerNode(L, n, s, place, L.edges("dep", deps.length ? deps : [begin.i]), armed);
		if (n.record != null) L.capture(n.record, op.i, unclear.has(n.record) ? begin.i : undefined);
		heads[slot] = op.i;
		slotOf.set(op.i, slot);
		for (const d of [...deps, begin.i]) open.delete(d);
		open.add(op.i);
		made.set(n.name, op.i);
		depth.set(op.i, deps.reduce((x, d) => Math.max(x, depth.get(d)), 0) + op.us);
	}
	begin.span = [...depth.values()].reduce((x, d) => Math.max(x, d), 0);
	for (const i of made.values()) L.ops[i].slots = heads.length;
	L.add({ kind: "end", lane, name: "graph end", cost: 0, begin: begin.i }, L.edges("dep", [...open]));
}
function lowerNode(L, n, s, place, edges, armed) {
	const common = { ...place, value: n.value ?? s.value };
	if (n.record != null) return L.mark("record", place.lane, n.record, edges, common);
	if (n.wait != null) return L.mark("wait", place.lane, n.wait, [...edges, ...L.captured("event", armed.get(n.wait))], common);
	const key = s.param ?? (s.us == null ? n.param : undefined) ?? (s.us == null ? `node ${L.stem(n.name)}` : `graph ${L.stem(s.nodes[0].name)}`);
	return L.add({ kind: "run", ...common, key, name: n.name, us: n.us ?? WORK_US, reads: L.ranges(n.reads), writes: L.ranges(n.writes) }, edges);
}
