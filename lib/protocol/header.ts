/**
 * The headers in front of requests and responses.
 *
 *     request v0    apiKey int16, apiVersion int16, correlationId int32
 *     request v1    v0, then clientId nullable string (two-byte length in every version)
 *     request v2    v1, then tagged fields
 *     response v0   correlationId int32
 *     response v1   v0, then tagged fields
 *
 * A flexible version of an API has header 2 and 1, every other 1 and 0 (KIP-482). The one exception: responses to
 * ApiVersions always carry header 0, so that a client can read the answer to a version the broker does not know
 * (KIP-511).
 */

import { MalformedFrame } from "./malformed_frame.ts";
import { readText, skipTaggedFields } from "./primitives.ts";
import type { AnyMessage } from "./schema.ts";
import type { Writer } from "./writer.ts";

const API_VERSIONS_KEY = 18;

/** What stands in front of every request. */
export interface RequestHeader {
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  /** Null and "" are both allowed and are not the same. */
  readonly clientId: string | null;
  /** Where the body begins, in the bytes that were parsed. */
  readonly bodyOffset: number;
}

export type RequestHeaderVersion = 0 | 1 | 2;
export type ResponseHeaderVersion = 0 | 1;

/** The header version in front of `request` in `version`. */
export function requestHeaderVersion(request: AnyMessage, version: number): RequestHeaderVersion {
  return request.isFlexible(version) ? 2 : 1;
}

/** The header version in front of `response` in `version`. */
export function responseHeaderVersion(response: AnyMessage, version: number): ResponseHeaderVersion {
  return response.isFlexible(version) && response.apiKey !== API_VERSIONS_KEY ? 1 : 0;
}

/**
 * Reads the header of a request frame (without its length).
 *
 * `headerVersionOf` says which header an API's version has. For a version it does not know, the answer 1 is safe: the
 * fields up to the client id have the same place in headers 1 and 2.
 *
 * @throws MalformedFrame when the frame ends inside its header.
 */
export function parseRequestHeader(
  frame: Uint8Array,
  headerVersionOf: (apiKey: number, apiVersion: number) => RequestHeaderVersion,
): RequestHeader {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const cursor = { position: 8 };
  try {
    const apiKey = view.getInt16(0);
    const apiVersion = view.getInt16(2);
    const correlationId = view.getInt32(4);
    const headerVersion = headerVersionOf(apiKey, apiVersion);
    let clientId: string | null = null;
    if (headerVersion > 0) {
      const length = view.getInt16(8);
      cursor.position = 10;
      if (length > frame.length - 10) {
        throw new MalformedFrame(`request header: a client id claims ${length} bytes`, 10);
      }
      if (length >= 0) {
        clientId = readText(frame, 10, length);
        cursor.position += length;
      }
    }
    if (headerVersion === 2) skipTaggedFields(view, cursor);
    return { apiKey, apiVersion, correlationId, clientId, bodyOffset: cursor.position };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new MalformedFrame("request header: the bytes end inside it", frame.length, { cause: error });
  }
}

/** Writes a response header. */
export function writeResponseHeader(
  writer: Writer,
  correlationId: number,
  headerVersion: ResponseHeaderVersion,
): void {
  writer.int32(correlationId);
  if (headerVersion === 1) writer.int8(0);
}

/** Writes a request header, as a client or another broker does. */
export function writeRequestHeader(
  writer: Writer,
  header: Omit<RequestHeader, "bodyOffset">,
  headerVersion: RequestHeaderVersion,
): void {
  writer.int16(header.apiKey);
  writer.int16(header.apiVersion);
  writer.int32(header.correlationId);
  if (headerVersion === 0) return;
  if (header.clientId === null) writer.int16(-1);
  else writer.string(header.clientId);
  if (headerVersion === 2) writer.int8(0);
}
