/**
 * What a simulated volume holds: files and folders as programs see them now, and what of that a crash would leave.
 *
 * - A file's writes and truncations wait, in order, until a sync of the file takes them to stable storage.
 * - A folder's names wait until a sync of that folder. A rename is never half: source and target change together, with
 *   the sync of either folder. What waits for one name is kept in order.
 * - A folder that is not yet named on stable storage takes everything in it along when it is lost.
 *
 * A crash keeps any part of what waits; see {@link Volume.afterCrash}.
 */

import type { SeededRandom } from "./seeded_random.ts";

/** Unit in which a device writes: unsynced bytes are torn anywhere, or lost by the sector. */
const SECTOR_BYTES = 512;

type Change =
  | { readonly kind: "write"; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: "truncate"; readonly size: number };

/** Bytes that grow. */
class Content {
  #bytes = new Uint8Array(0);
  size = 0;

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.size);
  }

  apply(change: Change): void {
    if (change.kind === "truncate") return this.#resize(change.size);
    if (change.bytes.byteLength === 0) return;
    const end = change.position + change.bytes.byteLength;
    if (end > this.size) this.#resize(end);
    this.#bytes.set(change.bytes, change.position);
  }

  copy(): Content {
    const copy = new Content();
    copy.apply({ kind: "write", position: 0, bytes: this.bytes });
    return copy;
  }

  #resize(size: number): void {
    if (size < this.size) this.#bytes.fill(0, size, this.size);
    if (size > this.#bytes.byteLength) {
      const grown = new Uint8Array(Math.max(size, 2 * this.#bytes.byteLength));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.size = size;
  }
}

/** A file's bytes; it may have a name, or only handles. */
export class FileNode {
  readonly kind = "file";
  modifiedMs = 0;
  /** Syncs that failed so far. */
  failedSyncs = 0;
  #current = new Content();
  #stable = new Content();
  #waiting: Change[] = [];
  #settled = 0;

  get size(): number {
    return this.#current.size;
  }

  get bytes(): Uint8Array {
    return this.#current.bytes;
  }

  /** Number of changes so far: a sync that begins now is to cover them. */
  get changes(): number {
    return this.#settled + this.#waiting.length;
  }

  write(position: number, bytes: Uint8Array): void {
    this.#change({ kind: "write", position, bytes: bytes.slice() });
  }

  truncate(size: number): void {
    this.#change({ kind: "truncate", size });
  }

  /** The first `count` changes reach stable storage, unless they were lost. */
  settle(count: number): void {
    for (const change of this.#take(count)) this.#stable.apply(change);
  }

  /**
   * A sync failed: of the first `count` changes any part is on stable storage, and no later sync will bring the rest.
   * Programs go on seeing them in the cache, unless `forget`.
   */
  lose(count: number, random: SeededRandom, forget: boolean): void {
    this.failedSyncs++;
    keepPart(this.#stable, this.#take(count), random);
    if (!forget) return;
    this.#current = this.#stable.copy();
    for (const change of this.#waiting) this.#current.apply(change);
  }

  /** The file after a crash. */
  afterCrash(random: SeededRandom): FileNode {
    const left = new FileNode();
    left.#stable = this.#stable.copy();
    keepPart(left.#stable, this.#waiting, random);
    left.#current = left.#stable.copy();
    left.modifiedMs = this.modifiedMs;
    return left;
  }

  #change(change: Change): void {
    this.#current.apply(change);
    this.#waiting.push(change);
  }

  /** Removes those of the first `count` changes that still wait. */
  #take(count: number): Change[] {
    const taken = this.#waiting.splice(0, Math.max(0, count - this.#settled));
    this.#settled += taken.length;
    return taken;
  }
}

/** Takes any part of `changes` to `stable`: none, all, all up to a torn one, or any of their sectors. */
function keepPart(stable: Content, changes: readonly Change[], random: SeededRandom): void {
  const way = random.pick(["none", "all", "prefix", "prefix", "sectors"] as const);
  if (way === "none") return;
  const whole = way === "prefix" ? random.below(changes.length + 1) : changes.length;
  for (const [i, change] of changes.entries()) {
    if (way === "sectors") keepSectors(stable, change, random);
    else if (i < whole) stable.apply(change);
    else if (i === whole && change.kind === "write") {
      stable.apply({ ...change, bytes: change.bytes.subarray(0, random.below(change.bytes.byteLength + 1)) });
    }
  }
}

function keepSectors(stable: Content, change: Change, random: SeededRandom): void {
  if (change.kind === "truncate") {
    if (random.chance(0.5)) stable.apply(change);
    return;
  }
  const { position, bytes } = change;
  const end = position + bytes.byteLength;
  // The new size may be stored although the bytes are not: zeros then.
  if (random.chance(0.5) && end > stable.size) stable.apply({ kind: "truncate", size: end });
  for (let from = position; from < end;) {
    const to = Math.min(end, from - from % SECTOR_BYTES + SECTOR_BYTES);
    if (random.chance(0.6)) {
      stable.apply({ kind: "write", position: from, bytes: bytes.subarray(from - position, to - position) });
    }
    from = to;
  }
}

/** A folder: names as programs see them, and as stable storage has them. */
export class FolderNode {
  readonly kind = "folder";
  modifiedMs = 0;
  readonly current = new Map<string, Node>();
  readonly stable = new Map<string, Node>();
}

export type Node = FileNode | FolderNode;

/** A place for a name. */
export interface Place {
  readonly folder: FolderNode;
  readonly name: string;
}

/** A change of names that waits for a folder's sync: `node` gets the name `to`, or loses its name, or both. */
interface NameChange {
  readonly node: Node;
  readonly from: Place | null;
  readonly to: Place | null;
}

export class Volume {
  readonly root: FolderNode;
  #waiting: NameChange[] = [];

  constructor(root = new FolderNode()) {
    this.root = root;
  }

  /** The node at a path; null when there is none. */
  find(path: string): Node | null {
    let node: Node | undefined = this.root;
    for (const name of namesIn(path)) {
      if (node === undefined || node.kind === "file") return null;
      node = node.current.get(name);
    }
    return node ?? null;
  }

  /** Where the last name of a path belongs; null when its folder is not there. */
  place(path: string): Place | null {
    const names = namesIn(path);
    const name = names.pop();
    if (name === undefined) return null;
    const folder = this.find(names.join("/"));
    return folder?.kind === "folder" ? { folder, name } : null;
  }

  link(to: Place, node: Node): void {
    this.#change({ node, from: null, to });
  }

  unlink(from: Place): void {
    this.#change({ node: from.folder.current.get(from.name)!, from, to: null });
  }

  rename(from: Place, to: Place): void {
    this.#change({ node: from.folder.current.get(from.name)!, from, to });
  }

  /** The names of a folder reach stable storage, with what they depend on. */
  settle(folder: FolderNode): void {
    this.#keep(this.#waiting.map(({ from, to }) => from?.folder === folder || to?.folder === folder));
  }

  /** The volume after a crash: any part of what waits has reached it, nothing else. */
  afterCrash(random: SeededRandom): Volume {
    const way = random.pick(["none", "all", "prefix", "any"] as const);
    const whole = random.below(this.#waiting.length + 1);
    this.#keep(this.#waiting.map((_, i) => {
      if (way === "prefix") return i < whole;
      return way === "all" || (way === "any" && random.chance(0.5));
    }));
    return new Volume(copyOf(this.root, random) as FolderNode);
  }

  /** Bytes of all files that have a name. */
  usedBytes(): number {
    return bytesBelow(this.root);
  }

  #change(change: NameChange): void {
    apply(change, "current");
    this.#waiting.push(change);
  }

  /** Takes the marked changes, and earlier ones of the same names, to stable storage. */
  #keep(marked: boolean[]): void {
    const waiting = this.#waiting;
    for (let i = waiting.length - 1; i > 0; i--) {
      if (!marked[i]) continue;
      for (let j = 0; j < i; j++) marked[j] ||= shareName(waiting[i], waiting[j]);
    }
    for (const [i, change] of waiting.entries()) if (marked[i]) apply(change, "stable");
    this.#waiting = waiting.filter((_, i) => !marked[i]);
  }
}

function apply({ node, from, to }: NameChange, view: "current" | "stable"): void {
  from?.folder[view].delete(from.name);
  to?.folder[view].set(to.name, node);
}

function shareName(a: NameChange, b: NameChange): boolean {
  return [a.from, a.to].some((p) => p !== null && [b.from, b.to].some((q) => isSame(p, q)));
}

function isSame(a: Place, b: Place | null): boolean {
  return b !== null && a.folder === b.folder && a.name === b.name;
}

function copyOf(node: Node, random: SeededRandom): Node {
  if (node.kind === "file") return node.afterCrash(random);
  const copy = new FolderNode();
  copy.modifiedMs = node.modifiedMs;
  for (const [name, child] of node.stable) {
    const left = copyOf(child, random);
    copy.current.set(name, left);
    copy.stable.set(name, left);
  }
  return copy;
}

function bytesBelow(node: Node): number {
  if (node.kind === "file") return node.size;
  let bytes = 0;
  for (const child of node.current.values()) bytes += bytesBelow(child);
  return bytes;
}

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
