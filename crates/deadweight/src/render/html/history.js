// The script of a history's page: other rows, shorter ranges and hover for a chart that is complete without it.
// It asks for nothing outside of the page. Names reach the page as text only (textContent).
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const data = JSON.parse(document.getElementById("history").textContent);
  const section = document.getElementById("chart");
  const svg = section.querySelector("svg");
  const readout = section.querySelector(".readout");
  const controls = section.querySelector(".controls");
  const region = section.querySelector(".drawing");
  const part = (name) => svg.querySelector(`.${name}`);
  const make = (name, attributes, ...inside) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  };
  const time = (ns) => {
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
      if (ns >= size) { const v = ns / size; return `${v.toFixed(v < 9.995 ? 2 : v < 99.95 ? 1 : 0)} ${unit}`; }
    }
    const decimals = ns >= 99.95 || Number.isInteger(ns) ? 0 : ns >= 9.995 ? 1 : ns >= 0.9995 ? 2 : 3;
    return `${ns.toFixed(decimals)} ns`;
  };
  const n = (value) => String(Math.round(value * 10) / 10);
  const signed = (share) => `${share < 0 ? "−" : "+"}${(100 * Math.abs(share)).toFixed(1)} %`;
  // The least height of a chart, in ns.
  const LEAST = 1e-3;
  const LEFT = 76, RIGHT = 14, TOP = 34, PLOT = 280, BOTTOM = TOP + PLOT;
  const count = data.ns.length;
  let row = -1, first = 0, low = 0, high = 1, pointed = null;

  const ns = (index) => row < 0 ? data.ns[index] : data.rows[row][index];
  const ends = (index) => row < 0 ? [data.low_ns[index], data.high_ns[index]] : [ns(index), ns(index)];
  const step = () => (1200 - LEFT - RIGHT) / Math.max(count - first, 1);
  const x = (index) => LEFT + (index - first + 0.5) * step();
  const y = (value) => TOP + PLOT * (1 - (value - low) / (high - low));
  // Rows of runs without a ledger are -1.
  const shown = () => [...Array(count).keys()].slice(first).filter((index) => ns(index) >= 0);
  const concerns = (change) => change.index >= first && (row < 0 || change.rows.includes(data.names[row]));

  const scale = () => {
    const all = shown().flatMap((index) => [...ends(index), ns(index)]);
    low = all.reduce((a, b) => Math.min(a, b), Infinity);
    high = all.reduce((a, b) => Math.max(a, b), LEAST);
    if (!(low >= 0.4 * high)) low = 0;
    const margin = Math.max((high - low) * 0.12, high * 0.02);
    low = Math.max(low - margin, 0);
    high += margin;
  };
  const axes = () => {
    const parts = [];
    const rough = (high - low) / 7, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const every = [1, 2, 5, 10].map((f) => f * power).find((size) => size >= rough);
    for (let at = Math.ceil(low / every) * every; at <= high; at += every) {
      parts.push(make("path", { class: "axis", d: `M${LEFT} ${n(y(at))}H${1200 - RIGHT}` }),
        make("text", { class: "faint end", x: LEFT - 8, y: n(y(at) + 4) }, at === 0 ? "0" : time(at)));
    }
    parts.push(make("path", { class: "axis", d: `M${LEFT} ${BOTTOM}H${1200 - RIGHT}` }));
    const dates = Math.min(6, count - first);
    let last = "";
    for (let at = 0; at < dates; at += 1) {
      const index = first + Math.floor(at * (count - first - 1) / Math.max(dates - 1, 1));
      if (data.days[index] === last) continue;
      last = data.days[index];
      const place = Math.min(Math.max(x(index), LEFT + 30), 1160);
      parts.push(make("text", { class: "faint middle", x: n(place), y: BOTTOM + 20 }, last));
    }
    return parts;
  };
  const plot = () => {
    const indices = shown();
    const to = (index, value) => `${n(x(index))} ${n(y(value))}`;
    const line = indices.map((index, at) => `${at === 0 || data.cuts.includes(index) ? "M" : "L"}${to(index, ns(index))}`);
    const parts = [];
    if (row < 0 && indices.length) {
      const above = indices.map((index) => to(index, ends(index)[1]));
      const below = indices.map((index) => to(index, ends(index)[0])).reverse();
      parts.push(make("path", { class: "interval", d: `M${above.concat(below).join("L")}Z` }));
    }
    parts.push(make("path", { class: "value", d: line.join("") }));
    if (indices.length <= 240) {
      parts.push(make("g", { class: "values" },
        ...indices.map((index) => make("circle", { cx: n(x(index)), cy: n(y(ns(index))), r: 2.6 }))));
    }
    const changes = data.changes.filter((change) => concerns(change) && (row >= 0 || change.total));
    const edges = [...new Set([first, ...data.cuts.filter((cut) => cut > first), ...changes.map((c) => c.index), count])];
    edges.sort((a, b) => a - b);
    for (let at = 0; at + 1 < edges.length; at += 1) {
      const inside = indices.filter((index) => index >= edges[at] && index < edges[at + 1]);
      if (!inside.length) continue;
      const mean = inside.reduce((sum, index) => sum + ns(index), 0) / inside.length;
      const [start, end] = [x(edges[at]) - step() / 2, x(edges[at + 1]) - step() / 2];
      parts.push(make("path", { class: "level", d: `M${n(start)} ${n(y(mean))}H${n(end)}` }));
    }
    return parts;
  };
  const cuts = () => data.cuts.filter((cut) => cut > first).flatMap((cut) => {
    const at = n(x(cut) - step() / 2);
    return [make("path", { class: "cut", d: `M${at} ${TOP}V${BOTTOM}` }),
      make("text", { class: "faint", x: n(+at + 4), y: BOTTOM - 6 }, "another method")];
  });
  const changes = () => data.changes.map((change, number) => [change, number + 1]).filter(([change]) => concerns(change))
    .map(([change, number]) => {
      const at = n(x(change.index) - step() / 2);
      return make("a", { href: `#change-${number}`, "data-index": change.index },
        make("title", {}, `${data.days[change.index]}: ${change.text}`),
        make("path", { class: `change change-${change.word}`, d: `M${at} ${TOP - 8}V${BOTTOM}` }),
        make("circle", { class: `mark mark-${change.word}`, cx: at, cy: TOP - 18, r: 11 }),
        make("text", { class: "on-mark", x: at, y: TOP - 14 }, String(number)));
    });
  const draw = () => {
    scale();
    part("axes").replaceChildren(...axes());
    part("plot").replaceChildren(...plot());
    part("cuts").replaceChildren(...cuts());
    part("changes").replaceChildren(...changes());
    point(null);
  };
  const point = (index) => {
    pointed = index;
    if (index === null || ns(index) < 0) {
      part("pointing").replaceChildren();
      readout.textContent = "";
      return;
    }
    const at = n(x(index));
    part("pointing").replaceChildren(make("path", { class: "pointer", d: `M${at} ${TOP}V${BOTTOM}` }),
      make("circle", { class: "pointed", cx: at, cy: n(y(ns(index))), r: 4.5 }));
    const said = [`${data.commits[index]}, ${data.days[index]}: ${row < 0 ? "" : `${data.names[row]} `}${time(ns(index))}`];
    if (row < 0) said.push(data.precision[index]);
    else said.push(`${(100 * ns(index) / Math.max(data.ns[index], LEAST)).toFixed(1)} % of ${time(data.ns[index])}`);
    if (index > 0 && ns(index - 1) > 0 && !data.cuts.includes(index)) said.push(`${signed(ns(index) / ns(index - 1) - 1)} against the one before`);
    const change = data.changes.find((found) => found.index === index && concerns(found));
    if (change) said.push(change.text);
    readout.textContent = said.join("; ");
  };
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * 1200;
    return Math.min(Math.max(first + Math.floor((at - LEFT) / step()), first), count - 1);
  };

  if (!count) return;
  controls.hidden = false;
  svg.addEventListener("pointermove", (event) => point(nearest(event)));
  svg.addEventListener("pointerdown", (event) => point(nearest(event)));
  region.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    point(pointed === null ? count - 1 : Math.min(Math.max(pointed + way, first), count - 1));
  });
  controls.addEventListener("input", () => {
    row = Number(controls.querySelector("[name=row]").value);
    const last = Number(controls.querySelector("[name=range]").value);
    first = last ? Math.max(count - last, 0) : 0;
    draw();
  });
  draw();
  // On a narrow screen the newest commits are what a reader looks for.
  region.scrollLeft = region.scrollWidth;
})();
