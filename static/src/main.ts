/** Starts the page: a visit of a participant, or a preview for the study's makers. */

import "@fontsource-variable/source-code-pro/wght.css";
import "@fontsource-variable/source-sans-3/wght.css";
import "./style.css";

import { conductPlan } from "./conduct";
import { type PageConfig, readConfig } from "./config";
import { partingOf } from "./leaving/endings";
import { receiptButton } from "./leaving/receipt";
import { library } from "./media";
import type { Messages } from "./messages";
import { Frame, showPage } from "./page";
import { BriefShelf, Progress } from "./procedure/progress";
import { Api } from "./sending/api";
import { openOutbox } from "./sending/outbox";
import { nameTab } from "./sending/tab";
import { Uploader } from "./sending/uploader";
import { frames } from "./timing/frames";
import { Visit } from "./visit";

const KEEP_SENT_MS = 24 * 60 * 60 * 1000;

async function preview(config: PageConfig, frame: Frame, messages: Messages): Promise<void> {
  const plan = config.preview_plan;
  if (!plan) throw new Error("the page is a preview but has no preview_plan");
  const nowhere = {
    trial: async () => {},
    event: async () => {},
    verdict: async () => null,
    answers: async () => ({ eligible: true, then: null }),
    shown: () => {},
  };
  for (;;) {
    const progress = new Progress(plan, new BriefShelf(), "preview");
    const { title, direction } = config;
    const { words } = await conductPlan(plan, frame, messages, progress, nowhere, {
      later: () => (plan.if_interrupted && plan.if_interrupted.then !== "resume" ? null : messages.stop_later_text),
      payment: "",
      receipt: () => {
        const { receipt } = partingOf(plan, progress, { title, direction, participant: null });
        return receipt && receiptButton(receipt, messages);
      },
    }, config.plugins);
    const text = [words, messages.preview_end_text];
    const actions = [{ name: "again", words: messages.preview_again }];
    await showPage(frame.stage, { heading: messages.preview_end_title, text }, actions, messages, config.language);
  }
}

async function visit(config: PageConfig, frame: Frame, messages: Messages): Promise<void> {
  const { outbox, trouble } = await openOutbox();
  const api = new Api(config.api, await nameTab());
  const uploader = new Uploader(outbox, {
    send: async (item) => {
      const reply = await api.send(item, visiting.address);
      if (reply.body.elsewhere) visiting.lost();
      visiting.heard(item.kind, item.uuid, reply);
      return reply.status;
    },
    onWaiting: (isWaiting) => frame.waiting(isWaiting),
    onRefused: (item, status) => {
      // What became of a refused event would only be another event to be refused.
      if (item.kind === "trials") void visiting.note("upload_refused", { client_uuid: item.uuid, status });
    },
  });
  const visiting = new Visit(config, frame, messages, api, outbox, uploader);
  await outbox.forgetSentBefore(Date.now() - KEEP_SENT_MS);
  uploader.start();
  window.addEventListener("online", () => uploader.retryNow());
  document.addEventListener("visibilitychange", () => uploader.retryNow());
  const noteError = (message: string): void => void visiting.note("page_error", { message: message.slice(0, 500) });
  window.addEventListener("error", (event) => noteError(event.message));
  window.addEventListener("unhandledrejection", (event) => noteError(String(event.reason)));
  if (trouble) console.warn(`answers are kept in memory only: ${trouble}`);
  await visiting.run();
}

async function start(): Promise<void> {
  const root = document.getElementById("wrods-root");
  if (!root) throw new Error("the page has no wrods-root; the server's template must hold one");
  const config = readConfig(document);
  library.base = config.media;
  const { messages } = config;
  document.documentElement.lang = config.language;
  document.documentElement.dir = config.direction;
  document.querySelector("header h1")?.setAttribute("dir", "auto");
  const frame = new Frame(root, config, messages);
  frames.start();
  try {
    await (config.mode === "preview" ? preview : visit)(config, frame, messages);
  } catch (error) {
    console.error(error);
    const actions = [{ name: "reload", words: messages.reload }];
    const content = { heading: messages.error_title, text: [messages.error_text] };
    await showPage(frame.stage, content, actions, messages, config.language);
    location.reload();
  }
}

void start();
