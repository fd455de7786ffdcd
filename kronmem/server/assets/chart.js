// Memories per day or month, and how many there are of each type: counted by the service over all of them.

function showChart() {
  const totals = view.totals;
  $("figure").hidden = view.agent === null || view.hits !== null || !totals || totals.count === 0;
  if ($("figure").hidden) return;
  const buckets = $("range").value === "30" ? lastDays(totals.days) : lastMonths(totals.days);
  $("chart-title").textContent = `${memories(buckets.reduce((sum, one) => sum + one.count, 0))} stored`;
  draw(buckets, $("range").value === "30" ? 7 : 1);
  showTypes(totals.types);
}

// The days of the service are those of UTC.
function lastDays(days) {
  const today = Date.parse(new Date().toISOString().slice(0, 10));
  return Array.from({ length: 30 }, (_, at) => {
    const date = new Date(today - (29 - at) * DAY);
    const label = date.toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
    return { label: at === 29 ? "today" : label, count: days[date.toISOString().slice(0, 10)] ?? 0 };
  });
}

function lastMonths(days) {
  const now = new Date();
  return Array.from({ length: 12 }, (_, at) => {
    const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 11 + at, 1));
    const start = month.toISOString().slice(0, 7);
    const count = Object.entries(days).reduce((sum, [day, n]) => sum + (day.startsWith(start) ? n : 0), 0);
    return { label: month.toLocaleDateString("en", { month: "short", timeZone: "UTC" }), count };
  });
}

function svg(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function draw(buckets, every) {
  const width = Math.max($("chart").clientWidth, 280), height = 84, floor = 66, step = width / buckets.length, last = buckets.length - 1;
  const most = Math.max(...buckets.map(one => one.count), 1);
  const drawn = [svg("line", { class: "base", x1: 0, x2: width, y1: floor + .5, y2: floor + .5 })];
  buckets.forEach(({ label, count }, at) => {
    const size = count ? Math.max(count / most * (floor - 8), 2) : 0;
    const bar = svg("rect", { class: "day", x: at * step + step * .16, y: floor - size, width: step * .68, height: size, rx: Math.min(3, size / 2) });
    bar.append(svg("title", {}, `${label}: ${memories(count)}`));
    if (size) drawn.push(bar);
    if ((last - at) % every) return;
    const middle = at * step + step / 2, anchor = middle < 24 ? "start" : middle > width - 24 ? "end" : "middle";
    drawn.push(svg("text", { class: "axis", x: { start: 0, middle, end: width }[anchor], y: height - 3, "text-anchor": anchor }, label));
  });
  $("chart").setAttribute("viewBox", `0 0 ${width} ${height}`);
  $("chart").setAttribute("aria-label", `${$("range").selectedOptions[0].textContent}: ${$("chart-title").textContent}, at most ${number(most)} at a time`);
  $("chart").replaceChildren(...drawn);
}

function showTypes(types) {
  const names = Object.keys(types).sort((a, b) => types[b] - types[a]).slice(0, 12);
  $("types").replaceChildren(...names.map(type => {
    const chosen = $("type").value === type;
    const chip = button("", undefined, () => only("type", chosen ? "" : type));
    chip.setAttribute("aria-pressed", String(chosen));
    chip.append(...kind(type).childNodes, make("span", "count", number(types[type])));
    return chip;
  }));
}
