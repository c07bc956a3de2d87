// Writes every stored time (UTC) in the browser's time zone, as the live page does; the title keeps UTC.

for (const time of document.querySelectorAll("time[datetime]")) {
  time.title = time.textContent;
  time.textContent = new Date(time.dateTime).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
}
