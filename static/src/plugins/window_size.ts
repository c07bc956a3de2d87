/** `wrods-window-size`: asks for a wider window where the lines of a text that is read part by part do not fit at their full size. */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";
import { version } from "../../package.json";
import { fill, type Messages } from "../messages";
import { showPage } from "../page";
import { pageParameters } from "./parameters";
import { roomFor } from "./self_paced";

const info = <const>{
  name: "wrods-window-size",
  version,
  parameters: {
    /** The lines that must fit. */
    lines: { type: ParameterType.STRING, array: true, default: undefined },
    ...pageParameters,
  },
  data: {
    /** Width of the window in which all lines fit, CSS pixels. */
    needed: { type: ParameterType.FLOAT },
    /** Width of the window when the reader went on. */
    width: { type: ParameterType.FLOAT },
    /** Whether the lines fit then; else they are drawn smaller. */
    fits: { type: ParameterType.BOOL },
  },
};

type Info = typeof info;

export interface WindowSizeData {
  needed: number;
  width: number;
  fits: boolean;
}

export class WindowSizePlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<WindowSizeData> {
    const messages = trial.messages as Messages;
    const language = trial.language ?? "en";
    const measured = (): WindowSizeData => {
      const { needed, fits } = roomFor(trial.lines, trial.items_language ?? language, display);
      return { needed, width: window.innerWidth, fits };
    };
    onLoad?.();
    for (;;) {
      const now = measured();
      if (now.fits) return now;
      const sizes = { width: now.needed, has_width: now.width };
      const content = { heading: messages.window_small_title, text: [fill(messages.window_small_text, sizes)] };
      const actions = [
        { name: "again", words: messages.check_again, key: "space" },
        { name: "smaller", words: messages.window_small_go_on, quiet: true },
      ];
      const goOn = (): void => {
        if (measured().fits) display.querySelector<HTMLElement>(".actions button")?.click();
      };
      const watching = setInterval(goOn, 100); // a resize event may come before the page can be left
      const { action } = await showPage(display, content, actions, messages, language);
      clearInterval(watching);
      if (action === "smaller") return measured();
    }
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<WindowSizeData> {
    if (mode === "visual") {
      const leave = (): void => this.jsPsych.getDisplayElement().querySelector<HTMLElement>("button.quiet")?.click();
      const clicking = setInterval(leave, 300);
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad).finally(() => clearInterval(clicking));
    }
    onLoad?.();
    return Promise.resolve({ needed: window.innerWidth, width: window.innerWidth, fits: true });
  }
}
