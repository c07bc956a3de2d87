/**
 * The end of a visit: the code comes when server and page agree on how many answers there are. Where that takes longer than
 * the study waits, a code for manual review and a copy of the answers are offered; meanwhile the page goes on trying.
 */

import type { PageConfig } from "./config";
import { element, prose } from "./dom";
import { fill, type Messages } from "./messages";
import { type Frame, showPage } from "./page";
import type { Finished, Reply } from "./sending/api";
import { answersCopy, reviewCode, saveFile, sessionId } from "./sending/copy";
import type { Outbox } from "./sending/outbox";

export interface Unconfirmed {
  address: string;
  token: string;
}

export class Finishing {
  constructor(
    private readonly config: PageConfig,
    private readonly frame: Frame,
    private readonly messages: Messages,
    private readonly outbox: Outbox,
  ) {}

  /**
   * Show that answers are being saved until the server confirms the session.
   *
   * `settle` asks the server, for as long as it takes; a reply other than 200 says that asking again needs the reader, who may
   * not come back: a debriefing that they have not read is shown meanwhile.
   */
  async confirmed(session: Unconfirmed, settle: () => Promise<Reply<Finished>>, debrief: string | null = null): Promise<Reply<Finished>> {
    let asking: Promise<Reply<Finished>> | null = null;
    for (;;) {
      this.showSaving();
      asking ??= settle();
      const reply = await Promise.race([asking, sleep(this.config.finish_wait_ms)]);
      if (reply?.status === 200) return reply;
      if (reply) asking = null;
      const told = await Promise.race([this.showStuck(session, debrief), asking ?? never()]);
      if (told?.status === 200) return told;
      if (told) asking = null;
    }
  }

  showSaving(): void {
    const { saving_title, saving_text } = this.messages;
    this.showWaiting(saving_title, saving_text);
  }

  showErasing(): void {
    this.showWaiting(this.messages.deleting_title, this.messages.deleting_text);
  }

  private showWaiting(heading: string, words: string): void {
    const content = { heading, text: [words] };
    void showPage(this.frame.stage, content, [], this.messages, this.config.language);
  }

  codeBox(code: string, words: string, title: string | null = this.messages.code_label): HTMLElement {
    const { messages } = this;
    const shown = element("output", { class: "code", "aria-label": title ?? words, translate: "no" }, code);
    const copy = element("button", { type: "button", class: "quiet" }, messages.copy);
    copy.addEventListener("click", () => {
      // Plain http has no clipboard; the code is selected instead, ready to be copied.
      getSelection()?.selectAllChildren(shown);
      void navigator.clipboard?.writeText(code).then(() => (copy.textContent = messages.copied));
    });
    const label = title && element("p", { class: "label" }, title);
    return element("div", { class: "completion" }, label, shown, element("p", {}, words), copy);
  }

  /** Resolves with null when the reader asks to try again. */
  private async showStuck(session: Unconfirmed, debrief: string | null): Promise<null> {
    const { messages } = this;
    const code = reviewCode(session.address);
    const save = element("button", { type: "button", class: "quiet" }, messages.download_answers);
    save.addEventListener("click", () => void this.handOut(session));
    const extra = element("div", {}, this.codeBox(code, messages.review_code_text, null), save);
    const { language } = this.config;
    const content = { heading: messages.saving_title, text: [fill(messages.saving_stuck, { reference: code })], extra };
    const below = debrief === null ? null : prose(debrief, language);
    await showPage(this.frame.stage, { ...content, below }, [{ name: "again", words: messages.try_again }], messages, language);
    return null;
  }

  private async handOut({ address, token }: Unconfirmed): Promise<void> {
    const copy = answersCopy(this.config.study, address, token, await this.outbox.ofSession(address));
    saveFile(`${this.config.study}-${sessionId(address).slice(0, 8)}-answers.json`, "application/json", JSON.stringify(copy));
  }
}

function sleep(ms: number): Promise<null> {
  return new Promise((resolve) => setTimeout(() => resolve(null), ms));
}

function never(): Promise<never> {
  return new Promise(() => {});
}
