/** Making elements. Text always enters as text; only the server's own sanitised HTML enters as HTML. */

type Child = Node | string | null | undefined | false;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | boolean | null | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child): child is Node | string => Boolean(child)));
  return made;
}

/** A block of the study's own prose, sanitised by the server, without a first heading that only repeats the one above it. */
export function prose(html: string, language: string, heading = ""): HTMLElement {
  const block = element("div", { class: "prose", lang: language, dir: "auto" });
  block.innerHTML = html;
  const first = block.querySelector(":scope > :is(h1, h2, h3, h4, h5, h6):first-child");
  const same = (words: string): string => words.trim().toLocaleLowerCase(language);
  if (first && same(first.textContent) === same(heading)) first.remove();
  return block;
}
