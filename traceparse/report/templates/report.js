// What the page does beyond HTML: tables that sort and filter, definitions on hover, charts.
// Without it everything but the charts can be read.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // --- tables

  const FILTER_FROM = 8; // rows; fewer are seen at a glance

  function keyOf(row, column) {
    const cell = row.cells[column];
    if (cell === undefined) return null;
    const own = cell.dataset.value;
    if (own !== undefined) return Number(own);
    const text = cell.textContent.trim();
    return text === "" || text === "\u2013" ? null : text;
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sortBy(table, column, direction) {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [keyOf(row, column), row]);
    const sign = direction === "ascending" ? 1 : -1;
    // what is unknown stays last, whichever way
    keyed.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)));
    body.append(...keyed.map(([, row]) => row));
    for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction);
  }

  function makeSortable(table) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const label = head.querySelector(".head");
      if (label === null || head.classList.contains("picture")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...label.childNodes);
      label.append(button);
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      button.addEventListener("click", () => {
        sortBy(table, column, head.getAttribute("aria-sort") === first ? second : first);
      });
    });
  }

  function makeFilterable(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < FILTER_FROM) return;
    const box = document.createElement("div");
    box.className = "filter";
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "search";
    input.setAttribute("aria-label", `Filter: ${table.dataset.label}`);
    label.append("filter", input);
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    box.append(label, said);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const show = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !words.every((word) => texts[place].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      said.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    };
    input.addEventListener("input", show);
    show();
    table.closest(".scroll").before(box);
  }

  for (const table of document.querySelectorAll("table[data-label]")) {
    makeSortable(table);
    makeFilterable(table);
  }

  // --- definitions: on hover as well; on click, Enter or a tap they open without a script

  const HOVER_MS = 250;
  for (const button of document.querySelectorAll("button[popovertarget]")) {
    button.removeAttribute("title"); // or it would be said twice
    const said = document.getElementById(button.getAttribute("popovertarget"));
    let waiting = 0;
    let byHover = false;
    button.addEventListener("pointerenter", (event) => {
      if (event.pointerType !== "mouse") return;
      waiting = setTimeout(() => {
        if (said.matches(":popover-open")) return;
        said.showPopover({ source: button });
        byHover = true;
      }, HOVER_MS);
    });
    button.addEventListener("pointerleave", () => {
      clearTimeout(waiting);
      if (byHover) said.hidePopover();
      byHover = false;
    });
    button.addEventListener("click", () => {
      clearTimeout(waiting);
      byHover = false;
    });
  }

  // --- what is folded opens for a link to it, and for paper

  function openTo(id) {
    const target = id && document.getElementById(decodeURIComponent(id));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", () => openTo(location.hash.slice(1)));
  openTo(location.hash.slice(1));

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });

  // --- the contents say where one is

  const links = new Map();
  for (const link of document.querySelectorAll(".contents a")) {
    links.set(document.getElementById(link.hash.slice(1)), link);
  }
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target).setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  for (const section of links.keys()) seen.observe(section);

  // --- charts

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () =>
    document.getElementById("theme-dark").checked ||
    (dark.matches && !document.getElementById("theme-light").checked);

  function recolored(value, colors) {
    if (typeof value === "string") return colors[value] ?? value;
    if (Array.isArray(value)) return value.map((item) => recolored(item, colors));
    if (value === null || typeof value !== "object") return value;
    // data may say anything, even what looks like a color
    const own = Object.entries(value);
    return Object.fromEntries(
      own.map(([key, item]) => [key, key === "data" || key === "datasets" ? item : recolored(item, colors)]),
    );
  }

  function cellsOf(value) {
    const table = document.createElement("table");
    for (const [key, item] of Object.entries(value)) {
      const row = table.insertRow();
      const name = row.insertCell();
      name.className = "key";
      name.textContent = key;
      row.insertCell().textContent = String(item);
    }
    return table;
  }

  const tip = document.createElement("div");
  tip.id = "vg-tooltip-element";
  tip.setAttribute("aria-hidden", "true");
  function showTip(handler, event, item, value) {
    const nothing = value === null || value === undefined || value === "";
    tip.classList.toggle("visible", !nothing);
    if (nothing) return;
    tip.replaceChildren(typeof value === "object" ? cellsOf(value) : String(value));
    const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 12;
    const top = below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : below;
    tip.style.left = `${Math.max(left, 8)}px`;
    tip.style.top = `${Math.max(top, 8)}px`;
  }

  async function draw(place) {
    const { chart } = place.dataset;
    const plain = JSON.parse(document.getElementById(`spec-${chart}`).textContent);
    const colors = JSON.parse(document.getElementById("dark-colors").textContent);
    const view = document.createElement("div");
    await window.vegaEmbed(view, isDark() ? recolored(plain, colors) : plain, {
      actions: false,
      ast: true,
      defaultStyle: false,
      mode: "vega-lite",
      renderer: "svg",
      tooltip: showTip,
    });
    place.replaceChildren(view);
  }

  async function drawAll() {
    for (const place of document.querySelectorAll("[data-chart]")) await draw(place);
    performance.mark("traceparse-ready");
    root.dataset.ready = "true";
  }

  document.body.append(tip);
  // after the first paint: numbers come before pictures
  requestAnimationFrame(() => setTimeout(drawAll));
  const again = () => void drawAll();
  dark.addEventListener("change", again);
  for (const input of document.querySelectorAll(".theme input")) input.addEventListener("change", again);
})();
