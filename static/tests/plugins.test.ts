import { describe, expect, test } from "vitest";
import { missedRules, type Measured, needs } from "../src/device";
import pack from "../../experiment/languages/data/en.json";
import { goal, questionField, readNumber } from "../src/plugins/question_fields";
import { dashes, isRightToLeft, piecesOf, wordsOf } from "../src/plugins/self_paced";
import { type DeviceRules, isAsked, type Question } from "../src/procedure/plan";
import { framesFor } from "../src/timing/stages";

const words = pack.texts;

describe("a text that is read part by part", () => {
  test("cuts a text where the server does, and knows each word's line", () => {
    const lines = ["The  dog", "", " barks."];
    expect(piecesOf(lines, wordsOf(lines))).toEqual([
      [{ text: "The", part: 0 }, "  ", { text: "dog", part: 1 }],
      [],
      [" ", { text: "barks.", part: 2 }],
    ]);
  });

  test("finds parts across blanks, lines and scripts without blanks", () => {
    const [first, second] = piecesOf(["The old man", "他喜欢"], ["The old", "man 他", "喜欢"]);
    expect(first!.map((piece) => (typeof piece === "string" ? null : piece.part))).toEqual([0, null, 0, null, 1]);
    expect(second).toEqual([{ text: "他", part: 1 }, { text: "喜欢", part: 2 }]);
  });

  test("refuses lines with more than the parts", () => expect(() => piecesOf(["one two"], ["one"])).toThrow('"two"'));

  test.each([
    ["garden,", "-------"],
    ["ne\u0301e", "---"],
    ["日本", "----"],
  ])("covers %s with %s", (word, cover) => expect(dashes(word, "en")).toBe(cover));

  test.each([
    ["הילד", true],
    ["123 مرحبا", true],
    ["The הילד", false],
    ["123", false],
  ])("finds the direction of %s", (text, is) => expect(isRightToLeft(text)).toBe(is));
});

test.each([
  [50, 1000 / 60, 3],
  [50, 1000 / 144, 7],
  [1, 1000 / 60, 1],
  [33, 10, 3],
])("%f ms are the nearest number of frames of %f ms", (ms, period, count) => expect(framesFor(ms, period)).toBe(count));

describe("the device check", () => {
  const measured: Measured = {
    browser: "Firefox 140",
    system: "Linux",
    device: "computer",
    width: 1000,
    height: 700,
    pixel_ratio: 1,
    cross_origin_isolated: true,
    refresh_hz: 59.94,
    screen_width: 1366,
    screen_height: 768,
    touch_points: 0,
    coarse_pointer: false,
    prefers_dark: false,
    forced_colors: false,
    inverted_colors: null,
  };
  const anything: DeviceRules = { device: null, browsers: null, width: null, height: null, refresh_hz: null };

  test("lets anything pass where nothing is asked", () => {
    expect(missedRules(anything, { ...measured, device: "phone", refresh_hz: null })).toEqual([]);
  });

  test.each([
    [{ device: "computer" as const }, { device: "tablet" as const }, ["device"]],
    [{ browsers: ["chrome", "edge"] }, {}, ["browsers"]],
    [{ browsers: ["firefox"] }, {}, []],
    [{ width: 1001 }, {}, ["window"]],
    [{ width: 1000, height: 700 }, {}, []],
    [{ refresh_hz: [60, 60] as [number, number] }, {}, []],
    [{ refresh_hz: [60, 75] as [number, number] }, { refresh_hz: 144.1 }, ["refresh_rate"]],
    [{ refresh_hz: [60, 75] as [number, number] }, { refresh_hz: null }, ["refresh_rate"]],
  ])("with rules %j and %j misses %j", (rules, has, missed) => {
    expect(missedRules({ ...anything, ...rules }, { ...measured, ...has })).toEqual(missed);
  });

  test("says what is needed and what is there", () => {
    const rules = { ...anything, width: 1200, height: 800, browsers: ["chrome", "edge"] };
    const said = needs(missedRules(rules, measured), rules, measured, words).join(" ");
    for (const part of ["Chrome, Edge", "Firefox", "1200 × 800", "1000 × 700"]) expect(said).toContain(part);
  });
});

describe("questions", () => {
  function ask(more: Partial<Question>) {
    const blank = { name: "q", ask: "Which?", options: null, from: null, to: null, low: null, high: null, optional: false };
    const field = questionField({ ...blank, type: "text", ...more } as Question, 0, "en", words);
    const input = field.element.querySelector<HTMLInputElement>("input, select")!;
    const problem = (): string => (field.check() ? "" : field.element.querySelector(".problem")!.textContent!);
    return { field, input, problem };
  }

  test.each([
    ["33", ""],
    [" 33,5 ", ""],
    ["17", words.number_between.replace("{from}", "18").replace("{to}", "99")],
    ["1e2", words.number_between.replace("{from}", "18").replace("{to}", "99")],
    ["", words.answer_needed],
  ])("take the number %j or say %j", (written, said) => {
    const { input, problem } = ask({ type: "number", from: 18, to: 99 });
    input.value = written;
    expect(problem()).toBe(said);
  });

  test.each([
    ["-2.5", -2.5],
    ["3,25", 3.25],
    ["２０", 20],
    ["٢٠٫٥", 20.5],
    ["four", NaN],
    ["1.2.3", NaN],
  ])("read %s as %d", (written, number) => expect(readNumber(written)).toBe(number));

  test("may stay without an answer where they are optional, with nothing made up", () => {
    const { field, problem } = ask({ optional: true });
    expect(problem()).toBe("");
    expect(field.answers()).toEqual({ q: null });
  });

  test("give the values of what was chosen, numbers of a scale as numbers", () => {
    const options = ["a", "b", "c"].map((value) => ({ value, label: value.toUpperCase() }));
    const several = ask({ type: "several", options });
    for (const box of [...several.field.element.querySelectorAll<HTMLInputElement>("input")].slice(1)) box.checked = true;
    expect(several.field.answers()).toEqual({ q: ["b", "c"] });
    const scale = ask({ type: "scale", from: 1, to: 7 });
    scale.field.element.querySelectorAll<HTMLInputElement>("input")[4]!.checked = true;
    expect(scale.field.answers()).toEqual({ q: 5 });
  });

  test("mark what is wrong for those who cannot see it", () => {
    const { field, input } = ask({});
    field.check();
    expect(input.getAttribute("aria-invalid")).toBe("true");
    expect(field.element.querySelector(`#${input.getAttribute("aria-describedby")}`)!.textContent).toBe(words.answer_needed);
  });

  test("have no mark on a line until it is touched, in the middle or elsewhere", () => {
    const { field, input, problem } = ask({ type: "slider", from: 0, to: 100 });
    expect([field.answers(), problem()]).toEqual([{ q: null }, words.answer_needed]);
    expect(input.getAttribute("aria-valuetext")).toBe(words.slider_hint);
    input.dispatchEvent(new Event("pointerup"));
    expect(field.answers()).toEqual({ q: 50 });
    input.value = "80";
    input.dispatchEvent(new Event("input"));
    expect([field.answers(), problem()]).toEqual([{ q: 80 }, ""]);
    expect(input.getAttribute("aria-valuetext")).toBe("80");
  });

  test("in rows are groups of their own, each with its answer, and lead to the row that lacks one", () => {
    const rows = ["films", "books"].map((name) => ({ name: `use_${name}`, text: `I like ${name}.` }));
    const options = ["no", "yes"].map((value) => ({ value, label: value }));
    const { field, problem } = ask({ type: "matrix", rows, options });
    document.body.replaceChildren(field.element);
    const groups = [...field.element.querySelectorAll<HTMLElement>("[role=radiogroup]")];
    const named = groups.map((group) => field.element.querySelector(`#${group.getAttribute("aria-labelledby")}`)!.textContent);
    expect(named).toEqual(["I like films.", "I like books."]);
    groups[0]!.querySelectorAll("input")[1]!.checked = true;
    expect([field.answers(), problem()]).toEqual([{ use_films: "yes", use_books: null }, words.answer_needed]);
    expect(groups.map((group) => group.getAttribute("aria-invalid"))).toEqual([null, "true"]);
    field.focus();
    expect(document.activeElement).toBe(groups[1]!.querySelector("input"));
    groups[1]!.querySelectorAll("input")[0]!.checked = true;
    expect([field.answers(), problem()]).toEqual([{ use_films: "yes", use_books: "no" }, ""]);
  });

  test.each([
    [{}, {}, true],
    [{ glasses: { values: ["yes"] } }, {}, false],
    [{ glasses: { values: ["yes"] } }, { glasses: null }, false],
    [{ glasses: { values: ["yes"] } }, { glasses: "yes" }, true],
    [{ scripts: { values: ["Latin", "Greek"] } }, { scripts: ["Greek", "Arabic"] }, true],
    [{ age: { from: 60, to: 99 } }, { age: 60 }, true],
    [{ age: { from: 60, to: 99 } }, { age: 59.5 }, false],
    [{ age: { from: 60, to: 99 }, glasses: { values: ["yes"] } }, { age: 70, glasses: "no" }, false],
  ])("only after %j and answers %j are asked: %s", (only, given, is) => {
    expect(isAsked({ only } as unknown as Question, given)).toBe(is);
  });

  test("of an unknown type are refused", () => {
    expect(() => ask({ type: "riddle" as Question["type"] })).toThrow('type "riddle"');
  });

  test.each([
    ["ArrowRight", 0, 1],
    ["ArrowLeft", 0, 0],
    ["ArrowDown", 1, 4],
    ["ArrowDown", 5, 5],
    ["ArrowUp", 4, 1],
    ["End", 0, 6],
    ["Home", 5, 0],
    ["a", 3, undefined],
  ])("in a grid of 7 words and 3 columns, %s leads from %i to %s", (key, from, to) => expect(goal(key, from, 7, 3)).toBe(to));
});
