/**
 * Flags: a stream may wait for a value that a later call writes, so that edges can lead backward in issue order and a program can deadlock.
 * The same rules as refimpl/order/flags.py.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./lower.js").Op} Op
 */

/** The flag that an op waits for. @param {Op} o */
export const awaitedFlag = (o) => (o.kind === "wait" ? o.flag : undefined);
/** The flag that an op sets. @param {Op} o */
export const writtenFlag = (o) => (o.kind === "record" ? o.flag : undefined);

/**
 * Run whatever may run until nothing more can: what is left over never runs. A flag once set stays set, so what runs does not depend on the
 * schedule. Without flags the order is that of issue.
 * @param {Op[]} ops
 */
export function runOrder(ops) {
	const missing = new Int32Array(ops.length), followers = new Map(), waiting = new Map(), flags = new Set(), order = [], done = new Uint8Array(ops.length), todo = [];
	const later = (map, key, i) => (map.has(key) ? map.get(key).push(i) : map.set(key, [i]));
	const run = (first) => {
		for (todo.push(first); todo.length;) {
			const i = todo.pop(), flag = awaitedFlag(ops[i]), sets = writtenFlag(ops[i]);
			if (flag !== undefined && !flags.has(flag)) { later(waiting, flag, i); continue; }
			done[i] = 1;
			order.push(i);
			if (sets !== undefined) { flags.add(sets); todo.push(...(waiting.get(sets) ?? [])); waiting.delete(sets); }
			if (followers.size) for (const f of followers.get(i) ?? []) if (--missing[f] === 0) todo.push(f);
		}
	};
	for (const o of ops) {
		for (const e of o.after) if (!e.loose && !done[e.from]) { missing[o.i]++; later(followers, e.from, o.i); }
		if (!missing[o.i]) run(o.i);
	}
	return { order, never: new Set(order.length < ops.length ? ops.filter((o) => !done[o.i]).map((o) => o.i) : []) };
}

/**
 * For each op how much of each chain comes before it in every execution. A wait that several writes may release comes after what all of them come
 * after. Two waits may release each other's writers in turn, so the sets start full and shrink to the largest solution.
 * @param {Compiled} c @param {Map<string, number[]>} writes
 */
function surelyBefore(c, writes) {
	const none = () => new Int32Array(c.chains.length), full = none(), B = c.ops.map(none);
	for (const o of c.ops) full[o.k]++;
	for (const i of c.order) B[i].set(full);
	const upTo = (i, k) => (k === c.ops[i].k ? Math.max(B[i][k], c.at[i]) : B[i][k]);
	const all = (i, v) => { for (const e of c.ops[i].after) if (!e.loose) for (let k = 0; k < v.length; k++) v[k] = Math.max(v[k], upTo(e.from, k)); return v; };
	const any = (flag) => none().map((_, k) => writes.get(flag).reduce((x, w) => Math.min(x, upTo(w, k)), full[k]));
	for (let changed = true; changed;) {
		changed = false;
		for (const i of c.order) {
			const flag = awaitedFlag(c.ops[i]), known = all(i, flag === undefined ? none() : any(flag));
			if (known.some((x, k) => x !== B[i][k])) { B[i] = known; changed = true; }
		}
	}
	return { B, any };
}
/** The writes of each flag that run. @param {Compiled} c @returns {Map<string, number[]>} */
function writesByFlag(c) {
	const out = new Map();
	for (const i of c.order) {
		const flag = writtenFlag(c.ops[i]);
		if (flag !== undefined) out.has(flag) ? out.get(flag).push(i) : out.set(flag, [i]);
	}
	return out;
}

/** Edges into each wait for a flag from the last ops that surely come before it, and the writes that may release it. @param {Compiled} c */
export function bindFlags(c) {
	const waits = c.order.filter((i) => awaitedFlag(c.ops[i]) !== undefined);
	if (!waits.length) return c;
	const writes = writesByFlag(c), { B, any } = surelyBefore(c, writes), place = c.chains.map(() => []), has = (i, x) => B[i][c.ops[x].k] >= c.at[x];
	for (const o of c.ops) place[o.k].push(o.i);
	for (const w of waits) {
		const op = c.ops[w], tops = [...any(op.flag)].map((n, k) => place[k][n - 1]).filter((i) => i !== undefined);
		const last = tops.filter((i) => !tops.some((other) => other !== i && has(other, i)));
		op.after = [...op.after, ...last.map((from) => /** @type {const} */ ({ from, to: w, kind: "value" }))];
		op.writers = writes.get(op.flag).filter((x) => !has(x, w));
	}
	return c;
}
