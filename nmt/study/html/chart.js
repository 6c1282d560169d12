// Points of the charts say their numbers when hovered or focused; arrow keys walk along and across the lines.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the point itself has the same words as its label
  document.body.append(tip);

  const show = (point) => {
    const box = point.getBoundingClientRect();
    tip.replaceChildren(
      ...point.dataset.tip.split("\n").map((line) => Object.assign(document.createElement("div"), { textContent: line })),
    );
    tip.hidden = false;
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = box.top - tip.offsetHeight - 4;
    tip.style.left = `${scrollX + Math.max(8, Math.min(left, room))}px`;
    tip.style.top = `${scrollY + (above < 4 ? box.bottom + 4 : above)}px`;
  };
  const hide = () => (tip.hidden = true);

  for (const chart of document.querySelectorAll("svg.chart")) {
    const points = [...chart.querySelectorAll(".point")];
    const series = (point) => point.closest(".series");
    points.forEach((point, place) => {
      const title = point.querySelector("title");
      point.dataset.tip = title.textContent;
      point.setAttribute("aria-label", title.textContent.replaceAll("\n", "; "));
      title.remove(); // else the browser shows it a second time
      point.setAttribute("tabindex", place ? -1 : 0); // one stop of the Tab key a chart
    });
    const stress = (one) => {
      chart.classList.toggle("stressed", Boolean(one));
      for (const line of chart.querySelectorAll(".series")) line.classList.toggle("on", line === one);
    };
    const next = (point, key) => {
      const row = [...series(point).querySelectorAll(".point")];
      if (key === "Home") return row[0];
      if (key === "End") return row.at(-1);
      if (key === "ArrowLeft" || key === "ArrowRight") return row[row.indexOf(point) + (key === "ArrowLeft" ? -1 : 1)];
      const column = points.filter((other) => other.dataset.b === point.dataset.b);
      column.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
      return column[column.indexOf(point) + (key === "ArrowUp" ? -1 : 1)];
    };
    const look = (event) => {
      const point = event.target.closest(".point");
      stress(event.target.closest(".series"));
      if (point) show(point);
      else hide();
    };
    chart.addEventListener("pointerover", look);
    chart.addEventListener("focusin", look);
    for (const leaving of ["pointerleave", "focusout"])
      chart.addEventListener(leaving, () => {
        stress(null);
        hide();
      });
    chart.addEventListener("keydown", (event) => {
      const point = event.target.closest(".point");
      if (event.key === "Escape") hide();
      if (!point || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
      event.preventDefault();
      const to = next(point, event.key);
      if (!to) return;
      point.setAttribute("tabindex", -1);
      to.setAttribute("tabindex", 0);
      to.focus();
    });
  }
})();
