import { describe, expect, test, vi } from "vitest";
import { AwayMeter } from "../src/timing/attention";
import { Exposure } from "../src/timing/exposure";
import { FrameClock, frames, median } from "../src/timing/frames";

/** A screen whose frames come when the test says, and where a layout takes so many milliseconds. */
function screen(layoutMs = 0) {
  let callbacks: ((stamp: number) => void)[] = [];
  let clock = 0;
  const frames = new FrameClock({
    request: (callback) => callbacks.push(callback),
    now: () => clock,
    layOut: () => void (clock += layoutMs),
  });
  frames.start();
  const frame = (stamp: number, late = 0): void => {
    const due = callbacks;
    callbacks = [];
    clock = stamp + late;
    for (const callback of due) callback(stamp);
  };
  const steady = (count: number, period: number, from = 0): number => {
    for (let index = 0; index < count; index++) frame(from + index * period);
    return from + (count - 1) * period;
  };
  return { frames, frame, steady, at: (time: number) => (clock = time) };
}

test("the median of an even number of values lies between the middle two", () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([5, 1, 3])).toBe(3);
  expect(median([])).toBeNull();
});

describe("the frame clock", () => {
  test("reads the onset once what was drawn is laid out, in the same frame", async () => {
    const { frames, frame } = screen(7);
    const drawn = vi.fn();
    const onset = frames.draw(drawn);
    frame(100, 2);
    expect(drawn).toHaveBeenCalledOnce();
    expect(await onset).toBe(109);
  });

  test("knows no period before it saw enough frames", () => {
    const { frames, steady } = screen();
    steady(5, 10);
    expect(frames.period).toBeNull();
  });

  test.each([16.667, 8.333, 6.944])("finds a period of %f ms without assuming 60 Hz", (period) => {
    const { frames, steady } = screen();
    steady(60, period);
    expect(frames.period).toBeCloseTo(period, 6);
  });

  test("keeps its period when some frames are missed", () => {
    const { frames, frame, steady } = screen();
    let last = steady(30, 10);
    for (let index = 0; index < 5; index++) frame((last += 30));
    expect(frames.period).toBe(10);
  });

  test("counts the frames missed while it is watched, and no others", () => {
    const { frames, frame, steady, at } = screen();
    let last = steady(30, 10);
    frame((last += 50));
    const watch = frames.watch();
    frame((last += 10));
    frame((last += 14)); // late, but within one and a half periods
    frame((last += 30)); // two frames missed
    frame((last += 20)); // one
    at(last + 1);
    expect(watch.stop()).toBe(3);
    frame((last += 100));
    expect(watch.dropped).toBe(3);
  });

  test("counts what is being missed at the moment of the answer", () => {
    const { frames, steady, at } = screen();
    const last = steady(30, 10);
    const watch = frames.watch();
    at(last + 100);
    expect(watch.stop()).toBe(9);
  });

  test("takes time in the background for neither a period nor dropped frames", () => {
    const { frames, frame, steady, at } = screen();
    const last = steady(30, 10);
    const watch = frames.watch();
    frames.forgetPrevious();
    frame(last + 60_000);
    at(last + 60_001);
    expect(watch.stop()).toBe(0);
    expect(frames.period).toBe(10);
  });

  test("draws inside the next frame and gives the clock as read there, not the frame's own stamp", async () => {
    const { frames, frame } = screen();
    let drawn = false;
    const onset = frames.draw(() => (drawn = true));
    expect(drawn).toBe(false);
    frame(100, 4.5);
    expect(drawn).toBe(true);
    expect(await onset).toBe(104.5);
  });

  test("draws what follows in the frame that is held open, without an empty frame between", async () => {
    const { frames, frame } = screen();
    const drawn: string[] = [];
    const leave = frames.onEachFrame(() => {
      leave();
      drawn.push("prime ends");
      frames.holdOpen();
    });
    frame(10);
    const onset = await frames.draw(() => drawn.push("target"));
    expect(drawn).toEqual(["prime ends", "target"]);
    expect(onset).toBe(10);
  });

  test("does not draw outside a frame once the held one is over", async () => {
    const { frames, frame } = screen();
    const leave = frames.onEachFrame(() => {
      leave();
      frames.holdOpen();
    });
    frame(10);
    await new Promise((done) => setTimeout(done, 5));
    let isDrawn = false;
    const onset = frames.draw(() => (isDrawn = true));
    expect(isDrawn).toBe(false);
    frame(20);
    expect(await onset).toBe(20);
  });

  test("hands on what goes wrong while drawing, and keeps running", async () => {
    const { frames, frame } = screen();
    const failing = frames.draw(() => {
      throw new Error("no paint");
    });
    frame(10);
    await expect(failing).rejects.toThrow("no paint");
    const next = frames.draw(() => {});
    frame(20);
    expect(await next).toBe(20);
  });

  test("ends a wait in the frame nearest to its time", async () => {
    const { frames, frame, steady } = screen();
    const last = steady(30, 10);
    let over = false;
    const waiting = frames.wait(36).then(() => (over = true));
    for (const passed of [10, 20, 30]) frame(last + passed);
    await Promise.resolve();
    expect(over).toBe(false);
    frame(last + 40);
    await waiting;
    expect(over).toBe(true);
  });
});

describe("a time limit", () => {
  async function shown() {
    frames.start();
    const stimulus = document.createElement("p");
    const exposure = await Exposure.begin(document.body, stimulus, stimulus);
    return exposure;
  }

  test("is ended by the clock where the page gets no frames, once", async () => {
    const exposure = await shown();
    const noFrames = vi.spyOn(frames, "onEachFrame").mockReturnValue(() => {});
    const ended = vi.fn();
    exposure.atLimit(50, ended);
    noFrames.mockRestore();
    await vi.waitFor(() => expect(ended).toHaveBeenCalledOnce(), { timeout: 5000 });
  });

  test("is ended by a frame, and not again by the clock", async () => {
    const exposure = await shown();
    const ended = vi.fn();
    exposure.atLimit(50, ended);
    await vi.waitFor(() => expect(ended).toHaveBeenCalled(), { timeout: 5000 });
    await new Promise((done) => setTimeout(done, 500));
    expect(ended).toHaveBeenCalledOnce();
  });

  test("ends nothing that was answered before", async () => {
    const exposure = await shown();
    const ended = vi.fn();
    exposure.atLimit(50, ended);
    await exposure.end(new Event("click"));
    await new Promise((done) => setTimeout(done, 500));
    expect(ended).not.toHaveBeenCalled();
  });
});

describe("time away", () => {
  test("adds up spells and counts the one under way", () => {
    const meter = new AwayMeter(false, 0);
    meter.change(true, 100);
    meter.change(true, 120); // said twice, counted once
    meter.change(false, 150);
    meter.change(false, 160);
    meter.change(true, 200);
    expect(meter.until(230)).toBe(80);
  });

  test("counts from the onset where the reader was away already", () => {
    expect(new AwayMeter(true, 50).until(80)).toBe(30);
  });
});
