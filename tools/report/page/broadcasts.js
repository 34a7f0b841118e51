// broadcasts.js: each broadcast as a tree in time: a line from the sender, at the start of sending, to each arrival.

/** The edges of all broadcasts: from a parent, at `start`, to the recipient of a message, at `end`. */
class BroadcastEdges {
  constructor(run) {
    this.run = run;
    this.message = run.column('edge.message');
    this.parent = run.column('edge.parent');
    this.late = run.column('edge.late');
    this.start = run.column('edge.start');
    this.end = run.column('edge.end');
  }
  get count() { return this.message.length; }
  child(edge) { return this.run.column('message.destination')[this.message[edge]]; }
  broadcast(edge) { return this.run.column('message.broadcast')[this.message[edge]] - 1; }
  /** Edges of a broadcast, the first arrival first. */
  of(broadcast) {
    const found = [];
    for (let edge = 0; edge < this.count; ++edge)
      if (this.broadcast(edge) === broadcast) found.push(edge);
    return found.sort((a, b) => this.end[a] - this.end[b]);
  }
}

class BroadcastsPanel {
  constructor(run, state) {
    this.run = run;
    this.state = state;  // {broadcast}: the selected one
    this.title = 'Broadcasts';
    this.hint = 'from each rank that sends one, or forwards it, to the arrival; click one to see its recipients';
    this.edges = run.broadcastEdges;
    const roots = run.column('broadcast.root');
    this.ranks = [...new Set([...run.workers.map(worker => worker.rank), ...roots])].sort((a, b) => a - b);
    this.rows = new Map(this.ranks.map((rank, row) => [rank, row]));
    this.rowHeight = Math.min(Math.max(Math.floor(320 / this.ranks.length), 4), 18);
    this.height = Math.max(this.rowHeight * this.ranks.length, 36);
    this.hovered = -1;
  }
  legend() {
    return [
      {name: 'sent or forwarded, and arrived', colour: BroadcastsPanel.colour}, {name: 'late arrival', colour: BroadcastsPanel.late},
      {name: 'begins at its root; bold: pointed at, or selected', colour: BroadcastsPanel.strong}, {name: 'its bound (dashed)', colour: BroadcastsPanel.bound}
    ];
  }
  static get colour() { return '#5b7fa3'; }
  static get late() { return '#d00000'; }
  static get strong() { return '#000000'; }
  static get bound() { return '#009e73'; }
  y(box, rank) { return box.y + ((this.rows.get(rank) || 0) + 0.5) * this.rowHeight; }

  /** The edges in a stretch of time, late ones and long ones first, at most `most`; more would cover the others. */
  shown(box, most) {
    const {start, end, late, count} = this.edges;
    const found = [];
    for (let edge = 0; edge < count; ++edge)
      if (start[edge] < box.to && end[edge] > box.from) found.push(edge);
    this.hidden = Math.max(found.length - most, 0);
    if (this.hidden === 0) return found;
    return found.sort((a, b) => late[b] - late[a] || end[b] - start[b] - (end[a] - start[a])).slice(0, most);
  }

  draw(box) {
    const {g} = box;
    this.drawNames(box);
    g.save();
    g.beginPath();
    g.rect(box.x, box.y - 2, box.width, box.height + 4);
    g.clip();
    const shown = this.shown(box, 3000);
    this.drawEdges(box, shown.filter(edge => !this.edges.late[edge]), BroadcastsPanel.colour, 1, shown.length > 400 ? 0.4 : 0.75);
    this.drawEdges(box, shown.filter(edge => this.edges.late[edge]), BroadcastsPanel.late, 1.5, 0.9);
    const roots = new Set(shown.map(edge => this.edges.broadcast(edge)));
    g.fillStyle = '#222';
    for (const broadcast of roots) this.drawRoot(box, broadcast, 2);
    for (const broadcast of new Set([this.state.broadcast, this.hovered]))
      if (broadcast >= 0) this.drawOne(box, broadcast);
    if (this.hidden > 0) {
      g.fillStyle = '#555';
      g.font = '11px sans-serif';
      g.textAlign = 'right';
      g.textBaseline = 'middle';
      g.fillText(`${formatCount(this.hidden)} shorter ones are not drawn: zoom in`, box.x + box.width - 4, box.y + 8);
    }
    g.restore();
  }
  drawNames(box) {
    const {g} = box, each = Math.max(Math.ceil(11 / this.rowHeight), 1);
    g.font = '11px sans-serif';
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    this.ranks.forEach((rank, row) => {
      const y = this.y(box, rank);
      g.fillStyle = '#eee';
      g.fillRect(box.x, Math.round(y), box.width, 1);
      g.fillStyle = '#555';
      if (row % each === 0) g.fillText('rank ' + rank, box.x - 6, y);
    });
  }
  drawEdges(box, edges, colour, width, opacity) {
    const {g} = box, {start, end, parent} = this.edges;
    g.strokeStyle = g.fillStyle = colour;
    g.lineWidth = width;
    g.globalAlpha = opacity;
    g.beginPath();
    for (const edge of edges) {
      g.moveTo(box.at(start[edge]), this.y(box, parent[edge]));
      g.lineTo(box.at(end[edge]), this.y(box, this.edges.child(edge)));
    }
    g.stroke();
    g.globalAlpha = 1;
    for (const edge of edges)
      g.fillRect(box.at(end[edge]) - 1 - width / 2, this.y(box, this.edges.child(edge)) - 1 - width / 2, 2 + width, 2 + width);
  }
  drawRoot(box, broadcast, size) {
    const x = box.at(this.run.column('broadcast.posted')[broadcast]), y = this.y(box, this.run.column('broadcast.root')[broadcast]);
    box.g.fillRect(x - size, y - size, 2 * size, 2 * size);
  }
  /** Draws the hovered or selected tree, and the length of the bound. */
  drawOne(box, broadcast) {
    const {g} = box, {run} = this, edges = this.edges.of(broadcast);
    this.drawEdges(box, edges.filter(edge => !this.edges.late[edge]), BroadcastsPanel.strong, 2, 1);
    this.drawEdges(box, edges.filter(edge => this.edges.late[edge]), BroadcastsPanel.late, 2.5, 1);
    g.fillStyle = '#000';
    this.drawRoot(box, broadcast, 3.5);
    const posted = run.column('broadcast.posted')[broadcast], bound = run.column('broadcast.bound')[broadcast];
    const rows = edges.map(edge => this.y(box, this.edges.child(edge))).concat(this.y(box, run.column('broadcast.root')[broadcast]));
    g.strokeStyle = BroadcastsPanel.bound;
    g.lineWidth = 1.5;
    g.setLineDash([4, 3]);
    g.beginPath();
    g.moveTo(box.at(posted + bound), Math.min(...rows) - 4);
    g.lineTo(box.at(posted + bound), Math.max(...rows) + 4);
    g.stroke();
    g.setLineDash([]);
  }

  /** The broadcast with a line within some pixels of a place; -1: none. */
  at(box, time, y) {
    const {start, end, parent, count} = this.edges, px = box.at(time) - box.x, py = y;
    let best = -1, least = 8;
    for (let edge = 0; edge < count; ++edge) {
      if (start[edge] >= box.to || end[edge] <= box.from) continue;
      const ax = box.at(start[edge]) - box.x, bx = box.at(end[edge]) - box.x;
      const ay = this.y(box, parent[edge]) - box.y, by = this.y(box, this.edges.child(edge)) - box.y;
      const length = (bx - ax) * (bx - ax) + (by - ay) * (by - ay);
      const part = length > 0 ? Math.min(Math.max(((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / length, 0), 1) : 0;
      const distance = Math.hypot(ax + part * (bx - ax) - px, ay + part * (by - ay) - py);
      if (distance < least) {
        least = distance;
        best = this.edges.broadcast(edge);
      }
    }
    return best;
  }
  describe(time, box, y) {
    this.hovered = this.at(box, time, y);
    return this.hovered < 0 ? '' : broadcastText(this.run, this.hovered);
  }
  click(timeline, time, box, y) { timeline.selectBroadcast(this.at(box, time, y)); }
  leave() { this.hovered = -1; }
}

/** Data and route of a broadcast: "2 MiB from rank 0 to 3 ranks by binary". */
function broadcastText(run, broadcast) {
  const column = name => run.column('broadcast.' + name)[broadcast];
  const edges = run.broadcastEdges.of(broadcast), last = edges[edges.length - 1],
        late = edges.filter(edge => run.broadcastEdges.late[edge]).length;
  const took = last === undefined ? 0 : run.broadcastEdges.end[last] - column('posted'), data = column('data');
  return `${data > 0 ? run.facts.data_names[data - 1] + ', ' : ''}${formatBytes(column('bytes'))} from rank ${column('root')} to ` +
      `${formatCount(recipientsOf(run, broadcast))} ranks` + (column('tree') > 0 ? ` by ${run.facts.trees[column('tree') - 1]}` : '') +
      `, last arrival after ${formatTime(run.seconds(took))}` +
      (column('bound') > 0 ? `, ${(took / column('bound')).toFixed(1)} times the bound` : '') + (late > 0 ? `, ${late} late` : '');
}
/** The number of recipients; some may have joined after the posting. */
function recipientsOf(run, broadcast) {
  const edges = run.broadcastEdges;
  return Math.max(run.column('broadcast.recipients')[broadcast], new Set(edges.of(broadcast).map(edge => edges.child(edge))).size);
}

/** The inspector's text about a broadcast. */
function broadcastDetails(run, broadcast) {
  const column = name => run.column('broadcast.' + name)[broadcast], edges = run.broadcastEdges, own = edges.of(broadcast);
  const since = time => formatTime(run.seconds(time - column('posted')));
  const data = column('data'), segment = column('segment'), bound = column('bound'),
        last = own.length > 0 ? edges.end[own[own.length - 1]] : -1;
  const rows = [
    ['root', 'rank ' + column('root')], ['size', formatBytes(column('bytes'))], ['recipients', formatCount(recipientsOf(run, broadcast))],
    [
      'tree',
      column('tree') > 0 ? run.facts.trees[column('tree') - 1] + (segment > 0 ? `, segments of ${formatBytes(segment)}` : ', sent whole') :
                                                                                'not recorded'
    ],
    ['posted', formatTime(run.seconds(column('posted')))],
    ['routed', column('routed') >= 0 ? since(column('posted') + column('routed')) + ' later' : 'not known']
  ];
  if (last >= 0) rows.push(['arrivals', `after ${since(edges.end[own[0]])} to ${since(last)}`]);
  if (bound > 0)
    rows.push([
      'bound',
      `${formatTime(run.seconds(bound))}: no message of this run was faster` +
          (last >= 0 ? `; the last arrival took ${((last - column('posted')) / bound).toFixed(1)} times as long` : '')
    ]);
  const arrival = edge => `from rank ${edges.parent[edge]}: begun after ${since(edges.start[edge])}, there after ${since(edges.end[edge])}`;
  return [
    element('h3', {}, `Broadcast${data > 0 ? ' of ' + run.facts.data_names[data - 1] : ''}`),
    element('dl', {}, ...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)])),
    own.length === 0 ? element('p', {class: 'hint'}, 'No arrival was recorded.') : element('h4', {}, `Arrivals (${own.length})`),
    element(
        'ul', {},
        ...own.slice(0, 64).map(
            edge => element('li', {}, `rank ${edges.child(edge)} `, arrival(edge), edges.late[edge] ? element('em', {}, 'late') : ''))),
    own.length > 64 ? element('p', {class: 'hint'}, `and ${own.length - 64} more`) : null
  ];
}
