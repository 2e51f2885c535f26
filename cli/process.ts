/**
 * The process around a command: its arguments, environment, rights and signals.
 *
 * The environment is read once, here: names of variables can only be listed with the right to read them all, and an
 * unknown one must be found. Commands give that right up before they do anything long.
 */

import type { CommandContext } from "./command_context.ts";
import { exitCode } from "./exit.ts";
import { runCommandLine } from "./program.ts";
import { processTerminal } from "./terminal.ts";

/** Runs this process's command line and ends the process. */
export async function startProcess(): Promise<never> {
  const context: CommandContext = {
    terminal: processTerminal(),
    environment: Deno.env.toObject(),
    readTextFile: (path) => Deno.readTextFile(path),
    giveUp: async (...rights) => {
      for (const name of rights) await Deno.permissions.revoke({ name });
    },
    confirm: (question) => Deno.stdin.isTerminal() && globalThis.confirm(question),
    nextStopSignal,
    reportUnhandled,
  };
  Deno.exit(await runCommandLine(Deno.args, context));
}

function nextStopSignal(): Promise<string> {
  let first = true;
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      Deno.addSignalListener(signal, () => {
        if (!first) Deno.exit(exitCode.failure);
        first = false;
        resolve(signal);
      });
    }
  });
}

function reportUnhandled(report: (error: unknown) => void): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    report(event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    report(event.error);
  });
}
