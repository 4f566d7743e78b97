// Types into the search of a page in a headless Chromium, and prints what stands in it, as JSON.
//
//   node browser.mjs CHROMIUM URL TEXT
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, url, text] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "browser-"));
const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"];
const browser = spawn(program, [...options, `--user-data-dir=${profile}`, "about:blank"], {
  stdio: ["ignore", "ignore", "pipe"],
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

try {
  const address = await new Promise((listening) => {
    let said = "";
    browser.stderr.on("data", (part) => {
      said += part;
      const match = said.match(/ws:\/\/[^/]+/);
      if (match) listening(match[0].replace("ws:", "http:"));
    });
  });
  const pages = await (await fetch(`${address}/json`)).json();
  const socket = new WebSocket(pages.find((page) => page.type === "page").webSocketDebuggerUrl);
  await new Promise((opened) => (socket.onopen = opened));
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    waiting.get(message.id)?.(message.result);
  };
  const send = (method, params = {}) =>
    new Promise((answered) => {
      const id = waiting.size + 1;
      waiting.set(id, answered);
      socket.send(JSON.stringify({ id, method, params }));
    });
  const ask = async (expression) => {
    const answer = await send("Runtime.evaluate", { expression, returnByValue: true });
    return answer.result?.value;
  };
  const type = async (key) => {
    await send("Input.dispatchKeyEvent", { type: "keyDown", key, text: key });
    await send("Input.dispatchKeyEvent", { type: "keyUp", key });
    await pause(100);
  };
  await send("Page.navigate", { url });
  for (let tries = 0; tries < 40 && (await ask(`(() => {${deep} return inner()?.tagName})()`)) !== "INPUT"; tries++) {
    await pause(500);
    await type("/");
  }
  for (const letter of text) await type(letter);
  let last = {};
  for (let tries = 0; tries < 40 && !last.results?.length; tries++) {
    await pause(500);
    last = await ask(found);
  }
  console.log(JSON.stringify(last));
} finally {
  process.kill(-browser.pid, "SIGKILL");
  await pause(300);
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(0);
