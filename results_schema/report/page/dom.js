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

/** A table: heads and rows of strings or nodes; `numbers` are the columns to align right. */
function fillTable(table, heads, rows, numbers = []) {
  const side = (i) => (numbers.includes(i) ? "number" : "");
  const head = element("tr", {}, ...heads.map((text, i) => element("th", {scope: "col", className: side(i)}, text)));
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
