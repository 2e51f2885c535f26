/**
 * `kaas admin`: look at what a volume holds, from a terminal. A group of commands, each in a file of its own.
 */

import { Command } from "@commander-js/extra-typings";
import type { CommandContext, EndWith } from "./command_context.ts";
import { dumpSegmentCommand } from "./dump_segment.ts";
import { inspectPartitionCommand } from "./inspect_partition.ts";

export function adminCommand(context: CommandContext, endWith: EndWith) {
  return new Command("admin")
    .description("Look at partitions and segments. Changes nothing; brokers may run meanwhile.")
    .addCommand(inspectPartitionCommand(context, endWith))
    .addCommand(dumpSegmentCommand(context, endWith));
}
