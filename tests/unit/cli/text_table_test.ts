import assert from "node:assert/strict";
import { sizeText, textTable } from "../../../cli/text_table.ts";

Deno.test("A table's columns are as wide as their widest cells, and no line ends in blanks", () => {
  const columns = [{ title: "name", align: "left" }, { title: "n", align: "right" }, {
    title: "x",
    align: "left",
  }] as const;
  assert.equal(
    textTable(columns, [["a", "100", ""], ["longer", "1", "y"]]),
    "name      n  x\na       100\nlonger    1  y\n",
  );
});

Deno.test("Sizes are given in the largest unit that they reach", () => {
  const texts = [0, 1023, 1024, 1536, 1024 ** 2 * 20, 1024 ** 3 - 1, 1024 ** 5].map(sizeText);
  assert.deepEqual(texts, ["0 B", "1023 B", "1 KiB", "1.5 KiB", "20 MiB", "1024 MiB", "1024 TiB"]);
});
