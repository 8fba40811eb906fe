// Numbers and times as people read them, and elements of the page. Text comes
// into the page as text nodes alone: names of hosts and words of servers are
// not to be trusted.

export function number(n) {
  if (n >= 1e6) return (n / 1e6).toFixed(1) + " M";
  return Math.round(n).toLocaleString("en-US");
}

// rate has one digit more where it is small.
export function rate(n) {
  return n < 10 ? String(Math.round(n * 10) / 10) : number(n);
}

export function seconds(s) {
  if (s <= 0) return "0 s";
  if (s < 0.9995) return Math.max(1, Math.round(s * 1000)) + " ms";
  if (s < 9.95) return s.toFixed(1) + " s";
  s = Math.round(s);
  if (s < 60) return s + " s";
  const two = (big, a, small, b) => big + " " + a + (small ? " " + small + " " + b : "");
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor(s % 3600 / 60), "min");
  return two(Math.floor(s / 86400), "d", Math.floor(s % 86400 / 3600), "h");
}

// hold says what holds requests up, and for how much longer.
export function hold(w) {
  const text = (w.route ? w.route + ": " : "") + w.text;
  if (!w.for) return text;
  const left = seconds(w.for).replaceAll(" ", "\u00a0"); // not broken up
  if (w.text.startsWith("paused")) return text + ", for another " + left;
  if (w.text.startsWith("circuit")) return text + ", next probe in " + left;
  if (w.text.includes(" until ")) return text + ", next request in " + left; // which may come sooner, to ask
  return text + ", room in " + left;
}

export function plural(n, one, many) {
  return number(n) + " " + (n === 1 ? one : many);
}

// queue says how many wait and for how long, in a sentence.
export function queue(n, oldest) {
  if (n === 0) return "No request is waiting.";
  return plural(n, "request waits", "requests wait") + (oldest > 0 ? ", the oldest for " + seconds(oldest) : "") + ".";
}

// share is the part of the tightest limit that is left, 0 to 1; null without limits.
export function share(host) {
  let least = null;
  for (const l of [...(host.budgets || []), ...(host.learned || [])]) {
    if (l.limit > 0) least = Math.min(least ?? 1, part(l));
  }
  return least;
}

// part is how much of a limit is left, 0 to 1. It is 0 only where units says so.
export function part(l) {
  return units(l.left) === 0 ? 0 : Math.max(0, Math.min(1, l.left / l.limit));
}

// units is what is left of a limit, rounded down. Of few, a tenth counts: a bucket may
// hold a part of a request.
export function units(left) {
  return Math.max(0, left < 10 ? Math.floor(left * 10 + 1e-6) / 10 : Math.floor(left));
}

// percent says how much is left. Only where nothing is left it says 0%.
export function percent(part) {
  return part > 0 && part < 0.01 ? "< 1%" : Math.floor(part * 100) + "%";
}

// retries is how many attempts were sent because of one before.
export function retries(counts) {
  return Object.values(counts.retries || {}).reduce((all, n) => all + n, 0);
}

// took is a duration that a share of all did not exceed.
export function took(all, share) {
  return all.count > 0 ? seconds(all[share]) : "\u2013";
}

export function refusals(host) {
  return host.refused + (host.circuit ? host.circuit.refused : 0);
}

export function keyOf(host) {
  return host.name + " " + (host.partition || "");
}

// make returns an element with a class, text or children.
export function make(tag, name, ...inside) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  e.append(...inside);
  return e;
}

// heads names the columns of a table, each [name, title, ...].
export function heads(table, columns) {
  for (const [name, title] of columns) {
    const th = make("th", "c-" + name, title);
    th.scope = "col";
    document.querySelector(table + " thead tr").append(th);
  }
}

// row returns a row of cells: a name and why in the first, a badge in the second.
export function row(columns) {
  const tr = make("tr");
  for (const [name] of columns) tr.append(make("td", "c-" + name));
  tr.children[0].append(make("b"), make("small"));
  tr.children[1].append(make("span"));
  return tr;
}

// rows gives a table a row for each item, and keeps those that are there.
export function rows(table, items, build, update) {
  const body = document.querySelector(table + " tbody");
  while (body.children.length > items.length) body.lastChild.remove();
  items.forEach((item, i) => update(body.children[i] || body.appendChild(build()), item));
}

// put changes text only where it differs, so that selections survive.
export function put(e, text) {
  if (e.textContent !== text) e.replaceChildren(...broken(text));
}

// broken returns text in parts. A line may end where a part does, so that long names
// are broken after a dot or a slash.
export function broken(text) {
  return text.split(/(?<=[./])(?=[a-z])/i).flatMap((part, i) => i === 0 ? [part] : [make("wbr"), part]);
}

export function badge(e, state) {
  put(e, state);
  e.className = "badge " + state;
}

export function bar() {
  return make("div", "bar", make("span"));
}

export function fill(e, part) {
  e.className = "bar" + (part === 0 ? " none-left" : part === 1 ? " whole" : part < 0.2 ? " low" : "");
  e.firstChild.style.width = (part * 100).toFixed(1) + "%";
}
