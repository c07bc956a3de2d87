/** `wrods-device`: measures the reader's device; where it is not what the study needs, says what is and asks again. */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";
import { version } from "../../package.json";
import { type Measured, measureDevice, type Missed, missedRules, needs } from "../device";
import { element } from "../dom";
import type { Messages } from "../messages";
import { showPage } from "../page";
import type { DeviceRules } from "../procedure/plan";
import { pageParameters } from "./parameters";

const info = <const>{
  name: "wrods-device",
  version,
  parameters: {
    /** What the device must be. */
    rules: { type: ParameterType.OBJECT, default: undefined },
    /** Told of a check that was not passed and is made again. */
    on_missed: { type: ParameterType.FUNCTION, default: null },
    ...pageParameters,
  },
  data: {
    /** Whether the device is what the study needs. */
    passed: { type: ParameterType.BOOL },
    /** What was measured. */
    measured: { type: ParameterType.OBJECT },
    /** The rules that were missed. */
    missed: { type: ParameterType.STRING, array: true },
  },
};

type Info = typeof info;

export interface DeviceData {
  passed: boolean;
  measured: Measured;
  missed: Missed[];
}

export class DevicePlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<DeviceData> {
    const messages = trial.messages as Messages;
    const rules = trial.rules as DeviceRules;
    onLoad?.();
    for (;;) {
      const checking = { heading: messages.device_title, text: [messages.device_checking] };
      void showPage(display, checking, [], messages, trial.language ?? "en");
      const measured = await measureDevice();
      const missed = missedRules(rules, measured);
      if (missed.length === 0) return { passed: true, measured, missed };
      (trial.on_missed as ((data: DeviceData) => void) | null)?.({ passed: false, measured, missed });
      const lines = needs(missed, rules, measured, messages).map((need) => element("li", {}, need));
      const extra = element("div", {}, element("ul", { class: "needs" }, ...lines), element("p", {}, messages.device_mend));
      const content = { heading: messages.device_missed_title, text: [messages.device_missed_text], extra };
      const actions = [
        { name: "again", words: messages.check_again },
        { name: "leave", words: messages.end_here, quiet: true },
      ];
      const { action } = await showPage(display, content, actions, messages, trial.language ?? "en");
      if (action === "leave") return { passed: false, measured, missed };
    }
  }

  async simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<DeviceData> {
    if (mode === "visual") {
      const leave = (): void => this.jsPsych.getDisplayElement().querySelector<HTMLElement>("button.quiet")?.click();
      const clicking = setInterval(leave, 300);
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad).finally(() => clearInterval(clicking));
    }
    onLoad?.();
    const rules = trial.rules as DeviceRules;
    const measured: Measured = {
      browser: rules.browsers?.[0] ?? "chrome",
      system: "simulated",
      device: "computer",
      width: rules.width ?? 1366,
      height: rules.height ?? 768,
      pixel_ratio: 1,
      cross_origin_isolated: true,
      refresh_hz: rules.refresh_hz?.[0] ?? 60,
      screen_width: rules.width ?? 1366,
      screen_height: rules.height ?? 768,
      touch_points: 0,
      coarse_pointer: false,
      prefers_dark: false,
      forced_colors: false,
      inverted_colors: null,
    };
    return Promise.resolve({ passed: true, measured, missed: [] });
  }
}
