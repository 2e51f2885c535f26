/** `kaas admin topics`: list, describe, create, alter and delete topics. */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext } from "../command_context.ts";
import { collect, connected, integerFrom } from "./connected.ts";

export function topicsCommand(context: CommandContext) {
  return new Command("topics")
    .description("List, describe, create, alter and delete topics.")
    .addCommand(
      connected(new Command("list").description("List topics."))
        .option("--internal", "with those that Kafka hides")
        .action(async (options) => {
          const { list } = await import("./topics_actions.ts");
          await list(context, options);
        }),
    )
    .addCommand(
      connected(
        new Command("describe").description("Show partitions with leaders and offsets, and the topic's own settings."),
      )
        .argument("<TOPIC...>", "names of topics")
        .action(async (topics, options) => {
          const { describe } = await import("./topics_actions.ts");
          await describe(context, topics, options);
        }),
    )
    .addCommand(
      connected(new Command("create").description("Create topics."))
        .argument("<TOPIC...>", "names of topics")
        .option("--partitions <N>", "number of partitions (default: the broker's num.partitions)", integerFrom(1))
        .option("--config <NAME=VALUE>", "a setting of the topic (repeatable)", collect)
        .option("--if-not-exists", "do nothing where there is such a topic")
        .addHelpText("after", "\n  kaas admin topics create orders --partitions 6 --config retention.ms=86400000")
        .action(async (topics, options) => {
          const { create } = await import("./topics_actions.ts");
          await create(context, topics, options);
        }),
    )
    .addCommand(
      connected(new Command("alter").description("Raise the number of partitions of a topic."))
        .argument("<TOPIC>", "name of the topic")
        .requiredOption("--partitions <N>", "new number of partitions", integerFrom(1))
        .addHelpText("after", "\nSettings are changed with 'kaas admin configs alter'.")
        .action(async (topic, options) => {
          const { alter } = await import("./topics_actions.ts");
          await alter(context, topic, options);
        }),
    )
    .addCommand(
      connected(new Command("delete").description("Delete topics and all their records."))
        .argument("<TOPIC...>", "names of topics")
        .option("--if-exists", "do nothing where there is no such topic")
        .option("--yes", "do not ask")
        .action(async (topics, options) => {
          const { deleteTopics } = await import("./topics_actions.ts");
          await deleteTopics(context, topics, options);
        }),
    );
}
