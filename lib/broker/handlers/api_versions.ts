/**
 * ApiVersions (KIP-35, KIP-511, KIP-584): the APIs, versions and features that are served, as the list of handlers says.
 */

import { ErrorCode } from "../../errors.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../protocol/messages/api_versions.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { AnyHandler, Handler } from "../handler.ts";

type ApiVersionsRequest = ValueOf<typeof apiVersionsRequest>;
type ApiVersionsResponse = InputOf<typeof apiVersionsResponse>;

/** A feature level that all brokers of the cluster have agreed on. */
export interface FinalizedFeature {
  readonly name: string;
  readonly minVersion: number;
  readonly maxVersion: number;
}

/** What a client may call itself (KIP-511). */
const SOFTWARE = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/;

/** Serves ApiVersions for `others` and itself; `features` are supported in these versions and finalized at their ends. */
export function apiVersionsHandler(
  others: readonly Pick<AnyHandler, "request">[],
  features: readonly FinalizedFeature[],
): Handler<ApiVersionsRequest, ApiVersionsResponse> {
  const apiKeys = [...others.map(({ request }) => request), apiVersionsRequest]
    .map(({ apiKey, minVersion, maxVersion }) => ({ apiKey, minVersion, maxVersion }))
    .sort((a, b) => a.apiKey - b.apiKey);
  const refusal: ApiVersionsResponse = { errorCode: ErrorCode.INVALID_REQUEST, apiKeys: [], throttleTimeMs: 0 };
  const answerWith = (supportedFeatures: readonly FinalizedFeature[]): ApiVersionsResponse => ({
    errorCode: ErrorCode.NONE,
    apiKeys,
    throttleTimeMs: 0,
    supportedFeatures,
    finalizedFeaturesEpoch: features.length === 0 ? -1 : 0,
    finalizedFeatures: features.map(({ name, maxVersion }) => ({
      name,
      maxVersionLevel: maxVersion,
      minVersionLevel: maxVersion,
    })),
  });
  const answer = answerWith(features);
  // Clients of version 3 take a feature that begins at 0 for an error (KIP-1022).
  const answerToV3 = answerWith(features.filter(({ minVersion }) => minVersion > 0));
  return {
    request: apiVersionsRequest,
    response: apiVersionsResponse,
    handle({ clientSoftwareName, clientSoftwareVersion }, { apiVersion, connectionState }) {
      if (apiVersion < 3) return answerToV3;
      if (!SOFTWARE.test(clientSoftwareName) || !SOFTWARE.test(clientSoftwareVersion)) return refusal;
      connectionState.softwareName = clientSoftwareName;
      connectionState.softwareVersion = clientSoftwareVersion;
      return apiVersion === 3 ? answerToV3 : answer;
    },
  };
}
