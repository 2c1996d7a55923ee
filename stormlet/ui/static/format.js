// Numbers as a person reads them; what is not known is a dash, never 0.

export const NONE = "–";
const whole = new Intl.NumberFormat("en");

function digits(value) {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

export function count(value) {
  return value === null || value === undefined ? NONE : whole.format(Math.round(value));
}

export function counted(value, one, more = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : more}`;
}

export function short(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 10_000) return whole.format(Math.round(value));
  for (const unit of ["k", "M", "G"]) {
    value /= 1000;
    if (value < 999.5) return `${digits(value)} ${unit}`;
  }
  return `${digits(value / 1000)} T`;
}

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0/s";
  return value < 99.95 ? `${value < 9.995 ? Number(value.toPrecision(2)) : value.toFixed(1)}/s` : `${short(value)}/s`;
}

export function time(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds === 0) return "0";
  if (seconds < 0.9995e-3) return `${digits(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${digits(seconds * 1e3)} ms`;
  return seconds < 119.5 ? `${digits(seconds)} s` : duration(seconds);
}

export function duration(seconds) {
  const all = Math.max(0, Math.floor(seconds));
  const [d, hours, minutes] = [Math.floor(all / 86400), Math.floor(all / 3600) % 24, Math.floor(all / 60) % 60];
  if (d) return `${d} d ${hours} h`;
  if (hours) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return minutes ? `${minutes} min ${String(all % 60).padStart(2, "0")} s` : `${all} s`;
}

export function percent(value) {
  if (value === null || value === undefined) return NONE;
  return value > 0 && value < 0.005 ? "<1 %" : `${Math.round(value * 100)} %`;
}

export function clock(date) {
  return new Date(date).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
