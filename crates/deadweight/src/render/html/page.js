// The page's script: it adds to drawings that are complete without it. It asks for nothing outside of the page.
"use strict";
(() => {
  // A link to a description opens it.
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  // Paper has no way to open what is closed.
  const closed = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; closed.push(part); }
  });
  addEventListener("afterprint", () => { for (const part of closed.splice(0)) part.open = false; });
})();
