/**
 * ApiVersions (KIP-35, KIP-511): which APIs and versions, and which features, this broker serves.
 *
 * v1 throttle time · v2 as v1 · v3 flexible; client software in, features out (KIP-584) · v4 a supported feature may
 * begin at version 0 (KIP-1022).
 *
 * The answer to a version the broker does not know is v0 with error 35 and ApiVersions' own range, so that the client
 * can ask again.
 */

import { ErrorCode } from "../../errors.ts";
import { array, bool, type InputOf, int16, int32, int64, message, string, struct } from "../schema.ts";

export const apiVersionsRequest = message(
  { name: "ApiVersionsRequest", apiKey: 18, type: "request", versions: "0-4", flexible: "3+" },
  {
    clientSoftwareName: string().since(3),
    clientSoftwareVersion: string().since(3),
  },
);

export const apiVersionsResponse = message(
  { name: "ApiVersionsResponse", apiKey: 18, type: "response", versions: "0-4", flexible: "3+" },
  {
    errorCode: int16(),
    apiKeys: array(struct({ apiKey: int16(), minVersion: int16(), maxVersion: int16() })),
    throttleTimeMs: int32().since(1),
    supportedFeatures: array(struct({ name: string(), minVersion: int16(), maxVersion: int16() })).tagged(0, 3),
    finalizedFeaturesEpoch: int64().default(-1).tagged(1, 3),
    finalizedFeatures: array(struct({ name: string(), maxVersionLevel: int16(), minVersionLevel: int16() }))
      .tagged(2, 3),
    zkMigrationReady: bool().default(false).tagged(3, 3),
  },
);

/** The body, to be written in version 0, that answers a request of a version outside `minVersion`–`maxVersion`. */
export function unsupportedApiVersions(
  { minVersion, maxVersion }: { readonly minVersion: number; readonly maxVersion: number },
): InputOf<typeof apiVersionsResponse> {
  return {
    errorCode: ErrorCode.UNSUPPORTED_VERSION,
    apiKeys: [{ apiKey: 18, minVersion, maxVersion }],
    throttleTimeMs: 0,
  };
}
