// Four small charts of one host, drawn by uPlot from what the page has seen.
import { keyOf, make, percent, put, rate, refusals, seconds, share } from "./words.js";

const keep = 300; // samples of each host, one a second
const past = new Map(); // by key: columns of samples, and the counters of the last

const kinds = [
  { name: "requests", title: "Sent per second", value: rate },
  { name: "refusals", title: "Turned away per second", value: rate, second: true },
  { name: "wait", title: "Oldest wait", value: seconds },
  { name: "left", title: "Left of the tightest limit", value: (v) => percent(v / 100), top: 100 },
];

// note remembers what a frame says about a host.
export function note(at, host) {
  const key = keyOf(host);
  let p = past.get(key);
  if (!p || at < p.last) past.set(key, p = { at: [], requests: [], refusals: [], wait: [], left: [] });
  const dt = p.last === undefined ? 0 : at - p.last;
  if (p.last !== undefined && dt === 0) return;
  const speed = (now, before) => dt > 0 && now >= before ? (now - before) / dt : null;
  const left = share(host);
  p.at.push(at);
  p.requests.push(speed(host.granted, p.granted));
  p.refusals.push(speed(refusals(host), p.refused));
  p.wait.push(host.oldestWait);
  p.left.push(left === null ? null : left * 100);
  [p.last, p.granted, p.refused] = [at, host.granted, refusals(host)];
  if (p.at.length > keep) for (const column of Object.values(p)) if (Array.isArray(column)) column.shift();
}

// forget drops hosts that have not been seen for as long as is kept.
export function forget(at) {
  for (const [key, p] of past) if (at - p.last > keep) past.delete(key);
}

let plots = [];
let shown = null; // key of the host in the charts

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function build() {
  const place = document.getElementById("charts");
  for (const p of plots) p.plot.destroy();
  place.replaceChildren();
  plots = kinds.map((kind) => {
    const now = make("output");
    const area = make("div", "plot");
    area.setAttribute("role", "img");
    place.append(make("figure", "chart", make("figcaption", "", kind.title, now), area));
    const p = { kind, now, area };
    p.plot = new uPlot(options(kind, area, (i) => read(p, i)), [[], []], area);
    return p;
  });
}

function options(kind, area, moved) {
  const ink = colour(kind.second ? "--second" : "--accent"), muted = colour("--muted"), line = colour("--line");
  const axis = { stroke: muted, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: area.clientWidth, height: 132, padding: [8, 28, 0, 0], // half of the last time on the axis stands to the right of its place
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: "host" }, points: { size: 7 } },
    scales: { x: { time: true, range: (u, low, high) => [Math.min(low, high - 60), high] }, y: { range: (u, low, high) => [0, kind.top || Math.max(1, high * 1.15)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, gap: 9, space: 70, values: (u, all) => all.map(clock) },
      { ...axis, size: 54, space: 34, ...(kind.top && { splits: () => [0, kind.top / 2, kind.top] }), values: (u, all) => all.map((v) => kind.value(v)) },
    ],
    series: [{}, { stroke: ink, fill: ink + "22", width: 1.75, points: { show: false }, spanGaps: false }],
    hooks: { setCursor: [(u) => moved(u.cursor.idx)] },
  };
}

export function clock(t) {
  return new Date(t * 1000).toLocaleTimeString("en-GB");
}

// read shows the value under the cursor, or else the newest.
function read(p, i) {
  const [times, values] = p.plot.data;
  const at = i ?? values.length - 1;
  const v = values[at];
  put(p.now, v == null ? "\u2013" : p.kind.value(v) + (i == null ? "" : " at " + clock(times[at])));
  p.area.setAttribute("aria-label", `${p.kind.title}: ${v == null ? "not known" : p.kind.value(v)}`);
}

// show draws the charts of a host.
export function show(host) {
  if (shown !== keyOf(host)) {
    shown = keyOf(host);
    build();
  }
  const p = past.get(shown);
  for (const q of plots) {
    q.plot.setData([p.at, p[q.kind.name]]);
    read(q, q.plot.cursor.idx);
  }
}

export function hide() {
  shown = null;
}

new ResizeObserver(() => {
  for (const p of plots) {
    if (p.area.clientWidth > 0 && p.area.clientWidth !== p.plot.width) p.plot.setSize({ width: p.area.clientWidth, height: 132 });
  }
}).observe(document.getElementById("charts"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", hide); // drawn anew with the next frame
