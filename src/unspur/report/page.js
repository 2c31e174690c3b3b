"use strict";

// Sort a table by the column whose heading was pressed; press again to reverse.
for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const column = heading.cellIndex;
    const body = heading.closest("table").tBodies[0];
    const falling = heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentElement.cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value;
    const compare = (a, b) => {
      if (a === "" || b === "") return (a === "") - (b === ""); // the unknown stays at the end
      return (falling ? -1 : 1) * a.localeCompare(b, "en", { numeric: true });
    };
    const number = (a, b) => (a === "" || b === "" ? compare(a, b) : (falling ? -1 : 1) * (a - b));
    const order = heading.classList.contains("number") ? number : compare;
    body.append(...[...body.rows].sort((a, b) => order(value(a), value(b))));
  });
}

// One slider fades every heat map.
const sliders = document.querySelectorAll(".strength input");
for (const slider of sliders) {
  slider.addEventListener("input", () => {
    document.documentElement.style.setProperty("--strength", slider.value / 100);
    for (const other of sliders) other.value = slider.value;
  });
}
document.documentElement.classList.add("scripted");

// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

// Suspects: what a person ticks becomes a table that `folder` reads, with the cue as an attribute.
const judged = document.getElementById("judged");
if (judged) {
  const rows = JSON.parse(judged.textContent);
  const suspects = [...document.querySelectorAll(".suspect")];
  const ticks = () => suspects.map((each) => each.querySelector("input:checked"));
  // A spreadsheet runs a cell that begins like a formula: a file's name gets "./" before it, which names the same
  // file, and any other word an apostrophe.
  const harmless = (text, before) => (/^[=+\-@\s]/.test(text) ? before + text : text);
  const field = (text) => (/[",;\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const table = () => {
    const answers = new Map(ticks().map((tick, place) => [Number(suspects[place].dataset.row), tick?.value]));
    const lines = rows.map(([name, label, shows], row) => {
      const answer = answers.get(row);
      const cue = answer === "not" ? label : shows;
      const words = [harmless(label, "'"), harmless(cue, "'"), answer ? "person" : "audit"];
      return [harmless(name, "./"), ...words].map(field).join(",");
    });
    return `${["filename,label,cue,checked", ...lines].join("\n")}\n`;
  };
  document.querySelector("#suspects").addEventListener("change", () => {
    document.getElementById("ticked").textContent = `${ticks().filter(Boolean).length} of ${suspects.length} ticked`;
  });
  document.getElementById("groups").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
    link.download = "groups.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
