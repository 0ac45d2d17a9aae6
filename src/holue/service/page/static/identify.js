// Files can be dropped; they are as if they had been chosen. To identify them that is all it takes.
const drop = document.getElementById("drop");
const input = document.getElementById("files");

for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  input.files = event.dataTransfer.files;
  if (input.files.length && !drop.dataset.keep) document.getElementById("files-form").requestSubmit();
});
