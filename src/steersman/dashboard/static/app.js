// The dashboard: routes in the address's fragment, the header, the token form and the state of the connection.

import { get, keepToken, Refused, takeToken } from "./api.js";
import { clockPanel } from "./clock.js";
import { controllers } from "./controllers.js";
import { announce, h, named, setText } from "./dom.js";
import { nodes } from "./nodes.js";
import { object } from "./object.js";
import { overview } from "./overview.js";
import { Store } from "./store.js";

const VIEWS = { "": overview, nodes, controllers, object };
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const store = new Store();
let view = null;
let asking = false;

// -- routes ---------------------------------------------------------------------------------------

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map(decoded);
  return { name, parts, query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function open({ focus = true } = {}) {
  if (takeToken()) return begin();
  if (asking) return;
  const here = route();
  const known = Object.hasOwn(VIEWS, here.name) && !(here.name === "object" && here.parts.length < 2);
  if (!known) return void location.replace("#/");
  view?.close();
  view = VIEWS[here.name]({ store, route: here, replaceRoute: (hash) => history.replaceState(null, "", hash), refused: askForToken });
  main.replaceChildren(view.element);
  document.title = `${view.title} · steersman`;
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === (here.name || "overview")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (focus) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
}

// -- credentials ----------------------------------------------------------------------------------

function askForToken(error) {
  if (asking) return;
  asking = true;
  view?.close();
  view = null;
  const token = h("input", { type: "password", id: "token", required: true, autocomplete: "off", spellcheck: "false" });
  const form = h(
    "form",
    { class: "panel token", on: { submit } },
    h("h1", { tabindex: "-1" }, "A token, please"),
    h("p", {}, "The plane shows its objects to users it knows. It said: ", h("i", {}, error.message)),
    h("label", { for: "token" }, "Bearer token"),
    token,
    h("button", { type: "submit", class: "primary" }, "Open the dashboard"),
    h("p", { class: "muted" }, h("code", {}, "steersman up"), " prints an address that has a token in it. For any other cluster, ", h("code", {}, "kubectl create token NAME"), " makes one for the ServiceAccount of that name. It is kept in this tab only."),
  );
  function submit(event) {
    event.preventDefault();
    keepToken(token.value);
    begin();
  }
  main.replaceChildren(form);
  document.title = "Token · steersman";
  token.focus();
}

/** Take up the work with a new token. */
function begin() {
  asking = false;
  open();
  start();
  store.retry();
}

function showForbidden(error) {
  asking = true; // no view is of use until there is another token
  view?.close();
  view = null;
  const another = () => {
    asking = false;
    askForToken(error);
  };
  main.replaceChildren(
    h("div", { class: "panel token" }, h("h1", { tabindex: "-1" }, "Not allowed"), h("p", {}, error.message), h("button", { type: "button", on: { click: another } }, "Use another token")),
  );
}

// -- header and connection ------------------------------------------------------------------------

async function start() {
  try {
    const plane = await get("plane");
    store.setTime(plane.now, plane.clock);
    const leads = plane.leading ? "leads" : plane.holder ? `${plane.holder} leads` : "does not lead";
    const text = document.getElementById("plane");
    setText(text, `${plane.program} ${plane.version} · ${leads} · ${plane.controllers} controllers`);
    text.title = [plane.holder && `Leader: ${plane.holder}`, plane.user && `You are ${plane.user}`].filter(Boolean).join("\n");
  } catch (error) {
    // The stream says what is wrong with the connection.
    if (!(error instanceof Refused || error instanceof TypeError)) throw error;
  }
}

let connection = null;
let countdown = 0;

function showConnection() {
  const now = store.connection;
  if (now === connection) return;
  const before = connection;
  connection = now;
  clearInterval(countdown);
  if (now.state === "lost") {
    const text = h("span");
    // The seconds are not read out: only that the connection is lost.
    const left = h("span", { "aria-hidden": "true" });
    const tick = () => setText(left, ` Next try in ${Math.max(0, Math.ceil((now.retryAt - Date.now()) / 1000))} s.`);
    setText(text, "The connection to the plane is lost; what you see is as it was then.");
    banner.replaceChildren(text, left, h("button", { type: "button", on: { click: () => store.retry() } }, "Try now"));
    banner.className = "lost";
    tick();
    countdown = setInterval(tick, 500);
  } else {
    banner.replaceChildren();
    banner.className = "";
    if (now.state === "live" && before?.state === "lost") {
      announce("Connected again");
      start();
    }
    if (now.state === "refused") (now.error.code === 401 ? askForToken : showForbidden)(now.error);
  }
}

/** Say what has stopped or begun to converge. */
let known = null;
function announceProblems() {
  if (!store.synced || store.problems === known?.list) return;
  const now = new Map(store.problems.map((each) => [each.id, each]));
  if (known) {
    for (const [id, each] of now) if (known.byId.get(id)?.cause !== each.cause) announce(`${named(each)} is not converged: ${each.cause}`);
    for (const [id, each] of known.byId) if (!now.has(id)) announce(store.objects.has(id) ? `${named(each)} has converged` : `${named(each)} is gone`);
  }
  known = { list: store.problems, byId: now };
}

function prepareTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => {
    const words = isDark() ? "Use the light theme" : "Use the dark theme";
    setText(button.querySelector("span"), words);
    button.title = words;
  };
  button.addEventListener("click", () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("steersman-theme", chosen);
    } catch {
      // Storage is not allowed here: the choice holds for this page.
    }
    label();
  });
  system.addEventListener("change", label);
  label();
}

/** A page in the browser's history, or in a tab that is not looked at, needs no stream. */
function followWhileShown() {
  const HIDDEN = 60000; // milliseconds
  let timer = 0;
  addEventListener("pagehide", () => store.suspend());
  addEventListener("pageshow", () => store.resume());
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => store.suspend(), HIDDEN);
    else store.resume();
  });
}

prepareTheme();
followWhileShown();
takeToken();
addEventListener("hashchange", () => open());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment is the route
  main.focus();
});
clockPanel(store, document.getElementById("clock"));
store.subscribe(showConnection);
store.subscribe(announceProblems);
open({ focus: false });
start();
store.follow();
