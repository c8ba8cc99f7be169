// Watches a report from before its first script on, tries it out, and leaves
// what it found as JSON in the attribute data-probed of the root element.
"use strict";
(() => {
  const errors = [];
  const { error } = console;
  console.error = (...words) => { errors.push(words.join(" ")); error(...words); };
  addEventListener("error", (e) => errors.push(String(e.message)));
  addEventListener("unhandledrejection", (e) => errors.push(String(e.reason)));
  addEventListener("securitypolicyviolation", (e) => errors.push(`${e.violatedDirective} blocked ${e.blockedURI}`));

  const find = (plot, run) => document.querySelector(`figure[data-plot=${plot}][data-run=${run}]`);
  const readout = (run) => find("goodput", run)?.querySelector(".readout").textContent.replace(/ +/g, " ").trim();
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const name = (figure) => `${figure.dataset.plot} ${figure.dataset.run}`;

  // pixels reads a copy: Chromium warns of a canvas that is read more than once.
  function pixels(canvas) {
    const { width, height } = canvas, copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, width, height).data;
  }

  // painted counts the pixels of each colour of the palette.
  function painted(run) {
    const canvas = find("fate", run)?.querySelector("canvas"), counts = {}, names = {};
    if (!canvas) return counts;
    const swatch = document.body.appendChild(document.createElement("i"));
    for (const layer of ["goodput", "rejected-throttle", "rejected-inflight", "rejected-backend", "late", "timed-out", "failed", "dropped"]) {
      swatch.style.color = `var(--${layer})`;
      names[getComputedStyle(swatch).color.match(/\d+/g).join()] = layer;
    }
    swatch.remove();
    const d = pixels(canvas);
    for (let i = 0; i < d.length; i += 4) {
      const layer = names[[d[i], d[i + 1], d[i + 2]].join()];
      if (layer && d[i + 3] === 255) counts[layer] = (counts[layer] ?? 0) + 1;
    }
    return counts;
  }

  // point puts the pointer on the middle of the protected goodput.
  function point() {
    const over = find("goodput", "with")?.querySelector(".u-over");
    if (!over) return;
    const box = over.getBoundingClientRect();
    const at = { bubbles: true, clientX: box.left + box.width / 2 + 3, clientY: box.top + box.height / 2 };
    for (const type of ["mouseenter", "mousemove"]) over.dispatchEvent(new MouseEvent(type, at));
  }

  addEventListener("load", async () => {
    await wait(200);
    const found = { Errors: errors, Still: readout("with"), Painted: { without: painted("without"), with: painted("with") } };
    const canvases = [...document.querySelectorAll("figure[data-plot] canvas")];
    found.Charts = canvases.filter((c) => pixels(c).some((v) => v > 0)).map((c) => name(c.closest("figure")));
    found.Labels = [...document.querySelectorAll(".plot[role=img]")].filter((p) => p.ariaLabel.length > 20).length;
    found.Overflow = Math.max(0, document.documentElement.scrollWidth - innerWidth);
    point();
    await wait(100);
    found.Hover = readout("with");
    found.Synced = readout("without");
    const raw = document.querySelector("details.raw");
    if (raw) raw.open = true;
    await wait(100);
    found.RawRows = raw?.querySelectorAll("tr").length ?? 0;
    const paper = () => getComputedStyle(document.body).backgroundColor;
    found.Paper = [paper()];
    document.getElementById("theme").click();
    found.Paper.push(paper());
    await wait(100);
    found.Requests = performance.getEntriesByType("resource").map((e) => e.name);
    document.documentElement.dataset.probed = JSON.stringify(found);
  });
})();
