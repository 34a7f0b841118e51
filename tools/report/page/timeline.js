// timeline.js: the panels below each other, which show the same stretch of time; mouse, touch and keyboard.

class Timeline {
  /** `panels`: creates them one after the other from its state. `limit`: its end, in units of the run. */
  constructor(run, place, inspector, panels = panelsOf, limit = run.makespan) {
    this.run = run;
    this.panels = panels;
    this.limit = limit;
    this.followers = [];  // other timelines that show the same seconds
    this.state = {selected: -1, broadcast: -1, strong: false, messages: false, path: false};
    this.from = 0;
    this.to = limit;
    this.left = 96;
    this.right = 14;
    this.inspector = inspector;
    this.place = place;
    this.views = [];
    this.pending = false;
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** Makes the panels, one at a time, so that the first can be seen while the others are made. */
  async fill() {
    for (const panel of this.panels(this.run, this.state)) {
      this.views.push(this.addPanel(panel));
      this.draw();
      if (this.views.length === 1 && this.onFirst) this.onFirst();
      await new Promise(resolve => setTimeout(resolve));
    }
    if (this.views.length === 0) this.place.append(element('p', {class: 'hint'}, 'Nothing over time was recorded.'));
  }

  addPanel(panel) {
    const canvas = element('canvas', {tabindex: '-1'});
    const legend = element(
        'span', {class: 'legend'},
        ...panel.legend().map(one => element('span', {}, element('i', {style: `background:${one.colour}`}), one.name)));
    const told = element('span', {class: 'told'});
    const save = element('button', {class: 'save', title: 'save this picture', onclick: () => this.save(panel)}, 'PNG');
    this.place.append(element(
        'section', {class: 'panel'}, element('h3', {}, panel.title, element('small', {}, panel.hint || ''), save), legend, canvas, told));
    const view = {panel, canvas, told};
    this.listen(view);
    return view;
  }

  listen(view) {
    const {canvas} = view;
    canvas.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) {
        if (!this.focused) return;  // the page scrolls, until someone has clicked into a picture
      }
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) return this.pan((event.deltaX || event.deltaY) / this.width());
      this.zoom(Math.pow(1.0016, event.deltaY), this.timeAt(view, event));
    }, {passive: false});
    canvas.addEventListener('pointerdown', event => {
      this.focused = true;
      canvas.setPointerCapture(event.pointerId);
      this.drag = {x: event.clientX, from: this.from, to: this.to, moved: false, select: event.shiftKey, start: this.timeAt(view, event)};
    });
    canvas.addEventListener('pointermove', event => {
      this.hover = this.timeAt(view, event);
      if (this.drag && Math.abs(event.clientX - this.drag.x) > 3) this.drag.moved = true;
      if (this.drag && this.drag.moved && !this.drag.select) {
        const shift = (event.clientX - this.drag.x) / this.width() * (this.drag.to - this.drag.from);
        this.show(this.drag.from - shift, this.drag.to - shift);
      }
      this.tell(view, event);
      this.request();
    });
    canvas.addEventListener('pointerup', event => {
      const drag = this.drag;
      this.drag = null;
      if (!drag) return;
      if (drag.moved && drag.select) {
        const other = this.timeAt(view, event);
        return this.show(Math.min(drag.start, other), Math.max(drag.start, other));
      }
      if (!drag.moved && view.panel.click)
        view.panel.click(this, this.timeAt(view, event), this.boxOf(view, null), event.offsetY - Timeline.top);
    });
    canvas.addEventListener('pointerleave', () => {
      this.hover = undefined;
      view.told.textContent = '';
      if (view.panel.leave) view.panel.leave();
      this.request();
    });
    canvas.addEventListener('dblclick', event => this.zoom(0.25, this.timeAt(view, event)));
  }

  static get titled() { return 22; }  // height of the title of a saved picture
  static get top() { return 16; }  // height of the time axis's numbers above each canvas
  static get fine() { return 3; }  // pixels of a saved picture for one on the screen: enough for print
  /** The height of a panel's canvas. */
  static heightOf(panel) { return panel.height + Timeline.top + 4; }
  width() { return Math.max(this.place.clientWidth - this.left - this.right, 50); }
  perPixel() { return (this.to - this.from) / this.width(); }
  timeAt(view, event) { return this.from + (event.offsetX - this.left) * this.perPixel(); }

  show(from, to) {
    const least = Math.min(20 / this.run.facts.unit_ns, this.limit);
    const length = Math.min(Math.max(to - from, least), this.limit);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - length / 2, 0), this.limit - length);
    this.to = this.from + length;
    this.request();
    for (const other of this.followers) {
      const scale = this.run.facts.unit_ns / other.run.facts.unit_ns;
      other.from = this.from * scale;
      other.to = this.to * scale;
      other.request();
    }
  }
  zoom(factor, around = (this.from + this.to) / 2) {
    const length = (this.to - this.from) * factor;
    const part = (around - this.from) / (this.to - this.from);
    this.show(around - length * part, around + length * (1 - part));
  }
  pan(part) {
    const shift = (this.to - this.from) * part;
    this.show(this.from + shift, this.to + shift);
  }
  select(task) {
    this.state.selected = task;
    this.state.broadcast = -1;
    this.inspector.show(task);
    this.request();
  }
  selectBroadcast(broadcast) {
    this.select(-1);
    this.state.broadcast = broadcast;
    if (broadcast >= 0) this.inspector.showBroadcast(broadcast);
  }
  /** Shows a task in the middle, and selects it. */
  goTo(task) {
    const start = this.run.columns['task.start'][task], end = this.run.end(task);
    const length = Math.max((end - start) * 12, 1);
    if (start < this.from || end > this.to || end - start < 4 * this.perPixel())
      this.show((start + end - length) / 2, (start + end + length) / 2);
    this.select(task);
  }
  /** The task before or after the selected one, on its worker. */
  step(by) {
    const task = this.state.selected;
    if (task < 0) return;
    const lane = this.run.columns['task.lane'][task] - 1;
    const place = this.run.lanes[lane].indexOf(task) + by;
    if (place >= 0 && place < this.run.lanes[lane].length) this.goTo(this.run.lanes[lane][place]);
  }
  listenToKeys() { document.addEventListener('keydown', event => this.key(event)); }
  key(event) {
    if (event.target.tagName === 'INPUT' || event.ctrlKey || event.metaKey || event.altKey) return;
    const does = {
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      '+': () => this.zoom(0.5),
      '=': () => this.zoom(0.5),
      '-': () => this.zoom(2),
      0: () => this.show(0, this.limit),
      n: () => this.step(1),
      p: () => this.step(-1),
      o: () => this.toggle('strong'),
      m: () => this.toggle('messages'),
      c: () => this.toggle('path'),
      Escape: () => this.select(-1),
      '/': () => document.getElementById('search').focus(),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }
  toggle(name) {
    this.set(name, !this.state[name]);
    const box = document.getElementById('show-' + name);
    if (box) box.checked = this.state[name];
  }
  set(name, value) {
    for (const one of [this, ...this.followers]) {
      one.state[name] = value;
      one.request();
    }
  }

  tell(view, event) {
    const box = this.boxOf(view, null);
    const time = this.timeAt(view, event);
    view.told.textContent = `${formatTime(this.run.seconds(time))}: ${view.panel.describe(time, box, event.offsetY - Timeline.top)}`;
  }
  boxOf(view, g) { return new Box(g, this.left, Timeline.top, this.width(), view.panel.height, this.from, this.to); }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }
  draw() {
    const ratio = window.devicePixelRatio || 1;
    for (const view of this.views) {
      const width = this.place.clientWidth, height = Timeline.heightOf(view.panel);
      const {canvas} = view;
      const bounds = canvas.getBoundingClientRect();
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.width = width + 'px';
        canvas.style.height = height + 'px';
      } else if (bounds.bottom < -50 || bounds.top > window.innerHeight + 50) {
        view.stale = true;  // out of sight: drawn when it is scrolled to
        continue;
      }
      view.stale = false;
      this.drawView(view, canvas.getContext('2d'), ratio, width, height);
    }
  }
  drawView(view, g, ratio, width, height) {
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = '#fff';
    g.fillRect(0, 0, width, height);
    const box = this.boxOf(view, g);
    this.drawTimes(box);
    view.panel.draw(box);
    if (this.hover !== undefined) {
      g.fillStyle = 'rgba(0,0,0,.4)';
      g.fillRect(Math.round(box.at(this.hover)), box.y, 1, box.height);
    }
  }
  drawTimes(box) {
    const {g} = box, {run} = this;
    const range = run.seconds(box.to - box.from), begin = run.seconds(box.from);
    const step = niceStep(range, Math.max(box.width / 110, 2));
    g.font = '10px sans-serif';
    g.textAlign = 'center';
    g.textBaseline = 'alphabetic';
    for (let at = Math.ceil(begin / step) * step; at <= begin + range * 1.000001; at += step) {
      const x = box.x + (at - begin) / range * box.width;
      g.fillStyle = '#e6e6e6';
      g.fillRect(Math.round(x), box.y, 1, box.height);
      g.fillStyle = '#777';
      g.fillText(Timeline.tick(at, step), Math.min(x, box.x + box.width - 14), box.y - 4);
    }
  }
  static tick(seconds, step) {
    const [unit, name] = step >= 0.1 ? [1, 's'] : step >= 1e-4 ? [1e-3, 'ms'] : step >= 1e-7 ? [1e-6, 'µs'] : [1e-9, 'ns'];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    return (seconds / unit).toFixed(digits) + ' ' + name;
  }

  save(panel) {
    const name = panel.title.toLowerCase().replaceAll(' ', '-') + '.png';
    element('a', {href: this.picture(panel).toDataURL('image/png'), download: name}).click();
  }
  /** A canvas with a panel as seen on the page: title, run, legend, and stretch of time. */
  picture(panel) {
    const view = this.views.find(one => one.panel === panel);
    const width = this.place.clientWidth, height = Timeline.heightOf(panel), ratio = Timeline.fine;
    const drawn = element('canvas', {});
    drawn.width = width * ratio;
    drawn.height = height * ratio;
    const hover = this.hover;
    this.hover = undefined;
    this.drawView(view, drawn.getContext('2d'), ratio, width, height);
    this.hover = hover;
    const canvas = element('canvas', {}), g = canvas.getContext('2d');
    const placed = Timeline.placeLegend(g, panel.legend(), width);
    const head = Timeline.titled + placed.height;
    canvas.width = width * ratio;
    canvas.height = (head + height) * ratio;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = '#fff';
    g.fillRect(0, 0, width, head + height);
    g.textBaseline = 'middle';
    g.fillStyle = '#222';
    g.font = 'bold 13px sans-serif';
    g.fillText(panel.title, 0, Timeline.titled / 2);
    const after = g.measureText(panel.title).width + 10;
    g.fillStyle = '#777';
    g.font = '12px sans-serif';
    const [hint] = (panel.hint || '').split('; click');  // the rest concerns clicks
    g.fillText([hint, shortened(commandOf(this.run.summary))].filter(text => text).join('; '), after, Timeline.titled / 2, width - after);
    for (const {name, colour, x, y} of placed.entries) {
      g.fillStyle = colour;
      g.fillRect(x, Timeline.titled + y - 5, 11, 11);
      g.strokeStyle = 'rgba(0,0,0,.13)';
      g.strokeRect(x + 0.5, Timeline.titled + y - 4.5, 10, 10);
      g.fillStyle = '#444';
      g.fillText(name, x + 16, Timeline.titled + y);
    }
    g.drawImage(drawn, 0, head, width, height);
    return canvas;
  }
  /** The places of a legend's entries in rows of `width`: `x` is the left edge, `y` the middle. */
  static placeLegend(g, legend, width) {
    const row = 17, entries = [];
    g.font = '12px sans-serif';
    let x = 0, y = row / 2;
    for (const {name, colour} of legend) {
      const wide = 16 + g.measureText(name).width;
      if (x > 0 && x + wide > width) {
        x = 0;
        y += row;
      }
      entries.push({name, colour, x, y});
      x += wide + 14;
    }
    return {entries, height: entries.length > 0 ? y + row / 2 : 0};
  }
}
