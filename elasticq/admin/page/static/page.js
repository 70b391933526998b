"use strict";
// Charts, and the buttons of notes. htmx does the rest of the page.

function plotOf(section, shownS) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const line = (label, name) => ({ label, stroke: colour(name), width: 2, points: { show: false } });
  const place = section.querySelector(".plot");
  return new uPlot({
    width: Math.max(place.clientWidth, 200), height: 180, padding: [null, 40, null, null], legend: { show: false }, cursor: { show: false },
    scales: { x: { time: true, range: () => { const now = Date.now() / 1000; return [now - shownS(), now]; } }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, space: 90, values: (_, at) => at.map((s) => new Date(s * 1000).toLocaleTimeString()) }, { ...axis, size: 48 }],
    series: [{}, line("in", "--in"), line("out", "--out"), line("deleted", "--gone")],
  }, [[], [], [], []], place);
}

function follow(section) {
  let windowS = 60;
  const plot = plotOf(section, () => windowS);
  const query = section.dataset.query;
  const counters = section.querySelector(".now");

  async function draw() {
    const answer = await fetch(`/api/rates?${query}window_s=${windowS}`);
    if (!answer.ok) return;
    const rates = await answer.json();
    const now = Date.now() / 1000;
    plot.setData([rates.age_s.map((age) => now - age), rates.sent, rates.received, rates.deleted]);
    section.dataset.drawn = String(Number(section.dataset.drawn || 0) + 1);
  }
  for (const button of section.querySelectorAll("[data-window]")) {
    button.addEventListener("click", () => {
      windowS = Number(button.dataset.window);
      for (const each of section.querySelectorAll("[data-window]")) each.setAttribute("aria-pressed", String(each === button));
      draw();
    });
  }
  addEventListener("resize", () => plot.setSize({ width: Math.max(section.querySelector(".plot").clientWidth, 200), height: 180 }));
  const live = new EventSource(`/api/live?${query}`);
  live.addEventListener("message", (event) => {
    const counts = JSON.parse(event.data);
    counters.textContent = `${counts.visible} visible, ${counts.in_flight} in flight, ${counts.delayed} delayed`;
    draw();
  });
  draw();
}

document.querySelectorAll(".chart").forEach(follow);

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
  const note = event.target.closest(".notice");
  if (!note) return;
  if (event.target.closest("[data-close]")) close(note);
  if (event.target.closest("[data-copy]")) navigator.clipboard.writeText(note.querySelector("pre").textContent);
});
