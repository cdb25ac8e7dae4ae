// The cluster's clock in the header: its time, and where the plane lets it be steered, pause, speed and jump.

import { post } from "./api.js";
import { announce, clockTime, duration, h, icon, setText } from "./dom.js";

/** The stops of the slider, near enough logarithmic, each a speed that people name. */
const SPEEDS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];

export function clockPanel(store, element) {
  const time = h("time", { class: "now" });
  const pause = h("button", { type: "button", class: "quiet", id: "pause", on: { click: () => send({ paused: !store.clock.paused }) } });
  const slider = h("input", {
    type: "range",
    id: "speed",
    min: "0",
    max: String(SPEEDS.length - 1),
    step: "1",
    "aria-label": "Speed of the clock",
    on: { input: choose, change: choose },
  });
  const speed = h("output", { for: "speed", class: "speed" });
  const jump = h(
    "button",
    { type: "button", class: "quiet", id: "jump", title: "Jump ahead to the next thing that happens", on: { click: () => send({ jump: "next" }) } },
    icon("next"),
    h("span", { class: "label" }, "Jump"),
  );
  const next = h("span", { class: "next muted" });
  const controls = h("span", { class: "controls" }, pause, slider, speed, jump, next);
  const problem = h("span", { class: "problem", role: "alert" });
  element.replaceChildren(time, controls, problem);

  let timer = 0;
  let wanted = null; // a speed that the plane has not confirmed yet
  let shownPaused = null;
  let jumping = false;

  function choose() {
    wanted = SPEEDS[Number(slider.value)];
    showSpeed(wanted, store.clock?.paused);
    clearTimeout(timer);
    timer = setTimeout(() => send({ speed: wanted }), 120);
  }

  async function send(change) {
    try {
      jumping = Boolean(change.jump);
      update();
      const clock = await post("clock", change);
      store.setClock(clock);
      setText(problem, "");
      if (change.jump) announce("Jumped ahead to the next thing that happens");
      else announce(clock?.paused ? "The clock is paused" : `The clock runs at ${words(clock?.speed ?? 1)}`);
    } catch (error) {
      setText(problem, error.message);
    } finally {
      // The slider may have been moved on meanwhile.
      if (change.speed === wanted) wanted = null;
      jumping = false;
      update();
    }
  }

  function showSpeed(value, paused) {
    setText(speed, paused ? "paused" : `${+value.toPrecision(3)}×`);
    slider.setAttribute("aria-valuetext", words(value));
  }

  function update() {
    const { clock } = store;
    controls.hidden = !clock;
    if (clock) {
      if (shownPaused !== clock.paused) {
        shownPaused = clock.paused;
        pause.replaceChildren(icon(clock.paused ? "play" : "pause"), h("span", { class: "hidden" }, clock.paused ? "Resume the clock" : "Pause the clock"));
        pause.title = clock.paused ? "Resume" : "Pause";
      }
      if (wanted === null) {
        slider.value = String(nearest(clock.speed));
        showSpeed(clock.speed, clock.paused);
      }
      jump.disabled = jumping || Boolean(clock.jumping);
    }
    tick();
  }

  function tick() {
    if (!store.timed) return;
    const now = store.now();
    setText(time, `${clockTime(now)} UTC`);
    time.dateTime = new Date(now).toISOString();
    const due = store.clock?.next;
    const left = due ? Math.ceil((Date.parse(due.at) - now) / 1000) : 0;
    setText(next, left > 0 ? `in ${duration(left)}` : "");
  }

  setInterval(tick, 250);
  store.subscribe(update);
  update();
}

function nearest(speed) {
  const distances = SPEEDS.map((each) => Math.abs(Math.log(each / speed)));
  return distances.indexOf(Math.min(...distances));
}

function words(speed) {
  if (speed === 1) return "real time";
  return speed >= 60 ? `${duration(speed)} a second` : `${+speed.toPrecision(3)} times real time`;
}
