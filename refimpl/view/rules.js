/** Rules that stand on their own: in which order a graph's nodes come, how a copy meets the host. */

/** The order of a graph's nodes in which each comes after its deps. */
export function sortNodes(nodes, fail) {
	const byName = new Map(nodes.map((n) => [n.name, n])), state = new Map(), out = [];
	const visit = (n) => {
		if (state.get(n) === 2) return;
		if (state.get(n) === 1) fail(`nodes depend on each other in a circle through "${n.name}"`);
		state.set(n, 1);
		for (const d of n.deps ?? []) visit(byName.get(d) ?? fail(`node "${n.name}" depends on "${d}", which is no node of this graph`));
		state.set(n, 2);
		out.push(n);
	};
	nodes.forEach(visit);
	return out;
}

/** Host and device sides of a copy: what "Default" stands for, and whether the host returns only at its end. */
export function copyRule(op, memOf) {
	const side = (r) => (memOf(r.buf) === "device" || memOf(r.buf) === "managed" ? "D" : "H");
	const kind = (op.kind ?? "Default") === "Default" ? `${side(op.src)}2${side(op.dst)}` : op.kind;
	if (op.api !== "sync") return { kind, host: kind === "H2H" ? "end" : "free" };
	if (kind === "H2D") return { kind, host: memOf(op.src.buf) === "pinned" ? "end" : "staged" };
	return { kind, host: kind === "D2D" ? "free" : "end" };
}

/**
 * Record nodes of one event that nothing orders: either may be the last, so a wait can count only on what came before the graph.
 * @param {any[]} nodes @returns {string[]} their names
 */
export function unclearRecords(nodes) {
	const byEvent = new Map(), byName = new Map(nodes.map((n) => [n.name, n])), known = new Map();
	for (const n of nodes) if (n.record !== undefined) byEvent.set(n.record, [...(byEvent.get(n.record) ?? []), n]);
	const before = (n) => {
		if (!known.has(n.name)) known.set(n.name, new Set((n.deps ?? []).flatMap((d) => [d, ...before(byName.get(d))])));
		return known.get(n.name);
	};
	const loose = (a, b) => !before(a).has(b.name) && !before(b).has(a.name);
	return [...byEvent.values()].filter((ns) => ns.some((a, k) => ns.slice(k + 1).some((b) => loose(a, b)))).flat().map((n) => n.name);
}
