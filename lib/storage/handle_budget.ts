/**
 * Bounds the file handles that all logs of a process keep open. Owners of handles enter them here when they open one;
 * when there are too many, those not used for longest are asked to close theirs and reopen when next needed.
 *
 * A handle with unsynced writes or a read in flight refuses (`evict` answers false), so the bound is soft: at worst one
 * handle for each partition that is being written or read right now.
 */

/** The owner of one file handle. */
export interface HandleOwner {
  /** Set by the owner whenever it uses the handle, cleared by the budget when it looks for idle ones. */
  used: boolean;
  /** Closes the handle if nothing is in flight on it; answers whether it is closed now. */
  evict(): boolean;
}

export class HandleBudget {
  readonly #maxOpen: number;
  /** In order of entry; one that was used since the last look goes to the back instead of being closed. */
  readonly #owners = new Set<HandleOwner>();

  /** @param maxOpen handles kept open before idle ones are closed */
  constructor(maxOpen: number) {
    this.#maxOpen = Math.max(1, maxOpen);
  }

  /** Handles open now. */
  get open(): number {
    return this.#owners.size;
  }

  /** To be called after a handle was opened. May close others. */
  opened(owner: HandleOwner): void {
    owner.used = true;
    this.#owners.add(owner);
    // Two rounds over the owners: the first may only clear their marks.
    let looks = this.#owners.size * 2;
    for (const candidate of this.#owners) {
      if (this.#owners.size <= this.#maxOpen || looks-- === 0) return;
      if (candidate === owner) {
        this.#toTheBack(candidate);
      } else if (candidate.used) {
        candidate.used = false;
        this.#toTheBack(candidate);
      } else if (candidate.evict()) {
        this.#owners.delete(candidate);
      } else {
        this.#toTheBack(candidate);
      }
    }
  }

  /** To be called after a handle was closed by its owner. */
  closed(owner: HandleOwner): void {
    this.#owners.delete(owner);
  }

  #toTheBack(owner: HandleOwner): void {
    this.#owners.delete(owner);
    this.#owners.add(owner);
  }
}
