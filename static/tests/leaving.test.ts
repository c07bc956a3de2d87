import { describe, expect, test, vi } from "vitest";
import pack from "../../experiment/languages/data/en.json";
import { endedBy, keepsakes, type Parting, partingOf } from "../src/leaving/endings";
import { type Receipt, receiptPage } from "../src/leaving/receipt";
import type { Plan } from "../src/procedure/plan";
import { BriefShelf, Progress } from "../src/procedure/progress";
import { Interruption } from "../src/timing/interruption";

const messages = pack.texts;
const RECEIPT: Receipt = {
  study: "demo",
  title: "Letters <& words>",
  language: "en",
  direction: "ltr",
  html: "<p>What you do: <em>read</em>.</p>",
  version: "3f2a",
  agreed: "2026-11-24T10:00:00.000Z",
  participant: "P007",
};
const PARTING: Parting = { debrief: "<p>We study letters.</p>", receipt: RECEIPT };
const DELETABLE = { address: "/api/demo/sessions/s1", token: "t1", until: "2031-03-31" };
const NOTHING = { words: null };

describe("the end of a visit", () => {
  test("debriefs everybody but who finished, having read it", () => {
    const debriefed = (["completed", "declined", "practice_failed", "comprehension_failed", "screened_out", "stopped", "deleted"] as const).filter(
      (ending) => endedBy(ending, NOTHING, PARTING, DELETABLE, messages).debrief !== null,
    );
    expect(debriefed).toEqual(["declined", "practice_failed", "comprehension_failed", "screened_out", "stopped", "deleted"]);
  });

  test("folds the debriefing of who declined, who may still take part", () => {
    const folded = (["declined", "stopped"] as const).map((ending) => {
      const ended = endedBy(ending, NOTHING, PARTING, DELETABLE, messages);
      return keepsakes(ended, "en", messages, () => {})!.querySelector("details");
    });
    expect(folded.map((part) => part?.textContent ?? null)).toEqual([`${messages.debrief_title}We study letters.`, null]);
    expect(folded[0]!.open).toBe(false);
  });

  test("says the title of a folded debriefing once", () => {
    const debrief = `<h3>${messages.debrief_title}</h3><p>We study letters.</p>`;
    const declined = endedBy("declined", NOTHING, { ...PARTING, debrief }, DELETABLE, messages);
    expect(keepsakes(declined, "en", messages, () => {})!.querySelector("details")!.textContent).toBe(`${messages.debrief_title}We study letters.`);
  });

  test("offers deletion where answers are kept, and names no number where none are", () => {
    const kept = endedBy("stopped", NOTHING, PARTING, DELETABLE, messages);
    expect([kept.deletable, kept.receipt?.participant]).toEqual([DELETABLE, "P007"]);
    for (const ending of ["declined", "deleted"] as const) {
      const gone = endedBy(ending, NOTHING, PARTING, DELETABLE, messages);
      expect([gone.deletable, gone.receipt?.participant]).toEqual([null, null]);
    }
    expect(endedBy("declined", NOTHING, PARTING, DELETABLE, messages).receipt?.agreed).toBe(false);
  });

  test("gives the way back to the platform with the reason", () => {
    const said = { words: "Why.", completion_code: "C3", return_url: "https://example.org", return_text: "Go back." };
    const { text, code, return_url } = endedBy("screened_out", said, PARTING, DELETABLE, messages);
    expect([text, code, return_url]).toEqual([["Why.", "Go back."], "C3", "https://example.org"]);
  });

  test.each(["completed", "stopped", "declined", "deleted"] as const)("tells nobody to close the page before the way back: %s", (ending) => {
    const texts = (said: object): string => endedBy(ending, { ...NOTHING, ...said }, PARTING, DELETABLE, messages).text.join(" ");
    expect(texts({ return_text: "Go back." })).not.toContain(messages.close_page);
    expect(texts({})).toContain(messages.close_page);
  });

  test.each([
    ["2031-03-31T23:00:00", true],
    ["2031-04-01T01:00:00", false],
  ])("can be followed by deletion up to the day that the study states: %s", (now, isOpen) => {
    const kept = endedBy("completed", NOTHING, PARTING, DELETABLE, messages);
    const told = keepsakes(kept, "en", messages, () => {}, new Date(now))!.textContent!;
    expect(told.includes(messages.delete_now)).toBe(isOpen);
    expect(told.includes("until March 31, 2031")).toBe(isOpen);
  });

  test("keeps nothing where the study has neither a consent form nor answers", () => {
    const gone = endedBy("deleted", NOTHING, { debrief: null, receipt: null }, DELETABLE, messages);
    expect(keepsakes(gone, "en", messages, () => {})).toBeNull();
  });
});

describe("the copy of the consent form", () => {
  const plan = { study: "demo", title: "x", language: "en", screens: [{ kind: "consent", html: "<p>A</p>", version: "3f2a" }] } as Plan;
  const about = { title: "x", direction: "ltr", participant: "P007" };

  test("says of each decision what was decided", () => {
    const said = (agreed: Receipt["agreed"]): string => receiptPage({ ...RECEIPT, agreed }, messages);
    expect(said("2026-11-24T10:00:00.000Z")).toMatch(/You agreed to this form on .*2026/);
    expect(said(true)).toContain(messages.receipt_agreed_before);
    expect(said(false)).toContain(messages.receipt_declined);
    expect(said(null)).toContain(messages.receipt_open);
  });

  test("is one file that loads nothing and shows the title as text", () => {
    const page = receiptPage(RECEIPT, messages);
    expect(page).toContain("Letters &lt;&amp; words&gt;");
    expect(page).toContain("<em>read</em>");
    expect(page).toContain("P007");
    expect(page).not.toMatch(/src=|href=|<script/);
  });

  test("knows from the page when its reader agreed, and from the answers that they did", () => {
    const progress = new Progress(plan, new BriefShelf(), "s1");
    expect(partingOf(plan, progress, about).receipt?.agreed).toBeNull();
    progress.leave(0);
    expect(partingOf(plan, progress, about).receipt?.agreed).toBe(true);
    progress.setRemark("agreed", "2026-11-24T10:00:00.000Z");
    expect(partingOf(plan, progress, about).receipt?.agreed).toBe("2026-11-24T10:00:00.000Z");
  });
});

describe("an interruption", () => {
  test("ends what is shown once, and keeps that until the trial is told", () => {
    const interruption = new Interruption();
    const [first, second] = [vi.fn(), vi.fn()];
    interruption.watch(first);
    interruption.watch(second)();
    interruption.begin();
    interruption.begin();
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 0]);
    interruption.end();
    expect([interruption.takeCut(), interruption.takeCut()]).toEqual([true, false]);
  });

  test("ends what is drawn while it lasts, and lets nothing on before it is over", async () => {
    const interruption = new Interruption();
    interruption.begin();
    const late = vi.fn();
    interruption.watch(late);
    expect(late).toHaveBeenCalledOnce();
    let isOver = false;
    void interruption.over().then(() => (isOver = true));
    await Promise.resolve();
    expect(isOver).toBe(false);
    interruption.end();
    await interruption.over();
    expect([isOver, interruption.isOn]).toEqual([true, false]);
  });

  test("that led out of a session holds its screens for ever, and those of the next not at all", async () => {
    const interruption = new Interruption();
    interruption.begin();
    let wentOn = false;
    void interruption.over().then(() => (wentOn = true));
    interruption.forget();
    await interruption.over();
    interruption.begin();
    interruption.end();
    await interruption.over();
    expect(wentOn).toBe(false);
  });
});
