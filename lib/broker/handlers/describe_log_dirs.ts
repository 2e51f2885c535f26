/**
 * DescribeLogDirs: the data folders, the bytes of each partition in them and, from version 4 on, the size of the volume
 * and what is left of it (KIP-827). A partition that is not open is measured by the sizes of its live segments, which
 * opens nothing.
 */

import { DiskError } from "../../disk/disk.ts";
import { ErrorCode } from "../../errors.ts";
import { describeLogDirsRequest, describeLogDirsResponse } from "../../protocol/messages/describe_log_dirs.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { readPartitionFolder } from "../../storage/partition_folder.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import type { Partition } from "../partitions.ts";

type DescribeLogDirsRequest = ValueOf<typeof describeLogDirsRequest>;
type DescribeLogDirsResponse = InputOf<typeof describeLogDirsResponse>;
type LogDir = DescribeLogDirsResponse["results"][number];
type Measured = LogDir["topics"][number]["partitions"][number];
type MeasuringBroker = Pick<Broker, "dataFolders" | "disk" | "logger" | "partitions">;

/** Partitions that are measured at a time. */
const MEASURED_AT_ONCE = 32;

export function describeLogDirsHandler(
  broker: MeasuringBroker,
): Handler<DescribeLogDirsRequest, DescribeLogDirsResponse> {
  return {
    request: describeLogDirsRequest,
    response: describeLogDirsResponse,
    async handle(request) {
      const wanted = select(broker, request);
      const results: LogDir[] = [];
      for (const folder of broker.dataFolders) {
        const inside = wanted.filter((partition) => partition.folder.startsWith(`${folder}/`));
        results.push(await measure(broker, folder, inside));
      }
      return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, results };
    },
  };
}

/** The partitions that are asked for; those that are not here are left out. */
function select({ partitions }: MeasuringBroker, { topics }: DescribeLogDirsRequest): Partition[] {
  if (topics === null) return [...partitions.all()];
  const selected = new Set<Partition>();
  for (const { topic, partitions: indexes } of topics) {
    for (const index of indexes) {
      const partition = partitions.get(topic, index);
      if (partition !== undefined) selected.add(partition);
    }
  }
  return [...selected];
}

async function measure(broker: MeasuringBroker, folder: string, partitions: readonly Partition[]): Promise<LogDir> {
  try {
    const { freeBytes, totalBytes } = await broker.disk.space(folder);
    const sizes = await sizesOf(broker, partitions);
    const topics = new Map<string, Measured[]>();
    for (const [position, { topic, index }] of partitions.entries()) {
      const measured = { partitionIndex: index, partitionSize: sizes[position], offsetLag: 0, isFutureKey: false };
      const others = topics.get(topic);
      if (others === undefined) topics.set(topic, [measured]);
      else others.push(measured);
    }
    return {
      errorCode: ErrorCode.NONE,
      logDir: folder,
      topics: Array.from(topics, ([name, measured]) => ({ name, partitions: measured })),
      totalBytes,
      usableBytes: freeBytes,
    };
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    broker.logger.error("cannot measure data folder", { folder, error: String(error) });
    return { errorCode: ErrorCode.KAFKA_STORAGE_ERROR, logDir: folder, topics: [], totalBytes: -1, usableBytes: -1 };
  }
}

async function sizesOf(broker: MeasuringBroker, partitions: readonly Partition[]): Promise<number[]> {
  const sizes = new Array<number>(partitions.length).fill(0);
  let next = 0;
  const measurer = async () => {
    while (next < partitions.length) {
      const position = next++;
      sizes[position] = await sizeOf(broker, partitions[position]);
    }
  };
  await Promise.all(Array.from({ length: MEASURED_AT_ONCE }, measurer));
  return sizes;
}

async function sizeOf({ disk }: MeasuringBroker, { openLog, folder }: Partition): Promise<number> {
  if (openLog !== null) return openLog.sizeBytes;
  try {
    const { state } = await readPartitionFolder(disk, folder);
    return state.live.reduce((bytes, segment) => bytes + segment.logBytes, 0);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return 0;
    throw error;
  }
}
