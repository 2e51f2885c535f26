/**
 * `kaas controller`: a process that places partitions on several brokers. This version has no such process, and the
 * command says so instead of pretending.
 */

import { Command } from "@commander-js/extra-typings";
import { CommandFailure } from "./exit.ts";

export function controllerCommand() {
  return new Command("controller")
    .description("Place partitions on several brokers (not in this version: it ends with an error).")
    .action(() => {
      throw new CommandFailure(
        "not in this version: a controller is for several brokers on one volume, and this version runs one broker, " +
          "which needs none. Start that one with 'kaas broker'.",
      );
    });
}
