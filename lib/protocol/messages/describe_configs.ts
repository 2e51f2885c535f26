/**
 * DescribeConfigs (KIP-133): settings of topics, brokers and groups with where they come from.
 *
 * v0 only says whether a value is the default · v1 sources and synonyms (KIP-226) · v3 types and documentation
 * (KIP-569) · v4 flexible.
 */

import { array, bool, int16, int32, int8, message, string, struct } from "../schema.ts";

export const describeConfigsRequest = message(
  { name: "DescribeConfigsRequest", apiKey: 32, type: "request", versions: "0-4", flexible: "4+" },
  {
    resources: array(struct({
      resourceType: int8(),
      resourceName: string(),
      configurationKeys: array(string()).nullable(),
    })),
    includeSynonyms: bool().since(1).default(false),
    includeDocumentation: bool().since(3).default(false),
  },
);

export const describeConfigsResponse = message(
  { name: "DescribeConfigsResponse", apiKey: 32, type: "response", versions: "0-4", flexible: "4+" },
  {
    throttleTimeMs: int32(),
    results: array(struct({
      errorCode: int16(),
      errorMessage: string().nullable(),
      resourceType: int8(),
      resourceName: string(),
      configs: array(struct({
        name: string(),
        value: string().nullable(),
        readOnly: bool(),
        isDefault: bool().until(0),
        configSource: int8().since(1).default(-1),
        isSensitive: bool(),
        synonyms: array(struct({ name: string(), value: string().nullable(), source: int8() })).since(1),
        configType: int8().since(3).default(0),
        documentation: string().since(3).nullable(),
      })),
    })),
  },
);
