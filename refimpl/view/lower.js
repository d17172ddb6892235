/**
 * A program lowered to primitive ops with explicit edges: the one place where the rules of streams, copies, graphs and the allocator are applied.
 * Every other function of the model is about this list. The rules stand at the top of model.js.
 *
 * @typedef {import("./ranges.js").Range} Range
 * @typedef {"run"|"record"|"wait"|"sync"|"host"|"agent"|"begin"|"end"} Kind
 * @typedef {"fifo"|"submit"|"event"|"sync"|"legacy"|"dep"|"value"} EdgeKind
 * @typedef {{from: number, to: number, kind: EdgeKind}} Edge
 * @typedef {Range & {mem: string, owner: number}} Access   mem: the memory it lies in, a block or the buffer itself; owner: which life of that memory
 * @typedef {{i: number, id: string, kind: Kind, lane: string, chain: string, name: string, us: number, key: string, cost: number, src: number,
 *   reads: Access[], writes: Access[], after: Edge[], event?: string, flag?: string, implicit?: boolean, value?: string, step?: number, site?: any,
 *   param?: string, k?: number, writers?: number[], begin?: number, graph?: number, slot?: number, slots?: number, whole?: number, span?: number}} Op
 * @typedef {{ops: Op[], lanes: string[], chains: string[], order: number[], never: Set<number>, at: number[]}} Compiled
 */
import { bindFlags, runOrder } from "./flags.js";
import { rangeEnd } from "./ranges.js";
import { copyRule, sortNodes, unclearRecords } from "./rules.js";

export const HOST = "host";
export const CALL_US = 6;
export const WORK_US = 10;
const LANE_ORDER = [HOST, "schedule", "plan", "forward", "copy"];

/** "verify_done 3" is of the family "verify_done". @param {string} name */
export const stem = (name) => name.replace(/[ _#-]?\d+(?=\)?$)/, "") || name;

/** Lanes top to bottom, each once, the host always first. @param {string[]} lanes */
export function sortLanes(lanes) {
	const rank = (l) => LANE_ORDER.indexOf(l) + 1 || (l.startsWith("agent ") ? 99 : 50);
	return [...new Set([HOST, ...lanes])].sort((p, q) => rank(p) - rank(q));
}

/** Lower a program; a field that is left out has the default of refimpl.program. @param {any} program @returns {Compiled} */
export function compile(program) {
	return new Lowering(program).result();
}

class Lowering {
	constructor(program) {
		this.buffers = program.buffers ?? {};
		this.streams = program.streams ?? {};
		/** @type {Op[]} */ this.ops = [];
		this.device = 0;
		this.host = undefined;
		this.tail = new Map();
		this.current = new Map();
		this.seen = new Map();
		this.agents = new Map();
		this.owners = new Map();
		this.users = new Map();
		this.homes = new Map();
		this.pending = new Map();
		this.lives = 0;
		this.program = program;
		this.bornBefore();
		(program.ops ?? []).forEach((s, at) => this.lower(s, at));
	}
	/** A buffer that is freed before it is handed out was handed out before the program begins. */
	bornBefore() {
		const first = new Map();
		for (const s of this.program.ops ?? []) if (/^tensor_(alloc|free)$/.test(s.op) && !first.has(s.buf)) first.set(s.buf, s);
		for (const s of first.values()) if (s.op === "tensor_free" && s.block != null) this.owners.set(s.buf, { block: s.block, life: ++this.lives });
	}

	fail(text) {
		throw new Error(`${this.program.id ?? "program"}, op ${this.index} (${this.s.op}): ${text}`);
	}

	// ── lanes ──
	laneOf(stream = "legacy") {
		if (stream === "legacy") return this.legacy(this.device);
		if (!(stream in this.streams)) this.fail(`unknown stream "${stream}"`);
		return stream;
	}
	legacy(device) {
		return device ? `legacy ${device}` : "legacy";
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
	add(o, more = []) {
		const { step, value, site, param } = this.s, lane = o.lane, i = this.ops.length, name = this.named(o.name);
		const base = `${lane} ${o.kind} ${o.event ?? o.flag ?? name}${step === undefined ? "" : ` @${step}`}`, k = this.seen.get(base) ?? 0;
		this.seen.set(base, k + 1);
		const after = [...this.laneEdges(o), ...more].map((e) => ({ ...e, to: i }));
		const op = { us: 0, reads: [], writes: [], cost: CALL_US, value, step, site, param, chain: lane, key: param ?? `${this.s.op} ${stem(name)}`, ...o, name,
			id: k ? `${base}~${k}` : base, i, src: this.index, after };
		this.ops.push(op);
		if (lane === HOST) this.host = i;
		else if (o.kind !== "agent" && o.graph === undefined) this.tail.set(lane, i);
		return op;
	}
	named(name) {
		return this.s.step === undefined || /\d\)?$/.test(name) ? name : `${name} ${this.s.step}`;
	}
	laneEdges(o) {
		const submit = this.host === undefined ? [] : [{ from: this.host, kind: "submit" }];
		if (o.lane === HOST) return this.host === undefined ? [] : [{ from: this.host, kind: "fifo" }];
		if (o.kind === "agent") return submit;
		if (o.graph !== undefined) return [];
		const own = this.tail.get(o.lane), out = own === undefined ? [] : [{ from: own, kind: "fifo" }];
		const device = this.deviceOf(o.lane), legacy = this.legacy(device);
		const barriers = o.lane === legacy ? this.busyLanes(device).filter((l) => this.isBlocking(l)) : this.isBlocking(o.lane) ? [legacy] : [];
		for (const l of barriers) if ((this.tail.get(l) ?? -1) > (own ?? -1)) out.push({ from: this.tail.get(l), kind: "legacy" });
		return [...out, ...submit];
	}
	mark(kind, lane, event, more = [], extra = {}) {
		const bound = more.map((e) => (e.kind === "dep" ? undefined : this.ops[e.from])).find((o) => o?.kind === "record" && !o.implicit);
		const held = kind === "record" ? this.named(event) : bound?.event ?? event;
		return this.add({ kind, lane, event: held, name: `${kind === "sync" ? "synchronize" : kind}(${held.replace(/^tail of /, "")})`, ...extra }, more);
	}
	edges(kind, froms) {
		return froms.filter((f) => f !== undefined).map((from) => ({ from, kind }));
	}
	captured(kind, event) {
		return this.edges(kind, [this.current.get(event)]);
	}
	/** A record at a stream's tail that no event names. */
	tailMark(lane, cost = 0) {
		return this.mark("record", lane, `tail of ${lane}`, [], { implicit: true, cost });
	}

	// ── memory ──
	range(r) {
		const b = this.buffers[r.buf] ?? this.fail(`unknown buffer "${r.buf}"`);
		if (b.bytes !== undefined && (rangeEnd(r) > b.bytes || r.off < 0)) this.fail(`range ${r.buf}[${r.off}:${rangeEnd(r)}] is outside its ${b.bytes} bytes`);
		const o = this.owners.get(r.buf);
		return { ...r, mem: o?.block === undefined ? `buffer ${r.buf}` : `block ${o.block}`, owner: o?.life ?? 0 };
	}
	ranges(rs) {
		return (rs ?? []).map((r) => this.range(r));
	}
	memOf(buf) {
		return (this.buffers[buf] ?? this.fail(`unknown buffer "${buf}"`)).mem ?? "device";
	}

	// ── one program op ──
	lower(s, at) {
		this.s = s;
		this.index = at;
		const work = (what) => ({ name: s.name ?? what, us: s.us ?? WORK_US });
		switch (s.op) {
			case "launch": return this.add({ kind: "run", lane: this.laneOf(s.stream), ...work("kernel"), reads: this.ranges(s.reads), writes: this.ranges(s.writes) });
			case "memcpy": return this.copy(s);
			case "memset": return this.set(s);
			case "graph_launch": return this.graph(s);
			case "host_work": return this.hostOp(s, s.name ?? "host work");
			case "host_read": return this.hostOp(s, s.name ?? `read ${s.range.buf}`, { reads: this.ranges([s.range]) });
			case "host_write": return this.hostOp(s, s.name ?? `write ${s.range.buf}`, { writes: this.ranges([s.range]) });
			case "event_record": return this.current.set(s.event, this.mark("record", this.laneOf(s.stream), s.event).i);
			case "stream_wait_event": return this.mark("wait", this.laneOf(s.stream), s.event, this.captured("event", s.event));
			case "stream_wait_stream": return this.waitStream(s);
			case "event_sync": case "event_query_until_success": return this.mark("sync", HOST, s.event, this.captured("sync", s.event));
			case "stream_sync": case "stream_query_until_success": return this.streamSync(s);
			case "device_sync": return this.mark("sync", HOST, `device ${this.device}`, this.edges("sync", this.busyLanes(this.device).map((l) => this.tail.get(l))));
			case "host_async_begin": return this.asyncBegin(s);
			case "host_async_wait": return this.asyncWait(s);
			case "stream_write_value": return this.add({ kind: "record", lane: this.laneOf(s.stream), flag: s.flag, event: s.flag, name: `write(${s.flag})` });
			case "stream_wait_value": return this.add({ kind: "wait", lane: this.laneOf(s.stream), flag: s.flag, event: s.flag, name: `wait(${s.flag})` });
			case "tensor_alloc": return this.own(s);
			case "tensor_free": return this.release(s);
			case "record_stream": return this.use(s);
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
		const to = this.laneOf(s.stream), mark = this.tailMark(this.laneOf(s.on));
		return this.mark("wait", to, `tail of ${mark.lane}`, this.edges("event", [mark.i]), { implicit: true });
	}
	streamSync(s) {
		const mark = this.tailMark(this.laneOf(s.stream));
		return this.mark("sync", HOST, `tail of ${mark.lane}`, this.edges("sync", [mark.i]));
	}
	asyncBegin(s) {
		const lane = `agent ${s.id}`, access = this.ranges([s.range]), chain = `${lane} #${this.ops.length}`;
		const op = this.add({ kind: "agent", lane, chain, name: s.name ?? `${s.access} ${s.range.buf}`, us: s.us ?? WORK_US, [s.access === "write" ? "writes" : "reads"]: access });
		this.agents.set(s.id, [...(this.agents.get(s.id) ?? []), op.i]);
	}
	asyncWait(s) {
		this.mark("sync", HOST, `agent ${s.id}`, this.edges("sync", this.agents.get(s.id) ?? []));
		this.agents.set(s.id, []);
	}

	// ── graphs ──
	graph(s) {
		const lane = this.laneOf(s.stream), begin = this.add({ kind: "begin", lane, name: s.name ?? "graph", whole: s.us }), made = new Map(), heads = [], open = new Set([begin.i]);
		const armed = new Map(this.current), depth = new Map();
		for (const n of sortNodes(s.nodes ?? [], (t) => this.fail(t))) {
			const deps = (n.deps ?? []).map((d) => made.get(d)), k = heads.findIndex((h) => deps.includes(h)), slot = k < 0 ? heads.length : k;
			const edges = this.edges("dep", deps.length ? deps : [begin.i]), place = { lane, graph: begin.i, slot, chain: slot ? `${lane} #${slot}` : lane, cost: 0 };
			const op = this.node(n, s, place, edges, armed);
			heads[slot] = op.i;
			deps.forEach((d) => open.delete(d));
			open.delete(begin.i);
			open.add(op.i);
			made.set(n.name, op.i);
			depth.set(op.i, Math.max(0, ...deps.map((d) => depth.get(d))) + op.us);
		}
		for (const name of unclearRecords(s.nodes ?? [])) this.ops[made.get(name)].covers = begin.i;
		begin.span = Math.max(0, ...depth.values());
		for (const i of made.values()) this.ops[i].slots = heads.length;
		this.add({ kind: "end", lane, name: "graph end", cost: 0, begin: begin.i }, this.edges("dep", [...open]));
	}
	node(n, s, place, edges, armed) {
		const common = { ...place, value: n.value ?? s.value };
		if (n.record !== undefined) {
			const op = this.mark("record", place.lane, n.record, edges, common);
			this.current.set(n.record, op.i);
			return op;
		}
		if (n.wait !== undefined) return this.mark("wait", place.lane, n.wait, [...edges, ...this.edges("event", [armed.get(n.wait)])], common);
		const key = s.param ?? (s.us === undefined ? n.param : undefined) ?? (s.us === undefined ? `node ${stem(n.name)}` : `graph ${stem(s.nodes[0].name)}`);
		return this.add({ kind: "run", ...common, key, name: n.name, us: n.us ?? WORK_US, reads: this.ranges(n.reads), writes: this.ranges(n.writes) }, edges);
	}

	// ── the caching allocator ──
	own(s) {
		this.homes.set(s.buf, s.stream == null ? undefined : this.laneOf(s.stream));
		if (s.block == null) return;
		const marks = this.pending.get(s.block) ?? [];
		if (marks.length) this.mark("sync", HOST, `reuse of ${s.block}`, this.edges("sync", marks), { implicit: true, cost: 0 });
		this.pending.delete(s.block);
		this.users.delete(s.buf);
		this.owners.set(s.buf, { block: s.block, life: ++this.lives });
	}
	/** The allocator marks the tail of every recorded stream when the tensor is freed, and reuses the block only after those marks. */
	release(s) {
		const owner = this.owners.get(s.buf), users = this.users.get(s.buf) ?? [];
		this.users.delete(s.buf);
		if (!owner) return;
		const marks = users.map((lane) => this.tailMark(lane).i);
		this.pending.set(owner.block, [...(this.pending.get(owner.block) ?? []), ...marks]);
	}
	/** Of the stream that a tensor was handed out on the allocator knows anyhow. */
	use(s) {
		if (this.homes.get(s.buf) === this.laneOf(s.stream)) return;
		this.users.set(s.buf, [...(this.users.get(s.buf) ?? []), this.laneOf(s.stream)]);
	}

	// ── what runs at all, and in which order ──
	result() {
		const { ops } = this, lanes = sortLanes(ops.map((o) => o.lane));
		const chains = [...new Set([HOST, ...ops.map((o) => o.chain)])], c = { ops, lanes, chains, ...runOrder(ops), at: [] };
		const count = chains.map(() => 0), index = new Map(chains.map((x, k) => [x, k]));
		for (const o of ops) { o.k = index.get(o.chain); c.at.push(++count[o.k]); }
		return bindFlags(c);
	}
}
