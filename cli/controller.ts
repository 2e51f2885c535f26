/**
 * `kaas controller`: a process that assigns partitions to the brokers of a volume, and does nothing else. Brokers do that
 * by themselves where there is none.
 */

import { Command } from "@commander-js/extra-typings";
import type { RunningController } from "../lib/broker/start_controller.ts";
import { systemClock } from "../lib/clock.ts";
import { createLogger, errorText } from "../lib/observability/logger.ts";
import type { CommandContext } from "./command_context.ts";
import { CommandFailure } from "./exit.ts";
import { ownNames } from "./setting_names.ts";
import { gatherSettings, withSettingOptions } from "./start_options.ts";

/** kaas's own names that mean something without listeners. */
const names = ownNames.filter(({ name }) => ["data", "log-level", "log-format"].includes(name));

export function controllerCommand(context: CommandContext) {
  const command = new Command("controller")
    .description(
      "Assign partitions to the brokers of a data folder. Brokers do that themselves where no controller runs.",
    )
    .usage("[--data DIR] [--set NAME=VALUE]...");
  return withSettingOptions(command, names)
    .addHelpText(
      "after",
      `
Start it once more for a standby: one is active, and another takes over when its session ends. Give all processes on
one data folder the same broker.session.timeout.ms.`,
    )
    .action(async (flags: Record<string, unknown>) => {
      const settings = await gatherSettings(flags, context);
      const logger = createLogger({
        level: settings.logLevel,
        format: settings.logFormat ?? (context.terminal.outIsTerminal ? "text" : "json"),
        clock: systemClock,
        write: context.terminal.out,
      });
      const stopSignal = context.nextStopSignal();
      context.reportUnhandled((error) => logger.error("unexpected failure; please report it", { error }));
      const { startController } = await import("../lib/broker/start_controller.ts");
      await context.giveUp("env", "net");
      let controller: RunningController;
      try {
        controller = await startController(settings.config, logger);
      } catch (error) {
        throw new CommandFailure(`cannot start: ${errorText(error)}`);
      }
      logger.info("kaas controller campaigns", { controller: controller.name, data: settings.dataFolder });
      logger.info("stopping", { signal: await stopSignal });
      await controller.stop();
      logger.info("stopped");
    });
}
