/**
 * A folder in which files are removed as on NFS: unlinking one that is open only hides it (bindfs names it
 * `.fuse_hidden…`, NFS `.nfs…`) until its last handle closes, and until then its folder cannot be removed.
 */

/** Whether this machine has bindfs and may mount with it. */
export const hasSillyVolumes = isThere("/dev/fuse") &&
  (Deno.env.get("PATH") ?? "").split(":").some((folder) => isThere(`${folder}/bindfs`));

/** Mounts such a folder. */
export async function sillyVolume(): Promise<{ readonly folder: string; unmount(): Promise<void> }> {
  const base = await Deno.makeTempDir({ prefix: "kaas-silly-" });
  const [backing, folder] = [`${base}/backing`, `${base}/mounted`];
  await Deno.mkdir(backing);
  await Deno.mkdir(folder);
  await run("bindfs", [backing, folder]);
  return {
    folder,
    async unmount() {
      await run(isThere("/bin/fusermount3") ? "fusermount3" : "fusermount", ["-u", folder]);
      await Deno.remove(base, { recursive: true });
    },
  };
}

async function run(command: string, args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args, stdout: "null", stderr: "piped" }).output();
  if (!success) throw new Error(`${command} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}

/** Asked of another program: with the rights that tests run with, Deno does not let a process look into `/dev`. */
function isThere(path: string): boolean {
  return new Deno.Command("test", { args: ["-e", path], stderr: "null" }).outputSync().success;
}
