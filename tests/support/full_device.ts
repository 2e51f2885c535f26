/** Writes to a device that is always full, and says how the disk called that and whether the handle could be closed. */

import { DiskError } from "../../lib/disk/disk.ts";
import { openHandleCount, realDisk } from "../../lib/disk/real_disk.ts";

const handle = realDisk.openSync("/dev/full", "write");
let kind = "none";
try {
  handle.writeSync(0, new Uint8Array(10));
} catch (error) {
  if (error instanceof DiskError && error.cause instanceof Error) kind = error.kind;
}
handle.close();
console.log(`${kind}, ${openHandleCount()} open`);
