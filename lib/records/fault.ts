/**
 * What is wrong with records that a client sent or a disk gave back, as a value. Imports only the error codes.
 */
import { ErrorCode } from "../errors.ts";

/** Name of a compression kind, as in Kafka's `CompressionType`. */
export type CompressionName = "none" | "gzip" | "snappy" | "lz4" | "zstd";

/** Why bytes are no valid records: the Kafka error to answer with and a sentence for its message. */
export class RecordsFault {
  constructor(readonly errorCode: ErrorCode, readonly message: string) {}
}

/** The fault of input that unpacks to more than `maxBytes`. */
export function tooLarge(maxBytes: number): RecordsFault {
  return new RecordsFault(ErrorCode.INVALID_RECORD, `Compressed records unpack to more than ${maxBytes} bytes`);
}

/** The fault of input that is no valid output of its compressor. */
export function malformed(codec: CompressionName, what: string): RecordsFault {
  return new RecordsFault(ErrorCode.INVALID_RECORD, `Malformed ${codec} data: ${what}`);
}
