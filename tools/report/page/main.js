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
  const input = element('input', {id: 'search', type: 'search', placeholder: 'search: kernel, task number, outliers', size: '30', oninput: () => {
    const found = search(run, input.value);
    results.replaceChildren(...found.slice(0, 20).map(task => element('a', {href: '#', onclick: event => (event.preventDefault(), timeline.goTo(task))},
      `${run.nameOf(task)} ${run.columns['task.id'][task]}`)), found.length > 20 ? element('span', {}, found.length >= 60 ? 'and more' : `and ${found.length - 20} more`) : '');
  }, onkeydown: event => {
    if (event.key === 'Enter') {
      const found = search(run, input.value);
      if (found.length > 0) timeline.goTo(found[0]);
    }
    if (event.key === 'Escape') input.blur();
  }});
  const box = (name, text) => element('label', {}, element('input', {type: 'checkbox', id: 'show-' + name, onchange: event => {
    timeline.state[name] = event.target.checked;
    timeline.request();
  }}), text);
  const button = (text, title, does) => element('button', {title, onclick: does}, text);
  return element('div', {class: 'toolbar'}, button('All', 'the whole run (0)', () => timeline.show(0, run.makespan)), button('+', 'zoom in (+)', () => timeline.zoom(0.5)),
    button('−', 'zoom out (-)', () => timeline.zoom(2)), button('◀', 'earlier', () => timeline.pan(-0.3)), button('▶', 'later', () => timeline.pan(0.3)),
    box('strong', 'outliers alone (o)'), box('messages', 'messages (m)'), box('path', 'realised path (c)'), input, results);
}

function section(title, hint, ...content) {
  return element('section', {}, element('h2', {}, title, hint ? element('small', {}, hint) : ''), ...content);
}

/** Of a program, without its folder. */
function nameOf(program) {
  return program ? program.split('/').pop() : 'A run';
}

async function begin() {
  const place = document.getElementById('report');
  try {
    const read = id => JSON.parse(document.getElementById(id).textContent);
    const summary = read('summary'), facts = read('facts');
    const run = new Run(summary, facts, columnsOf(await unpacked(bytesOf(document.getElementById('columns').textContent)), facts.columns));
    const workers = run.workers.length;
    document.title = `${nameOf(summary.program)}: Tandem report`;
    place.replaceChildren(element('header', {}, element('h1', {title: summary.program}, nameOf(summary.program)),
      element('p', {}, `${summary.ranks} ${summary.ranks === 1 ? 'rank' : 'ranks'}, ${workers} ${workers === 1 ? 'worker' : 'workers'}, ` +
        `${formatCount(summary.tasks)} tasks, makespan `, element('b', {}, formatTime(summary.makespan_s)),
        `, of the workers' time ${percent(summary.seconds.executing, summary.makespan_s * workers)} in tasks`)));
    place.append(element('div', {class: 'columns'}, section('What limits this run', 'seconds by which it would be shorter', verdictSection(run)),
      section('Bounds', 'no schedule with these durations is shorter', boundsSection(run))));
    place.append(section('Where the time of the workers went', '', timesSection(run)));
    const pictures = element('div', {class: 'pictures'}), details = element('aside', {});
    const inspector = new Inspector(run, details);
    place.append(element('section', {class: 'time'}, element('h2', {}, 'Over time'), element('div', {id: 'tools'}), element('div', {class: 'split'}, pictures, details)));
    const timeline = new Timeline(run, pictures, inspector);
    inspector.onSelect = task => timeline.goTo(task);
    document.getElementById('tools').replaceWith(toolbar(run, timeline));
    place.append(section('Kernels', 'an outlier takes longer than the third quartile and 1.5 times the distance between the quartiles', kernelsSection(run)));
    const matrix = matrixSection(run);
    if (matrix !== null) place.append(section('Messages', 'bytes from rank to rank', matrix));
    place.append(element('footer', {}, `Made by tandem ${summary.tandem} (${summary.commit}) from ${summary.folder}`));
    window.addEventListener('scroll', () => timeline.views.some(view => view.stale) && timeline.request(), {passive: true});
    window.tandem = {run, timeline};
    let first = 0;
    timeline.onFirst = () => {
      first = performance.now();
    };
    await timeline.fill();
    if (location.hash === '#measure') measure(timeline, first);
  } catch (error) {
    place.replaceChildren(element('p', {class: 'error'}, `This report cannot be shown: ${error.message}. It needs a browser with DecompressionStream: ` +
      'Chromium 80, Firefox 113, Safari 16.4, or later.'));
    document.documentElement.dataset.failed = error.stack;
  }
}

/** For the tests: draws while zooming in and moving, and says how long that took. */
function measure(timeline, first) {
  const pictures = 60, {makespan} = timeline.run, all = performance.now();
  const times = [];
  timeline.place.scrollIntoView();  // what is out of sight is not drawn
  for (let i = 0; i < pictures; ++i) {
    const length = makespan * Math.pow(0.5, 10 * (i % 30) / 30);
    const from = (makespan - length) * (i / pictures);
    timeline.from = from;
    timeline.to = from + length;
    const before = performance.now();
    timeline.draw();
    timeline.views[0].canvas.getContext('2d').getImageData(0, 0, 1, 1);  // waits until it is drawn
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  console.log(`tandem report: first picture ${first.toFixed(0)} ms, all ${all.toFixed(0)} ms, a picture ` +
    `${times[pictures / 2].toFixed(2)} ms, the slowest ${times[pictures - 1].toFixed(2)} ms`);
}

begin();
