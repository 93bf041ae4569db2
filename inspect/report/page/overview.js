// The first page: what became of the graph, where the time goes, what to look at next.

function opCounts(step, entry) {
  const counts = new Map();
  for (const {line} of functionsOf(step).get(entry) || []) {
    const p = parse(line);
    if (['func', 'return', 'lathe.weight', 'lathe.constant'].includes(p.op)) continue;
    const name = shortOp(p.op);
    counts.set(name, (counts.get(name) || 0) + 1);
  }
  return new Map([...counts].sort((a, b) => b[1] - a[1]));
}

function fusedTable() {
  const stage = steps.findLastIndex((s) => s.stage === 'fused');
  if (stage < 0) return null;
  const recordedBySet = new Map();
  for (const {line} of functionsOf(steps[0]).get(state.entry) || []) {
    const p = parse(line);
    if (['func', 'return'].includes(p.op)) continue;
    for (const o of setOwn[line.set])
      recordedBySet.set(o, [...(recordedBySet.get(o) || []), shortOp(p.op)]);
  }
  const recordedOps = new Set([...opCounts(steps[0], state.entry).keys(), 'weight', 'constant']);
  const kinds = new Map();
  for (const {line, name} of functionsOf(steps[stage]).get(state.entry) || []) {
    const p = parse(line), op = shortOp(p.op);
    if (recordedOps.has(op) || !p.op.startsWith('lathe.')) continue;
    if (!kinds.has(op)) kinds.set(op, {op, count: 0, sample: null, from: new Map(), first: name});
    const k = kinds.get(op);
    ++k.count;
    // What one of them took: the ops recorded on its lines, by kind.
    const taken = new Map();
    setOwn[line.set].forEach(
        (o) => (recordedBySet.get(o) || []).forEach((r) => taken.set(r, (taken.get(r) || 0) + 1)));
    if (!k.sample) k.sample = taken;
  }
  if (!kinds.size) return h('p', {class: 'dim'}, 'No fusion applied in this entry point.');
  return h(
      'table', {class: 'data'},
      h('thead', {},
        h('tr', {}, h('th', {}, 'fused op'), h('th', {class: 'n'}, ''),
          h('th', {}, 'recorded on the lines of the first'))),
      h('tbody', {},
        [...kinds.values()]
            .sort((a, b) => b.count - a.count)
            .map(
                (k) => action(
                    {tag: 'tr'}, () => select('op', k.first, {view: 'ir', step: stepKey(stage)}),
                    h('td', {class: 'mono'}, h('b', {}, k.op)),
                    h('td', {class: 'n'}, '× ' + k.count),
                    h('td', {class: 'mono dim wrap'},
                      [...k.sample]
                          .filter(([r]) => !['weight', 'constant'].includes(r))
                          .map(([r, n]) => r + (n > 1 ? ' ×' + n : ''))
                          .join(', '))))));
}

function shareTable() {
  const calls = (callTable.get(state.entry) || []);
  const measured = calls.some((c) => measuredOf(c, state.setting) !== null);
  const groups = new Map();
  let total = 0;
  for (const c of calls) {
    const t = timeOf(c, state.setting);
    if (t === null) continue;
    const key =
        c.kind === 'region' ? 'region ' + layersAsOne(c.path) : c.kind + ' ' + layersAsOne(c.path);
    if (!groups.has(key))
      groups.set(key, {kind: c.kind, path: layersAsOne(c.path), time: 0, count: 0, call: c});
    const g = groups.get(key);
    g.time += t;
    ++g.count;
    total += t;
  }
  if (!total) return h('p', {class: 'dim'}, 'The backend states no costs, and nothing was run.');
  const rows = [...groups.values()].sort((a, b) => b.time - a.time);
  return [
    h('p', {class: 'dim'},
      `${timeText(total)} ${
          measured ? 'measured' :
                     'predicted for ' + (data.machine ? data.machine.name : 'this machine')} at ${
          settingText(state.setting)}`),
    h('table', {class: 'data'},
      h('tbody', {},
        rows.slice(0, 9).map(
            (g) => action(
                {tag: 'tr', class: selection.touches[g.call.set] ? 'lit' : ''},
                () => select('call', g.call.entry + ':' + g.call.index),
                h('td', {class: 'mono'}, g.kind),
                h('td', {class: 'mono path', title: g.path}, tail(g.path || g.call.origin, 21)),
                h('td', {class: 'n'}, timeText(g.time)),
                h('td', {class: 'wide'}, bar(g.time / rows[0].time),
                  h('span', {class: 'n'}, percent(g.time / total))))),
        rows.length > 9 ?
            h('tr', {}, h('td', {colspan: 2, class: 'dim'}, `${rows.length - 9} more places`),
              h('td', {class: 'n dim'}, timeText(rows.slice(9).reduce((s, g) => s + g.time, 0))),
              h('td', {})) :
            null))
  ];
}

function overviewView() {
  const calls = callTable.get(state.entry) || [],
        plan = data.settings[state.setting].entries[state.entry];
  const count = (i) => [...opCounts(steps[i], state.entry).values()].reduce((a, b) => a + b, 0);
  const weak = new Map();
  rewrites.forEach((r) => r.weakened.forEach((w) => weak.set(w, (weak.get(w) || 0) + 1)));
  const counts = steps.map((s, i) => count(i)), most = Math.max(...counts);
  const card = (title, view, ...body) =>
      h('section', {class: 'card'},
        h('h3', {}, title, view ? action({class: 'more'}, () => go({view}), 'open →') : null),
        ...body);
  const fact = (value, name) => h('div', {class: 'fact'}, h('b', {}, value), h('span', {}, name));
  return [
    h('div', {class: 'scroll cards'},
      h('section', {class: 'card span'},
        h('div', {class: 'facts'},
          fact(counts[0].toLocaleString('en'), 'ops recorded in ' + state.entry),
          fact(calls.length.toLocaleString('en'), 'kernel calls'),
          fact(rewrites.length.toLocaleString('en'), 'rewrites'),
          fact(plan ? bytesText(plan.arena) : '–', 'arena'),
          fact(kernelNames.length, 'different kernels'),
          fact(misses.length.toLocaleString('en'), 'near misses'))),
      card(
          'Ops after each step', 'ir',
          h('table', {class: 'data funnel'},
            h('tbody', {},
              steps.map(
                  (s, i) => action(
                      {tag: 'tr', class: i && !s.added && !s.removed ? 'quiet' : ''},
                      () => go({view: 'ir', step: stepKey(i)}),
                      h('td', {class: 'dim'}, i && steps[i - 1].stage === s.stage ? '' : s.stage),
                      h('td', {class: 'mono'}, s.name),
                      h('td', {class: 'n'}, counts[i].toLocaleString('en')),
                      h('td', {class: 'wide'}, bar(counts[i] / most, 'plain'))))))),
      card('Where the time goes', 'calls', shareTable()),
      card('What was fused', 'rewrites', fusedTable()),
      card(
          'Numerics', 'rewrites',
          h('p', {class: 'dim'},
            `Mode ${data.mode}. ` +
                (weak.size ? 'Promises that rewrites weakened:' :
                             'No rewrite weakened a promise about rounding or special values.')),
          h('table', {class: 'data'},
            h('tbody', {},
              data.contracts.filter(([name]) => weak.has(name))
                  .map(
                      ([name, meaning]) =>
                          h('tr', {}, h('td', {}, h('span', {class: 'badge warn'}, name)),
                            h('td', {class: 'n'}, '× ' + weak.get(name)),
                            h('td', {class: 'dim wrap'}, meaning)))))),
      data.observed.length ?
          card(
              'Observed values', '',
              h('table', {class: 'data'},
                h('thead', {},
                  h('tr', {}, ['value', 'kept as', 'FLOP', 'bytes'].map((t) => h('th', {}, t)))),
                h('tbody', {},
                  data.observed.map(
                      ([entry, name, how, flops, bytes]) =>
                          h('tr', {}, h('td', {class: 'mono'}, entry + ': ' + name),
                            h('td', {}, how), h('td', {class: 'mono dim wrap'}, flops),
                            h('td', {class: 'mono dim wrap'}, bytes)))))) :
          null)
  ];
}
