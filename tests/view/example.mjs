// The chapter's program as an explorable: an overlapped two-stream loop in three variants. `node example.mjs` prints it as JSON.
const range = (buf, off = 0, len = 64) => ({ buf, off, len });

function loop(fence, steps) {
	const ops = [];
	for (let n = 0; n < steps; n++) {
		const op = (name, fields) => ops.push({ op: name, step: n, site: `loop.py:${20 + ops.length % 9} (event_loop)`, ...fields });
		if (fence === "synchronize" && n) op("event_sync", { event: "verify_done" });
		op("host_work", { name: "prepare", us: 900, param: "host" });
		if (fence === "wait" && n) op("stream_wait_event", { stream: "schedule", event: "verify_done" });
		op("launch", { stream: "schedule", name: "gather", us: 180, reads: [range("new_seq_lens")], writes: [range("batch", (n % 2) * 64)] });
		op("stream_wait_stream", { stream: "forward", on: "schedule" });
		op("graph_launch", { stream: "forward", name: "forward", us: 2600, param: "graph", value: `lengths of step ${n}`, nodes: [
			{ name: "forward", reads: [range("batch", (n % 2) * 64)], writes: [range("new_seq_lens"), range("result", (n % 2) * 64)], deps: [] }] });
		op("event_record", { stream: "forward", event: "verify_done" });
		op("stream_wait_stream", { stream: "copy", on: "forward" });
		op("memcpy", { stream: "copy", api: "async", kind: "D2H", us: 120, src: range("result", (n % 2) * 64), dst: range("result_cpu", (n % 2) * 64) });
		op("event_record", { stream: "copy", event: `copy_done_${n % 2}` });
		if (n) op("event_sync", { event: `copy_done_${(n + 1) % 2}` });
		if (n) op("host_read", { name: "results", us: 260, range: range("result_cpu", ((n + 1) % 2) * 64) });
	}
	return {
		schema: 1, id: `verify_done/${fence}`, ops,
		streams: Object.fromEntries(["schedule", "forward", "copy"].map((s) => [s, { kind: "nonblocking" }])),
		buffers: { new_seq_lens: { mem: "device", bytes: 64 }, batch: { mem: "device", bytes: 128 }, result: { mem: "device", bytes: 128 }, result_cpu: { mem: "pinned", bytes: 128 } },
	};
}

export function verifyDone(steps = 7) {
	const variant = (id, words) => ({ id, label: id, words, program: loop(id, steps) });
	return {
		schema: 1, id: "verify_done", title: "verify_done: who reads new_seq_lens, and when", words: "Wait is not synchronize.",
		variants: [
			variant("none", "gather reads the lengths while the step before may still be writing them."),
			variant("synchronize", "The host waits for the step before, then launches gather."),
			variant("wait", "The wait is on the device; the host goes on."),
		],
		params: { host: { label: "host work", us: 900, min: 0, max: 4000, step: 50 }, graph: { label: "graph", us: 2600, min: 400, max: 6000, step: 50 } },
		initial: "synchronize", before: "none", topic: ["verify_done"], hero: "forward", step_op: "forward",
	};
}

if (import.meta.url === `file://${process.argv[1]}`) console.log(JSON.stringify(verifyDone(), null, 1));
