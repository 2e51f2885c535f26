/**
 * Small state files: replaced as a whole, so that a reader or a crash meets the old content or the new, nothing between.
 *
 * A temporary name lies in the same folder, starts with a dot, ends in `.tmp`, is at most 255 bytes long, and is used by
 * one call of one process only. What a crash leaves of one is known by {@link isTemporaryName} and may be removed by
 * whoever owns the folder.
 */

import { isTemporaryName } from "../partition_state.ts";
import { assert } from "../errors.ts";
import { type Disk, DiskError } from "./disk.ts";

/** No file system in use takes a longer name, in bytes of UTF-8. */
export const MAX_NAME_BYTES = 255;

/** A state file that is there but does not hold what it should; `cause` says what the parser met. */
export class DamagedFileError extends Error {
  override readonly name = "DamagedFileError";

  constructor(readonly path: string, options?: ErrorOptions) {
    super(`${path}: the content is not what this file should hold`, options);
  }
}

let replacements = 0;

/**
 * Replaces (or creates) the file at `path`; durable when it resolves.
 *
 * 1. the content goes into a temporary file, which is synced — a crash leaves the old content and maybe a leftover;
 * 2. rename over `path` — a crash leaves the old content or the new;
 * 3. sync of the folder — from here on it is the new content.
 *
 * @throws {DiskError} after a failure in step 3 either content may be what a crash leaves
 */
export async function replaceFile(disk: Disk, path: string, bytes: Uint8Array): Promise<void> {
  const slash = path.lastIndexOf("/");
  const folder = slash < 0 ? "." : path.slice(0, slash) || "/";
  const temporary = `${slash < 0 ? "" : path.slice(0, slash + 1)}${temporaryName(disk, path.slice(slash + 1))}`;
  const handle = await disk.open(temporary, "create");
  try {
    try {
      handle.writeSync(0, bytes);
      await handle.sync();
    } finally {
      handle.close();
    }
    await disk.rename(temporary, path);
  } catch (error) {
    await disk.remove(temporary).catch(() => {});
    throw error;
  }
  await disk.syncFolder(folder);
}

/** Replaces the file at `path` by `value` as JSON; durable when it resolves. @throws {DiskError} */
export function replaceJson(disk: Disk, path: string, value: unknown): Promise<void> {
  return replaceFile(disk, path, new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`));
}

/**
 * The content of the JSON file at `path` as `parse` understands it; null when there is no such file.
 * @throws {DamagedFileError} when it is no JSON, or `parse` throws
 * @throws {DiskError}
 */
export async function readJson<T>(disk: Disk, path: string, parse: (json: unknown) => T): Promise<T | null> {
  let bytes: Uint8Array;
  try {
    bytes = await disk.readFile(path);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return null;
    throw error;
  }
  try {
    return parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch (error) {
    throw new DamagedFileError(path, { cause: error });
  }
}

/** A name for a temporary file that is to become `name`; never the same twice. */
export function temporaryName(disk: Disk, name: string): string {
  const suffix = `.${disk.writerId}-${(++replacements).toString(36)}.tmp`;
  const bytes = new TextEncoder().encode(name);
  const room = MAX_NAME_BYTES - 1 - suffix.length;
  const kept = bytes.byteLength <= room ? name : truncated(bytes, room);
  const temporary = `.${kept}${suffix}`;
  assert(isTemporaryName(temporary), `no temporary name: ${temporary}`);
  return temporary;
}

/** As many whole characters as fit. */
function truncated(bytes: Uint8Array, room: number): string {
  let end = room;
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end));
}
