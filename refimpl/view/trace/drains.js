/** Blocking calls that returned to an empty GPU: what the host does behind them, the GPU waits for; as refimpl/timeline/reports/drains.py. */
import { bisectLeft, bisectRight } from "./annotations.js";

/** Work that ends so soon behind a blocking call is a remainder: the GPU counts as empty. */
const SOON = 10;
/** How many blocking calls of a launch are looked at, the last ones. */
const BACK = 8;

/** The blocking calls of a thread, and whether the GPU had work when they returned. */
export class Drains {
	/** @param {any[]} held the blocking calls @param {any[]} work GPU work; what has no launch call is left out */
	constructor(held, work) {
		const queued = work.filter((s) => s.submit !== null).sort((a, b) => a.submit - b.submit || a.end - b.end);
		let last = -Infinity;
		this.submits = queued.map((s) => s.submit);
		this.ends = queued.map((s) => (last = Math.max(last, s.end)));
		this.held = [...held].sort((a, b) => a.end - b.end);
		this.returns = this.held.map((s) => s.end);
	}

	/** The last of the calls behind which this launch comes late: the GPU was empty when it returned, and it held the host for at least as long as the host then took to the launch; else null. @param {number} submit */
	before(submit) {
		const at = bisectRight(this.returns, submit);
		for (let k = at - 1; k >= Math.max(at - BACK, 0); k--) {
			const held = this.held[k];
			if (held.end - held.start >= submit - held.end && this._emptied(held)) return held;
		}
		return null;
	}

	/** Whether all that was submitted before the call returned had ended by then, or nearly. */
	_emptied(held) {
		const at = bisectLeft(this.submits, held.end);
		return at === 0 || this.ends[at - 1] <= held.end + SOON;
	}
}
