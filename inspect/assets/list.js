// The list of hosts.
import { badge, bar, broken, fill, hold, keyOf, make, number, percent, plural, put, queue, refusals, seconds, share } from "./words.js";

const $ = (id) => document.getElementById(id);
const columns = [
  ["host", "Host"], ["state", "State", true], ["queue", "Queue", true], ["wait", "Oldest wait", true],
  ["inflight", "In flight", true], ["granted", "Sent", true], ["refused", "Turned away", true], ["left", "Budget left"],
];
const states = ["open", "half-open", "refusing", "paused", "waiting", "ok"];
const rows = new Map(); // by key
const heads = new Map();
const chips = new Map();

// setup builds what does not change. ask is what the server is asked; changed
// is called when it is.
export function setup(ask, changed) {
  for (const [name, title, down] of columns) {
    const button = make("button", "", title);
    button.type = "button";
    button.addEventListener("click", () => {
      const first = (down ? "-" : "") + name;
      ask.sort = ask.sort === first ? (down ? "" : "-") + name : first;
      changed();
    });
    const th = make("th", "c-" + name, button);
    th.scope = "col";
    heads.set(name, th);
    document.querySelector("#hosts thead tr").append(th);
  }
  for (const state of ["", ...states]) {
    const button = make("button");
    button.type = "button";
    button.addEventListener("click", () => {
      ask.state = ask.state === state ? "" : state;
      changed();
    });
    chips.set(state, button);
    $("chips").append(button);
  }
  for (const [id, text, step] of [["before", "Previous", -1], ["after", "Next", 1]]) {
    put($(id), text);
    $(id).addEventListener("click", () => {
      changed(Math.max(0, ask.page + step));
      document.querySelector("#all > .tools").scrollIntoView({ block: "nearest" });
    });
  }
  $("filter").addEventListener("input", () => {
    ask.q = $("filter").value;
    changed();
  });
}

// mark shows what is asked for, before the answer is here.
export function mark(ask) {
  for (const [name, th] of heads) {
    const down = ask.sort === "-" + name;
    if (down || ask.sort === name) th.setAttribute("aria-sort", down ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  }
  for (const [state, button] of chips) button.setAttribute("aria-pressed", String(ask.state === state));
}

// show brings the list up to date. While a row is pointed at or has the
// focus, rows keep their places unless fresh says that a new order was asked for.
export function show(frame, fresh) {
  headline(frame);
  for (const [state, button] of chips) {
    put(button, state === "" ? "all " + number(frame.total) : state + " " + number(frame.counts[state] || 0));
  }
  const body = document.querySelector("#hosts tbody");
  const held = !fresh && (body.matches(":hover") || body.contains(document.activeElement));
  const keep = new Set(frame.rows.map(keyOf));
  for (const [key, row] of rows) {
    if (!keep.has(key)) {
      row.tr.remove();
      rows.delete(key);
    }
  }
  let at = body.firstElementChild;
  for (const host of frame.rows) {
    let row = rows.get(keyOf(host));
    const known = row !== undefined;
    if (!known) rows.set(keyOf(host), row = build(host));
    update(row, host);
    if (held) {
      if (!known) body.append(row.tr);
    } else if (at === row.tr) {
      at = at.nextElementSibling;
    } else {
      body.insertBefore(row.tr, at);
    }
  }
  $("none").hidden = frame.rows.length > 0;
  put($("none"), frame.total === 0 ? "No requests yet. Hosts appear here with their first request." : "No host matches.");
  const all = frame.found <= frame.rows.length;
  $("pages").classList.toggle("one", all);
  put($("found"), all ? "" : `${number(frame.from + 1)} to ${number(frame.from + frame.rows.length)} of ${number(frame.found)}`);
  $("before").disabled = frame.from === 0;
  $("after").disabled = frame.from + frame.rows.length >= frame.found;
}

// headline answers the questions of the page: is anything turned away, does
// anything wait, and where. A circuit that is not closed turns requests away.
function headline(frame) {
  const c = frame.counts;
  const away = (c.open || 0) + (c["half-open"] || 0) + (c.refusing || 0);
  const held = (c.paused || 0) + (c.waiting || 0);
  const of = (n) => `${number(n)} of ${plural(frame.total, "host", "hosts")}`;
  const up = held === 1 ? "holds" : "hold";
  if (frame.total === 0) put($("summary"), "Nothing has been sent yet");
  else if (away > 0) put($("summary"), `${of(away)} ${away === 1 ? "turns" : "turn"} requests away` + (held > 0 ? `, ${number(held)} ${up} them up` : ""));
  else if (held > 0) put($("summary"), `${of(held)} ${up} requests up`);
  else put($("summary"), "Everything goes straight through");
  put($("summary-more"), queue(frame.queue, frame.oldest));
}

function build(host) {
  const row = { tr: make("tr"), cells: {} };
  for (const [name] of columns) row.tr.append(row.cells[name] = make("td", "c-" + name));
  const link = make("a", "", ...broken(host.name));
  link.title = host.name;
  if (host.partition) link.append(make("span", "", " \u00b7 " + host.partition));
  link.href = "#" + new URLSearchParams({ host: host.name, part: host.partition || "" });
  row.why = make("small");
  row.cells.host.append(link, row.why);
  row.badge = make("span");
  row.cells.state.append(row.badge);
  row.left = make("span");
  row.bar = bar();
  row.cells.left.append(row.left, row.bar);
  return row;
}

function update(row, host) {
  const why = host.why && host.why.length > 0 ? host.why[0] : null;
  const text = why ? hold(why) : "nothing in the way";
  put(row.why, text);
  row.why.title = text;
  badge(row.badge, host.state);
  put(row.cells.queue, number(host.queue));
  put(row.cells.wait, host.oldestWait > 0 ? seconds(host.oldestWait) : "\u2013");
  put(row.cells.inflight, number(host.inFlight));
  put(row.cells.granted, number(host.granted));
  put(row.cells.refused, number(refusals(host)));
  const left = share(host);
  put(row.left, left === null ? "no limit" : percent(left));
  row.left.className = left === null ? "quiet" : "";
  row.bar.hidden = left === null;
  if (left !== null) fill(row.bar, left);
}
