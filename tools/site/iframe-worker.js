// Web workers for pages that are opened from the disk, where browsers start none: each runs in a
// frame of the page instead. Zensical's search needs one. The name tells Zensical that it is there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = frame.contentDocument.createElement("script");
          script.src = new URL(source, document.baseURI);
          script.onload = loaded;
          script.onerror = failed;
          frame.contentDocument.body.append(script);
        });
      // Firefox makes the document of a frame anew until it has loaded.
      this.ready = new Promise((made) => (frame.onload = made)).then(() => {
        frame.onload = null;
        const inside = frame.contentWindow;
        inside.postMessage = (data) => {
          // As from a worker: a copy, and never while the page still handles an event.
          const message = new MessageEvent("message", { data: structuredClone(data) });
          setTimeout(() => {
            this.dispatchEvent(message);
            this.onmessage?.(message);
          });
        };
        inside.importScripts = (...sources) => Promise.all(sources.map(load));
        this.send = (data) => {
          const message = new inside.MessageEvent("message", { data: structuredClone(data) });
          setTimeout(() => inside.dispatchEvent(message));
        };
        return load(address);
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then(() => this.send(data));
    }

    terminate() {}
  };
}
