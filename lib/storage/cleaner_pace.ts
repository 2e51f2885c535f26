/** How a compaction pass leaves room for others: it asks often whether a rest is due, and says what it moves. */
export interface Pace {
  /** Bytes were read from a log, or written to a new segment. */
  moved(bytes: number): void;
  /** Whether others have waited long enough, or too many bytes were moved in too short a time. */
  isDue(): boolean;
  /** Lets others run; returns within a fraction of a second, and may have to be called again. */
  rest(): Promise<void>;
}

/** Thrown inside a pass that is to end: the log is closing, or leadership is over. Nothing is broken. */
export class CleaningInterrupted extends Error {
  override readonly name = "CleaningInterrupted";
}

/** Thrown inside a pass that met bytes which are no batch, where there should be one. */
export class UncleanableError extends Error {
  override readonly name = "UncleanableError";
}
