// Types into the search of a page in a headless browser, and prints what stands in it, as JSON.
//
//   node browser.mjs CHROMIUM|FIREFOX URL TEXT
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const [program, url, text] = process.argv.slice(2);
const firefox = basename(program).startsWith("firefox");
const profile = mkdtempSync(join(tmpdir(), "browser-"));
const options = firefox
  ? ["--headless", "--no-remote", "--profile", profile]
  : ["--headless=new", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
const browser = spawn(program, [...options, "--remote-debugging-port=0", "about:blank"], {
  stdio: ["ignore", "ignore", "pipe"],
  env: { ...process.env, HOME: profile },
  detached: true,
});
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Expressions of the page: parts of the search stand in a shadow root.
const deep = `
  const all = (root) => [...root.querySelectorAll("*")].flatMap((part) =>
    [part, ...(part.shadowRoot ? all(part.shadowRoot) : [])]);
  const inner = () => { let part = document.activeElement;
    while (part?.shadowRoot) part = part.shadowRoot.activeElement; return part; };`;
const found = `(() => { ${deep} return { value: inner()?.value, results: all(document)
  .filter((part) => part.matches("a[href]") && part.getRootNode() !== document)
  .map((part) => part.innerText.replace(/\\s+/g, " ")) }; })()`;

// Chromium is told by its DevTools protocol, Firefox by WebDriver BiDi: a socket for each.
const open = async (address) => {
  const socket = new WebSocket(address);
  await new Promise((opened, failed) => ((socket.onopen = opened), (socket.onerror = failed)));
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    waiting.get(message.id)?.(message);
  };
  return (method, params = {}) =>
    new Promise((answered, failed) => {
      const id = waiting.size + 1;
      waiting.set(id, (message) => (message.error ? failed(message) : answered(message.result)));
      socket.send(JSON.stringify({ id, method, params }));
    });
};
const chromiumPage = async (address) => {
  const pages = await (await fetch(`${address.replace("ws:", "http:")}/json`)).json();
  const send = await open(pages.find((page) => page.type === "page").webSocketDebuggerUrl);
  return {
    show: (url) => send("Page.navigate", { url }),
    ask: async (expression) => {
      const answer = await send("Runtime.evaluate", { expression, returnByValue: true });
      return answer.result?.value;
    },
    press: async (key) => {
      await send("Input.dispatchKeyEvent", { type: "keyDown", key, text: key });
      await send("Input.dispatchKeyEvent", { type: "keyUp", key });
    },
  };
};
const firefoxPage = async (address) => {
  const send = await open(`${address}/session`);
  await send("session.new", { capabilities: {} });
  const { contexts } = await send("browsingContext.getTree");
  const { context } = contexts[0];
  return {
    show: (url) => send("browsingContext.navigate", { context, url, wait: "complete" }),
    ask: async (expression) => {
      const json = { expression: `JSON.stringify(${expression})`, target: { context } };
      const answer = await send("script.evaluate", { ...json, awaitPromise: false });
      return answer.result?.value && JSON.parse(answer.result.value);
    },
    press: (value) => {
      const actions = [{ type: "keyDown", value }, { type: "keyUp", value }];
      return send("input.performActions", { context, actions: [{ type: "key", id: "keys", actions }] });
    },
  };
};

try {
  const address = await new Promise((listening) => {
    let said = "";
    browser.stderr.on("data", (part) => {
      said += part;
      const match = said.match(/ws:\/\/[^/\s]+/);
      if (match) listening(match[0]);
    });
  });
  const page = await (firefox ? firefoxPage : chromiumPage)(address);
  const type = async (key) => {
    await page.press(key);
    await pause(100);
  };
  await page.show(url);
  for (let tries = 0; tries < 40 && (await page.ask(`(() => {${deep} return inner()?.tagName})()`)) !== "INPUT"; tries++) {
    await pause(500);
    await type("/");
  }
  for (const letter of text) await type(letter);
  let last = {};
  for (let tries = 0; tries < 40 && !last.results?.length; tries++) {
    await pause(500);
    last = await page.ask(found);
  }
  console.log(JSON.stringify(last));
} finally {
  process.kill(-browser.pid, "SIGKILL");
  await pause(300);
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(0);
