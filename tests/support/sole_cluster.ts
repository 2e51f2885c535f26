/** A cluster of one broker, which leads every partition of every topic as soon as it is there; nothing is written. */

import type { Cluster } from "../../lib/broker/cluster.ts";
import type { Partitions } from "../../lib/broker/partitions.ts";
import type { BrokerAddress } from "../../lib/broker/topic_metadata.ts";
import type { Topic, TopicListener, Topics } from "../../lib/broker/topics.ts";

export interface SoleClusterOptions {
  readonly nodeId: number;
  readonly topics: Topics;
  readonly partitions: Partitions;
  readonly leaderEpoch: number;
  folderOf(topic: string, partition: number): string;
  addresses(listener: string): BrokerAddress[];
}

/** See the file's head. */
export class SoleCluster implements Cluster, TopicListener {
  constructor(private readonly options: SoleClusterOptions) {
    for (const topic of options.topics.all()) this.partitionsAdded(topic, 0);
    options.topics.subscribe(this);
  }

  get controllerId(): number {
    return this.options.nodeId;
  }

  addresses(listener: string): BrokerAddress[] {
    return this.options.addresses(listener);
  }

  nodeIds(): number[] {
    return [this.options.nodeId];
  }

  isAlive(nodeId: number): boolean {
    return nodeId === this.options.nodeId;
  }

  placeOf(topic: string, partition: number) {
    const led = this.options.partitions.get(topic, partition);
    if (led === undefined) return null;
    return { nodeId: this.options.nodeId, leaderEpoch: led.leaderEpoch, movesTo: null, chosen: null };
  }

  chooseLeaders(): Promise<void> {
    return Promise.resolve();
  }

  eventually(condition: () => boolean): Promise<boolean> {
    return Promise.resolve(condition());
  }

  coordinatorOf(): number {
    return this.options.nodeId;
  }

  partitionsAdded({ name, partitionCount }: Topic, firstPartition: number): void {
    const { partitions, folderOf, leaderEpoch } = this.options;
    for (let partition = firstPartition; partition < partitionCount; partition++) {
      partitions.lead(name, partition, folderOf(name, partition), leaderEpoch);
    }
  }

  async topicDeleted({ name }: Topic): Promise<void> {
    await this.options.partitions.abandonTopic(name);
  }

  topicConfigured({ name }: Topic): void {
    this.options.partitions.applyConfig(name);
  }
}
