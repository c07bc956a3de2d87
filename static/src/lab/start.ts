/**
 * The start screen where an experimenter enters participants' numbers.
 *
 * Whom a session belongs to is asked of the server and decided here, by a person: a number that has begun is continued or
 * ended with a reason, one that has taken part is refused. Nothing of it is read from the browser's own storage.
 */

import type { PageConfig } from "../config";
import { element } from "../dom";
import { fill, type Messages, refusalText } from "../messages";
import { type Action, type Frame, showPage } from "../page";
import type { Reply } from "../sending/api";
import type { Trouble } from "../start";
import { lacking, LONGEST_NAME, Station, stationName, surroundings } from "./station";

/** A session that can go on, as the server tells it. */
export interface Unfinished {
  participant: string;
  next_trial: number;
  trials: number;
  last_seen_at: string;
  station: string | null;
}

export interface Standing {
  participant: string | null;
  state: "new" | "unfinished" | "finished" | "ended" | "taken" | null;
  unfinished: Unfinished[];
}

/** Whose session is to be opened. */
export interface Entry {
  participant: string | null;
  station: string | null;
  pin: string | null;
  /** An experimenter chose to go on with a session that was begun: it is taken from any tab that still holds it. */
  take: boolean;
}

export interface Desk {
  start(body: object): Promise<Reply<Standing>>;
  end(body: object): Promise<Reply<{ ended: boolean }>>;
  /** Ask until the server replies. */
  insist<T>(request: () => Promise<Reply<T>>): Promise<Reply<T>>;
  /** How many answers of earlier participants wait in this browser. */
  waiting(): Promise<number>;
}

/** An entry for somebody whose number is known already, or who has none. */
export function entryOf(participant: string | null, config: PageConfig): Entry {
  return { participant, station: config.station ?? new Station().name, pin: null, take: false };
}

type Choice = { name: "start" | "rename" } | { name: "go_on" | "end"; session: Unfinished };

const COUNT_EVERY_MS = 1000;

export class StartScreen {
  constructor(
    private readonly config: PageConfig,
    private readonly frame: Frame,
    private readonly messages: Messages,
    private readonly desk: Desk,
    private readonly station: Station = new Station(),
  ) {
    if (config.station) this.station.rename(stationName(config.station, messages.station));
  }

  /** Show the screen until an experimenter has decided whose session is to run. */
  async ask(trouble: Trouble | null): Promise<Entry> {
    void navigator.storage?.persist?.().catch(() => false);
    if (this.config.stations && !this.station.name) await this.nameStation();
    let problem = trouble && trouble.text.join(" ");
    let typed = "";
    let heading = trouble ? (trouble.heading ?? this.messages.start_failed) : this.messages.welcome;
    for (;;) {
      const field = this.numberField(typed);
      const choice = await this.show(field, heading, problem);
      heading = this.messages.welcome;
      problem = null;
      typed = field.value.trim();
      if (choice.name === "rename") await this.nameStation();
      else if (choice.name === "end") problem = await this.end(choice.session);
      else if (choice.name === "go_on") {
        const entry = await this.goOn(choice.session);
        if (typeof entry !== "string") return entry;
        problem = entry;
      } else {
        const entry = await this.enter(typed);
        if (typeof entry !== "string") return entry;
        problem = entry;
      }
    }
  }

  /** What becomes of a typed number: an entry, or why there is none (nothing where another number is to be typed). */
  private async enter(typed: string): Promise<Entry | string> {
    const { messages } = this;
    if (!typed) return messages.participant_missing;
    const reply = await this.desk.insist(() => this.desk.start({ participant: typed, station: this.station.name }));
    const { participant, state, unfinished = [] } = reply.body;
    if (reply.status === 404) return this.entry(typed, null, false); // the server has no stations and decides by itself
    if (reply.status !== 200 || !participant) return refusalText(reply.status, reply.body, messages).join(" ");
    if (state === "finished") return fill(messages.number_finished, { participant });
    if (state === "ended") return fill(messages.number_ended, { participant });
    if (state === "taken") return fill(messages.number_taken, { participant });
    const [session] = unfinished;
    if (!session) return this.entry(participant, null, false);
    return this.goOn(session);
  }

  private entry(participant: string, pin: string | null, take: boolean): Entry {
    return { participant, station: this.station.name, pin, take };
  }

  /** Continue a session after saying how it stands; words (or none) where another number is to be typed. */
  private async goOn(session: Unfinished): Promise<Entry | string> {
    const { messages } = this;
    const pin = this.pinField();
    const actions: Action[] = [
      { name: "go_on", words: this.goOnWords(session) },
      { name: "end", words: fill(messages.end_session, { participant: session.participant }), quiet: true },
      { name: "back", words: messages.another_number, quiet: true },
    ];
    const heading = fill(messages.unfinished_title, { participant: session.participant });
    const content = { heading, text: [this.standing(session)], extra: labelled(pin, messages.pin), field: pin };
    const { action } = await showPage(this.frame.stage, content, actions, messages, this.config.language);
    if (action === "go_on") return this.entry(session.participant, pin.value.trim(), true);
    return action === "end" ? this.end(session, pin.value.trim()) : "";
  }

  /** End a session with a reason; resolves with what to say of it, nothing where it does not end after all. */
  private async end(session: Unfinished, typedPin = ""): Promise<string> {
    const { messages } = this;
    const { participant } = session;
    const reason = element("input", { id: "wrods-reason", type: "text", dir: "auto", maxlength: "500", autocomplete: "off" });
    const pin = this.pinField();
    pin.value = typedPin;
    let problem = "";
    for (;;) {
      const extra = element(
        "div",
        {},
        labelled(reason, messages.end_reason),
        labelled(pin, messages.pin),
        element("p", { class: "problem", role: "alert" }, problem),
      );
      const words = fill(messages.end_now, { participant });
      const actions: Action[] = [
        { name: "end", words },
        { name: "back", words: messages.back, quiet: true },
      ];
      const content = { heading: words, text: [this.standing(session), messages.end_text], extra, field: reason };
      const { action } = await showPage(this.frame.stage, content, actions, messages, this.config.language);
      if (action === "back") return "";
      if (!reason.value.trim()) {
        problem = messages.end_reason_missing;
        continue;
      }
      const body = {
        participant,
        reason: reason.value.trim(),
        station: this.station.name,
        pin: pin.value.trim(),
      };
      const reply = await this.desk.insist(() => this.desk.end(body));
      if (reply.status === 200) return fill(messages.ended_now, { participant });
      problem = reply.status === 403 ? messages.pin_wrong : refusalText(reply.status, reply.body, messages).join(" ");
    }
  }

  private async nameStation(): Promise<void> {
    const { messages } = this;
    const field = element("input", {
      id: "wrods-station",
      type: "text",
      dir: "auto",
      maxlength: String(LONGEST_NAME),
      autocomplete: "off",
      spellcheck: "false",
    });
    field.value = this.station.name ?? "";
    let problem = "";
    for (;;) {
      const extra = element(
        "div",
        {},
        labelled(field, messages.station_name),
        element("p", { class: "problem", role: "alert" }, problem),
      );
      const content = { heading: messages.station_title, text: [messages.station_text], extra, field };
      const actions = [{ name: "keep", words: messages.station_keep }];
      await showPage(this.frame.stage, content, actions, messages, this.config.language);
      const name = stationName(field.value, messages.station);
      if (name) return this.station.rename(name);
      problem = messages.station_missing;
    }
  }

  private numberField(typed: string): HTMLInputElement {
    const field = element("input", {
      id: "wrods-participant",
      type: "text",
      dir: "auto",
      maxlength: "64",
      autocomplete: "off",
      spellcheck: "false",
      autocapitalize: "characters",
      "aria-describedby": "wrods-problem",
    });
    field.value = typed;
    return field;
  }

  private pinField(): HTMLInputElement {
    return element("input", { id: "wrods-pin", type: "password", maxlength: "64", autocomplete: "off" });
  }

  private async show(field: HTMLInputElement, heading: string, trouble: string | null): Promise<Choice> {
    const { messages, config, station } = this;
    const leaving = new AbortController();
    let press: (choice: Choice) => void = () => {};
    const pressed = new Promise<Choice>((resolve) => (press = resolve));
    const left = element("section", { class: "unfinished", hidden: true, "aria-labelledby": "wrods-unfinished" });
    const unsent = element("p", { class: "unsent", role: "status" });
    const begin = element("button", { type: "button", class: "main" }, messages.start);
    begin.addEventListener("click", () => press({ name: "start" }));
    const extra = element(
      "div",
      { class: "start" },
      station.name && this.stationLine(station.name, () => press({ name: "rename" })),
      labelled(field, messages.participant_number),
      element("p", { class: "problem", id: "wrods-problem", role: "alert" }, trouble ?? ""),
      element("div", { class: "actions" }, begin),
      left,
      unsent,
      this.notice(),
    );
    const text = [station.name ? null : messages.welcome_text];
    void showPage(this.frame.stage, { heading, text, extra, field }, [], messages, config.language);
    const list = (): Promise<void> => this.listUnfinished(left, press, leaving.signal);
    void list();
    void this.countUnsent(unsent, list, leaving.signal);
    try {
      return await pressed;
    } finally {
      leaving.abort();
    }
  }

  private async listUnfinished(
    place: HTMLElement,
    press: (choice: Choice) => void,
    leaving: AbortSignal,
  ): Promise<void> {
    const { messages, station } = this;
    if (!station.name) return;
    const reply = await this.desk.start({ station: station.name }).catch(() => null);
    const sessions = reply?.status === 200 ? (reply.body.unfinished ?? []) : [];
    if (leaving.aborted || sessions.length === 0) return;
    const rows = sessions.map((session) => {
      const go = element("button", { type: "button" }, this.goOnWords(session));
      const end = element(
        "button",
        { type: "button", class: "quiet" },
        fill(messages.end_session, { participant: session.participant }),
      );
      go.addEventListener("click", () => press({ name: "go_on", session }));
      end.addEventListener("click", () => press({ name: "end", session }));
      return element(
        "li",
        {},
        element("p", {}, this.standing(session)),
        element("div", { class: "actions" }, go, end),
      );
    });
    place.replaceChildren(
      element("h3", { id: "wrods-unfinished" }, messages.unfinished_here),
      element("ul", {}, ...rows),
    );
    place.hidden = false;
  }

  /** Say how many answers wait, and ask again what is unfinished once the last of them is sent. */
  private async countUnsent(place: HTMLElement, onSent: () => Promise<void>, leaving: AbortSignal): Promise<void> {
    for (let before = 0; !leaving.aborted; ) {
      const count = await this.desk.waiting().catch(() => 0);
      if (before > 0 && count === 0) void onSent();
      before = count;
      const words = count > 0 ? fill(this.messages.unsent, { count }) : "";
      if (place.textContent !== words) place.textContent = words;
      await new Promise((resolve) => setTimeout(resolve, COUNT_EVERY_MS));
    }
  }

  private stationLine(name: string, onRename: () => void): HTMLElement {
    const rename = element("button", { type: "button", class: "quiet" }, this.messages.station_rename);
    rename.addEventListener("click", onRename);
    return element("div", { class: "station" }, element("strong", { translate: "no", dir: "auto" }, name), rename);
  }

  /** What this browser lacks, in words; null on a station that is set up well. */
  private notice(): HTMLElement | null {
    const { messages, config } = this;
    const lacks = lacking(surroundings());
    if (lacks.length === 0) return null;
    const words = { clock: messages.lacks_clock, storage: messages.lacks_storage };
    const help =
      config.station_help && element("p", {}, element("a", { href: config.station_help }, messages.lacks_help));
    return element(
      "aside",
      { class: "lacking", "aria-label": messages.lacks_title },
      element("p", {}, element("strong", {}, messages.lacks_title)),
      element("ul", {}, ...lacks.map((one) => element("li", {}, words[one]))),
      element("p", {}, messages.lacks_safe),
      help,
    );
  }

  private goOnWords(session: Unfinished): string {
    const { continue_at, continue_after } = this.messages;
    return fill(isAnswered(session) ? continue_after : continue_at, { participant: session.participant, trial: session.next_trial });
  }

  private standing(session: Unfinished): string {
    const { unfinished_text, unfinished_at, unfinished_done } = this.messages;
    const when = new Date(session.last_seen_at).toLocaleString(this.config.language, {
      dateStyle: "medium",
      timeStyle: "short",
    });
    const values = {
      participant: session.participant,
      trial: session.next_trial,
      trials: session.trials,
      when,
      station: session.station ?? "",
    };
    if (session.trials === 0) return `${session.participant}: ${when}`; // trials come with a list
    if (isAnswered(session)) return fill(unfinished_done, values);
    const elsewhere = session.station !== null && session.station !== this.station.name;
    return fill(elsewhere ? unfinished_at : unfinished_text, values);
  }
}

/** Whether nothing but the screens after the last trial is left; a session without a list has no trials yet. */
function isAnswered(session: Unfinished): boolean {
  return session.trials > 0 && session.next_trial > session.trials;
}

/** A field under its label. Enter goes to the next field that is empty, else it presses the page's main button. */
function labelled(field: HTMLInputElement, words: string): HTMLElement {
  field.onkeydown = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    const page = field.closest(".page");
    const empty = Array.from(page?.querySelectorAll("input") ?? []).find((other) => !other.value.trim());
    if (empty && field.value.trim()) empty.focus();
    else page?.querySelector<HTMLButtonElement>("button.main")?.click();
  };
  return element("div", { class: "field" }, element("label", { for: field.id }, words), field);
}
