/** `kaas admin delete-records`: removes the records at the beginning of partitions. */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext } from "../command_context.ts";
import { connected } from "./connected.ts";

export function deleteRecordsCommand(context: CommandContext) {
  return connected(new Command("delete-records").description("Delete the records before an offset."))
    .option("--topic <TOPIC[:P,P]>", "topic, or some of its partitions")
    .option("--before-offset <N|end>", "first offset that stays; end for all that is there")
    .option("--from-file <JSON>", `partitions and offsets as kafka-delete-records takes them: {"partitions": [...]}`)
    .option("--yes", "do not ask")
    .addHelpText("after", "\n  kaas admin delete-records --topic orders:0 --before-offset 1000")
    .action(async (options) => {
      const { deleteRecords } = await import("./delete_records_action.ts");
      await deleteRecords(context, options);
    });
}
