/**
 * The command line: which commands there are, and how a run of one becomes an exit code. Each command is a file of its
 * own; what it needs of lib/ is loaded when it runs, so that no command pays for another.
 */

import { Command, CommanderError } from "@commander-js/extra-typings";
import { brokerSettings, nearestName } from "../lib/broker/config_definitions.ts";
import { adminCommand } from "./admin.ts";
import { brokerCommand } from "./broker.ts";
import type { CommandContext } from "./command_context.ts";
import { controllerCommand } from "./controller.ts";
import { CommandFailure, type ExitCode, exitCode, UsageError } from "./exit.ts";
import { meaningOf } from "./setting_names.ts";
import { version } from "./version.ts";

/** Runs one command line (without the program's name) and resolves to the code to exit with. Never rejects. */
export async function runCommandLine(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  let outcome: ExitCode = exitCode.ok;
  const program = new Command()
    .name("kaas")
    .description("A Kafka-compatible streaming broker that keeps its partitions on one volume.")
    .version(version, "-V, --version", "print the version")
    .addCommand(brokerCommand(context, (code) => outcome = code))
    .addCommand(controllerCommand(context))
    .addCommand(adminCommand(context, (code) => outcome = code))
    .addHelpText("after", "\nExit codes: 0 done, 1 failed, 2 called wrongly.");
  for (const command of withDescendants(program)) {
    command
      .exitOverride()
      .helpOption("-h, --help", "print this help")
      .helpCommand(false)
      .allowExcessArguments(false)
      .configureOutput({ writeOut: terminal.out, writeErr: terminal.err, outputError: () => {} });
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return outcome;
  } catch (error) {
    return report(error, args, program, context);
  }
}

function withDescendants(command: AnyCommand): AnyCommand[] {
  return [command, ...command.commands.flatMap((child) => withDescendants(child as AnyCommand))];
}

// deno-lint-ignore no-explicit-any -- commander's type of "any command" takes three type arguments
type AnyCommand = Command<any, any, any>;

/** Says on stderr why the command ended, unless it ended by design, and gives the exit code. */
function report(error: unknown, args: readonly string[], program: AnyCommand, { terminal }: CommandContext): ExitCode {
  const path = commandPath(args, program);
  const fail = (lines: readonly string[], code: ExitCode) => {
    for (const line of lines) terminal.err(`${path}: ${line}\n`);
    if (code === exitCode.usage) terminal.err(`Try '${path} --help'.\n`);
    return code;
  };
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return exitCode.ok;
    if (error.code === "commander.help") return exitCode.usage;
    return fail([usageMessage(error)], exitCode.usage);
  }
  if (error instanceof UsageError) return fail(error.lines, exitCode.usage);
  if (error instanceof CommandFailure) return fail([error.message], exitCode.failure);
  return fail([error instanceof Error ? error.stack ?? error.message : String(error)], exitCode.failure);
}

/** Commander's words on one line; for a setting that is given as a flag of its own, the form that works. */
function usageMessage(error: CommanderError): string {
  const [what, guess] = error.message.replace(/^error: /, "").replace(/\.$/, "").trim().split("\n");
  if (guess !== undefined) return `${what}, ${guess.replace(/^\(Did you mean (.*)\?\)$/, "did you mean $1?")}`;
  if (error.code !== "commander.unknownOption") return what;
  const name = /'--([^'=]*)/.exec(what)?.[1] ?? "";
  const setting = meaningOf(name)?.written ?? nearestName(name.replaceAll("-", "."), Object.keys(brokerSettings));
  return setting === null ? what : `${what}; a setting is given as --set ${setting}=VALUE`;
}

function commandPath(args: readonly string[], program: AnyCommand): string {
  let command = program;
  let path = program.name();
  for (const arg of args) {
    const child = command.commands.find((candidate) => candidate.name() === arg) as AnyCommand | undefined;
    if (child === undefined) break;
    command = child;
    path += ` ${child.name()}`;
  }
  return path;
}
