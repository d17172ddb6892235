/** Which lane a slice of a profile lies on; as refimpl/timeline/reading/places.py. */
import { laneOf } from "./annotations.js";
import { Counter, ensure, gpuOf } from "./calls.js";
import { CALLS, NOTE, OPERATOR } from "./chrome_events.js";

export const HOST = "host";
const THREAD = "thread ", PROCESS = "process ";
const STREAMS = ["schedule", "plan", "forward", "copy"];

/** Whether a lane shows a thread of the host. @param {string} lane */
export const isHostLane = (lane) => lane === HOST || lane.startsWith(THREAD) || (lane.startsWith(PROCESS) && lane.includes(` ${THREAD}`));

/** The GPU that a stream's lane is of, or an empty text where the trace has only one. @param {string} lane */
export function gpuName(lane) {
	const words = lane.split(" ");
	return words.length >= 3 && words[0] === "GPU" && /^\d+$/.test(words[1]) ? `GPU ${words[1]}` : "";
}

/** @typedef {{work: any[], call: any, around: string[]}} Launched what one call queued on one stream, and the annotations around the call */

/** Names of the lanes of GPU work. */
export class StreamLanes {
	/** @param {Launched[]} launched all GPU work */
	constructor(launched) {
		const votes = new Map(), gpus = new Map();
		for (const { work, around } of launched) {
			const first = work[0], lane = laneOf(around), vote = ensure(votes, streamOf(first), () => ({ stream: first.stream, counter: new Counter() }));
			if (lane) vote.counter.add(lane, work.length);
			ensure(gpus, gpuOf(first), () => first);
		}
		this.names = new Map([...votes].map(([key, { stream, counter }]) => [key, counter.most() ?? `stream ${stream}`]));
		this.prefixes = prefixes(gpus);
	}

	/** The lane that an annotation around the launch names, else that of the stream. @param {Launched} one */
	of({ work, around }) {
		return this.prefixes.get(gpuOf(work[0])) + (laneOf(around) || this.names.get(streamOf(work[0])));
	}
}

const streamOf = (work) => `${gpuOf(work)}\n${work.stream}`;

/** Nothing before the lanes of an only GPU; else its number, or its process where two have one number. @param {Map<string, any>} gpus a piece of work of each */
function prefixes(gpus) {
	const numbers = new Set([...gpus.values()].map((work) => work.device)), byNumber = numbers.size === gpus.size && !numbers.has(null);
	return new Map([...gpus].map(([gpu, work]) => [gpu, gpus.size < 2 ? "" : `GPU ${byNumber ? work.device : work.pid} `]));
}

/** Names of the lanes of host threads: "host" is the one that makes most of the calls; without calls annotations count, and without those operators. Threads of one name are told apart by their numbers. */
export class HostLanes {
	/** @param {any[]} events the profiler's slices @param {Map<string, string>} names what the trace calls its threads */
	constructor(events, names) {
		this.names = names;
		this.shared = new Counter();
		for (const [thread, name] of names) this.shared.add(nameIn(thread, name));
		/** @type {any} */ this.main = null;
		const kinds = [(category) => CALLS.has(category), (category) => category === NOTE, (category) => category === OPERATOR];
		for (const of of kinds) {
			const counts = new Counter(), first = new Map();
			for (const event of events) if (of(event.category)) { counts.add(event.thread); if (!first.has(event.thread)) first.set(event.thread, event); }
			if (counts.size) { this.main = first.get(counts.most()); break; }
		}
	}

	/** The lane of a slice's thread. @param {{thread: string, pid: string, tid: string}} slice */
	of({ thread, pid, tid }) {
		if (this.main && thread === this.main.thread) return HOST;
		const name = this.names.get(thread) ?? tid, several = this.shared.get(nameIn(thread, name)) > 1;
		const lane = THREAD + withoutThread(name) + (several ? ` (${tid})` : "");
		return !this.main || pid === this.main.pid ? lane : `${PROCESS}${pid} ${lane}`;
	}
}

/** A name and the process that gives it to a thread. @param {string} thread @param {string} name */
const nameIn = (thread, name) => `${thread.split("\n")[0]}\n${name}`;

/** A thread's name without the word that a lane's has before it. @param {string} name */
export const withoutThread = (name) => (name.startsWith(THREAD) ? name.slice(THREAD.length) : name);

/** Lanes top to bottom: the host, its other threads, then each GPU's streams, those of the engine first. @param {Iterable<string>} lanes in order of their first spans */
export function lanesInOrder(lanes) {
	const used = [...new Set([HOST, ...lanes])], streams = used.filter((lane) => !isHostLane(lane)).map((lane) => ({ lane, ...streamOrder(lane) }));
	streams.sort((a, b) => a.number.length - b.number.length || (a.number < b.number ? -1 : a.number > b.number ? 1 : 0) || a.at - b.at);
	return [...used.filter(isHostLane), ...streams.map(({ lane }) => lane)];
}

function streamOrder(lane) {
	const gpu = gpuName(lane), at = STREAMS.indexOf(lane.slice(gpu.length).trim());
	return { number: gpu.slice("GPU ".length), at: at < 0 ? STREAMS.length : at };
}
