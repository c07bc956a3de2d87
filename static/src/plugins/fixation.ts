/** An empty interval and a fixation cross before a trial, both ended by the frame clock. */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";
import { version } from "../../package.json";
import { holdPolarity } from "../display";
import { element } from "../dom";
import { frames } from "../timing/frames";
import { interruption } from "../timing/interruption";

const info = <const>{
  name: "wrods-fixation",
  version,
  parameters: {
    /** Empty screen before the cross, ms. */
    interval_ms: { type: ParameterType.FLOAT, default: 0 },
    /** How long the cross is shown, ms; 0 shows none. */
    fixation_ms: { type: ParameterType.FLOAT, default: 0 },
  },
  data: {
    /** Page clock in the frame that drew the cross, ms; null where none was shown. */
    onset_ts: { type: ParameterType.FLOAT },
  },
};

type Info = typeof info;

export class FixationPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<{ onset_ts: number | null }> {
    onLoad?.();
    holdPolarity(); // also while nothing is shown
    let onset_ts: number | null = null;
    do {
      if (interruption.isOn) await interruption.over();
      if (trial.interval_ms) await frames.wait(trial.interval_ms);
      if (!trial.fixation_ms) continue;
      const cross = element("div", { class: "fixation", "aria-hidden": "true" }, "+");
      onset_ts = await frames.draw(() => display.replaceChildren(cross));
      await frames.wait(trial.fixation_ms);
    } while (interruption.isOn);
    if (onset_ts !== null) frames.holdOpen(); // the stimulus follows the cross in the same frame
    return { onset_ts };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void) {
    if (mode === "visual") return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad);
    onLoad?.();
    return Promise.resolve({ onset_ts: null });
  }
}
