/**
 * Runs command lines inside the test's own process, with everything they say kept.
 */

import type { CommandContext } from "../../../cli/command_context.ts";
import { runCommandLine } from "../../../cli/program.ts";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `kaas ARGS`; `context` replaces what the command may touch. */
export async function run(args: readonly string[], context: Partial<CommandContext> = {}): Promise<Ran> {
  let out = "";
  let err = "";
  const code = await runCommandLine(args, {
    terminal: {
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      outIsTerminal: false,
      errIsTerminal: false,
    },
    environment: {},
    readTextFile: (path) => Promise.reject(new Error(`no file ${path}`)),
    giveUp: () => Promise.resolve(),
    confirm: () => false,
    nextStopSignal: () => Promise.reject(new Error("no signal in this test")),
    reportUnhandled: () => {},
    ...context,
  });
  return { code, out, err };
}
