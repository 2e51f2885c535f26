/** Kafka's command-line tools, as the scripts in its bin/ folder start them. */

import { clientCommand } from "./toolchain.ts";

const mainClasses = {
  "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
  "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
  "kafka-configs": "kafka.admin.ConfigCommand",
  "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
  "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
  "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
  "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
  "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
  "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
  "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
  "kafka-features": "org.apache.kafka.tools.FeatureCommand",
  "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
  "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
  "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
  "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
  "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
  "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
  "kafka-topics": "org.apache.kafka.tools.TopicCommand",
  "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
} as const;

export type KafkaTool = keyof typeof mainClasses;

export interface ToolOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a tool to its end, with `input` as its stdin. */
export async function runTool(tool: KafkaTool, args: readonly string[], input = ""): Promise<ToolOutput> {
  const [program, ...javaArguments] = clientCommand("kafka-tools")!;
  const child = new Deno.Command(program, {
    args: [...javaArguments, mainClasses[tool], ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  // A tool that ends without reading its input is no failure of ours.
  await writer.write(new TextEncoder().encode(input)).catch(() => {});
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/** Runs a tool that must succeed, and returns what it printed to stdout. */
export async function tool(tool: KafkaTool, args: readonly string[], input = ""): Promise<string> {
  const { code, stdout, stderr } = await runTool(tool, args, input);
  if (code !== 0) throw new Error(`${tool} ${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
  return stdout;
}
