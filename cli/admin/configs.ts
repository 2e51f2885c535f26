/** `kaas admin configs`: settings of topics and brokers. */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext } from "../command_context.ts";
import { collect, connected } from "./connected.ts";

export function configsCommand(context: CommandContext) {
  return new Command("configs")
    .description("Show and change settings of topics and brokers.")
    .addCommand(
      connected(new Command("describe").description("Show settings that are not the default, or all."))
        .option("--topic <TOPIC>", "settings of a topic (repeatable)", collect)
        .option("--broker <ID>", "settings of a broker (repeatable)", collect)
        .option("--all-brokers", "what is set for all brokers")
        .option("--all", "all settings, with where each value comes from")
        .action(async (options) => {
          const { describe } = await import("./configs_actions.ts");
          await describe(context, options);
        }),
    )
    .addCommand(
      connected(new Command("alter").description("Change settings, at once and for good."))
        .option("--topic <TOPIC>", "settings of a topic (repeatable)", collect)
        .option("--broker <ID>", "settings of a broker (repeatable)", collect)
        .option("--all-brokers", "for all brokers")
        .option("--set <NAME=VALUE>", "gives a setting a value (repeatable)", collect)
        .option("--delete <NAME>", "puts a setting back to what it is without (repeatable)", collect)
        .option("--dry-run", "only check")
        .addHelpText(
          "after",
          "\n  kaas admin configs alter --topic orders --set retention.ms=3600000 --delete segment.bytes",
        )
        .action(async (options) => {
          const { alter } = await import("./configs_actions.ts");
          await alter(context, options);
        }),
    );
}
