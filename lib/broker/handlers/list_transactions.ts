/**
 * ListTransactions (0–2): the transactional ids that this broker coordinates, of the states, producers, durations (KIP-994)
 * and names (KIP-1152) wanted.
 */

import { ErrorCode } from "../../errors.ts";
import { SubscriptionRegex } from "../../groups/subscription_regex.ts";
import { listTransactionsRequest, listTransactionsResponse } from "../../protocol/messages/list_transactions.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { type Transaction, transactionStates } from "../../transactions/transaction.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

type Request = ValueOf<typeof listTransactionsRequest>;
type Response = InputOf<typeof listTransactionsResponse>;

/** States that can be asked for, though no transaction here is ever seen in the last two. */
const knownStates: ReadonlySet<string> = new Set([...transactionStates, "Dead", "PrepareEpochFence"]);

/** Serves ListTransactions. */
export function listTransactionsHandler(
  { transactions, clock }: Pick<Broker, "transactions" | "clock">,
): Handler<Request, Response> {
  return {
    request: listTransactionsRequest,
    response: listTransactionsResponse,
    handle(request) {
      const { availability } = transactions;
      if (availability !== ErrorCode.NONE) return refused(availability);
      const pattern = patternOf(request.transactionalIdPattern);
      if (pattern === "invalid") return refused(ErrorCode.INVALID_REGULAR_EXPRESSION);
      const nowMs = clock.wallMs();
      const listed: Response["transactionStates"][number][] = [];
      for (const one of transactions.list()) {
        if (!isWanted(one, request, nowMs) || pattern?.matches(one.transactionalId) === false) continue;
        const { transactionalId, producerId, state: transactionState } = one;
        listed.push({ transactionalId, producerId, transactionState });
      }
      const unknownStateFilters = request.stateFilters.filter((state) => !knownStates.has(state));
      return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, unknownStateFilters, transactionStates: listed };
    },
  };
}

function isWanted(
  { state, producerId, startedAtMs }: Transaction,
  { stateFilters, producerIdFilters, durationFilter }: Request,
  nowMs: number,
): boolean {
  if (stateFilters.length > 0 && !stateFilters.includes(state)) return false;
  if (producerIdFilters.length > 0 && !producerIdFilters.includes(producerId)) return false;
  return durationFilter < 0 || (startedAtMs >= 0 && nowMs - startedAtMs > durationFilter);
}

/** Null where every id is wanted. */
function patternOf(pattern: string | null): SubscriptionRegex | null | "invalid" {
  if (pattern === null || pattern === "") return null;
  const compiled = SubscriptionRegex.compile(pattern);
  return "problem" in compiled ? "invalid" : compiled;
}

function refused(errorCode: ErrorCode): Response {
  return { throttleTimeMs: 0, errorCode, unknownStateFilters: [], transactionStates: [] };
}
