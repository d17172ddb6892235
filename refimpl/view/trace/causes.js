/** How long no stream of a GPU ran anything, by what it waited for; as refimpl/timeline/reports/causes.py. */
import { bisectLeft } from "./annotations.js";
import { ensure } from "./calls.js";
import { Drains } from "./drains.js";
import { Overlapping, rest, total, union } from "./intervals.js";
import { HOST, gpuName, isHostLane } from "./places.js";
import { BLOCKED_KIND, HOST_KIND, WAIT_KIND, byText, family, intervalsOf, launches, works } from "./works.js";

/** Longer than a GPU takes to start work that is queued: then the work waited for something. */
const LONG = 20;
const DRAINED = "drained: nothing more came", IN_CALL = "in the launch call", QUEUED = "between queued work";
const LATENCY = "launch latency", UNSEEN = "waiting for something the trace does not show", OTHER = "issuing other work";

/** @param {import("./profiler.js").Run} run @param {number} end of the window */
export function gpuIdle(run, end) {
	const work = works(run), gpus = new Map(run.lanes.filter((lane) => !isHostLane(lane)).map((lane) => [gpuName(lane), []]));
	if (!gpus.size) gpus.set("", []);
	for (const span of work) ensure(gpus, gpuName(span.lane), () => []).push(span);
	const judge = new Judge(run, work, launches(work)), found = new Map();
	const late = new Set();
	let us = 0;
	for (const busy of gpus.values()) {
		const starts = busy.map((s) => s.start);
		for (const gap of rest(intervalsOf(busy), [0, end])) {
			const then = busy[bisectLeft(starts, gap[1])] ?? null, pieces = new Map();
			us += gap[1] - gap[0];
			if (then && then.ready !== null && then.ready > gap[0]) late.add(then.submit);
			for (const [part, cause] of judge.pieces(gap, then)) pieces.set(cause, (pieces.get(cause) ?? 0) + part[1] - part[0]);
			for (const [cause, piece] of pieces) ensure(found, cause, () => []).push(piece);
		}
	}
	const by_cause = [...found].map(([cause, parts]) => ({ cause, times: parts.length, us: parts.reduce((a, b) => a + b, 0) }));
	by_cause.sort((a, b) => b.us - a.us || byText(a.cause, b.cause));
	const whole = end * gpus.size;
	return { us, share: whole ? us / whole : 0, gpus: gpus.size, by_cause, late: late.size };
}

/** Finds what a gap waited for. */
class Judge {
	constructor(run, work, issued) {
		const host = run.spans.filter((s) => s.lane === HOST && s.end > s.start), waits = new Map(run.lanes.map((lane) => [lane, []]));
		for (const span of run.spans) if (span.kind === WAIT_KIND) waits.get(span.lane).push(span);
		const held = host.filter((s) => s.kind === BLOCKED_KIND);
		this.held = new Overlapping(held);
		this.drains = new Drains(held, work);
		this.work = new Overlapping(host.filter((s) => s.kind === HOST_KIND));
		this.calls = new Overlapping(issued);
		this.waits = new Map([...waits].map(([lane, spans]) => [lane, new Overlapping(spans)]));
	}

	/** The parts of a gap, each with its cause. @returns {[[number, number], string][]} */
	pieces(gap, then) {
		if (!then) return [[gap, DRAINED]];
		if (then.submit === null || then.ready === null) return [[gap, this._late(gap, this._after(gap[1]))]];
		const begun = Math.min(Math.max(then.submit, gap[0]), gap[1]), queued = Math.min(Math.max(then.ready, begun), gap[1]);
		const after = queued > gap[0] ? this._after(then.submit) : "";
		/** @type {[[number, number], string][]} */ const found = [];
		if (begun > gap[0]) found.push([[gap[0], begun], this._late([gap[0], begun], after)]);
		if (queued > begun) found.push([[begun, queued], IN_CALL + after]);
		if (gap[1] > queued) found.push(...this._queued([queued, gap[1]], then.lane, then.ready <= gap[0]));
		return found;
	}

	/** The blocking call that made the launch late, in words. */
	_after(submit) {
		const held = this.drains.before(submit);
		return held ? `, after ${family(held.name)}` : "";
	}

	/** Work that was queued and did not start: what its stream waited for, else what the GPU takes to start it. */
	_queued(part, lane, before) {
		const found = [];
		let left = [part];
		for (const wait of this.waits.get(lane).within(part)) {
			const mine = left.flatMap((room) => union([[wait.start, wait.end]], room));
			for (const piece of mine) found.push([piece, `waiting: ${family(wait.name)}`]);
			left = left.flatMap((room) => rest(mine, room));
		}
		const cause = part[1] - part[0] > LONG ? UNSEEN : before ? QUEUED : LATENCY;
		return [...found, ...left.map((piece) => [piece, cause])];
	}

	/** What a late host did for most of a stretch. */
	_late(part, after) {
		const shares = this._shares(part), labels = [...shares.keys()].sort(byText);
		const most = labels.reduce((best, label) => (shares.get(label) > shares.get(best) ? label : best), labels[0]);
		if (most.startsWith("held by ")) return `the host was ${most}`;
		return `the host was late${after || (most ? `: ${most}` : "")}`;
	}

	/** What the host spent that time with: blocked, at work, in calls; the rest is nameless. */
	_shares(part) {
		const spans = [...this.held.within(part), ...this.work.within(part)], shares = new Map();
		const add = (label, us) => shares.set(label, (shares.get(label) ?? 0) + us);
		for (const span of spans) add(span.kind === BLOCKED_KIND ? `held by ${family(span.name)}` : family(span.name), total(union([[span.start, span.end]], part)));
		const known = union(intervalsOf(spans), part), calls = union(intervalsOf(this.calls.within(part)), part), left = total(rest([...known, ...calls], part));
		add(OTHER, Math.max(part[1] - part[0] - total(known) - left, 0));
		shares.set("", left);
		return shares;
	}
}
