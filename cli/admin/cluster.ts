/** `kaas admin cluster|brokers|partitions|drain`: a cluster by its data folder. No broker has to answer. */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext } from "../command_context.ts";
import { integerFrom } from "./connected.ts";

/** The command with `--data` and `--json`. */
function onVolume<Args extends unknown[], Opts extends Record<string, unknown>>(command: Command<Args, Opts>) {
  return command
    .option("--data <DIR>", "data folder (default: ./data; environment: KAAS_DATA)")
    .option("--json", "print JSON instead of tables");
}

export function clusterCommand(context: CommandContext) {
  return onVolume(new Command("cluster").description("Show controller, brokers and partitions in numbers."))
    .action(async (options) => {
      const { cluster } = await import("./cluster_actions.ts");
      await cluster(context, options);
    });
}

export function brokersCommand(context: CommandContext) {
  return onVolume(new Command("brokers").description("Show the brokers of a data folder, and which of them are alive."))
    .addHelpText("after", "\nIt watches for up to half a session: a broker that renews its own meanwhile is alive.")
    .action(async (options) => {
      const { brokers } = await import("./cluster_actions.ts");
      await brokers(context, options);
    });
}

export function partitionsCommand(context: CommandContext) {
  return onVolume(new Command("partitions").description("Show who leads which partition, and under which epoch."))
    .argument("[TOPIC...]", "names of topics; all without")
    .option("--broker <ID>", "only those that this broker leads", integerFrom(0))
    .action(async (topics, options) => {
      const { partitions } = await import("./cluster_actions.ts");
      await partitions(context, topics, options);
    });
}

export function drainCommand(context: CommandContext) {
  return onVolume(new Command("drain").description("Relieve a broker of everything that it leads, and keep it so."))
    .argument("<ID>", "node id of the broker", integerFrom(0))
    .option("--timeout <SECONDS>", "how long to wait until it leads nothing (default: 60)", integerFrom(0))
    .option("--cancel", "take the order back: the broker gets its share again")
    .option("--status", "only show how far it is")
    .addHelpText(
      "after",
      `
Partitions move one after the other, each when the broker has closed it; the rest is served meanwhile. The order stands
until --cancel, whatever is restarted. Exits with 1 when something was left after --timeout; the order stands then, too.`,
    )
    .action(async (nodeId, options) => {
      const { drain } = await import("./drain_action.ts");
      await drain(context, nodeId, options);
    });
}
