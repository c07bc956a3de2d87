import type { JsPsych } from "jspsych";
import { initJsPsych } from "jspsych";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { OwnPlugin, type OwnPluginClass } from "../src/plugins/own";
import { frames } from "../src/timing/frames";

type Given = Record<string, unknown>;

function pluginThat(trial: (display: HTMLElement, given: Given, jsPsych: JsPsych) => unknown): OwnPluginClass {
  return class {
    static info = { name: "made", parameters: { pace: { default: 3 }, text: { default: "none" } } };
    constructor(private readonly jsPsych: JsPsych) {}
    trial(display: HTMLElement, given: Given): unknown {
      return trial(display, given, this.jsPsych);
    }
  };
}

function show(plugin: OwnPluginClass, given: Given = {}, jsPsych = initJsPsych()) {
  const display = document.createElement("div");
  document.body.replaceChildren(display);
  const trial = { plugin, own_type: "made", answer_field: "word", given, language: "en", messages: { trial: "Trial" } };
  return { display, done: new OwnPlugin(jsPsych).trial(display, trial as never) };
}

beforeAll(() => frames.start());

describe("a step of a lab's own type", () => {
  test("gives its plugin the plan over its defaults, and records what it finishes with", async () => {
    let seen: Given = {};
    const { display, done } = show(
      pluginThat((host, given, jsPsych) => {
        seen = given;
        host.append("drawn");
        setTimeout(() => jsPsych.finishTrial({ word: "pepper", taps: [1, Number.NaN] }), 20);
      }),
      { text: "salt" },
    );
    const data = await done;
    expect(seen).toMatchObject({ pace: 3, text: "salt" });
    expect(display.textContent).toBe("drawn");
    expect(data).toMatchObject({ recorded: { word: "pepper", taps: [1, null] }, response_raw: "pepper", timed_out: false });
    expect(data.rt).toBeCloseTo(data.response_ts! - data.onset_ts!);
  });

  test("ends with what its plugin promises, and leaves the session alone", async () => {
    const jsPsych = initJsPsych();
    const finish = vi.spyOn(jsPsych, "finishTrial");
    const { done } = show(pluginThat(async () => ({ word: 1.5 })), {}, jsPsych);
    expect(await done).toMatchObject({ recorded: { word: 1.5 }, response_raw: "1.5" });
    expect(finish).not.toHaveBeenCalled();
  });

  test("is over at its time limit, and what its plugin says later is nothing", async () => {
    const { done } = show(
      pluginThat((_, __, jsPsych) => void setTimeout(() => jsPsych.finishTrial({ word: "late" }), 500)),
      { time_limit_ms: 30 },
    );
    expect(await done).toMatchObject({ recorded: null, response_raw: null, timed_out: true, rt: null });
  });

  test("fails with its name where its plugin fails", async () => {
    const fails = pluginThat(() => {
      throw new Error("no such thing");
    });
    await expect(show(fails).done).rejects.toThrow(/made.*no such thing/);
  });
});
