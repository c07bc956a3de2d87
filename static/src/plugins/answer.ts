/** `wrods-answer`: a question is answered freely by typing; examples and a hint may help, the browser may not. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { answerFields, answerParameters, type AnswerRecord } from "../generated/trials";
import { exemplarParameters, pageParameters, typedParameters } from "./parameters";
import type { Simulated } from "./simulation";
import { shownOf, simulateTyped, typedAnswer } from "./typed";
import type { TypingRecord } from "./typing";

const info = <const>{
  name: "wrods-answer",
  version,
  parameters: { ...answerParameters, ...pageParameters, ...exemplarParameters, ...typedParameters },
  data: answerFields,
};

type Info = typeof info;

export type AnswerData = AnswerRecord & Pick<TypingRecord, "composed_chars"> & Simulated;

export class AnswerPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<AnswerData> {
    return typedAnswer(display, shownOf(trial), "answer", onLoad);
  }

  async simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<AnswerData> {
    const text = trial.text ?? trial.ask ?? "answer";
    const typed = simulateTyped(this.jsPsych, trial, text, mode, (display) => this.trial(display, trial, onLoad));
    if (mode === "data-only") onLoad?.();
    return { ...(await typed), simulated: true };
  }
}
