/**
 * Reading and writing of declared messages. The code for a (message, version) is compiled on its first use and kept
 * with the message.
 *
 * Versions are the caller's: whoever takes one from a client checks it against the message first.
 */

import { assert } from "../errors.ts";
import { compileDecoder, type Decoder } from "./compile_decoder.ts";
import { compileEncoder, type Encoder } from "./compile_encoder.ts";
import { MalformedFrame } from "./malformed_frame.ts";
import type { Message } from "./schema.ts";
import type { Writer } from "./writer.ts";

export { MalformedFrame };

/**
 * Reads `bytes` from `offset` to their end as `message` in `version`.
 *
 * Fields of kind `records` are views into `bytes`; everything else stands on its own.
 *
 * @throws MalformedFrame when the bytes are not exactly such a message.
 */
export function decode<Value, Input>(
  message: Message<Value, Input>,
  version: number,
  bytes: Uint8Array,
  offset = 0,
): Value {
  const cursor = { position: offset };
  const value = read(message, version, bytes, cursor);
  if (cursor.position !== bytes.length) {
    const left = bytes.length - cursor.position;
    throw new MalformedFrame(`${message.name} v${version}: ${left} bytes are left over`, cursor.position);
  }
  return value;
}

/**
 * Reads `message` in `version` from the front of `bytes`, whatever may follow: for data whose later versions only add
 * to the end.
 *
 * @throws MalformedFrame when the bytes do not begin with such a message.
 */
export function decodeFront<Value, Input>(
  message: Message<Value, Input>,
  version: number,
  bytes: Uint8Array,
  offset = 0,
): Value {
  return read(message, version, bytes, { position: offset });
}

/**
 * Writes `value` as `message` in `version` behind what `writer` holds.
 *
 * @throws UnencodableValue for a value that the protocol cannot carry.
 */
export function encode<Value, Input>(
  message: Message<Value, Input>,
  version: number,
  value: Input,
  writer: Writer,
): void {
  let encoder = message.encoders[version] as Encoder<Input> | undefined;
  if (encoder === undefined) {
    assert(message.hasVersion(version), `${message.name} has no version ${version}`);
    encoder = compileEncoder<Input>(message, version);
    message.encoders[version] = encoder;
  }
  encoder(value, writer);
}

function read<Value, Input>(
  message: Message<Value, Input>,
  version: number,
  bytes: Uint8Array,
  cursor: { position: number },
): Value {
  let decoder = message.decoders[version] as Decoder<Value> | undefined;
  if (decoder === undefined) {
    assert(message.hasVersion(version), `${message.name} has no version ${version}`);
    decoder = compileDecoder<Value>(message, version);
    message.decoders[version] = decoder;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return decoder(bytes, view, cursor);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new MalformedFrame(`${message.name} v${version}: the bytes end inside it`, bytes.length, { cause: error });
  }
}
