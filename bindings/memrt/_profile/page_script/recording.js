/** Recordings embedded in the page as JSON, one per process. */

const documents = JSON.parse(document.getElementById("recording").textContent);

function stat(recorded, name) {
  const row = recorded.stats.find((each) => each[0] === name);
  return row ? row[2] : 0;
}
