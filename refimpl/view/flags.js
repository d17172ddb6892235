/**
 * Flags: a stream may wait for a value that a later call writes, so that edges can lead backward in issue order and a program can deadlock.
 * The same rules as refimpl/order/flags.py.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./lower.js").Op} Op
 */

const waitsFor = (o) => (o.kind === "wait" ? o.flag : undefined);
const setsFlag = (o) => (o.kind === "record" ? o.flag : undefined);

/**
 * Run whatever may run until nothing more can: what is left over never runs. A flag once set stays set, so the result does not depend on the
 * schedule. A wait lets go first those of `patient` that are still to write its flag, where that is possible.
 * @param {Op[]} ops @param {Map<number, number[]>} [patient]
 */
export function runOrder(ops, patient = new Map()) {
	const done = new Uint8Array(ops.length), flags = new Set(), order = [];
	let pending = ops.map((o) => o.i);
	const pass = (held) => {
		const before = order.length;
		pending = pending.filter((i) => {
			const o = ops[i], flag = waitsFor(o);
			if (!o.after.every((e) => e.kind === "value" || done[e.from]) || (flag !== undefined && (!flags.has(flag) || held(i)))) return true;
			done[i] = 1;
			order.push(i);
			if (setsFlag(o) !== undefined) flags.add(o.flag);
			return false;
		});
		return order.length > before;
	};
	const polite = (i) => (patient.get(i) ?? []).some((w) => !done[w]);
	while (pending.length && (pass(polite) || pass(() => false)));
	return { order, never: new Set(pending) };
}

/**
 * For each op the set of ops before it in every execution, as the bits of a BigInt. A wait that several writes may release comes after what all
 * of them come after. Two waits may release each other's writers in turn, so the sets start full and shrink to the largest solution.
 * @param {Compiled} c
 */
function ancestors(c) {
	const bit = (i) => 1n << BigInt(i), full = bit(c.ops.length) - 1n, before = c.ops.map(() => 0n), writes = writesByFlag(c);
	for (const i of c.order) before[i] = full;
	const all = (i) => c.ops[i].after.reduce((x, e) => x | before[e.from] | bit(e.from), 0n);
	const any = (flag) => writes.get(flag).reduce((x, w) => x & (before[w] | bit(w)), full);
	for (let changed = true; changed;) {
		changed = false;
		for (const i of c.order) {
			const flag = waitsFor(c.ops[i]), known = all(i) | (flag === undefined ? 0n : any(flag));
			if (known !== before[i]) { before[i] = known; changed = true; }
		}
	}
	return { before, any, has: (set, i) => (set & bit(i)) !== 0n };
}
function writesByFlag(c) {
	const out = new Map();
	for (const i of c.order) if (setsFlag(c.ops[i]) !== undefined) out.set(c.ops[i].flag, [...(out.get(c.ops[i].flag) ?? []), i]);
	return out;
}

/** Edges into each wait for a flag from the last ops that surely come before it, and the writes that may release it. @param {Compiled} c */
export function bindFlags(c) {
	const waits = c.order.filter((i) => waitsFor(c.ops[i]) !== undefined);
	if (!waits.length) return c;
	const { before, any, has } = ancestors(c), writes = writesByFlag(c), patient = new Map();
	for (const w of waits) {
		const op = c.ops[w], common = any(op.flag), known = c.order.filter((i) => has(common, i));
		const last = known.filter((i) => !known.some((other) => other !== i && has(before[other], i)));
		op.after = [...op.after, ...last.map((from) => ({ from, to: w, kind: "value" }))];
		op.writers = writes.get(op.flag).filter((x) => !has(before[x], w));
		patient.set(w, op.writers);
	}
	return Object.assign(c, runOrder(c.ops, patient));
}
