/** `wrods-own`: a step of a lab's own trial type; its plugin draws and records, this one times the screen and ends it. */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import { exposureFields, type ExposureRecord } from "../generated/trials";
import type { Messages } from "../messages";
import { Exposure } from "../timing/exposure";
import { pageParameters } from "./parameters";

/** What a plugin's file exports: a class as jsPsych's plugins are. */
export interface OwnPluginClass {
  new (jsPsych: JsPsych): {
    trial(display: HTMLElement, trial: Record<string, unknown>, onLoad?: () => void): unknown;
  };
  info: { name: string; version?: string; parameters?: Record<string, { default?: unknown }> };
}

export type Recorded = Record<string, unknown>;

const info = <const>{
  name: "wrods-own",
  version,
  parameters: {
    /** The class of the plugin. */
    plugin: { type: ParameterType.FUNCTION, default: undefined },
    /** The type's name. */
    own_type: { type: ParameterType.STRING, default: undefined },
    /** The field that is the answer; null where the step takes none. */
    answer_field: { type: ParameterType.STRING, default: null },
    /** The parameters of the plugin: the step of the plan. */
    given: { type: ParameterType.COMPLEX, default: {} },
    ...pageParameters,
  },
  data: { ...exposureFields, recorded: { type: ParameterType.COMPLEX }, response_raw: { type: ParameterType.STRING } },
};

type Info = typeof info;

export type OwnData = ExposureRecord & {
  own_type: string;
  recorded: Recorded | null;
  response_raw: string | null;
};

export class OwnPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<OwnData> {
    const Plugin = trial.plugin as unknown as OwnPluginClass;
    const given = { ...defaults(Plugin), ...(trial.given as Record<string, unknown>) };
    const messages = trial.messages as Messages;
    const host = element("div", { class: "item" });
    const screen = element("section", { class: "trial own", tabindex: "-1", "aria-label": messages.trial }, host);
    let finish: (data: Recorded | null) => void = () => {};
    const finished = new Promise<Recorded | null>((resolve) => (finish = resolve));
    // the plugin ends its own screen alone: the session is not its to end
    const jsPsych = Object.create(this.jsPsych, {
      finishTrial: { value: (data: Recorded = {}) => finish(data) },
      getDisplayElement: { value: () => host },
    }) as JsPsych;
    let failure: unknown = null;
    const begin = (): void => {
      try {
        const made = new Plugin(jsPsych).trial(host, given, onLoad);
        if (made instanceof Promise) made.then((data: Recorded | undefined) => data && finish(data), (error) => fail(error));
      } catch (error) {
        fail(error);
      }
    };
    const fail = (error: unknown): void => {
      failure = error ?? new Error("the plugin failed");
      finish(null);
    };
    const exposure = await Exposure.begin(display, screen, host, begin);
    const limit = given.time_limit_ms;
    exposure.atLimit(typeof limit === "number" ? limit : null, () => finish(null));
    if (!screen.contains(document.activeElement)) screen.focus({ preventScroll: true });
    const data = await finished;
    const times = await exposure.end(data === null ? null : new Event("finished"));
    this.jsPsych.pluginAPI.cancelAllKeyboardResponses();
    this.jsPsych.pluginAPI.clearAllTimeouts();
    if (failure !== null) throw new Error(`trial type ${trial.own_type}: ${String(failure)}`);
    const recorded = data === null ? null : plain(data);
    const answer = recorded?.[trial.answer_field ?? ""] ?? null;
    return { ...times, own_type: trial.own_type, recorded, response_raw: answerText(answer) };
  }
}

function defaults({ info: { parameters = {} } }: OwnPluginClass): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parameters).map(([name, parameter]) => [name, parameter.default ?? null]));
}

/** What can be sent of a plugin's data: plain values, and null for numbers that are none. */
function plain(data: Recorded): Recorded {
  return JSON.parse(JSON.stringify(data)) as Recorded;
}

function answerText(answer: unknown): string | null {
  if (answer === null || typeof answer === "string") return answer;
  return JSON.stringify(answer);
}

/** Load the plugins of a plan from the study's server, each by the hash that the plan pins. */
export async function loadPlugins(pinned: Readonly<Record<string, string>>, base: string): Promise<Record<string, OwnPluginClass>> {
  const loaded: Record<string, OwnPluginClass> = {};
  for (const [name, hash] of Object.entries(pinned)) {
    loaded[name] = await load(name, `${base}${hash}.js`);
  }
  return loaded;
}

const TRIES = 4;
const PAUSE_MS = 1500;

async function load(name: string, address: string): Promise<OwnPluginClass> {
  for (let tries = 1; ; tries++) {
    try {
      // a browser may remember that a module could not be fetched: another try has another address
      const url = new URL(tries === 1 ? address : `${address}?try=${tries}`, document.baseURI).href;
      const module = (await import(/* @vite-ignore */ url)) as { default?: unknown };
      return checked(name, module.default);
    } catch (error) {
      if (tries === TRIES || error instanceof NoPlugin) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

class NoPlugin extends Error {}

function checked(name: string, given: unknown): OwnPluginClass {
  const plugin = given as Partial<OwnPluginClass> | undefined;
  const has = typeof given === "function" && typeof plugin?.info?.name === "string" && "trial" in (given.prototype as object);
  if (!has) throw new NoPlugin(`trial type ${name}: plugin.js has no class with info.name and trial() as its default export`);
  return given as OwnPluginClass;
}
