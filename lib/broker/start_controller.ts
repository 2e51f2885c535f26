/**
 * A process that is a controller and nothing else. Brokers leave the campaign to such processes while one is alive; of
 * several, one is active and the others stand by.
 */
import { systemClock, systemRandom, type Timer } from "../clock.ts";
import { HeldLease, parseLease } from "../cluster/lease.ts";
import { DamagedFileError, readJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { machineIdentity, machineLocks } from "../disk/machine.ts";
import { realDisk } from "../disk/real_disk.ts";
import type { Logger } from "../observability/logger.ts";
import { FolderTopicStore } from "../storage/topic_store.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { Topics } from "./topics.ts";
import { controllersFolder, volumeController, type VolumeView, watchBrokers } from "./volume_controller.ts";

/** Time between two looks at who is alive, while standing by. */
const LOOK_INTERVAL_MS = 250;

/** A controller that campaigns or is active. */
export interface RunningController {
  readonly name: string;
  /** Whether it is the one that assigns partitions. */
  readonly isActive: boolean;
  /** Steps down. */
  stop(): Promise<void>;
}

/**
 * Starts to campaign for the volume's controller.
 * @throws {DiskError} when the volume cannot be used
 */
export async function startController(config: BrokerConfig, logger: Logger): Promise<RunningController> {
  const { disk, clock, random } = { disk: realDisk, clock: systemClock, random: systemRandom };
  const machine = machineIdentity();
  const [dataFolder] = config.get("log.dirs") ?? config.get("log.dir");
  const durationMs = config.get("broker.session.timeout.ms");
  const name = `controller-${machine.host}-${random.uuid().slice(0, 8)}`;
  const folder = controllersFolder(dataFolder);
  const path = `${folder}/${name}.json`;
  await disk.makeFolder(folder);
  await disk.syncFolder(`${dataFolder}/__cluster`);
  await removeReleased(disk, folder);
  const acquire = () =>
    HeldLease.acquire({
      disk,
      clock,
      path,
      holder: name,
      incarnation: random.uuid(),
      process: { ...machine, address: "" },
      durationMs,
      holderIsGone: () => true,
    });
  let presence = await acquire();
  const view: VolumeView = { disk, clock, dataFolder, machine, locks: machineLocks, nodeId: null };
  const brokers = watchBrokers(view);
  const store = new FolderTopicStore({ disk, clock, dataFolder, random, logger });
  const topics = await Topics.load({ store, config, random, logger });
  const controller = volumeController({
    ...view,
    random,
    logger,
    holder: name,
    address: "",
    durationMs,
    brokers,
    topics,
    // Without a presence of its own, brokers campaign.
    shouldYield: () => !presence.isValid(),
  });
  await brokers.observe();
  controller.start();
  let wasActive = false;
  let stopped = false;
  let timer: Timer | null = null;
  look();

  return {
    name,
    get isActive() {
      return controller.isActive;
    },
    async stop() {
      stopped = true;
      timer?.cancel();
      await controller.stop();
      await presence.release();
    },
  };

  function look(): void {
    if (stopped) return;
    timer = clock.schedule(LOOK_INTERVAL_MS, () => {
      if (controller.isActive !== wasActive) {
        wasActive = controller.isActive;
        logger.info(wasActive ? "this controller is active" : "this controller stands by", { controller: name });
      }
      void refresh().catch((error) => {
        if (!(error instanceof DiskError)) throw error;
      }).finally(look);
    });
  }

  async function refresh(): Promise<void> {
    await brokers.observe();
    if (!presence.isValid()) presence = await acquire();
  }
}

/** Removes the leases of processes that have ended in order. */
async function removeReleased(disk: Disk, folder: string): Promise<void> {
  const entries = await disk.list(folder);
  for (const { name } of entries.filter(({ name }) => name.endsWith(".json"))) {
    const lease = await readJson(disk, `${folder}/${name}`, parseLease).catch((error) => {
      if (error instanceof DamagedFileError) return null;
      throw error;
    });
    if (lease?.released !== true) continue;
    for (const one of entries) if (one.name.startsWith(name)) await disk.remove(`${folder}/${one.name}`);
  }
}
