/**
 * How a command ends: 0 done, 1 it failed, 2 it was called in a way that cannot work.
 */

export const exitCode = { ok: 0, failure: 1, usage: 2 } as const;
export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** The command was called wrongly; each line says what is wrong, where, and what would be right. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(readonly lines: readonly string[]) {
    super(lines.join("\n"));
  }
}

/** The command did what it could and failed; the message says at what. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}
