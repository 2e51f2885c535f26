/**
 * `kaas admin`: look and act from a terminal. Some commands look at what a volume holds and need no broker; the others
 * talk to a running one. Each is in a file of its own, and loads what it does when it runs.
 */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext, EndWith } from "./command_context.ts";
import { brokersCommand, clusterCommand, drainCommand, partitionsCommand } from "./admin/cluster.ts";
import { configsCommand } from "./admin/configs.ts";
import { deleteRecordsCommand } from "./admin/delete_records.ts";
import { groupsCommand } from "./admin/groups.ts";
import { topicsCommand } from "./admin/topics.ts";
import { transactionsCommand } from "./admin/transactions.ts";
import { dumpSegmentCommand } from "./dump_segment.ts";
import { inspectPartitionCommand } from "./inspect_partition.ts";

export function adminCommand(context: CommandContext, endWith: EndWith) {
  return new Command("admin")
    .description("Look at the files of a volume, and act on a running cluster.")
    .addCommand(topicsCommand(context))
    .addCommand(groupsCommand(context))
    .addCommand(transactionsCommand(context))
    .addCommand(configsCommand(context))
    .addCommand(deleteRecordsCommand(context))
    .addCommand(clusterCommand(context))
    .addCommand(brokersCommand(context))
    .addCommand(partitionsCommand(context))
    .addCommand(drainCommand(context))
    .addCommand(inspectPartitionCommand(context, endWith))
    .addCommand(dumpSegmentCommand(context, endWith));
}
