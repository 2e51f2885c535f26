/**
 * What a command may touch of the process that it runs in. Handed in, so that tests can run commands in their own.
 */

import type { ExitCode } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

/** Tells the program the code to exit with; without it a command that returns is done (0). */
export type EndWith = (code: ExitCode) => void;

export interface CommandContext {
  readonly terminal: Terminal;
  /** The environment variables as the process was started with. */
  readonly environment: Readonly<Record<string, string>>;
  /** The text of a file. @throws what the system says */
  readonly readTextFile: (path: string) => Promise<string>;
  /**
   * Gives up rights for good once a command knows that it needs them no longer, so that nothing that runs later, of kaas
   * or of a package, has them.
   */
  readonly giveUp: (...rights: ("env" | "net" | "write" | "sys")[]) => Promise<void>;
  /** Asks a person for a yes; no where nobody can answer. */
  readonly confirm: (question: string) => boolean;
  /** Waits for the signals that stop a broker; the second one ends the process at once. */
  readonly nextStopSignal: () => Promise<string>;
  /**
   * From now on a failure that no code expected is handed to `report` instead of ending the process: one request's bug must
   * not take all partitions down.
   */
  readonly reportUnhandled: (report: (error: unknown) => void) => void;
}
