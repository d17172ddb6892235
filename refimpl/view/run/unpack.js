/** Columns that travel small: gzip in base64, as Python's Run widget and one-file pages carry them. */

/** @param {{packed: string}} shown @returns {Promise<any>} columns, or {before, after} of them */
export async function unpacked({ packed }) {
	if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old, it has no DecompressionStream");
	const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
