/** What `kaas admin drain` does: writes the order, and watches the assignment until the broker leads nothing. */

import { systemClock } from "../../lib/clock.ts";
import { brokerName } from "../../lib/cluster/broker_record.ts";
import { cancelDrain, orderDrain, readDrainOrders } from "../../lib/cluster/drain_orders.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import { realDisk } from "../../lib/disk/real_disk.ts";
import { errorText } from "../../lib/observability/logger.ts";
import { readAssignment, readVolume } from "../client/volume.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure, UsageError } from "../exit.ts";
import { dataFolderOf, type VolumeOptions } from "./cluster_actions.ts";
import { counted } from "./connected.ts";

export interface DrainOptions extends VolumeOptions {
  readonly timeout?: number | undefined;
  readonly cancel?: true | undefined;
  readonly status?: true | undefined;
}

/** What a broker leads, by `TOPIC/PARTITION`. */
type Duties = readonly string[];

const DEFAULT_TIMEOUT_S = 60;
const LOOK_INTERVAL_MS = 50;

export async function drain(context: CommandContext, nodeId: number, options: DrainOptions): Promise<void> {
  const folder = dataFolderOf(context, options);
  if (options.cancel === true && options.status === true) throw new UsageError(["--cancel and --status: take one"]);
  await context.giveUp("env", "net", "sys");
  try {
    if (options.cancel === true) await cancel(context, folder, nodeId, options);
    else if (options.status === true) await status(context, folder, nodeId, options);
    else await order(context, folder, nodeId, options);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    throw new CommandFailure(errorText(error));
  }
}

async function cancel(
  { terminal }: CommandContext,
  folder: string,
  nodeId: number,
  { json }: DrainOptions,
): Promise<void> {
  const wasOrdered = await cancelDrain(realDisk, folder, nodeId);
  if (json === true) terminal.out(`${JSON.stringify({ nodeId, draining: false, wasOrdered })}\n`);
  else {terminal.out(
      wasOrdered ? `broker ${nodeId} gets its share again\n` : `broker ${nodeId} was not being drained\n`,
    );}
}

async function status(
  { terminal }: CommandContext,
  folder: string,
  nodeId: number,
  { json }: DrainOptions,
): Promise<void> {
  const draining = (await readDrainOrders(realDisk, folder)).has(nodeId);
  const left = await dutiesOf(folder, nodeId);
  if (json === true) return terminal.out(`${JSON.stringify({ nodeId, draining, left })}\n`);
  const order = draining ? "is being drained" : "is not being drained";
  terminal.out(`broker ${nodeId} ${order} and leads ${counted(left.length, "partition")}\n`);
}

async function order(context: CommandContext, folder: string, nodeId: number, options: DrainOptions): Promise<void> {
  const { terminal } = context;
  const { brokers } = await readVolume(folder, { watch: true });
  const broker = brokers.find((one) => one.nodeId === nodeId);
  if (broker === undefined) throw new CommandFailure(`no broker ${nodeId} has ever been on ${folder}`);
  if (!brokers.some((one) => one.nodeId !== nodeId && one.state === "alive" && !one.draining)) {
    throw new CommandFailure("no other broker is alive that could take over");
  }
  await orderDrain(realDisk, folder, nodeId);
  const before = await dutiesOf(folder, nodeId);
  const say = (event: Readonly<Record<string, unknown>>, text: string) => {
    if (options.json === true) terminal.out(`${JSON.stringify(event)}\n`);
    else if (terminal.errIsTerminal) terminal.err(`\r${text}`);
  };
  const deadline = systemClock.monotonicMs() + (options.timeout ?? DEFAULT_TIMEOUT_S) * 1000;
  let left = before;
  while (left.length > 0 && systemClock.monotonicMs() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    const now = await dutiesOf(folder, nodeId);
    if (now.length !== left.length) {
      const moved = before.length - now.length;
      say({ nodeId, moved, left: now.length }, `${moved} of ${before.length} moved`);
    }
    left = now;
  }
  if (options.json !== true && terminal.errIsTerminal && before.length > 0) terminal.err("\n");
  if (options.json === true) terminal.out(`${JSON.stringify({ nodeId, drained: left.length === 0, left })}\n`);
  else if (left.length === 0) {
    terminal.out(`broker ${nodeId} is drained: ${counted(before.length, "partition")} moved\n`);
  }
  if (left.length > 0) {
    throw new CommandFailure(
      `broker ${nodeId} still leads ${left.join(", ")}; the order stands, see --status and --cancel`,
    );
  }
}

async function dutiesOf(folder: string, nodeId: number): Promise<Duties> {
  const assignment = await readAssignment(folder);
  return [...assignment?.partitions ?? [], ...assignment?.coordinators ?? []]
    .filter(({ broker }) => broker === brokerName(nodeId))
    .map(({ topic, partition }) => `${topic}/${partition}`);
}
