/** What `kaas admin cluster|brokers|partitions` do. */

import { readVolume } from "../client/volume.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure } from "../exit.ts";
import { counted, say, table } from "./connected.ts";

export interface VolumeOptions {
  readonly data?: string | undefined;
  readonly json?: true | undefined;
}

/** The data folder that the options or the environment name. */
export function dataFolderOf({ environment }: CommandContext, { data }: VolumeOptions): string {
  return data ?? (environment.KAAS_DATA || "data");
}

export async function cluster(context: CommandContext, options: VolumeOptions): Promise<void> {
  const folder = dataFolderOf(context, options);
  await context.giveUp("env", "net", "write", "sys");
  const { controller, assignment, brokers } = await readVolume(folder, { watch: true });
  const alive = new Set(brokers.filter(({ state }) => state === "alive").map(({ nodeId }) => `kaas-${nodeId}`));
  const partitions = assignment?.partitions ?? [];
  const facts = {
    data: folder,
    controller: controller === null || controller.released ? null : controller.holder,
    controllerEpoch: controller?.epoch ?? null,
    assignmentVersion: assignment?.assignmentVersion ?? null,
    brokers: { alive: alive.size, known: brokers.length, draining: brokers.filter(({ draining }) => draining).length },
    topics: assignment?.topics?.length ?? 0,
    partitions: partitions.length,
    moving: partitions.filter(({ moveTo }) => moveTo !== undefined).length,
    withoutLiveLeader: partitions.filter(({ broker }) => !alive.has(broker)).length,
  };
  say(
    context,
    options,
    facts,
    (facts) =>
      `controller ${facts.controller ?? "none"} in epoch ${facts.controllerEpoch ?? "-"}, ` +
      `assignment ${facts.assignmentVersion ?? "-"}\n` +
      `${
        counted(facts.brokers.alive, "broker")
      } alive of ${facts.brokers.known} known, ${facts.brokers.draining} draining\n` +
      `${counted(facts.topics, "topic")}, ${counted(facts.partitions, "partition")}: ${facts.moving} moving, ` +
      `${facts.withoutLiveLeader} without a live leader\n`,
  );
}

export async function brokers(context: CommandContext, options: VolumeOptions): Promise<void> {
  const folder = dataFolderOf(context, options);
  await context.giveUp("env", "net", "write", "sys");
  const { brokers } = await readVolume(folder, { watch: true });
  say(context, options, brokers, (brokers) =>
    table(
      ["#NODE", "STATE", "#TENURE", "#PARTITIONS", "#COORDINATORS", "HOST", "ADDRESSES"],
      brokers.map((one) => [
        one.nodeId,
        one.draining ? `${one.state}, draining` : one.state,
        one.tenure,
        one.partitions,
        one.coordinators,
        one.host,
        one.addresses.join(" "),
      ]),
    ));
}

export async function partitions(
  context: CommandContext,
  topics: readonly string[],
  options: VolumeOptions & { readonly broker?: number | undefined },
): Promise<void> {
  const folder = dataFolderOf(context, options);
  await context.giveUp("env", "net", "write", "sys");
  const { assignment } = await readVolume(folder, { watch: false });
  const known = new Set(assignment?.topics?.map(({ name }) => name));
  const unknown = topics.filter((topic) => !known.has(topic));
  if (unknown.length > 0) throw new CommandFailure(`there is no topic ${unknown.join(", ")}`);
  const nodeIdOf = (broker: string | undefined) => broker === undefined ? null : Number(/\d+$/.exec(broker)?.[0] ?? -1);
  const shown = (assignment?.partitions ?? [])
    .filter(({ topic }) => topics.length === 0 || topics.includes(topic))
    .map(({ topic, partition, broker, epoch, moveTo, preferred }) => ({
      topic,
      partition,
      leader: nodeIdOf(broker),
      leaderEpoch: epoch,
      movesTo: nodeIdOf(moveTo),
      chosen: nodeIdOf(preferred),
    }))
    .filter(({ leader }) => options.broker === undefined || leader === options.broker);
  say(context, options, shown, (shown) =>
    table(
      ["TOPIC", "#PARTITION", "#LEADER", "#EPOCH", "#MOVES TO", "#CHOSEN"],
      shown.map((one) => [one.topic, one.partition, one.leader, one.leaderEpoch, one.movesTo, one.chosen]),
    ));
}
