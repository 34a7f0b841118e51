// panels.js: pictures over time, one below the other. A panel draws itself into a box for a stretch of time.

/** What a panel draws into: `g` a context, `x`, `y`, `width`, `height` in pixels of the page, `from` and `to` in units of the run. */
class Box {
  constructor(g, x, y, width, height, from, to) {
    Object.assign(this, {g, x, y, width, height, from, to});
    this.scale = width / (to - from);
  }
  at(time) { return this.x + (time - this.from) * this.scale; }
  time(x) { return this.from + (x - this.x) / this.scale; }
}

/** Pixels that are painted one by one and drawn at once, since a rectangle for each costs ten times as much. */
class Pixels {
  constructor() { this.canvas = document.createElement('canvas'); }
  /** Transparent ones: 32 bits each, row by row, as `Pixels.of` makes them. */
  begin(width, height) {
    if (this.canvas.width !== width || this.canvas.height !== height || !this.image) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.image = this.canvas.getContext('2d').createImageData(width, height);
      this.words = new Uint32Array(this.image.data.buffer);
    }
    this.words.fill(0);
    return this.words;
  }
  end() { this.canvas.getContext('2d').putImageData(this.image, 0, 0); }
  static of([red, green, blue]) {
    return Pixels.little ? (255 << 24 | blue << 16 | green << 8 | red) >>> 0 : (red << 24 | green << 16 | blue << 8 | 255) >>> 0;
  }
  static get little() { return new Uint8Array(Uint32Array.of(1).buffer)[0] === 1; }
}

/** Lines or stacked areas: `series` of {name, colour, mean(from, to)}, and `means(times, row)` where that is faster. */
class SeriesPanel {
  constructor(title, hint, series, {stacked = false, format = formatCount, height = 110, most = null} = {}) {
    Object.assign(this, {title, hint, series, stacked, format, height, most});
  }
  legend() { return this.series.map(one => ({name: one.name, colour: one.colour})); }
  draw(box) {
    const step = 2, columns = Math.max(Math.floor(box.width / step), 1);
    const times = Float64Array.from({length: columns + 1}, (_, i) => box.time(box.x + i * step));
    const values = this.series.map(one => {
      const row = new Float64Array(columns);
      if (one.means)
        one.means(times, row);
      else
        for (let i = 0; i < columns; ++i) row[i] = one.mean(times[i], times[i + 1]);
      return row;
    });
    let top = this.most || 0;
    for (let i = 0; i < columns; ++i) {
      let sum = 0;
      for (const row of values) sum = this.stacked ? sum + row[i] : Math.max(sum, row[i]);
      top = Math.max(top, sum);
    }
    top = top > 0 ? top * 1.05 : 1;
    const {g} = box;
    const y = value => box.y + box.height - value / top * box.height;
    this.drawScale(box, top, y);
    const base = new Float64Array(columns);
    values.forEach((row, place) => {
      g.beginPath();
      for (let i = 0; i < columns; ++i) {
        const value = base[i] + row[i];
        i === 0 ? g.moveTo(box.x, y(value)) : g.lineTo(box.x + i * step, y(value));
        if (this.stacked) g.lineTo(box.x + (i + 1) * step, y(value));
      }
      if (this.stacked) {
        for (let i = columns - 1; i >= 0; --i) {
          g.lineTo(box.x + (i + 1) * step, y(base[i]));
          g.lineTo(box.x + i * step, y(base[i]));
          base[i] += row[i];
        }
        g.closePath();
        g.fillStyle = this.series[place].colour;
        g.fill();
      } else {
        g.strokeStyle = this.series[place].colour;
        g.lineWidth = 1.3;
        g.stroke();
      }
    });
  }
  drawScale(box, top, y) {
    const {g} = box;
    g.font = '11px sans-serif';
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    const step = this.format(1024).includes('Ki') ? niceBytes(top, 4) : niceStep(top, 4);
    for (let value = 0; value <= top; value += step) {
      g.fillStyle = '#e6e6e6';
      g.fillRect(box.x, Math.round(y(value)), box.width, 1);
      g.fillStyle = '#555';
      g.fillText(this.format(value), box.x - 6, Math.min(y(value), box.y + box.height - 5));
    }
  }
  describe(time, box) {
    const half = 1 / box.scale;
    return this.series.map(one => `${one.name} ${this.format(one.mean(time - half, time + half))}`).join(', ');
  }
}

/** A row for each rank, the darker the more of its workers execute tasks. */
class UsePanel {
  constructor(ranks) {
    this.title = 'Use of each rank';
    this.hint = 'share of the workers that execute tasks';
    this.ranks = ranks;
    this.height = Math.min(Math.max(12 * ranks.length, 36), 320);
    this.pixels = new Pixels();
    this.shades = Uint32Array.from({length: 256}, (_, i) => Pixels.of(UsePanel.rgb(i / 255)));
  }
  legend() { return [{name: 'all work', colour: '#08306b'}, {name: 'half', colour: '#6baed6'}, {name: 'none', colour: '#ffffff'}]; }
  draw(box) {
    const {g} = box, step = 2, high = box.height / this.ranks.length;
    const columns = Math.max(Math.floor(box.width / step), 1);
    const times = Float64Array.from({length: columns + 1}, (_, i) => box.time(box.x + i * step)), means = new Float64Array(columns);
    const words = this.pixels.begin(columns, this.ranks.length);
    this.ranks.forEach((rank, row) => {
      rank.steps.means(times, means);
      for (let i = 0; i < columns; ++i) {
        const share = Math.min(Math.max(means[i] / rank.workers, 0), 1);
        words[row * columns + i] = this.shades[Math.round(255 * share)];
      }
    });
    this.pixels.end();
    g.imageSmoothingEnabled = false;
    this.ranks.forEach((rank, row) => {
      const y = box.y + row * high;
      g.drawImage(this.pixels.canvas, 0, row, columns, 1, box.x, y, columns * step, Math.max(high - 0.5, 0.5));
      if (high >= 9 || row % Math.ceil(9 / high) === 0) {
        g.fillStyle = '#555';
        g.font = '10px sans-serif';
        g.textAlign = 'right';
        g.textBaseline = 'middle';
        g.fillText('rank ' + rank.rank, box.x - 6, y + high / 2);
      }
    });
  }
  static rgb(share) {
    const stops = [[255, 255, 255], [107, 174, 214], [8, 48, 107]];
    const place = Math.min(Math.max(share, 0), 1) * 2, low = Math.min(Math.floor(place), 1), part = place - low;
    return stops[low].map((value, c) => Math.round(value + (stops[low + 1][c] - value) * part));
  }
  static shade(share) { return `rgb(${UsePanel.rgb(share).join(',')})`; }
  describe() { return ''; }
}

/** A row for each rank: in each time step the share of its workers that execute each kernel, one kernel upon the other. */
class NodesPanel {
  /** `ranks`: {rank, kernels: [{colour, steps}], workers}. */
  constructor(ranks) {
    this.title = 'Occupation of each rank';
    this.hint = 'workers that execute each kernel, by time step; the height of a row is all of its workers';
    this.ranks = ranks;
    this.height = Math.min(Math.max(26 * ranks.length, 60), 480);
    this.series = Math.max(ranks.reduce((sum, rank) => sum + rank.kernels.length, 0), 1);
    this.pixels = new Pixels();
    this.paper = Pixels.of([243, 243, 243]);
    for (const rank of ranks)
      for (const kernel of rank.kernels) kernel.word = Pixels.of(rgb(kernel.colour));
  }
  legend() { return []; }
  draw(box) {
    const {g} = box, high = box.height / this.ranks.length, ratio = window.devicePixelRatio || 1;
    // All steps together are bounded, so that moving stays smooth on many ranks.
    const columns = Math.max(Math.min(Math.floor(box.width / 4), Math.floor(10000 / this.series)), 40);
    const times = Float64Array.from({length: columns + 1}, (_, i) => box.time(box.x + i * box.width / columns)), row = new Float64Array(columns);
    const rows = Math.max(Math.round(high * ratio), 3), full = rows - 1, words = this.pixels.begin(columns, rows * this.ranks.length);
    this.ranks.forEach((rank, place) => {
      const bottom = (place + 1) * rows, below = new Float64Array(columns);
      words.fill(this.paper, (bottom - full) * columns, bottom * columns);
      for (const {word, steps} of rank.kernels) {
        steps.means(times, row);
        for (let i = 0; i < columns; ++i) {
          if (!(row[i] > 0)) continue;
          const from = Math.round(below[i]), to = Math.round(below[i] += Math.min(row[i] / rank.workers, 1) * full);
          for (let y = from; y < Math.min(to, full); ++y) words[(bottom - 1 - y) * columns + i] = word;
        }
      }
    });
    this.pixels.end();
    g.imageSmoothingEnabled = false;
    g.drawImage(this.pixels.canvas, 0, 0, columns, rows * this.ranks.length, box.x, box.y, box.width, box.height);
    g.fillStyle = '#555';
    g.font = '10px sans-serif';
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    this.ranks.forEach((rank, place) => {
      if (high >= 9 || place % Math.ceil(9 / high) === 0) g.fillText('rank ' + rank.rank, box.x - 6, box.y + (place + 0.5) * high);
    });
  }
  describe(time, box, y) {
    const rank = this.ranks[Math.floor(y / this.height * this.ranks.length)], half = 1 / box.scale;
    if (!rank) return '';
    const busy = rank.kernels.reduce((sum, kernel) => sum + kernel.steps.mean(time - half, time + half), 0);
    return `rank ${rank.rank}: ${formatCount(busy)} of ${rank.workers} workers execute tasks`;
  }
}

/** A point for each task, at its start. `place(task)` is from 0 (below) to 1, negative for tasks that are not shown; `least` and `most` label the scale's ends. */
class PointsPanel {
  constructor(run, title, hint, least, most, place) {
    Object.assign(this, {run, title, hint, least, most, place});
    this.height = 150;
    this.pixels = new Pixels();
    this.colours = Array.from({length: run.kernels.length + 1}, (_, kernel) => Pixels.of(rgb(run.colourOf(kernel))));
  }
  legend() { return []; }
  draw(box) {
    const {run} = this, {g} = box;
    let count = 0;
    const ranges = run.laneStarts.map(starts => {
      const range = [upperBound(starts, box.from), upperBound(starts, box.to)];
      count += range[1] - range[0];
      return range;
    });
    const stride = Math.max(Math.ceil(count / 60000), 1);
    const ratio = window.devicePixelRatio || 1, size = Math.max(Math.round(1.5 * ratio), 2);
    const width = Math.max(Math.round(box.width * ratio), size), height = Math.max(Math.round(box.height * ratio), size);
    const words = this.pixels.begin(width, height), across = width / (box.to - box.from);
    ranges.forEach(([first, last], lane) => {
      const tasks = run.lanes[lane], starts = run.laneStarts[lane];
      for (let i = first - first % stride + (first % stride === 0 ? 0 : stride); i < last; i += stride) {
        const place = this.place(tasks[i]);
        if (place < 0) continue;
        const x = Math.min(Math.max(Math.floor((starts[i] - box.from) * across), 0), width - size);
        const top = Math.floor((height - size) * (1 - place)), colour = this.colours[run.kernelOf(tasks[i])];
        for (let y = top; y < top + size; ++y) words.fill(colour, y * width + x, y * width + x + size);
      }
    });
    this.pixels.end();
    g.drawImage(this.pixels.canvas, 0, 0, width, height, box.x, box.y, box.width, box.height);
    g.fillStyle = '#555';
    g.font = '11px sans-serif';
    g.textAlign = 'right';
    if (this.most !== this.least) g.fillText(this.most, box.x - 6, box.y + 8);
    g.fillText(this.least, box.x - 6, box.y + box.height - 6);
  }
  describe() { return ''; }
}

/** The workers. */
class LanesPanel {
  constructor(run, state) {
    this.run = run;
    this.state = state;  // {selected, strong, messages, path}
    this.title = 'Workers';
    this.hint = 'each task has the colour of its kernel; click one to see what it waited for' + run.workerHint;
    this.painter = new LanePainter(run);
    const count = run.workers.length;
    this.laneHeight = Math.min(Math.max(Math.floor(560 / Math.max(count, 1)), 4), 26);
    this.gap = this.laneHeight > 6 ? 3 : 1;  // between ranks
    this.ys = [];
    let y = 0;
    run.workers.forEach((worker, i) => {
      if (i > 0 && worker.rank !== run.workers[i - 1].rank) y += this.gap;
      this.ys.push(y);
      y += this.laneHeight;
    });
    this.height = Math.max(y, 20);
    this.off = document.createElement('canvas');
  }
  legend() {
    const {run} = this;
    const kernels = run.kernels.slice(0, kernelColours.length - 1)
                        .map((kernel, i) => ({name: kernel.codelet || 'without a name', colour: run.colourOf(i)}));
    if (run.kernels.length >= kernelColours.length) kernels.push({name: 'other kernels', colour: run.colourOf(kernelColours.length)});
    const there = new Set(run.column('idle.spent'));
    const idle =
        run.facts.spent.map((name, i) => ({name: spentTexts[name], colour: spentColours[name], shown: there.has(i) && name !== 'outside'}));
    return kernels.concat(idle.filter(one => one.shown));
  }
  laneAt(y) {
    for (let lane = 0; lane < this.ys.length; ++lane) {
      if (y >= this.ys[lane] && y < this.ys[lane] + this.laneHeight) return lane;
    }
    return -1;
  }
  draw(box) {
    const {g} = box, {run} = this, lanes = run.workers.length;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(Math.round(box.width * ratio), 1);
    if (lanes === 0) return;
    if (this.off.width !== width || this.off.height !== lanes) {
      this.off.width = width;
      this.off.height = lanes;
      this.image = this.off.getContext('2d').createImageData(width, lanes);
    }
    for (let lane = 0; lane < lanes; ++lane) {
      this.painter.paint(
          lane, box.from, box.to, width, this.image.data.subarray(4 * width * lane, 4 * width * (lane + 1)), this.state.strong);
    }
    this.off.getContext('2d').putImageData(this.image, 0, 0);
    g.imageSmoothingEnabled = false;
    const inset = this.laneHeight > 8 ? 1 : 0;
    for (let lane = 0; lane < lanes; ++lane) {
      g.drawImage(this.off, 0, lane, width, 1, box.x, box.y + this.ys[lane], box.width, this.laneHeight - inset);
    }
    this.drawNames(box);
    this.drawTasks(box);
    if (this.state.path) this.drawPath(box);
    if (this.state.messages) this.drawMessages(box);
    if (this.state.selected >= 0) this.drawSelection(box);
  }
  drawNames(box) {
    const {g} = box;
    g.fillStyle = '#555';
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    g.font = '11px sans-serif';
    const each = Math.max(Math.ceil(11 / this.laneHeight), 1);
    this.names = this.names || this.run.workers.map(worker => this.run.workerName(worker));
    this.names.forEach((name, lane) => {
      if (lane % each === 0) g.fillText(name, box.x - 6, box.y + this.ys[lane] + this.laneHeight / 2);
    });
  }
  /** Borders and names of tasks that are wide enough. */
  drawTasks(box) {
    if (this.laneHeight < 12) return;
    const {g} = box, {run} = this;
    g.save();
    g.beginPath();
    g.rect(box.x, box.y, box.width, box.height);
    g.clip();
    g.textAlign = 'left';
    g.textBaseline = 'middle';
    g.font = '11px sans-serif';
    run.lanes.forEach((tasks, lane) => {
      const first = Math.max(upperBound(run.laneStarts[lane], box.from) - 1, 0), last = upperBound(run.laneStarts[lane], box.to);
      if (last - first > box.width / 12) return;
      for (let i = first; i < last; ++i) {
        const a = Math.max(box.at(run.laneStarts[lane][i]), box.x), b = Math.min(box.at(run.laneEnds[lane][i]), box.x + box.width);
        if (b - a < 3) continue;
        g.fillStyle = 'rgba(0,0,0,.35)';
        g.fillRect(a, box.y + this.ys[lane], 1, this.laneHeight - 1);
        const name = run.nameOf(tasks[i]);
        if (b - a > 6 * name.length + 8) {
          g.fillStyle = this.state.strong && !run.outlier[tasks[i]] ? '#222' : '#fff';
          g.fillText(name, a + 4, box.y + this.ys[lane] + this.laneHeight / 2);
        }
      }
    });
    g.restore();
  }
  middle(task) {
    const lane = this.run.columns['task.lane'][task] - 1;
    return lane < 0 ? null : this.ys[lane] + this.laneHeight / 2;
  }
  line(box, task, other, colour, width) {
    const {g, y} = box, {run} = this;
    if (this.middle(task) === null || this.middle(other) === null) return;
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.beginPath();
    g.moveTo(box.at(run.end(task)), y + this.middle(task));
    g.lineTo(box.at(run.columns['task.start'][other]), y + this.middle(other));
    g.stroke();
  }
  clipped(box, draw) {
    box.g.save();
    box.g.beginPath();
    box.g.rect(box.x, box.y - 2, box.width, box.height + 4);
    box.g.clip();
    draw();
    box.g.restore();
  }
  frame(box, task, colour, width) {
    const {g} = box, {run} = this, lane = run.columns['task.lane'][task] - 1;
    if (lane < 0) return;
    const a = box.at(run.columns['task.start'][task]), b = box.at(run.end(task));
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.strokeRect(a, box.y + this.ys[lane], Math.max(b - a, 2), this.laneHeight - 1);
  }
  static get before() { return '#0050d0'; }
  static get after() { return '#c04000'; }
  drawSelection(box) {
    this.clipped(box, () => {
      const task = this.state.selected;
      for (const {task: other} of this.run.neighbours(task, false)) this.line(box, other, task, LanesPanel.before, 1.5);
      for (const {task: other} of this.run.neighbours(task, true)) this.line(box, task, other, LanesPanel.after, 1.5);
      this.frame(box, task, '#000', 2);
    });
  }
  drawPath(box) {
    const {run} = this, kind = run.column('path.kind'), task = run.column('path.task'), end = run.column('path.end');
    const executes = run.facts.steps.map(name => name === 'execution' || name === 'busy');
    this.clipped(box, () => {
      const {g} = box;
      let last = null;
      const first = Math.max(upperBound(end, box.from) - 1, 0), until = Math.min(upperBound(end, box.to) + 2, task.length);
      if (until - first > 8000) return;
      for (let i = first; i < until; ++i) {
        const middle = task[i] > 0 ? this.middle(task[i] - 1) : null;
        if (middle === null) continue;
        const y = box.y + middle, x = box.at(end[i]);
        g.strokeStyle = executes[kind[i]] ? '#000' : '#d00000';
        g.lineWidth = 2;
        g.beginPath();
        if (last !== null) g.moveTo(last[0], last[1]);
        g.lineTo(box.at(i > 0 ? end[i - 1] : 0), y);
        g.lineTo(x, y);
        g.stroke();
        last = [x, y];
      }
    });
  }
  drawMessages(box) {
    const {run} = this, posted = run.column('message.posted'), took = run.column('message.arrived');
    const source = run.column('message.source'), destination = run.column('message.destination'), bytes = run.column('message.bytes');
    const rankY = new Map();
    run.workers.forEach((worker, lane) => {
      const known = rankY.get(worker.rank);
      const y = this.ys[lane] + this.laneHeight / 2;
      rankY.set(worker.rank, known === undefined ? [y, y] : [known[0], y]);
    });
    const middle = rank => rankY.has(rank) ? (rankY.get(rank)[0] + rankY.get(rank)[1]) / 2 : 0;
    let shown = [];
    for (let i = 0; i < posted.length; ++i) {
      if (posted[i] < box.to && posted[i] + took[i] > box.from && source[i] !== destination[i]) shown.push(i);
    }
    this.hiddenMessages = Math.max(shown.length - 1500, 0);
    if (this.hiddenMessages > 0) shown = shown.sort((a, b) => bytes[b] - bytes[a]).slice(0, 1500);
    this.clipped(box, () => {
      const {g} = box;
      g.strokeStyle = 'rgba(120,0,120,.55)';
      g.lineWidth = 1;
      g.beginPath();
      for (const i of shown) {
        g.moveTo(box.at(posted[i]), box.y + middle(source[i]));
        g.lineTo(box.at(posted[i] + took[i]), box.y + middle(destination[i]));
      }
      g.stroke();
      if (this.hiddenMessages > 0) {
        g.fillStyle = '#700070';
        g.textAlign = 'right';
        g.fillText(`${formatCount(this.hiddenMessages)} smaller messages are not drawn: zoom in`, box.x + box.width - 4, box.y + 8);
      }
    });
  }
  click(timeline, time, box, y) {
    const lane = this.laneAt(y);
    timeline.select(lane < 0 ? -1 : this.run.taskAt(lane, time, 2 / box.scale));
  }
  describe(time, box, y) {
    const lane = this.laneAt(y), {run} = this;
    if (lane < 0) return '';
    const worker = run.workers[lane], task = run.taskAt(lane, time, 2 / box.scale);
    const who = `rank ${worker.rank}, worker ${worker.worker}: `;
    if (task >= 0)
      return who + `${run.nameOf(task)}, ${formatTime(run.seconds(run.end(task) - run.columns['task.start'][task]))}` +
          (run.outlier[task] ? ', an outlier' : '');
    const starts = run.column('idle.start'), durations = run.column('idle.duration');
    for (let i = run.idleBegins[lane]; i < run.idleBegins[lane + 1]; ++i) {
      if (starts[i] > time) break;
      if (starts[i] + durations[i] >= time) return who + `${spentTexts[run.spentOf(i)]}, ${formatTime(run.seconds(durations[i]))}`;
    }
    return who + 'between tasks';
  }
}

/** Values that several panels need, computed at the first use. */
class Groups {
  constructor(run) {
    this.run = run;
    this.ranks = [...new Set(run.workers.map(worker => worker.rank))];
  }
  /** Tasks that workers have run. */
  get ran() {
    if (!this.all) {
      const lane = this.run.columns['task.lane'];
      let count = 0;
      for (const one of lane)
        if (one > 0) ++count;
      this.all = new Uint32Array(count);
      for (let task = 0, at = 0; task < lane.length; ++task)
        if (lane[task] > 0) this.all[at++] = task;
    }
    return this.all;
  }
  /** The least and the greatest iteration of tasks that ran. */
  get iterations() {
    const passed = this.run.column('pass.iteration');
    return [passed.reduce((least, one) => Math.min(least, one), Infinity), passed.reduce((most, one) => Math.max(most, one), 0)];
  }
  steps(tasks) {
    const start = this.run.columns['task.start'];
    return new Steps(numbersOf(tasks, task => start[task]), numbersOf(tasks, task => this.run.end(task)));
  }
  /** Of each rank its workers, and how many of them execute tasks. */
  get uses() {
    return this.ofRanks = this.ofRanks || this.ranks.map(rank => {
      const lanes = this.run.lanes.filter((_, row) => this.run.workers[row].rank === rank);
      return {rank, workers: lanes.length, steps: this.steps(lanes.flatMap(lane => Array.from(lane)))};
    });
  }
  /** Messages between ranks. */
  get crossing() {
    const source = this.run.column('message.source'), destination = this.run.column('message.destination');
    return this.messages = this.messages || Uint32Array.from(source.keys()).filter(i => source[i] !== destination[i]);
  }
}

function lineOf(name, colour, steps) {
  return {name, colour, mean: (from, to) => steps.mean(from, to), means: (times, row) => steps.means(times, row)};
}

/** Workers that execute each kernel; those beyond the palette together. */
function occupationPanel(run, groups) {
  const shown = Math.min(run.kernels.length, kernelColours.length);
  const counts = new Uint32Array(shown);
  for (const task of groups.ran) ++counts[Math.min(run.kernelOf(task), shown - 1)];
  const tasks = Array.from(counts, count => new Uint32Array(count));
  const next = new Uint32Array(shown);
  for (const task of groups.ran) {
    const kernel = Math.min(run.kernelOf(task), shown - 1);
    tasks[kernel][next[kernel]++] = task;
  }
  return new SeriesPanel(
      'Occupation', 'workers that execute each kernel',
      tasks.map(
          (some, i) => lineOf(
              i + 1 === shown && run.kernels.length > shown ? 'other kernels' : run.kernels[i].codelet || 'without a name', run.colourOf(i),
              groups.steps(some))),
      {stacked: true, most: run.workers.length, height: 120});
}

function usePanel(run, groups) { return new UsePanel(groups.uses); }

/**
 * Busy time of the mean rank as a share of that of the busiest, over a hundredth of the run: what balances less than that is seen in the
 * panels above. Of the workers of a single rank.
 */
function balancePanel(run, groups) {
  const several = groups.ranks.length > 1;
  const parts = several ? groups.uses : run.lanes.map(lane => ({workers: 1, steps: groups.steps(lane)}));
  const share = (from, to) => {
    const half = Math.max(to - from, run.makespan / 100) / 2, middle = (from + to) / 2;
    const busy = parts.map(({workers, steps}) => steps.mean(middle - half, middle + half) / workers);
    const most = busy.reduce((a, b) => Math.max(a, b), 0);
    return most > 1e-9 ? 100 * busy.reduce((a, b) => a + b, 0) / busy.length / most : 0;
  };
  const of = several ? 'rank' : 'worker';
  return new SeriesPanel(
      'Load balance', `busy time of the mean ${of} as a share of the busiest one's, over a hundredth of the run`,
      [{name: 'mean / most', colour: '#009e73', mean: share}], {most: 100, height: 70, format: value => formatCount(value) + ' %'});
}

function nodesPanel(run, groups) {
  const shown = Math.min(run.kernels.length, kernelColours.length), lane = run.columns['task.lane'];
  const row = new Map(groups.ranks.map((rank, place) => [rank, place]));
  const rowOf = run.workers.map(worker => row.get(worker.rank)), tasks = groups.ranks.map(() => Array.from({length: shown}, () => []));
  for (const task of groups.ran) tasks[rowOf[lane[task] - 1]][Math.min(run.kernelOf(task), shown - 1)].push(task);
  return new NodesPanel(groups.ranks.map((rank, place) => ({
                                           rank,
                                           workers: rowOf.filter(one => one === place).length,
                                           kernels: tasks[place].flatMap(
                                               (some, kernel) => some.length === 0 ?
                                                   [] :
                                                   [{colour: run.colourOf(kernel), steps: groups.steps(Uint32Array.from(some))}])
                                         })));
}

function submittedPanel(run, groups) {
  const start = run.columns['task.start'], submit = run.columns['task.submit'];
  const steps = new Steps(numbersOf(groups.ran, task => Math.min(submit[task], start[task])), numbersOf(groups.ran, task => run.end(task)));
  return new SeriesPanel('Submitted tasks', 'that have not ended', [lineOf('submitted, not ended', '#6f6f6f', steps)]);
}

function readyPanel(run, groups) {
  const start = run.columns['task.start'], {waited} = run;
  const known = groups.ran.filter(task => waited[task] >= 0);
  const steps = new Steps(numbersOf(known, task => start[task] - waited[task]), numbersOf(known, task => start[task]));
  return new SeriesPanel(
      'Ready tasks', 'that have not begun: where there are none, workers have nothing to do', [lineOf('ready', '#d55e00', steps)]);
}

function ratePanel(run, groups) {
  const posted = run.column('message.posted'), took = run.column('message.arrived'), bytes = run.column('message.bytes');
  const destination = run.column('message.destination');
  const flows = groups.ranks.slice(0, kernelColours.length)
                    .map((rank, i) => ({rank, colour: kernelColours[i], flow: new Flow(run.makespan, 1 << 15)}));
  const rest = new Flow(run.makespan, 1 << 15);
  const of = new Map(flows.map(one => [one.rank, one.flow]));
  for (const i of groups.crossing) (of.get(destination[i]) || rest).add(posted[i], posted[i] + took[i], bytes[i]);
  const perSecond = 1e9 / run.facts.unit_ns;
  const line = (name, colour, flow) => {
    flow.finish();
    return {name, colour, mean: (from, to) => flow.mean(from, to) * perSecond};
  };
  const rates = flows.map(one => line('to rank ' + one.rank, one.colour, one.flow));
  if (groups.ranks.length > rates.length) rates.push(line('to other ranks', '#aaa', rest));
  return new SeriesPanel(
      'Data on their way', 'bytes per second, from the posting of each message to its arrival', rates,
      {stacked: true, format: value => formatBytes(value) + '/s'});
}

function messagesPanel(run, groups) {
  const posted = run.column('message.posted'), took = run.column('message.arrived');
  const steps = new Steps(numbersOf(groups.crossing, i => posted[i]), numbersOf(groups.crossing, i => posted[i] + took[i]));
  return new SeriesPanel('Messages under way', 'posted, not arrived', [lineOf('messages', '#7b3294', steps)]);
}

function memoryPanel(run) {
  const times = run.column('memory.time'), rank = run.column('memory.rank'), node = run.column('memory.node'),
        used = run.column('memory.used');
  const lines = [];
  for (let i = 0; i < times.length; ++i) {
    let line = lines[lines.length - 1];
    if (!line || line.rank !== rank[i] || line.node !== node[i]) lines.push(line = {rank: rank[i], node: node[i], times: [], used: []});
    line.times.push(times[i]);
    line.used.push(used[i]);
  }
  const series = lines.slice(0, 16).map((line, i) => ({
                                          name: `rank ${line.rank}, ${run.memoryName(line.rank, line.node)}`,
                                          colour: kernelColours[i % kernelColours.length],
                                          mean: from => {
                                            const at = upperBound(line.times, from) - 1;
                                            return at < 0 ? 0 : line.used[at];
                                          },
                                        }));
  return new SeriesPanel('Memory', 'bytes of data that Tandem has allocated', series, {format: formatBytes});
}

/** Kinds of `tracer.kind`: as TracerKind of tandem/analysis/history/history.hpp has them. */
const tracerKinds = [{kind: 0, name: 'write the trace', colour: '#6f6f6f'}, {kind: 1, name: 'wait for room in it', colour: '#d55e00'}];

function tracerPanel(run) {
  const kinds = run.column('tracer.kind'), start = run.column('tracer.start'), took = run.column('tracer.duration');
  const lines = tracerKinds.map(({kind, name, colour}) => {
    const some = Uint32Array.from(kinds.keys()).filter(i => kinds[i] === kind);
    return lineOf(name, colour, new Steps(numbersOf(some, i => start[i]), numbersOf(some, i => start[i] + took[i])));
  });
  return new SeriesPanel('Tracing', 'threads that write the trace, or wait until it has been written', lines, {stacked: true, height: 60});
}

/** For each task its place in the order of submission of its rank, from 0, the first, to 1, the last. */
function orderOfRanks(ranks) {
  const counts = new Map(), places = new Float64Array(ranks.length);
  ranks.forEach((rank, task) => {
    places[task] = counts.get(rank) || 0;
    counts.set(rank, places[task] + 1);
  });
  return places.map((place, task) => place / Math.max(counts.get(ranks[task]) - 1, 1));
}

function orderPanel(run, groups) {
  const places = orderOfRanks(run.columns['task.rank']);
  return new PointsPanel(
      run, 'Order of submission against time',
      `a task higher up was submitted later${groups.ranks.length > 1 ? ' on its rank' : ''}; a wide band means that many steps of the program overlap`,
      'first', 'last', task => places[task]);
}

/** Tasks with an iteration number from the program. */
function iterationPanel(run, groups) {
  const [least, most] = groups.iterations;
  return new PointsPanel(
      run, 'Iterations against time', 'tasks by the iteration of the program that they belong to', String(least), String(most), task => {
        const iteration = run.iterationOf(task);
        return iteration < 0 ? -1 : (iteration - least) / Math.max(most - least, 1);
      });
}

/** Iterations in flight, as tandem/analysis/verdict/iterations.hpp counts them. */
function inFlightPanel(run) {
  const start = run.column('pass.start'), duration = run.column('pass.duration');
  const steps = new Steps(start.slice(), start.map((begin, i) => begin + duration[i]));
  return new SeriesPanel(
      'Iterations in flight', 'of which a task has begun and not all have ended', [lineOf('iterations', '#0072b2', steps)]);
}

/**
 * Makes all panels that this run has something for, in their order, each when it is asked for: what a later one needs costs the
 * first nothing. The names are those of `tandem trace report --panel`, which draws the same ones without a browser:
 * python/tandem/plots/_report/panels.py.
 */
function* panelsOf(run, state) {
  const groups = new Groups(run), ran = run.kernels.length > 0, ranks = groups.ranks.length, panels = [];
  const add = (name, isThere, make) => panels.push({isThere, make});
  add('workers', () => run.workers.length > 0, () => new LanesPanel(run, state));
  add('occupation', () => ran, () => occupationPanel(run, groups));
  add('use', () => ranks > 1, () => usePanel(run, groups));
  add('nodes', () => ran && ranks > 1, () => nodesPanel(run, groups));
  add('balance', () => ran && run.workers.length > 1, () => balancePanel(run, groups));
  add('submitted', () => ran, () => submittedPanel(run, groups));
  add('ready', () => ran && run.facts.readied, () => readyPanel(run, groups));
  add('iterations', () => groups.iterations[0] < Infinity, () => iterationPanel(run, groups));
  add('flight', () => run.column('pass.start').length > 0, () => inFlightPanel(run));
  add('order', () => ran, () => orderPanel(run, groups));
  add('rate', () => groups.crossing.length > 0, () => ratePanel(run, groups));
  add('messages', () => groups.crossing.length > 0, () => messagesPanel(run, groups));
  add('broadcasts', () => run.column('edge.message').length > 0, () => new BroadcastsPanel(run, state));
  add('memory', () => run.column('memory.time').length > 0, () => memoryPanel(run));
  add('tracer', () => run.column('tracer.kind').length > 0, () => tracerPanel(run));
  for (const {isThere, make} of panels)
    if (isThere()) yield make();
}
