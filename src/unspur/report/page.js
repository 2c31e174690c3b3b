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
