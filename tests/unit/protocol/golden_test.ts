/** Messages and whole frames against bytes that were worked out by hand. */

import assert from "node:assert/strict";
import { decode, encode } from "../../../lib/protocol/codec.ts";
import { parseRequestHeader, responseHeaderVersion, writeResponseHeader } from "../../../lib/protocol/header.ts";
import {
  apiVersionsRequest,
  apiVersionsResponse,
  unsupportedApiVersions,
} from "../../../lib/protocol/messages/api_versions.ts";
import { Writer } from "../../../lib/protocol/writer.ts";
import { golden, messageBodies } from "../../golden/message_bodies.ts";

for (const [index, { message, version, value, bytes }] of messageBodies.entries()) {
  Deno.test(`${message.name} v${version} has the bytes of golden body ${index}`, () => {
    const writer = new Writer();
    encode(message, version, value, writer);
    assert.deepEqual(writer.finish()[0], bytes);
    writer.reset();
    encode(message, version, decode(message, version, bytes), writer);
    assert.deepEqual(writer.finish()[0], bytes);
  });
}

Deno.test("ApiVersions from the future is answered by 16 bytes in version 0 with error 35 and its own range", () => {
  // Whatever the body of version 99 is, the header can be read up to the client id.
  const request = golden("0012 0063 0000002a 0003 'new' deadbeef");
  const header = parseRequestHeader(request, () => 1);
  assert.deepEqual({ ...header }, {
    apiKey: 18,
    apiVersion: 99,
    correlationId: 42,
    clientId: "new",
    bodyOffset: 13,
  });
  const writer = new Writer();
  writer.beginFrame();
  writeResponseHeader(writer, header.correlationId, responseHeaderVersion(apiVersionsResponse, 0));
  encode(apiVersionsResponse, 0, unsupportedApiVersions({ minVersion: 0, maxVersion: 4 }), writer);
  assert.equal(writer.endFrame(), 20);
  assert.deepEqual(writer.finish()[0], golden("00000010 0000002a  0023 00000001 0012 0000 0004"));
});

Deno.test("an ApiVersions request of version 3 is read from its frame", () => {
  const frame = golden("0012 0003 00000001 0002 'me' 00  04'abc' 04'1.2' 00");
  const header = parseRequestHeader(frame, () => 2);
  assert.equal(header.clientId, "me");
  assert.deepEqual(decode(apiVersionsRequest, 3, frame, header.bodyOffset), {
    clientSoftwareName: "abc",
    clientSoftwareVersion: "1.2",
  });
});

Deno.test("an ApiVersions response of version 3 has header 0 and its features as tagged fields", () => {
  const writer = new Writer();
  writeResponseHeader(writer, 7, responseHeaderVersion(apiVersionsResponse, 3));
  encode(apiVersionsResponse, 3, {
    errorCode: 0,
    apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 4 }],
    throttleTimeMs: 0,
    supportedFeatures: [{ name: "f", minVersion: 1, maxVersion: 2 }],
    finalizedFeaturesEpoch: 3,
  }, writer);
  assert.deepEqual(
    writer.finish()[0],
    golden("00000007 0000 02 0012 0000 0004 00 00000000  02  00 08 02 02'f' 0001 0002 00  01 08 0000000000000003"),
  );
});
