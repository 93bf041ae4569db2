// The text of the IR after a step: what the step changed, or all of it. Layers that a step changed
// alike are one.

const irOptions = {
  whole: false,
  mlirTypes: false,
  unfolded: new Set()
};
const CONTEXT = 3;  // unchanged lines shown around a change

// [{begin, end, block, key}]: rows from the first of a layer to the first of the next, within one
// function; `key` is equal for runs that differ in numbers only. Rows may overlap at a seam, as
// where the sum behind a layer is fused after the next began: the seams of equal layers are equal
// too.
function runsOf(rows) {
  const runs = [], seen = new Set();
  const cut = (at, block) => {
    if (runs.length) runs[runs.length - 1].end = at;
    runs.push({begin: at, end: rows.length, block});
  };
  rows.forEach(({line}, i) => {
    if (parse(line).func || (line.text.trim() === '}' && seen.size)) {
      seen.clear();
      return cut(i, '');
    }
    const block = blockOf(setPath[line.set]);
    if (!block || seen.has(block)) return;
    seen.add(block);
    cut(i, block);
  });
  // Behind its last row, the last layer of a function ends.
  for (let r = runs.length - 1; r >= 0; --r) {
    const run = runs[r], next = runs[r + 1];
    if (!run.block || (next && next.block)) continue;
    let end = run.end;
    while (end > run.begin + 1 && blockOf(setPath[rows[end - 1].line.set]) !== run.block) --end;
    if (end < run.end) runs.splice(r + 1, 0, {begin: end, end: run.end, block: ''});
    run.end = end;
  }
  for (const run of runs) {
    run.key = '';
    for (let r = run.begin; r < run.end; ++r) run.key += rows[r].sign + rows[r].line.form;
  }
  return runs;
}

// What the list shows: rows of text, and rows that stand for others.
function shownRows(index) {
  const step = steps[index],
        rows = irOptions.whole || index === 0 ?
      step.lines.map((line) => ({sign: index === 0 ? ' ' : ' ', line})) :
      step.rows;
  const onlyChanges = !irOptions.whole && index > 0;
  if (irOptions.whole && index > 0) {
    const added = new Set(step.rows.filter((r) => r.sign === '+').map((r) => r.line));
    rows.forEach((r) => (r.sign = added.has(r.line) ? '+' : ' '));
  }
  step.runs = step.runs || {};
  const runs = step.runs[irOptions.whole] = step.runs[irOptions.whole] || runsOf(rows);
  const shown = [];
  const family = (block) => block.replace(/\d+$/, '');
  const emit = (begin, end) => {
    if (!onlyChanges) {
      for (let i = begin; i < end; ++i) shown.push({row: rows[i]});
      return;
    }
    const near = new Uint8Array(end - begin);
    for (let i = begin; i < end; ++i) {
      if (rows[i].sign === ' ' && !parse(rows[i].line).func) continue;
      const reach = rows[i].sign === ' ' ? 0 : CONTEXT;
      for (let n = Math.max(begin, i - reach); n <= Math.min(end - 1, i + reach); ++n)
        near[n - begin] = 1;
    }
    for (let i = begin; i < end;) {
      if (near[i - begin]) {
        shown.push({row: rows[i++]});
        continue;
      }
      let stop = i;
      while (stop < end && !near[stop - begin]) ++stop;
      const key = index + ':' + i;
      if (irOptions.unfolded.has(key) || stop - i < 3)
        for (let n = i; n < stop; ++n) shown.push({row: rows[n]});
      else
        shown.push({key, text: plural(stop - i, 'line') + ' unchanged', begin: i, end: stop});
      i = stop;
    }
  };
  if (runs.length && runs[0].begin) emit(0, runs[0].begin);
  if (!runs.length) emit(0, rows.length);
  for (let i = 0; i < runs.length;) {
    emit(runs[i].begin, runs[i].end);
    const same = (a, b) => a && b && a.block && b.block && a.block !== b.block && a.key === b.key &&
        family(a.block) === family(b.block);
    let next = i + 1;
    while (same(runs[i], runs[next])) ++next;
    if (next > i + 1) {
      const key = index + ':same' + runs[i].begin, from = runs[i + 1].block,
            to = runs[next - 1].block;
      const name = next === i + 2 ? from : from + ' … ' + to.replace(/^.*\./, '');
      const entry = {
        key,
        text: `${name}: the same as ${runs[i].block}, ${next - i - 1} times`,
        begin: runs[i + 1].begin,
        end: runs[next - 1].end,
        layers: true
      };
      if (irOptions.unfolded.has(key)) {
        shown.push({...entry, open: true});
        for (let n = i + 1; n < next; ++n) emit(runs[n].begin, runs[n].end);
      } else {
        shown.push(entry);
      }
    }
    i = next;
  }
  return {shown, rows};
}

let irList = null, irShown = null;

function drawIrRow(i) {
  const s = irShown.shown[i];
  if (!s.row) {
    const lit = irShown.rows.slice(s.begin, s.end).some((r) => selection.touches[r.line.set]);
    return action(
        {
          tag: 'div',
          class: 'row fold' + (lit ? ' holds' : ''),
          role: 'button',
          'aria-expanded': !!s.open
        },
        () => {
          irOptions.unfolded.has(s.key) ? irOptions.unfolded.delete(s.key) :
                                          irOptions.unfolded.add(s.key);
          drawIr(false);
        },
        h('span', {class: 'gutter'}, s.open ? '▾' : '▸'), h('span', {}, s.text));
  }
  const {sign, line} = s.row, p = parse(line);
  const func = funcOfRow(i);
  const name = p.op && p.op !== 'module' ? opName(func, p) : '';
  const classes = ['row', sign === '+' ? 'add' : sign === '-' ? 'del' : ''];
  if (name && name === selection.exact)
    classes.push('exact');
  else if (selection.touches[line.set])
    classes.push('lit');
  if (p.func) classes.push('func');
  const text =
      coloured(irOptions.mlirTypes ? p.text : shortTypes(p.text), h('span', {class: 'text'}));
  return h(
      'div', {
        class: classes.join(' '),
        'data-op': name || null,
        role: name ? 'button' : null,
        onclick: name ?
            () => {
              if (!getSelection().toString()) select('op', name);
            } :
            null,
      },
      h('span', {class: 'gutter'}, sign), text,
      h('span', {class: 'from'},
        p.func ? '' :
                 setPath[line.set] ||
                (data.sets[line.set].length ? originPlace(data.sets[line.set][0]) : '')));
}
function funcOfRow(i) {
  for (; i >= 0; --i) {
    const row = irShown.shown[i].row;
    if (row && parse(row.line).func) return parse(row.line).func;
  }
  return '';
}

function drawIr(jump) {
  const index = stepIndex();
  irShown = shownRows(index);
  let width = 80;
  for (const s of irShown.shown)
    if (s.row) {
      const p = parse(s.row.line);
      s.row.length = s.row.length || (irOptions.mlirTypes ? p.text : shortTypes(p.text)).length;
      width = Math.max(width, Math.min(s.row.length, 260));
    }
  irList.set(irShown.shown.length, drawIrRow, width + 36);
  if (!jump || !state.kind) return;
  // The op itself, else what touches it, else the fold that hides it; within the entry first.
  const funcs = [];
  for (let i = 0, func = ''; i < irShown.shown.length; ++i) {
    const s = irShown.shown[i];
    if (s.row && parse(s.row.line).func) func = parse(s.row.line).func;
    funcs.push(func);
  }
  const touched = (r) => selection.touches[r.line.set];
  const wants = [
    (s, func) => s.row && selection.exact && s.row.sign !== '-' && parse(s.row.line).op &&
        opName(func, parse(s.row.line)) === selection.exact,
    (s) => s.row && s.row.sign === '+' && touched(s.row),
    (s) => s.row && touched(s.row),
    (s) => !s.row && !s.open && irShown.rows.slice(s.begin, s.end).some(touched),
  ];
  let at = -1;
  for (const here of [true, false])
    for (const want of wants)
      if (at < 0)
        at = irShown.shown.findIndex(
            (s, i) => (!here || funcs[i] === state.entry) && want(s, funcs[i]));
  if (at >= 0 && !irShown.shown[at].row) {
    irOptions.unfolded.add(irShown.shown[at].key);
    return drawIr(true);
  }
  if (at >= 0) irList.show(at);
}

function irView() {
  irList = irList || new LongList({class: 'code ir', 'aria-label': 'IR text'});
  const index = stepIndex(), step = steps[index];
  const strip = h('nav', {class: 'steps', 'aria-label': 'steps'}, steps.map((s, i) => {
    const quiet = i > 0 && !s.added && !s.removed;
    return action(
        {
          class: 'step' + (i === index ? ' here' : '') + (quiet ? ' quiet' : '') +
              (s.lines.some((l) => selection.touches[l.set]) ? ' lit' : ''),
          title: `${s.stage}: ${s.name}`
        },
        () => go({step: stepKey(i), view: 'ir'}),
        h('span', {class: 'stage'}, i === 0 || steps[i - 1].stage !== s.stage ? s.stage : '\u00a0'),
        h('b', {}, s.name),
        h('span', {class: 'delta'},
          i === 0   ? plural(s.lines.length, 'line') :
              quiet ? 'no change' :
                      [
                        h('i', {class: 'plus'}, '+' + s.added), ' ',
                        h('i', {class: 'minus'}, '−' + s.removed)
                      ]));
  }));
  const tools =
      h('div', {class: 'tools'},
        h('span', {class: 'what'},
          index === 0 ? 'As recorded: ' + plural(step.lines.length, 'line') :
                        `${plural(step.lines.length, 'line')} after ${step.name}; was ${
                            steps[index - 1].lines.length.toLocaleString('en')}`),
        h('label', {}, h('input', {
            type: 'checkbox',
            checked: irOptions.whole,
            onchange: (e) => {
              irOptions.whole = e.target.checked;
              drawIr(true);
            }
          }),
          'whole text'),
        h('label', {}, h('input', {
            type: 'checkbox',
            checked: irOptions.mlirTypes,
            onchange: (e) => {
              irOptions.mlirTypes = e.target.checked;
              drawIr(false);
            }
          }),
          'types as MLIR'));
  queueMicrotask(() => {
    drawIr(true);
    strip.querySelector('.here').scrollIntoView({block: 'nearest', inline: 'nearest'});
  });
  return [strip, tools, irList.node];
}
