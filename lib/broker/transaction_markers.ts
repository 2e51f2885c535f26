/** Ending one transaction in one partition that this broker leads: the marker in its log. */

import { ErrorCode } from "../errors.ts";
import { buildEndTransactionMarker, type EndTransactionMarker } from "../records/control.ts";
import type { Broker } from "./broker.ts";

/**
 * Writes a marker. Resolves with NONE when it is durable, and with UNKNOWN_TOPIC_OR_PARTITION where there is no such
 * partition.
 * @param onlyOpen writes nothing where the producer has no open transaction, as its marker may be there already; what is
 *   there is durable then, too
 */
export async function writeMarker(
  { partitions, clock, tenure }: Pick<Broker, "partitions" | "clock" | "tenure">,
  place: { readonly topic: string; readonly partition: number },
  marker: EndTransactionMarker,
  onlyOpen: boolean,
): Promise<ErrorCode> {
  const partition = partitions.get(place.topic, place.partition);
  if (partition === undefined) return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  const log = await partition.log();
  if (typeof log === "number") {
    // The topic may have been deleted meanwhile.
    return partitions.get(place.topic, place.partition) === partition ? log : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  }
  let durable: Promise<ErrorCode>;
  if (onlyOpen && !log.hasOpenTransaction(marker.producerId)) {
    durable = log.flush();
  } else {
    const nowMs = clock.wallMs();
    const batch = buildEndTransactionMarker(marker, nowMs);
    const outcome = log.append(batch, nowMs);
    if (outcome.kind === "refused") return outcome.errorCode;
    partition.appendedBytes += batch.length;
    durable = log.durable(outcome.ticket);
  }
  const errorCode = await durable;
  if (errorCode !== ErrorCode.NONE) return errorCode;
  return tenure.isValid() ? ErrorCode.NONE : ErrorCode.NOT_LEADER_OR_FOLLOWER;
}
