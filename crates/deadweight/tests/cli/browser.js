// Checks a page from inside, and leaves "fine" or what is wrong as its title.
"use strict";
addEventListener("load", async () => {
  const bad = window.bad;
  const check = (holds, what) => { if (!holds) bad.push(what); };
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const region = (chart) => chart.querySelector(".drawing")
    .dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true, cancelable: true }));
  try {
    for (const table of all("table[data-total]")) {
      const sum = all("tr[data-ns]", table).reduce((sum, row) => sum + BigInt(row.dataset.ns), 0n);
      check(sum === BigInt(table.dataset.total), `rows add up to ${sum}, not ${table.dataset.total}`);
    }
    for (const table of all("table[data-difference]")) {
      const sum = all("tbody tr", table).reduce((sum, row) => sum + BigInt(row.dataset.difference), 0n);
      check(sum === BigInt(table.dataset.difference), `differences add up to ${sum}`);
    }
    check(all("table[data-total], table[data-history]").length > 0, "no ledger");
    check(performance.getEntriesByType("resource").length === 0, "something was requested");
    check(document.documentElement.scrollWidth <= innerWidth, `wider than the window: ${document.documentElement.scrollWidth}`);
    check(all("img, iframe, object, embed, link").length === 0, "a foreign element");
    const ids = all("[id]").map((element) => element.id);
    check(new Set(ids).size === ids.length, "an id twice");
    const data = document.getElementById("picture");
    if (data) {
      const picture = JSON.parse(data.textContent);
      const known = new Set(picture.waits.map((wait) => `${wait.tid} ${wait.waker} ${wait.end}`));
      for (const arrow of all(".arrows g")) {
        const { waiter, waker, end } = arrow.dataset;
        check(known.has(`${waiter} ${waker} ${end}`), `an arrow from ${waiter} to ${waker}`);
      }
      const cells = picture.lanes.flatMap((lane) => lane.cells);
      check(cells.every(([start, length]) => start + length <= picture.wall_ns), "a cell after the end");
      const axis = () => all("#timeline .axis-lines text").map((text) => text.textContent).join();
      const before = axis();
      document.querySelector("#timeline [data-do=in]").click();
      document.querySelector("#timeline [data-do=in]").click();
      check(axis() !== before, "zoom does nothing");
      document.querySelector("#timeline [data-do=all]").click();
      check(all("#timeline .cells path").length > 0, "no states");
      const search = document.querySelector("#flame [name=search]");
      const nodes = all("#flame .nodes g").length;
      check(nodes > 0, "no flame graph");
      search.value = picture.on_path.names[picture.on_path.names.length - 1];
      for (const view of ["callers", "callees", "down"]) {
        document.querySelector("#flame [name=view]").value = view;
        search.dispatchEvent(new Event("input", { bubbles: true }));
        check(all("#flame .nodes g").length > 0, `no ${view}`);
      }
      document.querySelector("#flame [data-do=all]").click();
      check(all("#flame .nodes g").length > 0, "no flame graph again");
    }
    const history = document.getElementById("history");
    if (history) {
      const { ns, rows, changes } = JSON.parse(history.textContent);
      const chart = document.getElementById("chart");
      const svg = chart.querySelector("svg");
      const readout = () => chart.querySelector(".readout").textContent;
      const at = (share) => {
        const box = svg.getBoundingClientRect();
        const where = { clientX: box.left + box.width * share, clientY: box.top + 50, bubbles: true };
        svg.dispatchEvent(new PointerEvent("pointermove", where));
        return readout();
      };
      const choose = (name, value) => {
        const select = chart.querySelector(`[name=${name}]`);
        select.value = value;
        select.dispatchEvent(new Event("input", { bubbles: true }));
      };
      const line = () => chart.querySelector(".value").getAttribute("d");
      check(all("table[data-history] tbody tr").length === ns.length, "not each commit is in the table");
      check(all(".changes a", svg).length === changes.length, "not each change is drawn");
      check(at(0.1) !== at(0.9) && at(0.9).includes("±"), `hover says ${readout()}`);
      const total = line();
      choose("row", 0);
      check(rows.length > 0 && line() !== total && at(0.5).includes("% of"), `a row says ${readout()}`);
      choose("row", -1);
      check(line() === total, "the total is drawn otherwise again");
      choose("range", 20);
      check(all(".values circle", svg).length === 20, "not 20 commits");
      choose("range", 0);
      for (const link of all(".changes a", svg)) check(document.querySelector(link.getAttribute("href")) !== null, "a change without a text");
      region(chart);
      check(readout() !== "", "arrow keys do nothing");
    }
    // What is folded is to be right, too.
    for (const folded of all("details")) folded.open = true;
    if (window.axe) {
      const found = await window.axe.run();
      for (const violation of found.violations) bad.push(`axe: ${violation.id} at ${violation.nodes[0].target}`);
    }
  } catch (error) {
    bad.push(`thrown: ${error.message}`);
  }
  document.title = bad.length ? bad.join("; ") : "fine";
});
