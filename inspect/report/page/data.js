'use strict';
// The data of the page, and what follows from it: texts of the steps, what each line is, who made
// it.

const data = JSON.parse(document.getElementById('data').textContent);
const HOLE = '\x7f';
const formParts = data.forms.map((form) => form.split(HOLE));

class Line {
  constructor(form, set, holes) {
    this.form = form;
    this.set = set;
    this.holes = holes;
  }
  /// Types of what the line defines, or of a function's arguments: "f32[batch, seq, 64]".
  get types() {
    return data.formTypes[this.form];
  }
  get text() {
    const parts = formParts[this.form];
    let text = parts[0];
    for (let i = 0; i < this.holes.length; ++i) text += this.holes[i] + parts[i + 1];
    return text;
  }
}

function decodeLines(flat) {
  const lines = [];
  for (let i = 0; i < flat.length;) {
    const count = formParts[flat[i]].length - 1;
    lines.push(new Line(flat[i], flat[i + 1], flat.slice(i + 2, i + 2 + count)));
    i += 2 + count;
  }
  return lines;
}

// Per step: its lines, and the rows of its diff {sign, line}. Lines that stay are shared objects.
const steps = [];
for (const s of data.steps) {
  const before = steps.length ? steps[steps.length - 1].lines : [];
  const lines = [], rows = [];
  let at = 0, added = 0, removed = 0;
  const keep = (end) => {
    for (; at < end; ++at) {
      lines.push(before[at]);
      rows.push({sign: ' ', line: before[at]});
    }
  };
  for (const [start, count, flat] of s.edits) {
    keep(start);
    for (; at < start + count; ++at) rows.push({sign: '-', line: before[at]});
    for (const line of decodeLines(flat)) {
      lines.push(line);
      rows.push({sign: '+', line});
      ++added;
    }
    removed += count;
  }
  keep(before.length);
  steps.push({stage: s.stage, name: s.step, lines, rows, added, removed});
}
const lastStep = steps.length - 1;

// Origins and sets of them.
const originPath = (id) => data.origins[id][3];
const fileName = (path) => path.slice(path.lastIndexOf('/') + 1);
const originPlace = (id) => fileName(data.files[data.origins[id][0]]) + ':' + data.origins[id][1];
const blockOf = (path) => {
  const found = /^(.*?(?:^|\.)\d+)(?:\.|$)/.exec(path);
  return found ? found[1] : '';
};
// What one line of IR is said to come from: the innermost module if all of its origins are in one
// another, else that of its first origin.
const setPath = data.sets.map((set) => {
  const paths = [...new Set(set.map(originPath).filter(Boolean))];
  const longest = paths.reduce((a, b) => (b.length > a.length ? b : a), '');
  return paths.every((p) => p === longest || longest.startsWith(p + '.')) ?
      longest :
      originPath(set[0]) || paths[0];
});
// A value that layers share gives its origins to what each of them makes of it: of such a set, the
// origins in the layer of the first count.
const setOwn = data.sets.map((set) => {
  const first = set.length ? blockOf(originPath(set[0])) : '';
  return set.filter((o) => !first || !blockOf(originPath(o)) || blockOf(originPath(o)) === first);
});
// Sets of very many origins are those of whole functions: they would light up with everything.
const MANY_ORIGINS = 48;

// What a line defines, uses and is called.
const parsed = new WeakMap();
function parse(line) {
  let known = parsed.get(line);
  if (known) return known;
  const text = line.text;
  const func = /^\s*func\.func (?:private )?@([\w.$-]+)/.exec(text);
  const op = /^\s*(?:(%[\w#:, %]+?) = )?"?([a-z_]+\.[a-z_]+|return|module)"?/.exec(text);
  const head = op && op[1] ? op[1] : '';
  const results = head ? head.split(',').map((r) => r.trim().replace(/:\d+$/, '')) : [];
  const uses = [];
  if (!func) {
    const body = text.slice(text.indexOf(head) + head.length).replace(/"(?:[^"\\]|\\.)*"/g, '');
    for (const [, name, result] of body.matchAll(/(%[A-Za-z0-9_]+)(?:#(\d+))?/g))
      uses.push({name, result: Number(result || 0)});
  }
  const callee = /lathe\.kernel "([^"]*)"(?: @([\w.$-]+))?/.exec(text);
  known = {
    text,
    func: func ? func[1] : '',
    op: func ? 'func' :
        op   ? op[2] :
               '',
    results,
    uses,
    kernel: callee ? callee[2] || callee[1] : '',
  };
  parsed.set(line, known);
  return known;
}

// Ops of a step by function: [{line, row, name}], in order; `name` is `prefill:12` for
// what defines %12: a sign of percent does not survive in addresses.
function functionsOf(step) {
  if (step.functions) return step.functions;
  const functions = new Map();
  let current = '';
  step.lines.forEach((line, index) => {
    const p = parse(line);
    if (p.func) current = p.func;
    if (!p.op || p.op === 'module' || (!current && !p.op.startsWith('lathe.'))) return;
    if (!functions.has(current)) functions.set(current, []);
    functions.get(current).push({line, index, name: opName(current, p)});
  });
  step.functions = functions;
  return functions;
}
function opName(func, p) {
  return func + ':' + (p.results[0] ? p.results[0].slice(1) : p.func ? 'func' : p.op);
}
const shortOp = (op) => op.replace(/^lathe\./, '');

// Calls of the program by entry: what ran, for whom, at what cost.
const entries = data.program.entries;
const entryNamed = (name) => entries.find((e) => e.name === name);
const callTable = new Map();
for (const entry of entries) {
  const kernels =
      (functionsOf(steps[lastStep]).get(entry.name) || []).filter((o) => parse(o.line).kernel);
  callTable.set(entry.name, entry.calls.map((call, index) => {
    // Copies that the program adds at the end of an entry point stand on no line of IR.
    const at = kernels[index];
    const set = at ? at.line.set : 0;
    const path = at ? setPath[set] : call[5].split(' ')[0];
    return {
      entry: entry.name,
      index,
      kind: call[0],
      kernel: call[1] || call[0],
      config: call[2],
      operands: call[3],
      results: call[4],
      origin: call[5],
      set,
      path,
      op: at ? at.name : '',
    };
  }));
}
const layersAsOne = (path) => path.replace(/(^|\.)\d+(?=\.|$)/g, '$1*');

// Numbers of one call at a setting: null where the backend did not say.
function costOf(call, setting) {
  const c = data.settings[setting].entries[call.entry].calls[call.index];
  if (!c) return null;
  return {
    flops: c[0],
    read: c[1],
    written: c[2],
    bytes: c[1] + c[2],
    narrow: !!c[3],
    seconds: c.length > 4 ? c[4] : null,
    computeBound: !!c[5]
  };
}
function runOf(entry, setting) {
  return data.runs.find((r) => r.entry === entry && r.setting === setting) ||
      data.runs.find((r) => r.entry === entry) || null;
}
function measuredOf(call, setting) {
  const run = data.runs.find((r) => r.entry === call.entry && r.setting === setting);
  return run && run.calls[call.index][0] ? run.calls[call.index][1] : null;
}
// The best knowledge of a call's time: measured, else predicted.
function timeOf(call, setting) {
  const measured = measuredOf(call, setting);
  if (measured !== null) return measured;
  const cost = costOf(call, setting);
  return cost && cost.seconds !== null ? cost.seconds : null;
}

const rewrites = data.rewrites.map(([number, attempt, step, what, at, path, ...weakened]) => ({
                                     number,
                                     attempt,
                                     step: data.texts[step],
                                     what: data.texts[what],
                                     at: data.texts[at],
                                     path: data.texts[path],
                                     weakened: weakened.map((id) => data.texts[id]),
                                   }));
const misses = data.misses.map(([op, at, path, pattern, matched, of, constraint, reason, by]) => ({
                                 op: data.texts[op],
                                 at: data.texts[at],
                                 path: data.texts[path],
                                 pattern: data.texts[pattern],
                                 matched,
                                 of,
                                 constraint: data.texts[constraint],
                                 reason: data.texts[reason],
                                 by: data.texts[by],
                               }));

const kernelNames =
    [...new Set(entries.flatMap((e) => callTable.get(e.name).map((c) => c.kernel)))];
const callsOfKernel = (kernel) =>
    entries.flatMap((e) => callTable.get(e.name).filter((c) => c.kernel === kernel));
