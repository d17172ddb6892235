/**
 * A program lowered to primitive ops with explicit edges: the one place where the rules of streams, copies, graphs and the allocator are applied.
 * Every other function of the model is about this list. The rules stand at the top of model.js.
 *
 * @typedef {import("./ranges.js").Range} Range
 * @typedef {"run"|"record"|"wait"|"sync"|"host"|"agent"|"begin"|"end"} Kind
 * @typedef {"fifo"|"submit"|"event"|"sync"|"legacy"|"dep"|"value"} EdgeKind
 * @typedef {{from: number, to: number, kind: EdgeKind, loose?: boolean}} Edge   loose: it fixes a time, but promises no order
 * @typedef {Range & {mem: string}} Access   mem: the memory it lies in, a block or the buffer itself
 * @typedef {{i: number, id: string, kind: Kind, lane: string, chain: string, name: string, us: number, key: string, cost: number, src: number,
 *   reads: Access[], writes: Access[], after: Edge[], call: string, event?: string, flag?: string, implicit?: boolean, value?: string, step?: number, site?: any,
 *   param?: string, k?: number, writers?: number[], begin?: number, graph?: number, slot?: number, slots?: number, whole?: number, span?: number}} Op   call: what refimpl calls it; chain: a line of ops of which each comes after the one before
 * @typedef {{ops: Op[], lanes: string[], chains: string[], order: number[], never: Set<number>, at: number[], on: Map<string, number[]>}} Compiled
 *   order: one in which the ops may run; at: place of each op in its chain, from 1; on: the ops of each lane
 */
import { Allocator } from "./allocator.js";
import { bindFlags, runOrder } from "./flags.js";
import { CALL_US, HOST, legacyLane, sortLanes, stem, WORK_US } from "./lanes.js";
import { rangeEnd } from "./ranges.js";
import { lowerGraph } from "./graph.js";
import { callName, copyRule } from "./rules.js";

export * from "./lanes.js";

const NONE = Object.freeze([]);

/** Lower a program; a field that is left out has the default of refimpl.program. @param {any} program @returns {Compiled} */
export function compile(program) {
	return new Lowering(program).result();
}

class Lowering {
	constructor(program) {
		this.buffers = Object.assign(Object.create(null), program.buffers);
		this.streams = Object.assign(Object.create(null), program.streams);
		/** @type {Op[]} */ this.ops = [];
		this.device = 0;
		this.host = undefined;
		this.tail = new Map();
		this.barrier = new Map();
		this.current = new Map();
		this.seen = new Map();
		this.stems = new Map();
		this.agents = new Map();
		/** @type {string[]} */ this.idle = [];
		this.allocator = new Allocator(program.ops ?? []);
		this.program = program;
		(program.ops ?? []).forEach((s, at) => this.lower(s, at));
	}

	fail(text) {
		throw new Error(`${this.program.id ?? "program"}, op ${this.index} (${this.s.op}): ${text}`);
	}

	// ── lanes ──
	laneOf(stream = "legacy") {
		if (stream === "legacy") return legacyLane(this.device);
		if (!(stream in this.streams)) this.fail(`unknown stream "${stream}"`);
		return stream;
	}
	deviceOf(lane) {
		return lane in this.streams ? this.streams[lane].device ?? 0 : Number(lane.split(" ")[1] ?? 0);
	}
	isBlocking(lane) {
		return ["blocking", "per_thread"].includes(this.streams[lane]?.kind);
	}
	/** Streams of the current device that hold work, the legacy stream included. */
	busyLanes(device) {
		return [...this.tail.keys()].filter((l) => this.deviceOf(l) === device);
	}

	// ── adding one op with the edges its lane gives it ──
	/** @returns {Op} one shape for all, so that the engine keeps them small and quick */
	add(o, more = NONE) {
		const { step, value, site, param } = this.s, { kind, lane } = o, i = this.ops.length, name = this.named(o.name);
		const base = `${lane} ${kind} ${o.event ?? o.flag ?? name}${step == null ? "" : ` @${step}`}`, k = this.seen.get(base) ?? 0;
		this.seen.set(base, k + 1);
		const op = {
			i, id: k ? `${base}~${k}` : base, kind, lane, chain: o.chain ?? lane, k: -1, name, call: o.call ?? this.said, us: o.us ?? 0, cost: o.cost ?? CALL_US, src: this.index,
			key: o.key ?? param ?? `${this.s.op} ${this.stem(name)}`, reads: o.reads ?? NONE, writes: o.writes ?? NONE, after: this.edgesInto(o, more, i), event: o.event, flag: o.flag,
			implicit: o.implicit, value: o.value ?? value, step, site, param, writers: undefined, begin: o.begin, graph: o.graph, slot: o.slot, slots: undefined, whole: o.whole, span: undefined,
		};
		this.ops.push(op);
		if (lane === HOST) this.host = i;
		else if (kind !== "agent" && o.graph === undefined) this.ends(lane, i);
		return op;
	}
	stem(name) {
		if (!this.stems.has(name)) this.stems.set(name, stem(name));
		return this.stems.get(name);
	}
	/** The stream now ends in this op. What the allocator marks is no action: no blocking stream waits for a mark on legacy. */
	ends(lane, i) {
		this.tail.set(lane, i);
		if (this.s.op !== "tensor_free") this.barrier.set(lane, i);
	}
	named(name) {
		return this.s.step == null || /\d\)?$/.test(name) ? name : `${name} ${this.s.step}`;
	}
	/** The edges that its lane gives an op, and more. @returns {Edge[]} */
	edgesInto(o, more, to) {
		const out = [], put = (from, kind) => { if (from !== undefined) out.push({ from, to, kind, loose: false }); };
		if (o.lane === HOST) put(this.host, "fifo");
		else if (o.graph === undefined) {
			if (o.kind !== "agent") this.queueEdges(o.lane, put);
			put(this.host, "submit");
		}
		for (const e of more) out.push({ from: e.from, to, kind: e.kind, loose: e.loose ?? false });
		return out;
	}
	queueEdges(lane, put) {
		const own = this.tail.get(lane), legacy = legacyLane(this.deviceOf(lane)), later = (l) => { const at = this.barrier.get(l); if (at > (own ?? -1)) put(at, "legacy"); };
		put(own, "fifo");
		if (this.isBlocking(lane)) later(legacy);
		else if (lane === legacy) for (const l of this.busyLanes(this.deviceOf(lane))) if (this.isBlocking(l)) later(l);
	}
	mark(kind, lane, event, more = NONE, extra = undefined) {
		let held = kind === "record" ? this.named(event) : event;
		// A device's synchronize may stand behind a record, and waits for all streams: it is not named after that event.
		for (const e of this.s.op === "device_sync" ? NONE : more) {
			const o = e.kind === "dep" || kind === "record" ? undefined : this.ops[e.from];
			if (o?.kind === "record" && !o.implicit) { held = o.event; break; }
		}
		const what = held.startsWith("tail of ") ? held.slice(8) : held;
		return this.add({ kind, lane, event: held, name: `${kind === "sync" ? "synchronize" : kind}(${what})`, ...extra }, more);
	}
	edges(kind, froms) {
		return froms.filter((f) => f !== undefined).map((from) => ({ from, kind }));
	}
	/** Edges from what an event holds. Where either of two records of a graph may be the last, the later one fixes the time and only the graph's begin the order. */
	captured(kind, held) {
		if (held === undefined) return [];
		return held.begin === undefined ? [{ from: held.at, kind }] : [{ from: held.at, kind, loose: true }, { from: held.begin, kind }];
	}
	capture(event, at, begin) {
		this.current.set(event, { at, begin });
	}
	/** A record at a stream's tail that no event names. */
	tailMark(lane, cost = 0) {
		return this.mark("record", lane, `tail of ${lane}`, [], { implicit: true, cost });
	}

	// ── memory ──
	range(r) {
		const b = this.buffers[r.buf] ?? this.fail(`unknown buffer "${r.buf}"`);
		if (b.bytes !== undefined && (rangeEnd(r) > b.bytes || r.off < 0)) this.fail(`range ${r.buf}[${r.off}:${rangeEnd(r)}] is outside its ${b.bytes} bytes`);
		return { buf: r.buf, off: r.off, len: r.len, rows: r.rows ?? 1, stride: r.stride ?? 0, mem: this.allocator.memory(r.buf) };
	}
	ranges(rs) {
		return rs?.length ? rs.map((r) => this.range(r)) : NONE;
	}
	memOf(buf) {
		return (this.buffers[buf] ?? this.fail(`unknown buffer "${buf}"`)).mem ?? "device";
	}

	// ── one program op ──
	lower(s, at) {
		this.s = s;
		this.index = at;
		this.said = callName(s);
		const work = (what) => ({ name: s.name ?? what, us: s.us ?? WORK_US });
		switch (s.op) {
			case "launch": return this.add({ kind: "run", lane: this.laneOf(s.stream), ...work("kernel"), reads: this.ranges(s.reads), writes: this.ranges(s.writes) });
			case "memcpy": return this.copy(s);
			case "memset": return this.set(s);
			case "graph_launch": return lowerGraph(this, s);
			case "host_work": return this.hostOp(s, s.name ?? "host work");
			case "host_read": return this.hostOp(s, s.name ?? `read ${s.range.buf}`, { reads: this.ranges([s.range]) });
			case "host_write": return this.hostOp(s, s.name ?? `write ${s.range.buf}`, { writes: this.ranges([s.range]) });
			case "event_record": return this.capture(s.event, this.mark("record", this.laneOf(s.stream), s.event).i);
			case "stream_wait_event": return this.mark("wait", this.laneOf(s.stream), s.event, this.captured("event", this.current.get(s.event)));
			case "stream_wait_stream": return this.waitStream(s);
			case "event_sync": case "event_query_until_success": return this.mark("sync", HOST, s.event, this.captured("sync", this.current.get(s.event)));
			case "stream_sync": case "stream_query_until_success": return this.streamSync(s);
			case "device_sync": return this.mark("sync", HOST, `device ${this.device}`, this.edges("sync", this.busyLanes(this.device).map((l) => this.tail.get(l))));
			case "host_async_begin": return this.asyncBegin(s);
			case "host_async_wait": return this.asyncWait(s);
			case "stream_write_value": return this.add({ kind: "record", lane: this.laneOf(s.stream), flag: s.flag, event: s.flag, name: `write(${s.flag})` });
			case "stream_wait_value": return this.add({ kind: "wait", lane: this.laneOf(s.stream), flag: s.flag, event: s.flag, name: `wait(${s.flag})` });
			case "tensor_alloc": return this.own(s);
			case "tensor_free": return this.allocator.give(s.buf, (lane) => this.tailMark(lane).i);
			case "record_stream": return this.allocator.use(s.buf, this.laneOf(s.stream));
			case "set_device": this.device = s.device; return undefined;
			case "alloc": case "free": return undefined;
			default: return this.fail("unknown op");
		}
	}
	hostOp(s, name, access = {}) {
		return this.add({ kind: "host", lane: HOST, name, us: s.us ?? 0, cost: 0, ...access });
	}
	/** The host returns only when `op` has ended. */
	hold(op, what) {
		return this.mark("sync", HOST, what, this.edges("sync", [op.i]), { implicit: true, cost: 0 });
	}
	copy(s) {
		const rule = copyRule(s, (b) => this.memOf(b)), lane = this.laneOf(s.api === "sync" ? "legacy" : s.stream), reads = this.ranges([s.src]);
		const op = { kind: "run", lane, name: s.name ?? rule.kind, us: s.us ?? WORK_US, reads, writes: this.ranges([s.dst]) };
		if (rule.host !== "staged") {
			const done = this.add(op);
			return rule.host === "end" ? this.hold(done, rule.kind) : done;
		}
		this.hold(this.tailMark(lane, CALL_US), lane);
		this.add({ kind: "host", lane: HOST, name: `stage ${s.src.buf}`, cost: 0, reads, implicit: true });
		return this.add({ ...op, reads: [], cost: 0 });
	}
	set(s) {
		const sync = s.api === "sync", lane = this.laneOf(sync ? "legacy" : s.stream);
		const op = this.add({ kind: "run", lane, name: s.name ?? "memset", us: s.us ?? WORK_US, writes: this.ranges([s.dst]) });
		return sync && this.memOf(s.dst.buf) === "pinned" ? this.hold(op, "memset") : op;
	}
	waitStream(s) {
		const to = this.laneOf(s.stream), mark = this.tailMark(this.laneOf(s.on), CALL_US);
		return this.mark("wait", to, `tail of ${mark.lane}`, this.edges("event", [mark.i]), { implicit: true, cost: 0 });
	}
	streamSync(s) {
		const mark = this.tailMark(this.laneOf(s.stream), CALL_US);
		return this.mark("sync", HOST, `tail of ${mark.lane}`, this.edges("sync", [mark.i]), { cost: 0 });
	}
	/** Whoever begins after the host has seen an agent end comes after it, and so goes on in its chain. */
	asyncBegin(s) {
		const lane = `agent ${s.id}`, access = this.ranges([s.range]), chain = this.idle.pop() ?? `${lane} #${this.ops.length}`;
		const op = this.add({ kind: "agent", lane, chain, name: s.name ?? `${s.access} ${s.range.buf}`, us: s.us ?? WORK_US, [s.access === "write" ? "writes" : "reads"]: access });
		this.agents.set(s.id, [...(this.agents.get(s.id) ?? []), op.i]);
	}
	asyncWait(s) {
		const ended = this.agents.get(s.id) ?? [];
		this.mark("sync", HOST, `agent ${s.id}`, this.edges("sync", ended));
		this.agents.delete(s.id);
		this.idle.push(...ended.map((i) => this.ops[i].chain));
	}

	// ── the caching allocator ──
	own(s) {
		const marks = this.allocator.take(s, s.stream == null ? undefined : this.laneOf(s.stream));
		if (marks.length) this.mark("sync", HOST, `reuse of ${s.block}`, this.edges("sync", marks), { implicit: true, cost: 0 });
	}

	// ── what runs at all, and in which order ──
	result() {
		const { ops } = this, used = new Set(ops.map((o) => o.lane)), lanes = sortLanes([...Object.keys(this.streams), "legacy", ...used].filter((l) => used.has(l))), on = new Map(lanes.map((l) => [l, []]));
		const chains = [...new Set([HOST, ...ops.map((o) => o.chain)])], c = { ops, lanes, chains, ...runOrder(ops), at: [], on };
		const count = chains.map(() => 0), index = new Map(chains.map((x, k) => [x, k]));
		for (const o of ops) {
			o.k = index.get(o.chain);
			c.at.push(++count[o.k]);
			on.get(o.lane).push(o.i);
		}
		return bindFlags(c);
	}
}
