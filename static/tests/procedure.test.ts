import { initJsPsych } from "jspsych";
import { describe, expect, test, vi } from "vitest";
import type { Step } from "../src/generated/trials";
import pack from "../../experiment/languages/data/en.json";
import { type StepData, trialPayload } from "../src/procedure/payload";
import type { Feedback, Plan, PlannedTrial, PracticeScreen } from "../src/procedure/plan";
import { stimulusTexts } from "../src/procedure/plan";
import { isCorrect, isEarlyEnough, isThrough, practiceOutcome, rightAnswer } from "../src/procedure/practice";
import { BriefShelf, Progress } from "../src/procedure/progress";
import { isDue } from "../src/procedure/screen_nodes";
import type { Conduct } from "../src/procedure/session";
import { unfold } from "../src/procedure/timeline";

const READ: Step = { step: "read", caption: null, text: "Teh dgo barks.", lines: ["Teh dgo", "barks."], as: "whole", by: "word", parts: null, part_ms: null, blank_ms: 0, foils: null, sides: null, keys: null, wrong: "end", minimum_ms: 0 };
const CHOOSE: Step = {
  step: "choose",
  caption: null,
  text: "Does it bark?",
  lines: ["Does it bark?"],
  ask: null,
  labels: ["A", "B"],
  responses: ["bark", "purr"],
  options: ["it barks", "it purrs"],
  keys: ["a", "b"],
  minimum_ms: 0, time_limit_ms: null,
};
const RECOVER: Step = { step: "recover", caption: null, text: "gadren", lines: ["gadren"], ask: null, minimum_ms: 0, time_limit_ms: null, multiline: false };

const PRIME: Step = {
  step: "prime",
  caption: null,
  text: "gadren",
  lines: ["gadren"],
  mask: "######",
  mask_ms: 500,
  frames: null,
  prime_ms: 50,
  backward_mask: null,
  backward_ms: 0,
};
const ANSWER = {
  step: "answer",
  caption: null,
  text: null,
  lines: null,
  ask: "Why?",
  read_as: "text",
  minimum_ms: 0, time_limit_ms: null,
  multiline: true,
  hint: "Look twice.",
  options: null,
  decimal: ".",
} as Step;

function trial(trial_index: number, steps: Step[], more: Partial<PlannedTrial> = {}): PlannedTrial {
  const rest = { is_practice: false, fixation_ms: 500, interval_ms: 400 };
  return { trial_index, block: "block-1", steps, ...rest, ...more };
}

const FEEDBACK: Feedback = {
  accuracy: true,
  late: true,
  for_ms: null,
  words: {
    correct: { title: "Correct", text: null },
    incorrect: { title: "Not correct", text: null },
    late: { title: "Too slow", text: "Please answer a little faster." },
    answer: "The answer is: {answer}",
  },
};

function practising(trials: PlannedTrial[], more: Partial<PracticeScreen> = {}): PracticeScreen {
  return { kind: "practice", block: "practice-1", feedback: FEEDBACK, pass: 0.8, attempts: 2, trials, ...more };
}

const PLAN: Plan = {
  study: "demo",
  title: "Demo",
  language: "en",
  screens: [
    { kind: "consent", html: "<p>yes?</p>", version: "v" },
    { kind: "instructions", pages: [{ html: "<p>one</p>" }, { html: "<p>two</p>" }] },
    practising([trial(0, [RECOVER], { answer: "gadren" })]),
    { kind: "block", block: "block-1", break_every: 2, trials: [1, 2, 3, 4].map((index) => trial(index, [READ, CHOOSE])) },
    { kind: "debrief", html: "<p>thanks</p>" },
  ],
};

const TIMES = {
  onset_ts: 100,
  paint_ts: 104,
  response_ts: 900.25,
  handler_ts: 901,
  rt: 800.25,
  timed_out: false,
  frame_period: 16.67,
  dropped_frames: 1,
  hidden_ms: 10,
  blurred_ms: 20,
};

describe("a trial's row", () => {
  const read = { ...TIMES, reading_time: 800.25, trial_type: "wrods-read", plugin_version: "0.1.0" } as StepData;
  const chosen = {
    ...TIMES,
    onset_ts: 1000,
    response_ts: 1500,
    rt: 500,
    dropped_frames: 2,
    response_raw: "A",
    trial_type: "wrods-choose",
    plugin_version: "0.1.0",
  } as StepData;
  const now = new Date("2026-11-21T10:00:00Z");

  test("takes its times from the answering step and the reading time from the other", () => {
    const row = trialPayload(trial(7, [READ, CHOOSE]), 2, [read, chosen], "u", now);
    expect(row).toMatchObject({ trial_index: 7, attempt: 2, response_raw: "A", rt: 500, onset_ts: 1000, reading_time: 800.25 });
    expect(row).toMatchObject({ plugin_version: "wrods-choose 0.1.0", created_at: "2026-11-21T10:00:00.000Z", regions: [] });
    expect(row).toMatchObject({ first_key_ms: null, typing_ms: null, paste_count: 0, keyless_chars: 0, key_log: null });
  });

  test("adds up what happened during all of its steps", () => {
    const row = trialPayload(trial(7, [READ, CHOOSE]), 1, [read, chosen], "u", now);
    expect(row).toMatchObject({ dropped_frames: 3, hidden_ms: 20, blurred_ms: 40 });
  });

  test("has a reading time and no response time where nothing was asked", () => {
    const row = trialPayload(trial(7, [READ]), 1, [read], "u", now);
    expect(row).toMatchObject({ rt: null, reading_time: 800.25, response_raw: null });
  });

  test("is not made of nothing", () => {
    expect(() => trialPayload(trial(7, [READ]), 1, [], "u", now)).toThrow("trial 7 recorded no step");
  });
});

describe("a row of several kinds of steps", () => {
  const named = (name: string) => ({ trial_type: name, plugin_version: "0.1.0" });
  const now = new Date("2026-11-21T10:00:00Z");
  const primed = { ...TIMES, response_ts: null, handler_ts: null, rt: null, prime_frames: 3, prime_ms: 50.1, ...named("wrods-prime") };
  const chosen = { ...TIMES, onset_ts: 1000, response_ts: 1500, rt: 500, response_raw: "A", ...named("wrods-choose") };

  test("keeps how long the prime stood beside the answer's times", () => {
    const row = trialPayload(trial(7, [PRIME, CHOOSE]), 1, [primed, chosen] as StepData[], "u", now);
    expect(row).toMatchObject({ prime_frames: 3, prime_ms: 50.1, rt: 500, reading_time: null, dropped_frames: 2 });
  });

  test("keeps the times of each word and, of an answer, when the hint was asked for", () => {
    const regions = [{ region: 0, line: 0, onset_ts: 1, rt: 200 }];
    const read = { ...TIMES, reading_time: 800, regions, ...named("wrods-read") };
    const typed = { first_key_ms: 5, typing_ms: 6, paste_count: 0, keyless_chars: 0, key_log: [] };
    const answered = { ...TIMES, ...typed, response_raw: "x", hint_ms: 420.5, ...named("wrods-answer") };
    const row = trialPayload(trial(7, [READ, ANSWER]), 1, [read, answered] as StepData[], "u", now);
    expect(row).toMatchObject({ regions, hint_ms: 420.5, reading_time: 800 });
  });
});

describe("practice", () => {
  const choice = trial(0, [CHOOSE], { answer: "purr" });
  const typed = trial(0, [RECOVER], { answer: "Der Garten blüht." });

  test("judges a choice by what its label stands for", () => {
    expect(isCorrect(choice, "B", "en")).toBe(true);
    expect(isCorrect(choice, "A", "en")).toBe(false);
    expect(isCorrect(choice, null, "en")).toBe(false);
  });

  test.each([" der  garten blüht", "DER GARTEN BLÜHT.", "Der Garten blüht。", "Der Garten blu\u0308ht"])("takes %j for the typed answer", (answer) => {
    expect(isCorrect(typed, answer, "de")).toBe(true);
  });

  test("takes no other text for the typed answer", () => {
    expect(isCorrect(typed, "Der Gaten blüht", "de")).toBe(false);
  });

  test("does not judge a trial whose answer is not told", () => {
    expect(isCorrect(trial(0, [CHOOSE]), "A", "en")).toBeNull();
  });

  test("names the right answer as the reader would have given it", () => {
    expect(rightAnswer(choice)).toBe("B: it purrs");
    expect(rightAnswer(typed)).toBe("Der Garten blüht.");
  });

  const five = practising([0, 1, 2, 3, 4].map((index) => trial(index, [CHOOSE])));
  const correct = (count: number) => Object.fromEntries([0, 1, 2, 3, 4].map((index) => [index, index < count]));

  test.each([
    [4, 1, "go on"],
    [3, 1, "again"],
    [3, 2, "end"],
    [5, 2, "go on"],
  ])("with %i of 5 right in pass %i: %s", (right, pass, then) => {
    expect(practiceOutcome(five, pass, correct(right))).toEqual({ right, total: 5, needed: 4, then });
  });

  test("only trials that ask count towards the criterion", () => {
    const two = practising([trial(0, [CHOOSE]), trial(1, [CHOOSE]), trial(2, [READ])]);
    expect(practiceOutcome({ ...two, pass: 1 }, 1, correct(2))).toEqual({ right: 2, total: 2, needed: 2, then: "go on" });
  });

  test("a criterion about the last trials is reached before all are answered", () => {
    const last = { ...five, pass: 0.5, of_last: 2 };
    const verdicts = (...given: boolean[]) => Object.fromEntries(given.map((right, index) => [index, right]));
    expect(isEarlyEnough(last, 1, verdicts(true))).toBe(false);
    expect(isEarlyEnough(last, 1, verdicts(false, false))).toBe(false);
    expect(isEarlyEnough(last, 1, verdicts(false, false, true))).toBe(true);
    expect(isEarlyEnough(five, 1, correct(5))).toBe(false);
    expect(practiceOutcome(last, 1, verdicts(false, false, true))).toEqual({ right: 1, total: 2, needed: 1, then: "go on" });
    expect(practiceOutcome(last, 1, verdicts(true, true, true, false, false))).toMatchObject({ right: 0, then: "again" });
  });

  test("without a criterion always goes on", () => {
    expect(practiceOutcome({ ...five, pass: null }, 1, correct(0))).toMatchObject({ needed: null, then: "go on" });
  });

  test("counts a maze as right if every word was chosen at once, and no text that is only read", () => {
    const maze = trial(0, [{ ...READ, as: "maze", parts: ["Teh", "dgo"] } as Step]);
    const chosen = (...correct: boolean[]) => correct.map((is_correct, region) => ({ region, line: null, onset_ts: 1, rt: 9, is_correct }));
    expect(isThrough(maze, chosen(true, true))).toBe(true);
    expect(isThrough(maze, chosen(true, false))).toBe(false);
    expect(isThrough(maze, chosen(true))).toBe(false);
    const read = trial(1, [READ]);
    expect(isThrough(read, [])).toBeNull();
    const screen = { ...practising([maze, read]), pass: 1 };
    expect(practiceOutcome(screen, 1, { 0: true, 1: true })).toEqual({ right: 1, total: 1, needed: 1, then: "go on" });
  });
});

describe("progress", () => {
  test("survives a reload and counts a seen trial's next showing as a new attempt", () => {
    const shelf = new BriefShelf();
    const [first, second] = [trial(1, [CHOOSE]), trial(2, [CHOOSE])];
    const before = new Progress(PLAN, shelf, "k");
    before.answer(first, before.show(first));
    before.show(second);
    const after = new Progress(PLAN, shelf, "k", [[1, 1]]);
    expect(after.begun).toBe(true);
    expect(after.isAnswered(first)).toBe(true);
    expect(after.isAnswered(second)).toBe(false);
    expect(after.show(second)).toBe(2);
  });

  test("takes the server's word for what was answered elsewhere", () => {
    const progress = new Progress(PLAN, new BriefShelf(), "k", [[1, 1], [2, 3]]);
    expect(progress.show(trial(2, [CHOOSE]))).toBe(4);
    expect(progress.share()).toBeCloseTo(2 / 5);
    expect([0, 1, 2, 3, 4].map((place) => progress.isOver(place))).toEqual([true, true, true, false, false]);
  });

  test("starts practice over with each pass", () => {
    const progress = new Progress(PLAN, new BriefShelf(), "k");
    progress.judgePractice(2, trial(0, [RECOVER]), false);
    progress.practiseAgain(2);
    expect(progress.practice(2)).toEqual({ pass: 2, correct: {} });
  });
});

describe("the timeline", () => {
  /** Run a plan in jsPsych's own simulation; returns what was recorded. */
  async function simulated(plan: Plan, shelf = new BriefShelf(), eligible = true) {
    const events: [string, Record<string, unknown>][] = [];
    const rows: unknown[] = [];
    const shares: number[] = [];
    const answers: Record<string, Readonly<Record<string, unknown>>> = {};
    document.body.innerHTML = "<main><div id='stage'></div></main>";
    const jsPsych = initJsPsych({ display_element: "stage" });
    const progress = new Progress(plan, shelf, "k");
    const onEnd = vi.fn();
    const conduct: Conduct = {
      jsPsych,
      messages: pack.texts,
      progress,
      recorder: {
        trial: async (row) => void rows.push(row),
        event: async (kind, detail) => void events.push([kind, detail]),
        answers: async (name, given) => {
          answers[name] = given;
          return { eligible, then: null };
        },
        verdict: async () => null,
        shown: () => {},
      },
      onShare: (share) => shares.push(share),
      plugins: {},
      isInputAssisted: false,
      onEnd, onAgreed: () => {}, onCut: () => {}, receipt: () => null,
    };
    await jsPsych.simulate([{ timeline: unfold(plan, conduct) }], "data-only");
    return { data: jsPsych.data.get().values(), events, rows, shares, onEnd, progress, answers };
  }

  const kinds = (data: { trial_type: string }[]) => data.map((step) => step.trial_type.replace("wrods-", ""));

  test("follows the plan: every screen, every step, a break after each second trial", async () => {
    const { data, events, shares } = await simulated(PLAN);
    const one = ["fixation", "read", "choose"];
    expect(kinds(data)).toEqual([
      "pages", // consent
      "pages", // instructions
      ...["fixation", "recover", "feedback", "pages"], // practice, feedback, verdict
      ...[...one, ...one, "pages", ...one, ...one],
      "pages", // debriefing
    ]);
    expect(events.map(([kind]) => kind)).toEqual(["consent", "instructions", "feedback", "practice", "break", "debrief"]);
    expect(shares.at(-1)).toBe(1);
  });

  test("marks simulated steps and never records them as a person's", async () => {
    const { data, rows } = await simulated(PLAN);
    const steps = data.filter((step: { trial_type: string }) => /read|choose|recover/.test(step.trial_type));
    expect(steps).toHaveLength(9);
    expect(steps.every((step: { simulated?: boolean }) => step.simulated === true)).toBe(true);
    expect(rows).toEqual([]);
  });

  test("shows nothing twice: a second visit to a finished session runs through at once", async () => {
    const shelf = new BriefShelf();
    await simulated(PLAN, shelf);
    const { data, events } = await simulated(PLAN, shelf);
    expect(data).toEqual([]);
    expect(events).toEqual([]);
  });

  test("repeats practice that was not good enough, then ends politely", async () => {
    const plan = { ...PLAN, screens: [practising([trial(0, [RECOVER], { answer: "garden" })]), PLAN.screens[3]!] };
    const { data, events, onEnd, progress } = await simulated(plan);
    const verdicts = events.filter(([kind]) => kind === "practice").map(([, detail]) => [detail["pass"], detail["then"]]);
    expect(verdicts).toEqual([
      [1, "again"],
      [2, "end"],
    ]);
    expect(onEnd).toHaveBeenCalledExactlyOnceWith("practice_failed", expect.stringContaining("at least 1"));
    expect(kinds(data)).not.toContain("choose");
    expect(progress.show(trial(0, [RECOVER]))).toBe(3);
  });

  const question = { options: null, from: 18, to: 99, low: null, high: null, optional: false };
  const AROUND: Plan = {
    ...PLAN,
    screens: [
      { kind: "device", device: "computer", browsers: null, width: null, height: null, refresh_hz: null },
      { kind: "questions", name: "eligibility", screening: true, questions: [{ ...question, name: "age", ask: "Age?", type: "number" }] },
      { kind: "full_screen" },
      { kind: "screen_size", character_mm: 3 },
      { kind: "block", block: "block-1", break_every: null, feedback: { ...FEEDBACK, accuracy: false }, trials: [trial(0, [PRIME, CHOOSE]), trial(1, [ANSWER])] },
      { kind: "break", html: null, minimum_ms: 1000 },
    ],
  };

  test("shows the screens around the trials and tells what came of each", async () => {
    const { data, events, answers } = await simulated(AROUND);
    expect(kinds(data)).toEqual([
      ...["device", "questions", "full-screen", "screen-size"],
      ...["fixation", "prime", "choose", "fixation", "answer"],
      "pages",
    ]);
    expect(events.map(([kind]) => kind)).toEqual(["device", "questions", "full_screen", "screen_size", "break"]);
    expect(answers["eligibility"]!["age"]).toBeGreaterThanOrEqual(18);
  });

  test("ends politely where the server says that the answers do not fit", async () => {
    const { data, onEnd } = await simulated(AROUND, new BriefShelf(), false);
    expect(kinds(data)).toEqual(["device", "questions"]);
    expect(onEnd).toHaveBeenCalledExactlyOnceWith("screened_out", pack.texts.not_eligible);
  });

  test("asks for the screen and its size again in a browser that lost them, while trials remain", () => {
    const shelf = new BriefShelf();
    const progress = new Progress(AROUND, shelf, "k", [[0, 1]]);
    expect([0, 1, 2, 3, 4].map((place) => isDue(AROUND.screens[place]!, place, AROUND, progress))).toEqual([
      false, false, true, true, true,
    ]);
    progress.setRemark("full_screen", "none"); // refused before: not asked twice
    expect(isDue(AROUND.screens[2]!, 2, AROUND, new Progress(AROUND, shelf, "k", [[0, 1]]))).toBe(false);
    const finished = new Progress(AROUND, new BriefShelf(), "k", [[0, 1], [1, 1]]);
    finished.leave(4);
    expect(isDue(AROUND.screens[3]!, 3, AROUND, finished)).toBe(false);
  });

  test("refuses a screen and a step that it does not know", () => {
    const conduct = { progress: new Progress(PLAN, new BriefShelf(), "k"), messages: pack.texts } as unknown as Conduct;
    const screen = { kind: "dance" } as unknown as Plan["screens"][number];
    expect(() => unfold({ ...PLAN, screens: [screen] }, conduct)).toThrow('kind "dance"');
    const step = { step: "sing" } as unknown as Step;
    const block = { kind: "block" as const, block: "b", break_every: null, trials: [trial(0, [step])] };
    expect(() => unfold({ ...PLAN, screens: [block] }, conduct)).toThrow('step "sing"');
  });
});

test("the letters to load are those of all stimuli", () => {
  const letters = stimulusTexts(PLAN);
  for (const letter of "Tehdgobarks.?Dnipu") expect(letters).toContain(letter);
  expect(new Set(letters).size).toBe([...letters].length);
});
