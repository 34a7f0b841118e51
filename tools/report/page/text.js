// text.js: numbers and pieces of the page.

function formatTime(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size >= 100) return seconds.toFixed(1) + ' s';
  if (size >= 1) return seconds.toFixed(3) + ' s';
  if (size >= 1e-3) return (seconds * 1e3).toFixed(3) + ' ms';
  if (size >= 1e-6) return (seconds * 1e6).toFixed(2) + ' µs';
  return (seconds * 1e9).toFixed(0) + ' ns';
}
function formatBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return (unit === 0 || bytes >= 100 ? bytes.toFixed(0) : String(Number(bytes.toPrecision(3)))) + ' ' + units[unit];
}
/** A rate of floating-point operations as text. */
function formatRate(flops) {
  const giga = flops / 1e9;
  return (giga >= 100 ? giga.toFixed(0) : String(Number(giga.toPrecision(3)))) + ' GFlop/s';
}
function formatCount(count) {
  return Math.abs(count) >= 1000 ? Math.round(count).toLocaleString('en') : String(Math.round(count * 100) / 100);
}
function percent(part, whole) { return whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : ''; }

/** An element with attributes, and children: elements, or texts, which are never read as HTML. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'style')
      made.style.cssText = value;
    else if (key.startsWith('on'))
      made.addEventListener(key.slice(2), value);
    else
      made.setAttribute(key, value);
  }
  made.append(
      ...children.filter(child => child !== null && child !== undefined).map(child => child instanceof Node ? child : String(child)));
  return made;
}
function tableOf(heads, rows) {
  return element(
      'table', {}, element('thead', {}, element('tr', {}, ...heads.map(head => element('th', {}, head)))),
      element('tbody', {}, ...rows.map(row => element('tr', {}, ...row.map(cell => element('td', {}, cell))))));
}
/** The distance of marks: 1, 2 or 5 times a power of ten, at most `most` times in `range`. */
function niceStep(range, most) {
  const raw = range / most;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= raw * 0.999999);
}
/** The distance of marks in bytes: 1, 2, 4, ... 512 of a unit. */
function niceBytes(range, most) { return Math.pow(2, Math.ceil(Math.log2(Math.max(range / most, 1)))); }
