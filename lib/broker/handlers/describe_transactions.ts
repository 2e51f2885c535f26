/** DescribeTransactions (KIP-664): the state of transactional ids, and what their transactions cover. */

import { ErrorCode } from "../../errors.ts";
import {
  describeTransactionsRequest,
  describeTransactionsResponse,
} from "../../protocol/messages/describe_transactions.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { GROUP_SHARDS } from "../coordinator_shards.ts";
import type { Handler } from "../handler.ts";

type Request = ValueOf<typeof describeTransactionsRequest>;
type Response = InputOf<typeof describeTransactionsResponse>;

/** Serves DescribeTransactions. */
export function describeTransactionsHandler(
  { transactions }: Pick<Broker, "transactions">,
): Handler<Request, Response> {
  const describe = (transactionalId: string): Response["transactionStates"][number] => {
    const refusal = transactionalId === "" ? ErrorCode.INVALID_REQUEST : transactions.availabilityOf(transactionalId);
    const found = refusal === ErrorCode.NONE ? transactions.describe(transactionalId) : undefined;
    if (found === undefined) return refused(transactionalId, refusal || ErrorCode.TRANSACTIONAL_ID_NOT_FOUND);
    return {
      errorCode: ErrorCode.NONE,
      transactionalId,
      transactionState: found.state,
      transactionTimeoutMs: found.timeoutMs,
      transactionStartTimeMs: found.startedAtMs,
      producerId: found.producerId,
      producerEpoch: found.producerEpoch,
      topics: Array.from(found.partitions, ([topic, partitions]) => ({ topic, partitions: [...partitions] }))
        .filter(({ topic }) => topic !== GROUP_SHARDS),
    };
  };
  return {
    request: describeTransactionsRequest,
    response: describeTransactionsResponse,
    handle: ({ transactionalIds }) => ({ throttleTimeMs: 0, transactionStates: transactionalIds.map(describe) }),
  };
}

function refused(transactionalId: string, errorCode: ErrorCode): Response["transactionStates"][number] {
  return {
    errorCode,
    transactionalId,
    transactionState: "",
    transactionTimeoutMs: 0,
    transactionStartTimeMs: -1,
    producerId: -1,
    producerEpoch: -1,
    topics: [],
  };
}
