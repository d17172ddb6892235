/* Makes the timelines that a notebook saved live in the static book: no kernel, no network, under http:// and file:// alike.
   The code is the current timeline.bundle.js beside this file, made at build time from refimpl/view; what the notebook saved of it is not used. */
(function () {
  const here = document.currentScript.src.replace(/\/[^/]*$/, "");
  // The theme's FontAwesome would turn a widget's <i> into <svg> under its feet.
  (window.FontAwesomeConfig = window.FontAwesomeConfig || {}).observeMutations = false;
  if (window.FontAwesome && window.FontAwesome.config) window.FontAwesome.config.observeMutations = false;
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const SPEC = "script.timeline-spec";
  const TIMELINE = { name: "streamOrderTimeline", file: "/timeline.bundle.js" }, RUN = { name: "streamOrderRun", file: "/run.bundle.js" };

  function addScript(src) {
    return new Promise((done, fail) => {
      const s = document.createElement("script");
      s.src = src;
      s.onload = done;
      s.onerror = () => fail(new Error("could not load " + src));
      document.head.append(s);
    });
  }
  function addStyle(text) {
    const style = document.createElement("style");
    style.textContent = text;
    document.head.append(style);
  }
  function place(script) {
    const slot = document.createElement("div");
    slot.className = "widget-subarea";
    script.before(slot);
    return slot;
  }
  /* The picture for readers without scripts has done its work where the timeline is live. */
  function hideFallback(slot) {
    const box = slot.closest(".output, .cell_output") || slot.parentElement;
    for (const el of box.querySelectorAll(".timeline-fallback")) el.hidden = true;
  }
  function show(script, view, spec) {
    const slot = place(script);
    window[view.name].mount(slot.appendChild(document.createElement("div")), spec);
    hideFallback(slot);
  }
  function say(script) {
    const p = place(script).appendChild(document.createElement("p"));
    p.textContent = "This widget needs a running notebook: open the chapter’s notebook in Jupyter to use it.";
  }
  async function start() {
    const states = Object.assign({}, ...[...document.querySelectorAll(STATE)].map((t) => JSON.parse(t.textContent).state));
    const stateOf = (script) => { const s = states[JSON.parse(script.textContent).model_id]; return s && s.model_module === "anywidget" && s.state.spec ? s.state : null; };
    const viewOf = (state) => (state.view === "run" ? RUN : TIMELINE);
    const views = [...document.querySelectorAll(VIEW)], specs = [...document.querySelectorAll(SPEC)], used = new Set(views.map(stateOf).filter(Boolean).map(viewOf));
    if (specs.length) used.add(TIMELINE);
    for (const view of used) {
      await addScript(here + view.file);
      addStyle(window[view.name].css);
    }
    for (const script of views) { const state = stateOf(script); state ? show(script, viewOf(state), state.spec) : say(script); }
    for (const script of specs) show(script, TIMELINE, JSON.parse(script.textContent));
    document.documentElement.dataset.widgets = "live";
  }
  if (document.readyState === "complete") start(); else window.addEventListener("load", start);
})();
