import test from "node:test";
import assert from "node:assert/strict";
import { hashWith, slug, stateIn } from "../../refimpl/view/shared/url_state.js";
import { stateOf, valuesOf } from "../../refimpl/view/explorable/sharing.js";
import { complete } from "../../refimpl/view/explorable/solve.js";
import { verifyDone } from "./example.mjs";

const spec = complete(verifyDone());
const fresh = () => ({ variant: spec.initial, us: new Map(), edits: new Map(), before: spec.before, sel: [], fence: null, forced: false, scrubbed: false, now: 0, free: false, guess: null });
const k = String(spec.variants.find((v) => v.id === "wait").program.ops.findIndex((o) => o.op === "stream_wait_event"));

test("a view reads its own values and no others'", () => {
	const hash = "#loop.at=5&loop-2.at=7&loopy.at=9&section";
	assert.deepEqual([stateIn(hash, "loop"), stateIn(hash, "loop-2"), stateIn(hash, "none")], [{ at: "5" }, { at: "7" }, {}]);
});
test("a view replaces its own values and leaves anchors and other views as they are", () => {
	assert.equal(hashWith("#section&b.x=%41&a.old=1", "a", { at: "5", no: undefined, empty: "" }), "section&b.x=%41&a.at=5");
	assert.equal(hashWith("#a.at=5", "a", {}), "");
	assert.equal(hashWith("#section", "a", {}), "section");
});
test("any text comes back as it was", () => {
	for (const text of ["a b", "1&2=3", "50 %", "plus+sign", "µs ~ \"x\" #", "."]) assert.deepEqual(stateIn(hashWith("", "a", { t: text }), "a"), { t: text });
});
test("what is malformed is passed over", () => {
	assert.deepEqual(stateIn("#a.x=%zz&a.=1&a&=&a.y&.z=1&&a.ok=1", "a"), { ok: "1" });
});
test("an id may stand before the dot", () => {
	assert.deepEqual(["verify_done/wait", "a.b=c&d", "", "µ"].map(slug), ["verify_done-wait", "a-b-c-d", "view", "view"]);
});
test("all that the reader has chosen comes back from an address", () => {
	const S = { ...fresh(), variant: "wait", before: "synchronize", us: new Map([["host", 1200], ["launch gather", 35]]), sel: ["forward run forward 1 @1", "host sync a|b"].slice(0, 1), scrubbed: true, now: 4140, free: true, t0: 1000, span: 6000, guess: 2 };
	S.edits.set("wait", [{ do: "off", key: k, all: true }]);
	assert.deepEqual({ ...stateOf(stateIn(hashWith("", "v", valuesOf(S, spec)), "v"), fresh(), spec, 3) }, S);
});
test("the start has no values, and no values are the start", () => {
	assert.ok(Object.values(valuesOf(fresh(), spec)).every((v) => v === undefined));
	assert.deepEqual(stateOf({}, fresh(), spec, 0), fresh());
});
test("values that fit nothing are passed over, durations kept within their bounds", () => {
	const junk = { variant: "nope", before: "__proto__", us: "host~-3~=~graph-x", fences: "9999x~zz", at: "-5", view: "a-b", guess: "9", forced: "yes" };
	assert.deepEqual(stateOf(junk, fresh(), spec, 3), fresh());
	assert.deepEqual([...stateOf({ us: "host-999999~graph-1" }, fresh(), spec, 0).us], [["host", 4000], ["graph", 400]]);
});
test("a window without its beginning is passed over", () => {
	for (const view of ["-1", "-5-9", "a-9", "--", "1-0"]) assert.deepEqual(stateOf({ view }, fresh(), spec, 0), fresh(), view);
	assert.deepEqual([[0, 1]], [stateOf({ view: "0-1" }, fresh(), spec, 0)].map(({ t0, span }) => [t0, span]));
});
