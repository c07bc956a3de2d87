// Draws the response time of each trial of a session from the page's own table, which says the same without the plot.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface Times {
  trials: number[];
  times: number[];
}

/** Read the trials and their response times (ms) from the rows of a table; rows without a time are left out. */
export function timesOf(rows: Iterable<HTMLElement>): Times {
  const found: Times = { trials: [], times: [] };
  for (const row of rows) {
    const { trial, rt } = row.dataset;
    if (trial === undefined || rt === undefined) continue;
    found.trials.push(Number(trial));
    found.times.push(Number(rt));
  }
  return found;
}

/** Distances between ticks of the trial axis: trials are whole numbers. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(holder: HTMLElement, { trials, times }: Times): uPlot {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui, sans-serif" };
  const options: uPlot.Options = {
    width: holder.clientWidth,
    height: 180,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.05] } },
    axes: [
      { ...axis, label: "Trial", labelSize: 20, labelFont: axis.font, incrs: WHOLE },
      { ...axis, label: "Response, ms", labelSize: 20, labelFont: axis.font, size: 56 },
    ],
    series: [{}, { paths: () => null, points: { show: true, size: 6, fill: colour("--accent"), stroke: colour("--accent") } }],
  };
  return new uPlot(options, [trials, times], holder);
}

function start(): void {
  const holder = document.querySelector<HTMLElement>("[data-plot='rt']");
  if (holder === null) return;
  const data = timesOf(document.querySelectorAll<HTMLElement>("tr[data-trial]"));
  if (data.trials.length < 2) return;
  holder.hidden = false;
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", `Response times of ${data.trials.length} trials; the table below has the numbers.`);
  let plot = draw(holder, data);
  const again = (): void => {
    plot.destroy();
    plot = draw(holder, data);
  };
  new ResizeObserver(() => {
    if (holder.clientWidth !== plot.width) plot.setSize({ width: holder.clientWidth, height: plot.height });
  }).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

start();
