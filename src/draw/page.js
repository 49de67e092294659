"use strict";
// Clicking a header sorts the table by its column; another click reverses the order.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        if (!cell) return "";
        return cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key);
      };
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (typeof x === "number" && typeof y === "number") return x - y;
        return String(x).localeCompare(String(y), "en", { numeric: true });
      };
      const rows = [...body.rows].sort(order);
      if (down) rows.reverse();
      body.append(...rows);
    });
  });
}
// Clicking a box of a picture shows its details and its line of the spec.
const details = document.getElementById("details");
for (const node of document.querySelectorAll("g.node")) {
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "button");
  const title = node.querySelector("title");
  if (title) node.setAttribute("aria-label", title.textContent);
  const choose = () => {
    document.querySelectorAll(".chosen").forEach((other) => other.classList.remove("chosen"));
    node.classList.add("chosen");
    const { source, line } = node.dataset;
    for (const text of document.querySelectorAll("pre.source")) {
      if (text.dataset.source !== source) continue;
      const code = text.querySelector(`code[data-line="${CSS.escape(line)}"]`);
      if (!code) continue;
      code.classList.add("chosen");
    }
    // The panel keeps to the window, so it is seen wherever the box is.
    if (details) details.textContent = title ? title.textContent : "";
  };
  node.addEventListener("click", choose);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
}
