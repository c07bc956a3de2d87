/** A copy of the consent form for the participant to keep: one file that needs neither network nor program. */

import { element } from "../dom";
import { fill, type Messages } from "../messages";
import { saveFile } from "../sending/copy";

export interface Receipt {
  study: string;
  title: string;
  language: string;
  direction: string;
  /** The text as it was shown, sanitised by the server, and the first digits of its SHA-256. */
  html: string;
  version: string;
  /** When the participant agreed (ISO 8601); true where that was in another browser, false who declined, null undecided. */
  agreed: string | boolean | null;
  participant: string | null;
}

/** A moment as people of a language write it. */
export function moment(iso: string, language: string): string {
  return new Date(iso).toLocaleString(language, { dateStyle: "long", timeStyle: "short" });
}

/** A day (YYYY-MM-DD) as people of a language write it. */
export function day(iso: string, language: string): string {
  return new Date(`${iso}T12:00:00`).toLocaleDateString(language, { dateStyle: "long" });
}

export function receiptPage(receipt: Receipt, messages: Messages): string {
  const { title, language, direction, html, version, agreed, participant } = receipt;
  const decided =
    agreed === null
      ? messages.receipt_open
      : agreed === false
        ? messages.receipt_declined
        : agreed === true
          ? messages.receipt_agreed_before
          : fill(messages.receipt_agreed, { when: moment(agreed, language) });
  const body = element("main", {}, element("h1", {}, title), element("h2", {}, messages.receipt_title), element("hr"));
  body.insertAdjacentHTML("beforeend", html);
  body.append(
    element("hr"),
    element("p", {}, decided),
    participant === null ? "" : element("p", {}, fill(messages.participant_given, { participant })),
    participant === null ? "" : element("p", {}, fill(messages.withdraw_later, { participant })),
    element("p", {}, fill(messages.receipt_version, { version })),
  );
  const head = element("head", {}, element("meta", { charset: "utf-8" }), element("title", {}, title), style());
  head.prepend(element("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }));
  const page = element("html", { lang: language, dir: direction }, head, element("body", {}, body));
  return `<!doctype html>\n${page.outerHTML}\n`;
}

function style(): HTMLElement {
  return element(
    "style",
    {},
    ":root { color-scheme: light dark; } body { margin: 0; font: 1.05rem/1.5 system-ui, sans-serif; } " +
      "main { max-width: 40rem; margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere; } h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; font-weight: 400; }",
  );
}

/** The button that saves the copy, and says so. */
export function receiptButton(receipt: Receipt, messages: Messages): HTMLElement {
  const button = element("button", { type: "button", class: "quiet" }, messages.receipt_save);
  const told = element("p", { class: "told", role: "status" });
  button.addEventListener("click", () => {
    saveFile(`consent-${receipt.study}.html`, "text/html", receiptPage(receipt, messages));
    told.textContent = messages.receipt_saved;
  });
  return element("div", { class: "receipt" }, button, told);
}
