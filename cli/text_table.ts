/**
 * Columns of text for people: each as wide as its widest cell, numbers to the right.
 */

/** One column: its title, and to which side its cells go. */
export interface Column {
  readonly title: string;
  readonly align: "left" | "right";
}

/** The rows under their titles, one line each, without blanks at the ends of lines. */
export function textTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const lines = [columns.map((column) => column.title), ...rows];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  return lines.map((line) => {
    const cells = line.map((cell, at) =>
      columns[at].align === "right" ? cell.padStart(widths[at]) : cell.padEnd(widths[at])
    );
    return `${cells.join("  ").trimEnd()}\n`;
  }).join("");
}

/** A size for people: `512 B`, `1.5 KiB`, `20 MiB`. */
export function sizeText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit]}`;
}
