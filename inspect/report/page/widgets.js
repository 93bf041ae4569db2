// Small tools for making the page: elements, numbers as text, long lists, tips.

function h(tag, props, ...children) {
  const svg = /^(svg|g|rect|path|line|text|circle|title|defs|marker|polyline)$/.test(tag) &&
      tag !== 'title';
  const e = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) :
                  document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on'))
      e.addEventListener(key.slice(2), value);
    else if (key === 'style')
      e.style.cssText = value;
    else
      e.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat())
    if (child !== null && child !== undefined && child !== false) e.append(child);
  return e;
}
// New children of an element; what is not there is left out, where the DOM would write "null".
function fill(e, ...children) {
  e.replaceChildren(
      ...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
}

const trim = (x) => (x >= 100    ? x.toFixed(0) :
                         x >= 10 ? x.toFixed(1) :
                                   x.toFixed(2))
                        .replace(/\.0+$/, '');
function scaled(value, units, step = 1000) {
  if (!isFinite(value)) return '';
  if (value === 0) return '0 ' + units[0].trim();
  let i = 0;
  while (i + 1 < units.length && value >= step) {
    value /= step;
    ++i;
  }
  return trim(value) + ' ' + units[i];
}
const bytesText = (v) => scaled(v, ['B', 'kB', 'MB', 'GB', 'TB']);
const flopText = (v) => scaled(v, ['', 'k', 'M', 'G', 'T', 'P']).trim();
const timeText = (s) =>
    (s === null  ? '' :
         s === 0 ? '0' :
                   scaled(s * 1e9, ['ns', 'µs', 'ms', 's']));
const percent = (x) => x > 0 && x < 0.0005 ?
    '<0.1 %' :
    (x >= 0.0995 ? (100 * x).toFixed(0) : (100 * x).toFixed(1)) + ' %';
const plural = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');
// The end of a path says more than its beginning.
const tail = (path, n) => (path.length <= n ? path : '…' + path.slice(path.length - n + 1));
const dims = (shape) => '[' + shape.join(', ') + ']';

// One line of IR, coloured. Types are short unless the reader wants the text as MLIR parses it.
function shortTypes(text) {
  return text.replace('dense_resource<__elided__>', 'dense<…>')
      .replace(/tensor<([^<>]*?)(?:, #lathe\.dims<([^<>]*)>)?>/g, (all, body, named) => {
        const parts = body.split('x');
        const dtype = parts.pop();
        const shape = named || parts.join(', ');
        return shape ? dtype + '[' + shape + ']' : dtype;
      });
}
const TOKENS =
    /("(?:[^"\\]|\\.)*")|(%[A-Za-z0-9_]+(?:#\d+)?)|(@[\w.$-]+)|(\blathe\.[a-z_]+|\bfunc\.func\b|\breturn\b|\bmodule\b)|(\b(?:f32|f64|bf16|f16|i1|i8|i32|i64)(?:\[[^\]]*\])?|tensor<[^>]*>+)/g;
const FUSED = new Set([
  'rms_norm', 'layer_norm', 'add_norm', 'softmax', 'rope', 'rope_append', 'norm_rope', 'glu',
  'gate', 'attention', 'linear', 'embedding', 'adaln_modulate', 'gated_residual', 'kernel', 'region'
]);
function coloured(text, target) {
  let last = 0;
  for (const m of text.matchAll(TOKENS)) {
    if (m.index > last) target.append(text.slice(last, m.index));
    const kind = m[1] ? 'str' :
        m[2]          ? 'val' :
        m[3]          ? 'sym' :
        m[4]          ? (FUSED.has(shortOp(m[4])) ? 'op fused' : 'op') :
                        'type';
    const span = h('span', {class: kind}, m[0]);
    if (m[2]) span.dataset.value = m[2];
    target.append(span);
    last = m.index + m[0].length;
  }
  target.append(text.slice(last));
  return target;
}

// A list of which only the visible rows exist. `draw(index)` makes one; all are of one height.
class LongList {
  constructor(props, rowHeight = 19) {
    this.rowHeight = rowHeight;
    this.inner = h('div', {class: 'rows'});
    this.node = h('div', {tabindex: 0, ...props, class: 'long ' + (props.class || '')}, this.inner);
    this.node.addEventListener('scroll', () => this.paint());
    new ResizeObserver(() => this.paint()).observe(this.node);
    this.count = 0;
  }
  set(count, draw, width) {
    this.count = count;
    this.draw = draw;
    this.inner.style.height = count * this.rowHeight + 'px';
    this.inner.style.minWidth = width ? width + 'ch' : '100%';
    this.first = -1;
    this.paint();
  }
  paint() {
    if (!this.draw) return;
    const view = this.node.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.node.scrollTop / this.rowHeight) - 12);
    const last =
        Math.min(this.count, Math.ceil((this.node.scrollTop + view) / this.rowHeight) + 12);
    if (first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    this.inner.replaceChildren();
    for (let i = first; i < last; ++i) {
      const row = this.draw(i);
      row.style.top = i * this.rowHeight + 'px';
      this.inner.append(row);
    }
  }
  redraw() {
    this.first = -1;
    this.paint();
  }
  show(index) {
    const top = index * this.rowHeight, view = this.node.clientHeight || 600;
    if (top < this.node.scrollTop + 40 || top > this.node.scrollTop + view - 60)
      this.node.scrollTop = Math.max(0, top - view / 3);
    this.paint();
  }
}

const tip = h('div', {id: 'tip', role: 'tooltip'});
function withTip(element, text) {
  element.addEventListener('pointerenter', () => {
    tip.textContent = typeof text === 'function' ? text() : text;
    tip.style.display = 'block';
  });
  element.addEventListener('pointermove', (e) => {
    tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = Math.min(e.clientY + 16, innerHeight - tip.offsetHeight - 8) + 'px';
  });
  element.addEventListener('pointerleave', () => (tip.style.display = 'none'));
  return element;
}

// A row that acts: by pointer, Enter and Space.
function action(props, run, ...children) {
  const tag = props.tag || 'button';
  delete props.tag;
  const e =
      h(tag, {type: tag === 'button' ? 'button' : null, tabindex: 0, ...props, onclick: run},
        ...children);
  if (tag !== 'button')
    e.addEventListener('keydown', (k) => {
      if (k.key !== 'Enter' && k.key !== ' ') return;
      k.preventDefault();
      run(k);
    });
  return e;
}

function choice(label, options, value, change) {
  return h(
      'label', {class: 'choice'}, h('span', {}, label),
      h('select', {onchange: (e) => change(e.target.value)},
        options.map(
            ([v, text]) => h('option', {value: v, selected: String(v) === String(value)}, text))));
}

const bar = (share, kind = '') =>
    h('span', {class: 'bar ' + kind},
      h('i', {style: `width:${Math.max(0, Math.min(1, share)) * 100}%`}));
const empty = (title, text) => h('div', {class: 'empty'}, h('b', {}, title), h('p', {}, text));
