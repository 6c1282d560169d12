// Draws the figures from their Vega-Lite specifications, in the width and the colours of the reader's screen.
(() => {
  const darkMode = JSON.parse(document.getElementById("dark-mode").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll(".figure")];
  const main = document.querySelector("main");

  const adapted = (figure, width) => {
    const text = figure.querySelector("script").textContent;
    const spec = JSON.parse(dark.matches ? text.replace(/#[0-9A-F]{6}/g, (colour) => darkMode[colour] ?? colour) : text);
    const phone = width < 600; // a legend above instead of names beside the lines
    const names = phone ? 0 : 30 + Math.min(170, 7.2 * Number(figure.dataset.letters));
    for (const view of spec.vconcat ?? [spec]) {
      view.width = Math.max(200, width - 58 - names);
      if (phone) view.layer = view.layer.filter(({ name }) => !name?.startsWith("labels"));
    }
    figure.classList.toggle("phone", phone);
    delete spec.title; // the heading says it
    delete spec.$schema;
    spec.padding = 2;
    spec.config.font = getComputedStyle(document.body).fontFamily;
    if (phone) Object.assign(spec.config.axis, { labelFontSize: 9, labelPadding: 4 });
    return spec;
  };
  const draw = () => {
    const style = getComputedStyle(main);
    const width = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    for (const figure of figures) {
      const options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false, tooltip: { theme: dark.matches ? "dark" : "light" } };
      vegaEmbed(figure.querySelector(".drawing"), adapted(figure, width), options);
    }
  };
  let drawn = main.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(main.clientWidth - drawn) < 2) return;
    drawn = main.clientWidth;
    draw();
  }).observe(main);
  dark.addEventListener("change", draw);
  draw();
})();
