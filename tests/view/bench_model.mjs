// How long the component's model takes on loops of the engine's kind. `node tests/view/bench_model.mjs [--json] [--repeats 15] [--sizes 100,1000,10000]`.
import { parseArgs } from "node:util";
import * as M from "../../refimpl/view/model/model.js";

const whole = (buf, off = 0, len = 64) => ({ buf, off, len });

/** An overlapped loop of about `size` ops: a graph and two small kernels a step, a copy to the host, its result read one step late. */
export function loop(size, { fenced = true, flags = false } = {}) {
	const ops = [], rows = 16;
	for (let n = 0; ops.length < size; n++) {
		const add = (op, fields) => ops.push({ op, step: n, ...fields }), half = (n % 2) * 64, row = (n % rows) * 64;
		add("host_work", { name: "prepare", us: 40 });
		if (fenced && n) add("stream_wait_event", { stream: "schedule", event: "verify_done" });
		add("launch", { stream: "schedule", name: "gather", us: 18, reads: [whole("lens")], writes: [whole("batch", half)] });
		add("stream_wait_stream", { stream: "plan", on: "schedule" });
		add("launch", { stream: "plan", name: "plan", us: 25, reads: [whole("batch", half)], writes: [whole("indices", half)] });
		if (flags) add("stream_write_value", { stream: "plan", flag: `planned ${n % 4}` });
		if (flags) add("stream_wait_value", { stream: "forward", flag: `planned ${n % 4}` });
		add("stream_wait_stream", { stream: "forward", on: "plan" });
		add("graph_launch", { stream: "forward", name: "verify", us: 260, nodes: [
			{ name: "load", deps: [], reads: [whole("batch", half), whole("indices", half)], writes: [whole("hidden")] },
			{ name: "read_done", record: "read_done", deps: ["load"] },
			{ name: "verify", deps: ["load"], reads: [whole("hidden"), { buf: "kv", off: 0, len: 32, rows, stride: 64 }], writes: [whole("kv", row, 32), whole("result", half)] },
			{ name: "accept", deps: ["verify"], reads: [whole("result", half)], writes: [whole("lens")] }] });
		add("event_record", { stream: "forward", event: "verify_done" });
		add("stream_wait_stream", { stream: "copy", on: "forward" });
		add("memcpy", { stream: "copy", api: "async", kind: "D2H", us: 12, src: whole("result", half), dst: whole("result_cpu", half) });
		add("event_record", { stream: "copy", event: `copy_done ${n % 2}` });
		if (n) add("event_sync", { event: `copy_done ${(n + 1) % 2}` });
		if (n) add("host_read", { name: "results", us: 30, range: whole("result_cpu", 64 - half) });
	}
	const buffers = { lens: 64, batch: 128, indices: 128, hidden: 64, kv: rows * 64, result: 128 };
	return {
		schema: 1, id: `loop of ${ops.length} ops`, ops, streams: Object.fromEntries(["schedule", "plan", "forward", "copy"].map((s) => [s, { kind: "nonblocking" }])),
		buffers: { ...Object.fromEntries(Object.entries(buffers).map(([b, bytes]) => [b, { mem: "device", bytes }])), result_cpu: { mem: "pinned", bytes: 128 } },
	};
}

/** The parts of one solution, each with the milliseconds of processor time that it took. */
function parts(program) {
	const ms = {}, timed = (name, work) => { const from = process.cpuUsage(), out = work(), { user, system } = process.cpuUsage(from); ms[name] = (user + system) / 1000; return out; };
	const c = timed("compile", () => M.compile(program)), V = timed("clocks", () => M.clocks(c)), rs = timed("races", () => M.races(c, V)), T = timed("schedule", () => M.schedule(c));
	const G = timed("gaps", () => M.gaps(c, T));
	timed("account", () => M.account(c, T, { stepOp: "verify", hero: "forward" }));
	timed("wrongReads", () => M.wrongReads(c, T, rs));
	ms.solved = Object.values(ms).reduce((x, y) => x + y, 0);
	timed("asked", () => { for (const o of c.ops) M.waitedFor(c, T, o.i); for (const g of G) M.blame(c, T, g); });
	return { ms, ops: program.ops.length, lowered: c.ops.length, races: rs.length };
}
const quantile = (xs, q) => [...xs].sort((p, r) => p - r)[Math.floor(q * (xs.length - 1))];

/** Median, p10 and p90 of each part over the repeats, after a warm-up. @param {number[]} sizes @param {number} repeats */
export function measure(sizes, repeats) {
	const kinds = { fenced: {}, racing: { fenced: false }, flags: { flags: true } }, out = [];
	for (const size of sizes) for (const [kind, options] of Object.entries(kinds)) {
		const program = loop(size, options);
		parts(program);
		const all = Array.from({ length: repeats }, () => parts(program)), { ops, lowered, races } = all[0];
		const ms = Object.fromEntries(Object.keys(all[0].ms).map((part) => { const xs = all.map((x) => x.ms[part]); return [part, { median: quantile(xs, 0.5), p10: quantile(xs, 0.1), p90: quantile(xs, 0.9) }]; }));
		out.push({ kind, ops, lowered, races, repeats, ms });
	}
	return out;
}

if (import.meta.url === `file://${process.argv[1]}`) {
	const { values } = parseArgs({ options: { json: { type: "boolean" }, repeats: { type: "string", default: "15" }, sizes: { type: "string", default: "100,1000,10000" }, help: { type: "boolean" } } });
	const sizes = values.sizes.split(",").map(Number);
	if (values.help || !sizes.every((n) => n > 0) || !(Number(values.repeats) > 0)) console.log("node bench_model.mjs [--json] [--repeats N] [--sizes 100,1000,10000]: the model's processor time, in milliseconds");
	else {
		const rows = measure(sizes, Number(values.repeats));
		if (values.json) console.log(JSON.stringify(rows));
		else for (const r of rows) console.log(`${r.kind.padEnd(7)} ${String(r.ops).padStart(6)} ops  ${Object.entries(r.ms).map(([part, x]) => `${part} ${x.median.toFixed(1)}`).join("  ")}  (${r.races} races, n ${r.repeats})`);
	}
}
