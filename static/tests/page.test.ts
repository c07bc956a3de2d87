import { describe, expect, test } from "vitest";
import german from "../../experiment/languages/data/de.json";
import { describeAgent } from "../src/client";
import { readConfig } from "../src/config";
import { element } from "../src/dom";
import names from "../../tests/experiment/key_names.json";
import { keyCap, keyName, layoutOrder, struckKey } from "../src/keys";
import { fill, refusalText } from "../src/messages";
import { pageScreen } from "../src/page";
import { inserted, TypingWatch } from "../src/plugins/typing";

describe("the page's own words", () => {
  test("leave a place alone for which there is no value", () => {
    expect(fill("{right} of {total}", { right: 3 })).toBe("3 of {total}");
  });

  test("keep dates and ids in their order where the page runs from right to left", () => {
    document.documentElement.dir = "rtl";
    expect(fill("حتى {until}", { until: "2027-03-31" })).toBe("حتى \u20682027-03-31\u2069");
    document.documentElement.dir = "";
  });

  test("tell a reader only what the server says in the study's words", () => {
    const messages = german.texts;
    expect(refusalText(403, { title: "Titel", error: "Fehler", mend: "" }, messages)).toEqual(["Fehler"]);
    expect(refusalText(404, { error: "there is no such study here" }, messages)).toEqual([messages.ask_us, "HTTP 404"]);
  });
});

describe("a page", () => {
  const html = "<h3>einwilligung </h3><p>Text</p><h3>Einwilligung</h3>";

  test("does not repeat its heading where the study's text begins with it", () => {
    const { screen } = pageScreen({ heading: "Einwilligung", html }, german.texts, "de");
    expect([...screen.querySelectorAll("h2, h3")].map((one) => one.textContent)).toEqual(["Einwilligung", "Einwilligung"]);
    expect(screen.querySelector(".prose")!.firstElementChild!.textContent).toBe("Text");
  });

  test("keeps a text's other headings", () => {
    const { screen } = pageScreen({ heading: "Zustimmung", html }, german.texts, "de");
    expect(screen.querySelectorAll("h3")).toHaveLength(2);
  });
});

describe("keys", () => {
  test("have one name however they are written", () => {
    expect(Object.fromEntries(Object.keys(names).map((written) => [written, keyName(written)]))).toEqual(names);
  });

  test.each([
    [["f", "j"], { key: "J", code: "KeyJ" }, 1],
    [["f", "j"], { key: "о", code: "KeyJ" }, 1],
    [["f", "j"], { key: "ㅓ", code: "KeyJ" }, 1],
    [["о", "j"], { key: "о", code: "KeyJ" }, 0],
    [["f", "j"], { key: "h", code: "KeyJ" }, -1],
    [["1", "2"], { key: "&", code: "Digit1" }, 0],
    [["1", "2"], { key: "٢", code: "Digit2" }, 1],
    [["1", "2"], { key: "2", code: "Numpad2" }, 1],
    [["f", "j"], { key: "j", code: "KeyJ", ctrlKey: true }, -1],
    [["ą", "j"], { key: "ą", code: "KeyA", ctrlKey: true, altKey: true }, 0],
    [["f", "j"], { key: "Process", code: "KeyJ", isComposing: true }, -1],
  ])("%j: the stroke %j is key %d", (keys, stroke, index) => {
    expect(struckKey(new KeyboardEvent("keydown", stroke), keys)).toBe(index);
  });

  test("are shown as on the keyboard of the language", () => {
    expect(["f", "space", "left", "F2"].map((key) => keyCap(key, german.texts))).toEqual(["F", "Leertaste", "←", "F2"]);
  });

  test.each([
    [["j", "f"], false, [1, 0]],
    [["f", "j"], false, [0, 1]],
    [["right", "left"], false, [1, 0]],
    [["2", "1"], false, [1, 0]],
    [["j", "f"], true, [0, 1]],
    [["c", "a", "b"], false, [0, 1, 2]],
    [["F2", "F1"], false, [0, 1]],
  ])("%j with options %j are laid out as %j", (keys, hasOptions, order) => {
    expect(layoutOrder(keys, hasOptions)).toEqual(order);
  });
});

test.each([
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.1.2", 0, "Edge 140.0.1.2", "Windows 10.0", "computer"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15", 0, "Safari 18.1", "macOS 10.15.7", "computer"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15", 5, "Safari 18.1", "iPadOS", "tablet"],
  ["Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0", 0, "Firefox 130.0", "Linux", "computer"],
  ["Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36", 5, "Chrome 140.0.0.0", "Android 14", "phone"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1", 5, "Safari 18.1", "iOS 18.1", "phone"],
  ["curl/8.0", 0, "unknown", "unknown", "computer"],
])("tells the browser, system and device from %s", (agent, touch, browser, system, device) => {
  expect(describeAgent(agent, touch)).toEqual({ browser, system, device });
});

test("a page without its configuration says what is missing", () => {
  document.body.innerHTML = "";
  expect(() => readConfig(document)).toThrow("wrods-config");
});

test("text enters the page as text", () => {
  const made = element("p", {}, "<b>not bold</b>");
  expect(made.children).toHaveLength(0);
  expect(made.textContent).toBe("<b>not bold</b>");
});

describe("watching a text field", () => {
  function watched(isAssisted = false) {
    const field = element("input", { type: "text" });
    document.body.replaceChildren(field);
    const watch = new TypingWatch(field, -1, () => {}, isAssisted);
    const type = (key: string, text = key): void => {
      field.dispatchEvent(new KeyboardEvent("keydown", { key }));
      field.value += text;
      field.dispatchEvent(new Event("input"));
    };
    const insert = (text: string): void => {
      field.value += text;
      field.dispatchEvent(new Event("input"));
    };
    return { field, watch, type, insert };
  }

  test("finds typed letters typed", () => {
    const { watch, type } = watched();
    for (const key of "garden") type(key);
    expect(watch.stop(null)).toMatchObject({ keyless_chars: 0, paste_count: 0 });
  });

  test("counts what one key stroke cannot have typed", () => {
    const { watch, type, insert } = watched();
    type("g", "gard");
    insert("en");
    expect(watch.stop(null).keyless_chars).toBe(5);
  });

  test("does not save up strokes that typed nothing", () => {
    const { field, watch, type, insert } = watched();
    type("g");
    for (const key of ["Shift", "ArrowLeft", "ArrowRight", "End", "F5"]) {
      field.dispatchEvent(new KeyboardEvent("keydown", { key }));
    }
    insert("arden");
    expect(watch.stop(null).keyless_chars).toBe(5);
  });

  test("counts letters of any script as one each", () => {
    const { watch, type } = watched();
    type("𝒳");
    type("é");
    expect(watch.stop(null).keyless_chars).toBe(0);
  });

  test("sees a replacement of the same length", () => {
    const { field, watch, type } = watched();
    for (const key of "gar") type(key);
    field.value = "rag";
    expect(watch.stop(null).keyless_chars).toBe(3);
  });

  test("sees a replacement behind the page's back although the reader types on", () => {
    const { field, watch, type } = watched();
    for (const key of "gar") type(key);
    field.value = "bus";
    type("h");
    expect(watch.stop(null).keyless_chars).toBe(3);
  });

  test("takes back what was not typed, and keeps what was", () => {
    const { field, watch, type, insert } = watched();
    for (const key of "gar") type(key);
    insert("denia");
    expect(field.value).toBe("gar");
    for (const key of "den") type(key);
    expect(field.value).toBe("garden");
    expect(watch.stop(null)).toMatchObject({ keyless_chars: 5, insertions: [[expect.any(Number), "script"]] });
  });

  test("keeps the letter of a key at which an extension finishes the word", () => {
    const { field, watch, type } = watched();
    for (const key of "ga") type(key);
    type("r", "rden");
    expect(field.value).toBe("gar");
    expect(watch.stop(null).keyless_chars).toBe(3);
  });

  test("lets the letter of a key through that comes after what an extension put in at that key", () => {
    const { field, watch } = watched();
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "g" }));
    field.value = "expanded";
    field.dispatchEvent(new InputEvent("input", { inputType: "insertText" }));
    expect(field.value).toBe("");
    field.value = "g";
    field.dispatchEvent(new InputEvent("input", { inputType: "insertText" }));
    expect(field.value).toBe("g");
    expect(watch.stop(null).keyless_chars).toBe(8);
  });

  test("takes back what a script deletes or sets without any event", () => {
    const { field, watch, type } = watched();
    for (const key of "gar") type(key);
    field.value = "";
    field.dispatchEvent(new Event("input"));
    expect(field.value).toBe("gar");
    field.value = "garden";
    expect(watch.stop(null)).toMatchObject({ keyless_chars: 3, insertions: [expect.anything(), expect.anything()] });
    expect(field.value).toBe("gar");
  });

  test("counts what an input method composes out of key strokes as composed, not as keyless", () => {
    const { field, watch } = watched();
    const compose = (text: string): void => {
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Process" }));
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { inputType: "insertCompositionText" }));
    };
    field.dispatchEvent(new Event("compositionstart"));
    for (const text of ["n", "に", "にh", "にほ", "にほn", "日本", "日本語です"]) compose(text);
    field.dispatchEvent(new Event("compositionend"));
    expect(field.value).toBe("日本語です");
    expect(watch.stop(null)).toMatchObject({ composed_chars: 5, keyless_chars: 0, insertions: [] });
  });

  test("counts a composition without a key stroke, which is dictation or handwriting, as keyless", () => {
    const { field, watch } = watched();
    field.dispatchEvent(new Event("compositionstart"));
    for (const text of ["日", "日本"]) {
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { inputType: "insertCompositionText" }));
    }
    field.dispatchEvent(new Event("compositionend"));
    const told = watch.stop(null);
    expect(told).toMatchObject({ composed_chars: 0, keyless_chars: 2 });
    expect(told.insertions.map(([, how]) => how)).toEqual(["insertCompositionText"]);
  });

  test("keeps and records dictated text where the study allows assistive input, and still no script's", () => {
    const { field, watch, insert } = watched(true);
    field.value = "the garden";
    field.dispatchEvent(new InputEvent("input", { inputType: "insertText", data: "the garden" }));
    expect(field.value).toBe("the garden");
    insert(" is mine");
    expect(field.value).toBe("the garden");
    const word = new InputEvent("beforeinput", { inputType: "insertReplacementText", data: "garden", cancelable: true });
    field.dispatchEvent(word);
    expect(word.defaultPrevented).toBe(false);
    const paste = new InputEvent("beforeinput", { inputType: "insertFromPaste", data: "garden", cancelable: true });
    field.dispatchEvent(paste);
    expect(paste.defaultPrevented).toBe(true);
    const told = watch.stop(null);
    expect(told).toMatchObject({ keyless_chars: 18, paste_count: 1 });
    expect(told.insertions.map(([, how]) => how)).toEqual(["insertText", "script", "insertFromPaste"]);
  });

  test("takes a letter with its accent from a dead key as typed", () => {
    const { field, watch } = watched();
    for (const key of ["Dead", "e"]) field.dispatchEvent(new KeyboardEvent("keydown", { key }));
    field.value = "é";
    field.dispatchEvent(new InputEvent("input", { inputType: "insertText", data: "é" }));
    expect(field.value).toBe("é");
    expect(watch.stop(null)).toMatchObject({ keyless_chars: 0, insertions: [] });
  });

  test.each(["insertFromYank", "insertReplacementText", "insertFromPasteAsQuotation"])("refuses %s", (inputType) => {
    const { field, watch } = watched();
    const event = new InputEvent("beforeinput", { inputType, data: "garden", cancelable: true });
    field.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(true);
    expect(watch.stop(null).paste_count).toBe(1);
  });

  test("lets an accent be chosen for a letter", () => {
    const { field, watch } = watched();
    const event = new InputEvent("beforeinput", { inputType: "insertReplacementText", data: "é", cancelable: true });
    field.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(false);
    expect(watch.stop(null).paste_count).toBe(0);
  });

  test("refuses and counts pastes and drops", () => {
    const { field, watch } = watched();
    const events = ["paste", "drop"].map((kind) => new Event(kind, { cancelable: true }));
    for (const event of events) field.dispatchEvent(event);
    expect(events.every((event) => event.defaultPrevented)).toBe(true);
    expect(watch.stop(null).paste_count).toBe(2);
  });

  test("knows no typing where no key was struck", () => {
    expect(watched().watch.stop(null)).toMatchObject({ first_key_ms: null, typing_ms: null, key_log: [] });
  });
});

test.each([
  ["garden", "garden", 0],
  ["gaden", "garden", 1],
  ["gaar", "gar", 0],
  ["ab", "abab", 2],
  ["abc", "xyz", 3],
  ["", "né", 2],
])("from %j to %j, %i characters came in", (before, after, count) => {
  expect(inserted(before, after)).toBe(count);
});

test("undoing a deletion types nothing", () => {
  const field = element("input", { type: "text", value: "gard" });
  const watch = new TypingWatch(field, -1, () => {});
  field.value = "garden";
  field.dispatchEvent(new InputEvent("input", { inputType: "historyUndo" }));
  expect(watch.stop(null).keyless_chars).toBe(0);
});

test.each([
  ["a browser that names the key, its letters at once", "لا", ["لا"], "لا", 0],
  ["a browser that names the key, its letters one by one", "لا", ["ل", "ا"], "لا", 0],
  ["a browser that cannot name the key", "Unidentified", ["ل", "ا"], "لا", 0],
  ["no key that writes more than these", "Unidentified", ["ل", "ا", "x"], "لا", 1],
  ["a key that writes nothing", "F5", ["ل"], "", 1],
])("one key of an Arabic keyboard writes two letters: %s", (_, key, entered, kept, keyless) => {
  const field = element("input", { type: "text" });
  document.body.replaceChildren(field);
  const watch = new TypingWatch(field, -1, () => {});
  field.dispatchEvent(new KeyboardEvent("keydown", { key }));
  for (const text of entered) {
    field.value += text;
    field.dispatchEvent(new InputEvent("input", { inputType: "insertText", data: text }));
  }
  expect(field.value).toBe(kept);
  expect(watch.stop(null).keyless_chars).toBe(keyless);
});
