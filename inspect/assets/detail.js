// One host: why requests wait, its limits, its circuit.
import * as routes from "./routes.js";
import { badge, bar, broken, fill, hold, make, number, part, put, queue, refusals, retries, seconds, took, units } from "./words.js";

const $ = (id) => document.getElementById(id);
const tiles = new Map();
let current = ["", ""];

// show brings the view of host up to date; controls says whether the server
// takes commands.
export function show(host, controls) {
  if (current[0] !== host.name || current[1] !== (host.partition || "")) {
    current = [host.name, host.partition || ""];
    $("name").replaceChildren(...broken(host.name));
    if (host.partition) $("name").append(make("span", "", " \u00b7 " + host.partition));
    for (const id of ["limits", "facts"]) $(id).replaceChildren();
  }
  badge($("badge"), host.state);
  $("controls").hidden = !controls || Boolean(host.limiter);
  why(host);
  tile("Queue", number(host.queue));
  tile("Oldest wait", host.oldestWait > 0 ? seconds(host.oldestWait) : "\u2013");
  tile("In flight", number(host.inFlight));
  tile("Sent", number(host.granted));
  tile("Had to wait", number(host.waited));
  tile("Turned away", number(refusals(host)));
  tile("Gave up waiting", number(host.cancelled));
  tile("Throttled answers", number(host.throttled));
  tile("Pauses", number(host.pauses));
  tile("Retries", number(retries(host)));
  tile("Wait, median", took(host.wait, "p50"));
  tile("Wait, 95%", took(host.wait, "p95"));
  tile("Latency, median", took(host.latency, "p50"));
  tile("Latency, 95%", took(host.latency, "p95"));
  routes.show(host);
  limits(host);
  facts(host);
}

// missing says that a host in the address is not known.
export function missing(name, part) {
  current = ["", ""];
  put($("name"), name + (part ? " \u00b7 " + part : ""));
  badge($("badge"), "unknown");
  $("why").className = "why card";
  lines($("why"), ["No request has been made to this host."]);
  $("controls").hidden = true;
  for (const id of ["tiles", "limits", "facts", "charts"]) $(id).replaceChildren();
  routes.clear();
  tiles.clear();
}

function tile(title, value) {
  let dd = tiles.get(title);
  if (!dd) {
    tiles.set(title, dd = make("dd"));
    $("tiles").append(make("div", "", make("dt", "", title), dd));
  }
  put(dd, value);
}

function why(host) {
  const texts = (host.why || []).map(hold);
  if (host.state === "refusing") texts.unshift("Most of the latest requests were turned away");
  if (texts.length === 0) texts.push("Nothing holds requests up");
  texts[0] = texts[0][0].toUpperCase() + texts[0].slice(1);
  texts.push(queue(host.queue, host.oldestWait));
  $("why").className = "why card " + host.state;
  lines($("why"), texts);
}

// lines makes the paragraphs of e say texts.
function lines(e, texts) {
  while (e.children.length > texts.length) e.lastChild.remove();
  texts.forEach((text, i) => put(e.children[i] || e.appendChild(make("p")), text));
}

// limits shows each limit as a bar: those configured, then those learned.
function limits(host) {
  const all = [];
  for (const b of host.budgets || []) {
    const full = b.fullIn < 0 ? "free when requests end" : b.fullIn > 0 ? "full in " + seconds(b.fullIn) : "full";
    all.push({ title: b.text, left: b.left, limit: b.limit, note: full, from: b.pattern ? "configured for " + b.pattern : "configured for every host" });
  }
  for (const f of host.learned || []) {
    all.push({
      title: f.limit > 0 ? (f.name || number(f.limit) + " " + (f.unit || "requests")) : f.text,
      left: f.left, limit: f.limit || 0, note: f.until ? "back at " + f.until : "",
      from: "learned" + (f.source ? ", " + f.source : "") + (f.route && (f.limit > 0 || !f.text.includes(f.route)) ? ", for " + f.route + " only" : ""),
    });
  }
  const place = $("limits");
  if (all.length === 0) {
    lines(place, ["None configured, and the host has not stated or shown one."]);
    return;
  }
  while (place.children.length > all.length || place.querySelector(":scope > p")) place.lastChild.remove();
  all.forEach((l, i) => limit(place.children[i] || place.appendChild(blank()), l));
}

function blank() {
  return make("div", "limit", make("p", "", make("b"), make("span")), bar(), make("small"));
}

function limit(e, l) {
  const [line, b, from] = e.children;
  put(line.children[0], l.title);
  const left = units(l.left);
  put(line.children[1], l.limit > 0 ? `${left < 10 ? left : number(left)} of ${number(l.limit)} left` + (l.note ? ", " + l.note : "") : "");
  b.hidden = !(l.limit > 0);
  if (l.limit > 0) fill(b, part(l));
  put(from, l.from);
}

function facts(host) {
  const c = host.circuit || { state: "closed", calls: 0, failures: 0, trips: 0, refused: 0, fallback: 0 };
  const all = [["Circuit", c.forced ? c.reason : c.state]];
  if (c.reason && !c.forced) all.push(["Last change", c.reason]);
  if (c.probeIn) all.push(["Next probe", "in " + seconds(c.probeIn)]);
  if (c.waiting) all.push(["Waiting for it", number(c.waiting)]);
  all.push(["Judged calls", c.calls ? `${number(c.calls)}, ${number(c.failures)} failed` : "none"]);
  all.push(["Times opened", number(c.trips)]);
  all.push(["Refused by it", number(c.refused)]);
  if (c.fallback > 0) all.push(["Answered by the fallback", number(c.fallback)]);
  all.push(["Requests", number(host.requests)]);
  all.push(["Attempts", number(host.attempts)]);
  for (const [reason, n] of Object.entries(host.refusedBy || {}).sort()) all.push(["Turned away: " + reason, number(n)]);
  for (const [reason, n] of Object.entries(host.retries || {}).sort()) all.push(["Retried: " + reason, number(n)]);
  if (host.hedges > 0) all.push(["Hedges", number(host.hedges)]);
  if (host.allowance >= 0) all.push(["Retry allowance", number(host.allowance) + " tokens"]);
  const place = $("facts");
  while (place.children.length > 2 * all.length) place.lastChild.remove();
  all.forEach(([k, v], i) => {
    if (!place.children[2 * i]) place.append(make("dt"), make("dd"));
    put(place.children[2 * i], k);
    put(place.children[2 * i + 1], v);
  });
}

// setup builds the buttons. They do something only where the server has
// mounted what they ask for.
export function setup() {
  routes.setup();
  const said = make("output");
  const length = make("select");
  length.setAttribute("aria-label", "Length of the pause");
  for (const [value, text] of [["1m", "1 minute"], ["10m", "10 minutes"], ["1h", "1 hour"]]) {
    const option = make("option", "", text);
    option.value = value;
    length.append(option);
  }
  const button = (text, path, more) => {
    const b = make("button", "", text);
    b.type = "button";
    b.addEventListener("click", () => command(path, { host: current[0], ...more() }, said));
    return b;
  };
  const none = () => ({});
  $("controls").append(button("Pause for", "pause", () => ({ for: length.value })), length, button("Resume", "resume", none),
    button("Open circuit", "open", none), button("Release circuit", "release", none), said);
}

async function command(path, form, said) {
  put(said, "\u2026");
  try {
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams(form) });
    put(said, answer.ok ? "Done." : (await answer.text()).trim());
  } catch {
    put(said, "The program cannot be reached.");
  }
}
