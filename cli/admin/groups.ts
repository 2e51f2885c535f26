/** `kaas admin groups`: consumer groups of both protocols, their lag, and their offsets. */

import { Command, Option } from "@commander-js/extra-typings";
import type { CommandContext } from "../command_context.ts";
import { collect, connected, integerFrom } from "./connected.ts";

export function groupsCommand(context: CommandContext) {
  return new Command("groups")
    .description("List and describe consumer groups, move their offsets, delete them.")
    .addCommand(
      connected(new Command("list").description("List the groups of all brokers."))
        .option("--state <STATE>", "only groups in this state, such as Stable or Empty (repeatable)", collect)
        .option("--type <TYPE>", "only classic or consumer groups")
        .action(async (options) => {
          const { list } = await import("./groups_actions.ts");
          await list(context, options);
        }),
    )
    .addCommand(
      connected(new Command("describe").description("Show members, offsets and lag."))
        .argument("<GROUP...>", "ids of groups")
        .addHelpText("after", "\n  kaas admin groups describe billing\n  kaas admin groups describe billing --json")
        .action(async (groups, options) => {
          const { describe } = await import("./groups_actions.ts");
          await describe(context, groups, options);
        }),
    )
    .addCommand(
      connected(new Command("reset-offsets").description("Move the offsets of a group without members."))
        .argument("<GROUP>", "id of the group")
        .option("--topic <TOPIC[:P,P]>", "topic, or some of its partitions (repeatable)", collect)
        .option("--all-topics", "all topics that the group has offsets for")
        .addOption(new Option("--to-earliest", "to the first record"))
        .addOption(new Option("--to-latest", "behind the last record"))
        .addOption(new Option("--to-current", "to what is committed now"))
        .addOption(new Option("--to-offset <N>", "to this offset").argParser(integerFrom(0)))
        .addOption(
          new Option("--shift-by <N>", "by so many records, back if negative")
            .argParser(integerFrom(Number.MIN_SAFE_INTEGER)),
        )
        .addOption(new Option("--to-datetime <TIME>", "to the first record at or after 2026-01-31T12:00:00Z"))
        .addOption(new Option("--by-duration <DURATION>", "to the first record of the last PT1H30M or P1D"))
        .addOption(new Option("--from-file <CSV>", "to the offsets in a file of TOPIC,PARTITION,OFFSET lines"))
        .option("--execute", "do it; without this it is only shown")
        .option("--export", "print TOPIC,PARTITION,OFFSET lines, as --from-file takes them")
        .addHelpText(
          "after",
          `
Offsets outside of the log are moved to its nearest end. Without --execute nothing is changed.

  kaas admin groups reset-offsets billing --topic orders --to-earliest
  kaas admin groups reset-offsets billing --topic orders:0,1 --shift-by -100 --execute
  kaas admin groups reset-offsets billing --all-topics --to-current --export > offsets.csv`,
        )
        .action(async (group, options) => {
          const { resetOffsets } = await import("./reset_offsets.ts");
          await resetOffsets(context, group, options);
        }),
    )
    .addCommand(
      connected(new Command("delete").description("Delete groups without members, and their offsets."))
        .argument("<GROUP...>", "ids of groups")
        .action(async (groups, options) => {
          const { deleteGroups } = await import("./groups_actions.ts");
          await deleteGroups(context, groups, options);
        }),
    )
    .addCommand(
      connected(new Command("delete-offsets").description("Delete the offsets that a group has committed for topics."))
        .argument("<GROUP>", "id of the group")
        .requiredOption("--topic <TOPIC[:P,P]>", "topic, or some of its partitions (repeatable)", collect)
        .action(async (group, options) => {
          const { deleteOffsets } = await import("./groups_actions.ts");
          await deleteOffsets(context, group, options);
        }),
    );
}
