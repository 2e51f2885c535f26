/**
 * Reading the small JSON files beside a partition's segments. They are hints: one that is missing or damaged is
 * reported and done without, never an obstacle.
 */

import { type Disk, DiskError } from "../disk/disk.ts";

/** What a side file held; `damaged` says why it is to be done without. */
export type SideFile<T> =
  | { readonly kind: "present"; readonly value: T }
  | { readonly kind: "missing" }
  | { readonly kind: "damaged"; readonly why: string };

/**
 * Reads `path` and hands the parsed JSON to `parse`, which answers null for a shape it does not accept.
 * @throws {DiskError} when the file may be there but cannot be read
 */
export async function readSideFile<T>(
  disk: Disk,
  path: string,
  parse: (fields: Record<string, unknown>) => T | null,
): Promise<SideFile<T>> {
  let text: string;
  try {
    text = new TextDecoder().decode(await disk.readFile(path));
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return { kind: "missing" };
    throw error;
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { kind: "damaged", why: "not JSON" };
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return { kind: "damaged", why: "not a JSON object" };
  }
  const value = parse(json as Record<string, unknown>);
  return value === null ? { kind: "damaged", why: "fields are missing or out of range" } : { kind: "present", value };
}

/** The value if it is an integer from `minimum` to 2⁵³−1, else null. */
export function integerFrom(minimum: number, value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= minimum ? value : null;
}

/** A JSON value as the bytes of a side file. */
export function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
