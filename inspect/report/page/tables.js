// Weights and their layouts, rewrites and what they weakened, fusions that were refused.

function layoutsView() {
  const load = entryNamed('load'), sizes = data.settings[state.setting].entries;
  const calls = load ? callTable.get('load') : [];
  const count = new Map();
  for (const e of entries)
    if (e.name !== 'load')
      for (const c of callTable.get(e.name))
        for (const slot of c.operands) {
          let s = slot;
          while (e.slots[s][4] >= 0) s = e.slots[s][4];
          if (e.slots[s][0] === 'weight')
            count.set(e.slots[s][3], (count.get(e.slots[s][3]) || 0) + 1);
        }
  const rows = [];
  data.program.weights.forEach(([name, dtype, shape], i) => {
    if (count.get(i))
      rows.push({
        name,
        from: name,
        dtype,
        shape,
        layout: 'as in the checkpoint',
        how: 'mapped',
        bytes: null,
        uses: count.get(i),
        set: 0
      });
  });
  data.program.derived.forEach(([name, dtype, shape], i) => {
    const port = load && load.outputs[i];
    const chain = [], sources = new Set();
    let packed = null;
    const back = (slot, depth) => {
      while (load.slots[slot][4] >= 0 && !calls.some((c) => c.results.includes(slot)))
        slot = load.slots[slot][4];
      if (load.slots[slot][0] === 'weight')
        return void sources.add(data.program.weights[load.slots[slot][3]][0]);
      const call = calls.find((c) => c.results.includes(slot));
      if (!call || depth > 12) return;
      if (call.kind === 'pack') packed = call;
      chain.unshift(call.kernel);
      call.operands.forEach((o) => back(o, depth + 1));
    };
    if (port) back(port[1], 0);
    const maker = port && calls.find((c) => c.results.includes(port[1]));
    rows.push({
      name,
      from: [...sources].join(', ') || 'computed',
      dtype,
      shape,
      layout: packed ? 'packed for the kernel' : 'row-major',
      how: chain.join(' → '),
      bytes: port ? sizes.load.slots[port[1]][1] : null,
      uses: count.get(data.program.weights.length + i) || 0,
      set: maker ? maker.set : 0,
      call: maker
    });
  });
  if (!rows.length) return [empty('No weights', 'This graph computes from its inputs alone.')];
  const groups = new Map();
  for (const r of rows) {
    const key = [layersAsOne(r.name), r.dtype, r.shape, r.layout].join('|');
    if (!groups.has(key)) groups.set(key, {...r, rows: []});
    groups.get(key).rows.push(r);
  }
  const total = rows.reduce((s, r) => s + (r.bytes || 0), 0);
  return [
    h('div', {class: 'tools'},
      h('span', {class: 'what'},
        `${plural(data.program.weights.length, 'tensor')} of the checkpoint; ${
            plural(data.program.derived.length, 'tensor')} made once by load` +
            (total ? ', ' + bytesText(total) : ''))),
    h('div', {class: 'scroll'},
      h('table', {class: 'data'},
        h('thead', {},
          h('tr', {},
            ['', 'weight', 'from', 'type', 'layout', 'made by', 'bytes', 'uses'].map(
                (t) => h('th', {class: ['bytes', 'uses', ''].includes(t) ? 'n' : ''}, t)))),
        h('tbody', {},
          [...groups.values()].map(
              (g) =>
                  action(
                      {
                        tag: 'tr',
                        class: g.rows.some((r) => r.set && selection.touches[r.set]) ? 'lit' : ''
                      },
                      () => g.call ? select('call', 'load:' + g.call.index) : null,
                      h('td', {class: 'n dim'}, g.rows.length > 1 ? '× ' + g.rows.length : ''),
                      h('td', {class: 'mono'}, layersAsOne(g.name)),
                      h('td', {class: 'mono dim'},
                        g.from === g.name || g.name.startsWith(g.from) ?
                            'the same' :
                            ending(layersAsOne(g.from), 60, true)),
                      h('td', {class: 'mono'}, g.dtype + dims(g.shape)),
                      h('td', {},
                        h('span', {class: 'badge ' + (g.layout.startsWith('packed') ? 'good' : '')},
                          g.layout)),
                      h('td', {class: 'mono dim'}, ending(g.how, 40)),
                      h('td', {class: 'n'},
                        g.bytes === null ? '' : bytesText(g.bytes * g.rows.length)),
                      h('td', {class: 'n'}, g.rows.reduce((s, r) => s + r.uses, 0)))))))
  ];
}

const tableOptions = {
  open: new Set(),
  byPattern: false
};
// Every rewrite in the order in which it was made; what layers repeat stays in its place.
function rewritesInOrder(litRow, badges) {
  let step = '';
  return h(
      'table', {class: 'data'},
      h('thead', {},
        h('tr', {},
          ['number', 'step', 'rewrite', 'module', 'line', 'promises weakened'].map(
              (t) => h('th', {class: t === 'number' ? 'n' : ''}, t)))),
      h('tbody', {}, rewrites.map((r) => {
        const isFirst = r.step !== step;
        step = r.step;
        return action(
            {
              tag: 'tr',
              class: isSelected('rewrite', r.number) ? 'exact' :
                  litRow(r)                          ? 'lit' :
                                                       '',
              'data-rewrite': r.number
            },
            () => select('rewrite', r.number), h('td', {class: 'n mono'}, r.number),
            h('td', {class: 'mono dim'}, isFirst ? r.step : ''), h('td', {}, h('b', {}, r.what)),
            h('td', {class: 'mono path', title: r.path}, tail(r.path, 30)),
            h('td', {class: 'mono dim'}, r.at.split(' ').pop()), h('td', {}, badges(r)));
      })));
}
function rewritesView() {
  if (!rewrites.length) return [empty('No rewrites', 'Nothing in this graph could be rewritten.')];
  const groups = new Map();
  for (const r of rewrites) {
    const key = r.step + '|' + r.what;
    if (!groups.has(key))
      groups.set(key, {step: r.step, what: r.what, rows: [], weakened: new Map()});
    const g = groups.get(key);
    g.rows.push(r);
    r.weakened.forEach((w) => g.weakened.set(w, (g.weakened.get(w) || 0) + 1));
  }
  const meaning = new Map(data.contracts);
  const weak =
      [...groups.values()].reduce((n, g) => n + g.rows.filter((r) => r.weakened.length).length, 0);
  const litRow = (r) => [...selection.origins].some(
      (o) => data.origins[o][3] === r.path && r.at.endsWith(':' + data.origins[o][1]));
  const badges = (r) =>
      r.weakened.map((w) => h('span', {class: 'badge warn', title: meaning.get(w)}, w));
  const tab = (name, byPattern) =>
      action({class: 'tab' + (tableOptions.byPattern === byPattern ? ' here' : '')}, () => {
        tableOptions.byPattern = byPattern;
        notify();
      }, name);
  const body = [];
  for (const [key, g] of tableOptions.byPattern ? groups : []) {
    const open = tableOptions.open.has(key) ||
        (state.kind === 'rewrite' && g.rows.some((r) => String(r.number) === state.id));
    const first = g.rows[0].number, last = g.rows[g.rows.length - 1].number,
          lit = g.rows.filter(litRow).length;
    body.push(action(
        {tag: 'tr', class: 'head' + (lit ? ' lit' : ''), 'aria-expanded': open},
        () => {
          open ? tableOptions.open.delete(key) : tableOptions.open.add(key);
          notify();
        },
        h('td', {class: 'dim'}, open ? '▾' : '▸'), h('td', {class: 'mono'}, g.step),
        h('td', {}, h('b', {}, g.what)), h('td', {class: 'n'}, '× ' + g.rows.length),
        h('td', {class: 'mono dim'}, first === last ? first : `${first} … ${last}`),
        h('td', {},
          [...g.weakened].map(
              ([w, n]) =>
                  h('span',
                    {class: 'badge warn', title: 'promise weakened: ' + (meaning.get(w) || '')},
                    w + (n < g.rows.length ? ' × ' + n : ''))))));
    if (open)
      for (const r of g.rows)
        body.push(action(
            {
              tag: 'tr',
              class: 'sub' +
                  (isSelected('rewrite', r.number) ? ' exact' :
                       litRow(r)                   ? ' lit' :
                                                     ''),
              'data-rewrite': r.number
            },
            () => select('rewrite', r.number), h('td', {}), h('td', {class: 'n mono'}, r.number),
            h('td', {class: 'mono', colspan: 2}, r.path || 'no module'),
            h('td', {class: 'mono dim'}, r.at.split(' ').pop()), h('td', {}, badges(r))));
  }
  return [
    h('div', {class: 'tools'},
      h('span', {class: 'what'},
        `${plural(rewrites.length, 'rewrite')}, ${weak || 'none'} of which weakened a promise; ` +
            '--stop-after-rewrite=N ends with number N'),
      tab('in order', false), tab('by pattern', true)),
    h('div', {class: 'scroll'},
      tableOptions.byPattern ?
          h('table', {class: 'data'},
            h('thead', {},
              h('tr', {},
                ['', 'step', 'rewrite', '', 'numbers', 'promises weakened'].map(
                    (t) => h('th', {}, t)))),
            h('tbody', {}, body)) :
          rewritesInOrder(litRow, badges))
  ];
}

function missesView() {
  if (!misses.length)
    return [empty(
        'No near misses',
        'No pattern came near to an op and then declined. `lathe why-not` asks the same of one op.')];
  const groups = new Map();
  misses.forEach((m, i) => {
    const key = [m.op, m.pattern, m.constraint, m.matched, layersAsOne(m.path)].join('|');
    if (!groups.has(key)) groups.set(key, {...m, index: i, count: 0, members: []});
    groups.get(key).count += 1;
    groups.get(key).members.push(i);
  });
  return [
    h('div', {class: 'tools'},
      h('span', {class: 'what'},
        plural(misses.length, 'op') +
            ' that a fusion nearly took, the nearest pattern, and the first condition that failed')),
    h('div', {class: 'scroll'},
      h('table', {class: 'data'},
        h('thead', {},
          h('tr', {},
            ['', 'op', 'module', 'nearest fusion', 'matched', 'failed', 'reason'].map(
                (t) => h('th', {class: t === 'matched' || !t ? 'n' : ''}, t)))),
        h('tbody', {},
          [...groups.values()].map(
              (g) => action(
                  {
                    tag: 'tr',
                    class: g.members.some((i) => isSelected('miss', i)) ? 'exact' : '',
                    'data-miss': g.index
                  },
                  () => select('miss', g.index),
                  h('td', {class: 'n dim'}, g.count > 1 ? '× ' + g.count : ''),
                  h('td', {class: 'mono'}, shortOp(g.op)),
                  h('td', {class: 'mono path'}, layersAsOne(g.path) || g.at),
                  h('td', {class: 'mono'}, g.pattern),
                  h('td', {class: 'n'}, g.of ? `${g.matched} / ${g.of}` : ''),
                  h('td', {},
                    h('span', {class: 'badge' + (g.by === 'backend' ? ' warn' : '')},
                      g.by === 'backend' ? 'the backend declined' : g.constraint)),
                  h('td', {class: 'reason'}, g.reason))))))
  ];
}
