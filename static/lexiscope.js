// Keys, copying, suggestions, progress of a run, and what htmx leaves to us when it swaps a page. Pages work without it.
"use strict";
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // A short message, for eyes and screen readers alike.
  let timer;
  function say(text) {
    const message = find("#said");
    if (!message) return;
    message.textContent = text;
    clearTimeout(timer);
    timer = setTimeout(() => { message.textContent = ""; }, 2500);
  }

  // Keys: data-key names the key that clicks or focuses an element; j and k walk through the rows.
  document.addEventListener("keydown", (event) => {
    const search = (event.ctrlKey || event.metaKey) && event.key === "k"; // as in many places; / does the same
    if (event.defaultPrevented || event.altKey || ((event.ctrlKey || event.metaKey) && !search)) return;
    if (!search && event.target.closest("input, textarea, select, [contenteditable]")) return;
    const key = search ? "/" : event.key;
    if (key === "j" || key === "k") return walk(key === "j" ? 1 : -1);
    const row = key === "#" && event.target.closest("tr[id]"); // the address of the row that has the focus
    if (row) return location.assign(`#${row.id}`);
    const target = find(`[data-key="${CSS.escape(key)}"]`);
    if (!target) return;
    event.preventDefault();
    if (target.matches("input")) { target.focus(); target.select(); } else target.click();
  });

  function walk(step) {
    const rows = all("main tbody tr, main .cards li").filter((row) => row.checkVisibility()); // not those in closed folds
    const links = rows.map((row) => find('a:not([tabindex="-1"])', row)).filter(Boolean);
    const here = links.findIndex((link) => link.closest("tr, li").contains(document.activeElement));
    const next = links[here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step];
    if (next) { next.focus(); next.closest("tr, li").scrollIntoView({ block: "nearest" }); }
  }

  // A menu closes by Escape, and when something else is clicked or gets the focus.
  const openMenus = () => all("details.menu[open]");
  for (const leave of ["click", "focusin"]) document.addEventListener(leave, (event) => {
    openMenus().filter((menu) => !menu.contains(event.target)).forEach((menu) => { menu.open = false; });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") openMenus().forEach((menu) => { menu.open = false; find("summary", menu).focus(); });
  });

  // The switches of a page are a toolbar: one stop of the Tab key, among which the arrows go. So are headings to sort by.
  const tools = (bar) => all("a[href], summary, button", bar).filter((tool) => tool.checkVisibility());
  function makeToolbars() {
    all(".tools").forEach((bar) => bar.setAttribute("role", "toolbar"));
    all(".tools, .grid thead").forEach((bar) => tools(bar).forEach((tool, at) => { tool.tabIndex = at ? -1 : 0; }));
  }
  document.addEventListener("keydown", (event) => {
    const bar = event.target.closest(".tools, .grid thead");
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!bar || !step || event.target.matches("input, select")) return;
    event.preventDefault();
    const within = tools(bar);
    const next = within.at((within.indexOf(event.target) + step) % within.length);
    within.forEach((tool) => { tool.tabIndex = tool === next ? 0 : -1; });
    next.focus();
  });
  makeToolbars();

  // Copying: a link with data-copy="link" is copied itself, with "text" what it points at on the page, of any other the
  // text it leads to.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-copy]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const text = link.dataset.copy === "link"
      ? Promise.resolve(link.href)
      : link.dataset.copy === "text" ? Promise.resolve(find(link.hash).textContent)
      : fetch(link.href).then((answer) => answer.ok ? answer.text() : Promise.reject(answer.status));
    copy(text).then(() => say(`Copied ${link.textContent.replace(/^Copy /, "")}`), () => { location.href = link.href; });
  });

  async function copy(text) {
    if (navigator.clipboard && window.ClipboardItem) { // the promise goes in, so that the click still counts
      const blob = text.then((content) => new Blob([content], { type: "text/plain" }));
      return navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    }
    const area = document.createElement("textarea"); // plain http has no clipboard
    area.value = await text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("not copied");
  }

  // Suggestions: arrows choose, Enter opens, Escape closes.
  const options = () => all("#suggestions [role=option]");
  function show(open) {
    const [input, list] = [find("#q[role=combobox]"), find("#suggestions")];
    if (!input) return;
    list.hidden = !open;
    input.setAttribute("aria-expanded", String(open && options().length > 0));
    if (!open) choose(null);
  }
  function choose(option) {
    options().forEach((other) => other.setAttribute("aria-selected", String(other === option)));
    const input = find("#q");
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches("#q[role=combobox]")) return;
    const list = options();
    const chosen = list.findIndex((option) => option.getAttribute("aria-selected") === "true");
    if (event.key === "Escape") {
      if (find("#suggestions").hidden || !list.length) event.target.blur();
      else { event.preventDefault(); show(false); }
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!list.length) return;
      event.preventDefault();
      show(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(list[(chosen < 0 && step < 0 ? list.length : chosen) + step] ?? null);
    } else if (event.key === "Enter" && chosen >= 0 && !find("#suggestions").hidden) {
      event.preventDefault();
      list[chosen].click();
    }
  });
  document.addEventListener("focusout", (event) => {
    const form = event.target.closest?.(".search");
    if (form && !form.contains(event.relatedTarget)) show(false);
  });
  document.addEventListener("focusin", (event) => { if (event.target.matches("#q[role=combobox]")) show(true); });

  // After a swap: suggestions open; a new page gets the focus, and its own canonical address in the head.
  document.addEventListener("htmx:before:swap", (event) => {
    // A late answer must not open over a page that was asked for since.
    const { ctx } = event.detail;
    if (ctx.target?.id === "suggestions" && document.activeElement !== ctx.sourceElement) event.preventDefault();
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const { target } = event.detail.ctx;
    if (target?.id === "suggestions") return show(true);
    if (target?.id === "page") arrived();
  });
  function arrived() {
    const main = find("#main");
    makeToolbars();
    find("link[rel=canonical]").href = main.dataset.canonical;
    all("link[rel=alternate]").forEach((link) => link.remove());
    if (!location.hash) main.focus({ preventScroll: true });
    else document.getElementById(location.hash.slice(1))?.classList.add("target"); // :target is for whole pages only
    tryAgain();
  }
  addEventListener("hashchange", () => all("tr.target").forEach((row) => row.classList.remove("target")));
  // What may be there soon is asked for again. A page loaded as a whole does so by itself, but loses its #fragment: this is a little earlier.
  function tryAgain() {
    const retry = find("#main [data-retry]");
    if (retry) setTimeout(() => { if (retry.isConnected) location.reload(); }, 1000 * retry.dataset.retry - 500);
  }
  if (location.hash) tryAgain();

  // Runs of the model, and searches for pairs: the worker tells how far it has come. If that fails, the plain address is opened, and says why.
  let run;
  function follow(address, hash = "") {
    const working = find("#working");
    run?.close();
    run = new EventSource(address.replace(/[?]/, ".events?"));
    working.hidden = false;
    run.addEventListener("progress", (event) => {
      const { text, share } = JSON.parse(event.data);
      find("progress", working).value = share;
      find("span", working).textContent = text;
    });
    run.addEventListener("page", (event) => {
      run.close();
      const { html, canonical } = JSON.parse(event.data);
      const answer = new DOMParser().parseFromString(html, "text/html");
      document.title = answer.title;
      if (!history.state) history.replaceState({ htmx: true }, "", location.href); // so that htmx goes back there
      history.pushState({ htmx: true }, "", canonical + hash);
      find("#page").replaceChildren(...answer.body.childNodes);
      htmx.process(find("#page"));
      arrived();
      if (hash) find(hash)?.scrollIntoView();
    });
    for (const failure of ["fault", "error"]) run.addEventListener(failure, () => { run.close(); location.assign(address + hash); });
  }
  addEventListener("popstate", () => run?.close());
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("main a[href]");
    if (!link || !find("#working") || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const { origin, pathname, search, hash } = new URL(link.href);
    const takesLong = /[/]prompt[?].*\b(text|z)=|[/](vo|qk)[?].*\breading=/;
    if (origin !== location.origin || !takesLong.test(pathname + search)) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // htmx would ask for the page as well
    follow(pathname + search, hash);
  }, true);
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form.run");
    if (!form) return;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    if (String(query).length > 1500) return; // the server packs it
    event.preventDefault();
    follow(`${new URL(form.action).pathname}?${query}`);
  }, true);
})();
