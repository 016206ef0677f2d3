/** Numbers as text. */

function bytes(count) {
  if (Math.abs(count) < 1024) return `${Math.round(count)} B`;
  const steps = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let step = -1;
  do { count /= 1024; step += 1; } while (Math.abs(count) >= 1023.95 && step < steps.length - 1);
  return `${count.toFixed(1)} ${steps[step]}`;
}

const number = (count) => count.toLocaleString("en-US", { maximumFractionDigits: 1 });
const percent = (part) => `${(100 * part).toFixed(1)} %`;

function seconds(t) {
  if (t < 0) return `-${seconds(-t)}`;
  if (t === 0) return "0 s";
  if (t < 1e-3) return `${Math.round(t * 1e6)} µs`;
  return t < 1 ? `${(t * 1e3).toFixed(1)} ms` : `${t.toFixed(t < 100 ? 2 : 0)} s`;
}
