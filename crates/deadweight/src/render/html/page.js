// The page's script: it adds zoom, hover, filters and search to drawings that are complete without it.
// It asks for nothing outside of the page. Names reach the page as text only (textContent).
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const read = (id) => { const part = document.getElementById(id); return part ? JSON.parse(part.textContent) : null; };
  const make = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const time = (ns) => {
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
      if (ns >= size) { const v = ns / size; return `${v.toFixed(v < 9.995 ? 2 : v < 99.95 ? 1 : 0)} ${unit}`; }
    }
    return `${Math.round(ns)} ns`;
  };
  const share = (part, whole) => `${(100 * part / Math.max(whole, 1)).toFixed(1)} %`;
  const n = (value) => String(Math.round(value * 10) / 10);
  const fit = (text, width) => {
    const most = Math.floor(width / 6.9);
    // A few letters say nothing.
    return most < 3 || (most < 7 && text.length > most) ? "" : text.length <= most ? text : text.slice(0, most - 1) + "…";
  };

  const timeline = (picture) => {
    const section = document.getElementById("timeline");
    const svg = section.querySelector("svg");
    const readout = section.querySelector(".readout");
    const controls = section.querySelector(".controls");
    controls.hidden = false;
    const LEFT = 190, TOP = 26, PITCH = 28, SPAN = 1200 - LEFT - 12, wall = Math.max(picture.wall_ns, 1);
    const CLASSES = ["own", "call", "fault", "kernel", "ready", "input", "output", "lock", "disk", "sleep", "child", "other", "unrecorded"];
    const NAMES = ["own code", "system call", "page fault", "other kernel work", "ready, without a CPU", "waits for input",
      "waits for space in its output", "waits for a lock", "waits for the disk", "asleep", "waits for children or threads",
      "waits for something else", "not recorded"];
    const extent = (state) => state >= 5 && state <= 11 ? [8, 6] : [2, 17];
    const y = (lane) => TOP + lane * PITCH;
    let from = 0, to = wall;
    const x = (ns) => LEFT + (ns - from) / (to - from) * SPAN;

    const ticks = () => {
      const lines = [];
      let step = Math.pow(10, Math.floor(Math.log10(Math.max((to - from) / 8, 1))));
      for (const factor of [1, 2, 5, 10]) if ((to - from) / (step * factor) <= 8) { step *= factor; break; }
      const bottom = TOP + picture.lanes.length * PITCH + 10;
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        lines.push(make("path", { class: "axis", d: `M${n(x(at))} 20V${n(bottom)}` }));
        const place = Math.min(Math.max(x(at), LEFT + 4), 1176);
        lines.push(make("text", { class: "faint middle", x: n(place), y: 14 }, at === 0 ? "0" : time(at)));
      }
      return lines;
    };
    const cells = () => picture.lanes.flatMap((lane, at) => {
      const paths = CLASSES.map(() => "");
      let open = null;
      const close = () => {
        if (!open) return;
        const [first, last, state] = open, [above, height] = extent(state), width = Math.max(last - first, 0.2);
        paths[state] += `M${n(first)} ${n(y(at) + above)}h${n(width)}v${height}h-${n(width)}z`;
        open = null;
      };
      for (const [start, length, state] of lane.cells) {
        if (start + length < from || start > to) continue;
        const first = Math.max(x(start), LEFT), last = Math.min(x(start + length), LEFT + SPAN);
        if (open && open[1] - open[0] < 0.7) {
          open = [open[0], last, length > open[3] ? state : open[2], Math.max(length, open[3])];
        } else { close(); open = [first, last, state, length]; }
      }
      close();
      return paths.map((d, state) => d && make("path", { class: `s-${CLASSES[state]}`, d })).filter(Boolean);
    });
    const way = () => {
      let along = "", between = "", before = null;
      for (const [start, end, lane] of picture.path) {
        if (lane === null || end < from || start > to) { before = null; continue; }
        const level = y(lane) + 22, first = n(Math.max(x(start), LEFT)), last = n(Math.min(x(end), LEFT + SPAN));
        along += `M${first} ${level}H${last}`;
        if (before !== null && before !== level) between += `M${first} ${before}V${level}`;
        before = level;
      }
      return [make("path", { class: "between", d: between }), make("path", { class: "way", d: along })];
    };
    const arrows = () => picture.waits.filter((wait) => wait.lane !== null && wait.waker_lane !== null
      && wait.lane !== wait.waker_lane && wait.end >= from && wait.end <= to
      && x(wait.end) - x(wait.start) >= 4).map((wait) => {
      const at = x(wait.end), a = y(wait.lane) + 11, b = y(wait.waker_lane) + 11;
      const group = make("g", { "data-waiter": wait.tid, "data-waker": wait.waker, "data-end": wait.end });
      group.append(make("path", { class: "arrow", d: `M${n(at)} ${n(a)}Q${n(at - 9)} ${n((a + b) / 2)} ${n(at)} ${n(b)}` }),
        make("path", { class: "head", d: `M${n(at)} ${n(b)}l-4 ${b > a ? -6 : 6}h7z` }));
      return group;
    });
    const draw = () => {
      for (const [name, parts] of [["axis-lines", ticks], ["cells", cells], ["the-path", way], ["arrows", arrows]]) {
        svg.querySelector(`.${name}`).replaceChildren(...parts());
      }
      readout.textContent = from === 0 && to === wall ? "" : `Shown: ${time(from)} to ${time(to)}`;
    };
    const show = (start, end) => {
      const length = Math.min(Math.max(end - start, wall / 1e5, 1), wall);
      from = Math.min(Math.max(start, 0), wall - length);
      to = from + length;
      draw();
    };
    const move = (what) => {
      const length = to - from, middle = (from + to) / 2;
      if (what === "in") show(middle - length / 4, middle + length / 4);
      if (what === "out") show(middle - length, middle + length);
      if (what === "left") show(from - length / 4, to - length / 4);
      if (what === "right") show(from + length / 4, to + length / 4);
      if (what === "all") show(0, wall);
    };
    controls.addEventListener("click", (event) => move(event.target.dataset.do));
    section.querySelector(".drawing").addEventListener("keydown", (event) => {
      const what = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "all" }[event.key];
      if (what) { event.preventDefault(); move(what); }
    });
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const at = place(event)[0], factor = event.deltaY > 0 ? 1.25 : 0.8;
      show(at - (at - from) * factor, at + (to - at) * factor);
    }, { passive: false });

    // The time and the lane under the pointer.
    const place = (event) => {
      const box = svg.getBoundingClientRect(), scale = 1200 / box.width;
      const at = from + ((event.clientX - box.left) * scale - LEFT) / SPAN * (to - from);
      return [at, Math.floor(((event.clientY - box.top) * scale - TOP) / PITCH)];
    };
    const said = (at, index) => {
      const lane = picture.lanes[index];
      if (!lane || at < from || at > to) return "";
      const cell = lane.cells.find(([start, length]) => at >= start && at < start + length);
      const who = `${lane.name} ${lane.tid}`;
      if (!cell) return `${time(at)} · ${who}: not alive`;
      return `${time(at)} · ${who}: ${NAMES[cell[2]]} for ${time(cell[1])} · ${picture.words[cell[3]]}`;
    };
    let drag = null;
    svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") drag = place(event)[0]; });
    svg.addEventListener("pointermove", (event) => { readout.textContent = said(...place(event)); });
    svg.addEventListener("pointerup", (event) => {
      const end = place(event)[0];
      if (drag !== null && Math.abs(end - drag) > (to - from) / 100) show(Math.min(drag, end), Math.max(drag, end));
      drag = null;
    });
  };

  const flame = (picture) => {
    const section = document.getElementById("flame");
    const box = section.querySelector(".drawing");
    const svg = section.querySelector("svg");
    const readout = section.querySelector(".readout");
    const controls = section.querySelector(".controls");
    controls.hidden = false;
    const LEVEL = 19;
    const field = (name) => controls.querySelector(`[name=${name}]`);
    let zoomed = null;

    // A tree of the wanted time: {name, ns, account, children}.
    const tree = () => {
      const stacks = picture[field("data").value], row = field("row").value, thread = field("thread").value;
      const wanted = stacks.keys.map(([account, name]) => (!thread || thread === name)
        && (!row || row === account || (row === "wait") === account.startsWith("wait-") && (row === "wait" || row === "cpu")));
      const nodes = stacks.nodes.map(([parent, name]) => ({ parent, name: stacks.names[name], ns: 0, rows: {}, children: [] }));
      for (let at = nodes.length - 1; at >= 0; at--) {
        const node = nodes[at];
        for (const [key, ns] of stacks.nodes[at][2]) {
          if (!wanted[key]) continue;
          node.ns += ns;
          const account = stacks.keys[key][0];
          node.rows[account] = (node.rows[account] || 0) + ns;
        }
        if (at > 0 && node.ns > 0) {
          const parent = nodes[node.parent];
          parent.ns += node.ns;
          for (const [account, ns] of Object.entries(node.rows)) parent.rows[account] = (parent.rows[account] || 0) + ns;
          parent.children.push(node);
        }
      }
      return nodes[0];
    };
    const merge = (into, node, ns, rows) => {
      let child = into.children.find((other) => other.name === node.name);
      if (!child) { child = { name: node.name, ns: 0, rows: {}, children: [] }; into.children.push(child); }
      child.ns += ns;
      for (const [account, part] of Object.entries(rows)) child.rows[account] = (child.rows[account] || 0) + part;
      return child;
    };
    // Callers or callees of all functions that the search matches.
    const around = (root, matches, callers) => {
      const result = { name: `${callers ? "callers" : "callees"} of the search`, ns: 0, rows: {}, children: [] };
      const copy = (node, into) => { for (const child of node.children) copy(child, merge(into, child, child.ns, child.rows)); };
      const walk = (node, above) => {
        if (matches(node.name)) {
          result.ns += node.ns;
          const start = merge(result, node, node.ns, node.rows);
          if (callers) above.reduceRight((into, caller) => merge(into, caller, node.ns, node.rows), start);
          else copy(node, start);
          return;
        }
        for (const child of node.children) walk(child, [...above, node]);
      };
      walk(root, []);
      return result;
    };
    const draw = () => {
      const term = field("search").value.toLowerCase();
      const matches = (name) => term !== "" && name.toLowerCase().includes(term);
      const whole = tree();
      const view = field("view").value;
      let root = view !== "down" && term ? around(whole, matches, view === "callers") : whole;
      if (zoomed) {
        for (const name of zoomed.slice(1)) root = root.children.find((child) => child.name === name) || root;
      }
      const parts = [];
      let levels = 0, found = 0;
      const place = (node, x, width, level, path, inFound) => {
        if (width < 0.6 || level > 240) return;
        levels = Math.max(levels, level + 1);
        const match = matches(node.name);
        if (match && !inFound) found += node.ns;
        const account = Object.entries(node.rows).reduce((most, row) => row[1] > most[1] ? row : most, ["", 0])[0];
        const group = make("g", term && !match ? { class: "dimmed" } : {});
        group.append(make("title", {}, `${node.name}: ${time(node.ns)}, ${share(node.ns, whole.ns)}`),
          make("rect", { class: `edge a-${account}${match ? " match" : ""}`, x: n(x), y: level * LEVEL, width: n(width), height: LEVEL - 1 }));
        if (width > 28) group.append(make("text", { class: "on", x: n(x + 3), y: level * LEVEL + 13 }, fit(node.name, width - 5)));
        group.addEventListener("click", () => { zoomed = path; draw(); });
        group.addEventListener("pointerenter", () => {
          readout.textContent = `${node.name}: ${time(node.ns)}, ${share(node.ns, whole.ns)}`;
        });
        parts.push(group);
        let next = x;
        for (const child of [...node.children].sort((a, b) => b.ns - a.ns)) {
          const part = child.ns / Math.max(node.ns, 1) * width;
          place(child, next, part, level + 1, [...path, child.name], inFound || match);
          next += part;
        }
      };
      place(root, 0, 1200, 0, zoomed || [root.name], false);
      svg.querySelector(".nodes").replaceChildren(...parts);
      svg.setAttribute("viewBox", `0 0 1200 ${Math.max(levels, 1) * LEVEL + 2}`);
      readout.textContent = term ? `Found: ${time(found)} of ${time(whole.ns)} (${share(found, whole.ns)})`
        : `Shown: ${time(root.ns)} of ${time(picture[field("data").value].total)}`;
    };
    const again = () => { zoomed = null; draw(); };
    controls.addEventListener("input", again);
    controls.addEventListener("click", (event) => {
      if (event.target.dataset.do === "all") { field("search").value = ""; field("view").value = "down"; again(); }
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape" || event.key === "Home") { event.preventDefault(); again(); }
    });
  };

  const picture = read("picture");
  if (picture) {
    timeline(picture);
    flame(picture);
  }

  // A link to a description opens it.
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  // Paper has no way to open what is closed. The second ledger stays closed, so that the findings are on the first sheet.
  const closed = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open], .beside)")) { part.open = true; closed.push(part); }
  });
  addEventListener("afterprint", () => { for (const part of closed.splice(0)) part.open = false; });
})();
