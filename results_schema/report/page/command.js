// The commands of a point, `shardscape simulate` and `launch`: the setting by --set, the plan by --point.

/** Names of columns in `shardscape simulate --point`. */
const SHORT = Object.fromEntries(DATA.columns.filter((column) => column.short).map((column) => [column.name, column.short]));

/**
 * The words that choose the setting of a point: its id counts plans within a setting, and settings with the
 * last axis fastest.
 * @param {number} pointId
 * @returns {string[]} an option each; none where the study has one setting
 */
function settingOptions(pointId) {
  const {plans, settings} = DATA.commands, options = [];
  if (plans === 0) return options;
  let setting = Math.floor(pointId / plans);
  for (const axis of [...settings].reverse()) {
    options.unshift(axis[setting % axis.length]);
    setting = Math.floor(setting / axis.length);
  }
  return options.filter((option) => option !== "");
}

/**
 * The plan as `--point` takes it.
 * @param {number} row
 * @returns {string}
 */
function pointOption(row) {
  // Where the study is known, --set chooses the load with the rest of the setting.
  const inPlan = (column) => column.group === "plan" || DATA.commands.plans === 0;
  return inputs.filter((column) => SHORT[column.name] !== undefined && inPlan(column) && !isIdle(column, row) && column.at(row) !== null)
      .map((column) => `${SHORT[column.name]}=${column.names ? column.names[column.at(row)] : column.at(row)}`).join(",");
}

/** A word for the shell: in quotes where it holds what a shell would read otherwise. */
const shellWord = (text) => (/^[\w=,.+:@%/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/**
 * A whole command, over several lines.
 * @param {string} name  of the command, with its options
 * @param {number} pointId
 * @param {string} point  the value of --point
 * @returns {string}
 */
function pointCommand(name, pointId, point) {
  const [command, ...options] = name.split(" ");
  return [`shardscape ${command} ${DATA.commands.study}`, ...options, ...settingOptions(pointId), `--point ${shellWord(point)}`].join(" \\\n  ");
}
const simulateCommand = (pointId, point) => pointCommand("simulate --explain", pointId, point);
/** The command that prints what a framework runs the plan by, the one that the study's stack is nearest to. */
const launchCommand = (pointId, point) => pointCommand(`launch${DATA.answer.framework && ` --for=${DATA.answer.framework}`}`, pointId, point);

/** What the command leaves to the reader: settings of a study that this program could not read. */
function unsaidSettings(row) {
  if (DATA.commands.plans > 0) return "";
  const left = columnsOf("workload", "hardware").filter((column) => !column.constant && SHORT[column.name] === undefined);
  return left.map((column) => `${partName(column)} ${formatValue(column, column.at(row))}`).join(", ");
}
