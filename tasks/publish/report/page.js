/* The gallery's filters; what is chosen stands in the address, so that it can be sent. Without this script every card stands in the page; nothing else needs it. */
"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const PAGE = 24;
  const cards = [...document.querySelectorAll("#cards > .card")].map((element) => ({
    element,
    shelves: element.dataset.shelf.split(" "),
    asks: JSON.parse(element.dataset.asks),
  }));
  const more = document.getElementById("more");
  let shown = PAGE;

  const isInside = (ask, chosen) =>
    ask.scores.some(
      ([dimension, score]) =>
        (!chosen.dimension || dimension === chosen.dimension) &&
        (chosen.low === "" || score >= Number(chosen.low)) &&
        (chosen.high === "" || score <= Number(chosen.high)),
    );

  const isChosen = (card, chosen) =>
    ["rubric", "model", "category"].every((name) => !chosen[name] || card.element.dataset[name] === chosen[name]) &&
    (!chosen.shelf || card.shelves.includes(chosen.shelf)) &&
    (!chosen.status || card.asks.some((ask) => ask.statuses.includes(chosen.status))) &&
    (!(chosen.dimension || chosen.low !== "" || chosen.high !== "") || card.asks.some((ask) => isInside(ask, chosen)));

  const show = () => {
    const chosen = Object.fromEntries(new FormData(form));
    let n = 0;
    for (const card of cards) {
      const isIn = isChosen(card, chosen);
      if (isIn) n += 1;
      card.element.hidden = !isIn || n > shown;
    }
    form.elements.n.value = `${n} of ${cards.length}${n > shown ? `, ${shown} shown` : ""}`;
    more.hidden = n <= shown;
  };

  const GALLERY = "#gallery?";
  const read = () => {
    if (!location.hash.startsWith(GALLERY)) return;
    form.reset();
    for (const [name, value] of new URLSearchParams(location.hash.slice(GALLERY.length)))
      if (form.elements[name]?.matches("select, input")) form.elements[name].value = value;
    for (const select of form.querySelectorAll("select")) if (select.selectedIndex < 0) select.selectedIndex = 0;
    document.getElementById("gallery").scrollIntoView();
    show();
  };
  const choose = () => {
    const chosen = new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
    history.replaceState(null, "", chosen ? GALLERY + chosen : "#gallery");
    shown = PAGE;
    show();
  };

  form.addEventListener("input", choose);
  form.addEventListener("reset", (event) => { if (event.isTrusted) setTimeout(choose); });
  addEventListener("hashchange", read);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.querySelector("button").addEventListener("click", () => {
    const next = cards.filter((card) => !card.element.hidden).length;
    shown += PAGE;
    show();
    cards.filter((card) => !card.element.hidden)[next]?.element.querySelector("summary, code")?.focus();
  });
  form.hidden = false;
  show();
  read();
})();
