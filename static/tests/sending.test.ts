import { IDBFactory } from "fake-indexeddb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { uuid } from "../src/identity";
import { backoff } from "../src/sending/backoff";
import { IndexedOutbox, MemoryOutbox, type NewItem, type Outbox, type OutboxItem } from "../src/sending/outbox";
import { Uploader, verdict } from "../src/sending/uploader";

const SESSION = "/api/demo/sessions/s1";

function item(number: number, more: Partial<NewItem> = {}): NewItem {
  const body = { trial_index: number, attempt: 1 };
  return { uuid: `u${number}`, session: SESSION, token: "t1", kind: "trials", body, queued_at: 1000 + number, ...more };
}

describe("identifiers", () => {
  const noRandomUUID = { getRandomValues: crypto.getRandomValues.bind(crypto) };

  test("are of version 4 where the browser has no randomUUID, as on plain http", () => {
    expect(uuid(noRandomUUID)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test("do not repeat", () => {
    expect(new Set(Array.from({ length: 2000 }, () => uuid(noRandomUUID))).size).toBe(2000);
  });

  test("come from the browser where it makes them", () => {
    const made = "00000000-0000-4000-8000-000000000000";
    expect(uuid({ ...noRandomUUID, randomUUID: () => made })).toBe(made);
  });
});

describe("waiting between attempts", () => {
  test("doubles up to half a minute", () => {
    expect([1, 2, 3, 4].map((failures) => backoff(failures, 1))).toEqual([500, 1000, 2000, 4000]);
    expect(backoff(7, 1)).toBe(30_000);
    expect(backoff(5000, 1)).toBe(30_000);
  });

  test("is spread by chance over the upper half", () => {
    expect(backoff(3, 0)).toBe(1000);
    expect(backoff(3, 0.5)).toBe(1500);
  });
});

const outboxes: [string, () => Promise<Outbox>][] = [
  ["IndexedDB", () => IndexedOutbox.open(new IDBFactory())],
  ["memory", async () => new MemoryOutbox()],
];

describe.each(outboxes)("an outbox in %s", (_, open) => {
  test("gives back what is pending in the order in which it was added", async () => {
    const outbox = await open();
    for (const number of [3, 1, 2]) await outbox.add(item(number));
    expect((await outbox.pending()).map((kept) => kept.uuid)).toEqual(["u3", "u1", "u2"]);
  });

  test("keeps an acknowledged item for its session but no longer offers it", async () => {
    const outbox = await open();
    await outbox.add(item(1));
    const [kept] = await outbox.pending();
    await outbox.settle(kept!.seq, "sent", 201);
    expect(await outbox.pending()).toEqual([]);
    expect(await outbox.ofSession(SESSION)).toMatchObject([{ uuid: "u1", state: "sent", status: 201 }]);
  });

  test("forgets what it is told to, and only acknowledged items for their age", async () => {
    const outbox = await open();
    for (const number of [1, 2, 3]) await outbox.add(item(number));
    const [first, second] = await outbox.pending();
    await outbox.settle(first!.seq, "sent", 201);
    await outbox.settle(second!.seq, "refused", 409);
    await outbox.forgetSentBefore(5000);
    expect((await outbox.ofSession(SESSION)).map((kept) => kept.uuid)).toEqual(["u2", "u3"]);
    await outbox.forget([second!.seq]);
    expect((await outbox.ofSession(SESSION)).map((kept) => kept.uuid)).toEqual(["u3"]);
  });

  test("tells sessions apart", async () => {
    const outbox = await open();
    await outbox.add(item(1));
    await outbox.add(item(2, { session: "/api/demo/sessions/s2" }));
    expect((await outbox.ofSession(SESSION)).map((kept) => kept.uuid)).toEqual(["u1"]);
    expect(await outbox.pending()).toHaveLength(2);
  });
});

test("an outbox in IndexedDB outlives the page", async () => {
  const factory = new IDBFactory();
  await (await IndexedOutbox.open(factory)).add(item(1));
  const again = await IndexedOutbox.open(factory);
  expect((await again.pending()).map((kept) => kept.uuid)).toEqual(["u1"]);
});

test.each([
  [200, "stored"],
  [201, "stored"],
  [500, "later"],
  [503, "later"],
  [429, "later"],
  [408, "later"],
  [409, "refused"],
  [400, "refused"],
  [404, "refused"],
])("a reply of %i means %s", (status, meaning) => {
  expect(verdict(status)).toBe(meaning);
});

describe("the uploader", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  /** An uploader whose sends get these replies in turn, then 201; null is no reply. */
  async function uploading(replies: (number | null)[], numbers: number[]) {
    const outbox = new MemoryOutbox();
    for (const number of numbers) await outbox.add(item(number));
    const tried: string[] = [];
    const waiting: boolean[] = [];
    const refused: [string, number][] = [];
    const uploader = new Uploader(outbox, {
      send: async (sent: OutboxItem) => {
        tried.push(sent.uuid);
        const reply = replies.length > 0 ? replies.shift()! : 201;
        if (reply === null) throw new TypeError("no network");
        return reply;
      },
      onWaiting: (isWaiting) => waiting.push(isWaiting),
      onRefused: (sent, status) => refused.push([sent.uuid, status]),
      chance: () => 1,
    });
    uploader.start();
    return { outbox, tried, waiting, refused, uploader };
  }

  test("sends oldest first, each once", async () => {
    const { tried, outbox } = await uploading([], [1, 2, 3]);
    await vi.advanceTimersByTimeAsync(0);
    expect(tried).toEqual(["u1", "u2", "u3"]);
    expect(await outbox.pending()).toEqual([]);
  });

  test("waits half a second, then a second, and keeps the order", async () => {
    const { tried, waiting } = await uploading([null, null], [1, 2]);
    await vi.advanceTimersByTimeAsync(499);
    expect(tried).toEqual(["u1"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(tried).toEqual(["u1", "u1"]);
    await vi.advanceTimersByTimeAsync(999);
    expect(tried).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(tried).toEqual(["u1", "u1", "u1", "u2"]);
    expect(waiting).toEqual([true, true, false]);
  });

  test("never gives up", async () => {
    const { tried, outbox } = await uploading(Array.from({ length: 200 }, () => null), [1]);
    await vi.advanceTimersByTimeAsync(200 * 30_000);
    expect(tried.length).toBeGreaterThan(200);
    expect(await outbox.pending()).toEqual([]);
  });

  test("tries at once when the connection is back", async () => {
    const { tried, uploader } = await uploading([null, null, null, null], [1]);
    await vi.advanceTimersByTimeAsync(0);
    uploader.retryNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(tried).toHaveLength(2);
  });

  test("does not hurry a server that is away because more is to be sent", async () => {
    const { tried, uploader, outbox } = await uploading([503, 503], [1]);
    await vi.advanceTimersByTimeAsync(0);
    await outbox.add(item(2));
    uploader.notice();
    await vi.advanceTimersByTimeAsync(400);
    expect(tried).toEqual(["u1"]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(tried).toEqual(["u1", "u1", "u1", "u2"]);
  });

  test("sets a conflict aside, reports it once and goes on", async () => {
    const { tried, refused, outbox } = await uploading([409], [1, 2]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(tried).toEqual(["u1", "u2"]);
    expect(refused).toEqual([["u1", 409]]);
    expect(await outbox.ofSession(SESSION)).toMatchObject([{ state: "refused", status: 409 }, { state: "sent" }]);
  });

  test("sends what came before a trial again where a restored server lacks the agreement", async () => {
    const { tried, outbox, uploader } = await uploading([201, 201, 425], []);
    await outbox.add(item(1, { kind: "events" }));
    await outbox.add(item(2));
    await outbox.add(item(3));
    await outbox.add(item(4, { kind: "events", session: "/api/demo/sessions/s2" }));
    uploader.notice();
    await vi.advanceTimersByTimeAsync(500);
    expect(tried).toEqual(["u1", "u2", "u3", "u1", "u3", "u4"]);
    expect(await outbox.pending()).toEqual([]);
  });

  test("goes past an item over which the server stumbles", async () => {
    const { tried } = await uploading([500], [1, 2]);
    await vi.advanceTimersByTimeAsync(500);
    expect(tried).toEqual(["u1", "u2", "u1"]);
  });

  test("says when all is sent, also what came in between", async () => {
    const { uploader, outbox } = await uploading([null, null], [1, 2]);
    let drained = false;
    void uploader.drained().then(() => (drained = true));
    await vi.advanceTimersByTimeAsync(0);
    expect(drained).toBe(false);
    await outbox.add(item(3));
    await vi.advanceTimersByTimeAsync(5000);
    expect(drained).toBe(true);
    expect(await outbox.pending()).toEqual([]);
  });

  test("notices what is added while it rests", async () => {
    const { tried, uploader, outbox } = await uploading([], []);
    await vi.advanceTimersByTimeAsync(0);
    await outbox.add(item(1));
    uploader.notice();
    await vi.advanceTimersByTimeAsync(0);
    expect(tried).toEqual(["u1"]);
  });
});
