// The page: asks the server for frames and hands them to its parts.
import * as charts from "./charts.js";
import * as detail from "./detail.js";
import * as list from "./list.js";
import * as outbox from "./outbox.js";
import { make, put } from "./words.js";

const $ = (id) => document.getElementById(id);
const ask = { q: "", state: "", sort: "-state", page: 0, host: "", part: "" };
let source = null;
let fresh = true; // the next frame is the first answer to what is asked
let later = 0;
let focus = null; // what to focus when the next view is there

function connect() {
  later = 0;
  if (source) source.close();
  fresh = true;
  source = new EventSource("events?" + new URLSearchParams(ask));
  source.onmessage = (e) => show(JSON.parse(e.data));
  source.onerror = () => {
    live(false);
    appear();
  };
}

function live(on) {
  put($("live"), on ? "live" : "not connected, trying again");
  $("live").classList.toggle("on", on);
}

// appear shows the view at once and whole, so that nothing jumps.
function appear() {
  document.querySelector("main").classList.remove("early");
  if (focus) document.querySelector(focus).focus();
  focus = null;
}

function show(frame) {
  live(true);
  const at = Date.parse(frame.at) / 1000;
  for (const host of frame.rows) charts.note(at, host);
  if (frame.detail) charts.note(at, frame.detail);
  charts.forget(at);
  if (!ask.host) {
    if (!later) ask.page = frame.from / 100; // there may be fewer hosts than there were
    list.show(frame, fresh);
    outbox.show(frame.outbox, frame.queues);
  } else if (frame.detail) {
    detail.show(frame.detail, frame.controls === true);
    charts.show(frame.detail);
  } else {
    charts.hide();
    detail.missing(ask.host, ask.part);
  }
  events(frame.events);
  appear();
  fresh = false;
}

function events(all) {
  const place = $("events");
  const old = place.children;
  if (all.length === 0) {
    place.replaceChildren(make("li", "", make("time", "", "\u2013"), make("p", "", "Nothing yet. What changes from now on stands here.")));
    return;
  }
  while (old.length > all.length) old[old.length - 1].remove();
  all.forEach((e, i) => {
    const li = old[i] || place.appendChild(make("li", "", make("time"), make("p", "", make("b"), make("span"))));
    if (li.children[1].children.length === 0) li.children[1].replaceChildren(make("b"), make("span"));
    put(li.children[0], charts.clock(Date.parse(e.at) / 1000));
    put(li.children[1].children[0], ask.host ? "" : e.host + (e.partition ? " \u00b7 " + e.partition : "") + " ");
    put(li.children[1].children[1], e.text);
  });
}

// route reads the address: #host=...&part=... is one host, all else the list.
function route() {
  const to = new URLSearchParams(location.hash.slice(1));
  ask.host = to.get("host") || "";
  ask.part = to.get("part") || "";
  document.querySelector("main").classList.add("early");
  $("all").hidden = ask.host !== "";
  $("one").hidden = ask.host === "";
  document.title = ask.host ? ask.host + " \u00b7 weir" : "weir";
  charts.hide();
  connect();
}

list.setup(ask, (page) => {
  ask.page = page || 0; // another order begins at the top
  list.mark(ask);
  clearTimeout(later);
  later = setTimeout(connect, 120);
});
list.mark(ask);
detail.setup();
outbox.setup();
addEventListener("hashchange", () => {
  route();
  scrollTo(0, 0);
  focus = ask.host ? ".back a" : "#filter";
});
addEventListener("keydown", (e) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  if (e.key === "/" && !typing && !ask.host && !e.ctrlKey && !e.metaKey) {
    e.preventDefault();
    $("filter").focus();
  } else if (e.key === "Escape" && ask.host && !typing) {
    location.hash = "";
  }
});
route();
