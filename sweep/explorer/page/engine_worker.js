// The engine in a worker. Requests are answered in their order; of those that wait under one name only the last one is.

/** What the worker runs behind the engine's own script. */
function engineWorker() {
  const waiting = [];
  let packed, engine, busy = false;
  /** Lets messages in that came meanwhile. */
  const pause = () => new Promise((resolve) => { setTimeout(resolve); });
  const start = async () => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    packed = undefined;
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return createShardscape({wasmBinary: new Uint8Array(await new Response(plain).arrayBuffer())});
  };
  const work = async () => {
    busy = true;
    for (await pause(); waiting.length > 0; await pause()) {
      const {id, request, name} = waiting.shift();
      if (name && waiting.some((other) => other.name === name)) {
        postMessage({id, dropped: true});
        continue;
      }
      try {
        engine ??= await start();
        const text = JSON.stringify(request), size = engine.lengthBytesUTF8(text) + 1, at = engine._malloc(size);
        engine.stringToUTF8(text, at, size);
        const answer = engine.ccall("shardscape_answer", "string", ["number"], [at]);
        engine._free(at);
        postMessage({id, answer: JSON.parse(answer)});
      } catch (error) {
        postMessage({id, broken: true, answer: {problems: [`engine: ${error.message ?? error}`]}});
      }
    }
    busy = false;
  };
  onmessage = ({data}) => {
    if (data.wasm !== undefined) {
      packed = data.wasm;
      return;
    }
    waiting.push(data);
    if (!busy) work();
  };
}

/** An engine that has the study; what is asked of it is answered by a promise. */
class Engine {
  #worker;
  #asked = new Map();
  #next = 0;

  constructor() { this.#start(); }

  #start() {
    const text = new Blob([DATA.engine.script, `\n(${engineWorker})();\n`], {type: "text/javascript"});
    const url = URL.createObjectURL(text);
    this.#worker = new Worker(url);
    this.#worker.onmessage = ({data}) => this.#settle(data);
    this.#worker.onerror = (event) => this.#restart(`engine: ${event.message ?? "does not start"}`);
    this.#worker.postMessage({wasm: DATA.engine.wasm});
    this.loaded = this.ask(DATA.load);
  }

  #settle({id, answer, dropped, broken}) {
    this.#asked.get(id)?.(dropped ? undefined : answer);
    this.#asked.delete(id);
    if (broken) this.#restart(answer.problems[0]);
  }

  /** An engine that stopped is of no use any more: those who wait are told, and the next request finds a new one. */
  #restart(problem) {
    this.#worker.terminate();
    for (const resolve of this.#asked.values()) resolve({problems: [problem]});
    this.#asked.clear();
    this.ask = (request, name) => {
      delete this.ask;
      this.#start();
      return this.ask(request, name);
    };
  }

  /**
   * @param {object} request
   * @param {string} [name]  a later request of the same name takes the place of this one while it waits
   * @returns {Promise<object|undefined>} the answer, with `problems` where there are any; nothing where it was replaced
   */
  ask(request, name) {
    const id = ++this.#next;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.#worker.postMessage({id, request, name});
    });
  }
}
