// Elements and tables of a page: never through markup, names in a file are text.

/**
 * A new element.
 * @param {string} tag
 * @param {object} properties
 * @param {...(Node|string)} children
 */
function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}
/** The element of the template with that id. */
const byId = (id) => document.getElementById(id);
/** What the page is made of. */
const DATA = JSON.parse(byId("data").textContent);

/** Lets the keyboard reach what scrolls, and lists the sections above where there are several. */
function setUpFrame() {
  for (const box of document.querySelectorAll(".scroll:not([role])")) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) box.setAttribute("aria-labelledby", box.closest("section").getAttribute("aria-labelledby"));
  }
  const sections = [...document.querySelectorAll("main > section:not([hidden])")];
  byId("contents").hidden = sections.length < 3;
  byId("contents").replaceChildren(...sections.map((section) => element("a", {href: `#${section.id}`}, section.querySelector("h2").textContent)));
}

/** Terms and what they are, for a list of them; what is empty is left out. */
const termsOf = (pairs) => pairs.filter(([, text]) => text).flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]);

/** The same, each pair a box of its own that is not torn apart. */
const pairsOf = (pairs) => pairs.filter(([, text]) => text).map((pair) => element("div", {}, ...termsOf([pair])));

/** A table: heads and rows of strings or nodes; `numbers` are the columns to align right. */
function fillTable(table, heads, rows, numbers = []) {
  const side = (i) => (numbers.includes(i) ? "number" : "");
  const head = element("tr", {}, ...heads.map((text, i) => (text === "" ? element("td") : element("th", {scope: "col", className: side(i)}, text))));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, i) => element("td", {className: side(i)}, cell))));
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}

/** Gives each cell the heading of its column, for layouts without a head line. */
function labelCells(table) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const body of table.tBodies) {
    for (const line of body.rows) [...line.cells].forEach((cell, i) => { cell.dataset.label = heads[i]; });
  }
}

/**
 * Copies a text; through a hidden field where the browser has no clipboard for pages from disk.
 * @param {string} text
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = element("textarea", {value: text, className: "offscreen"});
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/**
 * A command with a button that copies it.
 * @param {string} command
 * @returns {HTMLElement}
 */
function commandBox(command) {
  const button = element("button", {type: "button", className: "save"}, "Copy");
  button.onclick = async () => {
    await copyText(command);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  return element("div", {className: "command"}, element("code", {}, command), button);
}
