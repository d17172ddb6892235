/** Which call of the host queued a piece of GPU work; as refimpl/timeline/reading/calls.py. */

/** The GPU that a piece of work ran on, as the trace tells it from others. @param {any} work */
export const gpuOf = (work) => `${work.pid}\n${work.device}`;

/** How often each key came, in the order in which they came first. */
export class Counter extends Map {
	/** @param {any} key @param {number} [times] */
	add(key, times = 1) { this.set(key, (this.get(key) ?? 0) + times); }

	/** The key that came most often; of several, the first. */
	most() {
		let best, most = -Infinity;
		for (const [key, times] of this) if (times > most) { best = key; most = times; }
		return best;
	}
}

/** The value of a key, made where there is none. @param {Map<any, any>} map @param {any} key @param {() => any} make */
export function ensure(map, key, make) {
	let value = map.get(key);
	if (value === undefined) map.set(key, (value = make()));
	return value;
}

/** Calls by the number that they share with their work. The numbers are a process's own: of several processes, a GPU's work is of the one that has most of its numbers. */
export class Calls {
	/** @param {any[]} calls in order of time @param {any[]} work slices of the GPUs */
	constructor(calls, work) {
		/** @type {Map<string, Map<number, any>>} */ this.processes = new Map();
		for (const call of calls) {
			const numbered = ensure(this.processes, call.pid, () => new Map());
			if (call.correlation !== null) numbered.set(call.correlation, call);
		}
		this.owners = this.processes.size > 1 ? this._vote(work) : new Map();
	}

	/** The call that queued it, where the trace has it, else null. */
	of(work) {
		if (work.correlation === null) return null;
		const owner = this.processes.get(this.owners.get(gpuOf(work)));
		for (const numbered of owner ? [owner, ...this.processes.values()] : this.processes.values()) {
			const call = numbered.get(work.correlation);
			if (call) return call;
		}
		return null;
	}

	_vote(work) {
		const votes = new Map(), owners = new Map();
		for (const event of work) {
			const counter = ensure(votes, gpuOf(event), () => new Counter());
			for (const [name, numbered] of this.processes) if (numbered.has(event.correlation)) counter.add(name);
		}
		for (const [gpu, counter] of votes) if (counter.size) owners.set(gpu, counter.most());
		return owners;
	}
}
