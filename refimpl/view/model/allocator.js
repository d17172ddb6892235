/** The caching allocator as a program shows it: which block a buffer lies in, and which streams it knows of. The rules of refimpl/order/graph.py. */
export class Allocator {
	/** A buffer that is freed before it is handed out was handed out before the program begins. @param {any[]} ops */
	constructor(ops) {
		/** @type {Map<string, string>} */ this.blocks = new Map();
		/** @type {Map<string, string|undefined>} */ this.homes = new Map();
		/** @type {Map<string, string[]>} */ this.users = new Map();
		/** @type {Map<string, number[]>} */ this.pending = new Map();
		const seen = new Set();
		for (const s of ops) {
			if (s.op !== "tensor_alloc" && s.op !== "tensor_free") continue;
			if (s.op === "tensor_free" && !seen.has(s.buf) && s.block != null) this.blocks.set(s.buf, s.block);
			seen.add(s.buf);
		}
	}
	/** The memory that a buffer lies in now: successive owners of a block share one. @param {string} buf */
	memory(buf) {
		const block = this.blocks.get(buf);
		return block === undefined ? `buffer ${buf}` : `block ${block}`;
	}
	/** Of the stream that a buffer was handed out on the allocator knows anyhow. @param {string} buf @param {string} lane */
	use(buf, lane) {
		if (this.homes.get(buf) !== lane) this.users.set(buf, [...(this.users.get(buf) ?? []), lane]);
	}
	/** A free marks what each recorded stream holds now: the block waits for it. @param {string} buf @param {(lane: string) => number} mark */
	give(buf, mark) {
		const block = this.blocks.get(buf), users = this.users.get(buf) ?? [];
		this.users.delete(buf);
		if (block !== undefined) this.pending.set(block, [...(this.pending.get(block) ?? []), ...users.map(mark)]);
	}
	/** The buffer is handed out; returns the marks that have to be passed before its block is. @param {any} s @param {string|undefined} home */
	take(s, home) {
		this.homes.set(s.buf, home);
		if (s.block == null) return [];
		const marks = this.pending.get(s.block) ?? [];
		this.pending.delete(s.block);
		this.blocks.set(s.buf, s.block);
		this.users.delete(s.buf);
		return marks;
	}
}
