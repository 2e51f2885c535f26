/**
 * `kaas broker`: serve Kafka clients until a signal comes. The first SIGTERM or SIGINT stops cleanly: connections are
 * drained, what is acknowledged is durable, every partition is closed; the second ends the process at once.
 */

import { Command } from "@commander-js/extra-typings";
import type { RunningBroker } from "../lib/broker/start_broker.ts";
import { systemClock } from "../lib/clock.ts";
import { createLogger, errorText, type Logger } from "../lib/observability/logger.ts";
import type { StartSettings } from "./broker_settings.ts";
import type { CommandContext, EndWith } from "./command_context.ts";
import { CommandFailure, exitCode } from "./exit.ts";
import { ownNames } from "./setting_names.ts";
import { gatherSettings, withSettingOptions } from "./start_options.ts";
import { version } from "./version.ts";

/** The command, which tells `endWith` when the broker did not stop cleanly. */
export function brokerCommand(context: CommandContext, endWith: EndWith) {
  const command = new Command("broker")
    .description("Serve Kafka clients. Alone, one broker is a complete system.")
    .usage("[--data DIR] [--listen [NAME=]HOST:PORT]... [--set NAME=VALUE]...");
  return withSettingOptions(command, ownNames)
    .addHelpText(
      "after",
      `
A setting is taken from the first place that has it: flag, environment, file, default. In the environment,
log.retention.ms is KAAS_LOG_RETENTION_MS; in a file it is log.retention.ms: 60000, flat or nested.
SIGTERM or SIGINT stops the broker cleanly, a second one at once.`,
    )
    .action(async (flags: Record<string, unknown>) => {
      const settings = await gatherSettings(flags, context);
      const clean = await serve(settings, context);
      if (!clean) endWith(exitCode.failure);
    });
}

/** Starts the broker and serves until it is told to stop. Resolves to whether it stopped cleanly. */
async function serve(settings: StartSettings, context: CommandContext): Promise<boolean> {
  const { terminal, nextStopSignal, giveUp, reportUnhandled } = context;
  const logger = createLogger({
    level: settings.logLevel,
    format: settings.logFormat ?? (terminal.outIsTerminal ? "text" : "json"),
    clock: systemClock,
    write: terminal.out,
  });
  const stopSignal = nextStopSignal();
  reportUnhandled((error) => logger.error("unexpected failure; please report it", { error }));
  const { startBroker } = await import("../lib/broker/start_broker.ts");
  await giveUp("env");
  let broker: RunningBroker;
  try {
    broker = await startBroker(settings.config, logger);
  } catch (error) {
    throw new CommandFailure(`cannot start: ${errorText(error)}`);
  }
  sayStarted(broker, settings, logger);
  const superseded = broker.superseded.then((reason) => ({ reason }));
  const ending = await Promise.race([stopSignal.then((signal) => ({ signal })), superseded]);
  if ("reason" in ending) {
    logger.error("stopping: this broker may not acknowledge anything any more", ending);
    return false;
  }
  logger.info("stopping", ending);
  try {
    await broker.stop();
  } catch (error) {
    logger.error("stopped with a failure", { error });
    return false;
  }
  logger.info("stopped");
  return true;
}

function sayStarted(broker: RunningBroker, settings: StartSettings, logger: Logger): void {
  logger.info("kaas broker serves", {
    version,
    nodeId: broker.nodeId,
    listeners: broker.listeners.map(({ name, host, port }) =>
      `${name}://${host.includes(":") ? `[${host}]` : host}:${port}`
    )
      .join(","),
    data: settings.dataFolder,
    topics: broker.topicCount,
    partitions: broker.partitionCount,
    startMs: Math.round(performance.now()),
  });
}
