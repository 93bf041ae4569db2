// Calls of an entry point: work, traffic, predicted and measured time, and the roofline.

const callOptions = {
  places: true,
  sort: 'time',
  down: true
};

function callRows() {
  const calls = callTable.get(state.entry) || [];
  const groups = new Map();
  for (const call of calls) {
    const key = callOptions.places ?
        call.kernel.replace(/\d+$/, '') + ' ' + layersAsOne(call.path) :
        call.index;
    if (!groups.has(key))
      groups.set(key, {
        calls: [],
        flops: 0,
        read: 0,
        written: 0,
        seconds: 0,
        measured: 0,
        known: true,
        predicted: true,
        timed: true,
        bound: 0
      });
    const g = groups.get(key), cost = costOf(call, state.setting),
          measured = measuredOf(call, state.setting);
    g.calls.push(call);
    if (cost) {
      g.flops += cost.flops;
      g.read += cost.read;
      g.written += cost.written;
      g.seconds += cost.seconds || 0;
      g.bound += cost.computeBound ? 1 : -1;
      g.narrow = cost.narrow;
    } else
      g.known = false;
    if (!cost || cost.seconds === null) g.predicted = false;
    if (measured === null)
      g.timed = false;
    else
      g.measured += measured;
  }
  return [...groups.values()].map((g) => ({
                                    ...g,
                                    bytes: g.read + g.written,
                                    intensity: g.flops / (g.read + g.written || 1),
                                    time: g.timed   ? g.measured :
                                        g.predicted ? g.seconds :
                                                      g.bytes
                                  }));
}

const BUSY =
    'Other programs ran while this machine was measured, so no share of its roofs is told.';
function roofline(rows) {
  const m = data.machine;
  if (!m || !rows.some((r) => r.known && r.flops)) return null;
  const W = 760, H = 216, L = 52, B = 30, T = 22, R = 128;
  const points = rows.filter((r) => r.known && r.flops && r.time);
  const peak = Math.max(m.narrow, m.wide);
  const xs = points.map((r) => r.intensity), ys = points.map((r) => r.flops / r.time);
  const x0 = Math.min(0.1, ...xs) / 1.5, x1 = Math.max(4 * peak / m.bandwidth, ...xs) * 1.5;
  const y1 = peak * 2, y0 = Math.min(peak / 1000, ...ys) / 2;
  const X = (v) => L + (W - L - R) * Math.log(v / x0) / Math.log(x1 / x0);
  const Y = (v) => T + (H - T - B) * (1 - Math.log(v / y0) / Math.log(y1 / y0));
  const svg =
      h('svg', {viewBox: `0 0 ${W} ${H}`, class: 'chart', role: 'img', 'aria-label': 'roofline'});
  for (let p = Math.ceil(Math.log10(x0)); 10 ** p < x1; ++p)
    svg.append(
        h('line', {x1: X(10 ** p), x2: X(10 ** p), y1: T, y2: H - B, class: 'grid'}),
        h('text', {x: X(10 ** p), y: H - B + 13, class: 'tick mid'},
          String(p < 0 ? 10 ** p : (10 ** p).toLocaleString('en'))));
  for (let p = Math.ceil(Math.log10(y0)); 10 ** p < y1; ++p)
    svg.append(
        h('line', {x1: L, x2: W - R, y1: Y(10 ** p), y2: Y(10 ** p), class: 'grid'}),
        h('text', {x: L - 6, y: Y(10 ** p) + 3.5, class: 'tick end'}, flopText(10 ** p)));
  // Both roofs, with their names beside the picture; the one that no dot is held to is faint.
  const roofs = [
    {flops: m.narrow, name: '16 bit', used: rows.some((r) => r.narrow)},
    {flops: m.wide, name: 'f32', used: rows.some((r) => r.known && !r.narrow)}
  ].sort((a, b) => b.flops - a.flops);
  if (roofs[0].flops < 1.01 * roofs[1].flops)
    roofs.splice(0, 2, {...roofs[0], name: '16 bit, f32', used: true});
  let lowest = T;
  for (const {flops, name, used} of roofs) {
    const ridge = flops / m.bandwidth, left = Math.max(x0, y0 / m.bandwidth);
    const y = lowest = Math.max(Y(flops) + 3.5, lowest);
    lowest += 13;
    svg.append(
        h('polyline', {
          points:
              `${X(left)},${Y(left * m.bandwidth)} ${X(ridge)},${Y(flops)} ${X(x1)},${Y(flops)}`,
          class: 'roof' + (used ? '' : ' quiet')
        }),
        h('text', {x: W - R + 7, y, class: 'tick' + (used ? ' strong' : '')},
          `${name}: ${flopText(flops)}FLOP/s`));
  }
  svg.append(
      h('text', {x: (L + W - R) / 2, y: H - 3, class: 'tick mid'}, 'FLOP per byte'),
      h('text', {x: L - 6, y: T - 10, class: 'tick end'}, 'FLOP/s'));
  const longest = Math.max(...points.map((r) => r.time));
  for (const r of points) {
    const lit = r.calls.some((c) => selection.touches[c.set]);
    const dot = h('circle', {
      cx: X(r.intensity),
      cy: Y(r.flops / r.time),
      r: 3 + 7 * Math.sqrt(r.time / longest),
      class: 'dot ' + (r.timed ? 'measured' : 'predicted') + (lit ? ' lit' : ''),
      tabindex: 0,
      onclick: () => select('call', state.entry + ':' + r.calls[0].index)
    });
    svg.append(withTip(
        dot,
        () => `${r.calls[0].kernel} · ${layersAsOne(r.calls[0].path) || 'no module'}\n${
                  trim(r.intensity)} FLOP/B, ${flopText(r.flops / r.time)}FLOP/s` +
            `\n${r.timed ? 'measured' : 'predicted'} ${timeText(r.time)}${
                  r.calls.length > 1 ? ' in ' + plural(r.calls.length, 'call') : ''}`));
  }
  return h(
      'figure', {}, svg,
      h('figcaption', {}, m.busy ? h('span', {class: 'badge warn'}, 'roofs too low') : null,
        m.busy ? BUSY + ' ' : null,
        `${m.name}: ${bytesText(m.bandwidth)}/s; dots are ${
            callOptions.places ? 'places' : 'calls'}, larger for longer times, ` +
            (points.some((r) => r.timed) ? 'filled where measured' : 'at their predicted time')));
}

// Faster than the traffic allows: what a call read lay in a cache.
function ofRoof(r) {
  if (r.seconds <= r.measured) return percent(r.seconds / r.measured);
  return r.bound > 0 ? '>100 %' : 'cached';
}

function callsView() {
  const rows = callRows();
  if (!rows.length) return [empty('No calls', 'This entry point runs no kernel.')];
  const total = rows.reduce(
      (t, r) => ({
        flops: t.flops + r.flops,
        bytes: t.bytes + r.bytes,
        read: t.read + r.read,
        seconds: t.seconds + r.seconds,
        measured: t.measured + r.measured,
        time: t.time + r.time
      }),
      {flops: 0, bytes: 0, read: 0, seconds: 0, measured: 0, time: 0});
  const timed = rows.some((r) => r.timed), predicted = rows.some((r) => r.predicted),
        known = rows.some((r) => r.known);
  const judged = timed && predicted && !(data.machine && data.machine.busy);
  const keys = {
    order: (r) => r.calls[0].index,
    kernel: (r) => r.calls[0].kernel,
    module: (r) => r.calls[0].path,
    flops: (r) => r.flops,
    bytes: (r) => r.bytes,
    intensity: (r) => r.intensity,
    predicted: (r) => r.seconds,
    measured: (r) => r.measured,
    time: (r) => r.time
  };
  const key = keys[callOptions.sort];
  rows.sort(
      (a, b) => (key(a) < key(b)     ? -1 :
                     key(a) > key(b) ? 1 :
                                       a.calls[0].index - b.calls[0].index) *
          (callOptions.down ? -1 : 1));
  const head = (name, text, kind = 'n') =>
      h('th', {
        class: kind,
        'aria-sort': callOptions.sort === name ? (callOptions.down ? 'descending' : 'ascending') :
                                                 null
      },
        action({}, () => {
          callOptions.down = callOptions.sort === name ?
              !callOptions.down :
              !['order', 'kernel', 'module'].includes(name);
          callOptions.sort = name;
          notify();
        }, text));
  const cell = (ok, text) => h('td', {class: 'n'}, ok ? text : '–');
  const table =
      h('table', {class: 'data'},
        h('thead', {},
          h('tr', {}, head('order', callOptions.places ? 'calls' : '#'),
            head('kernel', 'kernel', ''), head('module', 'module', ''),
            head(
                'time',
                timed         ? 'time' :
                    predicted ? 'predicted time' :
                                'bytes',
                ''),
            timed ? head('measured', 'measured') : null, head('predicted', 'predicted'),
            judged ? h('th', {class: 'n'}, 'of roof') : null, head('flops', 'FLOP'),
            head('bytes', 'bytes'), head('intensity', 'FLOP/B'), h('th', {class: 'n'}, 'bound'))),
        h('tbody', {}, rows.map((r) => {
          const c = r.calls[0], lit = r.calls.some((x) => selection.touches[x.set]);
          return action(
              {
                tag: 'tr',
                class: (lit ? 'lit' : '') +
                    (r.calls.some((x) => isSelected('call', x.entry + ':' + x.index)) ? ' exact' :
                                                                                        ''),
                'data-call': c.entry + ':' + c.index
              },
              () => select('call', c.entry + ':' + c.index),
              h('td', {class: 'n dim'}, callOptions.places ? '× ' + r.calls.length : c.index),
              h('td', {class: 'mono'},
                new Set(r.calls.map((x) => x.kernel)).size > 1 ? c.kernel.replace(/_\d+$/, 's') :
                                                                 c.kernel),
              h('td', {class: 'mono path', title: c.path},
                tail((callOptions.places ? layersAsOne(c.path) : c.path) || c.origin, 25)),
              h('td', {class: 'wide'}, bar(r.time / (total.time || 1)),
                h('span', {class: 'n'}, total.time ? percent(r.time / total.time) : '')),
              timed ? cell(r.timed, timeText(r.measured)) : null,
              cell(r.predicted, timeText(r.seconds)),
              judged ? cell(r.timed && r.predicted && r.measured, ofRoof(r)) : null,
              cell(r.known, flopText(r.flops)), cell(r.known, bytesText(r.bytes)),
              cell(r.known, trim(r.intensity)),
              h('td', {class: 'n dim'}, r.predicted ? (r.bound > 0 ? 'compute' : 'memory') : ''));
        })),
        h('tfoot', {},
          h('tr', {}, h('td', {class: 'n'}, (callTable.get(state.entry) || []).length),
            h('td', {colspan: 3}, 'all calls'), timed ? cell(true, timeText(total.measured)) : null,
            cell(predicted, timeText(total.seconds)),
            judged ? cell(total.measured, ofRoof(total)) : null, cell(known, flopText(total.flops)),
            cell(known, bytesText(total.bytes)),
            cell(known, trim(total.flops / (total.bytes || 1))), h('td', {}))));
  return [
    h('div', {class: 'tools'},
      h('span', {class: 'what'},
        `${state.entry} at ${settingText(state.setting)}` +
            (timed ? '' : '; not run: lathe run and lathe bench add measured times')),
      h('label', {}, h('input', {
          type: 'checkbox',
          checked: callOptions.places,
          onchange: (e) => {
            callOptions.places = e.target.checked;
            notify();
          }
        }),
        'layers as one')),
    h('div', {class: 'scroll'}, roofline(rows), table)
  ];
}
const settingText = (i) =>
    Object.entries(data.settings[i].symbols).map(([n, v]) => `${n} ${v}`).join(', ') ||
    'fixed sizes';
