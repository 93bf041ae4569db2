// Kernels and their code: the region's IR, vectors, LLVM IR, assembly.

const codeOptions = {
  everyEntry: false,
  language: '',
  tier: ''
};
const LANGUAGES = {
  region: 'Region (lathe)',
  vector: 'Vectors (MLIR)',
  llvm: 'LLVM IR',
  asm: 'Assembly'
};
let codeList = null;

function regionText(kernel) {
  const lines = [];
  let inside = false;
  for (const line of steps[lastStep].lines) {
    const p = parse(line);
    if (p.func) inside = p.func === kernel;
    if (inside) lines.push(shortTypes(p.text.replace(/^ {4}/, '')));
    if (inside && p.text.trim() === '}') break;
  }
  return lines;
}

function kernelsView() {
  codeList = codeList || new LongList({class: 'code plain', 'aria-label': 'kernel code'});
  const known = kernelNames.map((name) => {
    const calls = callsOfKernel(name), here = calls.filter((c) => c.entry === state.entry);
    const times = here.map((c) => timeOf(c, state.setting)).filter((t) => t !== null);
    return {name, calls, here, time: times.reduce((a, b) => a + b, 0), kind: calls[0].kind};
  });
  const most = Math.max(1e-30, ...known.map((k) => k.time));
  known.sort((a, b) => b.time - a.time || b.here.length - a.here.length);
  let chosen = known[0] && known[0].name;
  if (state.kind === 'kernel' && kernelNames.includes(state.id))
    chosen = state.id;
  else if (state.kind) {
    const hit = known.find((k) => k.calls.some((c) => c.op && c.op === selection.exact)) ||
        known.find((k) => k.kind === 'region' && k.here.some((c) => selection.touches[c.set])) ||
        known.find((k) => k.here.some((c) => selection.touches[c.set]));
    if (hit) chosen = hit.name;
  }
  // Those of other entry points are shown when asked for.
  const isHere = (k) => k.here.length || k.name === chosen;
  const elsewhere = known.filter((k) => !isHere(k)).length;
  const list = h(
      'div', {class: 'kernels', role: 'listbox', 'aria-label': 'kernels'},
      known.filter((k) => codeOptions.everyEntry || isHere(k))
          .map(
              (k) => action(
                  {
                    tag: 'div',
                    role: 'option',
                    'aria-selected': k.name === chosen,
                    'data-kernel': k.name,
                    class: 'kernel' + (k.name === chosen ? ' here' : '') +
                        (k.calls.some((c) => selection.touches[c.set]) ? ' lit' : '')
                  },
                  () => select('kernel', k.name), h('span', {class: 'mono'}, k.name),
                  h('span', {class: 'n dim'}, k.here.length ? '× ' + k.here.length : 'other entry'),
                  bar(k.time / most),
                  h('span', {class: 'path'}, layersAsOne((k.here[0] || k.calls[0]).path)))),
      elsewhere ? action(
                      {class: 'elsewhere', 'aria-expanded': codeOptions.everyEntry},
                      () => {
                        codeOptions.everyEntry = !codeOptions.everyEntry;
                        notify();
                      },
                      (codeOptions.everyEntry ? 'hide ' : 'show ') + plural(elsewhere, 'kernel') +
                          ' of other entries') :
                  null);
  if (!chosen) return [empty('No kernels', 'The program calls nothing.')];
  const texts = data.code.filter((c) => c.kernel === chosen);
  const tiers = [...new Set(texts.map((c) => c.tier))];
  const tier = tiers.includes(codeOptions.tier) ? codeOptions.tier : tiers[tiers.length - 1] || '';
  const region = regionText(chosen);
  const languages = [
    ...(region.length ? ['region'] : []),
    ...texts.filter((c) => c.tier === tier).map((c) => c.language)
  ];
  const language = languages.includes(codeOptions.language) ? codeOptions.language : languages[0];
  const lines = language === 'region' ? region :
      language ? texts.find((c) => c.tier === tier && c.language === language)
                     .lines.map((i) => data.codeLines[i].replaceAll('\t', '    ')) :
                 [];
  const calls = callsOfKernel(chosen);
  codeList.set(
      lines.length,
      (i) =>
          h('div', {class: 'row'}, h('span', {class: 'gutter'}, i + 1),
            coloured(lines[i], h('span', {class: 'text'}))),
      Math.max(60, ...lines.map((l) => l.length)) + 8);
  const config = calls[0] && calls[0].config !== '{}' ? calls[0].config : '';
  return [h(
      'div', {class: 'split'}, list,
      h('div', {class: 'pane'},
        h('div', {class: 'tools'},
          languages.map(
              (l) => action(
                  {class: 'tab' + (l === language ? ' here' : '')},
                  () => {
                    codeOptions.language = l;
                    notify();
                  },
                  LANGUAGES[l])),
          tiers.length > 1 ? choice(
                                 'tier', tiers.map((t) => [t, t]), tier,
                                 (t) => {
                                   codeOptions.tier = t;
                                   notify();
                                 }) :
              tier ? h('span', {class: 'what'}, tier) :
                     null),
        lines.length ? codeList.node :
                       empty(
                           chosen + ' is part of the backend',
                           'Its code comes with Lathe and is not generated for this model.' +
                               (config ? ' The call gives it ' + config + '.' : ''))))];
}
