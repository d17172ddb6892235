/** The slices of a chrome trace that a timeline needs, sorted out as they come; as refimpl/timeline/reading/chrome_file.py. */
import { TraceError } from "./json_stream.js";

export const GPU_WORK = new Set(["kernel", "gpu_memcpy", "gpu_memset"]);
export const CALLS = new Set(["cuda_runtime", "cuda_driver", "hip_runtime"]);
export const NOTE = "user_annotation";
export const OPERATOR = "cpu_op";
export const SYNC = "cuda_sync";
const NEEDED = new Set([...GPU_WORK, ...CALLS, NOTE, OPERATOR, SYNC]);
/** Of the profiler, and not looked at: a trace that has them is the profiler's. */
const UNUSED = new Set(["python_function", "gpu_user_annotation", "overhead", "Trace", "ac2g", "fwdbwd", "cuda_profiler_range", "async_cpu_to_gpu"]);

/**
 * @typedef {{name: string, category: string, thread: string, pid: string, tid: string, start: number, end: number, stream: number | null, correlation: number | null, device: number | null, waited: number | null, args?: any}} Slice
 *   args: what else the file says, where nothing is the profiler's; thread: process and thread as one text; waited: number of the CUDA event, for a wait on one
 */

/** Sorts the events of one file. */
export class ChromeEvents {
	/** @param {string} name what messages call the file */
	constructor(name) {
		this.name = name;
		/** @type {Slice[]} the profiler's slices */ this.events = [];
		/** @type {Slice[]} slices of a trace in which nothing is the profiler's */ this.others = [];
		/** @type {any[]} beginnings and ends of such a trace's flow events */ this.arrows = [];
		/** @type {Map<string, string>} */ this.threads = new Map();
		/** @type {Map<string, string>} */ this.processes = new Map();
		this.ours = false;
		/** @type {Map<string, [number, any][]>} */ this.open = new Map();
		this.texts = new Map();
	}

	/** Whether an event of this kind has to be parsed. @param {string} ph @param {string} cat */
	wanted(ph, cat) {
		if (ph === "X") {
			if (UNUSED.has(cat)) this._onlyOurs();
			return NEEDED.has(cat) || !this.ours;
		}
		return ph === "B" || ph === "E" || ph === "M" || ((ph === "s" || ph === "f") && !this.ours);
	}

	/** One event, in the order of the file. @param {any} item @param {number} number its place in the list */
	take(item, number) {
		switch (item.ph) {
			case "X": return this._slice(item, number);
			case "B": return void this._begun(item).push([number, item]);
			case "E": return this._end(item);
			case "M": return this._metadata(item);
			case "s": case "f": if (!this.ours) this.arrows.push(item);
		}
	}

	/** All is read: slices in order of time. */
	sorted() {
		this.events.sort((a, b) => a.start - b.start);
		this.others.sort((a, b) => a.start - b.start || b.end - a.end);
		return this;
	}

	_begun(item) {
		const { thread } = place(item);
		let begun = this.open.get(thread);
		if (!begun) this.open.set(thread, (begun = []));
		return begun;
	}

	_end(item) {
		const begun = this._begun(item).pop();
		if (!begun) return;
		const [number, first] = begun;
		const dur = this._checked(number, () => float(item, "ts") - float(first, "ts"));
		this._slice({ name: item.name ?? "", ...first, dur, args: { ...object(first.args), ...object(item.args) } }, number);
	}

	_slice(item, number) {
		const category = word(item.cat ?? "");
		if (NEEDED.has(category)) {
			if (!this.ours) this._onlyOurs();
			this.events.push(this._event(item, number));
		} else if (UNUSED.has(category)) this._onlyOurs();
		else if (!this.ours) this.others.push({ ...this._event(item, number), args: object(item.args) });
	}

	_onlyOurs() {
		if (this.ours) return;
		this.ours = true;
		this.others = [];
		this.arrows = [];
	}

	_metadata(item) {
		const name = object(item.args).name;
		if (typeof name !== "string" || !name) return;
		if (item.name === "thread_name") this.threads.set(place(item).thread, name);
		else if (item.name === "process_name") this.processes.set(place(item).pid, name);
	}

	_event(item, number) {
		return this._checked(number, () => {
			const category = word(item.cat ?? ""), args = item.args || {};
			if (typeof args !== "object" || Array.isArray(args)) throw new Error("its args are no JSON object");
			const start = float(item, "ts"), us = item.dur === undefined ? 0 : float(item, "dur"), end = start + us;
			if (!(Number.isFinite(start) && Number.isFinite(end) && us >= 0)) throw new Error(`it begins at ${start} and takes ${us} microseconds`);
			if (GPU_WORK.has(category) && args.stream === undefined) throw new Error("it is GPU work on no stream");
			if (item.name === undefined) throw new Error("it has no 'name'");
			const [stream, correlation] = ["stream", "correlation"].map((key) => whole(args, key)), [device, waited] = ["device", "wait_on_cuda_event_id"].map((key) => told(args, key));
			return { name: this._text(word(item.name)), category: this._text(category), ...place(item, this), start, end, stream, correlation, device, waited };
		});
	}

	/** A text once, however many slices have it. */
	_text(text) {
		const known = this.texts.get(text);
		if (known === undefined) this.texts.set(text, text);
		return known ?? text;
	}

	_checked(number, make) {
		try {
			return make();
		} catch (error) {
			throw new TraceError(`${this.name}: event ${number} is no slice of a profiler trace: ${error.message}`);
		}
	}
}

/** The GPUs that the profiler saw, in words, or an empty text. @param {any} devices `deviceProperties` of the file */
export function deviceWords(devices) {
	const found = (Array.isArray(devices) ? devices : []).filter((d) => d && typeof d === "object" && d.name !== undefined);
	return [...new Set(found.map((d) => word(d.name)))].join(", ");
}

/** A value as Python's `str` writes it. */
const word = (value) => (value === undefined || value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value));

const object = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

function place(item, texts = null) {
	const pid = word(item.pid), tid = word(item.tid), thread = `${pid}\n${tid}`;
	return texts ? { pid: texts._text(pid), tid: texts._text(tid), thread: texts._text(thread) } : { pid, tid, thread };
}

function float(item, key) {
	const value = item[key];
	if (value === undefined) throw new Error(`it has no '${key}'`);
	if (typeof value === "number" || typeof value === "boolean") return Number(value);
	if (typeof value === "string" && value.trim() && !Number.isNaN(Number(value))) return Number(value);
	throw new Error(`its '${key}' is no number: ${JSON.stringify(value)}`);
}

function whole(args, key) {
	if (args[key] === undefined) return null;
	const value = float(args, key);
	if (!Number.isFinite(value)) throw new Error(`its '${key}' is no number: ${args[key]}`);
	return Math.trunc(value);
}

/** A whole number, or null for anything else. */
const told = (args, key) => (Number.isInteger(args[key]) ? args[key] : null);
