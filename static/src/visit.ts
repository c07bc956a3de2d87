/** One person's visit: start or resume a session, run its plan, and stay until the server has every answer. */

import { describeClient } from "./client";
import { conductPlan, type Outcome } from "./conduct";
import type { PageConfig } from "./config";
import { element } from "./dom";
import { Finishing, type Unconfirmed } from "./finishing";
import { uuid } from "./identity";
import { type Entry, entryOf, StartScreen, type Standing } from "./lab/start";
import { type Deletable, type Ended, endedBy, keepsakes, NO_PARTING, type Parting, partingOf } from "./leaving/endings";
import { moment, receiptButton } from "./leaving/receipt";
import { confirmDeletion } from "./leaving/stop";
import { fill, type Messages, refusalText } from "./messages";
import { type Action, type Frame, showPage } from "./page";
import type { TrialPayload } from "./procedure/payload";
import type { Answer, Plan, TrialKey } from "./procedure/plan";
import { Progress } from "./procedure/progress";
import type { Answered, Ending, Recorder } from "./procedure/session";
import type { Api, Finished, Refusal, Reply, Taken } from "./sending/api";
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
  /** The client_uuid of the session that this browser left, which shows that the next one is of the same person. */
  previous?: string | null;
  /** The session is being erased, and what its reader is to be told once it is. */
  leaving?: { ending: "declined" | "deleted"; parting: Parting };
}

interface Session {
  address: string;
  token: string;
  plan: Plan;
  done: TrialKey[];
  shown: TrialKey[];
  /** Answers on which it depends what is asked later. */
  given: Record<string, Answer>;
  participant: string | null;
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
  /** What an earlier session of this visit leaves its reader, should no other begin. */
  private parting: Parting = NO_PARTING;
  /** Told what the server says to the erasure of a session. */
  private erasing: { client_uuid: string; tell: (reply: Reply<Taken>) => void } | null = null;

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

  async run(isNewPage = true): Promise<void> {
    const ticket = this.ticket();
    if (ticket?.ended) {
      const held = ticket.ended.is_held ? await this.resume(ticket) : null;
      return held && "address" in held ? this.finish(held, ticket.ended) : this.showEnd(ticket.ended);
    }
    if (ticket?.leaving && ticket.address && ticket.token) {
      return this.erase({ address: ticket.address, token: ticket.token }, ticket.leaving.ending, ticket.leaving.parting);
    }
    const found = (ticket ? await this.resume(ticket, isNewPage) : null) ?? (await this.open());
    if ("heading" in found) return this.end(found);
    const session = found;
    const progress = new Progress(session.plan, this.shelf, session.address, session.done, session.shown, session.given);
    this.recording = session;
    this.progress = progress;
    this.announced = new Set();
    this.presence = this.attend(session);
    if (isNewPage && progress.begun) {
      if (!(await this.start.welcomeBack(this.ticket()?.participant ?? null))) return this.startAnew();
      const { pendingFurther } = progress;
      await this.note("resume", pendingFurther ? { trial_index: pendingFurther.trial_index } : {});
    }
    const { config, messages } = this;
    const { ending, words } = await conductPlan(session.plan, this.frame, messages, progress, this.recorder(session), {
      later: () => this.laterWords(session.plan),
      payment: config.if_left.return_url ? "" : (config.if_left.return_text ?? ""),
      receipt: () => {
        const { receipt } = this.partingOf(session, progress);
        return receipt && receiptButton(receipt, messages);
      },
    }, config.plugins);
    if (ending === "assigned") {
      this.leave();
      return this.run(false);
    }
    const parting = this.partingOf(session, progress);
    if (ending === "completed") return this.finish(session, parting);
    if (ending === "later") return this.rest(session);
    if (ending === "declined" || ending === "deleted") return this.erase(session, ending, parting);
    return this.endEarly(session, { ending, words }, parting);
  }

  private partingOf({ plan, participant }: Session, progress: Progress): Parting {
    const { title, direction } = this.config;
    return partingOf(plan, progress, { title, direction, participant });
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

  /** Where what happens in a session goes, as long as it is this page's. */
  private recorder(session: Session): Recorder {
    return {
      trial: (payload: TrialPayload) => this.queue("trials", payload.client_uuid, { ...payload, next: this.announce(payload) }),
      event: async (kind, detail) => {
        if (this.recording === session) await this.note(kind, detail);
      },
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

  /** The server replied to a trial or an event that was sent. */
  heard(kind: OutboxItem["kind"], client_uuid: string, reply: Reply<Taken>): void {
    if (verdict(reply.status) === "later") return;
    if (kind === "trials") this.verdicts.hear(client_uuid, reply.body.feedback ?? null);
    if (this.erasing?.client_uuid === client_uuid) this.erasing.tell(reply);
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
    const isOver = ticket.ended && !ticket.ended.is_barred && !ticket.ended.is_held;
    if (this.isLasting && !isOver) this.shelf.setItem(this.key, JSON.stringify(ticket));
    else this.shelf.removeItem(this.key);
  }

  /** The session to go on with; what to say where it has ended; null where a new one is to be begun. */
  private async resume(ticket: Ticket, isNewPage = true): Promise<Session | Ended | null> {
    const { address, token } = ticket;
    if (!address || !token) return null;
    for (let take: boolean = false; ; ) {
      // a page that stays open does not resume its session: a reader who gets a list was not interrupted
      const { status, body } = await this.insist(() => (isNewPage ? this.api.resume(address, token, take) : this.api.look(address, token)));
      if (status === 423) {
        take = await this.start.elsewhere(body);
      } else if (status === 409) {
        this.parting = this.partingFrom(body);
        if (body.state !== "interrupted") return this.barred(body);
        this.keep({ client_uuid: uuid(), opened_for: this.openedFor(), participant: ticket.participant ?? null, previous: ticket.client_uuid });
        await this.start.anew(body.error ?? "");
        this.known = ticket.participant ?? null;
        return null;
      } else {
        if (status !== 200 || !body.plan) return null; // the server no longer knows it
        const done = await this.withLocal(address, body.done ?? []);
        const { plan, shown = [], given = {}, participant = null } = body;
        return { address, token, plan, done, shown, given, participant };
      }
    }
  }

  /** What the server's refusal to go on leaves the reader of a session. */
  private partingFrom({ debrief = null, consent, participant = null }: Partial<Refusal>): Parting {
    const { study, title, language, direction } = this.config;
    return { debrief, receipt: consent ? { study, title, language, direction, ...consent, agreed: true, participant } : null };
  }

  /** The end of a session that does not go on, in the server's words. */
  private barred({ error = "", mend = "" }: Reply<unknown>["body"]): Ended {
    const text = [error, mend].filter(Boolean);
    const about = { heading: this.messages.ended_title, text, code: null, return_url: null, deletable: null };
    return { ...about, ...this.parting, is_barred: true };
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
  private async open(): Promise<Session | Ended> {
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
        const { client_uuid, previous } = ticket;
        const asked: object = { client_uuid, previous, participant, station, pin, platform, pass, client, take };
        const { status, body } = await this.insist(() => this.api.open(asked), this.messages.out_of_order);
        if (status === 423) {
          take = await this.start.elsewhere(body);
          continue;
        }
        const { session_id, token, plan, done = [], shown = [], given = {}, participant: number = null } = body;
        if (status < 300 && session_id && token && plan) {
          const address = this.api.sessionAddress(session_id);
          this.keep({ ...ticket, address, token });
          this.parting = NO_PARTING;
          return { address, token, plan, done: await this.withLocal(address, done), shown, given, participant: number };
        }
        if (body.debrief) this.parting = { ...this.parting, debrief: body.debrief };
        // whoever took part before and cannot again is told what the study was about
        if (this.parting !== NO_PARTING) return { ...this.barred(body), heading: body.title ?? this.messages.ended_title };
        const text = body.state === "pin" ? [this.messages.pin_wrong] : refusalText(status, body, this.messages);
        trouble = { heading: body.title ?? null, text };
        if (!previous) this.forget();
        break;
      }
    }
  }

  /** A ticket for a session that is asked for: kept before, so that a page that never got the reply asks for the same again. */
  private newTicket(participant: string | null): Ticket {
    const kept = this.ticket();
    const opened_for = this.openedFor();
    const again = kept && !kept.token && !kept.ended && (kept.participant ?? null) === participant;
    const ticket: Ticket = again ? kept : { client_uuid: uuid(), opened_for, participant };
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

  private async finish(session: Session, parting: Parting): Promise<void> {
    const { body } = await this.finishing.confirmed(session, () => this.settle(session, true));
    await this.forgetSent(session.address);
    await this.end(endedBy("completed", { words: null, ...body }, parting, deletable(session), this.messages));
  }

  /** The end of a session that its reader did not complete, and whose answers are kept: stopped, turned away, practice failed. */
  private async endEarly(session: Session, { ending, words }: Outcome, parting: Parting): Promise<void> {
    // nobody is told to close the page, or that answers are kept, while the server lacks any
    const { body } = await this.finishing.confirmed(session, () => this.settle(session, false), parting.debrief);
    await this.forgetSent(session.address);
    await this.end(endedBy(ending as Exclude<Ending, "later" | "assigned">, { words, ...body }, parting, deletable(session), this.messages));
  }

  /** Leave nothing in this browser of a session that is over and stored; the next person may sit here. */
  private async forgetSent(address: string): Promise<void> {
    const items = await this.outbox.ofSession(address);
    await this.outbox.forget(items.filter((item) => item.state === "sent").map((item) => item.seq));
    this.shelf.removeItem(address);
  }

  /** Have everything erased that is stored of a session; nothing else of it is sent any more, whatever still waits here. */
  private async erase({ address, token }: Unconfirmed, ending: "declined" | "deleted", parting: Parting): Promise<void> {
    const { messages, outbox } = this;
    this.leave();
    if (ending === "deleted") this.finishing.showErasing();
    const ticket = this.ticket() ?? { client_uuid: uuid(), opened_for: this.openedFor() };
    delete ticket.ended;
    this.keep({ ...ticket, address, token, leaving: { ending, parting } });
    this.shelf.removeItem(address);
    const forgetItems = async (): Promise<void> => outbox.forget((await outbox.ofSession(address)).map((item) => item.seq));
    await forgetItems();
    const asked = ending === "declined" ? { kind: "consent", detail: { agreed: false } } : { kind: "stop", detail: { then: "delete" } };
    const client_uuid = uuid();
    const body = { client_uuid, ...asked, at: new Date().toISOString() };
    const told = new Promise<Reply<Taken>>((tell) => (this.erasing = { client_uuid, tell }));
    await outbox.add({ uuid: client_uuid, session: address, token, kind: "events", body, queued_at: Date.now() });
    this.uploader.retryNow();
    const reply = await told;
    await forgetItems();
    this.keep({ ...ticket, address, token }); // with the ending, or with nothing: it is erased, or cannot be
    const ended = endedBy(ending, { words: null, ...this.config.if_left }, parting, { address, token, until: null }, messages);
    const { title = messages.delete_refused_title, error = "" } = reply.body;
    // a session that is not there any more was erased before
    await this.end(reply.status === 409 ? { ...ended, heading: title, text: [error] } : ended);
  }

  /** Let the session rest: its link opens it again. */
  private async rest(session: Session): Promise<void> {
    const { messages, config, frame } = this;
    const text = [this.laterWords(session.plan)];
    this.leave();
    const ticket = this.ticket();
    if (ticket) this.keep(ticket); // what this browser knows of the session lasts from now on
    const actions: Action[] = [{ name: "go_on", words: messages.go_on, key: "space" }];
    if (config.ask_participant) actions.push({ name: "another", words: messages.next_participant, quiet: true });
    const { action } = await showPage(frame.stage, { heading: messages.stop_later, text }, actions, messages, config.language);
    return action === "another" ? this.startAnew() : this.run();
  }

  /** How, and until when, a session that is left now can be finished; null where the study does not let it go on. */
  private laterWords({ if_interrupted, language }: Plan): string | null {
    if (if_interrupted && if_interrupted.then !== "resume") return null;
    const { messages, config } = this;
    const within = if_interrupted?.within_ms ?? null;
    const [always, by] = config.any_browser
      ? [messages.stop_later_text, messages.stop_later_link_until]
      : config.ask_participant
        ? [messages.stop_later_lab, messages.stop_later_lab_until]
        : [null, messages.stop_later_until];
    const lasts = always === null ? Math.min(within ?? TICKET_MS, TICKET_MS) : within;
    return lasts === null ? always : fill(by, { until: moment(new Date(Date.now() + lasts).toISOString(), language) });
  }

  /** Ask the server to confirm the session, sending again what it says it lacks. */
  private async settle(session: Session, completed: boolean): Promise<Reply<Finished>> {
    const { address, token } = session;
    for (let round = 1; ; round++) {
      await this.uploader.drained();
      const answers = await this.withLocal(address, session.done);
      const reply = await this.insist(() => this.api.finish(address, token, answers.length, completed));
      if (reply.status !== 409 || round === FINISH_ROUNDS) return reply;
      const known = await this.insist(() => this.api.look(address, token));
      session.done = known.body.done ?? session.done;
      const has = new Set(session.done.map((key) => key.join(".")));
      for (const item of await this.outbox.ofSession(address)) {
        const isThere = item.kind === "trials" && has.has(trialKey(item).join("."));
        if (item.state === "sent" && !isThere) await this.outbox.settle(item.seq, "pending", null);
      }
    }
  }

  private async end(ended: Ended): Promise<void> {
    const ticket = this.ticket();
    if (ticket) this.keep({ ...ticket, ended });
    await this.showEnd(ended);
  }

  private async showEnd(ended: Ended): Promise<void> {
    const { messages, config, frame } = this;
    this.leave();
    const { heading, text, debrief, receipt, code, return_url, deletable, is_barred = false, is_held = false, may_return = false } = ended;
    let erase: (action: string) => void = () => {};
    const erased = new Promise<string>((resolve) => (erase = resolve));
    const onDelete = (): void => void confirmDeletion(frame.root, messages).then((isSure) => isSure && erase("erase"));
    const extra = code === null ? null : this.finishing.codeBox(code, messages.code_text);
    const below = keepsakes(ended, config.language, messages, onDelete);
    const actions: Action[] = return_url ? [{ name: "return", words: messages.return_to_platform }] : [];
    if (config.ask_participant) actions.push({ name: "another", words: messages.next_participant, quiet: true });
    else if (may_return) actions.push({ name: "another", words: messages.back, quiet: true });
    else if ((is_barred || is_held) && isAnonymous(config)) actions.push({ name: "another", words: messages.someone_else, quiet: true });
    const shown = showPage(frame.stage, { heading, text, html: may_return ? null : debrief, extra, below }, actions, messages, config.language);
    const action = await Promise.race([shown.then((chosen) => chosen.action), erased]);
    if (action === "erase" && deletable) return this.erase(deletable, "deleted", { debrief, receipt });
    if (action === "return" && return_url) return location.assign(return_url);
    return this.startAnew();
  }

  /** Ask until a reply comes that more asking would not change; `putOff` is said while the server puts off what it is asked. */
  private async insist<T>(request: () => Promise<Reply<T>>, putOff?: string): Promise<Reply<T>> {
    for (let failures = 1; ; failures++) {
      const reply = await request().catch(() => null);
      if (reply && verdict(reply.status) !== "later") {
        this.frame.waiting(false);
        return reply;
      }
      this.frame.waiting(true, reply ? putOff : undefined);
      await this.alarm.sleep(backoff(failures, Math.random()));
    }
  }
}

function deletable({ address, token, plan }: Session): Deletable {
  return { address, token, until: plan.withdraw_until ?? null };
}

function trialKey(item: OutboxItem): TrialKey {
  return [item.body["trial_index"] as number, item.body["attempt"] as number];
}

/** Whether the server's word on a screen's answers says how it goes on. */
function isJudged(plan: Plan, name: string): boolean {
  return plan.screens.some((one) => one.kind === "questions" && one.name === name && (one.screening || Boolean(one.comprehension)));
}
