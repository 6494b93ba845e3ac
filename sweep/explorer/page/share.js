// What gives the same elsewhere: a link, a command, a study.

/** A word as a POSIX shell takes it. */
const shellWord = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The command that predicts the present setting; changes that the page was made with come first. */
function commandOf({set, point}) {
  const words = [`shardscape simulate ${shellWord(DATA.study_path)}`,
                 ...(DATA.presets ?? []).map((folder) => `--presets ${shellWord(folder)}`),
                 ...[...(DATA.set ?? []), ...set].map((change) => `--set ${shellWord(change)}`),
                 ...(point ? [`--point ${shellWord(point)}`] : []), "--explain"];
  return words.join(" \\\n  ");
}

/** Command and YAML of an answer. */
function drawShare({yaml, point}) {
  byId("share-command").replaceChildren(commandBox(commandOf({set: changesOf(state).set, point})));
  byId("share-yaml").replaceChildren(commandBox(yaml));
  byId("save-yaml").onclick = () => download("study.yaml", new Blob([yaml], {type: "application/yaml"}));
}

/** The link is the address, brought up to what is seen. */
function setUpShare() {
  byId("copy-link").onclick = async () => {
    rememberState();
    await copyText(location.href);
    byId("copy-link").textContent = "Copied";
    setTimeout(() => { byId("copy-link").textContent = "Copy the link"; }, 1500);
  };
}
