/** Rules that stand on their own: in which order a graph's nodes come, how a copy meets the host, what a call is named. */

/**
 * The order of a graph's nodes in which each comes after its deps, and which keeps the given order where that allows it.
 * @param {any[]} nodes @param {(text: string) => void} fail
 */
export function sortNodes(nodes, fail) {
	const at = new Map(nodes.map((n, k) => [n.name, k])), followers = nodes.map(() => []), missing = nodes.map(() => 0), ready = new Heap(), out = [];
	if (at.size < nodes.length) fail("two nodes of the graph have the same name");
	nodes.forEach((n, k) => {
		for (const d of new Set(n.deps ?? [])) {
			if (!at.has(d)) fail(`node "${n.name}" depends on "${d}", which is no node of this graph`);
			followers[at.get(d)].push(k);
			missing[k]++;
		}
		if (!missing[k]) ready.push(k, k);
	});
	while (ready.size) {
		const k = ready.pop().what;
		out.push(nodes[k]);
		for (const f of followers[k]) if (--missing[f] === 0) ready.push(f, f);
	}
	if (out.length < nodes.length) fail(`nodes depend on each other in a circle through "${nodes[missing.findIndex(Boolean)].name}"`);
	return out;
}

/** Things by a number, the least first; of equal ones the one that came first. */
export class Heap {
	constructor() {
		/** @type {[number, number, any][]} */ this.items = [];
		this.count = 0;
	}
	get size() {
		return this.items.length;
	}
	push(at, what) {
		const h = this.items, item = /** @type {[number, number, any]} */ ([at, this.count++, what]);
		let k = h.length;
		for (; k && less(item, h[(k - 1) >> 1]); k = (k - 1) >> 1) h[k] = h[(k - 1) >> 1];
		h[k] = item;
	}
	pop() {
		const h = this.items, top = h[0], last = h.pop();
		if (h.length) {
			let k = 0;
			for (let c = 1; c < h.length; c = 2 * k + 1) {
				if (c + 1 < h.length && less(h[c + 1], h[c])) c++;
				if (!less(h[c], last)) break;
				h[k] = h[c];
				k = c;
			}
			h[k] = last;
		}
		return { at: top[0], what: top[2] };
	}
}
const less = (p, q) => p[0] < q[0] || (p[0] === q[0] && p[1] < q[1]);

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
 * @param {any[]} nodes in the order of sortNodes @returns {Set<string>} the events
 */
export function unclearRecords(nodes) {
	const byEvent = new Map(), before = new Map(), out = new Set();
	for (const n of nodes) if (n.record != null) byEvent.set(n.record, [...(byEvent.get(n.record) ?? []), n.name]);
	if ([...byEvent.values()].every((names) => names.length === 1)) return out;
	for (const n of nodes) {
		const all = new Set(n.deps ?? []);
		for (const d of n.deps ?? []) for (const x of before.get(d)) all.add(x);
		before.set(n.name, all);
	}
	const loose = (a, b) => !before.get(a).has(b) && !before.get(b).has(a);
	for (const [event, names] of byEvent) if (names.some((a, k) => names.slice(k + 1).some((b) => loose(a, b)))) out.add(event);
	return out;
}

/** What an op is called in a Trace and in the accounts: refimpl's `label`. @param {any} s */
export function callName(s) {
	switch (s.op) {
		case "launch": return s.name ?? "kernel";
		case "graph_launch": return s.name ?? "graph";
		case "host_work": return s.name ?? "host work";
		case "host_read": return s.name ?? "host read";
		case "host_write": return s.name ?? "host write";
		case "memcpy": return `copy ${s.src.buf} to ${s.dst.buf}`;
		case "memset": return `fill ${s.dst.buf}`;
		case "event_record": return `record(${s.event})`;
		case "stream_wait_event": return `wait(${s.event})`;
		case "stream_wait_stream": return `wait_stream(${s.on})`;
		case "event_sync": return `synchronize(${s.event})`;
		case "stream_sync": return `synchronize(${s.stream})`;
		case "event_query_until_success": return `query(${s.event})`;
		case "stream_query_until_success": return `query(${s.stream})`;
		case "stream_write_value": return `write ${s.flag}`;
		case "stream_wait_value": return `wait for ${s.flag}`;
		case "host_async_begin": return `begin ${s.id}`;
		case "host_async_wait": return `wait for ${s.id}`;
		case "tensor_alloc": return `reuse of ${s.block}`;
		default: return s.op;
	}
}
