/* Two checkpoints side by side, in the order of their differences. What is chosen stands in the address, so that it can be sent. */
"use strict";
(() => {
  const form = document.getElementById("pair");
  const list = document.getElementById("pairs");
  const more = document.getElementById("more");
  const { prompts, shots } = JSON.parse(list.dataset.index);
  const offered = (name) => [...form.elements[name].options].map((option) => option.value); // a browser may change odd characters
  const [rubrics, contestants, categories] = ["rubric", "a", "category"].map(offered);
  const judges = "judge" in form.elements ? offered("judge") : [undefined]; // no choice of one
  const PAGE = 12;
  let rows = [];
  let shown = 0;

  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const drawing = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const picture = ([sheet, x, y, width, height], label) => // the inner drawing cuts the sheet's other pictures off
    drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      drawing("svg", { width, height, viewBox: `${x} ${y} ${width} ${height}` }, drawing("image", { href: sheet })));
  const number = (value, sign) => {
    if (value === null) return "–";
    const rounded = Number(value.toFixed(2)) + 0; // there is no "-0.00"
    return (sign && rounded > 0 ? "+" : "") + rounded.toFixed(2).replace("-", "\u2212");
  };
  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);

  const ORDERS = {
    worse: (one, other) => one.difference - other.difference,
    better: (one, other) => other.difference - one.difference,
    apart: (one, other) => Math.abs(other.difference) - Math.abs(one.difference),
    prompt: (one, other) => one.prompt - other.prompt,
  };

  const choose = () => {
    const chosen = Object.fromEntries(new FormData(form));
    const scored = rubrics.indexOf(chosen.rubric) * judges.length + judges.indexOf(chosen.judge);
    const sides = [contestants.indexOf(chosen.a), contestants.indexOf(chosen.b)];
    const found = new Map();
    for (const shot of shots) {
      const [prompt, contestant, , scores] = shot;
      const side = sides.indexOf(contestant);
      const [text, category] = prompts[prompt];
      if (side < 0 || scores[scored] === "" || (chosen.category && categories[category] !== chosen.category)) continue;
      if (chosen.text && !text.toLowerCase().includes(chosen.text.toLowerCase())) continue;
      const row = found.get(prompt) ?? { prompt, shots: [[], []], scores: [[], []] };
      row.shots[side].push(shot);
      if (scores[scored] !== null) row.scores[side].push(scores[scored]);
      found.set(prompt, row);
    }
    rows = [...found.values()].filter((row) => row.shots[0].length && row.shots[1].length);
    for (const row of rows) {
      row.means = row.scores.map(mean);
      row.difference = row.means.includes(null) ? null : row.means[0] - row.means[1];
    }
    const without = rows.filter((row) => row.difference === null);
    rows = rows.filter((row) => row.difference !== null).sort(ORDERS[chosen.sort] ?? ORDERS.worse);
    const n = rows.length;
    rows = rows.concat(chosen.sort === "prompt" ? without : []);
    form.elements.n.value = sides[0] === sides[1] ? "choose two" : `${n} shared prompt${n === 1 ? "" : "s"}${without.length ? `, ${without.length} more without a score of both` : ""}`;
    shown = 0;
    list.replaceChildren();
    show(scored, [chosen.a, chosen.b]);
  };

  const side = (row, index, name, scored) => {
    const page = prompts[row.prompt][2];
    const pictures = row.shots[index].map(([, , anchor, scores, place]) => {
      const label = `${name}, score ${number(scores[scored])}`;
      const button = make("button", { type: "button", className: "enlarge", title: "Enlarge" },
        place.length ? picture(place, label) : make("span", { className: "quiet", textContent: "no picture" }));
      button.addEventListener("click", () => button.classList.toggle("large"));
      return make("figure", {}, button, make("figcaption", {}, make("b", { textContent: number(scores[scored]) }), " ",
        make("a", { href: `${page}#${anchor}`, textContent: "words" })));
    });
    return make("div", { className: "side" },
      make("p", { className: "quiet" }, make("span", { className: "checkpoint", textContent: name }), ` ${number(row.means[index])}`),
      make("div", { className: "row" }, ...pictures));
  };

  const show = (scored, names) => {
    for (const row of rows.slice(shown, shown + PAGE)) {
      const [text, , page, anchor] = prompts[row.prompt];
      list.append(make("li", {},
        make("h3", {}, make("span", { className: `delta ${row.difference > 0 ? "up" : row.difference < 0 ? "down" : "level"}`, textContent: number(row.difference, true) }),
          " ", make("a", { href: `${page}#${anchor}`, textContent: text || "without a text" })),
        make("div", { className: "sides" }, side(row, 0, names[0], scored), side(row, 1, names[1], scored))));
    }
    shown = Math.min(rows.length, shown + PAGE);
    more.hidden = shown >= rows.length;
    more.onclick = () => show(scored, names);
  };

  const read = () => {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
      if (name in form.elements && form.elements[name].type !== "output") form.elements[name].value = value;
    for (const select of form.querySelectorAll("select")) if (select.selectedIndex < 0) select.selectedIndex = 0;
    choose();
  };
  form.addEventListener("input", () => {
    history.replaceState(null, "", `#${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`);
    choose();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
})();
