// What the reader looks at, kept in the address: #view=ir&step=fuse&op=prefill:12.

const state = {
  view: 'overview',
  step: '',
  entry: '',
  setting: 0,
  kind: '',
  id: ''
};
const SELECTIONS = ['op', 'line', 'path', 'kernel', 'call', 'slot', 'rewrite', 'miss'];
const listeners = [];

const stepKey = (index) => steps.findIndex((s) => s.name === steps[index].name) === index ?
    steps[index].name :
    steps[index].name + '~' + index;
const stepIndex = () => {
  const found = steps.findIndex((s, i) => stepKey(i) === state.step);
  return found < 0 ? defaultStep() : found;
};
// The first step worth a look: the one that removed the most.
function defaultStep() {
  let best = Math.min(1, lastStep);
  for (let i = 1; i < steps.length; ++i)
    if (steps[i].stage === 'fused' && steps[i].removed > steps[best].removed) best = i;
  return best;
}

function readHash() {
  const query = new URLSearchParams(location.hash.slice(1));
  state.view = query.get('view') || (query.has('op') || query.has('step') ? 'ir' : 'overview');
  state.step = query.get('step') || '';
  state.entry = entryNamed(query.get('entry')) ? query.get('entry') : '';
  state.setting = Math.min(data.settings.length - 1, Math.max(0, Number(query.get('at')) || 0));
  state.kind = state.id = '';
  for (const kind of SELECTIONS)
    if (query.has(kind)) {
      state.kind = kind;
      state.id = query.get(kind);
    }
  const owner = /^(.*?):/.exec(['op', 'call', 'slot'].includes(state.kind) ? state.id : '');
  if (!state.entry && owner && entryNamed(owner[1])) state.entry = owner[1];
  if (!state.entry)
    state.entry = data.runs.length ? data.runs[0].entry : entries.length ? entries[0].name : '';
  if (!query.has('at')) {
    const run = data.runs.find((r) => r.entry === state.entry);
    if (run) state.setting = run.setting;
  }
}

function address(changes) {
  const next = {...state, ...changes};
  const query = new URLSearchParams();
  query.set('view', next.view);
  if (next.step) query.set('step', next.step);
  if (next.entry) query.set('entry', next.entry);
  query.set('at', next.setting);
  if (next.kind) query.set(next.kind, next.id);
  return '#' + query.toString().replace(/%3A/g, ':');
}
function go(changes) {
  const to = address(changes);
  if (to === location.hash) return notify();
  location.hash = to;
}
const select = (kind, id, more = {}) => go({kind, id: String(id), ...more});
const isSelected = (kind, id) => state.kind === kind && state.id === String(id);

// What the selection stands for: recorded lines, and the sets of them that it touches.
let selection = {origins: new Set(), touches: [], title: '', exact: ''};
function resolveSelection() {
  const origins = new Set();
  let title = state.id, exact = '';
  const addSet = (set) => setOwn[set].forEach((o) => origins.add(o));
  const findOp = (name) => {
    const order = [stepIndex(), ...steps.keys()];
    for (const i of order)
      for (const ops of functionsOf(steps[i]).values())
        for (const o of ops)
          if (o.name === name) return o;
    return null;
  };
  const addCall = (entry, index) => {
    const call = (callTable.get(entry) || [])[index];
    if (!call) return;
    addSet(call.set);
    exact = call.op;
    title = call.kernel;
  };
  const [owner, number] =
      [state.id.slice(0, state.id.lastIndexOf(':')), state.id.slice(state.id.lastIndexOf(':') + 1)];
  if (state.kind === 'op') {
    const op = findOp(state.id);
    if (op) {
      addSet(op.line.set);
      title = shortOp(parse(op.line).op) + ' %' + number;
    }
    exact = state.id;
  } else if (state.kind === 'line') {
    data.origins.forEach((o, id) => {
      if (state.id === data.files[o[0]] + ':' + o[1]) origins.add(id);
    });
    title = fileName(state.id);
  } else if (state.kind === 'path') {
    data.origins.forEach((o, id) => {
      if (o[3] === state.id || o[3].startsWith(state.id + '.')) origins.add(id);
    });
  } else if (state.kind === 'kernel') {
    callsOfKernel(state.id).forEach((c) => addSet(c.set));
  } else if (state.kind === 'call') {
    addCall(owner, Number(number));
  } else if (state.kind === 'slot') {
    const maker = (callTable.get(owner) || []).find((c) => c.results.includes(Number(number)));
    if (maker) addCall(owner, maker.index);
    title = 'buffer ' + number;
  } else if (state.kind === 'rewrite' || state.kind === 'miss') {
    const row = state.kind === 'rewrite' ? rewrites.find((r) => r.number === Number(state.id)) :
                                           misses[Number(state.id)];
    if (row) {
      data.origins.forEach((o, id) => {
        if (o[3] === row.path && row.at.endsWith(':' + o[1])) origins.add(id);
      });
      title = state.kind === 'rewrite' ? 'rewrite ' + row.number + ' · ' + row.what : row.pattern;
    }
  }
  const touches =
      setOwn.map((set) => set.length <= MANY_ORIGINS && set.some((o) => origins.has(o)));
  selection = {origins, touches, title, exact};
}

function notify() {
  resolveSelection();
  listeners.forEach((run) => run());
}
addEventListener('hashchange', () => {
  readHash();
  notify();
});
