// SPDX-License-Identifier: BSD-2-Clause
// A tree of the block "trees": totals, where each node stands, search. Knows of no pixels.

const TRUNK = 0.9; // of the whole

/**
 * Totals of nodes, each one's children, largest first, and how many levels there are below it. `up`: 1 for callers of a
 * sandwich, which are no part of its root's total.
 * @param {{parent: number[], self: number[], up?: number[]}} tree
 */
export function inTotal({parent, self, up}) {
  const total = Float64Array.from(self);
  const children = parent.map(() => []);
  const height = new Uint32Array(parent.length);
  for (let i = parent.length - 1; i > 0; i--) {
    if (!up?.[i] || parent[i] > 0) total[parent[i]] += total[i];
    children[parent[i]].push(i);
    if (total[i] > 0) height[parent[i]] = Math.max(height[parent[i]], height[i] + 1);
  }
  for (const list of children) list.sort((a, b) => total[b] - total[a] || a - b);
  return {total, children, height};
}

export class Tree {
  /** @param {any} source a tree of the block @param {boolean} [before] widths are those of the other side */
  constructor(source, before = false) {
    Object.assign(this, source);
    this.source = source;
    this.size = source.parent.length;
    this.compared = source.before?.some((x) => x !== 0) === true;
    before &&= this.compared;
    const now = inTotal(source);
    const then = this.compared && inTotal({...source, self: source.before});
    [this.now, this.then] = [now.total, then.total];
    this.own = before ? source.before : source.self;
    ({total: this.total, children: this.children, height: this.height} = before ? then : now);
    this.#layOut();
  }

  /** `start` and `depth` of each node; `rows`: the nodes of a depth as a lane, whose `name` is the node; callers come first. */
  #layOut() {
    this.start = new Float64Array(this.size);
    this.depth = new Uint32Array(this.size);
    this.place = new Uint32Array(this.size); // in its row
    this.rows = this.#rowsOf(0);
    if (this.up) this.rows.unshift(...this.#rowsOf(1).slice(1).reverse());
    for (const [depth, {name}] of this.rows.entries())
      for (const [place, i] of name.entries()) [this.depth[i], this.place[i]] = [depth, place];
  }

  /** From the root to its callees (0) or callers (1). */
  #rowsOf(up) {
    const rows = [];
    for (let row = [0], below; row.length > 0; row = below) {
      rows.push({
        start: Float64Array.from(row, (i) => this.start[i]),
        duration: Float64Array.from(row, (i) => this.total[i]),
        name: Uint32Array.from(row),
      });
      below = [];
      for (const i of row) {
        let at = this.start[i];
        for (const child of this.children[i]) {
          if (this.total[child] === 0) break; // nor have those behind it anything
          if ((this.up?.[child] ?? 0) !== up) continue;
          this.start[child] = at;
          below.push(child);
          at += this.total[child];
        }
      }
    }
    return rows;
  }

  end(i) {
    return this.start[i] + this.total[i];
  }

  /** From the root to the node. */
  path(i) {
    const path = [];
    for (let at = i; at >= 0; at = this.parent[at]) path.unshift(at);
    return path;
  }

  /** The innermost node that has nearly all of the tree, and more than one thing below it. */
  trunk() {
    let at = 0;
    for (let next = 0; this.children[next].length > 0 && this.total[next] >= TRUNK * this.total[0]; )
      [at, next] = [next, this.children[next][0]];
    return at;
  }

  /** -1 (it is gone) to 1 (it is new): how much of the larger side the change is. */
  change(i) {
    const [now, then] = [this.now[i], this.then[i]];
    return now === then ? 0 : (now - then) / Math.max(now, then);
  }

  /**
   * Nodes whose name matches (1 by number of the name), and how much they have together, each part counted once.
   * `most`: if all that is not drawn by itself (`hidden`, the number of its name) matched, too.
   */
  search(match, hidden = -1) {
    const nodes = new Uint8Array(this.size);
    const inside = new Uint8Array(this.size);
    let [count, sum, undrawn] = [0, 0, 0];
    for (let i = 1; i < this.size; i++) {
      const within = inside[this.parent[i]];
      nodes[i] = match[this.name[i]];
      inside[i] = within | nodes[i];
      count += nodes[i];
      if (nodes[i] && !within && !this.up?.[i]) sum += this.total[i];
      if (this.name[i] === hidden && !inside[i]) undrawn += this.total[i];
    }
    const all = this.total[0] || 1;
    return {nodes, count, share: sum / all, most: (sum + undrawn) / all};
  }

  /** Where an arrow leads: 'parent', 'child' (the widest), 'next' or 'previous' of the same depth; the node itself at an end. */
  neighbour(i, where) {
    const row = this.rows[this.depth[i]].name;
    switch (where) {
      case 'parent':
        return Math.max(0, this.parent[i]);
      case 'child':
        return this.total[this.children[i][0]] > 0 ? this.children[i][0] : i;
      case 'next':
        return row[this.place[i] + 1] ?? i;
      default:
        return row[this.place[i] - 1] ?? i;
    }
  }
}

/**
 * All that calls `name` (a number), and all that it calls, as a tree of the block whose root is `name`: callers have `up` 1.
 * Of calls in calls of the same name the outermost count.
 * @param {Tree} tree
 */
export function sandwich(tree, name) {
  const out = {...tree.source, parent: [-1], name: [name], kind: [0], self: [0], before: undefined, count: [0], up: [0]};
  const known = new Map();
  const child = (parent, of, up) => {
    const key = `${parent} ${tree.name[of]} ${tree.kind[of]} ${up}`;
    let i = known.get(key);
    if (i === undefined) {
      known.set(key, (i = out.parent.push(parent) - 1));
      for (const [list, value] of [[out.name, tree.name[of]], [out.kind, tree.kind[of]], [out.self, 0], [out.count, 0], [out.up, up]]) list.push(value);
    }
    return i;
  };
  const inside = new Uint32Array(tree.size); // 1 + the node there
  for (let i = 0; i < tree.size; i++) {
    const around = i > 0 ? inside[tree.parent[i]] : 0;
    if (around === 0 && tree.name[i] !== name) continue;
    const at = around === 0 ? 0 : child(around - 1, i, 0);
    inside[i] = at + 1;
    out.self[at] += tree.own[i];
    out.count[at] += tree.count?.[i] ?? 0;
    if (around > 0) continue;
    out.kind[0] = tree.kind[i];
    let caller = 0;
    for (let up = tree.parent[i]; up > 0; up = tree.parent[up]) caller = child(caller, up, 1);
    if (caller > 0) out.self[caller] += tree.total[i];
  }
  return out;
}
