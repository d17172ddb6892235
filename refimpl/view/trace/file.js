/** A trace's file, packed or plain, read in pieces; a packed one that is cut off gives all that it still holds. */
import { TraceError } from "./json_stream.js";

const PIECE = 4 << 20;

/**
 * Hands over the bytes of a `.json` or `.json.gz` file, unpacked, piece by piece.
 *
 * @param {Blob & {name?: string}} file
 * @param {(piece: Uint8Array) => void} onPiece
 * @param {(share: number) => void | Promise<void>} [onProgress] share of the file read so far; what it returns is awaited
 * @returns {Promise<{cut: boolean}>} whether a packed file ends before its end
 */
export async function readPieces(file, onPiece, onProgress = () => {}) {
	const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
	const packed = head[0] === 0x1f && head[1] === 0x8b;
	if (head[0] === 0x50 && head[1] === 0x4b) throw new TraceError(`${file.name} is a zip archive; unpack it first`);
	const out = packed ? unpacker(file.name, onPiece) : { write: async (piece) => onPiece(piece), close: async () => ({ cut: false }) };
	for (let at = 0; at < file.size; at += PIECE) {
		await out.write(await slice(file, at));
		await onProgress(Math.min(1, (at + PIECE) / file.size));
	}
	return out.close();
}

async function slice(file, at) {
	try {
		return new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer());
	} catch (error) {
		throw new TraceError(`${file.name} cannot be read: ${error.message}`);
	}
}

/** Unpacks gzip with the browser's own means. @param {string} name @param {(piece: Uint8Array) => void} onPiece */
function unpacker(name, onPiece) {
	if (typeof DecompressionStream === "undefined") throw new TraceError(`${name} is packed, and this browser cannot unpack gzip; unpack it first`);
	const stream = new DecompressionStream("gzip"), writer = stream.writable.getWriter(), reader = stream.readable.getReader();
	/** @type {any} */ let broken = null, wrong = null, read = 0;
	const reading = (async () => {
		try {
			for (;;) {
				const { done, value } = await reader.read();
				if (done) return;
				read++;
				try { onPiece(value); } catch (error) { wrong ??= error; throw error; }
			}
		} catch (error) {
			broken ??= error;
		}
	})();
	const failed = () => { if (wrong) throw wrong; };
	const settle = async () => { for (let seen = -1; seen !== read; ) { seen = read; await pause(); } }; // an error would drop what is unpacked and not yet read
	return {
		async write(piece) {
			failed();
			if (broken) return;
			await Promise.race([writer.write(piece).catch((error) => (broken ??= error)), reading]);
			failed();
		},
		async close() {
			await settle();
			writer.close().catch((error) => (broken ??= error));
			await reading;
			failed();
			if (broken && !read) throw new TraceError(`${name} begins as gzip and cannot be unpacked; export the trace again`);
			return { cut: Boolean(broken) };
		},
	};
}

const pause = () => new Promise((done) => setTimeout(done, 0));
