/**
 * A durable keyed state: changes are appended to a log, the log is replaced by a snapshot of what lives when it has
 * grown. One owner writes it, of one epoch at a time.
 *
 *     <epoch, 8 hex digits>-<sequence, 20 digits>.snapshot   all that lived when it was made
 *     <epoch, 8 hex digits>-<sequence, 20 digits>.log        changes since
 *
 * Both are record batches, an entry being a record; a null value is a removal. Invariants:
 * - the state is the newest snapshot plus the log of its very name; nothing else is ever read;
 * - an owner begins with a snapshot under its own, higher epoch, so what a deposed one still writes is never read;
 * - a snapshot gets its name when it is complete and durable; its log is made, and durable by name, before it is used;
 * - an append is answered when a sync that began after it has returned, and all that queued meanwhile share the next;
 * - a log is never appended to after a failure, nor after a restart: torn ends are read around, not repaired;
 * - files are closed before they are removed.
 */

import { replaceFile } from "../disk/atomic_replace.ts";
import { type Disk, DiskError, type FileHandle } from "../disk/disk.ts";
import { ErrorCode, KafkaError } from "../errors.ts";
import { buildBatch, recordsOf } from "../records/record.ts";
import { checkBatch, HEADER_BYTES, recordsCount, sizeInBytes } from "../records/batch.ts";
import { RecordsFault } from "../records/fault.ts";
import { isTemporaryName } from "../partition_state.ts";

/** One change: the value under a key, or null to remove it. */
export interface JournalEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array | null;
}

export interface JournalOptions {
  readonly disk: Disk;
  readonly folder: string;
  /** The owner's epoch; higher than that of every earlier owner. */
  readonly epoch: number;
  /** Smallest number of dead bytes that is worth a snapshot. */
  readonly minDeadBytes?: number;
  /** Whether this process still owns the journal; asked before anything is answered as durable. */
  mayAcknowledge?(): boolean;
}

const MIN_DEAD_BYTES = 4 * 1024 * 1024;
/** A snapshot is due when the dead outweigh the living by this. */
const DEAD_PER_LIVE = 3;
/** Entries of one batch end here, so that no batch grows without bound. */
const MAX_BATCH_BYTES = 512 * 1024;
/** About what an entry costs on disk besides key and value. */
const ENTRY_OVERHEAD_BYTES = 12;

interface Queued {
  readonly entries: readonly JournalEntry[];
  resolve(): void;
  reject(error: KafkaError): void;
}

/** See the file's head. */
export class Journal {
  readonly #options: JournalOptions;
  readonly #live: Map<string, JournalEntry>;
  #liveBytes = 0;
  #logBytes = 0;
  #sequence: number;
  #log: FileHandle;
  #queue: Queued[] = [];
  #loop: Promise<void> | null = null;
  #failure: KafkaError | null = null;
  #nextTryBytes = 0;

  private constructor(options: JournalOptions, live: Map<string, JournalEntry>, sequence: number, log: FileHandle) {
    this.#options = options;
    this.#live = live;
    this.#sequence = sequence;
    this.#log = log;
    for (const entry of live.values()) this.#liveBytes += bytesOf(entry);
  }

  /**
   * Takes the journal over: reads the state, and makes it durable under this owner's epoch.
   * @throws {DiskError}
   * @throws {KafkaError} NOT_COORDINATOR when a later owner has been here, KAFKA_STORAGE_ERROR when a snapshot is damaged
   */
  static async open(options: JournalOptions): Promise<Journal> {
    const { disk, folder, epoch } = options;
    await disk.makeFolder(folder);
    await disk.syncFolder(folder.slice(0, folder.lastIndexOf("/")));
    let found = await survey(options);
    for (;;) {
      const live = await readState(disk, folder, found.newest);
      const before = found.newest?.name;
      found = await survey(options);
      // An owner that is being deposed may have gone on behind a new snapshot, and removed what was just read.
      if (found.newest?.name !== before) continue;
      if (live === null) throw new DiskError("not-found", "read file", `${folder}/${before}`);
      const sequence = found.highest?.epoch === epoch ? found.highest.sequence + 1 : 1;
      const log = await begin(options, sequence, live);
      await removeOthers(options, sequence);
      return new Journal(options, live, sequence, log);
    }
  }

  /** All that lives, as far as it is durable. The bytes must not be changed. */
  entries(): Iterable<JournalEntry> {
    return this.#live.values();
  }

  /** Why nothing can be appended any more, if so. */
  get failure(): KafkaError | null {
    return this.#failure;
  }

  /** Resolves when the changes are durable, all of them. The bytes must not be changed afterwards. @throws {KafkaError} */
  append(entries: readonly JournalEntry[]): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (entries.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#queue.push({ entries, resolve, reject });
      this.#loop ??= this.#run();
    });
  }

  /** Makes durable what was appended, and closes. Later appends are refused. */
  async close(): Promise<void> {
    while (this.#loop !== null) await this.#loop;
    this.#fail(new KafkaError(ErrorCode.NOT_COORDINATOR, "the journal is closed"));
    this.#log.close();
  }

  async #run(): Promise<void> {
    // What is appended in this turn of the event loop still joins the first round.
    await null;
    while (this.#queue.length > 0) {
      const round = this.#queue;
      this.#queue = [];
      try {
        for (const batch of batchesOf(round.flatMap(({ entries }) => entries), this.#options.epoch)) {
          this.#log.writeSync(this.#logBytes, batch);
          this.#logBytes += batch.length;
        }
        await this.#log.sync();
        if (this.#options.mayAcknowledge?.() === false) throw new Error("another broker may own it by now");
        for (const { entries, resolve } of round) {
          for (const entry of entries) this.#apply(entry);
          resolve();
        }
        if (this.#isSnapshotDue()) await this.#compact();
      } catch (error) {
        this.#fail(
          new KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, `${this.#options.folder} cannot be written`, { cause: error }),
        );
        for (const { reject } of round) reject(this.#failure!);
      }
    }
    this.#loop = null;
  }

  #apply(entry: JournalEntry): void {
    const key = mapKey(entry.key);
    const before = this.#live.get(key);
    if (before !== undefined) this.#liveBytes -= bytesOf(before);
    if (entry.value === null) this.#live.delete(key);
    else {
      this.#live.set(key, entry);
      this.#liveBytes += bytesOf(entry);
    }
  }

  #isSnapshotDue(): boolean {
    const enough = Math.max(this.#options.minDeadBytes ?? MIN_DEAD_BYTES, DEAD_PER_LIVE * this.#liveBytes);
    return this.#logBytes >= Math.max(enough, this.#nextTryBytes);
  }

  /** Goes on behind a new snapshot. Where the disk has no room for one, the log goes on growing for a while. */
  async #compact(): Promise<void> {
    const { disk, folder, epoch } = this.#options;
    const bytes = snapshotOf(this.#live, epoch);
    const { freeBytes } = await disk.space(folder);
    if (freeBytes < 2 * bytes.length) {
      this.#nextTryBytes = 2 * this.#logBytes;
      return;
    }
    const old = this.#log;
    this.#log = await begin(this.#options, this.#sequence + 1, this.#live, bytes);
    this.#sequence++;
    this.#logBytes = 0;
    this.#nextTryBytes = 0;
    old.close();
    await removeOthers(this.#options, this.#sequence);
  }

  #fail(failure: KafkaError): void {
    this.#failure ??= failure;
    for (const { reject } of this.#queue) reject(this.#failure);
    this.#queue = [];
  }
}

interface FileName {
  readonly name: string;
  readonly epoch: number;
  readonly sequence: number;
  readonly kind: "snapshot" | "log";
}

function stem(epoch: number, sequence: number): string {
  return `${epoch.toString(16).padStart(8, "0")}-${String(sequence).padStart(20, "0")}`;
}

function parseName(name: string): FileName | null {
  const parts = /^([0-9a-f]{8})-(\d{20})\.(snapshot|log)$/.exec(name);
  if (parts === null) return null;
  const kind = parts[3] === "log" ? "log" : "snapshot";
  return { name, epoch: parseInt(parts[1], 16), sequence: Number(parts[2]), kind };
}

/** What is in the folder. @throws {KafkaError} NOT_COORDINATOR when a later owner has been here */
async function survey({ disk, folder, epoch }: JournalOptions) {
  const files = (await disk.list(folder)).flatMap(({ name }) => parseName(name) ?? []);
  const newest = files.findLast(({ kind }) => kind === "snapshot");
  if (newest !== undefined && newest.epoch > epoch) {
    throw new KafkaError(ErrorCode.NOT_COORDINATOR, `${folder} belongs to epoch ${newest.epoch}`);
  }
  return { newest, highest: files.at(-1) };
}

/** Makes snapshot and log of one sequence number, durable; returns the log. The names last a crash only together. */
async function begin(
  { disk, folder, epoch }: JournalOptions,
  sequence: number,
  live: ReadonlyMap<string, JournalEntry>,
  bytes = snapshotOf(live, epoch),
): Promise<FileHandle> {
  const path = `${folder}/${stem(epoch, sequence)}`;
  const log = await disk.open(`${path}.log`, "create");
  try {
    await replaceFile(disk, `${path}.snapshot`, bytes);
    return log;
  } catch (error) {
    log.close();
    throw error;
  }
}

/** Removes what the snapshot of this sequence number has made worthless. What resists is tried again next time. */
async function removeOthers({ disk, folder, epoch }: JournalOptions, sequence: number): Promise<void> {
  for (const { name } of await disk.list(folder)) {
    // A temporary name begins with the name it is for: those of a later owner are its own business.
    const file = parseName(
      isTemporaryName(name) ? name.slice(1, name.indexOf(".snapshot.") + ".snapshot".length) : name,
    );
    const isOld = file !== null && (file.epoch < epoch || (file.epoch === epoch && file.sequence < sequence));
    if (!isOld) continue;
    try {
      await disk.remove(`${folder}/${name}`);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
    }
  }
}

/** The batches of a snapshot; the last one is empty and says that nothing is missing in front of it. */
function snapshotOf(live: ReadonlyMap<string, JournalEntry>, epoch: number): Uint8Array {
  const end = buildBatch({ records: [], baseOffset: live.size, leaderEpoch: epoch });
  return concat([...batchesOf([...live.values()], epoch), end]);
}

function* batchesOf(entries: readonly JournalEntry[], leaderEpoch: number): Generator<Uint8Array> {
  let records: JournalEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    records.push(entry);
    bytes += bytesOf(entry);
    if (bytes < MAX_BATCH_BYTES) continue;
    yield buildBatch({ records, leaderEpoch });
    records = [];
    bytes = 0;
  }
  if (records.length > 0) yield buildBatch({ records, leaderEpoch });
}

/** The state by a snapshot and its log; null where the snapshot has gone. @throws as {@link Journal.open} does */
async function readState(disk: Disk, folder: string, newest: FileName | undefined) {
  const live = new Map<string, JournalEntry>();
  if (newest === undefined) return live;
  const { epoch, sequence, name } = newest;
  const snapshot = await readIfThere(disk, `${folder}/${name}`);
  if (snapshot === null) return null;
  const end = replay(snapshot, live);
  const tail = snapshot.length - HEADER_BYTES;
  if (tail < 0 || end !== snapshot.length || recordsCount(snapshot, tail) !== 0) {
    throw new KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, `${folder}/${name} is damaged at byte ${end}`);
  }
  // Where the log is missing, a crash came before anything was appended to it.
  replay(await readIfThere(disk, `${folder}/${stem(epoch, sequence)}.log`) ?? new Uint8Array(0), live);
  return live;
}

async function readIfThere(disk: Disk, path: string): Promise<Uint8Array | null> {
  try {
    return await disk.readFile(path);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return null;
    throw error;
  }
}

/** Applies the whole batches at the head of `bytes`; returns where they end. */
function replay(bytes: Uint8Array, live: Map<string, JournalEntry>): number {
  let at = 0;
  while (at < bytes.length && checkBatch(bytes, at) === "whole") {
    const end = at + sizeInBytes(bytes, at);
    const records = recordsOf(bytes.subarray(at, end));
    if (records instanceof RecordsFault) break;
    for (const { key, value } of records) {
      if (key === null) continue;
      if (value === null) live.delete(mapKey(key));
      else live.set(mapKey(key), { key: key.slice(), value: value.slice() });
    }
    at = end;
  }
  return at;
}

function bytesOf({ key, value }: JournalEntry): number {
  return key.length + (value?.length ?? 0) + ENTRY_OVERHEAD_BYTES;
}

const latin1 = new TextDecoder("latin1");

/** Keys as strings that differ exactly where the bytes do. */
function mapKey(key: Uint8Array): string {
  return latin1.decode(key);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
