/** The chain of work, calls and waits that ends last, back to the run's beginning; as refimpl/timeline/reports/critical.py. */
import { ensure } from "./calls.js";
import { ByEnd, HostThread } from "./path_parts.js";
import { HOST, isHostLane } from "./places.js";
import { RUN_KIND, launches, works } from "./works.js";

/** At most this long before it starts, work was launched by a call that had not yet returned. */
const SOON = 3;
/** Work that starts so soon after another stream's end may have waited for it. */
const NEAR = 10;
const AFTER_ALL = "after the last work";

/** @typedef {import("./path_parts.js").Segment} Segment */
/** @typedef {{us: number, work: any, lane: string} | null} Place where the walk stands: at the end of work, or on a lane of the host; null at its end */

/** The segments from 0 to the run's end, in order of time and without a gap. @param {import("./profiler.js").Run} run @param {number} end @returns {Segment[]} */
export const criticalPath = (run, end) => new Walk(run, end).back();

/** Goes back from the end, one span at a time. */
class Walk {
	constructor(run, end) {
		const work = works(run), issued = launches(work), lanes = new Map();
		for (const span of work) ensure(lanes, span.lane, () => []).push(span);
		this.end = end;
		this.calls = new Map(issued.map((launch) => [launch.start, launch.name]));
		this.work = new ByEnd(work);
		this.lanes = new Map([...lanes].map(([lane, spans]) => [lane, new ByEnd(spans)]));
		this.threads = new Map([...new Set([HOST, ...run.lanes.filter(isHostLane)])].map((lane) => [lane, new HostThread(run, lane, issued)]));
		/** @type {Segment[]} */ this.path = [];
	}

	/** The whole path, in order of time. */
	back() {
		for (let at = this._last(); at; ) at = at.work ? this._fromWork(at.work, at.us) : this._fromHost(at.lane, at.us);
		return this.path.reverse();
	}

	/** The span that ends last; work before what the host did. @returns {Place} */
	_last() {
		const ends = [this.work, ...[...this.threads.values()].map((thread) => thread.all)].map((byEnd) => byEnd.last(this.end)).filter(Boolean);
		const last = ends.length ? ends.reduce((a, b) => (b.end > a.end ? b : a)) : null;
		this._add(last ? last.lane : HOST, AFTER_ALL, "idle", last ? last.end : 0, this.end);
		return last && { us: last.end, work: last.kind === RUN_KIND ? last : null, lane: last.lane };
	}

	/** The work, and what it waited for: of all that it may have waited for, what came last. @returns {Place} */
	_fromWork(work, until) {
		const { start, lane } = work, before = this.lanes.get(lane).last(start), other = this._other(work), call = this._called(work);
		this._add(lane, work.name, "run", start, until);
		const latest = Math.max(before?.end ?? -Infinity, other?.end ?? -Infinity, call?.[1] ?? -Infinity);
		if (latest === -Infinity) return void this._add(lane, "before the first work", "idle", 0, start) ?? null;
		const ran = before?.end === latest ? before : other?.end === latest ? other : null;
		if (ran) {
			this._add(lane, ran === before ? "between queued work" : `wait for ${ran.lane}`, "idle", latest, start);
			return { us: latest, work: ran, lane: "" };
		}
		this._add(lane, "launch latency", "idle", latest, start);
		this._add(HOST, this.calls.get(work.submit ?? 0) ?? "", "launch", call[0], latest);
		return { us: call[0], work: null, lane: HOST };
	}

	/** Work of another stream right after whose end this one began, else null. */
	_other({ start, lane }) {
		const last = this.work.last(start);
		return last && last.lane !== lane && start - last.end <= NEAR ? last : null;
	}

	/** When its call began, and from when on the work could start, as far as the call is concerned. Where no call is known, the end of what the host did last stands for both. */
	_called({ start, submit, ready }) {
		if (submit === null || ready === null) {
			const last = this.threads.get(HOST).all.last(start);
			return last && [last.end, last.end];
		}
		const begun = Math.min(submit, start);
		return [begun, ready <= start ? ready : Math.max(begun, start - SOON)];
	}

	/** What a thread did since its last blocking call, and what that waited for. @returns {Place} */
	_fromHost(lane, until) {
		const thread = this.threads.get(lane), held = thread.held.last(until);
		this.path.push(...thread.between([held?.end ?? 0, until]).reverse());
		if (!held) return null;
		const waited = this.work.last(held.end), after = waited && waited.end > held.start;
		this._add(lane, held.name, "blocked", after ? waited.end : held.start, held.end);
		return after ? { us: waited.end, work: waited, lane: "" } : { us: held.start, work: null, lane };
	}

	_add(lane, name, kind, from, to) {
		if (to > from) this.path.push({ lane, name, kind, from, to });
	}
}
