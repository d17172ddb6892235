/** What all files of the model share: lanes, the names of what stands on them, what a call and a piece of work take. */
export const CALL_US = 6;
export const WORK_US = 10;
export const HOST = "host";
const LANE_ORDER = [HOST, "schedule", "plan", "forward", "copy"];

/** "verify_done 3" is of the family "verify_done". @param {string} name */
export const stem = (name) => name.replace(/[ _#-]?\d+(?=\)?$)/, "") || name;

/** What a Trace shows: not our own marks, nor the host's taking of a pageable source. @param {import("./lower.js").Op} o */
export const isDrawn = (o) => o.kind !== "begin" && o.kind !== "end" && !(o.implicit && (o.kind === "record" || o.kind === "host"));

/** Lanes top to bottom, each once, the host always first. @param {string[]} lanes */
export function sortLanes(lanes) {
	const rank = (l) => LANE_ORDER.indexOf(l) + 1 || (l.startsWith("agent ") ? 99 : 50);
	return [...new Set([HOST, ...lanes])].sort((p, q) => rank(p) - rank(q));
}

/** The lane of a device's legacy stream. @param {number} device */
export const legacyLane = (device) => (device ? `legacy ${device}` : "legacy");
