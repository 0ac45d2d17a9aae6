// Search in a site that is opened from the disk: browsers start no workers from files, so a hidden frame does their work.
// The theme's plugin "offline" would fetch such a script from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // Written at once: some browsers would load the empty page later, and forget what was put into it.
      inside.document.open();
      inside.document.write("<!doctype html><body></body>");
      inside.document.close();
      const run = (address) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: address, onload: done, onerror: failed });
          inside.document.body.append(script);
        });
      inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      inside.importScripts = (...addresses) => addresses.reduce((before, address) => before.then(() => run(address)), Promise.resolve());
      this.ready = run(url);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
