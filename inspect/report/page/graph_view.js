// The graph of an entry point after a step, folded by module path. Weights and constants are left
// out; layers that look alike are one node until they are opened.

const graphOptions = {
  open: null,
  key: ''
};
const NODES_AT_FIRST = 26;
const MANY_USERS = 4;  // a value with more users is named at each of them instead of drawn

// What an entry point takes and gives, from the text of its function: [{name, kind, type}] in
// order.
const PORT = /\{lathe\.(name|state) = (?:"((?:[^"\\]|\\.)*)"|@([\w.$-]+))\}/;
function portsOf(text, types) {
  const [, taken, given] = /^(.*?)\) -> (.*)$/.exec(text) || [null, text, ''];
  const read = (part) =>
      part.split(/(?=%arg\d+: )|(?<=[>}]), (?=tensor<)/)
          .filter((p) => p.includes('tensor<'))
          .map((p) => {
            const m = PORT.exec(p);
            return {name: m ? m[2] || m[3] : '', isState: !!m && m[1] === 'state'};
          });
  return {
    inputs:
        read(taken).map((p, i) => ({...p, kind: p.isState ? 'state' : 'input', type: types[i]})),
    outputs: read(given).map((p) => ({...p, kind: p.isState ? 'new state' : 'output'}))
  };
}

// {ops, tree}: ops with the values they use; the tree of modules with what they hold. What goes in
// and out are ops of their own kind.
function graphOf(step, entry) {
  step.graphs = step.graphs || {};
  if (step.graphs[entry]) return step.graphs[entry];
  const ops = [], makers = new Map();
  const add = (op) => {
    ops.push({path: '', from: [], ...op, id: ops.length});
    return ops.length - 1;
  };
  const valuesOf = (uses) => uses.map((u) => ({...makers.get(u.name), result: u.result}))
                                 .filter((v) => v.id !== undefined);
  let ports = {inputs: [], outputs: []};
  for (const {line, name} of functionsOf(step).get(entry) || []) {
    const p = parse(line);
    if (p.func) {
      ports = portsOf(line.text, line.types);
      ports.inputs.forEach((port, i) => makers.set('%arg' + i, {
        id: add({label: port.name || 'argument ' + i, port, types: [port.type]})
      }));
    } else if (p.op === 'return') {
      valuesOf(p.uses).forEach((v, i) => {
        const port = ports.outputs[i] || {kind: 'output', name: ''};
        add({label: port.name || 'result ' + i, port, from: [v], types: []});
      });
    } else if (!['lathe.weight', 'lathe.constant'].includes(p.op)) {
      const id = add({
        name,
        line,
        label: p.kernel || shortOp(p.op),
        path: setPath[line.set],
        types: line.types,
        from: valuesOf(p.uses)
      });
      p.results.forEach((r) => makers.set(r, {id}));
    }
  }
  const root = {path: '', name: entry, children: new Map(), ops: [], all: []};
  for (const op of ops) {
    let node = root;
    node.all.push(op);
    for (const part of op.path ? op.path.split('.') : []) {
      const path = node.path ? node.path + '.' + part : part;
      if (!node.children.has(part))
        node.children.set(
            part, {path, name: part, parent: node, children: new Map(), ops: [], all: []});
      node = node.children.get(part);
      node.all.push(op);
    }
    node.ops.push(op);
  }
  return (step.graphs[entry] = {ops, root});
}
const likeness = (node) => node.all.map((o) => o.label.replace(/\d+$/, '')).join();

// Modules that are opened at first: level by level while the picture stays small.
function openAtFirst(root) {
  const open = new Set(['']);
  for (let level = [root]; level.length;) {
    const next = level.flatMap((n) => [...n.children.values()]);
    for (const node of next) {
      const size = (n) => visibleParts(n, open).length;
      // One layer stands for all at first.
      if (/^\d+$/.test(node.name) && node.parent.children.keys().next().value !== node.name)
        continue;
      open.add(node.path);
      if (size(root) > NODES_AT_FIRST) open.delete(node.path);
    }
    level = next.filter((n) => open.has(n.path));
  }
  return open;
}
// What is drawn for a module that is open: its ops, its closed modules, and those of open ones.
// Numbered neighbours that are alike make one part until the reader opens the run.
function visibleParts(node, open) {
  const parts = node.ops.filter((op) => !op.port).map((op) => ({op, members: [op]}));
  // The states of all layers are one part, and so are their next values.
  const ports = new Map();
  for (const op of node.ops.filter((op) => op.port)) {
    const key = op.port.kind + ' ' + layersAsOne(op.label);
    if (!ports.has(key)) ports.set(key, {port: op, members: []});
    ports.get(key).members.push(op);
  }
  parts.push(...ports.values());
  const children = [...node.children.values()];
  for (let i = 0; i < children.length;) {
    const child = children[i];
    let end = i + 1;
    if (/^\d+$/.test(child.name))
      while (end < children.length && /^\d+$/.test(children[end].name) &&
             likeness(children[end]) === likeness(child))
        ++end;
    const runKey = child.path + '…' + children[end - 1].name;
    if (end - i > 2 && !open.has(runKey)) {
      if (open.has(child.path)) parts.push(...visibleParts(child, open));
      const rest = children.slice(open.has(child.path) ? i + 1 : i, end);
      parts.push({run: rest, like: child, key: runKey, members: rest.flatMap((n) => n.all)});
    } else {
      for (const c of children.slice(i, end))
        parts.push(...(open.has(c.path) ? visibleParts(c, open) : [{group: c, members: c.all}]));
    }
    i = end;
  }
  return parts;
}

// Ranks by longest path, an order in each rank by the middle of the neighbours, then places.
function layOut(parts) {
  const partOf = new Map();
  parts.forEach((p, i) => p.members.forEach((op) => partOf.set(op.id, i)));
  parts.forEach((p) => (p.to = new Map(), p.from = new Set(), p.named = []));
  const firstOf = (p) => Math.min(...p.members.map((m) => m.id));
  parts.forEach((p) => (p.first = firstOf(p)));
  const typeOf = new Map(parts.flatMap((p) => p.members.map((op) => [op.id, op.types])));
  parts.forEach((p, i) => p.members.forEach((op) => op.from.forEach(({id, result}) => {
    const j = partOf.get(id);
    if (j === undefined || j === i || parts[j].first > p.first)
      return;  // back into an earlier module
    if (!parts[j].to.has(i)) parts[j].to.set(i, new Set());
    parts[j].to.get(i).add(typeOf.get(id)[result]);
    p.from.add(j);
  })));
  parts.forEach((p, i) => {
    p.types = [...new Set([...p.to.values()].flatMap((types) => [...types]))];
    if (p.to.size <= MANY_USERS) return;
    for (const j of p.to.keys()) {
      parts[j].named.push(p);
      parts[j].from.delete(i);
    }
    p.to.clear();
  });
  const order = parts.map((_, i) => i).sort((a, b) => parts[a].first - parts[b].first);
  for (const i of order)
    parts[i].rank = Math.max(-1, ...[...parts[i].from].map((j) => parts[j].rank)) + 1;
  // Sources stand just above their first user.
  for (const i of [...order].reverse())
    if (!parts[i].from.size && parts[i].to.size)
      parts[i].rank =
          Math.max(0, Math.min(...[...parts[i].to.keys()].map((j) => parts[j].rank)) - 1);
  // Results stand below all that is computed.
  const last = Math.max(0, ...parts.map((p) => p.rank));
  const isResult = (p) => p.port && !p.to.size && p.from.size;
  if (parts.some((p) => !isResult(p)))
    parts.filter(isResult).forEach((p) => (p.rank = Math.max(p.rank, last)));
  const ranks = [];
  const cells = parts.map((p, i) => ({part: i, rank: p.rank, up: [], down: []}));
  const links = [];
  parts.forEach((p, i) => p.to.forEach((types, j) => {
    let last = cells[i];
    const points = [last];
    for (let r = p.rank + 1; r < parts[j].rank; ++r) {
      const cell = {part: -1, rank: r, up: [], down: []};
      cells.push(cell);
      last.down.push(cell);
      cell.up.push(last);
      points.push(cell);
      last = cell;
    }
    last.down.push(cells[j]);
    cells[j].up.push(last);
    points.push(cells[j]);
    links.push({points, from: i, to: j, types: [...types]});
  }));
  cells.forEach((c) => (ranks[c.rank] = ranks[c.rank] || []).push(c));
  for (let r = 0; r < ranks.length; ++r)
    (ranks[r] = ranks[r] || []).forEach((c, i) => (c.order = i));
  const middle = (list, fallback) =>
      list.length ? list.reduce((s, c) => s + c.order, 0) / list.length : fallback;
  for (let sweep = 0; sweep < 6; ++sweep)
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      rank.forEach((c) => (c.weight = middle(sweep % 2 ? c.down : c.up, c.order)));
      rank.sort((a, b) => a.weight - b.weight || a.order - b.order)
          .forEach((c, i) => (c.order = i));
    }
  const widthOf = (c) => (c.part < 0 ? 16 : NODE_W + 18);
  let widest = 0;
  for (const rank of ranks) {
    let x = 0;
    for (const c of rank) {
      c.x = x + widthOf(c) / 2;
      x += widthOf(c);
    }
    rank.width = x;
    widest = Math.max(widest, x);
  }
  for (const rank of ranks) rank.forEach((c) => (c.x += (widest - rank.width) / 2));
  // Towards the neighbours, as far as the order leaves room.
  for (let sweep = 0; sweep < 8; ++sweep)
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      rank.forEach((c) => {
        const near = [...c.up, ...c.down];
        if (near.length)
          c.want = near.reduce((s, n) => s + n.x, 0) / near.length;
        else
          c.want = c.x;
      });
      for (let i = 0; i < rank.length; ++i) {
        const left = i ? rank[i - 1].x + (widthOf(rank[i - 1]) + widthOf(rank[i])) / 2 :
                         widthOf(rank[i]) / 2;
        const right = i + 1 < rank.length ?
            rank[i + 1].x - (widthOf(rank[i + 1]) + widthOf(rank[i])) / 2 :
            Infinity;
        rank[i].x = Math.max(left, Math.min(rank[i].want, Math.max(right, left)));
      }
    }
  const right = Math.max(...cells.map((c) => c.x + widthOf(c) / 2));
  return {cells, links, ranks, width: Math.max(right, widest)};
}
const NODE_W = 176, NODE_H = 36, RANK_H = 74;

function graphView() {
  const index = stepIndex(), step = steps[index], {root, ops} = graphOf(step, state.entry);
  if (!ops.length)
    return [
      graphTools(index),
      empty('No graph', `There is no entry point '${state.entry}' after this step.`)
    ];
  const key = index + state.entry;
  if (graphOptions.key !== key) {
    graphOptions.key = key;
    graphOptions.open = openAtFirst(root);
  }
  const parts = visibleParts(root, graphOptions.open);
  const times = new Map();
  let total = 0;
  for (const call of callTable.get(state.entry) || []) {
    const t = timeOf(call, state.setting);
    if (t === null) continue;
    total += t;
    times.set(call.path, (times.get(call.path) || 0) + t);
  }
  const timeOfPart = (p) => {
    let sum = 0;
    const paths = new Set(p.members.map((m) => m.path));
    if (p.op || p.port) return 0;
    for (const [path, t] of times)
      if (paths.has(path)) sum += t;
    return sum;
  };
  const {cells, links, ranks, width} = layOut(parts);
  const W = width + 40, H = ranks.length * RANK_H + 30;
  const X = (c) => c.x + 20, Y = (c) => c.rank * RANK_H + 14;
  const svg = h('svg', {
    viewBox: `0 0 ${W} ${H}`,
    width: W,
    height: H,
    class: 'graph',
    role: 'img',
    'aria-label': 'graph'
  });
  const lit = (p) => p.members.some((m) => m.line && selection.touches[m.line.set]);
  const arrow =
      h('marker', {
        id: 'arrow',
        viewBox: '0 0 6 6',
        refX: 5,
        refY: 3,
        markerWidth: 6,
        markerHeight: 6,
        orient: 'auto'
      },
        h('path', {d: 'M0,0L6,3L0,6z'}));
  svg.append(h('defs', {}, arrow));
  // Between two ranks a line bends; beside the nodes of a rank that it passes it is straight.
  for (const l of links) {
    let d = '';
    l.points.forEach((c, i) => {
      const top = Y(c), bottom = Y(c) + NODE_H;
      if (!i) return void (d = `M${X(c)},${bottom}`);
      const b = l.points[i - 1], mid = (Y(b) + NODE_H + top) / 2;
      d += `C${X(b)},${mid} ${X(c)},${mid} ${X(c)},${top}`;
      if (c.part < 0) d += `L${X(c)},${bottom}`;
    });
    const edge = h('path', {
      d,
      class: 'edge' + (lit(parts[l.from]) && lit(parts[l.to]) ? ' lit' : ''),
      'marker-end': 'url(#arrow)'
    });
    svg.append(withTip(edge, l.types.join('\n')));
  }
  for (const c of cells) {
    if (c.part < 0) continue;
    const p = parts[c.part], x = X(c) - NODE_W / 2, y = Y(c);
    let title, sub, act = null, kind, open = null;
    if (p.port) {
      const many = p.members.length > 1;
      title = many ? layersAsOne(p.port.label) : p.port.label;
      sub = many ? plural(p.members.length, p.port.port.kind) : p.port.port.kind;
      kind = 'port';
    } else if (p.op) {
      title = p.op.label;
      sub = p.op.path.split('.').slice(-2).join('.');
      act = () => select('op', p.op.name);
      kind = FUSED.has(p.op.label.replace(/_\d+$/, '')) ||
              p.op.label !== shortOp(parse(p.op.line).op) ?
          'op fused' :
          'op';
    } else if (p.group) {
      title = p.group.path.split('.').slice(-3).join('.');
      sub = plural(p.members.length, 'op');
      act = () => select('path', p.group.path);
      open = p.group.path;
      kind = 'group';
    } else {
      title = `${p.run[0].path.split('.').slice(-2).join('.')} … ${p.run[p.run.length - 1].name}`;
      sub = `${p.run.length} alike, ${plural(p.like.all.length, 'op')} each`;
      act = () => select('path', p.run[0].path);
      open = p.key;
      kind = 'group run';
    }
    const share = total ? timeOfPart(p) / total : 0;
    const unfold = () => {
      graphOptions.open.add(open);
      notify();
    };
    const exact = p.op && p.op.name === selection.exact;
    const g =
        h('g', {
          class: 'node ' + kind +
              (exact      ? ' exact' :
                   lit(p) ? ' lit' :
                            ''),
          transform: `translate(${x},${y})`,
          tabindex: act ? 0 : null,
          role: act ? 'button' : null,
          'data-port': p.port ? p.port.label : null,
          'aria-label': title + ', ' + sub,
          onclick: act,
          ondblclick: open ? unfold : null,
          onkeydown: (k) => {
            if (act && (k.key === 'Enter' || k.key === ' ')) k.preventDefault(), act();
            if (open && (k.key === '+' || k.key === 'ArrowRight')) unfold();
          }
        },
          kind.includes('run') ?
              h('rect', {x: 4, y: 4, width: NODE_W, height: NODE_H, rx: 4, class: 'behind'}) :
              null,
          h('rect', {width: NODE_W, height: NODE_H, rx: p.port ? NODE_H / 2 : 4, class: 'box'}),
          share > 0.004 ?
              h('rect', {x: 0, y: NODE_H - 3, width: NODE_W * share, height: 3, class: 'heat'}) :
              null,
          h('text', {x: p.port ? 16 : 9, y: 15, class: 'title'}, ending(title, open ? 20 : 22)),
          h('text', {x: p.port ? 16 : 9, y: 28, class: 'sub'},
            ending(sub, 30, true) + (share > 0.004 ? '  ' + percent(share) : '')));
    if (open) {
      const plus =
          h('g', {class: 'plus', onclick: (e) => (e.stopPropagation(), unfold())},
            h('rect', {x: NODE_W - 24, y: 4, width: 20, height: 20, rx: 3}),
            h('text', {x: NODE_W - 14, y: 18.5, class: 'mid'}, '+'));
      g.append(withTip(plus, 'open the module (→)'));
    }
    // What flows out of a node stands below it, where its lines begin.
    if (p.types.length)
      g.append(
          h('text', {x: NODE_W / 2 + 5, y: NODE_H + 12, class: 'type'},
            ending(p.types[0], 27, true) + (p.types.length > 1 ? ` +${p.types.length - 1}` : '')));
    if (p.named.length) {
      const names = [...new Set(
          p.named.map((n) => (n.op || n.port || {}).label || (n.group || n.like).path))];
      g.append(
          h('text', {x: NODE_W + 3, y: 12, class: 'named'},
            '← ' + ending(names.join(', '), 16, true)));
    }
    svg.append(withTip(
        g,
        () => title + '\n' + (p.op ? shortTypes(parse(p.op.line).text).trim().slice(0, 240) : sub) +
            p.types.map((t) => '\n→ ' + t).join('') +
            (p.named.length ? '\nuses ' +
                     p.named
                         .map(
                             (n) => n.op ? n.op.label + ' ' + n.op.path :
                                 n.port  ? n.port.label :
                                           (n.group || n.like).path)
                         .join(', ') :
                              '')));
  }
  const pan = h('div', {class: 'scroll pan', tabindex: 0}, svg);
  queueMicrotask(() => {
    const hit = svg.querySelector('.exact, .node.lit');
    if (hit)
      hit.scrollIntoView({block: 'nearest', inline: 'nearest'});
    else
      pan.scrollLeft = Math.max(0, (W - pan.clientWidth) / 2);
  });
  return [graphTools(index, parts.length), pan];
}
const ending = (text, n, start = false) => text.length <= n ? text :
    start                                                   ? text.slice(0, n - 1) + '…' :
                                                              '…' + text.slice(text.length - n + 1);

function graphTools(index, count) {
  return h(
      'div', {class: 'tools'},
      choice(
          'after', steps.map((s, i) => [stepKey(i), s.stage + ': ' + s.name]), stepKey(index),
          (step) => go({step})),
      count ?
          h('span', {class: 'what'}, plural(count, 'node') + '; weights and constants left out') :
          null,
      action({class: 'tab'}, () => {
        graphOptions.key = '';
        notify();
      }, 'fold'), action({class: 'tab'}, () => {
        const walk = (n) => [...n.children.values()].forEach(
            (c) => (graphOptions.open.add(c.path), walk(c)));
        walk(graphOf(steps[index], state.entry).root);
        notify();
      }, 'open modules'));
}
