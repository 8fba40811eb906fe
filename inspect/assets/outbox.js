// The queues of the outbox: what is kept, and what cannot be delivered.
import { badge, heads, number, plural, put, row, rows, seconds } from "./words.js";

const columns = [
  ["name", "Queue", null],
  ["state", "State", null],
  ["pending", "Pending", (q) => number(q.pending)],
  ["oldest", "Oldest", (q) => q.oldest > 0 ? seconds(q.oldest) : "\u2013"],
  ["dead", "Set aside", (q) => number(q.dead)],
  ["delivered", "Delivered", (q) => number(q.delivered)],
];
const $ = (id) => document.getElementById(id);

export function setup() {
  heads("#outbox", columns);
}

// show brings the table up to date; of many queues it has the first.
export function show(queues, all) {
  $("outbox-card").hidden = !queues || queues.length === 0;
  if (!queues) return;
  put($("outbox-title"), all > queues.length ? `Outbox: the first ${number(queues.length)} of ${number(all)} queues` : "Outbox");
  rows("#outbox", queues, () => row(columns), update);
}

function update(tr, q) {
  const [name, why] = tr.children[0].children;
  put(name, q.queue);
  name.title = q.queue;
  put(why, reason(q));
  why.title = why.textContent;
  badge(tr.children[1].firstChild, q.state);
  columns.forEach(([, , text], i) => {
    if (text) put(tr.children[i], text(q));
  });
}

// reason says why a queue is not delivered.
function reason(q) {
  const aside = q.dead > 0 ? `${number(q.dead)} set aside` : "";
  if (q.state === "ok") return aside || "nothing is pending";
  if (q.state === "sending") return "one is on its way";
  if (q.state !== "stuck") return "waits for its turn";
  return `${q.why}, for ${seconds(q.stuck)}, ${plural(q.tries, "try", "tries")}`;
}
