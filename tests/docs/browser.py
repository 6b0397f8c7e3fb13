#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""browser.py SITE [LINE]: looks at pages of the built site in a headless Chromium, at 1300 and 400 pixels, in the light and the dark theme.
Pictures of pages differ by fonts and versions, so the test compares layout: no page scrolls sideways, nothing is cut off, text has a contrast of
4.5, pictures are visible, each block of code has its copy button, the navigation has no empty entry, and the search finds a word.
LINE is CSS that a test plants as a fault. Exit code 77: no Chromium."""
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PAGES = ("index.html", "course/4_races.html", "variables.html", "lab.html")  # the landing page, a tutorial, a reference, the lab
DOORS = ("course/index.html", "cuda_without_a_gpu.html", "train_image.html")
HARNESS = r"""<!doctype html><body><script>
const planted = %s, doors = %s, faults = [];
const sleep = ms => new Promise(done => setTimeout(done, ms));
function rgba(text) {
  const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
}
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
function light(colour) {
  const [r, g, b] = colour.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function look(frame, where, width) {
  const doc = frame.contentDocument, win = frame.contentWindow;
  const fault = text => faults.push(where + ': ' + text);
  const name = e => e.tagName.toLowerCase() + (e.className && e.className.baseVal === undefined ? '.' + e.className : '') + " '" + e.textContent.trim().slice(0, 30) + "'";
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 && win.getComputedStyle(e).visibility === 'visible'; };
  if (doc.documentElement.scrollWidth > width) fault('scrolls sideways: ' + doc.documentElement.scrollWidth + ' pixels');
  function background(e) {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(rgba(win.getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  }
  const article = doc.querySelector('article'), texts = new Set();
  for (const root of [article, doc.querySelector('.md-header__title'), ...doc.querySelectorAll('.md-sidebar')]) {
    const walk = doc.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (walk.currentNode.data.trim()) texts.add(walk.currentNode.parentElement);
  }
  let looked = 0;
  for (const e of texts) {
    const style = win.getComputedStyle(e);
    if (!shown(e) || e.closest('script, style, .headerlink, .md-clipboard') || style.opacity === '0') continue;
    const below = background(e), a = light(over(rgba(style.color), below)), b = light(below), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    looked += 1;
    if (ratio < 4.5) fault('contrast ' + ratio.toFixed(2) + ' of ' + name(e) + ' ' + style.color);
    if (!article.contains(e)) continue;
    let scrolls = false;
    for (let at = e; at && at !== doc.body; at = at.parentElement) {
      const how = win.getComputedStyle(at).overflowX;
      scrolls = scrolls || how === 'auto' || how === 'scroll';
      if (!scrolls && (how === 'hidden' || how === 'clip') && at.scrollWidth > at.clientWidth + 1) fault('cut off: ' + name(e));
    }
    if (!scrolls && e.getBoundingClientRect().right > width + 0.5) fault('beyond the right edge: ' + name(e));
  }
  if (looked < 30) fault('only ' + looked + ' texts were found');
  for (const image of article.querySelectorAll('img')) {
    const box = image.getBoundingClientRect();
    if (!image.complete || !image.naturalWidth || box.width < 200 || box.right > width) fault('picture ' + image.src + ': ' + box.width + ' pixels wide');
  }
  for (const cell of article.querySelectorAll('td:first-child > code')) {
    if (/^\w{1,17}$/.test(cell.textContent) && cell.getClientRects().length > 1) fault('a name is broken: ' + cell.textContent);
  }
  const code = [...article.querySelectorAll('pre > code')];
  for (const block of code) if (!block.parentElement.querySelector('.md-clipboard')) fault('no copy button: ' + name(block));
  for (const link of doc.querySelectorAll('.md-nav__link')) if (['', 'None'].includes(link.textContent.trim())) fault("an entry of the navigation is '" + link.textContent.trim() + "'");
  if (where.startsWith('index.html')) {
    if (!article.querySelector('img')) fault('there is no picture');
    for (const door of doors) {
      const link = [...article.querySelectorAll('table a')].find(a => a.getAttribute('href') === door);
      if (!link || !shown(link) || link.getBoundingClientRect().bottom > 1000) fault('no door to ' + door + ' within 1000 pixels');
    }
  } else if (where.startsWith('lab') && !code.length) fault('there is no code');
}
async function finds(doc) {
  const query = doc.querySelector('.md-search__input');
  doc.querySelector('#__search').checked = true;
  query.focus();
  query.value = 'mbarrier';
  for (let tries = 0; tries < 1000; ++tries) {
    for (const event of ['keyup', 'input', 'change']) query.dispatchEvent(new Event(event, {bubbles: true}));
    await sleep(100);
    const found = [...doc.querySelectorAll('.md-search-result__link')].map(a => a.href);
    if (found.some(href => href.includes('11_hopper'))) return;
  }
  faults.push('search: mbarrier does not lead to unit 11 of the course');
}
(async () => {
  let looks = 0;
  try {
    for (const page of %s) for (const width of [1300, 400]) {
      const frame = document.createElement('iframe');
      frame.width = width, frame.height = 11000, frame.style.border = 0, frame.src = page;
      await new Promise(done => { frame.onload = done; document.body.append(frame); });
      const style = frame.contentDocument.createElement('style');
      style.textContent = planted + ' * { transition: none !important; }';
      frame.contentDocument.head.append(style);
      const bare = () => [...frame.contentDocument.querySelectorAll('article pre > code')].some(block => !block.parentElement.querySelector('.md-clipboard'));
      for (let tries = 0; tries < 100 && bare(); ++tries) await sleep(100);  // the theme's script adds the buttons late
      for (const theme of ['default', 'slate']) {
        frame.contentDocument.body.setAttribute('data-md-color-scheme', theme);
        await sleep(300);
        look(frame, page + ' ' + width + ' ' + (theme === 'slate' ? 'dark' : 'light'), width);
        looks += 1;
      }
      if (page === 'index.html' && width === 1300) await finds(frame.contentDocument);
      frame.remove();
    }
  } catch (error) { faults.push('harness: ' + error.stack); }
  fetch('/seen', {method: 'POST', body: JSON.stringify({faults, looks})});
})();
</script>"""


class Site(http.server.SimpleHTTPRequestHandler):
    seen, arrived, harness = None, threading.Event(), b""

    def do_GET(self):
        if self.path != "/harness.html":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.harness)

    def do_POST(self):
        Site.seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        Site.arrived.set()

    def log_message(self, format, *arguments):
        pass


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("skipped: chromium is not installed (apt-get install chromium)")
        return 77
    Site.harness = (HARNESS % (json.dumps(" ".join(sys.argv[2:])), json.dumps(DOORS), json.dumps(PAGES))).encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, directory=Path(sys.argv[1])))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        with subprocess.Popen([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--window-size=1400,12000",
                               "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/harness.html"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            arrived = Site.arrived.wait(240)
            started.terminate()
    if not arrived:
        print("expected the browser's report within 240 s, got none")
        return 1
    for fault in Site.seen["faults"]:
        print(fault)
    print(f"{Site.seen['looks']} looks at {len(PAGES)} pages, {len(Site.seen['faults'])} faults")
    return int(bool(Site.seen["faults"]) or Site.seen["looks"] != 4 * len(PAGES))


if __name__ == "__main__":
    sys.exit(main())
