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

  // The switches of a page are a toolbar, and so are the positions of a run: one stop of the Tab key, among which the arrows go. So are headings to sort by.
  const tools = (bar) => all("a[href], summary, button", bar).filter((tool) => tool.checkVisibility());
  function makeToolbars() {
    all(".tools").forEach((bar) => bar.setAttribute("role", "toolbar"));
    all(".tools, .strip, .grid thead").forEach((bar) => tools(bar).forEach((tool, at) => { tool.tabIndex = at ? -1 : 0; }));
    all(".tabs").forEach((bar) => { bar.scrollLeft = find("[aria-current]", bar).offsetLeft - bar.offsetLeft - 16; }); // on phones they scroll
  }
  document.addEventListener("keydown", (event) => {
    const bar = event.target.closest(".tools, .strip, .grid thead");
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!bar || !step || event.target.matches("input, select")) return;
    event.preventDefault();
    const within = tools(bar);
    const next = within.at((within.indexOf(event.target) + step) % within.length);
    within.forEach((tool) => { tool.tabIndex = tool === next ? 0 : -1; });
    next.focus();
  });
  makeToolbars();

  // Help: an old address such as /-/help#neuron-page leads on to the page that it names now.
  const place = location.pathname === "/-/help" && location.hash && document.getElementById(location.hash.slice(1))?.closest(".place");
  if (place) location.replace(find("a", place).href);

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

  // Previews: the first words of what a link leads to, once a mouse points at it or a key focuses it. They are read from its JSON, a few
  // kB, once. Tokens may be any text: they are written as text, and characters that cannot be seen by their number.
  const READ = /^([/][^/]+[/])(?:(ff[/]\d+[/]\d+|head[/]\d+[/]\d+[/](?:(?:sub|svd)[/]\d+|vo|qk))|(head[/]\d+[/]\d+)|(token[/]\d+))$/;
  const WORDS = 6, WAIT = 400, known = new Map();
  let previewed, its, soon;
  function get(path, query) {
    const address = `${path}.json?${new URLSearchParams(query)}`;
    if (known.size > 200) known.clear();
    if (!known.has(address)) known.set(address, fetch(address).then((answer) => answer.ok ? answer.json() : Promise.reject(answer.status)));
    return known.get(address);
  }
  async function firstWords({ pathname, searchParams }) { // lists, each with its name
    const [, model, parameter, head, token] = READ.exec(pathname);
    const query = Object.fromEntries(["lens", "hubs", "preset", "vocabulary"].map((name) => [name, searchParams.get(name) ?? ""]));
    if (token) {
      const { nearest, roles } = await get(model + token, { ...query, kind: "ff_value" });
      const places = roles.flatMap(({ role, places }) => places.slice(0, 2).map((at) => [`L${at.layer}N${at.index} ${role} it:`, at.first]));
      return [["like it:", nearest ?? []], ...places];
    }
    if (parameter) {
      const data = await get(model + parameter, { ...query, k: WORDS });
      if (data.matrix) return [[data.matrix, data.top]];
      return Object.entries({ ...data, ...data.vo, ...data.qk }).filter(([, value]) => Array.isArray(value?.top)).map(([name, { top }]) => [name, top]);
    }
    return Promise.all(["vo", "qk"].map(async (matrix) => {
      const ask = (lens) => get(`${model}${head}/${matrix}`, { ...query, lens, preset: "words", k: WORDS });
      return [matrix, (await ask("cosine").catch(() => ask(query.lens))).top]; // as the head's page, whose pairs are read best so
    }));
  }
  function element(name, text, parts = [], attributes = {}) {
    const made = Object.assign(document.createElement(name), { textContent: text }, attributes);
    made.append(...parts);
    return made;
  }
  const seen = (text) => text.replace(/[\p{C}\p{Z}]/gu, (at) => at === " " ? "␣" : `\\u{${at.codePointAt(0).toString(16)}}`) || "(no text)";
  const chip = ({ token, from, to }) => from
    ? element("span", "", [chip(from), "→", chip(to)], { className: "pair" }) : element("bdi", seen(token), [], { className: "t" });
  async function preview(link) {
    const lists = (await firstWords(new URL(link.href)).catch(() => [])).filter(([, entries]) => entries.length);
    if (previewed !== link || !link.isConnected || !lists.length) return;
    const rows = lists.map(([name, entries]) => element("p", "", [element("small", name), ...entries.slice(0, WORDS).flatMap((entry) => [" ", chip(entry)])]));
    its = link.title; // which the browser would show over the preview
    link.removeAttribute("title");
    link.setAttribute("aria-describedby", "preview");
    const box = element("div", "", its ? [element("p", its), ...rows] : rows, { id: "preview", role: "tooltip" });
    find("#main").append(box);
    const at = link.getBoundingClientRect(), { width, height } = box.getBoundingClientRect();
    const beside = at.right + width < innerWidth; // so that the rows below stay free
    const top = beside ? at.top : at.bottom;
    box.style.left = `${beside ? at.right : Math.max(0, innerWidth - width)}px`;
    box.style.top = `${top + height < innerHeight ? top : Math.max(0, (beside ? at.bottom : at.top) - height)}px`;
  }
  function hide() {
    clearTimeout(soon);
    find("#preview")?.remove();
    previewed?.removeAttribute("aria-describedby");
    if (its) previewed.title = its;
    previewed = its = null;
  }
  function point(target) {
    const link = target.closest?.("main a[href]:not([data-copy])");
    if (link && link === previewed || target.closest?.("#preview")) return;
    hide();
    if (!link || link.origin !== location.origin || link.pathname === location.pathname || !READ.test(link.pathname)) return;
    previewed = link;
    soon = setTimeout(preview, WAIT, link);
  }
  document.addEventListener("pointerover", (event) => { if (event.pointerType === "mouse") point(event.target); }); // and no finger
  document.addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) point(event.target); });
  for (const leaving of ["focusout", "click"]) document.addEventListener(leaving, hide, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", () => { if (find("#preview")) hide(); }, true);

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
    else enter();
  });
  function arrived() {
    const main = find("#main");
    makeToolbars();
    find("link[rel=canonical]").href = main.dataset.canonical;
    all("link[rel=alternate]").forEach((link) => link.remove());
    rememberPage();
    enter();
    showTheme();
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

  // What this browser remembers, and no server is told: the page of a model that was read last.
  const remembered = (name) => { try { return localStorage.getItem(`lexiscope.${name}`); } catch { return null; } };
  const remember = (name, value) => { try { localStorage.setItem(`lexiscope.${name}`, value); } catch { /* it is not allowed to */ } };
  const modelOf = (address) => decodeURIComponent(address.split(/[/?#]/)[1]);
  function pageRead() { // its address, which is one of this site, and its title; nothing if what is kept is damaged
    try {
      const [address, title] = JSON.parse(remembered("page"));
      return /^[/][^/\\]/.test(address) && modelOf(address) ? [address, `${title}`] : [];
    } catch { return []; }
  }
  function rememberPage() {
    const { canonical } = find("#main").dataset;
    if (find("#main > .crumbs") && !find("#main .ways")) remember("page", JSON.stringify([canonical, document.title.replace(/ · Lexiscope$/, "")]));
    const line = find("#go-on");
    const [address, title] = line ? pageRead() : [];
    if (!address || !all("#models th a").some((link) => modelOf(link.pathname) === modelOf(address))) return;
    const name = modelOf(address);
    find("a", line).href = address;
    find("a", line).textContent = title.includes(name) ? title : `${title} in ${name}`;
    line.hidden = false;
    searchIn(name);
  }
  // The model read last comes first at the home page's search box: the two buttons change places.
  function searchIn(name) {
    const [first, ...others] = all(".search.big button[data-model]");
    const chosen = others.find((button) => button.dataset.model === name);
    if (!chosen) return;
    const place = document.createComment("");
    chosen.replaceWith(place);
    first.replaceWith(chosen);
    place.replaceWith(first);
    [chosen.textContent, first.textContent] = [first.textContent, first.dataset.model];
    const input = find("#q");
    const address = chosen.getAttribute("formaction");
    input.form.setAttribute("action", address);
    input.setAttribute("hx-get", address + (chosen.value ? `?lens=${chosen.value}` : ""));
    input.placeholder = `Search ${name}`;
    input.setAttribute("aria-label", input.placeholder);
  }
  rememberPage();

  // The lens that was chosen last: links of entry lead to it, where it is one of those that data-entry names. What a page shows is said by its address alone.
  document.addEventListener("click", (event) => {
    const choice = event.target.closest?.('[aria-label^="Lens"] a:not(.term)');
    if (choice) remember("lens", new URL(choice.href).searchParams.get("lens") ?? "dot");
  }, true);
  function enter() {
    const lens = remembered("lens");
    const turn = (element, name) => {
      const address = new URL(element.getAttribute(name), location.origin);
      address.searchParams.delete("lens");
      if (lens !== "dot") address.searchParams.append("lens", lens);
      element.setAttribute(name, address.pathname + address.search);
    };
    all("[data-entry]").filter((entry) => entry.dataset.entry.split(" ").includes(lens)).forEach((entry) => {
      if (entry.matches("input")) turn(entry, "hx-get");
      else if (entry.matches("button")) Object.assign(entry, lens === "dot" ? { name: "", value: "" } : { name: "lens", value: lens });
      else (entry.matches("a") ? [entry] : all("a", entry)).forEach((link) => turn(link, "href"));
    });
  }
  enter();

  // The theme: as the system has it, light, dark, and so on around. Pictures of pages follow it.
  const root = document.documentElement;
  function showTheme() {
    all('picture source[srcset*="-dark."]').forEach((source) => {
      source.media = { light: "not all", dark: "all" }[root.dataset.theme] ?? "(prefers-color-scheme: dark)";
    });
  }
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".theme")) return;
    root.dataset.theme = { auto: "light", light: "dark" }[root.dataset.theme] ?? "auto";
    remember("theme", root.dataset.theme);
    showTheme();
    say(`Theme: ${root.dataset.theme === "auto" ? "as the system has it" : root.dataset.theme}`);
  });
  showTheme();

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
  document.addEventListener("keydown", (event) => { // Enter alone begins a line
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("form.run textarea")) event.target.form.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form.run");
    if (!form) return;
    const { pathname, searchParams } = new URL(form.action); // which has the pins, and what lists are kept to
    const query = new URLSearchParams([...[...new FormData(form)].filter(([, value]) => value), ...searchParams]);
    if (String(query).length > 1500) return; // the server packs it
    event.preventDefault();
    follow(`${pathname}?${query}`);
  }, true);
})();
