/**
 * From what the system says about a failed file operation to a {@link DiskError}: by the error number's name where Deno
 * knows it, else by the number in its message.
 */

import { DiskError, type DiskErrorKind } from "./disk.ts";

const KINDS: Readonly<Record<string, DiskErrorKind>> = {
  ENOENT: "not-found",
  ENOTDIR: "not-found",
  EEXIST: "exists",
  ENOSPC: "no-space",
  EDQUOT: "no-space",
  EFBIG: "no-space",
  ESTALE: "stale",
  EACCES: "permission",
  EPERM: "permission",
  EROFS: "permission",
  ENOTEMPTY: "not-empty",
  EBADF: "closed",
};

/** Numbers of Linux that Deno may leave unnamed. */
const NAMES: Readonly<Record<string, string>> = {
  "1": "EPERM",
  "2": "ENOENT",
  "5": "EIO",
  "9": "EBADF",
  "13": "EACCES",
  "17": "EEXIST",
  "20": "ENOTDIR",
  "22": "EINVAL",
  "27": "EFBIG",
  "28": "ENOSPC",
  "30": "EROFS",
  "39": "ENOTEMPTY",
  "95": "EOPNOTSUPP",
  "116": "ESTALE",
  "122": "EDQUOT",
};

/** The name of the system's error number, such as `ENOSPC`; null when the error carries none. */
export function systemCodeOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if ("code" in error && typeof error.code === "string") return error.code;
  const number = /\(os error (\d+)\)/.exec(error.message)?.[1];
  return number === undefined ? null : NAMES[number] ?? `os error ${number}`;
}

/** The typed form of what a file operation threw. */
export function asDiskError(operation: string, path: string, error: unknown): DiskError {
  if (error instanceof DiskError) return error;
  return new DiskError(kindOf(error), operation, path, { cause: error });
}

function kindOf(error: unknown): DiskErrorKind {
  const code = systemCodeOf(error);
  if (code !== null) return KINDS[code] ?? "io";
  if (error instanceof Deno.errors.BadResource) return "closed";
  if (error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied) return "permission";
  return "io";
}
