import assert from "node:assert/strict";
import type { RequestContext } from "../../../../lib/broker/handler.ts";
import { apiVersionsHandler } from "../../../../lib/broker/handlers/api_versions.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../../../lib/protocol/messages/api_versions.ts";
import { fetchRequest } from "../../../../lib/protocol/messages/fetch.ts";
import { produceRequest } from "../../../../lib/protocol/messages/produce.ts";
import { decode, encode } from "../../../../lib/protocol/codec.ts";
import { Writer } from "../../../../lib/protocol/writer.ts";
import { joined } from "../../../support/raw_client.ts";

const features = [
  { name: "from.zero", minVersion: 0, maxVersion: 1 },
  { name: "from.one", minVersion: 1, maxVersion: 3 },
];

/** The decoded answer in one version, and what the connection remembers. */
function ask(apiVersion: number, clientSoftwareName = "kcat", clientSoftwareVersion = "1.7.0") {
  const handler = apiVersionsHandler([{ request: fetchRequest }, { request: produceRequest }], features);
  const connectionState = { softwareName: null, softwareVersion: null };
  const context = { apiVersion, connectionState } as unknown as RequestContext;
  const writer = new Writer();
  encode(
    apiVersionsResponse,
    apiVersion,
    handler.handle({ clientSoftwareName, clientSoftwareVersion }, context) as never,
    writer,
  );
  return { answer: decode(apiVersionsResponse, apiVersion, joined(writer.finish())), connectionState };
}

Deno.test("ApiVersions lists every handler's range and its own, by number", () => {
  for (let version = 0; version <= apiVersionsRequest.maxVersion; version++) {
    const { answer } = ask(version);
    assert.equal(answer.errorCode, ErrorCode.NONE);
    assert.deepEqual(
      answer.apiKeys,
      [produceRequest, fetchRequest, apiVersionsRequest].map(({ apiKey, minVersion, maxVersion }) => ({
        apiKey,
        minVersion,
        maxVersion,
      })),
    );
  }
});

Deno.test("ApiVersions 3 leaves out supported features that begin at 0, which its clients cannot read", () => {
  assert.deepEqual(ask(3).answer.supportedFeatures, [features[1]]);
  assert.deepEqual(ask(4).answer.supportedFeatures, features);
});

Deno.test("ApiVersions names finalized features with their level and an epoch", () => {
  const { answer } = ask(4);
  assert.equal(answer.finalizedFeaturesEpoch, 0);
  assert.deepEqual(answer.finalizedFeatures, [
    { name: "from.zero", maxVersionLevel: 1, minVersionLevel: 1 },
    { name: "from.one", maxVersionLevel: 3, minVersionLevel: 3 },
  ]);
});

Deno.test("ApiVersions remembers the client's software from version 3 on", () => {
  assert.deepEqual(ask(3).connectionState, { softwareName: "kcat", softwareVersion: "1.7.0" });
  assert.deepEqual(ask(2).connectionState, { softwareName: null, softwareVersion: null });
});

Deno.test("ApiVersions refuses a software name or version that is none", () => {
  for (const [name, version] of [["", "1"], ["a", ""], ["-a", "1"], ["a", "1-"], ["a b", "1"], ["ä", "1"]]) {
    const { answer, connectionState } = ask(3, name, version);
    assert.equal(answer.errorCode, ErrorCode.INVALID_REQUEST);
    assert.deepEqual(answer.apiKeys, []);
    assert.equal(connectionState.softwareName, null);
  }
});
