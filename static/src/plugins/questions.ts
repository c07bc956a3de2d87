/** `wrods-questions`: a page of questions about the reader; it can be left when what is entered is possible. */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import type { Messages } from "../messages";
import { showPage } from "../page";
import { type Answer, isAsked, type Question } from "../procedure/plan";
import { pageParameters } from "./parameters";
import { questionField } from "./question_fields";

const info = <const>{
  name: "wrods-questions",
  version,
  parameters: {
    /** The questions, in order. */
    questions: { type: ParameterType.COMPLEX, array: true, default: undefined },
    /** What stands above them. */
    heading: { type: ParameterType.STRING, default: undefined },
    /** Answers to earlier screens, on which it depends what is asked. */
    given: { type: ParameterType.OBJECT, default: {} },
    ...pageParameters,
  },
  data: {
    /** Question (or row of a matrix) to answer: a text, a number, a list of values, or null for none; what was not asked is absent. */
    answers: { type: ParameterType.OBJECT },
    /** Time on the page, ms. */
    duration: { type: ParameterType.FLOAT },
  },
};

type Info = typeof info;

export interface QuestionsData {
  answers: Record<string, Answer>;
  duration: number;
}

export class QuestionsPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<QuestionsData> {
    const messages = trial.messages as Messages;
    const language = trial.language ?? "en";
    const fields = (trial.questions as Question[]).map((question, place) => questionField(question, place, language, messages));
    const summary = element("p", { class: "problem", role: "alert" });
    const extra = element("div", { class: "questions" }, ...fields.map((field) => field.element), summary);
    const answersSoFar = (): Record<string, Answer> => {
      const answers: Record<string, Answer> = {};
      for (const field of fields) {
        field.element.hidden = !isAsked(field.question, { ...(trial.given as Record<string, Answer>), ...answers });
        if (!field.element.hidden) Object.assign(answers, field.answers());
      }
      return answers;
    };
    answersSoFar();
    const mayLeave = (): boolean => {
      const wrong = fields.filter((field) => !field.element.hidden && !field.check());
      summary.classList.remove("mended");
      summary.textContent = wrong.length > 0 ? messages.look_again : "";
      wrong[0]?.focus();
      return wrong.length === 0;
    };
    extra.addEventListener("input", answersSoFar);
    extra.addEventListener("change", () => {
      answersSoFar();
      summary.classList.toggle("mended", !extra.querySelector(".question .problem:not(.mended, :empty)"));
    });
    extra.addEventListener("keydown", (event) => {
      const isText = event.target instanceof HTMLInputElement && event.target.type === "text";
      if (event.key !== "Enter" || !isText || event.isComposing) return;
      event.preventDefault();
      display.querySelector<HTMLElement>(".actions button")?.click();
    });
    const content = { heading: trial.heading, extra, mayLeave };
    onLoad?.();
    const { duration } = await showPage(display, content, [{ name: "go_on", words: messages.go_on }], messages, language);
    return { answers: answersSoFar(), duration };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<QuestionsData> {
    const answers: Record<string, Answer> = {};
    for (const question of trial.questions as Question[]) {
      if (!isAsked(question, { ...(trial.given as Record<string, Answer>), ...answers })) continue;
      for (const { name } of question.rows ?? [question]) answers[name] = plausible(question);
    }
    if (mode === "visual") {
      const display = this.jsPsych.getDisplayElement();
      const filling = setInterval(() => {
        enter(display, trial.questions as Question[], answers);
        display.querySelector<HTMLElement>(".actions button")?.click();
      }, 300);
      return this.trial(display, trial, onLoad).finally(() => clearInterval(filling));
    }
    onLoad?.();
    return Promise.resolve({ answers, duration: 1000 });
  }
}

function plausible(question: Question): Answer {
  const values = (question.options ?? []).map((option) => option.value);
  const low = question.from ?? 1;
  switch (question.type) {
    case "text":
      return "simulated";
    case "number":
    case "scale":
    case "slider":
      return low + Math.floor(Math.random() * ((question.to ?? low + 6) - low + 1));
    case "several":
    case "vocabulary":
      return values.filter((_, index) => index === 0 || Math.random() < 0.5);
    default:
      return values[Math.floor(Math.random() * values.length)] ?? null;
  }
}

function enter(display: HTMLElement, questions: Question[], answers: Record<string, Answer>): void {
  const fields = questions.flatMap((question, place) => {
    const id = `wrods-question-${place}`;
    return question.rows ? question.rows.map(({ name }, row) => ({ name, id: `${id}-${row}` })) : [{ name: question.name, id }];
  });
  for (const { name, id } of fields) {
    const answer = answers[name] ?? null;
    const given = (Array.isArray(answer) ? answer : [answer]).map(String);
    const single = display.querySelector<HTMLInputElement | HTMLSelectElement>(`#${id}`);
    if (single) single.value = given[0] ?? "";
    for (const box of display.querySelectorAll<HTMLInputElement>(`[name="${id}"]`)) box.checked = given.includes(box.value);
    (single ?? display.querySelector(`[name="${id}"]`))?.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
