// The state of the page: summaries of all objects, kept by the plane's stream; views hear of changes once a frame.

import { lines, Refused } from "./api.js";

const FIRST_RETRY = 500;
const LAST_RETRY = 15000;
const SILENCE = 30000; // milliseconds; the plane speaks at least every five seconds

export class Store {
  /** Summaries by uid. */
  objects = new Map();
  /** Uids by "Kind/namespace/name". */
  names = new Map();
  problems = [];
  /** Why kinds could not be read, by kind. */
  unread = new Map();
  synced = false;
  /** How the stream is: "connecting", "live", "lost" (with `retryAt`), "refused" (with `error`). */
  connection = { state: "connecting" };
  clock = null;
  /** Whether the plane has said its time. */
  timed = false;

  #changed = new Set();
  #listeners = new Set();
  #frame = 0;
  #seen = null;
  #read = { at: performance.now(), cluster: Date.now() };
  #wake = () => {};
  #stream = null;
  #suspended = false;

  /** The cluster's time in milliseconds: the last that the plane said, moved on at the clock's speed. */
  now() {
    const speed = this.clock ? (this.clock.paused ? 0 : this.clock.speed) : 1;
    return this.#read.cluster + (performance.now() - this.#read.at) * speed;
  }

  find(kind, namespace, name) {
    return this.objects.get(this.names.get(`${kind}/${namespace}/${name}`));
  }

  /** Call a listener with the set of changed uids, at most once a frame; returns the way to stop. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  setTime(now, clock) {
    const read = Date.parse(now);
    if (!Number.isNaN(read)) {
      this.#read = { at: performance.now(), cluster: read };
      this.timed = true;
    }
    if (clock !== undefined) this.clock = clock;
    this.#notify();
  }

  /** A clock as the plane says it after a change of it. */
  setClock(clock) {
    this.#read = { at: performance.now(), cluster: clock?.now ? Date.parse(clock.now) : this.now() };
    this.clock = clock;
    this.#notify();
  }

  /** Follow the stream for ever; a lost one is taken up again after a growing pause. */
  async follow() {
    let pause = FIRST_RETRY;
    for (;;) {
      while (this.#suspended) await this.#until(Infinity);
      const stop = (this.#stream = new AbortController());
      let timer = setTimeout(() => stop.abort(), SILENCE);
      try {
        this.#seen = new Set();
        this.unread.clear();
        for await (const messages of lines("stream", stop.signal)) {
          clearTimeout(timer);
          timer = setTimeout(() => stop.abort(), SILENCE);
          for (const message of messages) this.#take(message);
          if (this.connection.state !== "live") this.#connect({ state: "live" });
          pause = FIRST_RETRY;
        }
      } catch (error) {
        if (error instanceof Refused && [401, 403].includes(error.code)) {
          this.#connect({ state: "refused", error });
          await this.#until(Infinity);
          continue;
        }
        if (!(error instanceof Refused || error instanceof TypeError || error instanceof SyntaxError || stop.signal.aborted)) throw error;
      } finally {
        clearTimeout(timer);
        stop.abort();
      }
      if (this.#suspended) continue;
      const wait = pause * (0.75 + Math.random() / 2);
      this.#connect({ state: "lost", retryAt: Date.now() + wait });
      await this.#until(wait);
      pause = Math.min(pause * 2, LAST_RETRY);
    }
  }

  /** Give the connection back while the page is not shown: a browser has six to one host, for all its tabs. */
  suspend() {
    this.#suspended = true;
    this.#stream?.abort();
  }

  resume() {
    if (!this.#suspended) return;
    this.#suspended = false;
    this.#wake();
  }

  /** Try again at once. */
  retry() {
    this.#wake();
  }

  #until(milliseconds) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (milliseconds < Infinity) setTimeout(resolve, milliseconds);
    });
  }

  #connect(connection) {
    this.connection = connection;
    this.#notify();
  }

  #take(message) {
    if (message.type === "object") this.#change(message.change, message.object);
    else if (message.type === "now") this.setTime(message.now, message.clock);
    else if (message.type === "problems") this.problems = message.problems;
    else if (message.type === "unread") this.unread.set(message.kind, message.why);
    else if (message.type === "synced") this.#sync();
    this.#notify();
  }

  #change(change, object) {
    if (change === "deleted") {
      this.#forget(object.id);
      return;
    }
    this.objects.set(object.id, object);
    this.names.set(nameKey(object), object.id);
    this.#seen?.add(object.id);
    this.#changed.add(object.id);
  }

  #forget(id) {
    const known = this.objects.get(id);
    if (!known) return;
    this.objects.delete(id);
    if (this.names.get(nameKey(known)) === id) this.names.delete(nameKey(known));
    this.#changed.add(id);
  }

  /** The plane has said all there is: what it has not named any more is gone. */
  #sync() {
    for (const id of this.objects.keys()) if (!this.#seen.has(id)) this.#forget(id);
    this.#seen = null;
    this.synced = true;
  }

  #notify() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      const changed = this.#changed;
      this.#changed = new Set();
      for (const listener of this.#listeners) listener(changed);
    });
  }
}

function nameKey({ kind, namespace, name }) {
  return `${kind}/${namespace}/${name}`;
}
