"use strict";
// Charts, the list of messages that follows the counts, and the buttons of notes. htmx does the rest of the page.

const SERIES = { visible: "--visible", in_flight: "--flight", delayed: "--delayed", sent: "--visible", received: "--good-line", deleted: "--flight" };
const NUMBER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

// All times on the page are UTC, like those that the server writes.
function clock(time_s, withSeconds) {
  const text = new Date(time_s * 1000).toISOString();
  return text.slice(11, withSeconds ? 19 : 16);
}

class Chart {
  constructor(figure, windowOf) {
    this.names = figure.dataset.lines.split(" ");
    this.place = figure.querySelector(".plot");
    this.figure = figure;
    this.windowOf = windowOf;
    this.answer = null;
    this.make();
  }

  make() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), font: "12px system-ui, sans-serif", grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const line = (name) => ({ label: name, stroke: colour(SERIES[name]), width: 1.5, points: { show: false } });
    const range = () => { const now = this.answer ? this.answer.now_s : Date.now() / 1000; return [now - this.windowOf(), now]; };
    this.plot?.destroy();
    this.plot = new uPlot({
      width: this.width(), height: 170, padding: [8, 18, 0, 0], legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, space: 74, size: 28, splits: (_, at, low, high) => this.splits(low, high), values: (_, at) => at.map((s) => clock(s, this.windowOf() < 600)) }, { ...axis, size: 50, values: (_, at) => at.map((value) => SHORT.format(value)) }],
      series: [{}, ...this.names.map(line)],
      hooks: { setCursor: [() => this.legend()] },
    }, this.data(), this.place);
    this.legend();
  }

  splits(low, high) {
    const wanted = (high - low) / Math.max(2, this.width() / 110);
    const step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].find((each) => each >= wanted) || 43200;
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return found;
  }

  width() { return Math.max(this.place.clientWidth, 200); }

  data() {
    if (!this.answer) return [[], ...this.names.map(() => [])];
    const { time_s, period_s, now_s } = this.answer;
    return [time_s.map((each) => Math.min(each + period_s, now_s)), ...this.names.map((name) => this.answer[name])];
  }

  draw(answer) {
    this.answer = answer;
    this.plot.setData(this.data());
    this.figure.classList.toggle("nothing", answer.time_s.length === 0);
    this.legend();
  }

  // The values at the pointer, else the newest ones.
  legend() {
    if (!this.plot || !this.answer) return;
    const at = this.plot.cursor.idx ?? this.answer.time_s.length - 1;
    for (const name of this.names) {
      const value = this.answer[name][at];
      this.figure.querySelector(`[data-line="${name}"]`).textContent = value === undefined ? "0" : NUMBER.format(value);
    }
    const pointed = this.plot.cursor.idx == null ? "" : `${clock(this.plot.data[0][at], true)} UTC`;
    this.figure.querySelector(".at").textContent = pointed;
  }
}

function follow(section) {
  let windowS = Number(section.querySelector("[aria-pressed=true]").dataset.window);
  const query = section.dataset.query;
  const charts = [...section.querySelectorAll("figure")].map((each) => new Chart(each, () => windowS));
  let asked = 0;

  async function draw() {
    const number = (asked += 1);
    let answer;
    try {
      const got = await fetch(`/api/history?${query}window_s=${windowS}`);
      if (!got.ok) return;
      answer = await got.json();
    } catch { return; } // the member stopped, or the browser leaves the page
    if (number !== asked) return;
    for (const chart of charts) chart.draw(answer);
    section.dataset.drawn = String(Number(section.dataset.drawn || 0) + 1);
  }
  for (const button of section.querySelectorAll("[data-window]")) {
    button.addEventListener("click", () => {
      windowS = Number(button.dataset.window);
      for (const each of section.querySelectorAll("[data-window]")) each.setAttribute("aria-pressed", String(each === button));
      draw();
    });
  }
  addEventListener("resize", () => { for (const each of charts) each.plot.setSize({ width: each.width(), height: 170 }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const each of charts) each.make(); });
  setInterval(() => { if (!document.hidden) draw(); }, 5000);
  draw();
}

document.querySelectorAll(".charts").forEach(follow);

// The counts of a queue refresh themselves. When they differ from those that the list of messages was made with, the
// list is made again, unless somebody reads a message or fills in a form of it: then a button offers the new list.
document.addEventListener("htmx:afterSettle", () => {
  const counts = document.getElementById("counts");
  const list = document.getElementById("messages");
  if (!counts?.dataset.state || !list || counts.dataset.state === list.dataset.state) return;
  if (list.querySelector("details[open]") || list.contains(document.activeElement)) list.querySelector(".changed").hidden = false;
  else htmx.trigger(list, "changed");
});

// A note is the last element of the page, far from the button that opened it. If the note shows a command, its button
// Copy gets the focus. When the user closes a note, by its button or by Escape, the focus returns.
let asker = null;

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "notice") return;
  asker = document.activeElement;
  event.detail.target.querySelector(".code [data-copy]")?.focus();
});

function close(note) {
  const hadFocus = note.contains(document.activeElement);
  note.remove();
  if (hadFocus && asker?.isConnected) asker.focus();
}

document.addEventListener("keydown", (event) => {
  const note = document.querySelector(".notice");
  if (event.key === "Escape" && note) close(note);
});

document.addEventListener("click", (event) => {
  const place = event.target.closest('a[href^="#"]')?.hash;
  const panel = place && document.querySelector(place);
  if (panel?.tagName === "DETAILS") panel.open = true;
  const copied = event.target.closest("[data-copies]");
  if (copied) navigator.clipboard.writeText(copied.dataset.copies);
  const note = event.target.closest(".notice");
  if (!note) return;
  if (event.target.closest("[data-close]")) close(note);
  if (event.target.closest("[data-copy]")) navigator.clipboard.writeText(note.querySelector("pre").textContent);
});

// A form of settings sends only what was changed, and of a JSON object all parts if one was.
function isChanged(field) {
  return field.tagName === "SELECT" ? [...field.options].some((each) => each.selected !== each.defaultSelected) && !(field.selectedIndex === 0 && ![...field.options].some((each) => each.defaultSelected)) : field.value !== field.defaultValue;
}

document.addEventListener("htmx:configRequest", (event) => {
  const form = event.detail.elt.closest("form[data-changes]");
  if (!form) return;
  const whole = (field) => field.name.split("/")[0];
  const fields = [...form.elements].filter((each) => each.name && each.type !== "hidden");
  const changed = new Set(fields.filter(isChanged).map(whole));
  for (const each of fields) if (!changed.has(whole(each))) event.detail.parameters.delete(each.name);
});

// The fields of a kind of queue are those of its fieldset; the others are neither shown nor sent.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-kinds]")) return;
  for (const each of event.target.form.querySelectorAll("fieldset[data-kind]")) each.disabled = each.dataset.kind !== event.target.value;
});

// A list that refreshes itself asks with the choices of its form, and the address of the page keeps them.
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt.closest?.("form.filter[data-keeps]");
  if (!form || !event.detail.successful) return;
  const choices = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...choices]) if (!value) choices.delete(name);
  history.replaceState(null, "", form.getAttribute("action") + (choices.size ? `?${choices}` : ""));
});
