/**
 * Byte ranges with strides: a column of a table is not the table.
 * @typedef {{buf: string, off: number, len: number, rows?: number, stride?: number}} Range
 */

/** Offset of the first byte after a range. @param {Range} r */
export const rangeEnd = (r) => r.off + ((r.rows ?? 1) - 1) * (r.stride ?? 0) + r.len;

const runs = (r) => ((r.rows ?? 1) > 1 && (r.stride ?? 0) > r.len ? r.rows : 1);

/** The first run of a strided range that shares a byte with [from, to), as a contiguous piece. */
function meet(r, from, to) {
	if (runs(r) === 1) {
		const off = Math.max(r.off, from), end = Math.min(rangeEnd(r), to);
		return end > off ? { off, len: end - off } : null;
	}
	const row = Math.max(0, Math.floor((from - r.off - r.len) / r.stride) + 1), start = r.off + row * r.stride;
	if (row >= r.rows || start >= to) return null;
	const off = Math.max(start, from), end = Math.min(start + r.len, to);
	return end > off ? { off, len: end - off } : null;
}

/**
 * The first bytes that two ranges share, or null. The ranges' buffers are not compared here: two buffers can share one block.
 * @param {Range} p @param {Range} q @returns {{off: number, len: number} | null}
 */
export function sharedBytes(p, q) {
	if (p.off >= rangeEnd(q) || q.off >= rangeEnd(p)) return null;
	if (runs(q) === 1) return meet(p, q.off, rangeEnd(q));
	if (runs(p) === 1) return meet(q, p.off, rangeEnd(p));
	const [few, many] = p.rows <= q.rows ? [p, q] : [q, p];
	const shift = few.off - many.off, apart = ((shift % many.stride) + many.stride) % many.stride;
	if (few.stride === many.stride && apart >= many.len && apart + few.len <= many.stride) return null;
	for (let k = 0; k < few.rows; k++) {
		const at = few.off + k * few.stride, hit = meet(many, at, at + few.len);
		if (hit) return hit;
	}
	return null;
}

/** The runs of a range, as [from, to), cut to a window. @param {Range} r @param {number} from @param {number} to @returns {[number, number][]} */
export function runsWithin(r, from, to) {
	/** @type {[number, number][]} */ const out = [];
	const add = (a, b) => { if (Math.min(b, to) > Math.max(a, from)) out.push([Math.max(a, from), Math.min(b, to)]); };
	if (runs(r) === 1) add(r.off, rangeEnd(r));
	else for (let k = Math.max(0, Math.floor((from - r.off - r.len) / r.stride)); k < r.rows && r.off + k * r.stride < to; k++) add(r.off + k * r.stride, r.off + k * r.stride + r.len);
	return out;
}

/** The shared bytes of two ranges of one buffer, or null. @param {Range} p @param {Range} q @returns {Range | null} */
export function overlap(p, q) {
	const hit = p.buf === q.buf ? sharedBytes(p, q) : null;
	return hit && { buf: p.buf, ...hit };
}

/** True when every byte of q is surely a byte of p. @param {Range} p @param {Range} q */
export function covers(p, q) {
	if (runs(p) === 1) return p.off <= q.off && rangeEnd(q) <= rangeEnd(p);
	return p.off === q.off && p.len === q.len && p.rows === q.rows && p.stride === q.stride;
}

/** "name[from:to]", with the rows of a strided range. @param {Range} r */
export function rangeText(r) {
	const one = `${r.buf}[${r.off}:${r.off + r.len}]`;
	return (r.rows ?? 1) > 1 ? `${one} ×${r.rows} every ${r.stride} bytes` : one;
}
