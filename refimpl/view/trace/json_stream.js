/** A chrome trace's JSON read in pieces as it comes: neither the whole text nor a tree of it is ever held. */

const QUOTE = 34, BACKSLASH = 92, OPEN = 123, CLOSE = 125, LIST = 91, END = 93, COMMA = 44, COLON = 58;
const MARK = [0xef, 0xbb, 0xbf]; // of UTF-8, at a file's beginning
const MOST_HEAD = 120, MOST_ITEM = 1 << 28;
const HEAD = /^\{\s*"ph"\s*:\s*"([^"\\]*)"\s*,\s*"cat"\s*:\s*"([^"\\]*)"/;
const space = (c) => c === 32 || (c >= 9 && c <= 13);

/** JSON, also as a profiler writes it that leaves line ends in names and has figures that are none. @param {string} text */
function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		const escaped = (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
		return JSON.parse(text.replace(/"(?:[^"\\]|\\[^])*"|-?\b(?:NaN|Infinity)\b/g, (part) => (part[0] === '"' ? part.replace(/[\0-\x1f]/g, escaped) : "null")));
	}
}

/** A file that is no trace, in one sentence. */
export class TraceError extends Error {}

/**
 * Scans bytes for the list of events, which is the file itself or its `traceEvents`.
 *
 * Told of each event as soon as its last byte is there. An event whose first two fields say that nobody wants it is not even parsed.
 */
export class TraceStream {
	/** @param {{name: string, wanted: (ph: string, cat: string) => boolean, onEvent: (event: any, number: number) => void, fields?: string[]}} options fields: names beside traceEvents whose values are kept in `this.fields` */
	constructor({ name, wanted, onEvent, fields = [] }) {
		Object.assign(this, { name, wanted, onEvent });
		this.kept = new Set(fields);
		/** @type {Record<string, any>} */ this.fields = {};
		this.bytes = 0;
		this.count = 0;
		this.listed = false; // whether a list of events was seen
		this.depth = 0;
		this.items = -1; // depth at which events stand, while within their list
		this.inString = this.escaped = this.done = this.wantsKey = false;
		this.key = "";
		this.what = ""; // "event", "key" or "field": what is being collected
		this.rest = new Uint8Array(0); // its bytes so far
		this.decoder = new TextDecoder("utf-8", { fatal: true });
	}

	/** More of the file. @param {Uint8Array} piece */
	push(piece) {
		const old = this.rest.length;
		let bytes = piece;
		if (old) {
			bytes = new Uint8Array(old + piece.length);
			bytes.set(this.rest);
			bytes.set(piece, old);
		}
		if (old > MOST_ITEM) throw new TraceError(`${this.name} is no chrome trace: one of its events is longer than ${MOST_ITEM >> 20} MB`);
		const from = this._scan(bytes, old);
		this.rest = from < 0 ? new Uint8Array(0) : bytes.slice(from);
		this.bytes += piece.length;
	}

	/** The file's end. @param {boolean} [packedCut] whether its packing ended too early @returns {{cut: boolean}} whether it came too early for the list of events */
	end(packedCut = false) {
		const early = packedCut || this.depth > 0;
		if (!early && !this.done) throw new TraceError(`${this.name} is empty; export a trace with profiler.export_chrome_trace`);
		if (!this.listed && this.done) throw new TraceError(`${this.name} is JSON but no chrome trace: it has no list of traceEvents`);
		if (!this.count && !this.done) throw new TraceError(`${this.name} is cut off before its first event; export the trace again`);
		const left = !this.object && this.depth === 1 && !packedCut; // a bare list may lack its end: chrome's own does
		return { cut: !this.done && !left };
	}

	/** Goes through bytes from `at`. @returns {number} where the piece begins that is not complete, or -1 */
	_scan(bytes, at) {
		let from = this.what ? 0 : -1, { depth, inString, escaped } = this;
		const size = bytes.length;
		for (let i = at; i < size; i++) {
			const c = bytes[i];
			if (inString) {
				if (escaped) escaped = false;
				else if (c === BACKSLASH) escaped = true;
				else if (c === QUOTE) {
					inString = false;
					if (this.what === "key") {
						this.key = this._parse(bytes, from, i + 1);
						this.what = "";
						this.wantsKey = false;
						from = -1;
					}
				}
				continue;
			}
			if (c === QUOTE) {
				if (!depth) this._refuse(c);
				inString = true;
				if (depth === 1 && this.wantsKey) { this.what = "key"; from = i; }
			} else if (c === OPEN || c === LIST) {
				if (!depth) this._begin(c);
				else if (depth === 1 && c === LIST && this.key === "traceEvents" && this.items < 0) { this.items = 2; this.listed = true; }
				else if (depth === this.items && c === OPEN) { this.what = "event"; from = i; }
				depth++;
			} else if (c === CLOSE || c === END) {
				depth--;
				if (this.what === "event" && depth === this.items) {
					this._event(bytes, from, i + 1);
					this.what = "";
					from = -1;
				} else if (depth < this.items) { this.items = -1; this.key = ""; }
				if (!depth) { this._field(bytes, from, i); from = -1; this.done = true; }
			} else if (depth <= 1) {
				if (!depth && !space(c) && !(this.bytes === 0 && i < 3 && MARK[i] === c)) this._refuse(c);
				if (c === COMMA && this.object) { this._field(bytes, from, i); from = -1; this.wantsKey = true; }
				else if (c === COLON && this.kept.has(this.key)) { this.what = "field"; from = i + 1; }
			}
		}
		Object.assign(this, { depth, inString, escaped });
		return from;
	}

	_begin(c) {
		if (this.done) this._refuse(c);
		this.object = this.wantsKey = c === OPEN;
		if (c === LIST) { this.items = 1; this.listed = true; }
	}

	_refuse(c) {
		const where = this.done ? "it goes on after its end" : c > 31 && c < 127 ? `it begins with ${JSON.stringify(String.fromCharCode(c))}` : "it is not text";
		throw new TraceError(`${this.name} is not JSON: ${where}`);
	}

	_field(bytes, from, to) {
		if (this.what !== "field") return;
		this.fields[this.key] = this._parse(bytes, from, to);
		this.what = "";
	}

	_event(bytes, from, to) {
		const number = this.count++;
		const head = HEAD.exec(String.fromCharCode.apply(null, bytes.subarray(from, Math.min(to, from + MOST_HEAD))));
		if (head && !this.wanted(head[1], head[2])) return;
		const event = this._parse(bytes, from, to, number);
		if (this.wanted(event.ph, event.cat)) this.onEvent(event, number);
	}

	_parse(bytes, from, to, number = -1) {
		try {
			return parsed(this.decoder.decode(bytes.subarray(from, to)));
		} catch (error) {
			const what = number < 0 ? "its head" : `event ${number}`;
			throw new TraceError(`${this.name} is cut off or not JSON (${what}: ${error.message}); export the trace again`);
		}
	}
}
