#!/usr/bin/env python3
"""Opens the pages of real programs in a real browser, checks them from inside, and takes pictures of them.

  bench/tour.py [--pictures FOLDER] [--only NAME,...] [--binary FILE] [--make FOLDER] [PAGE...]

Programs: reads of one byte, sqlite3 with 3000 inserts, `make -j2` in the folder of --make, a Go server under load that is
attached to, two processes that wake each other (16 million events); then pages that are there already, such as those of the
cases (`cargo xtask cases` leaves target/cases/*/compare.html). For each it prints the size of the page, how long it takes to
open, and what the checks of crates/deadweight/tests/cli/browser.js and of axe find wrong. Pictures: 400, 1280 and 2000 pixels
wide, light and dark, and as printed. Needs Chromium, and `./setup.sh tests` for axe. As root.
"""
import argparse, base64, json, os, subprocess, sys, tempfile, threading, time, urllib.request

from pages import TURNS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHECK = open(os.path.join(ROOT, "crates/deadweight/tests/cli/browser.js")).read()
BEFORE = """window.bad = [];
addEventListener('error', (e) => bad.push('error: ' + e.message));
addEventListener('securitypolicyviolation', (e) => bad.push('refused: ' + e.blockedURI));"""
AXE = os.path.join(ROOT, "target/consumers/node_modules/axe-core/axe.min.js")
SERVER = """package main

import ("crypto/sha256"; "fmt"; "net/http")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256(make([]byte, 64<<10))
		fmt.Fprintf(w, "%x\\n", sum)
	})
	fmt.Println(http.ListenAndServe("127.0.0.1:18099", nil))
}
"""
#: What is recorded here.
PROGRAMS = ["tiny-reads", "sqlite3", "make", "go-server", "turns"]
#: Width, dark, printed.
VIEWS = {"400": (400, False, False), "1280": (1280, False, False), "2000": (2000, False, False),
         "dark": (1280, True, False), "400-dark": (400, True, False), "print": (688, False, True)}


class Browser:
    """Chromium, spoken to through pipes: its DevTools protocol, messages that end with a zero byte."""

    def __init__(self, profile):
        (there_in, self.to), (self.come, there_out) = os.pipe(), os.pipe()
        words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                 f"--user-data-dir={profile}", "about:blank"]

        def pipes():
            os.dup2(there_in, 63)
            os.dup2(there_out, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(words, preexec_fn=pipes, pass_fds=(3, 4, there_in, there_out), stderr=subprocess.DEVNULL)
        self.number, self.rest, self.events = 0, b"", []
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = None
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        write_all(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.come, 1 << 20)
            if not part:
                raise RuntimeError("the browser is gone")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def value(self, expression):
        """What an expression of the page is."""
        found = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def open(self, path, width, dark=False, printed=False):
        """Opens a page; returns the milliseconds until it was there."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media="print" if printed else "", features=scheme)
        self.ask("Page.navigate", url="file://" + path)
        while self.value("document.readyState") != "complete":
            time.sleep(0.02)
        # Two frames later it is drawn.
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.value("performance.now()")

    def picture(self, to):
        height = self.value("Math.ceil(document.documentElement.scrollHeight)")
        width = self.value("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16000), "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        open(to, "wb").write(base64.b64decode(shot["data"]))

    def wrong(self):
        """What the page's messages and requests say; the page itself is one request."""
        bad = []
        for event in self.events:
            at = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                bad.append("thrown: " + at["exceptionDetails"]["text"])
            elif event.get("method") == "Log.entryAdded" and at["entry"]["level"] in ("error", "warning"):
                bad.append("console: " + at["entry"]["text"])
            elif event.get("method") == "Network.requestWillBeSent" and at["type"] != "Document":
                bad.append("requested: " + at["request"]["url"][:100])
        return bad

    def close(self):
        self.process.kill()
        self.process.wait()


def write_all(to, data):
    while data:
        data = data[os.write(to, data):]


def checked(browser, page):
    """What is wrong with the page, from inside; needs scripts that run before its own."""
    scripts = [BEFORE, CHECK] + ([open(AXE).read()] if os.path.exists(AXE) else [])
    ids = [browser.ask("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"] for source in scripts]
    bad = []
    for width in (400, 1280):
        browser.open(page, width)
        for _ in range(600):
            title = browser.value("document.title")
            if title == "fine" or ": " in title and "bad" not in title and browser.value("bad.length"):
                break
            time.sleep(0.1)
        said = browser.value("bad.join('; ')")
        bad += [f"{width}: {said}"] if said else [] if title == "fine" else [f"{width}: not checked in a minute"]
        bad += browser.wrong()
    for each in ids:
        browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=each)
    return bad


def run(words, **more):
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
    # A comparison's exit code is its verdict.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{words}: {done.stderr[-500:]}")


def served(binary, page, folder):
    """The page of a Go server that is attached to while it is asked."""
    source, server = os.path.join(folder, "server.go"), os.path.join(folder, "server")
    open(source, "w").write(SERVER)
    subprocess.run(["go", "build", "-o", server, source], check=True, cwd=folder, env={**os.environ, "GO111MODULE": "off"})
    running = subprocess.Popen([server])
    ended = threading.Event()

    def client():
        while not ended.is_set():
            try:
                urllib.request.urlopen("http://127.0.0.1:18099/").read()
            except OSError:
                time.sleep(0.05)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for each in clients:
        each.start()
    try:
        time.sleep(1)
        run([binary, "-q", "--pid", str(running.pid), "--for", "3s", "--html", page])
    finally:
        ended.set()
        for each in clients:
            each.join()
        running.kill()
        running.wait()


def made(name, binary, given, folder, page):
    """Makes the page of one program."""
    watched = [binary, "-q", "--html", page, "--"]
    if name == "tiny-reads":
        run(watched + ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000"])
    elif name == "sqlite3":
        lines = "create table t(a, b);\n" + "".join(f"insert into t values({i}, 'row {i}');\n" for i in range(3000))
        file = os.path.join(folder, "lines.sql")
        open(file, "w").write(lines)
        run(watched + [f"sqlite3 {folder}/rows.db < {file}"])
    elif name == "make":
        run(["make", "clean"], cwd=given.make)
        run(watched + ["make", "-j2"] + given.target.split(), cwd=given.make)
    elif name == "go-server":
        served(binary, page, folder)
    else:
        run(watched + [sys.executable, "-c", TURNS, "900000"])


def toured(name, page, pictures):
    """Opens, checks and draws a page; true if something is wrong with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            opened = browser.open(page, 1280)
            bad = checked(browser, page)
            for view, how in VIEWS.items() if pictures else ():
                os.makedirs(pictures, exist_ok=True)
                browser.open(page, *how)
                browser.picture(os.path.join(pictures, f"{name}-{view}.png"))
        finally:
            browser.close()
    print(f"| {name} | {os.path.getsize(page) / 1000:.0f} kB | {opened:.0f} ms | {'; '.join(bad) or 'fine'} |", flush=True)
    return bool(bad)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pictures", help="a folder for pictures")
    options.add_argument("--only", default="")
    options.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options.add_argument("--make", help="a folder with a project to make, such as Lua's sources")
    options.add_argument("--target", default="", help="what to make there")
    options.add_argument("pages", nargs="*")
    given = options.parse_args()
    if not os.path.exists(AXE):
        print("SKIPPED rules of axe: ./setup.sh tests gets them", file=sys.stderr)
    names = [name for name in PROGRAMS if name in given.only.split(",") or not given.only]
    failed = False
    print("| page | size | open after | checks |\n|---|---:|---:|---|")
    for name in names:
        if name == "make" and not given.make:
            print("SKIPPED make: no --make FOLDER", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            made(name, os.path.abspath(given.binary), given, folder, page)
            failed |= toured(name, page, given.pictures)
    for page in given.pages:
        # A page of a case is named after its folder.
        failed |= toured(os.path.basename(os.path.dirname(os.path.abspath(page))), os.path.abspath(page), given.pictures)
    sys.exit(failed)


if __name__ == "__main__":
    main()
