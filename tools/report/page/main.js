// main.js: puts the page together.

function search(run, text) {
  const words = text.toLowerCase().trim();
  const found = [];
  if (words === '') return found;
  const outliers = words === 'outlier' || words === 'outliers';
  const number = /^\d+$/.test(words) ? Number(words) : -1;
  const matches = new Map();  // texts are few, tasks many
  const hits = name => {
    if (!matches.has(name)) matches.set(name, name.toLowerCase().includes(words));
    return matches.get(name);
  };
  for (let task = 0; task < run.taskCount && found.length < 60; ++task) {
    if (run.columns['task.lane'][task] === 0) continue;
    if (outliers ? run.outlier[task] : number >= 0 ? run.columns['task.id'][task] === number : hits(run.nameOf(task))) found.push(task);
  }
  return found;
}

function toolbar(run, timeline) {
  const results = element('div', {id: 'results'});
  const input = element('input', {
    id: 'search',
    type: 'search',
    placeholder: 'search: kernel, task number, outliers',
    size: '36',
    oninput: () => {
      const found = search(run, input.value);
      results.replaceChildren(
          ...found.slice(0, 20).map(
              task => element(
                  'a', {href: '#', onclick: event => (event.preventDefault(), timeline.goTo(task))},
                  `${run.nameOf(task)} ${run.columns['task.id'][task]}`)),
          found.length > 20 ? element('span', {}, found.length >= 60 ? 'and more' : `and ${found.length - 20} more`) : '');
    },
    onkeydown: event => {
      if (event.key === 'Enter') {
        const found = search(run, input.value);
        if (found.length > 0) timeline.goTo(found[0]);
      }
      if (event.key === 'Escape') input.blur();
    }
  });
  const box = (name, text, title) => element(
      'label', {title}, element('input', {type: 'checkbox', id: 'show-' + name, onchange: event => timeline.set(name, event.target.checked)}),
      text);
  const button = (text, title, does) => element('button', {title, onclick: does}, text);
  return element(
      'div', {class: 'toolbar'}, button('All', 'the whole run (0)', () => timeline.show(0, timeline.limit)),
      button('+', 'zoom in (+)', () => timeline.zoom(0.5)), button('−', 'zoom out (-)', () => timeline.zoom(2)),
      button('◀', 'earlier', () => timeline.pan(-0.3)), button('▶', 'later', () => timeline.pan(0.3)), box('strong', 'outliers alone (o)', 'other tasks become pale'),
      box('messages', 'messages (m)', 'purple lines: from a rank, when a message is posted, to another, when it has arrived'),
      box('path', 'realised path (c)', 'what the last task waited for, back to the start: black in a task, red where it waits'), input, results);
}

function section(title, hint, ...content) {
  return element('section', {}, element('h2', {}, title, hint ? element('small', {}, hint) : ''), ...content);
}

/** The name of a program, without its folder. */
function nameOf(program) { return program ? program.split('/').pop() : 'A run'; }

/** A program and its arguments as for a shell: "app -n 3 'two words'". */
function commandOf({program, arguments: words}) {
  const quoted = word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  return [nameOf(program), ...(words || []).map(quoted)].join(' ');
}
/** A command; one that is too long for a line ends in dots. */
function shortened(text) { return text.length > 100 ? text.slice(0, 99) + '…' : text; }

/** The size of a run: "4 ranks, 8 workers, 13,551 tasks". */
function sizeOf(run) {
  const count = (number, name) => `${formatCount(number)} ${name}${number === 1 ? '' : 's'}`;
  return [count(run.summary.ranks, 'rank'), count(run.workers.length, 'worker'), count(run.summary.tasks, 'task')].join(', ');
}

/** The runs of the page: one, or two to compare. */
async function readRuns() {
  const runs = [];
  for (let i = 0; document.getElementById('summary-' + i); ++i) {
    const text = name => document.getElementById(`${name}-${i}`).textContent;
    const facts = JSON.parse(text('facts'));
    runs.push(new Run(JSON.parse(text('summary')), facts, columnsOf(await unpacked(bytesOf(text('columns'))), facts.columns)));
  }
  return runs;
}

/** Adds a run to the page. Returns its timeline. */
function showRun(run, place) {
  const {summary} = run;
  document.title = `${shortened(commandOf(summary))}: Tandem report`;
  place.replaceChildren(element(
      'header', {}, element('h1', {title: `${summary.program} ${(summary.arguments || []).join(' ')}`}, shortened(commandOf(summary))),
      element(
          'p', {}, `${sizeOf(run)}, makespan `, element('b', {}, formatTime(summary.makespan_s)),
          run.kernels.length > 0 ?
              `; ${percent(summary.seconds.executing, summary.makespan_s * run.workers.length)} of the workers' time in tasks` :
              '')));
  place.append(element(
      'div', {class: 'columns'}, section('What limits this run', 'seconds by which it would be shorter', verdictSection(run)),
      element(
          'div', {}, section('Bounds', 'no schedule with these durations is shorter', boundsSection(run)), efficiencySection(run),
          numbersSection(run))));
  place.append(section('Where the time of the workers went', '', timesSection(run)));
  const pictures = element('div', {class: 'pictures'}), details = element('aside', {});
  const inspector = new Inspector(run, details);
  place.append(element(
      'section', {class: 'time'}, element('h2', {}, 'Over time'), element('div', {id: 'tools'}),
      element('div', {class: 'split'}, pictures, details)));
  const timeline = new Timeline(run, pictures, inspector);
  inspector.onSelect = task => timeline.goTo(task);
  document.getElementById('tools').replaceWith(toolbar(run, timeline));
  place.append(section(
      'Kernels', 'an outlier takes longer than the third quartile plus 1.5 times the distance between the quartiles', kernelsSection(run)));
  if (run.kernels.length > 0)
    place.append(section('Durations by worker', 'tasks of one kernel: where they take longer on some workers, their cores or memory differ', durationsSection(run)));
  const energy = energySection(run);
  if (energy !== null) place.append(section('Energy', 'what kernels draw beyond what is drawn when nothing runs, by least squares from the counters', energy));
  const matrix = matrixSection(run);
  if (matrix !== null) place.append(section('Messages', 'bytes from rank to rank', matrix));
  return [timeline];
}

/** Compares two runs: where the seconds went, and both over the same time. */
function compareRuns(runs, place) {
  document.title = `${runs.map(run => shortened(commandOf(run.summary))).join(' and ')}: Tandem comparison`;
  Run.shareColours(runs);
  const letters = ['A', 'B'];
  place.replaceChildren(element(
      'header', {}, element('h1', {}, 'Two runs'),
      ...runs.map(
          (run, i) => element(
              'p', {}, element('b', {}, letters[i] + ': '),
              `${shortened(commandOf(run.summary))} (${run.summary.folder}), ${sizeOf(run)}, makespan `,
              element('b', {}, formatTime(run.summary.makespan_s))))));
  place.append(section('Where the seconds went', 'of each worker on average; they add up to the makespan', secondsTable(runs)));
  place.append(section('Bounds', 'no schedule with these durations is shorter', boundsTable(runs)));
  place.append(section('Kernels', '', kernelsTable(runs)));
  place.append(
      element('div', {class: 'columns even'}, ...runs.map((run, i) => section(`What limits ${letters[i]}`, '', verdictSection(run)))));
  const limit = Math.max(...runs.map(run => run.summary.makespan_s)) * 1e9;
  const timelines = runs.map((run, i) => {
    const pictures = element('div', {class: 'pictures'});
    const heading = element('h2', {}, `${letters[i]} over time`, element('small', {}, 'both show the same seconds'));
    place.append(element('section', {class: 'time'}, heading, i === 0 ? element('div', {id: 'tools'}) : '', pictures));
    const panels = (of, state) => firstOf(panelsOf(of, state), of.summary.ranks > 1 ? 6 : 4);
    return new Timeline(run, pictures, {show() {}, showBroadcast() {}}, panels, limit / run.facts.unit_ns);
  });
  timelines[0].followers = [timelines[1]];
  timelines[1].followers = [timelines[0]];
  document.getElementById('tools').replaceWith(toolbar(runs[0], timelines[0]));
  return timelines;
}

function* firstOf(some, count) {
  for (const one of some) {
    if (count-- === 0) return;
    yield one;
  }
}

async function begin() {
  const place = document.getElementById('report');
  try {
    const runs = await readRuns();
    const timelines = runs.length === 1 ? showRun(runs[0], place) : compareRuns(runs, place);
    const {summary} = runs[0];
    place.append(element(
        'footer', {}, `Made by tandem ${summary.tandem} (${summary.commit}) from ${runs.map(run => run.summary.folder).join(' and ')}`));
    window.addEventListener('scroll', () => timelines.forEach(one => one.views.some(view => view.stale) && one.request()), {passive: true});
    window.tandem = {run: runs[0], timeline: timelines[0]};
    timelines[0].listenToKeys();
    let first = 0;
    timelines[0].onFirst = () => {
      first = performance.now();
    };
    for (const timeline of timelines) await timeline.fill();
    if (location.hash === '#measure') {
      const seen = timelines.find(timeline => timeline.views.length > 0);
      seen ? measure(seen, first) : console.log('tandem report: nothing over time');
    }
  } catch (error) {
    place.replaceChildren(element(
        'p', {class: 'error'},
        `This report cannot be shown: ${error.message}. It needs a browser with DecompressionStream: ` +
            'Chromium 80, Firefox 113, Safari 16.4, or later.'));
    console.error(`cannot be shown: ${error.stack}`);
  }
}

/** For the tests: draws while zooming in and moving, and returns the times; also of each panel, since not all are in sight. */
function measure(timeline, first) {
  const pictures = 60, {makespan} = timeline.run, all = performance.now();
  timeline.place.scrollIntoView();  // what is out of sight is not drawn
  const timesOf = (canvas, draw) => {
    const times = [];
    canvas.getContext('2d').getImageData(0, 0, 1, 1);  // the first time it is moved to where it can be read
    for (let i = 0; i < pictures; ++i) {
      const length = makespan * Math.pow(0.5, 10 * (i % 30) / 30);
      const from = (makespan - length) * (i / pictures);
      timeline.from = from;
      timeline.to = from + length;
      const before = performance.now();
      draw();
      canvas.getContext('2d').getImageData(0, 0, 1, 1);  // waits until it is drawn
      times.push(performance.now() - before);
    }
    return times.sort((a, b) => a - b);
  };
  const times = timesOf(timeline.views[0].canvas, () => timeline.draw());
  const ratio = window.devicePixelRatio || 1;
  const panels = timeline.views.map(view => {
    const {canvas, panel} = view, width = canvas.width / ratio, height = canvas.height / ratio;
    const own = timesOf(canvas, () => timeline.drawView(view, canvas.getContext('2d'), ratio, width, height));
    return `${panel.title} ${own[pictures / 2].toFixed(2)} (${own[pictures - 1].toFixed(2)})`;
  });
  console.log(
      `tandem report: first picture ${first.toFixed(0)} ms, all ${all.toFixed(0)} ms, a picture ` +
      `${times[pictures / 2].toFixed(2)} ms, the slowest ${times[pictures - 1].toFixed(2)} ms; of each panel alone, and its slowest: ` +
      panels.join(', ') + `; ${touch(timeline)}`);
}

/** For the tests: points at and clicks many places of each panel; an error would end the page. Describes the last broadcast and some tasks. */
function touch(timeline) {
  timeline.show(0, timeline.limit);
  let told = 0;
  for (const view of timeline.views) {
    const box = timeline.boxOf(view, null), {panel} = view;
    for (let i = 0; i < 400; ++i) {
      const time = timeline.limit * (i % 40 + 0.5) / 40, y = panel.height * (Math.floor(i / 40) + 0.5) / 10;
      if (panel.describe(time, box, y) !== '') ++told;
      if (panel.click) panel.click(timeline, time, box, y);
    }
    if (panel.leave) panel.leave();
  }
  for (const part of document.querySelectorAll('details')) part.dispatchEvent(new Event('toggle'));
  const boxes = document.querySelectorAll('.durations .box').length;
  const last = timeline.run.column('broadcast.root').length - 1, details = document.querySelector('aside');
  let tasks = '';
  if (details) {
    // The last task of each worker, and the last task that read a datum from a message.
    const shown = timeline.run.lanes.filter(lane => lane.length > 0).map(lane => lane[lane.length - 1]);
    const received = timeline.run.column('access.message').findLastIndex(message => message > 0);
    if (received >= 0) shown.push(timeline.run.column('access.task')[received]);
    for (const task of shown) {
      timeline.goTo(task);
      tasks += `; task: ${details.textContent}`;
    }
  }
  // Each picture that can be saved has a head with pixels that are not white.
  let heads = 0;
  for (const {panel} of timeline.views) {
    const picture = timeline.picture(panel), high = picture.height - Timeline.fine * Timeline.heightOf(panel);
    if (picture.getContext('2d').getImageData(0, 0, picture.width, high).data.some(value => value < 255)) ++heads;
  }
  timeline.show(0, timeline.limit);
  if (last >= 0) timeline.selectBroadcast(last);
  timeline.draw();
  const distribution = document.querySelector('.distribution');
  return `${told} places tell something; ${boxes} boxes; ${heads} of ${timeline.views.length} pictures have a title` + (distribution ? `; distribution: ${distribution.textContent}` : '') + (last >= 0 && details ? `; broadcast: ${details.textContent}` : '') + tasks;
}

begin();
