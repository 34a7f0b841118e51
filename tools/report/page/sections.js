// sections.js: the parts of the page without a time axis.

/** A text whose options (--tandem.NAME) are not broken at the end of a line. */
function withOptions(text) { return text.split(/(--[\w.=]+)/).map(part => part.startsWith('--') ? element('span', {class: 'option'}, part) : part); }
/** "3 ranks", or "2 to 7 ranks". */
function rangeOf({min, max}) {
  const most = `${formatCount(max)} rank${max === 1 ? '' : 's'}`;
  return min === max ? most : `${formatCount(min)} to ${most}`;
}

function verdictSection(run) {
  const {summary} = run, makespan = summary.makespan_s;
  const place = element('div', {class: 'verdict'});
  for (const note of summary.reservations) place.append(element('p', {class: 'note'}, 'Note: ' + note + '.'));
  if (run.kernels.length === 0) {
    place.append(element('p', {}, 'No task has run, as far as was recorded: there is nothing to judge.'));
  } else if (summary.verdict.length === 0) {
    place.append(element('p', {}, 'Nothing to gain here: no cause costs 2 % of the makespan or more.'));
  }
  for (const finding of summary.verdict) {
    place.append(element(
        'div', {class: 'finding'}, element('b', {}, formatTime(finding.lost_s), element('small', {}, percent(finding.lost_s, makespan))),
        element('div', {}, element('p', {}, finding.what), element('p', {class: 'try'}, 'Try: ', ...withOptions(finding.remedy), '.'))));
  }
  return place;
}

/** Makespan and bounds as bars. */
function boundsSection(run) {
  const {summary} = run, {bounds} = summary;
  const rows = [
    ['makespan', summary.makespan_s, '#444'], ['critical path with messages', bounds.critical_path_with_messages_s, '#7b3294'],
    ['critical path', bounds.critical_path_s, '#0072b2'], ['area bound', bounds.area_s, '#009e73']
  ];
  const bars = element(
      'div', {class: 'bars'},
      ...rows.filter(row => row[1] !== undefined && !(row[0] === 'critical path with messages' && summary.ranks < 2))
          .map(
              ([name, seconds, colour]) => element(
                  'div', {}, element('span', {}, name),
                  element(
                      'span', {class: 'bar'},
                      element('i', {style: `width:${100 * seconds / Math.max(summary.makespan_s, 1e-12)}%;background:${colour}`})),
                  element('span', {class: 'number'}, formatTime(seconds)))));
  return summary.area.kinds.length < 2 ? bars : element('div', {}, bars, distributionTable(summary.area));
}

/** For each kernel and kind of worker: the tasks that ran there, their durations, and their number in a schedule as long as the area bound. */
function distributionTable(area) {
  const names = [...new Set(area.kernels.map(place => place.codelet))];
  const cell = (text, style = '') => element('td', {class: 'count', style}, text);
  const rows = names.map(name => element('tr', {}, element('td', {}, name || 'without a name'), ...area.kinds.flatMap(kind => {
    const place = area.kernels.find(one => one.codelet === name && one.kind === kind.name);
    if (!place) return [cell('–'), cell('–'), cell('–')];
    return [
      cell(formatCount(place.tasks)), cell(formatTime(place.total_s / place.tasks)),
      cell(place.placed === null ? '?' : formatCount(Math.round(place.placed)), 'color:#00745a')
    ];
  })));
  return element(
      'div', {class: 'distribution'},
      element('p', {class: 'note'}, 'Tasks of each kernel by kind of worker: how many ran there, their mean time, and how many run there in the area bound.'),
      element(
          'table', {},
          element(
              'thead', {},
              element('tr', {}, element('th', {}), ...area.kinds.map(kind => element('th', {colspan: 3, class: 'kind'}, `${kind.workers} ${kind.name}`))),
              element('tr', {}, element('th', {}, 'kernel'), ...area.kinds.flatMap(() => ['ran', 'mean', 'in bound'].map(head => element('th', {class: 'count'}, head))))),
          element('tbody', {}, ...rows)),
      area.exact ? '' : element('p', {class: 'note'}, 'The area bound is weaker than it could be: Tandem was built without lp_solve.'));
}

/** Efficiency in the terms of POP, as bars. Null: nothing has run. */
function efficiencySection(run) {
  const {efficiency} = run.summary;
  if (!efficiency) return null;
  const rows = [
    [
      'parallel efficiency', efficiency.parallel, '#444',
      'of the time of all workers, what was spent in tasks: the product of the other three'
    ],
    ['load balance', efficiency.load_balance, '#0072b2', 'mean over greatest time in tasks of a worker'],
    ['serialisation', efficiency.serialisation, '#e69f00', 'what waits for tasks would still cost if messages took no time'],
    ['transfer', efficiency.transfer, '#7b3294', 'what the time of messages costs']
  ];
  return section(
      'Efficiency', 'parallel = load balance × serialisation × transfer',
      element(
          'div', {class: 'bars'},
          ...rows.map(
              ([name, value, colour, title]) => element(
                  'div', {title}, element('span', {}, name),
                  element('span', {class: 'bar'}, element('i', {style: `width:${100 * value}%;background:${colour}`})),
                  element('span', {class: 'number'}, percent(value, 1))))));
}

/** Tables of tasks at a time, messages, and broadcasts. */
function numbersSection(run) {
  const {communication, broadcasts, parallelism} = run.summary, lines = [];
  if (parallelism && parallelism.ready && run.kernels.length > 0)
    lines.push(`On average ${formatCount(parallelism.submitted.mean)} tasks were submitted and not ended, ${
        formatCount(parallelism.ready.mean)} of them ready.`);
  if (communication.messages > 0) {
    const took = communication.sent_to_arrived;
    lines.push(
        `${formatCount(communication.messages)} messages, ${formatBytes(communication.bytes)}` +
        (took ? `; half of them took ${formatTime(took.median_s)} or less` : '') +
        (communication.overlap === null ?
             '.' :
             `; ${percent(communication.overlap, 1)} of the time of workers while messages were under way went into kernels.`));
  }
  if (broadcasts.count > 0) {
    const {shared_data: shared, recipients} = broadcasts;
    lines.push(
        `${formatCount(broadcasts.count)} broadcasts` +
        (recipients ? ` to ${rangeOf(recipients)}` : '') +
        (shared.detection_rate === null ? '' : `; ${percent(shared.detection_rate, 1)} of what several ranks needed went by broadcast`) +
        (broadcasts.late > 0 ? `; ${formatCount(broadcasts.late)} of ${formatCount(broadcasts.arrivals)} arrivals late.` : '.'));
  }
  return element('div', {class: 'numbers'}, ...lines.map(line => element('p', {}, line)));
}

/** A row: a name, the seconds of both runs, and the excess of B's. */
function secondsRow(name, [a, b]) { return [name, formatTime(a), formatTime(b), difference(a, b)]; }
/** A difference, red where B is slower. */
function difference(a, b) {
  const sign = b > a ? '+' : '−';
  return element('span', {style: `color:${b > a ? '#b03a00' : '#00665a'}`}, a === b ? '' : sign + formatTime(Math.abs(b - a)));
}
function secondsTable(runs) {
  const perWorker = (run, key) => run.summary.seconds[key] / Math.max(run.workers.length, 1);
  const rows = runs[0].facts.spent.filter(key => runs.some(run => run.summary.seconds[key] > 0)).map(key => {
    return secondsRow(spentTexts[key], runs.map(run => perWorker(run, key)));
  });
  const table = tableOf(['', 'A', 'B', 'B − A'], [...rows, secondsRow('makespan', runs.map(run => run.summary.makespan_s))]);
  table.querySelector('tbody tr:last-child').className = 'sum';
  return table;
}
function boundsTable(runs) {
  const bounds = runs.map(run => run.summary.bounds), withMessages = bounds.map(one => one.critical_path_with_messages_s);
  const rows = [secondsRow('area bound', bounds.map(one => one.area_s)), secondsRow('critical path', bounds.map(one => one.critical_path_s))];
  if (runs.some(run => run.summary.ranks > 1) && withMessages.every(one => one !== undefined))
    rows.push(secondsRow('critical path with messages', withMessages));
  return tableOf(['', 'A', 'B', 'B − A'], rows);
}
function kernelsTable(runs) {
  const names = [...new Set(runs.flatMap(run => run.kernels.map(kernel => kernel.codelet)))];
  const none = {tasks: 0, total_s: 0, median_s: 0, outliers: 0};
  return tableOf(['kernel', 'tasks A', 'B', 'total A', 'B', 'B − A', 'median A', 'B', 'B / A', 'outliers A', 'B'], names.map(name => {
    const [a, b] = runs.map(run => run.kernels.find(kernel => kernel.codelet === name) || none);
    return [
      name || 'without a name', formatCount(a.tasks), formatCount(b.tasks), formatTime(a.total_s), formatTime(b.total_s),
      difference(a.total_s, b.total_s), formatTime(a.median_s), formatTime(b.median_s),
      a.median_s > 0 && b.median_s > 0 ? (b.median_s / a.median_s).toFixed(2) : '', formatCount(a.outliers), formatCount(b.outliers)
    ];
  }));
}

/** A stacked bar for each worker, or for each rank where there are many. */
function timesSection(run) {
  const {summary} = run;
  let rows = summary.workers.map(
      worker => ({name: run.workerName(worker), seconds: worker.seconds}));
  if (rows.length > 40) {
    const ranks = new Map();
    for (const worker of summary.workers) {
      const sum = ranks.get(worker.rank) || {};
      for (const [key, value] of Object.entries(worker.seconds)) sum[key] = (sum[key] || 0) + value;
      ranks.set(worker.rank, sum);
    }
    rows = [...ranks].map(([rank, seconds]) => ({name: 'rank ' + rank, seconds}));
  }
  const keys = run.facts.spent.filter(key => summary.seconds[key] > 0);
  const colour = key => key === 'executing' ? '#0072b2' : key === 'outside' || key === 'unknown' ? '#f7f7f7' : spentColours[key];
  const total = seconds => Object.values(seconds).reduce((sum, value) => sum + value, 0);
  const all = total(summary.seconds);
  if (rows.length === 0) return element('p', {}, 'No worker was recorded: events of the categories task and worker are needed (option trace).');
  return element(
      'div', {},
      element(
          'div', {class: 'legend'},
          ...keys.map(
              key => element(
                  'span', {}, element('i', {style: `background:${colour(key)}`}),
                  `${spentTexts[key]}: ${formatTime(summary.seconds[key])}, ${percent(summary.seconds[key], all)}`))),
      element(
          'div', {class: 'stacks'},
          ...rows.map(
              row => element(
                  'div', {}, element('span', {}, row.name),
                  element(
                      'span', {class: 'stack'},
                      ...keys.map(
                          key => element('i', {
                            style: `width:${100 * row.seconds[key] / Math.max(total(row.seconds), 1e-12)}%;background:${colour(key)}`,
                            title: `${spentTexts[key]}: ${formatTime(row.seconds[key])}`
                          })))))));
}

/** Quartiles of each kernel on a logarithmic scale. */
function kernelsSection(run) {
  const {kernels} = run;
  if (kernels.length === 0) return element('p', {}, 'No task has run, as far as was recorded.');
  const least = Math.min(...kernels.map(kernel => Math.max(kernel.min_s, 1e-9))),
        most = Math.max(...kernels.map(kernel => kernel.max_s), 2 * least);
  const x = seconds => 100 * Math.log(Math.max(seconds, least) / least) / Math.log(most / least);
  const span = (from, to, style) => element('i', {style: `left:${x(from)}%;width:${Math.max(x(to) - x(from), 0.4)}%;${style}`});
  // Where the scheduler looks ahead: durations of a kernel on a kind of worker, as multiples of the expectation.
  const isExpected = kernels.some(kernel => kernel.expectations.length > 0);
  const tookOf = (kernel, on) => {
    const seen = kernel.expectations.find(one => on ? one.kind === on : kernel.kinds.length === 0);
    return seen ? `${seen.median.toFixed(2)} (${seen.first_quartile.toFixed(2)} to ${seen.third_quartile.toFixed(2)})` : '';
  };
  return tableOf(
      [
        'kernel', 'tasks', 'total', 'median', 'least', 'greatest', 'rate', 'outliers', 'beyond the median', ...(isExpected ? ['took / expected'] : []),
        `quartiles, from ${formatTime(least)} to ${formatTime(most)}, logarithmic`
      ],
      // Where the run has several kinds of worker, a row for each below that of the kernel.
      kernels.flatMap((kernel, i) => [{kernel, i, on: ''}, ...(kernel.kinds || []).map(on => ({kernel: on, i, on: on.kind}))]).map(
          ({kernel, i, on}) =>
              [on ? `on ${on}` :
                    element('span', {class: 'name'}, element('i', {style: `background:${run.colourOf(i)}`}), kernel.codelet || 'without a name'),
               formatCount(kernel.tasks),
               formatTime(kernel.total_s),
               formatTime(kernel.median_s),
               formatTime(kernel.min_s),
               formatTime(kernel.max_s),
               kernel.flops > 0 ? formatRate(kernel.flops_per_second) : '',
               formatCount(kernel.outliers),
               kernel.outliers > 0 ? formatTime(kernel.outlier_excess_s) : '',
               ...(isExpected ? [tookOf(kernels[i], on)] : []),
               element(
                   'div', {class: 'box'}, span(kernel.min_s, kernel.max_s, 'height:1px;top:9px;background:#888'),
                   span(kernel.first_quartile_s, kernel.third_quartile_s, `height:14px;top:2px;background:${run.colourOf(i)}`),
                   span(kernel.median_s, kernel.median_s, 'height:18px;top:0;background:#000')),
  ]));
}

/** Joules of each kernel and kind of worker, of the power at rest, and of each counter; null: not measured. */
function energySection(run) {
  const {energy} = run.summary;
  if (!energy) return null;
  const joules = value => `${value < 1e-3 ? 0 : value.toPrecision(4)} J`, watts = power => `${power.watts.toFixed(2)} ± ${power.error.toFixed(2)} W`;
  const row = (name, on, value, power) => [name, on, joules(value), percent(value, energy.joules), watts(power), power.confidence.toFixed(2)];
  const kernels = tableOf(
      ['kernel', 'on', 'energy', 'share', 'power of one that runs', 'confidence'], [
        ...energy.kernels.map(kernel => row(kernel.codelet, kernel.kind, kernel.joules, kernel.power)),
        ...energy.kinds.map(kind => row('idle', kind.kind, kind.idle_joules, kind.idle_power))
      ]);
  const counters = energy.counters.map(counter => `rank ${counter.rank}, ${counter.name}: ${joules(counter.joules)}`).join('; ');
  return element('div', {}, kernels, element('p', {}, `${joules(energy.joules)} in all (${counters})`));
}

/** Of sorted values: quartiles as in the analysis, the greatest non-outlier, and the outliers above. */
function boxOf(sorted) {
  const last = sorted.length - 1, first = sorted[Math.floor(last / 4)], third = sorted[last - Math.floor(last / 4)];
  const inside = upperBound(sorted, third + 1.5 * (third - first));
  return {least: sorted[0], first, median: sorted[Math.floor(last / 2)], third, most: sorted[inside - 1], outliers: sorted.subarray(inside)};
}

/** Quartiles of one kernel on each worker, or on each rank where there are many, on a logarithmic scale. Computed when it is opened first. */
function durationsSection(run) {
  const byRank = run.workers.length > 64, names = [], rowOf = [];
  run.workers.forEach(worker => {
    const name = byRank ? 'rank ' + worker.rank : run.workerName(worker);
    if (names[names.length - 1] !== name) names.push(name);
    rowOf.push(names.length - 1);
  });
  const place = element('div', {class: 'durations'});
  const draw = kernel => {
    const durations = names.map(() => []), length = run.columns['task.duration'];
    run.lanes.forEach((tasks, lane) => {
      for (const task of tasks)
        if (run.kernelOf(task) === kernel) durations[rowOf[lane]].push(length[task]);
    });
    const boxes = durations.map(values => values.length > 0 ? boxOf(Float64Array.from(values).sort()) : null);
    const there = boxes.filter(box => box !== null);
    const least = Math.max(Math.min(...there.map(box => box.least)), 1);
    const most = Math.max(...there.map(box => box.outliers.length > 0 ? box.outliers[box.outliers.length - 1] : box.most), 2 * least);
    const x = value => 100 * Math.log(Math.max(value, least) / least) / Math.log(most / least);
    const span = (from, to, style) => element('i', {style: `left:${x(from)}%;width:${Math.max(x(to) - x(from), 0.4)}%;${style}`});
    const time = value => formatTime(run.seconds(value));
    // Outliers that would lie upon each other are one mark.
    const marks = box => [...new Set(Array.from(box.outliers, value => Math.round(4 * x(value)) / 4))].map(
        at => element('i', {style: `left:${at}%;width:2px;height:4px;top:7px;background:#222`}));
    place.replaceChildren(tableOf(
        ['', 'tasks', 'median', 'quartiles', 'outliers', `from ${time(least)} to ${time(most)}, logarithmic; marks: outliers`],
        names.flatMap((name, row) => boxes[row] === null ? [] : [[
          name, formatCount(durations[row].length), time(boxes[row].median), `${time(boxes[row].first)} to ${time(boxes[row].third)}`,
          formatCount(boxes[row].outliers.length),
          element(
              'div', {class: 'box'}, span(boxes[row].least, boxes[row].most, 'height:1px;top:9px;background:#888'),
              span(boxes[row].first, boxes[row].third, `height:14px;top:2px;background:${run.colourOf(kernel)}`),
              span(boxes[row].median, boxes[row].median, 'height:18px;top:0;background:#000'), ...marks(boxes[row]))
        ]])));
  };
  const choice = element(
      'select', {onchange: event => draw(Number(event.target.value))},
      ...run.kernels.map((kernel, i) => element('option', {value: i}, kernel.codelet || 'without a name')));
  const begin = () => place.childElementCount === 0 && draw(0);
  return element('details', {ontoggle: begin}, element('summary', {}, 'Show'), element('p', {}, 'Kernel: ', choice), place);
}

/** Bytes from rank to rank. Null without messages. */
function matrixSection(run) {
  const source = run.column('message.source'), destination = run.column('message.destination'), bytes = run.column('message.bytes');
  const took = run.column('message.arrived');
  const ranks = run.summary.ranks;
  if (source.length === 0 || ranks < 2) return null;
  const cells = new Map();
  let most = 0;
  for (let i = 0; i < source.length; ++i) {
    if (source[i] === destination[i]) continue;
    const key = source[i] * ranks + destination[i];
    const cell = cells.get(key) || {bytes: 0, count: 0, time: 0};
    cell.bytes += bytes[i];
    cell.count += 1;
    cell.time += took[i];
    cells.set(key, cell);
    most = Math.max(most, cell.bytes);
  }
  const numbers = [...Array(ranks).keys()];
  const shows = ranks <= 16;
  const cellOf = (from, to) => {
    const cell = cells.get(from * ranks + to);
    const share = cell ? cell.bytes / most : 0;
    const title = cell ? `rank ${from} to rank ${to}: ${formatCount(cell.count)} messages, ${formatBytes(cell.bytes)}, ${
                             formatTime(run.seconds(cell.time / cell.count))} each on average` :
                         '';
    return element(
        'td', {title, style: `background:${UsePanel.shade(share)};color:${share > 0.5 ? '#fff' : '#222'}`},
        shows && cell ? formatBytes(cell.bytes) : '');
  };
  return element(
      'table', {class: shows ? 'matrix' : 'matrix dense'},
      element(
          'thead', {}, element('tr', {}, element('th', {}, 'from \\ to rank'), ...numbers.map(rank => element('th', {class: 'count'}, shows ? rank : '')))),
      element(
          'tbody', {},
          ...numbers.map(
              from => element('tr', {}, element('th', {}, shows || from % 8 === 0 ? from : ''), ...numbers.map(to => cellOf(from, to))))));
}

/** Properties of a task, beside the pictures. */
class Inspector {
  constructor(run, place) {
    Object.assign(this, {run, place});
    this.show(-1);
  }
  show(task) {
    const {run} = this, {columns} = run;
    this.place.replaceChildren();
    if (task < 0) {
      this.place.append(element(
          'p', {class: 'hint'},
          'Click a task to see what it waited for. Drag moves, wheel zooms (after a click into a picture), shift and drag ',
          'shows a stretch. Keys: arrows move, + and - zoom, 0 shows all, n and p go along a worker, o outliers, m messages, c realised path, / searches. ',
          'docs/report-words.md of Tandem explains the words.'));
      return;
    }
    const worker = run.workers[columns['task.lane'][task] - 1];
    const start = columns['task.start'][task], end = run.end(task), submit = columns['task.submit'][task], waited = run.waited[task];
    const seconds = time => formatTime(run.seconds(time));
    const kernel = run.kernels[run.kernelOf(task)];
    const site = run.facts.sites[columns['task.site'][task]];
    const rows = [
      ['task', columns['task.id'][task]], ['kernel', kernel ? kernel.codelet : ''],
      ['ran on', worker ? `rank ${worker.rank}, worker ${worker.worker}${worker.core >= 0 ? ', core ' + worker.core : ''}` : 'no worker'],
      ['began', seconds(start)],
      ['took', seconds(end - start) + (kernel ? `; the median of its kernel is ${formatTime(kernel.median_s)}` : '')],
      ['submitted', `${seconds(start - submit)} before`], ['ready', waited >= 0 ? `${seconds(waited)} before` : 'not known'],
      ['priority', columns['task.priority'][task]], ['status', run.facts.statuses[columns['task.status'][task]]],
      ['source', site || 'not known']
    ];
    const flops = run.flopsOf(task), iteration = run.iterationOf(task);
    if (iteration >= 0) rows.push(['iteration', iteration]);
    if (flops > 0 && end > start) rows.push(['rate', formatRate(flops / run.seconds(end - start))]);
    if (run.tagOf(task)) rows.push(['tag', run.tagOf(task)]);
    if (run.column('task.parameters')[task]) rows.push(['parameters', run.facts.names[run.column('task.parameters')[task]]]);
    if (columns['task.stolen'][task]) rows.push(['stolen', `from the queue of worker ${columns['task.stolen'][task] - 1}`]);
    const accesses = run.accessesOf(task);
    if (accesses.length > 0)
      rows.push(['data', element('span', {}, ...accesses.map(access => element('div', {}, `${access.mode} ${access.data}${this.broughtBy(task, access)}`)))]);
    const waits = columns['task.duration'][task] < 0 ? [] : run.waitsOf(task);
    if (waits.length > 0)
      rows.push(['waited', element('span', {}, ...waits.map(wait => element(
          'div', {}, `${seconds(wait.time)} ${wait.text}`, wait.other >= 0 ? ' ' : '', wait.other >= 0 ? this.link(wait.other) : '')))]);
    this.place.append(
        element('h3', {}, run.nameOf(task), run.outlier[task] ? element('em', {}, 'outlier') : ''),
        element('dl', {}, ...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)])),
        // In the colours of the lines that LanesPanel draws to them.
        this.list('It waited for', LanesPanel.before, run.neighbours(task, false).reverse(), other => start - run.end(other), 'ended', 'before'),
        this.list('What waited for it', LanesPanel.after, run.neighbours(task, true), other => columns['task.start'][other] - end, 'began', 'after'));
  }
  showBroadcast(broadcast) { this.place.replaceChildren(...broadcastDetails(this.run, broadcast).filter(part => part !== null)); }
  /** A task, which a click shows. */
  link(task) {
    const {run} = this;
    return element(
        'a', {href: '#', onclick: event => (event.preventDefault(), this.onSelect(task))}, `${run.nameOf(task)} ${run.columns['task.id'][task]}`);
  }
  /** How the value of an access came: by a message, by a copy, or neither. */
  broughtBy(task, {message, copy}) {
    const {run} = this, rank = run.columns['task.rank'][task], time = units => formatTime(run.seconds(units));
    const told = [];
    if (message >= 0) told.push(`from rank ${run.column('message.source')[message]}, ${time(run.column('message.arrived')[message])} on its way`);
    if (copy >= 0)
      told.push(`copied from ${run.memoryName(rank, run.column('copy.from')[copy])} to ${run.memoryName(rank, run.column('copy.to')[copy])} in ${time(run.column('copy.duration')[copy])}`);
    return told.length > 0 ? ` (${told.join('; ')})` : '';
  }
  list(title, colour, found, distance, verb, side) {
    const {run} = this;
    if (found.length === 0) return element('p', {class: 'hint'}, title + ': nothing that was recorded.');
    const shown = found.slice(0, 12);
    const message = i => {
      const data = run.column('message.data')[i];
      return ` through ${data > 0 ? run.facts.data_names[data - 1] : 'a message'} from rank ${run.column('message.source')[i]} ` +
          `(${formatBytes(run.column('message.bytes')[i])}, ${formatTime(run.seconds(run.column('message.arrived')[i]))} on its way)`;
    };
    return element(
        'div', {}, element('h4', {style: `color:${colour}`}, `${title} (${found.length < 200 ? found.length : 'over 200'})`),
        element(
            'ul', {},
            ...shown.map(
                one => element(
                    'li', {}, this.link(one.task),
                    `, ${verb} ${formatTime(run.seconds(Math.max(distance(one.task), 0)))} ${side}` +
                        (one.message >= 0 ? message(one.message) : '')))));
  }
}
