// Shows what the stream says: each tick brings the state of the proxy, in which all
// words and numbers are ready to be shown, and its last second, which is a row of the
// charts.
"use strict";
(() => {
  const $ = (selector) => document.querySelector(selector);
  const root = document.documentElement;
  const keep = 900;
  let rows = [], state = null, paused = false, span = 300, heard = 0;

  // --- words -----------------------------------------------------------------

  const plain = (v) => (v >= 10 || v === 0 ? Math.round(v).toLocaleString("en") : String(+v.toPrecision(2)));
  const rate = (v) => plain(v) + "/s";
  const millis = (v) => (v >= 999.5 ? +(v / 1000).toPrecision(3) + " s" : +v.toPrecision(v < 10 ? 2 : 3) + " ms");
  const percent = (v) => +(100 * v).toPrecision(v < 0.1 ? 2 : 3) + " %";
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const make = (tag, text, attributes = {}) => {
    const e = document.createElement(tag);
    if (text != null) e.textContent = text;
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    return e;
  };
  const say = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  // coded shows a text, in which what is to be typed is between backquotes.
  const coded = (e, text) => { if (e.textContent !== text.replaceAll("`", "")) e.replaceChildren(...text.split("`").map((part, i) => (i % 2 ? make("code", part) : part))); return e; };

  // --- colours: the palette is in CSS ------------------------------------------

  let colors = {};
  const swatch = document.body.appendChild(make("i", null, { hidden: "" }));
  function color(name) {
    if (!colors[name]) {
      swatch.style.color = `var(--${name})`;
      colors[name] = getComputedStyle(swatch).color;
    }
    return colors[name];
  }
  const faded = (name) => color(name).replace("rgb(", "rgba(").replace(")", ", 0.14)");

  // --- charts -------------------------------------------------------------------

  const line = (label, paint, value, more = {}) => ({ label, paint, value, width: 1.75, ...more });
  // From the bottom up, as they are rejected: a class only when all lower ones are.
  const classes = ["SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL", "CRITICAL_PLUS"];
  const paints = ["sheddable", "sheddable-plus", "critical", "critical-plus"];
  const short = classes.map((name) => name.replace("_PLUS", "+"));
  const layers = (value) => short.map((label, i) => ({ label, paint: paints[i], value: (r) => value(r)[i], width: 0, area: true }));

  const charts = [
    { id: "load", title: "Offered and goodput", about: "per second", text: rate, axis: plain, lines: [
      line("offered", "muted", (r) => r.offered, { dash: [5, 4], width: 1.5 }),
      line("goodput", "goodput", (r) => r.goodput, { width: 2.25, area: true }),
      line("late or failed", "timed-out", (r) => r.late + r.failed + r.rejected_upstream),
      line("client gone", "rejected-throttle", (r) => r.client_gone_sent + r.client_gone_waiting, { dash: [5, 4] })] },
    { id: "asked", title: "Asked for and admitted", about: "per second, as Envoys report", text: rate, axis: plain, lines: [
      line("asked for", "muted", (r) => r.offered, { dash: [5, 4], width: 1.5 }),
      line("admitted", "goodput", (r) => r.goodput, { width: 2.25, area: true })] },
    { id: "rejected", title: "Rejected, by criticality", about: "per second, stacked", text: rate, axis: plain, stack: true, lines: layers((r) => r.rejected) },
    { id: "would", title: "Would be rejected, by criticality", about: "per second; gates observe", text: rate, axis: plain, stack: true, lines: layers((r) => r.would_reject) },
    { id: "latency", title: "Latency of the admitted", about: "over ten seconds, log scale", text: millis, log: true, lines: [
      line("p50", "muted", (r) => r.p50_ms, { width: 1.5 }),
      line("p99", "ink", (r) => r.p99_ms, { width: 2 }),
      line("deadline", "timed-out", (r) => r.deadline_ms, { dash: [5, 4], width: 1.5 })] },
    { id: "in-flight", title: "In flight and limit", about: "requests, log scale", text: plain, log: true, lines: [
      line("limit", "rejected-throttle", (r) => r.limit, { dash: [5, 4] }),
      line("in flight", "ink", (r) => r.in_flight, { area: true }),
      line("waiting", "timed-out", (r) => r.waiting)] },
    { id: "retries", title: "Retries", about: "for each request sent; budget", text: percent, least: 1, lines: [
      line("retry ratio", "ink", (r) => r.retry_ratio, { area: true }),
      line("budget", "rejected-throttle", (r) => r.retry_budget, { dash: [5, 4] })] },
    { id: "throttle", title: "Throttle", about: "probability that a request is not sent, by criticality", text: percent, least: 1, lines:
      short.map((label, i) => line(label, paints[i], (r) => r.throttle[i])) },
  ];

  // table returns what uPlot draws. It cannot stack: the layers are added up here,
  // and come in the order in which they are painted, the highest first. A second
  // that was missed is a gap.
  function table(chart) {
    const seen = [];
    for (const r of rows) {
      if (seen.length && r.t - seen.at(-1).t > 2) seen.push({ t: seen.at(-1).t + 1 });
      seen.push(r);
    }
    const columns = chart.lines.map((l) => seen.map((r) => (r.seconds ? l.value(r) : null)));
    const x = seen.map((r) => r.t);
    if (!chart.stack) return [x, ...columns.map((c) => (chart.log ? c.map((v) => (v === 0 ? 1e-3 : v)) : c))];
    let below = x.map(() => 0);
    return [x, ...columns.map((c) => (below = below.map((v, i) => (c[i] == null ? null : v + c[i])))).reverse()];
  }

  function bounds(chart, u) {
    const from = (rows.at(-1)?.t ?? 0) - span, x = u.data[0];
    let low = Infinity, peak = 0;
    for (const column of u.data.slice(1)) {
      column.forEach((v, i) => {
        if (v == null || x[i] < from) return;
        peak = Math.max(peak, v);
        if (v > 1e-3) low = Math.min(low, v);
      });
    }
    if (chart.log) {
      const bottom = 10 ** Math.floor(Math.log10(Math.min(low, peak || 1)));
      return [bottom, Math.max(1.6 * peak, 10 * bottom)];
    }
    return [0, Math.max(1.1 * peak, chart.least ?? 0) || 1];
  }

  // reach is how many seconds the charts go back: full minutes, and no more than there
  // are rows for.
  const reach = () => Math.min(span, 60 * Math.max(1, Math.ceil((rows.length ? rows.at(-1).t - rows[0].t : 0) / 60)));

  const roomy = (u) => u.width > 380;

  // nameLines writes the name of each line where it ends, and of each layer that is
  // thick enough there.
  function nameLines(u, chart) {
    const c = u.ctx, px = uPlot.pxRatio, end = u.data[0].length - 1, labels = [];
    const y = (v) => Math.min(Math.max(u.valToPos(v, "y", true), u.bbox.top), u.bbox.top + u.bbox.height);
    if (end < 0 || !roomy(u)) return;
    chart.lines.forEach((l, i) => {
      const top = u.data[chart.stack ? chart.lines.length - i : i + 1][end];
      const base = chart.stack && i ? u.data[chart.lines.length - i + 1][end] : u.scales.y.min;
      if (top == null || (chart.stack ? y(base) - y(top) < 6 * px : !chart.stack && top <= 1e-3)) return;
      labels.push({ text: l.label, paint: chart.stack || l.paint.startsWith("s") || l.paint.startsWith("critical") ? "ink" : l.paint, y: chart.stack ? (y(top) + y(base)) / 2 : y(top) });
    });
    labels.sort((a, b) => a.y - b.y).forEach((a, i) => { if (i) a.y = Math.max(a.y, labels[i - 1].y + 13 * px); });
    let floor = u.bbox.top + u.bbox.height;
    c.save();
    Object.assign(c, { font: `${Math.round(11.5 * px)}px system-ui, sans-serif`, textBaseline: "middle", textAlign: "left" });
    for (const a of labels.reverse()) {
      a.y = Math.min(a.y, floor);
      floor = a.y - 13 * px;
      c.fillStyle = color(a.paint);
      c.fillText(a.text, u.bbox.left + u.bbox.width + 6 * px, a.y);
    }
    c.restore();
  }

  // The time axis is that of the start of the proxy, which a step of the clock does not move; clock
  // returns the time of day as the proxy has it now.
  const clock = (t) => {
    const end = rows.at(-1)?.t ?? t, now = state ? new Date(state.time).getTime() / 1000 : end;
    return new Date(1000 * (now - end + t)).toLocaleTimeString("en-GB");
  };

  // markChanges draws a line at each reload, change of mode and step of the clock.
  function markChanges(u) {
    const c = u.ctx, px = uPlot.pxRatio, { left, top, width, height } = u.bbox;
    for (const change of state?.changes ?? []) {
      const x = u.valToPos(change.t, "x", true);
      if (x < left || x > left + width) continue;
      c.save();
      Object.assign(c, { strokeStyle: color(change.bad ? "timed-out" : "muted"), fillStyle: color(change.bad ? "timed-out" : "muted"), lineWidth: px });
      c.setLineDash([3 * px, 3 * px]);
      c.beginPath();
      c.moveTo(x, top);
      c.lineTo(x, top + height);
      c.stroke();
      c.beginPath();
      c.moveTo(x - 4 * px, top);
      c.lineTo(x + 4 * px, top);
      c.lineTo(x, top + 7 * px);
      c.fill();
      c.restore();
    }
  }

  const changesAt = (t) => (state?.changes ?? []).filter((c) => Math.abs(c.t - t) <= reach() / 100).map((c) => c.text);

  const ago = (seconds) => (seconds < 0.5 ? "now" : seconds % 60 ? `−${Math.round(seconds)} s` : `−${seconds / 60} min`);
  const decades = (u, axis, low, high) => {
    const at = [];
    for (let v = 10 ** Math.ceil(Math.log10(low) - 1e-9); v <= high; v *= 10) at.push(v);
    return at;
  };

  function options(chart, plot) {
    const axis = { stroke: () => color("muted"), grid: { stroke: () => color("line"), width: 0.5 }, ticks: { show: false }, font: "11.5px system-ui, sans-serif" };
    const lines = chart.lines.map((l) => ({
      label: l.label, width: l.width, dash: l.dash, spanGaps: false, points: { show: false },
      stroke: () => (l.width ? color(l.paint) : "transparent"),
      fill: l.area ? () => (chart.stack ? color(l.paint) : faded(l.paint)) : undefined,
    }));
    return {
      width: plot.clientWidth, height: 168, legend: { show: false },
      padding: [8, (u) => (roomy(u) ? 96 : 30), 0, 0],
      cursor: { y: false, points: { show: !chart.stack, size: 6 }, drag: { x: false, y: false }, sync: { key: "spillway" } },
      scales: {
        x: { time: false, range: () => { const end = rows.at(-1)?.t ?? 0; return [end - reach(), end]; } },
        y: { distr: chart.log ? 3 : 1, range: (u) => bounds(chart, u) },
      },
      series: [{}, ...(chart.stack ? lines.reverse() : lines)],
      axes: [
        { ...axis, size: 24, gap: 5, splits: (u, i, from, to) => { const step = (to - from) % 300 === 0 ? (to - from) / 5 : (to - from) / 4; return [4, 3, 2, 1, 0].map((k) => to - k * step).concat(to - from === 5 * step ? [from] : []).sort((a, b) => a - b); }, values: (u, v) => v.map((t) => (t === u.scales.x.max ? clock(t) : ago(u.scales.x.max - t))) },
        { ...axis, size: 56, gap: 5, splits: chart.log ? decades : undefined, space: 32, filter: (u, v) => v, values: (u, v) => v.map((y) => (y == null ? "" : (chart.axis ?? chart.text)(y))) },
      ],
      hooks: { draw: [(u) => { markChanges(u); nameLines(u, chart); }], setCursor: [(u) => chart.show(u.cursor.idx)] },
    };
  }

  // readout writes the values of a chart at a row, or at the last one.
  function readout(chart, box) {
    const items = chart.lines.map((l) => {
      const item = make("span"), key = make("i", null, { class: l.width ? "key" : "key area" }), value = make("b");
      if (l.width) key.style.borderTop = `2px ${l.dash ? "dashed" : "solid"} var(--${l.paint})`;
      else key.style.background = `var(--${l.paint})`;
      item.append(key, l.label + " ", value);
      return { value, of: l.value };
    });
    const when = make("span");
    box.append(...items.flatMap((i) => [i.value.parentElement, " "]), when);
    return (index) => {
      const at = index == null ? null : chart.plot.data[0][index];
      const r = at == null ? rows.at(-1) : rows.find((x) => x.t === at);
      for (const i of items) {
        const v = r ? i.of(r) : null;
        say(i.value, v == null ? "–" : chart.text(v));
      }
      say(when, at == null ? "" : [clock(at), ago(rows.at(-1).t - at), ...changesAt(at)].join(", "));
    };
  }

  function addFigure(chart) {
    const figure = make("figure", null, { "data-chart": chart.id }), caption = make("figcaption"), heading = make("h2", chart.title + " ");
    chart.note = heading.appendChild(make("small", chart.about));
    chart.figure = figure;
    chart.box = make("div", null, { class: "plot", role: "img" });
    const box = make("div", null, { class: "readout" });
    caption.append(heading, box);
    figure.append(caption, chart.box);
    $("#charts").append(figure);
    chart.show = readout(chart, box);
    chart.words = () => `${chart.title}, ${chart.note.textContent}: ${box.textContent}`;
  }
  const addPlot = (chart) => { chart.plot = new uPlot(options(chart, chart.box), table(chart), chart.box); };
  charts.forEach(addFigure);
  charts.forEach(addPlot);

  // limitCharts adds a chart for each limit that moves by itself, beside its bounds.
  function limitCharts() {
    const limits = state?.limits ?? [], named = (name) => (state?.limits ?? []).find((l) => l.name === name);
    for (const { name } of limits) {
      if (charts.some((c) => c.limit === name)) continue;
      const bound = (label, key) => line(label, "muted", () => named(name)?.[key] || null, { dash: [2, 3], width: 1.5 });
      const chart = { id: "limit-" + charts.length, limit: name, title: "Limit " + name, about: "log scale", text: plain, log: true, lines: [
        bound("minimum", "least"), bound("maximum", "most"), line("limit", "rejected-throttle", (r) => r.limits?.[name] || null, { width: 2.25 })] };
      charts.push(chart);
      addFigure(chart);
      addPlot(chart);
    }
    for (const chart of charts.filter((c) => c.limit)) {
      const l = named(chart.limit), u = l?.usual, odd = Boolean(l?.odd);
      say(chart.note, `${u ? `usually ${plain(u.low)} to ${plain(u.high)}` : "log scale"}${odd ? `, now ${plain(l.value)}` : ""}`);
      chart.figure.classList.toggle("odd", odd);
      const end = rows.at(-1)?.t ?? 0, seen = rows.filter((r) => r.t > end - span).map((r) => r.limits?.[chart.limit]).filter((v) => v > 0);
      chart.figure.hidden = !odd && (!seen.length || Math.min(...seen) === Math.max(...seen));
    }
  }

  const flats = { retries: (r) => r.retry_ratio > 0 || (r.retry_budget ?? 1) < 0.999, throttle: (r) => sum(r.throttle) > 0, "in-flight": (r) => r.in_flight > 0 || r.waiting > 0 };

  // choose hides charts with nothing but zeros, and one of the two stacked charts.
  function choose() {
    limitCharts();
    const end = rows.at(-1)?.t ?? 0, some = (key) => rows.some((r) => r.t > end - span && sum(r[key]) > 0);
    const would = some("would_reject"), rejected = some("rejected");
    const figure = (id) => charts.find((c) => c.id === id).figure;
    figure("would").hidden = !would;
    figure("rejected").hidden = !rejected;
    const folded = Object.keys(flats).filter((id) => {
      const c = charts.find((x) => x.id === id), flat = !rows.some((r) => r.t > end - span && flats[id](r));
      c.figure.hidden = flat;
      return c.figure.hidden;
    }).map((id) => charts.find((x) => x.id === id));
    if (!rejected && !would) folded.unshift(charts.find((c) => c.id === "rejected"));
    figure("asked").hidden = !state?.service;
    if (state?.service) { // it has no requests, and so no latencies
      for (const c of charts) c.figure.hidden ||= !["asked", "rejected"].includes(c.id);
      folded.splice(0, folded.length, ...folded.filter((c) => c.id === "rejected"));
    }
    $("#flat").hidden = !folded.length;
    say($("#flat"), "Nothing to show: " + folded.map((c) => c.title.toLowerCase()).join("; ") + ".");
  }

  function draw() {
    choose();
    for (const chart of charts) {
      if (chart.figure.hidden) continue;
      const width = chart.box.clientWidth;
      chart.plot.batch(() => {
        if (chart.plot.width !== width) chart.plot.setSize({ width, height: 168 });
        chart.plot.setData(table(chart));
      });
      chart.show(chart.plot.cursor.idx);
      chart.box.setAttribute("aria-label", chart.words());
    }
    if ($("#raw").open) tabulate();
  }

  // --- the data as a table ---------------------------------------------------------

  // grid makes a table. Each cell has the name of its column with it, which shows where a row becomes a block.
  function grid(head, lines) {
    const t = make("table"), h = t.createTHead().insertRow();
    t.createTBody();
    for (const cell of head) h.append(cell instanceof Node ? cell : make("th", cell, { scope: "col" }));
    for (const cells of lines) addRow(t, cells);
    return t;
  }

  function addRow(t, cells) {
    const row = t.tBodies[0].insertRow(), head = t.tHead.rows[0].cells;
    cells.forEach((cell, i) => {
      const c = cell instanceof Node ? cell : make(i ? "td" : "th", cell, i ? {} : { scope: "row" });
      if (i) c.dataset.of = head[i].textContent;
      row.append(c);
    });
    return row;
  }

  function tabulate() {
    const columns = charts.flatMap((c) => c.lines.map((l) => ({ name: (c.stack ? c.id + " " : "") + (c.id === "throttle" ? "throttle " : "") + l.label, text: c.text, of: l.value })));
    const lines = rows.slice(-span).reverse().map((r) => [clock(r.t),
      ...columns.map((c) => { const v = c.of(r); return v == null ? "–" : c.text(v); })]);
    $("#raw .scroll").replaceChildren(grid(["time", ...columns.map((c) => c.name)], lines));
  }
  $("#raw").addEventListener("toggle", () => { if ($("#raw").open) tabulate(); });

  // --- the state -------------------------------------------------------------------

  const program = () => state.program;
  const library = () => state.program === "library"; // its gates are servers, and its clusters are backends of clients
  const badges = { ok: "OK", warn: "WARN", bad: "BAD", idle: "IDLE" };

  function showVerdict() {
    const v = state.verdict, box = $("#verdict");
    box.dataset.level = v.level;
    say(box.querySelector(".badge"), badges[v.level]);
    say(box.querySelector("h1"), v.headline);
    say(box.querySelector("p"), v.text);
    coded(box.querySelector(".do"), v.do ?? "");
    box.querySelector(".do").hidden = !v.do;
    const most = who();
    say(box.querySelector(".who"), most);
    box.querySelector(".who").hidden = !most;
    document.title = `${badges[v.level]}: ${v.headline} Spillway ${library() ? state.name : program()}`;
    say($("#program"), library() ? state.name : program());
    say($("#about"), state.service ? `${state.version}, domain ${state.service.quota || "(any)"}` : [state.version, `mode ${state.mode}`].filter(Boolean).join(", "));
    const local = new Date(state.time), zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    say($("#clock"), local.toLocaleTimeString("en-GB") + " " + zone);
    $("#clock").dateTime = state.time;
    const notices = state.notices ?? [], list = $("#notices");
    list.hidden = notices.length < 3; // the sentence above has two of them
    list.replaceChildren(...notices.map((n) => { const e = make("li"); e.append(make("b", n.headline), " " + n.text); return e; }));
    const o = state.override;
    $("#override").hidden = !o;
    if (o) say($("#override"), `Changed by hand: ${o.field} is ${o.value} since ${new Date(o.since).toLocaleTimeString("en-GB")}, the configuration says ${o.file}. The next reload or restart drops the change.`);
  }

  // who names the route, the customer and the caller with most rejections, while requests are rejected, or would be.
  function who() {
    const mode = sum(state.mean.rejected) ? "enforce" : "observe", now = sum(mode === "enforce" ? state.mean.rejected : state.mean.would_reject);
    const names = ["route", "customer", "caller"].map((kind) => ({ kind, name: state.top?.[kind + "s"]?.rows?.find((r) => r.mode === mode)?.name })).filter((x) => x.name);
    if (!now || !names.length) return "";
    return `Most that ${mode === "enforce" ? "was" : "would be"} rejected in the last minutes: ${names.map((x) => `${x.kind} ${x.kind === "customer" ? customer(x.name) : x.name}`).join(", ")}.`;
  }

  function showTiles() {
    const box = $("#tiles");
    box.classList.toggle("six", Boolean(state.service));
    state.tiles.forEach((t, i) => {
      let tile = box.children[i];
      if (!tile) {
        tile = box.appendChild(make("div", null, { class: "tile" }));
        tile.append(make("h2"), make("data"), make("small"));
      }
      tile.dataset.tile = t.id;
      tile.dataset.level = t.level;
      say(tile.children[0], t.name);
      tile.children[1].value = t.value ?? "";
      say(tile.children[1], t.text);
      say(tile.children[2], t.note);
    });
  }

  const count = (v) => (v ? Math.round(v).toLocaleString("en") : "–");

  function showReasons() {
    const box = $("#reasons .scroll");
    if (!state.reasons.length) {
      box.replaceChildren(make("p", "Nothing was rejected or lost since the start.", { class: "note" }));
      return;
    }
    const order = [3, 2, 1, 0], recent = state.reasons.filter((r) => sum(r.minute)), earlier = state.reasons.filter((r) => !sum(r.minute));
    const outcome = (r) => (r.outcome === "rejected" ? (r.mode === "observe" ? "would be rejected" : "rejected") : r.outcome);
    const lines = recent.map((r) => {
      const words = make("td", r.words, { class: "words" });
      if (r.measured) { // some reasons have no limit
        const limit = r.measured.limit ? ` of ${plain(r.measured.limit)}` : "";
        words.append(`; last ${limit ? "at " : ""}${plain(r.measured.value)}${limit} ${r.measured.unit}`);
      }
      if (r.do) {
        const todo = coded(make("span", null, { class: "do" }), r.do + " ");
        for (const x of r.settings ?? []) todo.append(make("code", x.name + (x.value ? ": " + x.value : "")), " ");
        if (r.link) todo.append(make("a", "runbook", { href: r.link, rel: "noreferrer" }));
        words.append(todo);
      }
      const part = (v) => make("td", count(v), { class: v ? "part" : "part none" });
      return [named(r), outcome(r), make("td", count(sum(r.minute)), { class: "all" }), words,
        ...order.map((i) => part(r.minute[i])), part(sum(r.total))];
    });
    const head = ["reason", "outcome", "requests", make("th", "why, and what to do", { class: "words" }), ...order.map((i) => short[i]), "since start"];
    box.replaceChildren(lines.length ? grid(head, lines) : make("p", "Nothing in the last minute.", { class: "note" }));
    if (earlier.length) box.append(make("p", `Earlier, since the start: ${earlier.map((r) => `${named(r)} ${outcome(r)} ${count(sum(r.total))}`).join("; ")}.`, { class: "note" }));
  }

  // named is a reason as people say it: "quota", "queue full (shed)".
  function named(r) {
    const reason = r.reason.replaceAll("_", " "), policy = { ratelimit: "rate limit", inflight: "in flight" }[r.policy] ?? r.policy;
    return reason === policy || reason.includes(policy) || ["proxy", "server"].includes(r.policy) ? reason : `${reason} (${policy})`;
  }

  // customer is the name of a customer, in quotes if it could be mistaken for that of requests without one.
  const customer = (name) => (!name ? "(no customer)" : /^[("]/.test(name) ? JSON.stringify(name) : name);

  function showTop() {
    const lists = ["customers", "routes", "callers"].map((kind) => ({ kind, top: state.top?.[kind] })).filter((l) => l.top?.rows?.some((r) => r.name || l.kind !== "customers"));
    $("#top").hidden = !lists.length;
    const observed = lists.every((l) => l.top.rows.every((r) => r.mode === "observe")), number = observed ? "requests" : "rejected"; // a longer word would widen the table
    say($("#top h2 span"), observed ? "Who would be rejected" : "Who is rejected");
    $("#top .tops").replaceChildren(...lists.map(({ kind, top }) => {
      const box = make("div"), scroll = make("div", null, { class: "scroll" });
      const rows = top.rows.slice(0, 5).map((r) => [kind === "customers" ? customer(r.name) : r.name || "(none)", r.reason.replaceAll("_", " ") + (r.mode === "observe" && !observed ? " (observed only)" : ""), r.class, count(r.count)]);
      const rest = [top.others ? `${count(top.others)} more are in no row` : "", top.error ? `counts may be ${count(top.error)} too low` : ""].filter(Boolean).join("; ");
      scroll.append(grid([kind.slice(0, -1), "reason", "class", number], rows));
      box.append(scroll);
      if (rest) box.append(make("p", rest, { class: "note" }));
      return box;
    }));
  }

  // showCustomers shows how the customers of a service of quotas use them.
  function showCustomers() {
    $("#customers").hidden = !state.service;
    for (const e of document.querySelectorAll("#reasons, #clusters, .of-proxy")) e.hidden = Boolean(state.service);
    if (!state.service) return;
    const all = state.customers ?? [], box = $("#customers .scroll");
    if (!all.length) return box.replaceChildren(make("p", "No Envoy has reported a customer.", { class: "note" }));
    const marginal = (name) => state.quotas?.[0]?.customers?.find((c) => c.customer === name)?.marginal ?? -1;
    const lines = all.map((c) => {
      const name = c.unlisted ? "(all unlisted customers together)" : customer(c.customer), asked = c.admitted_rate + c.rejected_rate, least = c.listed ? marginal(c.customer) : -1;
      return [name, c.unlisted ? "–" : c.listed ? "yes" : "no", c.total ? rate(c.total) : "no limit", rate(asked), rate(c.admitted_rate),
        make("td", rate(c.rejected_rate), c.rejected_rate ? { class: "down" } : {}), c.total ? percent(c.admitted_rate / c.total) : "–", !c.listed ? "–" : least < 0 ? "all" : `${short[least]} in part`];
    });
    box.replaceChildren(grid(["customer", "listed", "limit", "asked for", "admitted", "rejected", "of its limit", "classes admitted"], lines));
  }

  // showServers shows the servers of a program that uses the library, and then the backends of its clients.
  function showServers() {
    say($("#clusters h2").firstChild, state.clusters.length ? "Servers and backends " : "Servers ");
    say($("#clusters h2 small"), "now");
    const t = grid(["server", "limit on", "in flight", "limit", "waiting", "base latency", "busy", "rejected, by class"], []);
    const ratios = (v) => short.map((name, i) => (v[i] >= 0.001 ? `${name} ${percent(v[i])}` : "")).filter(Boolean).join(", ") || "–";
    const limit = (x) => (x.unknown ? "unknown: nothing is answered" : x.limit ? plain(x.limit) + (x.shared ? ", shared" : "") : "–");
    const base = (x) => (x.baseline ? millis(x.baseline / 1e6) : "–");
    for (const g of state.gates) {
      addRow(t, [g.listener, "all requests", count(g.in_flight), limit(g), count(g.waiting), base(g), percent(g.busy), ratios(g.rejected_ratio)]);
      for (const k of (g.keys ?? []).filter((k) => k.limit || k.unknown).slice(0, 5)) {
        addRow(t, [k.name || "(no key)", "this key", count(k.in_flight), limit(k), "", base(k), "", ""]).setAttribute("class", "endpoint");
      }
    }
    const b = grid(["backend", "in flight", "rejected here", "throttle", "retry budget"], state.clusters.map((x) => [x.name || "(no name)",
      x.in_flight + (x.max_in_flight ? ` / ${x.max_in_flight}` : ""), rate(x.rejected ?? 0), percent(Math.max(...x.throttle)),
      x.budget ? `${plain(x.budget.left)} of ${plain(x.budget.capacity)}` : "–"]));
    $("#clusters .scroll").replaceChildren(...[state.gates.length ? t : null, state.clusters.length ? b : null].filter(Boolean));
  }

  function showClusters() {
    const t = grid(["cluster", "state", "in flight", "sent", "latency", "errors", "rejected", "throttle", "retry budget"], []);
    const row = (name, attributes, ...cells) => {
      const r = addRow(t, [name, ...cells]);
      for (const [k, v] of Object.entries(attributes)) r.setAttribute(k, v);
    };
    const unanswered = (...gates) => (gates.some((g) => g.unknown) ? ", nothing is answered, limit unknown" : "");
    for (const x of state.clusters) {
      const up = x.endpoints.filter((e) => !e.down).length, all = x.endpoints.length;
      const gates = state.gates.filter((g) => g.cluster === x.name);
      const waiting = x.queue ? `, ${x.queue.waiting} waiting` : "";
      const sent = sum(x.endpoints.map((e) => e.rate)); // an attempt counts when it begins, its error when it ends
      row(x.name, {}, make("td", `${up} of ${all} up`, up < all ? { class: "down" } : {}), x.in_flight + (x.max_in_flight ? ` / ${x.max_in_flight}` : "") + unanswered(...gates) + waiting, rate(sent),
        "", sent ? percent(sum(x.endpoints.map((e) => Math.min(e.errors, e.rate))) / sent) : "–", rate(x.rejected ?? 0),
        percent(Math.max(...x.throttle)), x.budget ? `${plain(x.budget.left)} of ${plain(x.budget.capacity)}` : "–");
      for (const g of gates.length > 1 ? gates : []) { // each finds its own part of the limit
        row(`from ${g.listener}`, { class: "endpoint" }, g.waiting ? `${count(g.waiting)} waiting` : "", g.in_flight + (g.limit ? ` / ${Math.round(g.limit)}` : "") + unanswered(g), "", "", "", "", "", "");
      }
      for (const e of x.endpoints) {
        row(e.address, { class: "endpoint" }, make("td", e.down || "up", e.down ? { class: "down" } : {}), all > 1 ? e.in_flight : "", rate(e.rate),
          e.latency_ms ? millis(e.latency_ms) : "–", e.rate ? percent(Math.min(e.errors, e.rate) / e.rate) : "–", "", "", "");
      }
    }
    for (const g of state.gates.filter((g) => !state.clusters.some((x) => x.name === g.cluster))) { // MongoDB's
      row(g.listener, {}, "", g.in_flight + (g.limit ? ` / ${Math.round(g.limit)}` : "") + unanswered(g) + (g.waiting ? `, ${count(g.waiting)} waiting` : ""), "", "", "", "", "", "");
    }
    $("#clusters .scroll").replaceChildren(t);
  }

  function showTuned() {
    const all = state.tuned ?? [];
    $("#tuned").hidden = !all.length;
    if (!all.length) return;
    const lines = all.flatMap((l) => {
      const moves = l.moves.slice(0, 3);
      const known = (state.limits ?? []).find((x) => x.name === l.name), odd = Boolean(known?.odd);
      const value = make("td", plain(l.value) + (odd ? `, usually ${plain(known.usual.low)} to ${plain(known.usual.high)}` : l.value <= l.least ? ", at its minimum" : l.value >= l.most ? ", at its maximum" : ""), odd ? { class: "odd" } : {});
      return (moves.length ? moves : [null]).map((m, i) => [i ? "" : l.name, i ? "" : value, i ? "" : `${plain(l.least)} to ${plain(l.most)}`,
        m ? `${new Date(m.time).toLocaleTimeString("en-GB")}: ${plain(m.from)} → ${plain(m.to)}` : "not moved yet", make("td", m?.why ?? "", { class: "words" })]);
    });
    $("#tuned .scroll").replaceChildren(grid(["limit", "value", "bounds", "move", make("th", "why", { class: "words" })], lines));
  }

  function showMongo() {
    const all = state.mongo ?? [], listeners = [...new Set(all.map((x) => x.listener))];
    $("#mongo").hidden = !all.length;
    if (!all.length) return;
    const lines = [...new Set(all.map((x) => x.name))].map((name) => [name,
      ...listeners.map((l) => { const x = all.find((y) => y.listener === l && y.name === name); return x ? plain(x.value) : "–"; })]);
    $("#mongo .scroll").replaceChildren(grid(["count", ...listeners], lines));
  }

  function show() {
    showMongo();
    showVerdict();
    showTiles();
    showReasons();
    if (library()) showServers(); else showClusters();
    for (const e of document.querySelectorAll(".of-config")) e.hidden = library();
    showCustomers();
    showTuned();
    showTop();
    draw();
    cue();
  }

  // cue says at a heading that the table below it goes on to the side.
  function cue() {
    for (const box of document.querySelectorAll(".scroll")) {
      const heading = box.parentElement.querySelector("h2");
      box.tabIndex = box.scrollWidth > box.clientWidth + 1 ? 0 : -1;
      if (!heading) continue;
      if (!heading.querySelector(".cue")) heading.append(make("small", "scroll →", { class: "cue" }));
      heading.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  }

  // --- the stream ---------------------------------------------------------------------

  function connection(name, text) {
    $("#connection").dataset.state = name;
    say($("#connection"), text);
    root.classList.toggle("stale", name === "stale");
  }

  function take(next, more) {
    state = next;
    rows = more;
    heard = Date.now();
    connection("live", paused ? "paused" : "live");
    if (!paused) show();
  }

  let stream;
  function open() {
    stream = new EventSource("api/v1/stream");
    stream.addEventListener("history", (e) => { const d = JSON.parse(e.data); take(d.state, d.rows ?? []); });
    stream.addEventListener("tick", (e) => { const s = JSON.parse(e.data); take(s, [...rows.slice(1 - keep), s.last]); });
    stream.onerror = () => connection("stale", "no connection: what is shown is old");
  }
  // A browser has few connections for each host: a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => { stream.close(); if (!document.hidden) open(); });
  setInterval(() => {
    const late = Math.round((Date.now() - heard) / 1000);
    if (heard && late > 3 && !document.hidden) connection("stale", `nothing heard for ${late} s: what is shown is old`);
  }, 1000);

  // --- tools --------------------------------------------------------------------------

  $("#pause").addEventListener("click", () => {
    paused = !paused;
    say($("#pause"), paused ? "Go on" : "Pause");
    $("#pause").setAttribute("aria-pressed", String(paused));
    connection("live", paused ? "paused" : "live");
    if (!paused && state) show();
  });
  $("#window").addEventListener("change", () => { span = Number($("#window").value); draw(); });

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  function wear(name) {
    if (name) root.dataset.theme = name;
    say($("#theme"), theme() === "dark" ? "Light" : "Dark");
    colors = {};
    for (const chart of charts) chart.plot.redraw(false);
  }
  $("#theme").addEventListener("click", () => wear(theme() === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => wear());
  const asked = new URLSearchParams(location.search).get("theme");
  wear(["light", "dark"].includes(asked) ? asked : undefined);
  addEventListener("resize", () => { draw(); cue(); });
  open();
})();
