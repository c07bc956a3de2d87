import { initJsPsych } from "jspsych";
import { beforeAll, expect, test } from "vitest";
import pack from "../../experiment/languages/data/en.json";
import { BriefShelf, Progress } from "../src/procedure/progress";
import type { Plan, PlannedTrial, Question, ShownStep } from "../src/procedure/plan";
import { unfold } from "../src/procedure/timeline";
import { frames } from "../src/timing/frames";

beforeAll(() => frames.start());

const text = (kind: string, words: string) => ({ step: kind, caption: null, text: words, lines: [words] });
const asked = { ask: "Which?", time_limit_ms: null, multiline: false };
const STEPS = [
  [{ ...text("read", "one two"), as: "moving_window", minimum_ms: 0 }],
  [{ ...text("read", "one two three"), as: "centred", parts: ["one two", "three"], lines: ["one two", "three"], minimum_ms: 0 }],
  [{ ...text("read", "one two"), as: "rsvp", parts: ["one", "two"], part_ms: [34, 50], blank_ms: 34, lines: ["one", "two"] }],
  [{ ...text("read", "one two"), as: "whole", part_ms: [50] }],
  [{ ...text("read", "one two"), as: "maze", parts: ["one", "two"], foils: ["x-x-x", "ten"], sides: ["left", "right"], keys: ["f", "j"], wrong: "end" }],
  [{ ...text("read", "one"), as: "whole", minimum_ms: 0 }],
  [
    { ...text("prime", "gadren"), mask: "######", mask_ms: 30, frames: 2, prime_ms: 0, backward_mask: "&&&&&&", backward_ms: 30 },
    { ...text("choose", "garden"), ask: null, labels: ["yes", "no"], options: null, keys: ["j", "f"], time_limit_ms: null },
  ],
  [{ ...text("rate", "go"), ...asked, from: 1, to: 3, low: "no", high: null, labels: ["1", "2", "3"], keys: ["1", "2", "3"], decimals: 0 }],
  [{ ...text("rate", "go"), ...asked, from: 0, to: 1, low: null, high: "yes", labels: null, keys: [], decimals: 2 }],
  [{ ...text("recover", "go"), ...asked }],
  [{ ...text("answer", "go"), ...asked, hint: "Think." }],
] as unknown as ShownStep[][];

const question = { ask: "?", options: null, from: 1, to: 3, low: null, high: null, optional: false };
const options = ["a", "b"].map((value) => ({ value, label: value }));
const QUESTIONS = (["text", "number", "choice", "several", "scale", "yes_no", "vocabulary"] as const).map(
  (type): Question => ({ ...question, type, name: type, options }),
);
const ROWS = [1, 2].map((row) => ({ name: `matrix_r${row}`, text: `Row ${row}` }));
QUESTIONS.push(
  { ...question, type: "matrix", name: "matrix", options, rows: ROWS },
  { ...question, type: "slider", name: "slider", only: { matrix_r1: { values: ["a", "b"] } } },
  { ...question, type: "text", name: "never", only: { matrix_r1: { values: ["c"] } } },
);

const PLAN: Plan = {
  study: "demo",
  title: "Demo",
  language: "en",
  screens: [
    { kind: "questions", name: "questions-1", screening: false, questions: QUESTIONS },
    { kind: "questions", name: "questions-2", screening: false, questions: [QUESTIONS.at(-1)!] },
    { kind: "full_screen" },
    { kind: "screen_size", character_mm: 3 },
    {
      kind: "block",
      block: "block-1",
      break_every: null,
      trials: STEPS.map((steps, trial_index): PlannedTrial => {
        return { trial_index, block: "block-1", is_practice: false, fixation_ms: 10, interval_ms: 10, steps };
      }),
    },
    { kind: "break", html: null, minimum_ms: 50 },
  ],
};

test("the visual simulation walks through every screen by its own buttons and keys, marked as simulated", async () => {
  document.body.innerHTML = "<main><div id='stage'></div></main>";
  const jsPsych = initJsPsych({ display_element: "stage" });
  const answers: Record<string, Readonly<Record<string, unknown>>> = {};
  const stored: unknown[] = [];
  const conduct = {
    jsPsych,
    messages: pack.texts,
    progress: new Progress(PLAN, new BriefShelf(), "k"),
    recorder: {
      trial: async (row: unknown) => void stored.push(row),
      event: async () => {},
      answers: async (name: string, given: Readonly<Record<string, unknown>>) => {
        answers[name] = given;
        return { eligible: true, then: null };
      },
      verdict: async () => null,
      shown: () => {},
    },
    onShare: () => {},
    plugins: {},
    isInputAssisted: false,
    onEnd: () => {},
    onAgreed: () => {},
    onCut: () => {},
    receipt: () => null,
  };
  await jsPsych.simulate([{ timeline: unfold(PLAN, conduct) }], "visual");
  const data = jsPsych.data.get().values() as { trial_type: string; simulated?: boolean; regions?: unknown[]; response_raw?: string }[];
  const steps = data.filter((one) => /read|prime|choose|rate|recover|answer/.test(one.trial_type));
  expect(steps.map((one) => one.trial_type.replace("wrods-", ""))).toEqual(["read", "read", "read", "read", "read", "read", "prime", "choose", "rate", "rate", "recover", "answer"]);
  expect(steps.every((one) => one.simulated)).toBe(true);
  const [button, slider] = steps.filter((one) => one.trial_type === "wrods-rate").map((one) => one.response_raw);
  expect(["1", "2", "3"]).toContain(button);
  expect(slider).toMatch(/^(0\.\d\d|1\.00)$/);
  expect(steps.slice(0, 6).map((one) => one.regions?.length)).toEqual([2, 2, 2, 0, 2, undefined]);
  expect(stored).toEqual([]);
  const given = answers["questions-1"]!;
  const asked = QUESTIONS.slice(0, -1).flatMap((one) => (one.rows ?? [one]).map(({ name }) => name));
  expect(Object.keys(given)).toEqual(asked);
  expect(answers["questions-2"]).toEqual({});
  expect(["a", "b"]).toContain(given["choice"]);
  expect(given["scale"]).toBeGreaterThan(0);
}, 60_000);
