// Keeps the page up to date: asks for it again and takes over what has changed. Nothing here is needed to use it.
"use strict";
(() => {
  const PAUSE = 1000;
  const live = document.getElementById("live");
  document.getElementById("updating").hidden = false;
  const regions = () => document.querySelectorAll("[data-live]");
  const toEnd = (box) => { box.scrollTop = box.scrollHeight; };
  const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 8;
  // What is focused, found again by its place among its equals: links by where they lead, the rest by their order.
  const mark = (region) => {
    const active = document.activeElement;
    if (!active || !region.contains(active)) return null;
    const href = active.getAttribute("href");
    if (href !== null) return (fresh) => [...fresh.querySelectorAll("a")].find((a) => a.getAttribute("href") === href);
    const index = [...region.querySelectorAll(active.localName)].indexOf(active);
    return (fresh) => fresh.querySelectorAll(active.localName)[index];
  };
  const isSelecting = (region) => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  };
  const take = (region, fresh) => {
    if (isSelecting(region)) return;
    // Opened details would close under the reader's eyes.
    if (region.querySelector("details[open]")) return;
    const find = mark(region);
    const boxes = [...region.querySelectorAll("pre, .scroll")].map((box) => [box.scrollTop, isAtEnd(box)]);
    region.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
    region.querySelectorAll("pre, .scroll").forEach((box, index) => {
      const before = boxes[index];
      if (box.hasAttribute("data-tail") && (!before || before[1])) toEnd(box);
      else if (before) box.scrollTop = before[0];
    });
    const again = find && find(region);
    if (again) again.focus({ preventScroll: true });
  };
  const refresh = async () => {
    const answer = await fetch(location.pathname + location.search, { cache: "no-store", redirect: "error" });
    if (!answer.ok && answer.status !== 404) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of regions()) {
      const fresh = page.getElementById(region.id);
      if (fresh && fresh.innerHTML !== region.innerHTML) take(region, fresh);
    }
  };
  const loop = async () => {
    if (live.checked && !document.hidden) await refresh().catch(() => {});
    setTimeout(loop, PAUSE);
  };
  document.querySelectorAll("[data-tail]").forEach(toEnd);
  setTimeout(loop, PAUSE);
})();
