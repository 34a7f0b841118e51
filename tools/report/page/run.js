// run.js: the tables of a run, and what is found in them: tasks of a worker, what a task waited for.

// Colours that are told apart with all kinds of colour vision (Okabe and Ito, "Color Universal Design", 2008).
const kernelColours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#c9b900', '#6f6f6f'];
const spentColours = {
  fetching: '#b9a6d3',
  scheduling: '#c8c8c8',
  holding: '#dfd0a0',
  ready_elsewhere: '#f2b3ad',
  awaiting_memory: '#c9a27e',
  awaiting_message: '#bfe0f5',
  no_ready_task: '#ebebeb',
  awaiting_submission: '#f8ddb0',
  program: '#d7e9cf',
  outside: '#ffffff',
  unknown: '#ffffff',
};
const spentTexts = {
  executing: 'executing tasks',
  fetching: 'copying between memories',
  scheduling: 'choosing and preparing tasks',
  holding: 'holding a core for an urgent task',
  ready_elsewhere: 'idle: a task was ready',
  awaiting_memory: 'idle: waiting for room or copies',
  awaiting_message: 'idle: waiting for another rank\'s data',
  no_ready_task: 'idle: no task was ready',
  awaiting_submission: 'idle: waiting for the program to submit',
  program: 'in the program, or submitting',
  outside: 'idle: before or after the rank\'s tasks',
  unknown: 'unknown',
};

class Run {
  constructor(summary, facts, columns) {
    this.summary = summary;
    this.facts = facts;
    this.columns = columns;
    this.makespan = Math.max(facts.makespan, 1);
    this.workers = facts.workers;
    this.taskCount = columns['task.lane'].length;
    // Read for each task: a look into `columns` by name takes longer.
    this.start = columns['task.start'];
    this.duration = columns['task.duration'];
    this.outlier = columns['task.outlier'];
    this.orderKernels();
    this.makeLanes();
    this.makeIdle();
  }

  column(name) { return this.columns[name] || new Float64Array(0); }
  end(task) { return this.start[task] + Math.max(this.duration[task], 0); }
  seconds(time) { return time * this.facts.unit_ns / 1e9; }
  nameOf(task) {
    const own = this.columns['task.name'][task];
    return this.facts.names[own || this.columns['task.codelet'][task]] || 'task ' + this.columns['task.id'][task];
  }
  /** The name of a worker beside a row: "worker 1" in one rank, "rank 1" where each rank has one worker, else "1.0": rank and number there. */
  workerName({rank, worker}) {
    if (this.summary.ranks < 2) return `worker ${worker}`;
    return this.workers.length > this.rankCount ? `${rank}.${worker}` : `rank ${rank}`;
  }
  /** Explains `workerName` where needed; else "". */
  get workerHint() {
    return this.summary.ranks > 1 && this.workers.length > this.rankCount ? '; a row 1.0 is worker 0 of rank 1' : '';
  }
  /** Ranks that have workers. */
  get rankCount() { return new Set(this.workers.map(worker => worker.rank)).size; }
  /** The name of a memory node of a rank. */
  memoryName(rank, node) {
    const named = (this.facts.memories || []).find(one => one.rank === rank && one.node === node);
    return named ? named.name : `memory ${node}`;
  }
  /** The iteration number that the program gave; -1: none. */
  iterationOf(task) {
    const iterations = this.column('task.iteration');
    return task < iterations.length ? iterations[task] : -1;
  }
  /** Floating-point operations that the program gave; 0: not known. */
  flopsOf(task) {
    const places = this.column('task.flops');
    return task < places.length ? this.facts.flops[places[task]] : 0;
  }
  /** The exact tag; beyond 2^53 that needs a BigInt. 0: none. */
  tagOf(task) {
    const low = this.column('task.tag')[task] || 0, high = this.column('task.tag_high')[task] || 0;
    return high ? BigInt(high) * 4294967296n + BigInt(low) : low;
  }
  kernelOf(task) { return this.kernel[task]; }
  /** The colour of a kernel: the program's, or one of the palette, whose last one the kernels beyond it share. */
  colourOf(kernel) {
    const last = kernelColours.length - 1;
    if (kernel < Math.min(last, this.kernels.length) && this.kernels[kernel].colour) return this.kernels[kernel].colour;
    const place = this.colours && kernel < this.colours.length ? this.colours[kernel] : kernel;
    return kernelColours[Math.min(place, last)];
  }
  /** Gives kernels with equal names equal colours in all runs. */
  static shareColours(runs) {
    const names = [...new Set(runs.flatMap(run => run.kernels.map(kernel => kernel.codelet)))];
    for (const run of runs) run.colours = run.kernels.map(kernel => names.indexOf(kernel.codelet));
  }
  spentOf(place) { return this.facts.spent[this.columns['idle.spent'][place]]; }

  /** For each task the time that it was ready before it began; -1: not known. */
  get waited() { return this.columns['task.waited']; }
  get broadcastEdges() { return this.treeEdges = this.treeEdges || new BroadcastEdges(this); }

  /** Kernels by total time, the greatest first, as the summary lists them. */
  orderKernels() {
    this.kernels = this.summary.kernels;
    const place = new Map(this.kernels.map((kernel, i) => [kernel.codelet, i]));
    const kernelOfCodelet = this.facts.names.map(name => place.has(name) ? place.get(name) : this.kernels.length);
    const codelets = this.columns['task.codelet'];
    this.kernel = new Uint16Array(this.taskCount);
    for (let task = 0; task < this.taskCount; ++task) this.kernel[task] = kernelOfCodelet[codelets[task]];
  }

  /** For each worker its tasks, by start. */
  makeLanes() {
    const lanes = this.columns['task.lane'], start = this.columns['task.start'];
    const counts = new Uint32Array(this.workers.length);
    for (const lane of lanes)
      if (lane > 0) ++counts[lane - 1];
    this.lanes = Array.from(counts, count => new Uint32Array(count));
    const next = new Uint32Array(this.workers.length);
    const sorted = new Uint8Array(this.workers.length).fill(1);
    for (let task = 0; task < this.taskCount; ++task) {
      const lane = lanes[task] - 1;
      if (lane < 0) continue;
      const tasks = this.lanes[lane];
      if (next[lane] > 0 && start[tasks[next[lane] - 1]] > start[task]) sorted[lane] = 0;
      tasks[next[lane]++] = task;
    }
    for (let lane = 0; lane < this.lanes.length; ++lane) {
      if (!sorted[lane]) this.lanes[lane] = sortedBy(this.lanes[lane], start);
    }
    // Loops of their own: with a call for each task these take several times as long.
    const {duration} = this;
    this.laneStarts = this.lanes.map(tasks => new Float64Array(tasks.length));
    this.laneEnds = this.lanes.map(tasks => new Float64Array(tasks.length));
    for (let lane = 0; lane < this.lanes.length; ++lane) {
      const tasks = this.lanes[lane], starts = this.laneStarts[lane], ends = this.laneEnds[lane];
      for (let i = 0; i < tasks.length; ++i) {
        const task = tasks[i];
        starts[i] = start[task];
        ends[i] = start[task] + Math.max(duration[task], 0);
      }
    }
  }

  /** For each worker the first of its idle times, which are sorted by worker and time. */
  makeIdle() {
    const workers = this.column('idle.worker');
    this.idleBegins = new Uint32Array(this.workers.length + 1);
    for (const worker of workers) ++this.idleBegins[worker + 1];
    for (let i = 0; i < this.workers.length; ++i) this.idleBegins[i + 1] += this.idleBegins[i];
  }

  /** The task of a worker at a time, or the one that begins within `reach` of it; -1. */
  taskAt(lane, time, reach) {
    const at = upperBound(this.laneStarts[lane], time + reach) - 1;
    return at >= 0 && this.laneEnds[lane][at] >= time - reach ? this.lanes[lane][at] : -1;
  }

  // The graph, made when it is asked for first.
  graph() {
    if (this.edges) return this.edges;
    const counts = this.column('task.into'), from = this.column('task.from');
    const sender = this.column('message.sender'), receiver = this.column('message.receiver');
    const begins = new Uint32Array(this.taskCount + 1), outBegins = new Uint32Array(this.taskCount + 1);
    const each = call => {
      let at = 0;
      for (let task = 0; task < this.taskCount; ++task) {
        for (let i = 0; i < counts[task]; ++i) call(task - from[at++], task, -1);
      }
      for (let message = 0; message < sender.length; ++message) {
        if (sender[message] > 0 && receiver[message] > 0) call(sender[message] - 1, receiver[message] - 1, message);
      }
    };
    each((a, b) => (++begins[b + 1], ++outBegins[a + 1]));
    for (let i = 0; i < this.taskCount; ++i) {
      begins[i + 1] += begins[i];
      outBegins[i + 1] += outBegins[i];
    }
    const total = begins[this.taskCount];
    const into = new Uint32Array(total), out = new Uint32Array(total);
    const intoMessage = new Int32Array(total), outMessage = new Int32Array(total);
    const next = begins.slice(), outNext = outBegins.slice();
    each((a, b, message) => {
      intoMessage[next[b]] = outMessage[outNext[a]] = message;
      into[next[b]++] = a;
      out[outNext[a]++] = b;
    });
    return this.edges = {begins, into, intoMessage, outBegins, out, outMessage};
  }
  /** [{task, message}]: what a task waited for, or what waited for it; through nodes that are no tasks of a worker. */
  neighbours(task, forwards) {
    const graph = this.graph();
    const begins = forwards ? graph.outBegins : graph.begins;
    const ends = forwards ? graph.out : graph.into, messages = forwards ? graph.outMessage : graph.intoMessage;
    const lane = this.columns['task.lane'];
    const found = [], seen = new Set([task]), todo = [[task, -1]];
    while (todo.length > 0 && found.length < 200) {
      const [at, message] = todo.pop();
      for (let i = begins[at]; i < begins[at + 1]; ++i) {
        const other = ends[i];
        if (seen.has(other)) continue;
        seen.add(other);
        const through = messages[i] >= 0 ? messages[i] : message;
        if (lane[other] > 0)
          found.push({task: other, message: through});
        else
          todo.push([other, through]);
      }
    }
    return found.sort((a, b) => this.end(a.task) - this.end(b.task));
  }

  /** What a task waited for, from its submission to its start: [{text, time}]; `other`: the task that came last. */
  waitsOf(task) {
    const part = name => this.column('task.' + name)[task] || 0;
    const [turn, memory, copies] = ['turn', 'memory', 'copies'].map(part), message = part('message') - 1;
    const last = part('last') !== 0 ? task - part('last') : -1, start = this.start[task], submit = this.columns['task.submit'][task];
    // A task without a recorded time is ready when its last input has come.
    const came = message >= 0 ? this.column('message.posted')[message] + this.column('message.arrived')[message] : last >= 0 ? this.end(last) : submit;
    const ready = Math.max(this.waited[task] >= 0 ? start - this.waited[task] : Math.min(came, start), submit);
    return [
      {
        time: ready - submit,
        other: last,
        text: message >= 0 ? `for data of rank ${this.column('message.source')[message]}` + (last >= 0 ? ', made by' : '') :
                             last >= 0 ? 'for the last of its predecessors,' : 'for other tasks'
      },
      {time: turn, text: 'for its turn among tasks that commute on its data'}, {time: memory, text: 'for room in memory'},
      {time: copies, text: 'for copies between memories'},
      {time: Math.max(start - ready - turn - memory - copies, 0), text: 'for a worker'}
    ].filter(one => one.time > 0);
  }

  /** [{data, mode, message, copy}] of a task: what brought its value, -1: nothing did; empty where the report leaves them out. */
  accessesOf(task) {
    const tasks = this.column('access.task');
    if (!this.accessBegins) {
      this.accessBegins = new Uint32Array(this.taskCount + 1);
      for (const of of tasks) ++this.accessBegins[of + 1];
      for (let i = 0; i < this.taskCount; ++i) this.accessBegins[i + 1] += this.accessBegins[i];
      this.accessOrder = sortedBy(Uint32Array.from(tasks, (_, i) => i), tasks);
    }
    const found = [];
    for (let i = this.accessBegins[task]; i < this.accessBegins[task + 1]; ++i) {
      const row = this.accessOrder[i];
      found.push({
        data: this.facts.data_names[this.columns['access.data'][row]],
        mode: this.facts.modes[this.columns['access.mode'][row]],
        message: (this.column('access.message')[row] || 0) - 1,
        copy: (this.column('access.copy')[row] || 0) - 1
      });
    }
    return found;
  }
}

/** A number for each index. In a loop, since `Float64Array.from` calls an iterator for each. */
function numbersOf(indices, number) {
  const numbers = new Float64Array(indices.length);
  for (let i = 0; i < indices.length; ++i) numbers[i] = number(indices[i]);
  return numbers;
}

/** `indices`, sorted by `keys[index]`, whole numbers; equal keys keep their order. Radix sort: a comparison for each step costs more. */
function sortedBy(indices, keys) {
  const count = indices.length;
  let least = Infinity, most = -Infinity;
  for (let i = 0; i < count; ++i) {
    least = Math.min(least, keys[indices[i]]);
    most = Math.max(most, keys[indices[i]]);
  }
  let from = new Uint32Array(count), to = new Uint32Array(count);
  from.set(indices);
  const digits = new Uint16Array(count), starts = new Uint32Array(65537);
  for (let scale = 1; most - least >= scale; scale *= 65536) {
    starts.fill(0);
    for (let i = 0; i < count; ++i) {
      const digit = (keys[from[i]] - least) / scale % 65536;
      digits[i] = digit;
      ++starts[(digit | 0) + 1];
    }
    for (let i = 0; i < 65536; ++i) starts[i + 1] += starts[i];
    for (let i = 0; i < count; ++i) to[starts[digits[i]]++] = from[i];
    [from, to] = [to, from];
  }
  return from;
}
