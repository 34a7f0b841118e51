// steps.js: numbers of things at a time, and means over a stretch of time, without going through all of them again.

/** Index of the first element of sorted `values` that is greater than `value`. */
function upperBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/** Things that exist from a start to an end, both excluded. `starts` and `ends` are sorted here, apart from each other. */
class Steps {
  constructor(starts, ends) {
    this.starts = starts.sort();
    this.ends = ends.sort();
    this.startSums = Steps.sums(this.starts);
    this.endSums = Steps.sums(this.ends);
  }
  static sums(values) {
    const sums = new Float64Array(values.length + 1);
    for (let i = 0; i < values.length; ++i) sums[i + 1] = sums[i] + values[i];
    return sums;
  }
  /** How many there are at a time. */
  at(time) { return upperBound(this.starts, time) - upperBound(this.ends, time); }
  /** The integral of `at` up to a time. */
  until(time) {
    const begun = upperBound(this.starts, time), ended = upperBound(this.ends, time);
    return begun * time - this.startSums[begun] - (ended * time - this.endSums[ended]);
  }
  /** The means between each two neighbours of times, into `row`. */
  means(times, row) {
    let last = this.until(times[0]);
    for (let i = 0; i < row.length; ++i) {
      const next = this.until(times[i + 1]);
      row[i] = (next - last) / (times[i + 1] - times[i]);
      last = next;
    }
  }
  /** The mean of `at` between two times. */
  mean(from, to) { return to > from ? (this.until(to) - this.until(from)) / (to - from) : this.at(from); }
}

/** A rate that flows from a start to an end, in `bins` equal parts of the run: exact to the width of a part. */
class Flow {
  constructor(makespan, bins) {
    this.width = Math.max(makespan, 1) / bins;
    this.change = new Float64Array(bins + 2);
  }
  add(start, end, amount) {
    const rate = amount / Math.max(end - start, this.width);
    this.change[this.bin(start)] += rate;
    this.change[this.bin(Math.max(end, start + this.width))] -= rate;
  }
  bin(time) { return Math.min(Math.max(Math.round(time / this.width), 0), this.change.length - 1); }
  /** Sums up the rates; called after the last `add`. */
  finish() {
    this.sums = new Float64Array(this.change.length + 1);
    let rate = 0;
    for (let i = 0; i < this.change.length; ++i) {
      rate += this.change[i];
      this.sums[i + 1] = this.sums[i] + rate * this.width;
    }
    return this;
  }
  until(time) {
    const place = Math.min(Math.max(time / this.width, 0), this.sums.length - 1);
    const bin = Math.floor(place);
    const next = Math.min(bin + 1, this.sums.length - 1);
    return this.sums[bin] + (place - bin) * (this.sums[next] - this.sums[bin]);
  }
  mean(from, to) { return to > from ? (this.until(to) - this.until(from)) / (to - from) : 0; }
}
