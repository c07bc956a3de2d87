/**
 * The Stop control of a session: a quiet button in a corner of every screen, and the dialog behind it (the button, or
 * Escape) that offers to continue, to finish later, or to stop with or without the answers.
 */

import { element } from "../dom";
import { isPlainStroke } from "../keys";
import type { Messages } from "../messages";
import { interruption } from "../timing/interruption";

export type StopChoice = "later" | "keep" | "delete";

export interface StopOffer {
  /** How the session can be finished later; null where the study does not allow it. */
  later: () => string | null;
  /** What the platform that pays asks for; empty where it asks for nothing. */
  payment: string;
  /** What saves a copy of the consent form; null where the study has none. */
  receipt: () => HTMLElement | null;
  /** The participant goes on; `wasCut` says whether an item was taken off the screen. */
  onContinue: (wasCut: boolean) => void;
}

export class StopControl {
  readonly button: HTMLButtonElement;
  private listening = new AbortController();
  private isOpen = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly messages: Messages,
  ) {
    const attributes = { type: "button", class: "stop", "aria-haspopup": "dialog", "aria-keyshortcuts": "Escape", hidden: true };
    this.button = element("button", attributes, messages.stop);
    // a click leaves the focus where it was, so that the keys of a page go on working after the dialog
    this.button.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  /** Show the control; resolves with the way in which the participant leaves, never while they go on. */
  offer(offer: StopOffer): Promise<StopChoice> {
    this.withdraw();
    this.listening = new AbortController();
    this.button.hidden = false;
    return new Promise((resolve) => {
      const open = (event: Event): void => {
        if (this.isOpen) return;
        event.preventDefault(); // or the same stroke of Escape would close the dialog
        this.isOpen = true;
        void this.ask(offer).then((choice) => {
          this.isOpen = false;
          if (choice !== null) {
            this.withdraw();
            resolve(choice);
          }
        });
      };
      const { signal } = this.listening;
      this.button.addEventListener("click", open, { signal });
      const press = (event: KeyboardEvent): void => {
        const isOurs = event.key === "Escape" && !event.repeat && !event.defaultPrevented;
        if (isOurs && isPlainStroke(event)) open(event);
      };
      document.addEventListener("keydown", press, { signal });
    });
  }

  /** Take the control away: the session is over. */
  withdraw(): void {
    this.listening.abort();
    this.button.hidden = true;
  }

  private async ask(offer: StopOffer): Promise<StopChoice | null> {
    interruption.begin();
    const isCut = interruption.isCut;
    const later = offer.later();
    const { messages } = this;
    for (;;) {
      const chosen = await openDialog(this.root, messages.stop_title, (choose) => {
        const option = (name: StopChoice, words: string, meaning: string): HTMLElement => {
          const id = `wrods-stop-${name}`;
          const button = element("button", { type: "button", class: "quiet", "aria-describedby": id }, words);
          button.addEventListener("click", () => choose(name));
          return element("li", {}, button, element("p", { id }, meaning));
        };
        const go = element("button", { type: "button", class: "main", autofocus: true }, messages.stop_continue);
        go.addEventListener("click", () => choose(null));
        return [
          element("p", {}, [messages.stop_text, offer.payment].filter(Boolean).join(" ")),
          isCut && element("p", {}, messages.stop_item_again),
          element("div", { class: "actions" }, go),
          element(
            "ul",
            { class: "ways" },
            later !== null && option("later", messages.stop_later, later),
            option("keep", messages.stop_keep, messages.stop_keep_text),
            option("delete", messages.stop_delete, messages.stop_delete_text),
          ),
          offer.receipt(),
        ];
      });
      if (chosen === null) {
        offer.onContinue(isCut);
        interruption.end();
        return null;
      }
      if (chosen !== "delete" || (await confirmDeletion(this.root, messages))) return chosen as StopChoice;
    }
  }
}

/** Ask once more before answers are deleted. */
export async function confirmDeletion(root: HTMLElement, messages: Messages): Promise<boolean> {
  const chosen = await openDialog(root, messages.delete_title, (choose) => {
    const back = element("button", { type: "button", class: "quiet", autofocus: true }, messages.back);
    back.addEventListener("click", () => choose(null));
    const erase = element("button", { type: "button", class: "main" }, messages.delete_now);
    erase.addEventListener("click", () => choose("delete"));
    return [element("p", {}, messages.delete_text), element("div", { class: "actions" }, erase, back)];
  });
  return chosen === "delete";
}

type Part = HTMLElement | null | false;

/** Open a dialog over the page and wait for a choice; Escape chooses null. The focus goes back to where it was. */
function openDialog(
  root: HTMLElement,
  heading: string,
  fill: (choose: (name: string | null) => void) => Part[],
): Promise<string | null> {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const dialog = element("dialog", { class: "leave", "aria-labelledby": "wrods-leave" });
    let chosen: string | null = null;
    const parts = fill((name) => {
      chosen = name;
      dialog.close();
    });
    dialog.append(element("h2", { id: "wrods-leave" }, heading), ...parts.filter((part) => part instanceof HTMLElement));
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
      resolve(chosen);
    });
    root.append(dialog);
    dialog.showModal();
  });
}
