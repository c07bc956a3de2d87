/** One person's visit: start or resume a session, run its plan, and stay until the server has every answer. */

import { describeClient } from "./client";
import { conductPlan, type Outcome } from "./conduct";
import type { PageConfig } from "./config";
import { element } from "./dom";
import { Finishing } from "./finishing";
import { uuid } from "./identity";
import { type Entry, entryOf, StartScreen, type Standing } from "./lab/start";
import type { Messages } from "./messages";
import { type Action, type Frame, showPage } from "./page";
import type { TrialPayload } from "./procedure/payload";
import type { Plan, TrialKey } from "./procedure/plan";
import { Progress } from "./procedure/progress";
import type { Answered, Recorder } from "./procedure/session";
import type { Api, Finished, Reply, Taken } from "./sending/api";
import { Alarm, backoff } from "./sending/backoff";
import type { Outbox, OutboxItem } from "./sending/outbox";
import { Presence } from "./sending/presence";
import { LastingShelf } from "./sending/shelves";
import { upcoming } from "./sending/upcoming";
import { type Uploader, verdict } from "./sending/uploader";
import { Verdicts } from "./sending/verdicts";
import { isAnonymous, StartScreens, type Trouble } from "./start";

/** What a page that is opened again finds: a reload in sessionStorage, a new tab in localStorage, but for lab stations. */
interface Ticket {
  client_uuid: string;
  /** Who the page was opened for: another person in the same tab gets a session of their own. */
  opened_for: string;
  address?: string;
  token?: string;
  /** The number that was typed in. */
  participant?: string | null;
  ended?: Ended;
}

interface Ended {
  heading: string;
  text: string[];
  code: string | null;
  return_url?: string | null;
  /** The session was left and does not go on, in another tab either. */
  is_barred?: boolean;
}

interface Session {
  address: string;
  token: string;
  plan: Plan;
  done: TrialKey[];
  shown: TrialKey[];
}

const FINISH_ROUNDS = 4;
/** How long a tab that was closed lets the next one go on, where only this browser knows whose session it is. */
const TICKET_MS = 12 * 60 * 60 * 1000;

export class Visit {
  private readonly key: string;
  private readonly alarm = new Alarm();
  private readonly start: StartScreens;
  private readonly finishing: Finishing;
  private readonly shelf = new LastingShelf("wrods:");
  private readonly verdicts = new Verdicts();
  private recording: Session | null = null;
  private progress: Progress | null = null;
  private presence: Presence | null = null;
  /** Trials that an answer has announced, each as index and attempt. */
  private announced = new Set<string>();
  /** The number of a participant who begins again and is not asked for it again. */
  private known: string | null = null;

  constructor(
    private readonly config: PageConfig,
    private readonly frame: Frame,
    private readonly messages: Messages,
    private readonly api: Api,
    private readonly outbox: Outbox,
    private readonly uploader: Uploader,
  ) {
    this.key = `wrods:${config.api}`;
    this.start = new StartScreens(config, frame, messages);
    this.finishing = new Finishing(config, frame, messages, outbox);
    window.addEventListener("online", () => this.alarm.wake());
  }

  /** Address of the session that this page records, or null. */
  get address(): string | null {
    return this.recording?.address ?? null;
  }

  async run(): Promise<void> {
    const ticket = this.ticket();
    if (ticket?.ended) return this.showEnd(ticket.ended);
    const found = ticket ? await this.resume(ticket) : null;
    if (found && "heading" in found) return this.end(found);
    const session = found ?? (await this.open());
    const progress = new Progress(session.plan, this.shelf, session.address, session.done, session.shown);
    this.recording = session;
    this.progress = progress;
    this.announced = new Set();
    this.presence = this.attend(session);
    if (progress.begun) {
      if (!(await this.start.welcomeBack(this.ticket()?.participant ?? null))) return this.startAnew();
      await this.note("resume", {});
    }
    const outcome = await conductPlan(session.plan, this.frame, this.messages, progress, this.recorder());
    if (outcome.ending === "completed") return this.finish(session);
    return this.endEarly(session, outcome);
  }

  /** Record something that is not a trial; outside a session it is nobody's and is dropped. */
  async note(kind: string, detail: Record<string, unknown>): Promise<void> {
    const body = { client_uuid: uuid(), kind, detail, at: new Date().toISOString() };
    await this.queue("events", body.client_uuid, body);
  }

  /** The session goes on in another tab, or may not go on: what this page is to show is found out by opening it again. */
  lost(): void {
    if (this.recording) location.reload();
  }

  private attend({ address, token, plan }: Session): Presence {
    return new Presence({
      tell: (told) => this.api.hold(address, token, told),
      within: plan.if_interrupted?.within_ms ?? null,
      onSlept: (ms) => void this.note("slept", { ms, trial_index: this.progress?.latest ?? null }),
      onLost: () => this.lost(),
    });
  }

  private recorder(): Recorder {
    return {
      trial: (payload: TrialPayload) => this.queue("trials", payload.client_uuid, { ...payload, next: this.announce(payload) }),
      event: (kind, detail) => this.note(kind, detail),
      verdict: (client_uuid) => this.verdicts.of(client_uuid),
      answers: (screen, answers) => this.answers(screen, answers),
      shown: (trial_index, attempt) => {
        if (!this.announced.has(`${trial_index}.${attempt}`)) void this.note("shown", { trial_index, attempt });
      },
    };
  }

  /** The trial that comes on the screen after an answer: the server knows of it even if this page is never heard of again. */
  private announce({ trial_index }: TrialPayload): TrialKey | null {
    const { recording, progress } = this;
    const next = recording && upcoming(recording.plan, trial_index);
    if (next === null || !progress || progress.wasAnswered(next)) return null;
    const attempt = progress.nextAttempt(next);
    this.announced.add(`${next}.${attempt}`);
    return [next, attempt];
  }

  /** Keep a screen's answers as safe as a trial's; where they decide who takes part, wait for the server's word. */
  private async answers(screen: string, answers: Readonly<Record<string, unknown>>): Promise<Answered> {
    const { recording } = this;
    if (!recording) return { eligible: true, then: null };
    const body = { client_uuid: uuid(), screen, answers };
    await this.queue("answers", body.client_uuid, body);
    if (!isJudged(recording.plan, screen)) return { eligible: true, then: null };
    const reply = await this.insist(() => this.api.answers(recording.address, recording.token, body));
    return { eligible: reply.body.eligible !== false, then: reply.body.then ?? null };
  }

  /** The server replied to a trial that was sent. */
  heard(client_uuid: string, { status, body }: Reply<Taken>): void {
    if (verdict(status) !== "later") this.verdicts.hear(client_uuid, body.feedback ?? null);
  }

  private async queue(kind: OutboxItem["kind"], id: string, body: Record<string, unknown>): Promise<void> {
    if (!this.recording) return;
    const { address, token } = this.recording;
    await this.outbox.add({ uuid: id, session: address, token, kind, body, queued_at: Date.now() });
    this.uploader.notice();
  }

  private ticket(): Ticket | null {
    const age = this.shelf.age(this.key);
    const lasting = this.isLasting && age !== null && age < TICKET_MS ? this.shelf.getItem(this.key) : null;
    const kept = sessionStorage.getItem(this.key) ?? lasting;
    const ticket = kept ? (JSON.parse(kept) as Ticket) : null;
    return ticket?.opened_for === this.openedFor() ? ticket : null;
  }

  /** Whether a new tab goes on with this browser's session: in a lab a session belongs to the number that is entered. */
  private get isLasting(): boolean {
    return this.config.mode === "session" && !this.config.ask_participant;
  }

  private openedFor(): string {
    return JSON.stringify([this.config.participant, this.config.platform, this.config.mode]);
  }

  private keep(ticket: Ticket): void {
    sessionStorage.setItem(this.key, JSON.stringify(ticket));
    const isOver = ticket.ended && !ticket.ended.is_barred;
    if (this.isLasting && !isOver) this.shelf.setItem(this.key, JSON.stringify(ticket));
    else this.shelf.removeItem(this.key);
  }

  /** The session to go on with; what to say where it has ended; null where a new one is to be begun. */
  private async resume(ticket: Ticket): Promise<Session | Ended | null> {
    const { address, token } = ticket;
    if (!address || !token) return null;
    for (let take: boolean = false; ; ) {
      const { status, body } = await this.insist(() => this.api.resume(address, token, take));
      if (status === 423) {
        take = await this.start.elsewhere(body);
      } else if (status === 409) {
        if (body.state !== "interrupted") {
          const text = [body.error ?? "", body.mend ?? ""].filter(Boolean);
          return { heading: this.messages.ended_title, text, code: null, is_barred: true };
        }
        this.forget();
        await this.start.anew(body.error ?? "");
        this.known = ticket.participant ?? null;
        return null;
      } else {
        if (status !== 200 || !body.plan) return null; // the server no longer knows it
        const done = await this.withLocal(address, body.done ?? []);
        return { address, token, plan: body.plan, done, shown: body.shown ?? [] };
      }
    }
  }

  /** Answers given in this session: those that the server has and those that wait here. */
  private async withLocal(address: string, done: readonly TrialKey[]): Promise<TrialKey[]> {
    const items = await this.outbox.ofSession(address);
    const local = items.filter((item) => item.kind === "trials" && item.state !== "refused").map(trialKey);
    return [...new Map([...done, ...local].map((key) => [key.join("."), key])).values()];
  }

  /** Find out whose session is to run: of an experimenter in a lab, of nobody elsewhere. */
  private async begin(trouble: Trouble | null): Promise<Entry> {
    const { config, api } = this;
    if (!config.ask_participant) {
      await this.start.begin(trouble);
      return entryOf(config.participant, config);
    }
    const desk = {
      start: (body: object) => api.station<Standing>("start", body),
      end: (body: object) => api.station<{ ended: boolean }>("end", body),
      insist: <T>(request: () => Promise<Reply<T>>) => this.insist(request),
      waiting: async () => (await this.outbox.pending()).length,
    };
    return new StartScreen(config, this.frame, this.messages, desk).ask(trouble);
  }

  /** Begin a session, or go on with the participant's own. */
  private async open(): Promise<Session> {
    let trouble: Trouble | null = null;
    let given = this.known;
    this.known = null;
    for (;;) {
      const entry: Entry = given === null ? await this.begin(trouble) : entryOf(given, this.config);
      const { participant, station, pin } = entry;
      given = null;
      this.frame.stage.replaceChildren(element("p", { class: "moment", role: "status" }, this.messages.starting));
      const client = await describeClient();
      const { platform, pass } = this.config;
      const ticket = this.newTicket(participant);
      for (let take: boolean = entry.take; ; ) {
        const asked: object = { client_uuid: ticket.client_uuid, participant, station, pin, platform, pass, client, take };
        const { status, body } = await this.insist(() => this.api.open(asked));
        if (status === 423) {
          take = await this.start.elsewhere(body);
          continue;
        }
        const { session_id, token, plan, done, shown } = body;
        if (status < 300 && session_id && token && plan) {
          const address = this.api.sessionAddress(session_id);
          this.keep({ ...ticket, address, token });
          return { address, token, plan, done: await this.withLocal(address, done ?? []), shown: shown ?? [] };
        }
        const said = body.state === "pin" ? this.messages.pin_wrong : (body.error ?? `HTTP ${status}`);
        trouble = { heading: body.title ?? null, text: [said, body.mend ?? ""].filter(Boolean) };
        this.forget();
        break;
      }
    }
  }

  /** A ticket for a session that is asked for: kept before, so that a page that never got the reply asks for the same again. */
  private newTicket(participant: string | null): Ticket {
    const kept = this.ticket();
    const opened_for = this.openedFor();
    const again = kept && !kept.token && !kept.ended && (kept.participant ?? null) === participant;
    const ticket: Ticket = { client_uuid: again ? kept.client_uuid : uuid(), opened_for, participant };
    this.keep(ticket);
    return ticket;
  }

  private forget(): void {
    sessionStorage.removeItem(this.key);
    this.shelf.removeItem(this.key);
  }

  private startAnew(): Promise<void> {
    this.leave();
    this.forget();
    return this.run();
  }

  private leave(): void {
    this.presence?.stop();
    this.presence = null;
    this.recording = null;
    this.progress = null;
  }

  private async finish(session: Session): Promise<void> {
    const { messages } = this;
    const { body } = await this.finishing.confirmed(session, () => this.settle(session));
    const items = await this.outbox.ofSession(session.address);
    await this.outbox.forget(items.filter((item) => item.state === "sent").map((item) => item.seq));
    this.shelf.removeItem(session.address);
    const text = [messages.finished_text, body.return_text ?? ""].filter(Boolean);
    await this.end({ heading: messages.finished_title, text, code: body.completion_code ?? null, return_url: body.return_url ?? null });
  }

  /** The end of a session that its reader did not complete: declined, turned away, practice failed. */
  private async endEarly(session: Session, outcome: Outcome): Promise<void> {
    const { messages } = this;
    const { declined_title, practice_failed_title, screened_out_title, close_page } = messages;
    const titles = {
      declined: declined_title,
      practice_failed: practice_failed_title,
      comprehension_failed: screened_out_title,
      screened_out: screened_out_title,
    };
    this.finishing.showSaving();
    await this.uploader.drained(); // nobody is told to close the page while answers wait in it
    const { address, token } = session;
    const answers = await this.withLocal(address, session.done);
    const { body } = await this.insist(() => this.api.finish(address, token, answers.length, false));
    this.shelf.removeItem(address);
    const declined = outcome.ending === "declined";
    await this.end({
      heading: titles[outcome.ending as keyof typeof titles],
      text: [outcome.words ?? "", declined || body.return_text ? "" : close_page, body.return_text ?? ""].filter(Boolean),
      code: body.completion_code ?? null,
      return_url: body.return_url ?? null,
    });
  }

  /** Ask the server to confirm the session, sending again what it says it lacks. */
  private async settle(session: Session): Promise<Reply<Finished>> {
    const { address, token } = session;
    for (let round = 1; ; round++) {
      await this.uploader.drained();
      const answers = await this.withLocal(address, session.done);
      const reply = await this.insist(() => this.api.finish(address, token, answers.length, true));
      if (reply.status !== 409 || round === FINISH_ROUNDS) return reply;
      const known = await this.insist(() => this.api.look(address, token));
      session.done = known.body.done ?? session.done;
      const has = new Set(session.done.map((key) => key.join(".")));
      for (const item of await this.outbox.ofSession(address)) {
        const lacking = item.kind === "trials" && item.state === "sent" && !has.has(trialKey(item).join("."));
        if (lacking) await this.outbox.settle(item.seq, "pending", null);
      }
    }
  }

  private async end(ended: Ended): Promise<void> {
    const ticket = this.ticket();
    if (ticket) this.keep({ ...ticket, ended });
    await this.showEnd(ended);
  }

  private async showEnd(ended: Ended): Promise<void> {
    const { messages, config } = this;
    this.leave();
    const { heading, text, code, return_url, is_barred = false } = ended;
    const extra = code === null ? null : this.finishing.codeBox(code, messages.code_text);
    const actions: Action[] = return_url ? [{ name: "return", words: messages.return_to_platform }] : [];
    if (is_barred && isAnonymous(config)) actions.push({ name: "another", words: messages.someone_else, quiet: true });
    if (config.ask_participant) actions.push({ name: "another", words: messages.next_participant, quiet: true });
    const chosen = await showPage(this.frame.stage, { heading, text, extra }, actions, messages, config.language);
    if (chosen.action === "return" && return_url) return location.assign(return_url);
    return this.startAnew();
  }

  /** Ask until a reply comes that more asking would not change. */
  private async insist<T>(request: () => Promise<Reply<T>>): Promise<Reply<T>> {
    for (let failures = 1; ; failures++) {
      const reply = await request().catch(() => null);
      if (reply && verdict(reply.status) !== "later") {
        this.frame.waiting(false);
        return reply;
      }
      this.frame.waiting(true);
      await this.alarm.sleep(backoff(failures, Math.random()));
    }
  }
}

function trialKey(item: OutboxItem): TrialKey {
  return [item.body["trial_index"] as number, item.body["attempt"] as number];
}

/** Whether the server's word on a screen's answers says how it goes on. */
function isJudged(plan: Plan, name: string): boolean {
  return plan.screens.some((one) => one.kind === "questions" && one.name === name && (one.screening || Boolean(one.comprehension)));
}
