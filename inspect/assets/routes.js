// The routes of one host: which of them waits, and what for.
import { badge, heads, hold, number, put, retries, row, rows, seconds, took } from "./words.js";

const columns = [
  ["route", "Route", null],
  ["state", "State", null],
  ["queue", "Queue", (r) => number(r.queue)],
  ["wait", "Oldest wait", (r) => r.oldestWait > 0 ? seconds(r.oldestWait) : "\u2013"],
  ["inflight", "In flight", (r) => number(r.inFlight)],
  ["granted", "Sent", (r) => number(r.granted)],
  ["retries", "Retries", (r) => number(retries(r))],
  ["throttled", "Throttled", (r) => number(r.throttled)],
  ["refused", "Turned away", (r) => number(r.refused)],
  ["waited", "Wait, 95%", (r) => took(r.wait, "p95")],
  ["latency", "Latency, 95%", (r) => took(r.latency, "p95")],
];
const rank = { ok: 0, waiting: 1, paused: 2, refusing: 3, "half-open": 4, open: 5 };
const $ = (id) => document.getElementById(id);

export function setup() {
  heads("#routes", columns);
}

// show brings the table up to date: what is held up stands first. The circuit
// turns requests away, or has them wait, before they have a route; they stand in a
// last line, so that the lines add up to what the host says.
export function show(host) {
  const routes = [...(host.routes || [])].sort((a, b) => rank[b.state] - rank[a.state] || Number(!a.why) - Number(!b.why));
  $("routes-card").hidden = routes.length === 0;
  put($("routes-title"), routes.length > 3 ? "Routes: " + number(routes.length) : "Routes");
  const c = host.circuit;
  const waiting = c && !host.partition ? c.waiting : 0; // a partition's queue does not count them
  if (routes.length > 0 && c && (c.refused > 0 || waiting > 0)) {
    routes.push({ name: "any route", byCircuit: { state: c.state, queue: waiting, refused: c.refused } });
  }
  rows("#routes", routes, () => row(columns), update);
}

export function clear() {
  show({});
}

function update(tr, r) {
  const [name, why] = tr.children[0].children;
  put(name, r.name);
  name.title = r.name;
  if (r.byCircuit) {
    const c = r.byCircuit;
    put(why, c.queue > 0 ? c.refused > 0 ? "held up or turned away by the circuit" : "held up by the circuit" : "turned away by the circuit");
    why.title = why.textContent;
    badge(tr.children[1].firstChild, c.state);
    columns.forEach(([column, , text], i) => {
      if (text) put(tr.children[i], column in c ? number(c[column]) : "\u2013");
    });
    return;
  }
  put(why, r.why ? hold(r.why) : "nothing in the way");
  why.title = why.textContent;
  badge(tr.children[1].firstChild, r.state);
  columns.forEach(([, , text], i) => {
    if (text) put(tr.children[i], text(r));
  });
}
