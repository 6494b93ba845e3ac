// What the reader changed: numbers by key and axes of the plan by name, as texts. The address of the page holds it.

const state = {set: new Map(), point: new Map()};

/** The changes as a request has them. */
function changesOf({set, point}) {
  return {
    set: [...set].map(([key, text]) => `${key}=${text}`),
    point: [...point].map(([name, text]) => `${name}=${text}`).join(","),
  };
}

/** "tp=8,pp=4" by name. */
function pointOf(text) {
  return settingOf(text.split(",").map((pair) => pair.trim()));
}

/** KEY=VALUE by key. */
const settingOf = (changes) => new Map(changes.map((change) => [change, change.indexOf("=")]).filter(([, at]) => at > 0)
    .map(([change, at]) => [change.slice(0, at), change.slice(at + 1)]));

/** The state as the fragment of a link. */
function fragmentOf(of) {
  const {set, point} = changesOf(of);
  const coded = (text) => encodeURIComponent(text).replace(/%(2C|2F|3A|3D)/g, decodeURIComponent).replaceAll("%20", "+");
  return [...set.map((change) => `set=${coded(change)}`), ...(point ? [`point=${coded(point)}`] : [])].join("&");
}

/** Takes the state from a fragment; what is no state is passed over. */
function takeFragment(text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  state.set = settingOf(parts.getAll("set"));
  state.point = pointOf(parts.get("point") ?? "");
}

/** Puts the state into the address: a step that the browser's "back" takes back. */
function rememberState() {
  const fragment = `#${fragmentOf(state)}`;
  if (fragment !== (location.hash || "#")) history.pushState(null, "", fragment);
}

/**
 * Changes a number or choice.
 * @param {string} key
 * @param {string|undefined} text  nothing: as in the study
 * @param {boolean} [passing]  while a slider moves or a text is typed: the address waits
 */
function setNumber(key, text, passing = false) {
  if (text === undefined) state.set.delete(key); else state.set.set(key, text);
  stateChanged(passing);
}

/** Changes an axis of the plan; those that fill up the GPUs follow again. */
function setAxis(name, text, followers = []) {
  if (text === undefined) state.point.delete(name); else state.point.set(name, text);
  for (const follower of followers) state.point.delete(follower);
  stateChanged(false);
}

/** Takes a whole plan, and the setting that belongs to it. */
function setPlan(point, changes = []) {
  state.point = pointOf(point);
  for (const [key, text] of settingOf(changes)) state.set.set(key, text);
  stateChanged(false);
}
