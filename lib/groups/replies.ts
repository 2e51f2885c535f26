/** What groups answer, free of any wire format. */

import type { ErrorCode } from "../errors.ts";

export interface JoinReply {
  readonly errorCode: ErrorCode;
  readonly generationId: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly leader: string;
  readonly memberId: string;
  readonly skipAssignment: boolean;
  /** For the leader: everybody, with what it said of itself under the protocol chosen. */
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly metadata: Uint8Array;
  }[];
}

export interface SyncReply {
  readonly errorCode: ErrorCode;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignment: Uint8Array;
}

export function refusedJoin(errorCode: ErrorCode, memberId = ""): JoinReply {
  return {
    errorCode,
    generationId: -1,
    protocolType: null,
    protocolName: null,
    leader: "",
    memberId,
    skipAssignment: false,
    members: [],
  };
}

export function refusedSync(errorCode: ErrorCode): SyncReply {
  return { errorCode, protocolType: null, protocolName: null, assignment: new Uint8Array(0) };
}
