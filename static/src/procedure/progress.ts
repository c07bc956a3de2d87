/**
 * How far a visit has come, kept across a reload of the page (sessionStorage).
 *
 * A trial that was seen but not answered is shown again as its next attempt; an answered one never again, except in a new
 * pass through practice.
 */

import { type Answer, isFurther, type Plan, type PlannedTrial, type QuestionsScreen, type Screen, type TrialKey, trialsOf, type Verdict } from "./plan";

/** A verdict, with the trial that it is about; `verdict` is null where nothing is told. */
export interface Judged {
  trial_index: number;
  attempt: number;
  verdict: Verdict | null;
  /** The right answer, where it may be told. */
  answer: string | null;
}

interface Kept {
  /** Screens gone through, by their place in the plan. */
  screens: number[];
  /** Highest attempt shown of each trial. */
  seen: Record<number, number>;
  /** Highest attempt answered of each trial. */
  answered: Record<number, number>;
  /** Practice by place in the plan: the pass under way and what was answered in it. */
  practice: Record<number, { pass: number; correct: Record<number, boolean> }>;
  /** The latest verdict, which is told only after further answers. */
  judged?: Judged;
  /** What screens that set something up came to. */
  remarks: Record<string, string>;
  /** Answers to questions on which it depends what is asked later. */
  given: Record<string, Answer>;
}

export interface Shelf {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** A shelf for previews and tests: nothing outlives the page. */
export class BriefShelf implements Shelf {
  private readonly values = new Map<string, string>();
  getItem(key: string): string | null {
    return this.values.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.values.set(key, value);
  }
}

/** The names under which a screen's answers are stored: its questions, and of a matrix its rows. */
function namesOf({ questions }: QuestionsScreen): string[] {
  return questions.flatMap((question): { name: string }[] => question.rows ?? [question]).map(({ name }) => name);
}

export class Progress {
  private readonly kept: Kept;
  private readonly allKeys = new Set<string>();
  /** The trial shown last on this page. */
  latest: number | null = null;

  /** Width of the window in which the reader took smaller text, on this page: no block asks again. */
  smallerTextFrom = Infinity;

  constructor(
    private readonly plan: Plan,
    private readonly shelf: Shelf,
    private readonly key: string,
    /** What the server and the outbox hold of this session. */
    done: readonly TrialKey[] = [],
    /** What the server knows to have been shown, answered or not. */
    shown: readonly TrialKey[] = [],
    /** What the server has been told in answer to questions that others depend on. */
    given: Readonly<Record<string, Answer>> = {},
  ) {
    const empty: Kept = { screens: [], seen: {}, answered: {}, practice: {}, remarks: {}, given: {} };
    this.kept = { ...empty, ...(JSON.parse(shelf.getItem(key) ?? "{}") as Partial<Kept>) };
    this.kept.given = { ...given, ...this.kept.given };
    for (const [index, attempt] of done) {
      this.allKeys.add(`${index}.${attempt}`);
      this.kept.answered[index] = Math.max(attempt, this.kept.answered[index] ?? 0);
      this.kept.seen[index] = Math.max(attempt, this.kept.seen[index] ?? 0);
    }
    for (const [index, attempt] of shown) this.kept.seen[index] = Math.max(attempt, this.kept.seen[index] ?? 0);
  }

  /** How many answers (trial and attempt) this session has given. */
  get answers(): number {
    return this.allKeys.size;
  }

  /** Whether anything of the session was seen before this page was loaded. */
  get begun(): boolean {
    return this.kept.screens.length > 0 || Object.keys(this.kept.seen).length > 0;
  }

  /** A screen is over when it was gone through, or when a trial of a later screen was answered. */
  isOver(place: number): boolean {
    const later = this.plan.screens.slice(place + 1).flatMap(trialsOf);
    return this.kept.screens.includes(place) || later.some((trial) => trial.trial_index in this.kept.answered);
  }

  leave(place: number): void {
    this.kept.screens.push(place);
    this.save();
  }

  /** Answers to other screens on which it depends what a screen asks. */
  givenBefore(screen: QuestionsScreen): Record<string, Answer> {
    const own = new Set(namesOf(screen));
    return Object.fromEntries(Object.entries(this.kept.given).filter(([name]) => !own.has(name)));
  }

  /** Keep a screen's answers, as far as later questions depend on them, in place of earlier ones to the same screen. */
  note(screen: QuestionsScreen, answers: Readonly<Record<string, Answer>>): void {
    const questions = this.plan.screens.flatMap((one) => (one.kind === "questions" ? one.questions : []));
    const needed = new Set(questions.flatMap((question) => Object.keys(question.only ?? {})));
    for (const name of namesOf(screen)) if (needed.has(name)) this.kept.given[name] = answers[name] ?? null;
    this.save();
  }

  /** What a screen that sets something up came to; null where it was not shown in this browser. */
  remark(name: string): string | null {
    return this.kept.remarks[name] ?? null;
  }

  setRemark(name: string, remark: string): void {
    this.kept.remarks[name] = remark;
    this.save();
  }

  wasAnswered(trial_index: number): boolean {
    return trial_index in this.kept.answered;
  }

  /** The attempt that showing a trial would be. */
  nextAttempt(trial_index: number): number {
    return Math.max(this.kept.seen[trial_index] ?? 0, this.kept.answered[trial_index] ?? 0) + 1;
  }

  /** Mark a trial as seen, before it is drawn; returns the attempt that this is. */
  show(trial: PlannedTrial): number {
    const attempt = this.nextAttempt(trial.trial_index);
    this.kept.seen[trial.trial_index] = attempt;
    this.latest = trial.trial_index;
    this.save();
    return attempt;
  }

  answer(trial: PlannedTrial, attempt: number): void {
    this.kept.answered[trial.trial_index] = attempt;
    this.allKeys.add(`${trial.trial_index}.${attempt}`);
    this.save();
  }

  isAnswered(trial: PlannedTrial): boolean {
    return trial.trial_index in this.kept.answered;
  }

  /** The pass of practice under way at a place in the plan, from 1, and its verdicts so far. */
  practice(place: number): { pass: number; correct: Record<number, boolean> } {
    return (this.kept.practice[place] ??= { pass: 1, correct: {} });
  }

  judgePractice(place: number, trial: PlannedTrial, correct: boolean): void {
    this.practice(place).correct[trial.trial_index] = correct;
    this.save();
  }

  judge(judged: Judged): void {
    this.kept.judged = judged;
    this.save();
  }

  /** What is told of a trial; null for nothing. */
  judgedOf(trial_index: number): Judged | null {
    const { judged } = this.kept;
    return judged?.trial_index === trial_index && judged.verdict !== null ? judged : null;
  }

  /** The further answer that is given next, where its trial was answered before this page was loaded; in practice, in this pass. */
  get pendingFurther(): PlannedTrial | undefined {
    return this.plan.screens.flatMap((screen, place) => {
      const given = screen.kind === "practice" ? this.practice(place).correct : this.kept.answered;
      const isPending = (trial: PlannedTrial, before?: PlannedTrial) => before && isFurther(trial) && before.trial_index in given && !(trial.trial_index in given);
      return trialsOf(screen).filter((trial, index, trials) => isPending(trial, trials[index - 1]));
    })[0];
  }

  practiseAgain(place: number): void {
    this.kept.practice[place] = { pass: this.practice(place).pass + 1, correct: {} };
    this.save();
  }

  /** Share of the plan's trials that were answered, 0 to 1. */
  share(screens: readonly Screen[] = this.plan.screens): number {
    const trials = screens.flatMap(trialsOf);
    if (trials.length === 0) return 0;
    const endsEarly = (screen: Screen, place: number): boolean => screen.kind === "practice" && Boolean(screen.of_last) && this.isOver(place);
    const over = new Set(this.plan.screens.filter(endsEarly).flatMap(trialsOf));
    return trials.filter((trial) => this.isAnswered(trial) || over.has(trial)).length / trials.length;
  }

  private save(): void {
    this.shelf.setItem(this.key, JSON.stringify(this.kept));
  }
}
