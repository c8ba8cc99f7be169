// Watches the page from before its own script on, tries it out, and sends what it
// found to the test.
"use strict";
(() => {
  const errors = [];
  const { error } = console;
  console.error = (...words) => { errors.push(words.join(" ")); error(...words); };
  addEventListener("error", (e) => errors.push(String(e.message)));
  addEventListener("unhandledrejection", (e) => errors.push(String(e.reason)));
  addEventListener("securitypolicyviolation", (e) => errors.push(`${e.violatedDirective} blocked ${e.blockedURI}`));

  const $ = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const text = (e) => e.textContent.replace(/\s+/g, " ").trim();

  const visible = (selector) => all(selector).filter((e) => e.getClientRects().length);

  // pixels reads a copy: Chromium warns of a canvas that is read more than once.
  function pixels(canvas) {
    const { width, height } = canvas, copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, width, height).data;
  }

  // painted counts the pixels of each class in a chart.
  function painted(chart) {
    const [canvas] = visible(`figure[data-chart=${chart}] canvas`), counts = {}, names = {};
    if (!canvas) return counts;
    const swatch = document.body.appendChild(document.createElement("i"));
    for (const layer of ["sheddable", "sheddable-plus", "critical", "critical-plus"]) {
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

  // cut returns the texts that are not seen as a whole, because they are wider than what they stand in, or beside the screen.
  // The charts as a table may go on to the side.
  function cut() {
    const hidden = (e) => {
      const { left, right } = e.getBoundingClientRect();
      if (e.scrollWidth > e.clientWidth + 1 || left < -1 || right > innerWidth + 1) return true;
      for (let p = e.parentElement; p !== document.documentElement; p = p.parentElement) {
        if (getComputedStyle(p).overflowX !== "visible" && right > p.getBoundingClientRect().right + 1) return true;
      }
      return false;
    };
    return visible("th, td, h1, h2, .tile data, .tile small, .readout b, #verdict p").filter((e) => !e.closest("#raw") && hidden(e)).map(text);
  }

  // explore fills in what it finds.
  async function explore(found) {
    for (let i = 0; i < 200 && !$(".tile data"); i++) await wait(50);
    await wait(200);
    found.Tiles = Object.fromEntries(all(".tile").map((t) => [t.dataset.tile, { Value: t.querySelector("data").value, Text: text(t.querySelector("data")), Name: text(t.querySelector("h2")) }]));
    found.Verdict = [$("#verdict").dataset.level, text($("#verdict h1")), text($("#verdict p"))];
    found.Do = $("#verdict .do").hidden ? "" : text($("#verdict .do"));
    found.Override = $("#override").hidden ? "" : text($("#override"));
    found.Charts = visible("figure[data-chart]").filter((f) => pixels(f.querySelector("canvas")).some((v) => v > 0)).map((f) => f.dataset.chart);
    found.Labels = visible(".plot[role=img]").filter((p) => p.ariaLabel?.length > 20).length;
    found.Painted = { rejected: painted("rejected"), would: painted("would") };
    found.Reasons = all("#reasons tbody tr").map(text);
    found.Notes = all("#reasons .note").map(text);
    found.Clusters = all("#clusters tbody tr").map(text);
    found.Customers = all("#customers tbody tr").map(text);
    found.Tuned = $("#tuned").hidden ? "" : text($("#tuned"));
    found.Readouts = Object.fromEntries(all("figure[data-chart]").map((f) => [f.dataset.chart, text(f.querySelector(".readout"))]));
    found.Overflow = Math.max(0, document.documentElement.scrollWidth - innerWidth);
    found.Cut = cut();
    found.Beside = Math.max(0, $("#reasons .scroll").scrollWidth - $("#reasons .scroll").clientWidth);
    $("#raw").open = true;
    await wait(200);
    found.RawRows = all("#raw tbody tr").length;
    found.Overflow = Math.max(found.Overflow, document.documentElement.scrollWidth - innerWidth);
    const paper = () => getComputedStyle(document.body).backgroundColor;
    found.Paper = [paper()];
    $("#theme").click();
    found.Paper.push(paper());
    found.Requests = performance.getEntriesByType("resource").map((e) => e.name);
  }

  addEventListener("load", async () => {
    const found = { Errors: errors, Width: innerWidth };
    await explore(found).catch((e) => errors.push(String(e)));
    await fetch("probed", { method: "POST", body: JSON.stringify(found) });
  });
})();
