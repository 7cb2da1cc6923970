// Opens a file with speedscope itself, in a browser without a screen, and prints what it exports again: a line for each
// profile with its name and its total.
// usage: node speedscope.cjs FOLDER-OF-PACKAGES FILE
const fs = require("fs");
const [packages, file] = process.argv.slice(2);
const { JSDOM } = require(`${packages}/node_modules/jsdom`);
const release = `${packages}/node_modules/speedscope/dist/release`;
const script = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));

// With this address it offers a function that imports a file.
const url = "http://localhost/#localProfilePath=file";
const dom = new JSDOM("<!doctype html>", { runScripts: "outside-only", url, pretendToBeVisual: true });
const page = dom.window;
dom.virtualConsole.removeAllListeners();
// Drawing is not what is tested: every constant is 1, every function returns an object or a number.
const answer = (name) => (name === "getExtension" ? {} : /InfoLog/.test(name) ? "" : name.startsWith("get") ? 1 : {});
const context = (canvas) =>
    new Proxy({}, {
        get: (_, name) =>
            name === "canvas" ? canvas
            : /^[A-Z0-9_]+$/.test(String(name)) ? 1
            : name === "measureText" ? () => ({ width: 10 })
            : name === "getContextAttributes" ? () => ({})
            : () => answer(String(name)),
        set: () => true,
    });
page.HTMLCanvasElement.prototype.getContext = function () {
    return context(this);
};
page.Element.prototype.scrollIntoView = () => {};
page.matchMedia = () => ({ matches: false, addListener() {}, addEventListener() {} });
Object.assign(page, { TextDecoder, TextEncoder });
page.alert = (text) => fail(text);
page.URL.createObjectURL = (blob) => {
    const reader = new page.FileReader();
    reader.onload = () => {
        for (const profile of JSON.parse(reader.result).profiles) {
            console.log(`${profile.name}\t${profile.unit}\t${profile.endValue}`);
        }
        process.exit(0);
    };
    reader.readAsText(blob);
    return "blob:export";
};

function fail(why) {
    console.error(`speedscope: ${why}`);
    process.exit(1);
}

page.eval(fs.readFileSync(`${release}/${script}`, "utf8"));
page.speedscope.loadFileFromBase64("export.json", fs.readFileSync(file).toString("base64"));
let tries = 0;
const timer = setInterval(() => {
    const all = [...page.document.querySelectorAll("div")];
    const button = all.find((element) => element.children.length < 2 && /Export$/.test(element.textContent));
    if (button) {
        clearInterval(timer);
        button.click();
    } else if ((tries += 1) > 200) {
        fail("the file was not imported");
    }
}, 50);
