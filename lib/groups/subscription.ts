/**
 * The topics that a consumer named when it joined: protocol type "consumer" begins its metadata with a version (int16),
 * the number of topics (int32) and their names (int16 length, UTF-8), whatever the version.
 */

const text = new TextDecoder("utf-8", { ignoreBOM: true });

/** The topics named, or null where the bytes are no subscription. Never throws: the bytes come from a client. */
export function subscribedTopics(metadata: Uint8Array): string[] | null {
  const view = new DataView(metadata.buffer, metadata.byteOffset, metadata.byteLength);
  if (metadata.length < 6) return null;
  const count = view.getInt32(2);
  if (count < 0 || count > metadata.length / 2) return null;
  const topics: string[] = [];
  let at = 6;
  for (let index = 0; index < count; index++) {
    if (at + 2 > metadata.length) return null;
    const length = view.getInt16(at);
    at += 2;
    if (length < 0 || at + length > metadata.length) return null;
    topics.push(text.decode(metadata.subarray(at, at + length)));
    at += length;
  }
  return topics;
}
