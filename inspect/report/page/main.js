// The frame: bar, module and source panel, the view, the panel of the selection; keys.

const VIEWS = [
  ['overview', 'Overview', overviewView], ['ir', 'Steps', irView], ['graph', 'Graph', graphView],
  ['calls', 'Calls', callsView], ['memory', 'Memory', memoryView],
  ['kernels', 'Kernels', kernelsView], ['layouts', 'Weights', layoutsView],
  ['rewrites', 'Rewrites', rewritesView], ['misses', 'Refused', missesView]
];
const page = {
  left: h('aside', {class: 'left', 'aria-label': 'modules and sources'}),
  view: h('main', {tabindex: -1}),
  right: h('aside', {class: 'right', 'aria-label': 'selection'}),
  top: h('header', {})
};
const treeOptions = {
  open: new Set(),
  tab: 'modules',
  filter: ''
};

function drawTop() {
  fill(page.top, h('div', {class: 'brand'}, h('b', {}, 'Lathe'),
        h('span', {class: 'title', title: data.title}, fileName(data.title) || data.title),
        h('span', {class: 'dim what'}, `${data.backend}, ${data.mode}`)),
      entries.length > 1 ?
          choice(
              'entry', entries.map((e) => [e.name, e.name]), state.entry, (entry) => go({entry})) :
          null,
      data.settings.length > 1 ?
          choice(
              'sizes',
              data.settings.map(
                  (s, i) =>
                      [i,
                       settingText(i) + (data.runs.some((r) => r.setting === i) ? ' (run)' : '')]),
              state.setting, (setting) => go({setting: Number(setting)})) :
          h('span', {class: 'dim sizes'}, settingText(0)),
      h('nav', {class: 'views', 'aria-label': 'views'},
        VIEWS.map(
            ([id, name], i) => action(
                {
                  class: state.view === id ? 'here' : '',
                  title: `key ${i + 1}`,
                  'aria-current': state.view === id ? 'page' : null
                },
                () => go({view: id}), name))));
}

function moduleTree() {
  const root = {children: new Map(), time: 0, path: '', first: Infinity};
  const add = (path, time) => {
    let node = root;
    node.time += time;
    for (const part of path ? path.split('.') : []) {
      if (!node.children.has(part))
        node.children.set(part, {
          name: part,
          path: node.path ? node.path + '.' + part : part,
          children: new Map(),
          time: 0
        });
      node = node.children.get(part);
      node.time += time;
    }
  };
  data.origins.forEach((o) => add(o[3], 0));
  let any = false;
  for (const c of callTable.get(state.entry) || []) {
    const t = timeOf(c, state.setting);
    if (t) any = true;
    add(c.path, t || 0);
  }
  const rows = [];
  const shown = (node) => !treeOptions.filter ||
      node.path.toLowerCase().includes(treeOptions.filter) ||
      [...node.children.values()].some(shown);
  const touched = new Set([...selection.origins].flatMap((o) => {
    const parts = originPath(o).split('.');
    return parts.map((_, i) => parts.slice(0, i + 1).join('.'));
  }));
  const walk = (node, depth) => {
    for (const child of node.children.values()) {
      if (!shown(child)) continue;
      // A chain of only children is one row: `model.layers`.
      let last = child, label = child.name;
      while (last.children.size === 1) {
        last = [...last.children.values()][0];
        label += '.' + last.name;
      }
      const natural = depth < 2 && last.children.size <= 40,
            flipped = treeOptions.open.has(last.path);
      const open = treeOptions.filter || flipped !== natural ||
          (state.kind === 'path' && state.id.startsWith(last.path + '.'));
      const arrow = last.children.size ?
          h('span', {class: 'arrow', onclick: (e) => (e.stopPropagation(), flip(last.path))},
            open ? '▾' : '▸') :
          h('span', {class: 'arrow'});
      const flip = (path) => {
        treeOptions.open.has(path) ? treeOptions.open.delete(path) : treeOptions.open.add(path);
        drawLeft();
      };
      const row = action(
          {
            tag: 'div',
            role: 'treeitem',
            'aria-expanded': last.children.size ? !!open : null,
            class: 'item' +
                (isSelected('path', last.path) ? ' exact' :
                     touched.has(last.path)    ? ' lit' :
                                                 ''),
            style: `padding-left:${6 + depth * 13}px`,
            'data-path': last.path
          },
          () => select('path', last.path), arrow, h('span', {class: 'name'}, label),
          any && root.time ? bar(last.time / root.time) : null,
          any && root.time ?
              h('span', {class: 'n'}, last.time ? percent(last.time / root.time) : '') :
              null);
      row.addEventListener('keydown', (k) => {
        if (last.children.size &&
            ((k.key === 'ArrowRight' && !open) || (k.key === 'ArrowLeft' && open)))
          flip(last.path);
      });
      rows.push(row);
      if (open) walk(last, depth + 1);
    }
  };
  walk(root, 0);
  return rows.length ?
      h('div', {role: 'tree', class: 'tree'}, rows) :
      empty(
          'No modules',
          treeOptions.filter ? 'None has that in its name.' :
                               'The graph was recorded without nn:: modules: look at its lines.');
}

function sourceRows() {
  const counts = new Map();
  data.origins.forEach((o, id) => {
    const key = data.files[o[0]] + ':' + o[1];
    counts.set(key, [...(counts.get(key) || []), id]);
  });
  const timeByOrigin = new Map();
  let total = 0;
  for (const c of callTable.get(state.entry) || []) {
    const t = timeOf(c, state.setting) || 0, set = data.sets[c.set];
    total += t;
    set.forEach((o) => timeByOrigin.set(o, (timeByOrigin.get(o) || 0) + t / set.length));
  }
  return data.files.map((file, f) => {
    const line = (number, text) => {
      const ids = counts.get(file + ':' + number),
            lit = ids && ids.some((o) => selection.origins.has(o));
      const share =
          ids && total ? ids.reduce((s, o) => s + (timeByOrigin.get(o) || 0), 0) / total : 0;
      const props = {
        tag: 'div',
        class: 'src' + (ids ? ' has' : '') +
            (isSelected('line', file + ':' + number) ? ' exact' :
                 lit                                 ? ' lit' :
                                                       ''),
        'data-line': ids ? file + ':' + number : null
      };
      const inside = [
        h('span', {class: 'gutter'}, number), h('span', {class: 'text'}, text),
        share >= 0.001 ? h('span', {class: 'n'}, percent(share)) : null
      ];
      if (ids) return action(props, () => select('line', file + ':' + number), ...inside);
      delete props.tag;
      return h('div', props, ...inside);
    };
    const known = data.sources[f];
    const numbers =
        [...new Set(data.origins.filter((o) => o[0] === f).map((o) => o[1]))].sort((a, b) => a - b);
    const body = known.length ?
        known.map(
            ([first, ...texts]) =>
                h('div', {class: 'excerpt'}, texts.map((t, i) => line(first + i, t)))) :
        h('div', {class: 'excerpt'}, numbers.map((n) => line(n, fileName(file) + ':' + n)));
    return h(
        'div', {class: 'file'},
        h('div', {class: 'filename', title: file}, fileName(file) || 'no file',
          known.length ? null : h('span', {class: 'dim'}, ' text not at hand')),
        body);
  });
}

function drawLeft() {
  const scroll = page.left.querySelector('.scroll')?.scrollTop || 0;
  const tab = (id, name) => action({class: 'tab' + (treeOptions.tab === id ? ' here' : '')}, () => {
    treeOptions.tab = id;
    drawLeft();
  }, name);
  const body =
      h('div', {class: 'scroll'}, treeOptions.tab === 'modules' ? moduleTree() : sourceRows());
  const old = page.left.querySelector('input');
  const filter = h('input', {
    type: 'search',
    placeholder: 'filter  /',
    'aria-label': 'filter modules',
    value: treeOptions.filter,
    oninput: (e) => {
      treeOptions.filter = e.target.value.toLowerCase();
      drawLeft();
    }
  });
  const focused = old && document.activeElement === old;
  fill(page.left, h('div', {class: 'tools'}, tab('source', 'Source'), tab('modules', 'Modules'),
        treeOptions.tab === 'modules' ? filter : null),
      body);
  if (focused) {
    filter.focus();
    filter.setSelectionRange(filter.value.length, filter.value.length);
  }
  body.scrollTop = scroll;
  const hit = body.querySelector('.exact, .lit');
  if (hit &&
      (hit.offsetTop < body.scrollTop || hit.offsetTop > body.scrollTop + body.clientHeight - 40))
    body.scrollTop = Math.max(0, hit.offsetTop - body.clientHeight / 3);
}

function drawRight() {
  if (!state.kind) {
    fill(page.right, h(
        'div', {class: 'hint'}, h('h2', {}, 'Nothing selected'),
        h('p', {},
          'Choose a source line, a module, an op, a kernel, a buffer or a rewrite: everything that it became, and everything that it came from, lights up in every view.'),
        h('dl', {}, [
          ['1 – 9', 'views'], ['[  ]', 'step before, after'], ['/', 'filter modules'],
          ['Tab, Enter', 'move, choose'], ['Esc', 'clear'], ['t', 'light or dark']
        ].flatMap(([k, t]) => [h('dt', {}, h('kbd', {}, k)), h('dd', {}, t)]))));
    return;
  }
  const parts =
      [h('div', {class: 'selected'}, h('span', {class: 'kind'}, state.kind),
         h('h2', {}, selection.title || state.id),
         action({class: 'clear', title: 'clear (Esc)'}, () => go({kind: '', id: ''}), '×'))];
  const ids = [...selection.origins];
  if (!ids.length) {
    parts.push(h('p', {class: 'dim'}, 'This has no recorded origin in this program.'));
    fill(page.right, ...parts);
    return;
  }
  const lines =
      [...new Map(ids.map((o) => [data.files[data.origins[o][0]] + ':' + data.origins[o][1], o]))];
  const paths = [...new Set(ids.map(originPath).filter(Boolean))];
  const textOf = (o) => {
    const [f, l] = data.origins[o];
    for (const [first, ...texts] of data.sources[f])
      if (l >= first && l < first + texts.length) return texts[l - first].trim();
    return '';
  };
  const some = (list, n, draw, word) =>
      [...list.slice(0, n).map(draw),
       list.length > n ?
           h('div', {class: 'dim more'}, `and ${plural(list.length - n, word)} more`) :
           null];
  parts.push(
      h('h3', {}, 'Recorded at'),
      some(
          lines, 5,
          ([key, o]) => action(
              {tag: 'div', class: 'ref' + (isSelected('line', key) ? ' exact' : ''), title: key},
              () => {
                treeOptions.tab = 'source';
                select('line', key);
              },
              h('span', {class: 'mono'}, originPlace(o)), h('code', {}, textOf(o))),
          'line'));
  if (paths.length)
    parts.push(
        h('h3', {}, paths.length > 1 ? plural(paths.length, 'module') : 'Module'),
        some(paths, 4, (p) => action({tag: 'div', class: 'ref mono'}, () => {
                         treeOptions.tab = 'modules';
                         select('path', p);
                       }, p), 'module'));
  parts.push(h('h3', {}, 'Through the steps'));
  const trail = h('div', {class: 'trail'});
  let before = '';
  steps.forEach((s, i) => {
    const ops = (functionsOf(s).get(state.entry) || [])
                    .filter(
                        (o) => selection.touches[o.line.set] &&
                            !['func', 'return'].includes(parse(o.line).op));
    const kinds = new Map();
    ops.forEach((o) => {
      const p = parse(o.line), name = p.kernel || shortOp(p.op);
      kinds.set(name, (kinds.get(name) || 0) + 1);
    });
    const text = [...kinds].map(([k, n]) => k + (n > 1 ? ' ×' + n : '')).join(', ');
    if (text === before && i) return;
    before = text;
    const target = ops.find((o) => FUSED.has(shortOp(parse(o.line).op))) || ops[0];
    trail.append(action(
        {
          tag: 'div',
          class: 'hop' + (i === stepIndex() && state.view === 'ir' ? ' here' : ''),
          'data-step': stepKey(i)
        },
        () => go({
          view: 'ir',
          step: stepKey(i),
          ...(state.kind === 'op' && target ? {kind: 'op', id: target.name} : {})
        }),
        h('span', {class: 'step'}, s.name), h('span', {class: 'n'}, ops.length),
        h('span', {class: 'ops'},
          ending(text, 220, true) || (i ? 'gone' : 'not in ' + state.entry))));
  });
  parts.push(trail);
  const calls = (callTable.get(state.entry) || []).filter((c) => selection.touches[c.set]);
  const total =
      (callTable.get(state.entry) || []).reduce((t, c) => t + (timeOf(c, state.setting) || 0), 0);
  parts.push(
      h('h3', {},
        `Runs as ${calls.length === 1 ? 'one call' : plural(calls.length, 'call')}` +
            (calls.length ? '' : ` in ${state.entry}`)));
  some(calls, 8, (c) => {
    const cost = costOf(c, state.setting), measured = measuredOf(c, state.setting);
    const numbers = [
      cost ? flopText(cost.flops) + 'FLOP' : '', cost ? bytesText(cost.bytes) : '',
      measured !== null ? timeText(measured) + ' measured' : '',
      cost && cost.seconds !== null ? timeText(cost.seconds) + ' predicted' : ''
    ].filter(Boolean).join(' · ');
    return action(
        {
          tag: 'div',
          class: 'ref call' + (isSelected('call', c.entry + ':' + c.index) ? ' exact' : ''),
          'data-call': c.entry + ':' + c.index
        },
        () => select(
            'call', c.entry + ':' + c.index,
            {view: ['calls', 'kernels', 'memory'].includes(state.view) ? state.view : 'kernels'}),
        h('b', {class: 'mono'}, c.kernel), h('span', {class: 'n dim'}, '#' + c.index),
        total ? bar((timeOf(c, state.setting) || 0) / total) : null,
        h('small', {}, numbers || c.path));
  }, 'call').forEach((e) => e && parts.push(e));
  const touched = rewrites.filter(
      (r) => ids.some(
          (o) => data.origins[o][3] === r.path && r.at.endsWith(':' + data.origins[o][1])));
  if (touched.length)
    parts.push(
        h('h3', {}, plural(touched.length, 'rewrite')),
        some(
            touched, 6,
            (r) => action(
                {tag: 'div', class: 'ref' + (isSelected('rewrite', r.number) ? ' exact' : '')},
                () => select('rewrite', r.number, {view: 'rewrites'}),
                h('span', {class: 'mono dim'}, r.number), ' ', h('b', {}, r.what), ' ',
                r.weakened.map((w) => h('span', {class: 'badge warn'}, w))),
            'rewrite'));
  const refused = misses.filter(
      (m) => ids.some(
          (o) => data.origins[o][3] === m.path && m.at.endsWith(':' + data.origins[o][1])));
  if (refused.length)
    parts.push(
        h('h3', {}, 'Refused fusions'),
        some(
            refused, 4,
            (m) => action(
                {tag: 'div', class: 'ref'},
                () => select('miss', misses.indexOf(m), {view: 'misses'}), h('b', {}, m.pattern),
                h('small', {}, m.reason)),
            'refusal'));
  fill(page.right, ...parts.flat().filter(Boolean));
}

function drawView() {
  const view = VIEWS.find(([id]) => id === state.view) || VIEWS[0];
  // The same view keeps where it was scrolled to.
  const scroll = page.view.dataset.view === view[0] ? page.view.querySelector('.scroll') : null,
        top = scroll ? scroll.scrollTop : 0, left = scroll ? scroll.scrollLeft : 0;
  page.view.className = 'view-' + view[0];
  page.view.dataset.view = view[0];
  fill(page.view, ...view[2]().flat().filter(Boolean));
  const now = page.view.querySelector('.scroll');
  if (scroll && now) now.scrollTop = top, now.scrollLeft = left;
}

addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  const view = VIEWS[Number(e.key) - 1];
  if (view)
    go({view: view[0]});
  else if (e.key === 'Escape')
    go({kind: '', id: ''});
  else if (e.key === '[' || e.key === ']')
    go({
      view: state.view === 'graph' ? 'graph' : 'ir',
      step: stepKey(Math.max(0, Math.min(lastStep, stepIndex() + (e.key === ']' ? 1 : -1))))
    });
  else if (e.key === '/') {
    treeOptions.tab = 'modules';
    drawLeft();
    page.left.querySelector('input').focus();
  } else if (e.key === 't') {
    const dark = getComputedStyle(document.documentElement).colorScheme.includes('dark');
    document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  } else
    return;
  e.preventDefault();
});

treeOptions.tab = data.origins.some((o) => o[3]) && !data.sources.some((s) => s.length > 2) ?
    'modules' :
    'source';
document.body.append(page.top, page.left, page.view, page.right, tip);
listeners.push(drawTop, drawLeft, drawView, drawRight);
readHash();
notify();
document.documentElement.dataset.ready = 'yes';
