/** The page's frame (progress, stage, status line) and its pages of prose with buttons. */

import type { PageConfig } from "./config";
import { followSystem } from "./display";
import { element, prose } from "./dom";
import { isPlainStroke, keyName } from "./keys";
import { StopControl } from "./leaving/stop";
import { fill, type Messages } from "./messages";
import { keyButton } from "./plugins/stimulus";
import { frames } from "./timing/frames";

export interface PageContent {
  heading: string;
  text?: (string | null)[];
  html?: string | null;
  /** Elements of the page's own making, between the text and the buttons. */
  extra?: HTMLElement | null;
  /** The same, below the buttons. */
  below?: HTMLElement | null;
  tone?: "good" | "bad" | "plain";
  /** A class of the page's own. */
  kind?: string;
  position?: { page: number; pages: number } | null;
  /** Time in ms before which the page cannot be left by its main buttons. */
  minimum_ms?: number;
  /** The field that is to be filled in first; without one the heading takes the focus. */
  field?: HTMLElement | null;
  /** Whether what was entered on the page lets one leave it by its main buttons. */
  mayLeave?: () => boolean;
}

export interface Action {
  name: string;
  words: string;
  key?: string;
  quiet?: boolean;
}

/** The elements of a page. */
export function pageScreen(
  content: PageContent,
  messages: Messages,
  language: string,
  buttons: readonly HTMLElement[] = [],
): { screen: HTMLElement; title: HTMLElement } {
  const { heading, text = [], html, extra, below, tone = "plain", kind, position, minimum_ms = 0 } = content;
  const title = element("h2", { tabindex: "-1" }, heading);
  const screen = element(
    "section",
    { class: ["page", tone, kind].filter(Boolean).join(" ") },
    title,
    position && element("p", { class: "position" }, fill(messages.page_of, position)),
    ...text.map((words) => words && element("p", {}, words)),
    html ? prose(html, language, heading) : null,
    extra,
    buttons.length > 0 && element("div", { class: "actions" }, ...buttons),
    minimum_ms > 0 && element("p", { class: "wait" }),
    below,
  );
  return { screen, title };
}

/** The listeners of the page that is shown: what comes after it takes them away. */
let shown: AbortController | null = null;

/**
 * Show a page of prose and wait for one of its buttons.
 *
 * The heading takes the focus, so that a screen reader starts at the top and Tab leads to the buttons; on a page of one field, the field.
 */
export async function showPage(
  display: HTMLElement,
  content: PageContent,
  actions: readonly Action[],
  messages: Messages,
  language: string,
): Promise<{ action: string; duration: number; onset: number }> {
  const { minimum_ms = 0, mayLeave } = content;
  const buttons = actions.map((action) => {
    const button = keyButton(action.key ? [action.key] : [], messages, action.words);
    button.className = action.quiet ? "quiet" : "main";
    return button;
  });
  const { screen, title } = pageScreen(content, messages, language, buttons);
  const onset = await frames.draw(() => {
    if (content.kind !== "feedback") followSystem(); // feedback stands between stimuli
    display.replaceChildren(screen);
  });
  shown?.abort();
  const listening = new AbortController();
  shown = listening;
  window.scrollTo(0, 0);
  (content.field ?? title).focus({ preventScroll: true });
  return new Promise((resolve) => {
    const main = buttons.filter((_, index) => !actions[index]!.quiet);
    const stopWaiting = minimum_ms > 0 ? holdBack(screen, main, onset + minimum_ms, messages) : null;
    const take = (event: Event, action: Action): void => {
      if (event.timeStamp < onset) return;
      if (!action.quiet && (event.timeStamp < onset + minimum_ms || mayLeave?.() === false)) return;
      listening.abort();
      stopWaiting?.();
      resolve({ action: action.name, duration: event.timeStamp - onset, onset });
    };
    for (const [index, action] of actions.entries()) {
      buttons[index]!.addEventListener("click", (event) => take(event, action), { signal: listening.signal });
    }
    const press = (event: KeyboardEvent): void => {
      const onControl = event.target instanceof HTMLElement && event.target.closest("a, button, input, textarea, summary");
      if (onControl || event.repeat || !isPlainStroke(event)) return;
      const action = actions.find((candidate) => candidate.key && keyName(candidate.key) === keyName(event.key));
      if (!action) return;
      event.preventDefault(); // the space bar must not scroll the page
      take(event, action);
    };
    document.addEventListener("keydown", press, { signal: listening.signal });
  });
}

/** Hold buttons back until a time of the page's clock, and say how long that is. */
function holdBack(screen: HTMLElement, buttons: HTMLElement[], until: number, messages: Messages): () => void {
  const words = screen.querySelector<HTMLElement>(".wait")!;
  for (const button of buttons) button.setAttribute("aria-disabled", "true");
  const leave = frames.onEachFrame((now) => {
    const seconds = Math.ceil((until - now) / 1000);
    const told = seconds > 0 ? fill(messages.go_on_in, { seconds }) : "";
    if (words.textContent !== told) words.textContent = told;
    if (now < until) return;
    for (const button of buttons) button.removeAttribute("aria-disabled");
    leave();
  });
  return leave;
}

export class Frame {
  readonly stage: HTMLElement;
  readonly stop: StopControl;
  private readonly bar: HTMLElement;
  private readonly fill: HTMLElement;
  private readonly status: HTMLElement;

  constructor(
    readonly root: HTMLElement,
    config: PageConfig,
    readonly messages: Messages,
  ) {
    this.fill = element("div", { class: "done" });
    this.bar = element(
      "div",
      {
        class: "progress",
        role: "progressbar",
        "aria-label": messages.progress,
        "aria-valuemin": "0",
        "aria-valuemax": "100",
        "aria-valuenow": "0",
        hidden: true,
      },
      this.fill,
    );
    this.stage = element("div", { id: "wrods-stage" });
    this.status = element("p", { class: "status", role: "status" });
    const badge =
      config.mode === "session"
        ? null
        : element("p", { class: "badge" }, config.mode === "preview" ? messages.preview : messages.pilot);
    this.stop = new StopControl(root, messages);
    const corner = element("div", { class: "corner" }, badge, this.stop.button);
    root.replaceChildren(this.bar, this.stage, corner, this.status);
  }

  /** Show how much of the session is done, from 0 to 1; null hides the bar. */
  progress(share: number | null): void {
    this.bar.hidden = share === null;
    const percent = Math.round(100 * (share ?? 0));
    this.bar.setAttribute("aria-valuenow", String(percent));
    this.fill.style.width = `${percent}%`;
  }

  /** Say why the page waits, or nothing more. */
  waiting(isWaiting: boolean, why = this.messages.waiting): void {
    const words = isWaiting ? why : "";
    if (this.status.textContent !== words) this.status.textContent = words;
  }
}
