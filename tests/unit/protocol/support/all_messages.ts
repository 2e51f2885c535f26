/** Every message declared under lib/protocol/messages, found by looking there, so that none can be forgotten. */

import { type AnyMessage, Message } from "../../../../lib/protocol/schema.ts";

const folder = new URL("../../../../lib/protocol/messages/", import.meta.url);

async function load(): Promise<AnyMessage[]> {
  const found: AnyMessage[] = [];
  for (const entry of [...Deno.readDirSync(folder)].sort((a, b) => a.name < b.name ? -1 : 1)) {
    const exports: Record<string, unknown> = await import(new URL(entry.name, folder).href);
    for (const value of Object.values(exports)) if (value instanceof Message) found.push(value);
  }
  return found;
}

/** All messages, in order of file names. */
export const allMessages: readonly AnyMessage[] = await load();

/** Calls `visit` with each version of each message. */
export function forEachVersion(visit: (message: AnyMessage, version: number) => void): void {
  for (const message of allMessages) {
    for (let version = message.minVersion; version <= message.maxVersion; version++) visit(message, version);
  }
}
