// The attention explorer: one sentence, one system, one layer and head; as links between words and as a matrix.
(() => {
  const data = JSON.parse(document.getElementById("attention").textContent);
  const root = document.getElementById("explore");
  const WAYS = { reference: "reference (forced)", own: "own translation" };
  const GROUPS = [["all lengths", 0, Infinity], ["1–19 words", 0, 20], ["20–39 words", 20, 40], ["40+ words", 40, Infinity]];
  const isolated = (word) => `\u2068${word}\u2069`; // keeps its own direction of writing
  const exact = (weight) => weight.toFixed(weight < 0.0995 ? 3 : 2);
  const make = (tag, properties = {}, ...content) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) key in element ? (element[key] = value) : element.setAttribute(key, value);
    element.append(...content);
    return element;
  };

  // ---- controls ----
  const pick = {};
  const control = (name, label) => {
    pick[name] = make("select", { id: `x-${name}` });
    return make("label", {}, make("span", { textContent: label }), pick[name]);
  };
  const fill = (select, options, value) => {
    select.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
    if (options.some(([known]) => String(known) === String(value))) select.value = value;
    select.parentElement.hidden = options.length < 2;
  };
  const readout = make("p", { id: "x-readout", className: "readout", role: "status" });
  const none = make("div", { id: "x-none" }); // what there is to say where there are no weights
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const side = (name, lang) =>
    make("div", { id: `x-${name}`, className: "words", dir: "auto", lang, role: "listbox", "aria-orientation": "horizontal", "aria-label": `${name} words` });
  const sides = { source: side("source", data.languages[0]), target: side("target", data.languages[1]) };
  const links = make("div", { className: "links" }, sides.source, sides.target, svg);
  const table = make("table", { className: "weights" });
  const meant = "Matrix of weights: arrow keys move from cell to cell, the weight is said above";
  const matrix = make("div", { id: "x-matrix", className: "matrix", tabIndex: 0, role: "group", "aria-label": meant }, table);
  const shade = (weight) => Math.round(100 * weight ** 0.7);
  const key = make("p", { className: "key" }, "target words down, source words across; weight ");
  for (const weight of [0, 0.1, 0.25, 0.5, 1]) {
    const box = make("i");
    box.style.setProperty("--w", `${shade(weight)}%`);
    key.append(make("span", {}, box, String(weight)));
  }
  const goldKey = key.appendChild(make("span", {}, make("i", { className: "gold" }), "gold alignment"));
  const view = make("div", {}, readout, links, matrix, key);
  root.append(
    make("div", { className: "controls" }, control("length", "length"), control("sentence", "sentence"), control("system", "system"),
      control("way", "target"), control("layer", "layer"), control("head", "head")),
    none,
    view,
  );

  // ---- state: the map that is shown, and the word or cell that is looked at ----
  let map = null; // {source, target, gold, weight(t, s)}
  let active = null; // {t, s}; one of them null where a word is looked at, not a cell
  let cells = [];

  const current = () => data.maps[pick.system.value][pick.sentence.value];
  const decode = (packed) => {
    const bytes = Uint8Array.from(atob(packed.weights), (letter) => letter.charCodeAt(0));
    const [layers, heads, rows, columns] = packed.shape;
    const range = (value, count) => (value === "mean" ? [...Array(count).keys()] : [Number(value)]);
    const chosen = range(pick.layer.value, layers).flatMap((l) => range(pick.head.value, heads).map((h) => l * heads + h));
    const mean = new Float64Array(rows * columns);
    for (const panel of chosen)
      for (let i = 0; i < mean.length; i++) mean[i] += bytes[panel * mean.length + i] / 255 / chosen.length;
    return { ...packed, weight: (t, s) => mean[t * columns + s], isGold: (t, s) => packed.gold.some(([a, b]) => a === s && b === t) };
  };

  const chooseLength = () => {
    const [, low, high] = GROUPS[pick.length.value];
    const fitting = data.sentences.map((sentence, place) => [place, sentence]).filter(([, { words }]) => low <= words && words < high);
    const label = ({ words, source }) => `${words} words: ${source.length > 90 ? `${source.slice(0, 88)}…` : source}`;
    fill(pick.sentence, fitting.map(([place, sentence]) => [place, label(sentence)]), pick.sentence.value);
    pick.sentence.parentElement.hidden = false;
    chooseSystem();
  };
  const chooseSystem = () => {
    const maps = current();
    const ways = Object.entries(WAYS).filter(([way]) => maps?.[way]);
    fill(pick.way, ways, pick.way.value);
    const shape = maps?.[pick.way.value]?.shape ?? [0, 0];
    for (const [place, name] of ["layer", "head"].entries()) {
      const numbered = [...Array(shape[place]).keys()].map((n) => [n, n + 1]);
      fill(pick[name], [["mean", "mean of all"], ...(numbered.length > 1 ? numbered : [])], pick[name].value);
    }
    draw();
  };

  const withoutWeights = (system) => {
    const { source, reference } = data.sentences[pick.sentence.value];
    const state = data.states[system];
    const why = data.maps[system].length
      ? "This system has no weights for this sentence."
      : `${system} has no attention: all it knows of the source, for every word, is one vector${state ? ` (${state} numbers)` : ""}.`;
    const texts = [["source", source, 0], ["its translation", data.outputs[system]?.[pick.sentence.value], 1], ["reference", reference, 1]];
    const shown = texts.filter(([, text]) => typeof text === "string");
    return [
      make("p", { className: "left-out", textContent: why }),
      ...shown.map(([name, text, side]) =>
        make("p", { className: "alone", dir: "auto", lang: data.languages[side] }, make("b", { textContent: name, lang: "en", dir: "ltr" }), text || "(empty)")),
    ];
  };
  const draw = () => {
    const packed = current()?.[pick.way.value];
    view.hidden = !packed;
    none.hidden = Boolean(packed);
    if (!packed) return none.replaceChildren(...withoutWeights(pick.system.value));
    map = decode(packed);
    active = null;
    for (const [name, box] of Object.entries(sides)) {
      box.replaceChildren(...map[name].map((word, place) => {
        const option = make("span", { textContent: word, tabIndex: place ? -1 : 0, role: "option" });
        option.classList.toggle("end", word === "</s>");
        return option;
      }));
    }
    const head = (word, scope) => make("th", { scope }, make("span", { textContent: word, dir: "auto" }));
    cells = map.target.map((_, t) => map.source.map((_, s) => {
      const cell = make("td", { "data-t": t, "data-s": s });
      cell.style.setProperty("--w", `${shade(map.weight(t, s))}%`);
      cell.classList.toggle("gold", map.isGold(t, s));
      return cell;
    }));
    const longest = Math.max(map.source.length, map.target.length);
    table.style.setProperty("--cell-size", longest > 40 ? "15px" : longest > 28 ? "18px" : "23px");
    table.replaceChildren(
      make("thead", {}, make("tr", {}, make("td"), ...map.source.map((word) => head(word, "col")))),
      make("tbody", {}, ...cells.map((row, t) => make("tr", {}, head(map.target[t], "row"), ...row))),
    );
    goldKey.hidden = map.gold.length === 0;
    light();
  };

  // ---- looking at a word or a cell ----
  const look = (t, s) => {
    active = { t, s };
    light();
    if (t !== null && s !== null) return;
    const cell = cells[t ?? ranked()[0].place][s ?? ranked()[0].place]; // the matrix shows what the word does
    matrix.scrollTo({ top: cell.offsetTop - matrix.clientHeight / 2, left: cell.offsetLeft - matrix.clientWidth / 2 });
  };
  const ranked = () => {
    const byTarget = active.t !== null;
    return map[byTarget ? "source" : "target"]
      .map((word, place) => ({ word, place, weight: byTarget ? map.weight(active.t, place) : map.weight(place, active.s) }))
      .sort((a, b) => b.weight - a.weight);
  };
  const say = () => {
    if (!active) return "Hover or focus a word, or a cell of the matrix; arrow keys move, up and down change sides.";
    const { t, s } = active;
    if (t !== null && s !== null)
      return `${isolated(map.target[t])} → ${isolated(map.source[s])}: ${exact(map.weight(t, s))}${map.isGold(t, s) ? ", gold link" : ""}`;
    const best = ranked().slice(0, 6).filter(({ weight }, place) => weight >= 0.01 || place === 0);
    const gold = map.gold.filter((link) => (t !== null ? link[1] === t : link[0] === s));
    const named = gold.map((link) => isolated(t !== null ? map.source[link[0]] : map.target[link[1]])).join(", ");
    const start = isolated(t !== null ? map.target[t] : map.source[s]) + (t !== null ? " looks at " : " is looked at by ");
    return start + best.map(({ word, weight }) => `${isolated(word)} ${exact(weight)}`).join(" · ") + (named ? ` · gold: ${named}` : "");
  };
  const light = () => {
    for (const [name, axis] of [["source", "s"], ["target", "t"]]) {
      const lit = active && active[axis === "s" ? "t" : "s"] !== null && name === (active.t !== null ? "source" : "target");
      [...sides[name].children].forEach((word, place) => {
        const here = active?.[axis] === place;
        const weight = lit ? (axis === "s" ? map.weight(active.t, place) : map.weight(place, active.s)) : 0;
        word.style.setProperty("--w", `${shade(weight)}%`);
        word.classList.toggle("on", here);
        word.setAttribute("aria-selected", here);
      });
    }
    const rows = [...table.tBodies[0].rows];
    [...table.tHead.rows[0].cells].slice(1).forEach((head, s) => head.classList.toggle("on", active?.s === s));
    rows.forEach((row, t) => {
      row.classList.toggle("on", active?.t === t);
      cells[t].forEach((cell, s) => {
        cell.classList.toggle("across", active?.s === s);
        cell.classList.toggle("here", active?.t === t && active?.s === s);
      });
    });
    readout.textContent = say();
    drawLinks();
  };
  const drawLinks = () => {
    const area = links.getBoundingClientRect();
    const box = (name, place) => sides[name].children[place].getBoundingClientRect();
    const flat = Object.entries(sides).every(([name]) => box(name, 0).top === box(name, map[name].length - 1).top);
    const faint = flat ? 0.7 : 0.45; // ribbons of lines that wrap pass behind other words
    const least = active || flat ? 0.02 : 0.1;
    const shown = [];
    map.target.forEach((_, t) => map.source.forEach((_, s) => {
      const meant = active ? (active.t === null || active.t === t) && (active.s === null || active.s === s) : true;
      const weight = map.weight(t, s);
      if (meant && (weight >= least || (active && map.isGold(t, s)))) shown.push([t, s, weight]);
    }));
    svg.replaceChildren(...shown.flatMap(([t, s, weight]) => {
      const [from, to] = [box("source", s), box("target", t)];
      const [x, y, x2, y2] = [from.left + from.width / 2 - area.left, from.bottom - area.top, to.left + to.width / 2 - area.left, to.top - area.top];
      const line = (className, opacity, width) => {
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", `M${x} ${y}C${x} ${(y + y2) / 2} ${x2} ${(y + y2) / 2} ${x2} ${y2}`);
        path.setAttribute("class", className);
        path.style.opacity = opacity;
        path.style.strokeWidth = width;
        return path;
      };
      const drawn = weight >= 0.02 ? [line("link", active ? Math.max(0.12, weight) : faint * weight, 1 + 3 * weight)] : [];
      return active && map.isGold(t, s) ? [...drawn, line("link gold", 1, 1.5)] : drawn;
    }));
  };

  // ---- mouse and keyboard ----
  for (const [name, box] of Object.entries(sides)) {
    const other = name === "source" ? "target" : "source";
    const here = (place) => (name === "source" ? look(null, place) : look(place, null));
    const place = (event) => [...box.children].indexOf(event.target);
    for (const kind of ["pointerover", "focusin"]) box.addEventListener(kind, (event) => place(event) >= 0 && here(place(event)));
    box.addEventListener("keydown", (event) => {
      const back = getComputedStyle(box).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
      const steps = { ArrowLeft: 1, ArrowRight: 1, [back]: -1, Home: -Infinity, End: Infinity };
      let to = null;
      if (event.key in steps) to = box.children[Math.max(0, Math.min(map[name].length - 1, place(event) + steps[event.key]))];
      if (event.key === "ArrowUp" || event.key === "ArrowDown") to = sides[other].children[ranked()[0].place];
      if (!to) return;
      event.preventDefault();
      for (const word of to.parentElement.children) word.tabIndex = word === to ? 0 : -1;
      to.focus();
    });
  }
  const cellOf = (event) => event.target.closest("td[data-t]");
  matrix.addEventListener("pointerover", (event) => {
    const cell = cellOf(event);
    if (cell) look(Number(cell.dataset.t), Number(cell.dataset.s));
  });
  matrix.addEventListener("focus", () => look(active?.t ?? 0, active?.s ?? 0));
  matrix.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const t = Math.max(0, Math.min(map.target.length - 1, (active?.t ?? 0) + down));
    const s = Math.max(0, Math.min(map.source.length - 1, (active?.s ?? 0) + right));
    look(t, s);
    cells[t][s].scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !map) return;
    active = null;
    light();
  });
  pick.length.addEventListener("change", chooseLength);
  for (const name of ["sentence", "system", "way"]) pick[name].addEventListener("change", chooseSystem);
  for (const name of ["layer", "head"]) pick[name].addEventListener("change", draw);
  new ResizeObserver(() => map && !view.hidden && drawLinks()).observe(links);

  root.hidden = false;
  const counted = GROUPS.map(([label, low, high], place) => [place, label, data.sentences.filter(({ words }) => low <= words && words < high).length]);
  fill(pick.length, counted.filter(([, , n]) => n).map(([place, label, n]) => [place, `${label} (${n})`]), 0);
  fill(pick.system, data.systems.map((system) => [system, data.maps[system].length ? system : `${system} (no attention)`]),
    data.systems.find((system) => data.maps[system].length));
  pick.sentence.append(make("option", { value: data.opened ?? Math.max(0, data.sentences.findIndex(({ words }) => words >= 8 && words <= 16)) }));
  chooseLength();
})();
