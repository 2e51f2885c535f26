import assert from "node:assert/strict";
import { MalformedFrame } from "../../../lib/protocol/malformed_frame.ts";
import {
  parseRequestHeader,
  type RequestHeaderVersion,
  requestHeaderVersion,
  responseHeaderVersion,
  writeRequestHeader,
  writeResponseHeader,
} from "../../../lib/protocol/header.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../../lib/protocol/messages/api_versions.ts";
import { offsetFetchRequest, offsetFetchResponse } from "../../../lib/protocol/messages/offset_fetch.ts";
import { Writer } from "../../../lib/protocol/writer.ts";
import { golden } from "../../golden/message_bodies.ts";

const LONG_ID = "c".repeat(300);

function requestHeader(clientId: string | null, headerVersion: RequestHeaderVersion): Uint8Array {
  const writer = new Writer();
  writeRequestHeader(writer, { apiKey: 3, apiVersion: 9, correlationId: -5, clientId }, headerVersion);
  return writer.finish()[0].slice();
}

Deno.test("client ids of null, empty, long and non-ASCII text come back from every header version", () => {
  for (const headerVersion of [1, 2] as const) {
    for (const clientId of [null, "", "me", "é", LONG_ID]) {
      const bytes = requestHeader(clientId, headerVersion);
      const header = parseRequestHeader(bytes, (apiKey, apiVersion) => {
        assert.deepEqual([apiKey, apiVersion], [3, 9]);
        return headerVersion;
      });
      assert.deepEqual({ ...header }, {
        apiKey: 3,
        apiVersion: 9,
        correlationId: -5,
        clientId,
        bodyOffset: bytes.length,
      });
    }
  }
});

Deno.test("header 2 keeps the two-byte client id and adds tagged fields, which are skipped", () => {
  const bytes = golden("0003 0009 00000001 0001 'c'  02 00 01 ff 7f 02 aa bb  99");
  const header = parseRequestHeader(bytes, () => 2);
  assert.equal(header.clientId, "c");
  assert.equal(header.bodyOffset, bytes.length - 1);
});

Deno.test("header 0 ends behind the correlation id", () => {
  const header = parseRequestHeader(golden("0007 0000 00000001"), () => 0);
  assert.deepEqual([header.clientId, header.bodyOffset], [null, 8]);
});

Deno.test("a header cut at any byte is malformed", () => {
  const bytes = golden("0003 0009 00000001 0002 'me'  01 05 02 aa bb");
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => parseRequestHeader(bytes.subarray(0, length), () => 2), MalformedFrame, `${length}`);
  }
});

Deno.test("a client id or tagged field longer than the frame is malformed", () => {
  assert.throws(() => parseRequestHeader(golden("0003 0009 00000001 7fff 'me'"), () => 1), MalformedFrame);
  assert.throws(() => parseRequestHeader(golden("0003 0009 00000001 ffff 01 00 ffffffff0f"), () => 2), MalformedFrame);
});

Deno.test("flexible versions have headers 2 and 1, others 1 and 0, and ApiVersions always answers with 0", () => {
  assert.deepEqual([5, 6].map((version) => requestHeaderVersion(offsetFetchRequest, version)), [1, 2]);
  assert.deepEqual([5, 6].map((version) => responseHeaderVersion(offsetFetchResponse, version)), [0, 1]);
  assert.deepEqual([2, 3].map((version) => requestHeaderVersion(apiVersionsRequest, version)), [1, 2]);
  assert.deepEqual([2, 3, 4].map((version) => responseHeaderVersion(apiVersionsResponse, version)), [0, 0, 0]);
});

Deno.test("response header 1 is the correlation id and an empty section of tagged fields", () => {
  const writer = new Writer();
  writeResponseHeader(writer, 258, 0);
  writeResponseHeader(writer, 258, 1);
  assert.deepEqual(writer.finish()[0], golden("00000102  00000102 00"));
});
