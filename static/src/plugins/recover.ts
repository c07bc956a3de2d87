/** `wrods-recover`: the intact form of a text is typed; nothing but the reader's keys may help. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { recoverFields, recoverParameters, type RecoverRecord } from "../generated/trials";
import { exemplarParameters, pageParameters, typedParameters } from "./parameters";
import type { Simulated } from "./simulation";
import { shownOf, simulateTyped, typedAnswer, type TypedRecord } from "./typed";

const info = <const>{
  name: "wrods-recover",
  version,
  parameters: { ...recoverParameters, ...pageParameters, ...exemplarParameters, ...typedParameters },
  data: recoverFields,
};

type Info = typeof info;

export type RecoverData = RecoverRecord & Pick<TypedRecord, "composed_chars"> & Simulated;

export class RecoverPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<RecoverData> {
    return withoutHint(await typedAnswer(display, shownOf(trial), "recover", onLoad));
  }

  async simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<RecoverData> {
    const show = (display: HTMLElement): Promise<TypedRecord> => typedAnswer(display, shownOf(trial), "recover", onLoad);
    const typed = simulateTyped(this.jsPsych, trial, trial.text, mode, show);
    if (mode === "data-only") onLoad?.();
    return { ...withoutHint(await typed), simulated: true };
  }
}

function withoutHint({ hint_ms: _, ...data }: TypedRecord): RecoverData {
  return data;
}
