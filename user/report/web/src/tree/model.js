// SPDX-License-Identifier: BSD-2-Clause
// A tree of the block "trees": totals, where each node stands, search. Knows of no pixels.
import {hierarchy, partition} from 'd3-hierarchy';

/** What each node and those below it have together; parents stand before children. */
export function totals(parent, own) {
  const total = Float64Array.from(own);
  for (let i = total.length - 1; i > 0; i--) total[parent[i]] += total[i];
  return total;
}

export class Tree {
  /** @param {any} source a tree of the block @param {boolean} [before] widths are those of the other side */
  constructor(source, before = false) {
    const {parent, self} = source;
    Object.assign(this, source);
    this.size = parent.length;
    this.compared = source.before?.some((x) => x !== 0) === true;
    this.now = totals(parent, self);
    this.then = this.compared ? totals(parent, source.before) : null;
    this.total = before ? this.then : this.now;
    this.own = before ? source.before : self;
    this.#layOut();
  }

  /** `start` and `depth` of each node; `rows`: the nodes of a depth as a lane, whose `name` is the node. */
  #layOut() {
    const {parent, size} = this;
    const children = Array.from({length: size}, () => null);
    for (let i = 1; i < size; i++) (children[parent[i]] ??= []).push(i);
    const root = hierarchy(0, (i) => children[i])
      .sum((i) => this.own[i])
      .sort((a, b) => b.value - a.value);
    partition().size([this.total[0], 1])(root);
    this.start = new Float64Array(size);
    this.depth = new Uint32Array(size);
    this.place = new Uint32Array(size); // in its row
    const rows = [];
    // breadth first: each depth from left to right
    root.each(({data: i, x0, depth}) => {
      this.start[i] = x0;
      this.depth[i] = depth;
      this.place[i] = (rows[depth] ??= []).push(i) - 1;
    });
    this.rows = rows.map((nodes) => ({
      start: Float64Array.from(nodes, (i) => this.start[i]),
      duration: Float64Array.from(nodes, (i) => this.total[i]),
      name: Uint32Array.from(nodes),
    }));
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

  /** Widest first. */
  children(i) {
    const row = this.rows[this.depth[i] + 1]?.name ?? [];
    return Array.from(row.filter((child) => this.parent[child] === i));
  }

  /** -1 (it is gone) to 1 (it is new): how much of the larger side the change is. */
  change(i) {
    const [now, then] = [this.now[i], this.then[i]];
    return now === then ? 0 : (now - then) / Math.max(now, then);
  }

  /** Nodes whose name matches (1 by number of the name), and how much they have together, each part counted once. */
  search(match) {
    const nodes = new Uint8Array(this.size);
    const inside = new Uint8Array(this.size);
    let [count, sum] = [0, 0];
    for (let i = 1; i < this.size; i++) {
      const within = inside[this.parent[i]];
      nodes[i] = match[this.name[i]];
      inside[i] = within | nodes[i];
      count += nodes[i];
      if (nodes[i] && !within) sum += this.total[i];
    }
    return {nodes, count, share: this.total[0] > 0 ? sum / this.total[0] : 0};
  }

  /** Where an arrow leads: 'parent', 'child' (the widest), 'next' or 'previous' of the same depth; the node itself at an end. */
  neighbour(i, where) {
    const row = this.rows[this.depth[i]].name;
    switch (where) {
      case 'parent':
        return Math.max(0, this.parent[i]);
      case 'child':
        return this.children(i)[0] ?? i;
      case 'next':
        return row[this.place[i] + 1] ?? i;
      default:
        return row[this.place[i] - 1] ?? i;
    }
  }
}
