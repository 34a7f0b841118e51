// lanes.js: a row for each worker, in which each column of pixels has the colour of what took most of its time.

/** The part of each of 2^n equal parts of the run that a worker spent in tasks, and the largest kernel; for several n. */
class Pyramid {
  constructor(run, lane) {
    const tasks = run.lanes[lane], starts = run.laneStarts[lane], ends = run.laneEnds[lane];
    let bins = 1024;
    while (bins < tasks.length / 2 && bins < 1 << 19) bins *= 2;
    const width = run.makespan / bins;
    const busy = new Float32Array(bins), kernel = new Uint8Array(bins), outlier = new Uint8Array(bins);
    const kernels = run.kernels.length + 1;
    const sums = new Float64Array(kernels), stamps = new Int32Array(kernels).fill(-1);
    let current = -1, best = 0;
    for (let i = 0; i < tasks.length; ++i) {
      const of = Math.min(run.kernelOf(tasks[i]), 255);
      const last = Math.min(Math.floor(ends[i] / width), bins - 1);
      for (let bin = Math.max(Math.floor(starts[i] / width), 0); bin <= last; ++bin) {
        const part = Math.min(ends[i], (bin + 1) * width) - Math.max(starts[i], bin * width);
        if (bin !== current) {
          current = bin;
          best = 0;
        }
        if (stamps[of] !== bin) {
          stamps[of] = bin;
          sums[of] = 0;
        }
        sums[of] += part;
        busy[bin] += part / width;
        if (sums[of] > best) {
          best = sums[of];
          kernel[bin] = of;
        }
        outlier[bin] |= run.outlier[tasks[i]];
      }
    }
    this.levels = [{busy, kernel, outlier, bins}];
    while (bins > 1024) {
      const below = this.levels[this.levels.length - 1];
      bins /= 2;
      const level = {busy: new Float32Array(bins), kernel: new Uint8Array(bins), outlier: new Uint8Array(bins), bins};
      for (let i = 0; i < bins; ++i) {
        const left = 2 * i, right = left + 1;
        level.busy[i] = (below.busy[left] + below.busy[right]) / 2;
        level.kernel[i] = below.kernel[below.busy[left] >= below.busy[right] ? left : right];
        level.outlier[i] = below.outlier[left] | below.outlier[right];
      }
      this.levels.push(level);
    }
  }
  /** The coarsest level whose parts are not wider than `time`; null: none is fine enough. */
  level(makespan, time) {
    for (let i = this.levels.length - 1; i >= 0; --i) {
      if (makespan / this.levels[i].bins <= time) return this.levels[i];
    }
    return null;
  }
}

function rgb(colour) {
  const value = parseInt(colour.slice(1), 16);
  return [value >> 16, value >> 8 & 255, value & 255];
}

class LanePainter {
  constructor(run) {
    this.run = run;
    this.pyramids = run.lanes.map(() => null);
    this.kernelRgb = [];
    for (let i = 0; i <= run.kernels.length; ++i) this.kernelRgb.push(rgb(run.colourOf(i)));
    this.spentRgb = run.facts.spent.map(name => rgb(spentColours[name] || '#ffffff'));
  }

  /** The row of pixels of a worker from time `from` to `to`, into `pixels`: RGBA, `width` of them. `strong`: outliers stand out. */
  paint(lane, from, to, width, pixels, strong) {
    const scale = width / (to - from);
    if (!this.amount || this.amount.length < width) {
      this.amount = new Float32Array(width);  // of a pixel, what tasks have taken
      this.greatest = new Float32Array(width);
      this.colour = new Int16Array(width);
      this.marked = new Uint8Array(width);
      this.idle = new Int8Array(width);
    }
    const {amount, greatest, colour, marked, idle} = this;
    amount.fill(0, 0, width);
    greatest.fill(0, 0, width);
    marked.fill(0, 0, width);
    idle.fill(-1, 0, width);
    const cover = (start, end, share, kernel, outlier) => {
      const a = Math.max((start - from) * scale, 0), b = Math.min((end - from) * scale, width);
      for (let x = Math.floor(a); x < b; ++x) {
        const part = (Math.min(x + 1, b) - Math.max(x, a)) * share;
        amount[x] += part;
        if (part > greatest[x]) {
          greatest[x] = part;
          colour[x] = kernel;
        }
        marked[x] |= outlier;
      }
    };
    this.paintIdle(lane, from, to, scale, width);
    const run = this.run, starts = run.laneStarts[lane], ends = run.laneEnds[lane], tasks = run.lanes[lane];
    let first = upperBound(starts, from);
    while (first > 0 && ends[first - 1] > from) --first;
    const last = upperBound(starts, to);
    let level = null;
    if (last - first > 2 * width) {
      this.pyramids[lane] = this.pyramids[lane] || new Pyramid(run, lane);
      level = this.pyramids[lane].level(run.makespan, 1 / scale);
    }
    if (level !== null) {
      const binWidth = run.makespan / level.bins;
      const until = Math.min(Math.ceil(to / binWidth), level.bins);
      for (let bin = Math.max(Math.floor(from / binWidth), 0); bin < until; ++bin) {
        if (level.busy[bin] > 0) cover(bin * binWidth, (bin + 1) * binWidth, level.busy[bin], level.kernel[bin], level.outlier[bin]);
      }
    } else {
      for (let i = first; i < last; ++i) cover(starts[i], ends[i], 1, run.kernelOf(tasks[i]), run.outlier[tasks[i]]);
    }
    for (let x = 0; x < width; ++x) {
      const ground = idle[x] < 0 ? [255, 255, 255] : this.spentRgb[idle[x]];
      let share = Math.min(amount[x], 1);
      const tone = this.kernelRgb[colour[x]] || ground;
      if (strong && !marked[x]) share *= 0.35;
      for (let c = 0; c < 3; ++c) pixels[4 * x + c] = ground[c] + (tone[c] - ground[c]) * share;
      pixels[4 * x + 3] = 255;
    }
  }

  paintIdle(lane, from, to, scale, width) {
    const run = this.run, start = run.column('idle.start'), duration = run.column('idle.duration'), spent = run.column('idle.spent');
    // The times of a worker are sorted: the first that ends after `from`.
    let low = run.idleBegins[lane], high = run.idleBegins[lane + 1];
    const end = high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle] + duration[middle] <= from)
        low = middle + 1;
      else
        high = middle;
    }
    for (let i = low; i < end && start[i] < to; ++i) {
      const a = Math.max(Math.round((start[i] - from) * scale), 0);
      const b = Math.min(Math.max(Math.round((start[i] + duration[i] - from) * scale), a + 1), width);
      for (let x = a; x < b; ++x) this.idle[x] = spent[i];
    }
  }
}
