/**
 * The error of bytes that are not what their API and version promise. It is thrown at most once per frame and closes
 * the connection it came from; nothing else.
 */

/** Bytes that cannot be read as the message they claim to be. */
export class MalformedFrame extends Error {
  override readonly name = "MalformedFrame";

  /** `position` is the byte at which reading stopped, counted from the start of the bytes that were read. */
  constructor(message: string, readonly position: number, options?: ErrorOptions) {
    super(`${message} (at byte ${position})`, options);
  }
}
