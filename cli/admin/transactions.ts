/** `kaas admin transactions`: transactions of the whole cluster, and ending those that nobody ends. */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext } from "../command_context.ts";
import { collect, connected, integerFrom } from "./connected.ts";

export function transactionsCommand(context: CommandContext) {
  return new Command("transactions")
    .description("List, describe and abort transactions, and find those that hang.")
    .addCommand(
      connected(new Command("list").description("List the transactional ids of all coordinators."))
        .option("--state <STATE>", "only those in this state, such as Ongoing (repeatable)", collect)
        .option("--producer-id <ID>", "only those of this producer (repeatable)", collect)
        .option("--longer-than <SECONDS>", "only transactions that have been going on for longer", integerFrom(0))
        .option("--id-pattern <REGEX>", "only ids that this regular expression matches as a whole")
        .action(async (options) => {
          const { list } = await import("./transactions_actions.ts");
          await list(context, options);
        }),
    )
    .addCommand(
      connected(new Command("describe").description("Show state, producer and partitions of transactional ids."))
        .argument("<TRANSACTIONAL_ID...>", "transactional ids")
        .action(async (ids, options) => {
          const { describe } = await import("./transactions_actions.ts");
          await describe(context, ids, options);
        }),
    )
    .addCommand(
      connected(new Command("abort").description("Abort a transaction, by its id or where it hangs."))
        .argument("[TRANSACTIONAL_ID]", "transactional id: its producer is fenced, and what it has begun is aborted")
        .option("--topic <TOPIC:P>", "partition in which a transaction hangs")
        .option("--start-offset <N>", "where the hanging transaction begins", integerFrom(0))
        .option("--yes", "do not ask")
        .addHelpText(
          "after",
          `
A transaction that hangs is ongoing in a partition's log while no coordinator knows of it; find-hanging finds those.

  kaas admin transactions abort payments-1
  kaas admin transactions abort --topic orders:0 --start-offset 4711`,
        )
        .action(async (id, options) => {
          const { abort } = await import("./transactions_actions.ts");
          await abort(context, id, options);
        }),
    )
    .addCommand(
      connected(new Command("find-hanging").description("Find transactions in logs that no coordinator knows of."))
        .option("--topic <TOPIC[:P,P]>", "only in this topic, or some of its partitions (repeatable)", collect)
        .option("--older-than <SECONDS>", "only those without a record for so long (default: 900)", integerFrom(0))
        .addHelpText("after", "\nExits with 1 when it finds any.")
        .action(async (options) => {
          const { findHanging } = await import("./find_hanging.ts");
          await findHanging(context, options);
        }),
    );
}
