// What a reader takes along: tables as CSV, charts as PNG, commands in the clipboard.

/**
 * One CSV cell (RFC 4180). A text that a spreadsheet would take for a formula gets an apostrophe before it.
 * @param {string|number|null} value  null is an empty cell
 * @returns {string}
 */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * @param {Array<Array<string|number|null>>} lines  the first one names the columns
 * @returns {string} lines that end in CR LF
 */
const csvText = (lines) => lines.map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");

/**
 * Rows of the data as they are: SI units, names for codes, headed by the names of the result file's columns.
 * @param {Array<object>} columns  of DATA
 * @param {number[]} rows
 */
function csvOfRows(columns, rows) {
  const cell = (column, value) => (isValue(value) ? column.names?.[value] ?? value : null);
  return csvText([columns.map((column) => column.name), ...rows.map((row) => columns.map((column) => cell(column, column.at(row))))]);
}

/**
 * Hands a file to the browser.
 * @param {string} name
 * @param {Blob} content
 */
function download(name, content) {
  const link = element("a", {href: URL.createObjectURL(content), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** The title as the first part of a file's name. */
const fileStem = () => DATA.title.replace(/[^A-Za-z0-9.]+/g, "-").replace(/^[-.]+|-+$/g, "") || "report";

/**
 * A button that saves a table.
 * @param {string} name  of the file, without ending
 * @param {function(): string} content  asked when it is clicked
 */
function csvButton(name, content) {
  const button = element("button", {type: "button", className: "save", title: "save this table as CSV"}, "CSV");
  button.onclick = () => download(`${fileStem()}-${name}.csv`, new Blob([content()], {type: "text/csv"}));
  return button;
}

/**
 * A copy of a chart on the ground of its card: canvases are transparent.
 * @param {HTMLCanvasElement} canvas
 * @returns {HTMLCanvasElement}
 */
function opaqueCopy(canvas) {
  const copy = element("canvas", {width: canvas.width, height: canvas.height}), pen = copy.getContext("2d");
  pen.fillStyle = colourOf("--card");
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  return copy;
}

/** Puts a button below every chart that saves it as PNG. */
function addPngButtons() {
  document.querySelectorAll("figure canvas").forEach((canvas, index) => {
    const name = canvas.id || `chart-${index + 1}`;
    const button = element("button", {type: "button", className: "save", title: "save this chart as PNG"}, "PNG");
    button.onclick = () => opaqueCopy(canvas).toBlob((image) => download(`${fileStem()}-${name}.png`, image));
    canvas.closest(".canvas").after(button);
  });
}
