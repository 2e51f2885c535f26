import assert from "node:assert/strict";
import { DiskError } from "../../../lib/disk/disk.ts";
import { asDiskError, systemCodeOf } from "../../../lib/disk/system_errors.ts";

function systemError(message: string, code?: string): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

Deno.test("asDiskError sorts the system's errors by their number's name", () => {
  const kinds = {
    ENOENT: "not-found",
    ENOTDIR: "not-found",
    EEXIST: "exists",
    ENOSPC: "no-space",
    EDQUOT: "no-space",
    ESTALE: "stale",
    EACCES: "permission",
    EROFS: "permission",
    ENOTEMPTY: "not-empty",
    EIO: "io",
    EMFILE: "io",
    ENAMETOOLONG: "io",
  };
  for (const [code, kind] of Object.entries(kinds)) {
    const cause = systemError("it failed", code);
    const error = asDiskError("write", "/x", cause);
    assert.equal(error.kind, kind, code);
    assert.equal(error.cause, cause);
    assert.equal(error.path, "/x");
    assert.equal(error.operation, "write");
  }
});

Deno.test("asDiskError reads the number where the error has no code", () => {
  assert.equal(asDiskError("read", "/x", systemError("Stale file handle (os error 116)")).kind, "stale");
  assert.equal(asDiskError("write", "/x", systemError("Disk quota exceeded (os error 122)")).kind, "no-space");
  assert.equal(asDiskError("write", "/x", systemError("No space left on device (os error 28)")).kind, "no-space");
  assert.equal(asDiskError("read", "/x", systemError("strange (os error 4000)")).kind, "io");
  assert.equal(systemCodeOf(systemError("strange (os error 4000)")), "os error 4000");
});

Deno.test("asDiskError keeps a DiskError as it is, and takes anything else for io", () => {
  const error = new DiskError("stale", "read", "/x");
  assert.equal(asDiskError("write", "/y", error), error);
  assert.equal(asDiskError("write", "/y", "a string").kind, "io");
  assert.equal(asDiskError("read", "/y", new Deno.errors.BadResource("Bad resource ID")).kind, "closed");
  assert.equal(asDiskError("read", "/y", new Deno.errors.NotCapable("no read access")).kind, "permission");
});
