/**
 * The descriptors of this process, as the system sees them. Read by another program: with the rights that tests run with,
 * Deno does not let a process look into `/proc` itself.
 */

/** Paths that this process has open below `folder` (an absolute path). Linux only. */
export function openBelow(folder: string): string[] {
  const { stdout, success } = new Deno.Command("find", {
    args: [`/proc/${Deno.pid}/fd`, "-type", "l", "-printf", "%l\\n"],
    stderr: "null",
  }).outputSync();
  if (!success && stdout.length === 0) throw new Error(`cannot list the descriptors of process ${Deno.pid}`);
  return new TextDecoder().decode(stdout).split("\n").filter((path) => path.startsWith(folder));
}
