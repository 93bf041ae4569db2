// The memory plan: which buffer lies where in the arena, from which call to which.

function memoryView() {
  const entry = entryNamed(state.entry);
  if (!entry) return [empty('No memory', 'The program has no entry points.')];
  const plan = data.settings[state.setting].entries[state.entry];
  const calls = callTable.get(state.entry);
  const placed = [];
  let separate = 0;
  entry.slots.forEach(([kind, dtype, shape, , alias, first, last], slot) => {
    const [offset, bytes] = plan.slots[slot];
    if (offset < 0 || !bytes) return;
    separate += bytes;
    const maker = calls.find((c) => c.results.includes(slot));
    placed.push({slot, dtype, shape, offset, bytes, first, last, maker});
  });
  const sum = (kind) => {
    const seen = new Set();
    let total = 0;
    entry.slots.forEach(([k, , , index, alias], slot) => {
      if (k !== kind || alias >= 0 || seen.has(index)) return;
      seen.add(index);
      total += plan.slots[slot][1];
    });
    return total;
  };
  const fact = (name, value, note) =>
      h('div', {class: 'fact'}, h('b', {}, value), h('span', {}, name),
        note ? h('small', {}, note) : null);
  const facts =
      h('div', {class: 'facts'},
        fact(
            'arena', bytesText(plan.arena),
            placed.length ? `${trim(separate / plan.arena)}× reused` : ''),
        fact('weights', bytesText(sum('weight')), 'as bound'),
        fact('states', bytesText(sum('state')), ''), fact('inputs', bytesText(sum('argument'))),
        fact('outputs', bytesText(sum('result'))),
        fact('buffers in the arena', placed.length, `in ${plural(calls.length, 'call')}`));
  if (!placed.length)
    return [
      facts,
      empty(
          'Nothing in the arena',
          'Every value of this entry point lives in inputs, outputs, weights or states.')
    ];
  const W = Math.max(900, Math.min(2600, calls.length * 9)), H = 380, L = 62, B = 26, T = 8;
  const X = (call) => L + (W - L - 10) * call / calls.length,
        Y = (byte) => T + (H - T - B) * (1 - byte / plan.arena);
  const svg = h('svg', {
    viewBox: `0 0 ${W} ${H}`,
    width: W,
    height: H,
    class: 'chart memory',
    role: 'img',
    'aria-label': 'memory plan over calls'
  });
  for (let i = 0; i <= 4; ++i) {
    const bytes = plan.arena * i / 4;
    svg.append(
        h('line', {x1: L, x2: W - 10, y1: Y(bytes), y2: Y(bytes), class: 'grid'}),
        h('text', {x: L - 6, y: Y(bytes) + 3.5, class: 'tick end'}, bytesText(bytes)));
  }
  let block = null, shade = 0, start = 0;
  const bands = [];
  calls.forEach((c, i) => {
    const b = blockOf(c.path);
    if (b !== block) {
      if (block) bands.push([block, start, i]);
      block = b;
      start = i;
    }
  });
  if (block) bands.push([block, start, calls.length]);
  for (const [name, from, to] of bands) {
    shade = 1 - shade;
    svg.append(
        h('rect',
          {x: X(from), width: X(to) - X(from), y: T, height: H - T - B, class: 'band' + shade}));
    if (X(to) - X(from) > 24)
      svg.append(
          h('text', {x: (X(from) + X(to)) / 2, y: H - B + 13, class: 'tick mid'},
            X(to) - X(from) > name.length * 6 ? name : name.replace(/^.*\./, '')));
  }
  svg.append(h('text', {x: L - 6, y: H - B + 13, class: 'tick end'}, 'layer'));
  for (const p of placed) {
    const lit = p.maker && selection.touches[p.maker.set];
    const box = h('rect', {
      x: X(p.first) + 0.5,
      width: Math.max(1.5, X(p.last + 1) - X(p.first) - 1),
      y: Y(p.offset + p.bytes),
      height: Math.max(1, Y(p.offset) - Y(p.offset + p.bytes) - 0.5),
      rx: 1.5,
      class: 'buffer' + (lit ? ' lit' : '') +
          (isSelected('slot', state.entry + ':' + p.slot) ? ' exact' : ''),
      'data-slot': state.entry + ':' + p.slot,
      tabindex: lit ? 0 : null,
      onclick: () => select('slot', state.entry + ':' + p.slot)
    });
    svg.append(withTip(
        box,
        `buffer ${p.slot} · ${p.dtype}${dims(p.shape)}\n${bytesText(p.bytes)} at ${
            bytesText(p.offset)}\ncalls ${p.first} to ${p.last}` +
            (p.maker ? `\nmade by ${p.maker.kernel} for ${p.maker.path || p.maker.origin}` : '')));
  }
  // Layers hold the same buffers: one row tells of all that are alike.
  const alike = new Map();
  for (const p of [...placed].sort((a, b) => b.bytes - a.bytes)) {
    const key = p.maker ?
        [
          p.bytes, p.dtype, p.shape, p.maker.kernel.replace(/\d+$/, ''), layersAsOne(p.maker.path)
        ].join('|') :
        p.slot;
    if (!alike.has(key)) alike.set(key, []);
    alike.get(key).push(p);
  }
  const row = (like) => {
    const p = like[0], call = (b) => `${b.first}–${b.last}`;
    const exact = like.some((b) => isSelected('slot', state.entry + ':' + b.slot));
    const lit = like.some((b) => b.maker && selection.touches[b.maker.set]);
    return action(
        {tag: 'tr',
         class: exact ? 'exact' :
             lit      ? 'lit' :
                        ''},
        () => select('slot', state.entry + ':' + p.slot),
        h('td', {class: 'n dim'}, like.length > 1 ? '× ' + like.length : ''),
        h('td', {class: 'mono'}, p.dtype + dims(p.shape)),
        h('td', {class: 'n'}, bytesText(p.bytes)),
        h('td', {class: 'mono'}, call(p) + (like.length > 1 ? ' …' : '')),
        h('td', {class: 'mono'}, p.maker ? p.maker.kernel : ''),
        h('td', {class: 'mono path'}, p.maker ? layersAsOne(p.maker.path) || p.maker.origin : ''));
  };
  return [
    facts,
    h('div', {class: 'tools'},
      h('span', {class: 'what'},
        `${state.entry} at ${
            settingText(state.setting)}: calls from left to right, offsets in the arena upwards`)),
    h('div', {class: 'scroll'}, h('div', {class: 'pan'}, svg), h('h3', {}, 'Largest buffers'),
      h('table', {class: 'data'},
        h('thead', {},
          h('tr', {},
            ['', 'type', 'bytes', 'calls', 'made by', 'module'].map(
                (t) => h('th', {class: !t || t === 'bytes' ? 'n' : ''}, t)))),
        h('tbody', {}, [...alike.values()].slice(0, 12).map(row))))
  ];
}
