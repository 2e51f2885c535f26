/** The version of this kaas, from the one place that states it. */
import manifest from "../deno.json" with { type: "json" };

export const version: string = manifest.version;
