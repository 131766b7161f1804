// The lists of an inspector: only what is seen is in the page. Rows are of one height, so that a place in the
// list is a place on the screen, and the next window is fetched when it is near.
"use strict";
(() => {
  const SPARE = 20; // rows above and below what is seen
  const MOST = 100; // the server gives no more at once
  const said = document.getElementById("said");
  const detail = document.getElementById("detail");

  class List {
    constructor(box) {
      this.box = box;
      this.space = box.querySelector(".space");
      this.window = box.querySelector(".window");
      this.count = Number(box.dataset.count);
      this.only = box.dataset.only;
      this.first = 0;
      this.at = 0;
      this.asked = null;
      this.layOut();
      box.addEventListener("scroll", () => this.onScroll(), { passive: true });
      box.addEventListener("keydown", (event) => this.onKey(event));
      box.addEventListener("focusin", (event) => {
        const row = event.target.closest(".row");
        if (row) this.at = Number(row.dataset.place);
      });
      new ResizeObserver(() => this.layOut()).observe(box);
      this.onScroll();
    }

    get rows() {
      return this.window.getElementsByClassName("row");
    }

    layOut() {
      const row = this.rows[0];
      if (row || !this.height) this.height = row ? row.getBoundingClientRect().height : 1;
      this.space.style.height = `${this.count * this.height}px`;
      this.box.style.maxHeight = this.count ? `${this.count * this.height + 2}px` : "4rem";
      this.window.style.top = `${this.first * this.height}px`;
    }

    onScroll() {
      if (this.waits) return;
      this.waits = true;
      requestAnimationFrame(() => {
        this.waits = false;
        this.fill();
      });
    }

    async fill() {
      const seen = Math.ceil(this.box.clientHeight / this.height);
      const top = Math.floor(this.box.scrollTop / this.height);
      const last = Math.min(this.count, top + seen);
      const missing = this.stale || top < this.first || last > this.first + this.rows.length;
      const near =
        top - this.first < SPARE / 2 && this.first > 0 ||
        this.first + this.rows.length - last < SPARE / 2 && this.first + this.rows.length < this.count;
      if (!missing && !near) return;
      const start = Math.max(0, top - SPARE);
      const size = Math.min(MOST, seen + 2 * SPARE);
      const only = this.only ? `&only=${this.only}` : "";
      if (this.asked && this.asked.start === start && this.asked.only === only) return;
      if (this.asked) this.asked.stop.abort();
      const asked = (this.asked = { start, only, stop: new AbortController() });
      this.window.setAttribute("aria-busy", "true");
      let failed = false;
      try {
        const answer = await fetch(`${this.box.dataset.rows}${only}&start=${start}&count=${size}`, {
          signal: asked.stop.signal,
        });
        if (!answer.ok) throw new Error(String(answer.status));
        const made = document.createElement("template");
        made.innerHTML = await answer.text();
        if (!made.content.children.length && this.count) throw new Error("no messages there");
        this.stale = false;
        const focused = this.window.contains(document.activeElement) ? this.at : null;
        this.first = start;
        this.window.replaceChildren(...made.content.children);
        this.layOut();
        if (focused !== null) this.row(focused)?.focus({ preventScroll: true });
        if (this.wanted !== undefined) this.focus(this.wanted);
      } catch (error) {
        failed = error.name !== "AbortError";
        if (failed) say("The messages could not be fetched: is `trimtab inspect` still running?");
      } finally {
        if (this.asked === asked) {
          this.asked = null;
          this.window.setAttribute("aria-busy", "false");
          if (!failed) this.onScroll(); // else the next scroll asks again, and not every frame
        }
      }
    }

    row(at) {
      return this.stale ? undefined : this.rows[at - this.first];
    }

    focus(at) {
      this.at = Math.max(0, Math.min(this.count - 1, at));
      const top = this.at * this.height;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      const bottom = top + this.height - this.box.clientHeight;
      if (bottom > this.box.scrollTop) this.box.scrollTop = bottom;
      const row = this.row(this.at);
      this.wanted = row ? undefined : this.at;
      if (row) row.focus({ preventScroll: true });
    }

    // Another filter is another list: its rows are fetched, and the pill that stands for it is pressed.
    filter(only) {
      if (!this.only || only === this.only) return;
      this.only = only;
      for (const pill of document.querySelectorAll("[data-filter]")) {
        const chosen = pill.dataset.filter === only;
        pill.setAttribute("aria-pressed", String(chosen));
        if (chosen) this.count = Number(pill.dataset.number);
      }
      this.stale = true;
      this.box.scrollTop = 0;
      this.first = this.at = 0;
      this.window.replaceChildren();
      this.layOut();
      this.fill();
    }

    jump(at, only) {
      if (only) this.filter(only);
      this.box.scrollIntoView({ block: "nearest" });
      this.box.scrollTop = Math.max(0, (at - 1) * this.height);
      this.focus(at);
    }

    onKey(event) {
      const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
      const isRow = event.target.classList.contains("row");
      if (!isRow && event.target !== this.box) return;
      if (event.key in steps) this.focus(isRow ? this.at + steps[event.key] : this.at);
      else if (event.key === "Home") this.focus(0);
      else if (event.key === "End") this.focus(this.count - 1);
      else if (event.key === "Enter" && isRow) open(this, event.target);
      else return;
      event.preventDefault();
    }
  }

  const lists = new WeakMap();

  function findLists() {
    for (const box of document.querySelectorAll(".list")) if (!lists.has(box)) lists.set(box, new List(box));
  }

  function say(text) {
    said.textContent = text;
  }

  // What changed is said once it stands in the page, by a live region that was there before.
  function tell(nodes) {
    for (const node of nodes) {
      const line = node.nodeType === 1 && (node.matches("[data-said]") ? node : node.querySelector("[data-said]"));
      if (line) say(line.textContent);
    }
  }

  async function open(list, row) {
    const link = row.querySelector("a.undo");
    if (link) return link.click();
    if (!row.querySelector(".open")) return;
    const where = list.box.dataset.rows.replace("/rows", "/message");
    const answer = await fetch(`${where}&at=${row.dataset.at}`);
    detail.innerHTML = await answer.text();
    detail.showModal();
  }

  document.addEventListener("click", (event) => {
    const jump = event.target.closest("[data-jump]");
    if (jump) {
      event.preventDefault();
      const box = document.querySelector(".list");
      if (box) lists.get(box).jump(Number(jump.dataset.jump), jump.dataset.only);
    }
    const pill = event.target.closest("[data-filter]");
    if (pill) {
      event.preventDefault();
      lists.get(document.querySelector(".list")).filter(pill.dataset.filter);
      say(pill.textContent);
    }
    const button = event.target.closest(".open");
    if (button) open(lists.get(button.closest(".list")), button.closest(".row"));
    if (event.target === detail) detail.close();
  });

  // A pill is a button that is a link where no script runs: the space bar presses it, too.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("[data-filter]")) return;
    event.preventDefault();
    event.target.click();
  });

  // Another model has a room of its own: the budget of the one before is not asked for with it.
  document.addEventListener("change", (event) => {
    if (event.target.id === "model") document.getElementById("budget").value = "";
  }, true);

  // The slider and the field beside it are one number; the field is what is sent.
  document.addEventListener("input", (event) => {
    const [slider, field] = ["slider", "budget"].map((id) => document.getElementById(id));
    if (event.target === slider) field.value = slider.value;
    if (event.target === field) slider.value = field.value;
  }, true);
  function setSlider() {
    const slider = document.getElementById("slider");
    const view = document.getElementById("view")?.dataset;
    if (!slider) return;
    slider.disabled = !view?.most;
    if (slider.disabled) return;
    [slider.min, slider.max, slider.step] = [view.least, view.most, view.step];
    if (document.activeElement !== slider) slider.value = view.window;
    const field = document.getElementById("budget");
    if (!field.value) field.value = view.window;
  }

  new MutationObserver((changes) => {
    findLists();
    setSlider();
    for (const change of changes) if (!change.target.closest?.(".window")) tell(change.addedNodes);
  }).observe(document.getElementById("main"), { childList: true, subtree: true });
  findLists();
  setSlider();
})();
