/** What the handlers of group requests work with: all groups, kept by one broker, on a folder of its own. */

import type { Broker } from "../../lib/broker/broker.ts";
import { coordinatorKinds } from "../../lib/broker/coordinator_shards.ts";
import { GroupCoordination } from "../../lib/broker/group_coordination.ts";
import { systemRandom } from "../../lib/clock.ts";
import { type AdminBroker, type AdminBrokerOptions, withAdminBroker } from "./admin_broker.ts";

export type GroupBroker = AdminBroker & Pick<Broker, "groups">;

/** Runs `test` with a broker that has a topic "t" of four partitions and serves groups. */
export async function withGroupBroker(
  test: (broker: GroupBroker) => Promise<void>,
  options: AdminBrokerOptions = {},
): Promise<void> {
  await withAdminBroker(async (broker) => {
    const { disk, clock, logger, config, topics, dataFolders: [folder] } = broker;
    const groups = new GroupCoordination({
      disk,
      clock,
      random: systemRandom,
      logger,
      config,
      topics,
      tenure: { isValid: () => true },
      folderOf: (shard) => `${folder}/__cluster/groups/${shard}`,
    });
    await disk.makeFolder(`${folder}/__cluster/groups`);
    const plan = { name: "t", partitionCount: 4, replicationFactor: 1, overrides: new Map(), leaders: new Map() };
    await topics.create("t", () => plan);
    try {
      for (let shard = 0; shard < coordinatorKinds[0].partitionCount; shard++) groups.lead(shard, 1);
      await groups.loaded;
      await test({ ...broker, groups });
    } finally {
      await groups.stop();
    }
  }, options);
}
