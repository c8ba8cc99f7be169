// Draws the charts of the report from the result in the page. What the page
// says in words and numbers is already there.
"use strict";
(() => {
  const result = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const phases = result.settings.phases ?? [];
  const step = phases.find((p) => p.name === "step") ?? { start_s: 0, end_s: 0 };
  const end = phases.at(-1)?.end_s ?? 1;
  const names = ["without", "with"];
  const runs = names.map((n) => result[n]).filter((r) => r?.series?.t?.length);

  // --- colours -------------------------------------------------------------

  const probe = document.body.appendChild(document.createElement("i"));
  probe.hidden = true;
  let colors = {};
  const color = (name) => {
    probe.style.color = `var(--${name})`;
    return (colors[name] ??= getComputedStyle(probe).color);
  };
  const faded = (name) => color(name).replace(/rgb\((.*)\)/, "rgba($1, 0.16)");

  // --- numbers -------------------------------------------------------------

  const group = (v, digits) => v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const number = (v) => group(v, v === Math.trunc(v) || v >= 9.95 ? 0 : 1);
  const perSecond = (v) => number(v) + "/s";
  const millis = (v) => (v >= 999.5 ? group(v / 1000, v < 9995 ? 1 : 0) + " s" : number(v) + " ms");
  const percent = (v) => number(100 * v) + " %";
  const plain = (v) => group(v, v < 9.95 ? 2 : 0);

  const ofStep = (s, values) => values.filter((v, i) => v != null && s.t[i] >= step.start_s && s.t[i] < step.end_s);
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const mean = (s, values) => { const v = ofStep(s, values); return v.length ? sum(v) / v.length : null; };
  const most = (s, values) => { const v = ofStep(s, values); return v.length ? Math.max(...v) : null; };
  const least = (s, values) => { const v = ofStep(s, values); return v.length ? Math.min(...v) : null; };

  // --- what is drawn -------------------------------------------------------

  const rate = (key) => (s) => s[key].map((v) => v / s.step_s);
  const level = (key) => (s) => s[key];
  const stepName = step.load > 1 ? "overload" : result.settings.scenario === "retry-storm" ? "outage" : "step";
  const during = "in the " + stepName;
  const ratio = (s) => { const again = sum(ofStep(s, s.retries)), all = sum(ofStep(s, s.attempts)); return all > again ? again / (all - again) : null; };
  const lastSecond = (s, values, i) => sum(values.slice(Math.max(0, i + 1 - Math.round(1 / s.step_s)), i + 1));
  const perOriginal = (s) => s.t.map((_, i) => {
    const again = lastSecond(s, s.retries, i), all = lastSecond(s, s.attempts, i);
    return all > again ? again / (all - again) : null;
  });
  const line = (label, paint, values, more = {}) => ({ label, paint, values, width: 1.75, ...more });
  const layer = (label, paint, on, key) => ({ label, paint, on, values: rate(key), width: 0, area: true });

  const charts = {
    goodput: {
      height: 210, text: perSecond, axis: number, stat: mean, statName: "mean " + during,
      mark: { at: result.capacity_rps, label: "capacity " + perSecond(result.capacity_rps) },
      top: () => 1.3 * result.capacity_rps,
      lines: [
        line("offered", "muted", rate("offered"), { dash: [5, 4], width: 1.25 }),
        line("goodput", "goodput", rate("goodput"), { width: 2.25, area: true }),
      ],
    },
    load: {
      height: 150, text: perSecond, axis: number, stat: mean, statName: "mean " + during, log: true,
      mark: { at: result.capacity_rps, label: "capacity " + perSecond(result.capacity_rps) },
      lines: [
        line("offered", "muted", rate("offered"), { dash: [5, 4], width: 1.25 }),
        line("attempts", "ink", rate("attempts")),
      ],
    },
    fate: {
      height: 210, text: perSecond, axis: number, stat: mean, statName: "mean " + during, stack: true,
      lines: [ // from the bottom up
        layer("goodput", "goodput", "on-dark", "goodput"),
        layer("rejected locally (throttle)", "rejected-throttle", "on-dark", "rejected_throttle"),
        layer("rejected locally (in flight)", "rejected-inflight", "on-pale", "rejected_inflight"),
        layer("rejected remotely", "rejected-backend", "on-dark", "rejected_by_backend"),
        layer("late", "late", "on-light", "late"),
        layer("timed out", "timed-out", "on-dark", "timed_out"),
        layer("failed", "failed", "on-dark", "failed"),
        layer("dropped sends", "dropped", "on-light", "dropped_sends"),
      ],
    },
    latency: {
      height: 180, text: millis, stat: most, statName: "worst slot " + during, log: true, gap: "no answers",
      mark: { at: result.settings.deadline_ms, label: "deadline " + millis(result.settings.deadline_ms) },
      lines: [
        line("p50", "muted", level("p50_ms"), { width: 1.25 }),
        line("p99", "ink", level("p99_ms")),
      ],
    },
    retries: {
      height: 130, text: plain, axis: number, stat: ratio, statName: "mean " + during, least: 1,
      top: () => 1.5 * Math.max(...runs.map((r) => ratio(r.series) ?? 0)),
      lines: [line("retries", "ink", perOriginal, { area: true })],
    },
    budget: {
      height: 100, text: percent, stat: least, statName: "lowest " + during, least: 1, absent: "has no retry budget",
      lines: [line("budget left", "rejected-throttle", level("budget"), { area: true })],
    },
    inflight: {
      height: 170, text: number, stat: most, statName: "most " + during, log: true,
      lines: [
        line("limit", "rejected-throttle", level("limit"), { dash: [5, 4], width: 1.5 }),
        line("in flight", "ink", level("in_flight"), { area: true }),
      ],
    },
  };

  const column = (l, s) => (s && l.values(s)) || null;
  const columns = (chart, run) => chart.lines.map((l) => column(l, run?.series));

  // bounds returns the one y range of both runs.
  function bounds(chart) {
    let low = Infinity, peak = chart.mark?.at || 0;
    for (const run of runs) {
      const cols = columns(chart, run).filter(Boolean);
      const flat = chart.stack ? run.series.t.map((_, i) => sum(cols.map((c) => c[i]))) : cols.flat();
      for (const v of flat) {
        if (v == null) continue;
        peak = Math.max(peak, v);
        if (v > 0) low = Math.min(low, v);
      }
    }
    if (chart.log) {
      const bottom = 10 ** Math.floor(Math.log10(Math.min(low, peak || 1)));
      return [bottom, Math.max(1.6 * peak, 10 * bottom)];
    }
    return [0, Math.max(chart.top?.() || 1.12 * peak, chart.least ?? 0) || 1];
  }

  // table returns what uPlot draws. It cannot stack: the layers are added up
  // here, and come in the order in which they are painted, the highest first.
  function table(chart, run, floor) {
    const s = run.series;
    const cols = columns(chart, run).map((c) => c ?? s.t.map(() => null));
    const x = s.t.map((t) => t + s.step_s / 2);
    if (!chart.stack) return [x, ...cols.map((c) => (chart.log ? c.map((v) => (v === 0 ? floor : v)) : c))];
    let below = s.t.map(() => 0);
    return [x, ...cols.map((c) => (below = below.map((v, i) => v + c[i]))).reverse()];
  }

  // --- drawing over the canvas ---------------------------------------------

  const font = (weight = "") => `${weight} ${Math.round(12 * uPlot.pxRatio)}px system-ui, sans-serif`;

  function write(u, text, x, y, { paint = "muted", align = "left", weight = "", halo = true } = {}) {
    const c = u.ctx;
    c.save();
    Object.assign(c, { font: font(weight), textAlign: align, textBaseline: "middle", fillStyle: color(paint) });
    if (halo) {
      Object.assign(c, { strokeStyle: color("paper"), lineWidth: 4 * uPlot.pxRatio, lineJoin: "round" });
      c.strokeText(text, x, y);
    }
    c.fillText(text, x, y);
    c.restore();
  }

  function shadePhases(u) {
    const { left, top, width, height } = u.bbox, px = uPlot.pxRatio;
    for (const p of phases) {
      const from = Math.max(left, u.valToPos(p.start_s, "x", true));
      const to = Math.min(left + width, u.valToPos(p.end_s, "x", true));
      if (p === step) {
        u.ctx.fillStyle = color("shade");
        u.ctx.fillRect(from, top - 18 * px, to - from, height + 18 * px);
      }
      const name = p === step ? stepName : p.name;
      const full = `${name} ${+p.load.toPrecision(3)}×`;
      u.ctx.font = font();
      const text = [full, name].find((t) => u.ctx.measureText(t).width < to - from - 4 * px);
      if (text) write(u, text, (from + to) / 2, top - 9 * px, { align: "center", halo: false, paint: p === step ? "ink" : "muted" });
    }
  }

  function drawMark(u, mark) {
    if (!mark?.at) return;
    const { left, width } = u.bbox, px = uPlot.pxRatio, y = u.valToPos(mark.at, "y", true);
    u.ctx.save();
    Object.assign(u.ctx, { strokeStyle: color("ink"), lineWidth: px });
    u.ctx.beginPath();
    u.ctx.moveTo(left, y);
    u.ctx.lineTo(left + width, y);
    u.ctx.stroke();
    u.ctx.restore();
  }

  const xOf = (u, i) => u.valToPos(u.data[0][i], "x", true);
  const yOf = (u, v) => u.valToPos(v, "y", true);

  // sayGap says so where there is nothing to draw, if there is room for it.
  function sayGap(u, chart, run) {
    const values = column(chart.lines[0], run.series) ?? [];
    for (let from = 0, i = 0; i <= values.length; i++) {
      if (i < values.length && values[i] == null) continue;
      u.ctx.font = font();
      if (i > from && xOf(u, i - 1) - xOf(u, from) > u.ctx.measureText(chart.gap).width + 16 * uPlot.pxRatio) {
        write(u, chart.gap, (xOf(u, from) + xOf(u, i - 1)) / 2, u.bbox.top + u.bbox.height / 2, { align: "center" });
      }
      from = i + 1;
    }
  }

  // nameLayers writes the name of each layer into it, where it is thickest over
  // the width of the name, if it is thick enough.
  function nameLayers(u, chart, run) {
    const px = uPlot.pxRatio, n = run.series.t.length, floor = u.data[0].map(() => 0);
    u.ctx.font = font("600");
    chart.lines.forEach((l, i) => {
      const upper = u.data[chart.lines.length - i], lower = i ? u.data[chart.lines.length - i + 1] : floor;
      const reach = Math.ceil(u.ctx.measureText(l.label).width / 2 / (xOf(u, 1) - xOf(u, 0)));
      let best = { thick: 15 * px };
      for (let k = reach; k < n - reach; k++) {
        const y = yOf(u, Math.min(...upper.slice(k - reach, k + reach + 1)));
        const base = yOf(u, Math.max(...lower.slice(k - reach, k + reach + 1)));
        if (base - y > best.thick) best = { thick: base - y, x: xOf(u, k), y: (base + y) / 2 };
      }
      if (best.x) write(u, l.label, best.x, best.y, { paint: l.on, align: "center", weight: "600", halo: false });
    });
  }

  // --- the readout above each plot -----------------------------------------

  // readout names the lines and the mark above the chart, where nothing overlaps them, with
  // their values. It says how high a line reaches that leaves the chart at the top.
  function readout(chart, run, box) {
    const top = bounds(chart)[1];
    const items = chart.lines.map((l) => {
      const values = column(l, run.series);
      if (!values || (chart.stack && !sum(values))) return null;
      const item = document.createElement("span"), key = document.createElement("i"), value = document.createElement("b");
      key.className = l.width ? "key" : "key area";
      if (l.width) key.style.borderTop = `2px ${l.dash ? "dashed" : "solid"} var(--${l.paint})`;
      else key.style.background = `var(--${l.paint})`;
      item.append(key, l.label + " ", value);
      const most = Math.max(...values);
      return { item, value, values, still: chart.stat(run.series, values), cut: !chart.stack && most > top ? ` (up to ${chart.text(most)})` : "" };
    }).filter(Boolean);
    if (chart.mark?.at) {
      const item = document.createElement("span"), key = document.createElement("i");
      key.className = "key";
      key.style.borderTop = "2px solid var(--ink)";
      item.append(key, chart.mark.label);
      items.push({ item });
    }
    const when = document.createElement("span");
    box.append(when, ...items.flatMap((i) => [" ", i.item]));
    return (idx) => {
      when.textContent = (idx == null ? chart.statName : "at " + group(run.series.t[idx], 1) + " s") + ":";
      for (const i of items.filter((i) => i.value)) {
        const v = idx == null ? i.still : i.values[idx];
        i.value.textContent = (v == null ? "none" : chart.text(v)) + (idx == null ? i.cut : "");
      }
    };
  }

  // --- putting it together -------------------------------------------------

  const size = (plot, chart) => ({ width: plot.clientWidth, height: chart.height });
  const ticks = (u, axis, lo, hi) => {
    const at = [];
    for (let v = 10 ** Math.ceil(Math.log10(lo) - 1e-9); v <= hi; v *= 10) at.push(v);
    return at;
  };

  function options(chart, run, plot, show) {
    const range = bounds(chart);
    const axis = { stroke: () => color("muted"), grid: { stroke: () => color("line"), width: 0.5 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const alone = (u, si, shown, gaps) => {
      const d = u.data[si], at = d.flatMap((v, i) => (v != null && d[i - 1] == null && d[i + 1] == null ? [i] : []));
      return at.length ? at : null;
    };
    const lines = chart.lines.map((l) => ({
      label: l.label, width: l.width, dash: l.dash, spanGaps: false,
      stroke: () => (l.width ? color(l.paint) : "transparent"),
      fill: l.area ? () => (chart.stack ? color(l.paint) : faded(l.paint)) : undefined,
      fillTo: range[0],
      points: { show: false, size: 4, filter: chart.stack ? undefined : alone, fill: () => color(l.paint) },
    }));
    return {
      ...size(plot, chart),
      padding: [20, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: !chart.stack, size: 6 }, drag: { x: false, y: false }, sync: { key: "drill" } },
      scales: { x: { time: false, range: [0, end] }, y: { distr: chart.log ? 3 : 1, range: () => range } },
      series: [{}, ...(chart.stack ? lines.reverse() : lines)],
      axes: [
        { ...axis, size: 26, gap: 6, incrs: [0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600], values: (u, v) => v.map((t) => +t.toFixed(1) + " s") },
        { ...axis, size: 58, gap: 6, splits: chart.log ? ticks : undefined, space: 36, filter: (u, v) => v, values: (u, v) => v.map((y) => (chart.axis ?? chart.text)(y)) },
      ],
      hooks: {
        init: [(u) => { u.range = range; }],
        drawClear: [shadePhases],
        draw: [(u) => {
          drawMark(u, chart.mark);
          if (chart.gap) sayGap(u, chart, run);
          if (chart.stack) nameLayers(u, chart, run);
        }],
        setCursor: [(u) => show(u.cursor.idx)],
      },
    };
  }

  function leaveOut(plot, why, chart) {
    plot.classList.add("absent");
    plot.style.height = chart.height + "px";
    plot.textContent = why;
  }

  const drawn = [];
  for (const figure of document.querySelectorAll("figure[data-plot]")) {
    const chart = charts[figure.dataset.plot], run = result[figure.dataset.run];
    const plot = figure.querySelector(".plot"), box = figure.querySelector(".readout");
    if (!runs.includes(run)) { leaveOut(plot, "was not measured", chart); continue; }
    if (columns(chart, run).every((c) => !c)) { leaveOut(plot, chart.absent, chart); continue; }
    const show = readout(chart, run, box);
    show(null);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${figure.dataset.plot}, ${figure.dataset.run}: ${box.textContent}`);
    drawn.push({ u: new uPlot(options(chart, run, plot, show), table(chart, run, bounds(chart)[0]), plot), plot, chart });
  }

  const redraw = () => { colors = {}; for (const d of drawn) d.u.batch(() => d.u.redraw(false)); };
  const fit = () => drawn.forEach((d) => d.u.setSize(size(d.plot, d.chart)));
  new ResizeObserver(fit).observe(document.querySelector("main"));

  // --- theme and print -----------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const theme = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  const wear = (name) => {
    if (name) root.dataset.theme = name;
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    redraw();
  };
  button.hidden = false;
  button.addEventListener("click", () => wear(theme() === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => wear());
  const asked = new URLSearchParams(location.search).get("theme");
  wear(["light", "dark"].includes(asked) ? asked : undefined);

  let worn;
  addEventListener("beforeprint", () => {
    worn = theme();
    wear("light");
    for (const d of document.querySelectorAll("details:not(.raw)")) d.open = true;
    for (const d of drawn) d.u.batch(() => d.u.setSize({ width: 340, height: d.chart.height }));
  });
  addEventListener("afterprint", () => { wear(worn); fit(); });

  // --- the data as a table, made when it is asked for ------------------------

  for (const details of document.querySelectorAll("details.raw")) {
    details.addEventListener("toggle", () => {
      const box = details.querySelector(".scroll"), s = result[details.dataset.run].series;
      if (!details.open || box.firstElementChild?.tagName === "TABLE") return;
      const keys = Object.keys(s).filter((k) => Array.isArray(s[k]));
      const t = document.createElement("table"), head = t.createTHead().insertRow(), body = t.createTBody();
      for (const k of keys) Object.assign(head.appendChild(document.createElement("th")), { scope: "col", textContent: k });
      s.t.forEach((_, i) => {
        const row = body.insertRow();
        for (const k of keys) row.insertCell().textContent = s[k][i] == null ? "–" : +s[k][i].toFixed(3);
      });
      box.replaceChildren(t);
    });
  }
})();
