/**
 * InitProducerId (0–6): hands out producer ids for idempotent producers. An id is new and unused for ever; a producer
 * that asks again, whatever id and epoch it names, gets another one (KIP-360: its sequences start anew).
 *
 * A transactional id needs a transaction coordinator, which this broker does not have.
 */
import { DiskError } from "../../disk/disk.ts";
import { ErrorCode } from "../../errors.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../protocol/messages/init_producer_id.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** Serves InitProducerId. */
export function initProducerIdHandler(
  { producerIds, logger }: Pick<Broker, "producerIds" | "logger">,
): Handler<ValueOf<typeof initProducerIdRequest>, InputOf<typeof initProducerIdResponse>> {
  return {
    request: initProducerIdRequest,
    response: initProducerIdResponse,
    async handle({ transactionalId }) {
      if (transactionalId !== null) {
        const isEmpty = transactionalId === "";
        return refusal(isEmpty ? ErrorCode.INVALID_REQUEST : ErrorCode.UNSUPPORTED_VERSION);
      }
      try {
        const producerId = await producerIds.next();
        return { ...refusal(ErrorCode.NONE), producerId, producerEpoch: 0 };
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        logger.error("cannot reserve producer ids", { error: String(error) });
        return refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE);
      }
    },
  };
}

function refusal(errorCode: ErrorCode) {
  return { throttleTimeMs: 0, errorCode, producerId: -1, producerEpoch: -1 };
}
