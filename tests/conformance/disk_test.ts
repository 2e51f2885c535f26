/** The suite of `disk_suite.ts` over the real disk, the simulated one, and a registry of open handles around each. */

import { HandleRegistry } from "../../lib/disk/handle_registry.ts";
import { openHandleCount, realDisk } from "../../lib/disk/real_disk.ts";
import { SeededRandom } from "../simulation/seeded_random.ts";
import { SimulatedDisk } from "../simulation/simulated_disk.ts";
import { type DiskUnderTest, testDisk } from "./disk_suite.ts";

async function real(): Promise<DiskUnderTest> {
  const folder = await Deno.makeTempDir({ prefix: "kaas-disk-" });
  const dispose = () => Deno.remove(folder, { recursive: true });
  return { disk: realDisk, folder, openHandles: openHandleCount, dispose };
}

async function simulated(): Promise<DiskUnderTest> {
  const disk = new SimulatedDisk({ random: new SeededRandom(1) });
  await disk.makeFolder("/data");
  return { disk, folder: "/data", openHandles: () => disk.openHandles, dispose: () => Promise.resolve() };
}

function registered(make: () => Promise<DiskUnderTest>): () => Promise<DiskUnderTest> {
  return async () => {
    const under = await make();
    const registry = new HandleRegistry(under.disk);
    return { ...under, disk: registry, openHandles: () => registry.openCount };
  };
}

testDisk("real disk", real);
testDisk("simulated disk", simulated);
testDisk("registry over the real disk", registered(real));
testDisk("registry over the simulated disk", registered(simulated));
