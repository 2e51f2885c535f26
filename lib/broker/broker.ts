/**
 * One broker: what its request handlers work with.
 */
import type { Clock, Random } from "../clock.ts";
import type { Disk } from "../disk/disk.ts";
import type { Logger } from "../observability/logger.ts";
import type { BrokerConfig } from "./broker_config.ts";
import type { BrokerLinks } from "./broker_links.ts";
import type { Cluster } from "./cluster.ts";
import type { ConfigStore } from "./config_store.ts";
import type { FetchSessionCache } from "./fetch_session.ts";
import type { GroupCoordination } from "./group_coordination.ts";
import type { ListenerInfo } from "./handler.ts";
import type { Partitions } from "./partitions.ts";
import type { ProducerIds } from "./producer_ids.ts";
import type { Topics } from "./topics.ts";
import type { TransactionCoordination } from "./transaction_coordination.ts";
import type { TransactionGuards } from "./transaction_guards.ts";

/** Whether this process may still acknowledge anything (its session with the volume is alive). */
export interface Tenure {
  isValid(): boolean;
}

/** What handlers see of the running broker. */
export interface Broker {
  readonly nodeId: number;
  readonly clusterId: string;
  readonly config: BrokerConfig;
  /** Keeps what is altered in `config` while the broker runs. */
  readonly configStore: ConfigStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  /** Where topics are kept. */
  readonly dataFolders: readonly string[];
  readonly logger: Logger;
  readonly tenure: Tenure;
  readonly cluster: Cluster;
  readonly topics: Topics;
  readonly partitions: Partitions;
  readonly producerIds: ProducerIds;
  readonly groups: GroupCoordination;
  readonly transactions: TransactionCoordination;
  readonly guards: TransactionGuards;
  /** Requests to other brokers. */
  readonly links: Pick<BrokerLinks, "call">;
  readonly fetchSessions: FetchSessionCache;
  /** The listeners with the addresses that clients are told. */
  readonly listeners: readonly ListenerInfo[];
}
