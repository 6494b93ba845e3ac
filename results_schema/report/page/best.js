// The answer: the best plan, how good it is, what that rests on, and the command that launches it.

/** What is known of the plan before all else: [words, text]. */
function answerFigures() {
  const times = [ranking, ...["step_time_s", "e2e_s", EXECUTED?.name, TOKEN_RATE, "mfu", "memory_peak_bytes"].map((name) => COLUMNS.get(name))];
  const error = COLUMNS.get("expected_error");
  const figures = [...new Set(times)].filter(Boolean).map((column) => [partName(column), cellOf(column, ANSWER)]);
  return [...figures, ["expected error", error && isValue(error.at(ANSWER)) ? `±${cellOf(error, ANSWER)}` : "unknown"]].filter(([, text]) => text !== MISSING);
}

/** What the figures rest on, sentence by sentence. */
function answerRests() {
  const said = (name) => COLUMNS.get(name) && formatValue(COLUMNS.get(name), COLUMNS.get(name).at(ANSWER));
  const evidence = said("evidence"), gap = said("evidence_gap"), {confirmed, assumptions, remarks} = DATA.answer;
  const others = ANSWER > 0 ? `; by ${partName(ranking)} without that, point ${COLUMNS.get("point_id").at(0)} comes first` : "";
  const basis = evidence === "none" ? "and no measurement is near" : `by evidence that is ${evidence}`;
  return [evidence && `The error is one sigma, ${basis}${COLUMNS.get("evidence_gap")?.at(ANSWER) > 0 ? `; the nearest differ in ${gap}` : ""}`,
          ...remarks.map((line) => line[0].toUpperCase() + line.slice(1).replace("+-", "±")), confirmed && `${confirmed.startsWith("not") ? "Messages were" : "Every message simulated:"} ${confirmed}${others}`, ...assumptions.map((line) => `Assumed: ${line}`),
          DATA.answer.refused && `${DATA.answer.framework} does not run this plan: ${DATA.answer.refused}`].filter(Boolean).map((text) => `${text}. `).join("");
}

/** The section as a whole. */
function drawAnswer() {
  const says = byId("answer-says");
  if (ANSWER < 0) {
    const [miss] = DATA.near_misses;
    says.textContent = `No plan of this study is feasible.${miss ? ` Point ${miss.point_id} comes nearest: ${miss.problem}.` : ""}`;
    return;
  }
  const id = COLUMNS.get("point_id").at(ANSWER), plan = varied.length > 0 ? `: ${planText(ANSWER)}` : "";
  const setting = unsaidSettings(ANSWER);
  says.textContent = `Of ${formatCount(FEASIBLE)} feasible points, point ${id} is best by ${partName(ranking)}${plan}.`;
  byId("answer-figures").replaceChildren(...pairsOf(answerFigures()));
  byId("answer-rests").textContent = answerRests();
  byId("answer-command").replaceChildren(
      element("p", {className: "note"}, `${DATA.answer.refused ? "Look closer with" : "What runs it, printed by"}${setting ? `, the study set to ${setting}` : ""}`),
      commandBox((DATA.answer.refused ? simulateCommand : launchCommand)(id, pointOption(ANSWER))));
}
